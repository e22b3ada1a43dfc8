package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/safetensors"
	"github.com/disdel/disdel/model"
)

// HubModel is a model of a hub's folder.
type HubModel struct {
	Imported
	Labels    []string // names of classes, if config.json has them
	Tokenizer []byte   // tokenizer.json; nil: the folder has none
	Origin    []byte   // what ExportHub needs to write the same folder again: a safetensors file
}

// HubOptions say how a hub's folder is read.
type HubOptions struct {
	Classes int // outputs of a classifier that the folder lacks; 0: as config.json says
	// Positions is the number of tokens of a row, if fewer than the folder's; 0: all.
	Positions int
}

// Bounds of a folder. Sizes are in bytes.
const (
	mostConfig    = 1 << 20
	mostIndex     = 32 << 20
	mostTokenizer = 64 << 20
	mostDrawn     = 100_000 // classes of a classifier that is drawn
	mostKept      = 1 << 20 // of a tensor that is no weight of the network and is written again
)

// ImportHub reads the folder of a model as hubs have it: config.json, model.safetensors or its shards, and the
// tokenizer. It runs nothing and reads no pickle. Numbers of 16 and 64 bits become float32.
//
// The error is *disdel.Faults with everything that disdel does not know, Corrupt for damaged tensors, or Invalid.
func ImportHub(folder *os.Root, opt HubOptions) (m HubModel, err error) {
	r := &hubReader{folder: folder, opt: opt, origin: map[string]string{}}
	defer r.close()
	if err := r.readConfig(); err != nil {
		return m, err
	}
	if err := r.openTensors(); err != nil {
		return m, err
	}
	r.readSizes()
	if len(r.faults) > 0 {
		return m, &disdel.Faults{Faults: r.faults}
	}
	m.Network = disdel.Network{Layers: r.family.layers(&r.sizes), Classes: r.sizes.outputs, NextToken: r.sizes.nextToken}
	m.Network.Input = m.Network.Layers[0].Shape
	r.finishAnswers(&m)
	g, err := model.Build(m.Network)
	if err != nil {
		return m, err
	}
	if m.Weights, err = r.readWeights(g); err != nil {
		return m, err
	}
	if m.Tokenizer, err = r.readTokenizer(); err != nil {
		return m, err
	}
	m.Notes = r.notes
	m.Origin, err = r.writeOrigin()
	return m, err
}

// hubReader reads a hub's folder.
type hubReader struct {
	folder *os.Root
	opt    HubOptions
	config map[string]any
	family *hubFamily
	sizes  hubSizes
	class  string // of config.json's architectures, without the family: ForSequenceClassification
	files  []*os.File
	at     map[string]hubTensor // by name with the family's prefix
	order  []string             // names as the file has them
	used   map[string]bool
	origin map[string]string // small files and lists that an export needs
	kept   []safetensors.Tensor
	faults []disdel.Fault
	notes  []string
}

// hubTensor is a tensor of a file.
type hubTensor struct {
	safetensors.Tensor
	file *os.File
	from int64
}

func (r *hubReader) close() {
	for _, f := range r.files {
		f.Close()
	}
}

func (r *hubReader) fault(path, format string, args ...any) {
	if len(r.faults) < mostFaults {
		r.faults = append(r.faults, disdel.Fault{Path: fmt.Sprintf("%.120s", path), Msg: fmt.Sprintf(format, args...)})
	}
}

// lacks adds a fault about something of config.json that disdel does not compute.
func (r *hubReader) lacks(key, format string, args ...any) {
	r.fault("config.json "+key, format, args...)
	r.faults[len(r.faults)-1].Hint = model.OwnCode
}

func hubError(msg, hint string, cause error) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "import model", Msg: msg, Hint: hint, Err: cause}
}

// small reads a small file of the folder.
func (r *hubReader) small(name string, maximum int64) ([]byte, error) {
	f, err := r.folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maximum+1))
	if err == nil && int64(len(data)) > maximum {
		err = hubError(fmt.Sprintf("%s has more than %v", name, disdel.Bytes(maximum)), "check the file", nil)
	}
	return data, err
}

// keptFiles are small files that an export writes again.
var keptFiles = []string{
	hubConfigFile, "tokenizer_config.json", "special_tokens_map.json", "preprocessor_config.json",
	"generation_config.json",
}

const hubConfigFile = "config.json"

// HubWeightsFile is the file of the weights in a hub's folder.
const HubWeightsFile = "model.safetensors"

func (r *hubReader) readConfig() error {
	text, err := r.small(hubConfigFile, mostConfig)
	if err == nil {
		err = json.Unmarshal(text, &r.config)
	}
	if err != nil {
		return hubError("read "+hubConfigFile, "give a model's folder: config.json, model.safetensors, tokenizer.json",
			err)
	}
	for _, name := range keptFiles {
		text, err := r.small(name, mostConfig)
		if err == nil {
			r.origin[name] = string(text)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	kind, _ := r.config["model_type"].(string)
	if r.family = hubFamilies[kind]; r.family == nil {
		return hubError(fmt.Sprintf("config.json has the model_type %.40q", kind), "disdel reads "+
			strings.Join(slices.Sorted(maps.Keys(hubFamilies)), ", ")+"; else "+model.OwnCode, nil)
	}
	if list, _ := r.config["architectures"].([]any); len(list) > 0 {
		name, _ := list[0].(string)
		r.class = strings.TrimPrefix(name, r.family.kind)
	}
	return nil
}

// openTensors reads the headers of model.safetensors or of its shards.
func (r *hubReader) openTensors() error {
	r.at, r.used = map[string]hubTensor{}, map[string]bool{}
	index, err := r.small("model.safetensors.index.json", mostIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return r.openFile(HubWeightsFile)
	}
	var list struct {
		Map map[string]string `json:"weight_map"` //nolint:tagliatelle // the hub's name
	}
	if err == nil {
		err = json.Unmarshal(index, &list)
	}
	if err != nil {
		return hubError("read model.safetensors.index.json", "fetch the folder again", err)
	}
	for _, name := range slices.Compact(slices.Sorted(maps.Values(list.Map))) {
		if err := r.openFile(name); err != nil {
			return err
		}
	}
	for name := range list.Map {
		if _, ok := r.at[r.family.canonical(name)]; !ok {
			r.fault(name, "the index names the tensor, and no shard has it")
		}
	}
	return nil
}

func (r *hubReader) openFile(name string) error {
	f, err := r.folder.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return r.withoutTensors(name)
	}
	if err != nil {
		return hubError("read "+name, "shards lie beside config.json", err)
	}
	r.files = append(r.files, f)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	file, from, err := safetensors.Index(f, info.Size())
	if err != nil {
		return err
	}
	for _, t := range file.Tensors {
		if _, twice := r.at[r.family.canonical(t.Name)]; twice {
			r.fault(t.Name, "two files have the tensor")
		}
		r.at[r.family.canonical(t.Name)], r.order = hubTensor{t, f, from[t.Name]}, append(r.order, t.Name)
	}
	if len(r.files) == 1 {
		meta, err := json.Marshal(file.Metadata)
		r.origin[originMetadata] = string(meta)
		return err
	}
	return nil
}

// withoutTensors says why a folder without safetensors is refused.
func (r *hubReader) withoutTensors(name string) error {
	for _, pickle := range []string{"pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt", "model.pth"} {
		if _, err := r.folder.Stat(pickle); err == nil {
			return hubError(fmt.Sprintf("the folder has %s and no %s; reading a pickle runs the code in it, so disdel "+
				"reads none", pickle, name), "write it again: model.save_pretrained(DIR, safe_serialization=True)", nil)
		}
	}
	return hubError("the folder has no "+name, "write it with model.save_pretrained(DIR, safe_serialization=True)", nil)
}

// canonical is the name of a tensor as later versions of the family's program write it, with the body's prefix.
func (f *hubFamily) canonical(name string) string {
	if base, ok := strings.CutSuffix(name, "LayerNorm.gamma"); ok {
		name = base + "LayerNorm.weight"
	} else if base, ok := strings.CutSuffix(name, "LayerNorm.beta"); ok {
		name = base + "LayerNorm.bias"
	}
	if strings.HasPrefix(name, f.prefix) {
		return name
	}
	if f.isBody(f.prefix + name) {
		return f.prefix + name
	}
	return name
}

// isBody tells whether the body of the family has tensors of this name.
func (f *hubFamily) isBody(name string) bool {
	if strings.HasPrefix(name, f.block) || name == hubTypes {
		return true
	}
	for _, list := range f.outside {
		if strings.HasPrefix(list[0], f.prefix) && (name == list[0] || strings.HasPrefix(name, list[0]+".")) {
			return true
		}
	}
	return strings.HasPrefix(name, f.prefix+"pooler.") || strings.HasSuffix(name, "position_ids")
}

// number reads a whole number of config.json.
func (r *hubReader) number(key string, instead int) int {
	v, ok := r.config[key]
	if !ok || v == nil {
		if instead == 0 {
			r.fault("config.json "+key, "it is missing")
		}
		return instead
	}
	n, ok := v.(float64)
	if !ok || n < 1 || n > 1<<24 || n != math.Trunc(n) {
		r.fault("config.json "+key, "%.40v is no size", v)
		return instead
	}
	return int(n)
}

// share reads a number of config.json that is a share, or an eps.
func (r *hubReader) share(key string, instead float64) float64 {
	v, ok := r.config[key]
	if !ok || v == nil {
		return instead
	}
	n, ok := v.(float64)
	if !ok || n < 0 || n >= 1 {
		r.fault("config.json "+key, "%.40v is not at least 0 and below 1", v)
		return instead
	}
	return n
}

// readSizes reads the sizes of the network, and notes every key that disdel cannot follow.
func (r *hubReader) readSizes() {
	k, s := r.family.keys, &r.sizes
	for _, key := range slices.Sorted(maps.Keys(r.family.fixed)) {
		want := r.family.fixed[key]
		if got, ok := r.config[key]; ok && got != nil && !reflect.DeepEqual(got, want) {
			r.lacks(key, "it is %.40v; disdel computes with %v", got, want)
		}
	}
	s.distilled = r.family.kind == "DistilBert"
	s.width, s.blocks, s.heads = r.number(k.width, 0), r.number(k.blocks, 0), r.number(k.heads, 0)
	s.hidden = r.number(k.hidden, 4*s.width)
	if r.family.kind == "Llama" {
		s.kvHeads, s.theta = r.number("num_key_value_heads", s.heads), r.theta()
		if size := r.number("head_dim", s.width/max(1, s.heads)); size*s.heads != s.width {
			r.lacks("head_dim", "%d heads of %d channels are not the network's %d channels", s.heads, size, s.width)
		}
	}
	s.eps = r.share(k.eps, r.family.eps)
	s.dropout = r.share(k.dropout, 0.1)
	s.headDropout = r.share(k.headDropout, s.dropout)
	word, _ := r.config[k.activation].(string)
	if s.activation = hubActivations[word]; s.activation == "" {
		r.lacks(k.activation, "disdel does not have %.40q; it has %s", word,
			strings.Join(slices.Sorted(maps.Keys(hubActivations)), ", "))
	}
	if s.blocks > 1000 || s.heads > 0 && s.width%s.heads != 0 {
		r.fault("config.json", "%d blocks of %d channels with %d heads are no network", s.blocks, s.width, s.heads)
	}
	if k.positions == "" {
		s.patch, s.side, s.channels = r.number("patch_size", 0), r.number("image_size", 0), r.number("num_channels", 3)
	} else {
		s.vocabulary, s.positions = r.number("vocab_size", 0), r.number(k.positions, 0)
		if r.opt.Positions > 0 {
			s.positions = min(s.positions, r.opt.Positions)
		}
	}
	r.readHead()
}

// theta is the base of Llama's angles. Newer files have it in rope_parameters, with the kind of scaling.
func (r *hubReader) theta() float64 {
	base := r.config["rope_theta"]
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		options, ok := r.config[key].(map[string]any)
		for _, name := range []string{"rope_type", "type"} {
			if kind := options[name]; kind != nil && kind != "default" {
				r.lacks(key, "it scales angles by the kind %.40v; disdel turns all channels by rope_theta", kind)
			}
		}
		if t, has := options["rope_theta"]; has {
			base = t
		}
		if v := r.config[key]; v != nil && !ok {
			r.fault("config.json "+key, "%.40v is no object", v)
		}
	}
	v, ok := base.(float64)
	switch {
	case base == nil || v == model.UsualTheta:
		return 0
	case !ok || !(v > 1 && v <= model.LargestTheta):
		r.fault("config.json rope_theta", "%.40v is not above 1 and at most %g", base, float64(model.LargestTheta))
	}
	return v
}

// readHead decides what the network answers: classes, or the next token.
func (r *hubReader) readHead() {
	s := &r.sizes
	classifies := r.classifies()
	llama := r.family.kind == "Llama"
	s.nextToken = (llama || r.family.kind == "GPT2") && !classifies
	if names, ok := r.config["id2label"].(map[string]any); ok {
		s.outputs = len(names)
	}
	s.outputs = cmp.Or(s.outputs, r.number("num_labels", 2))
	switch {
	case s.nextToken:
		s.outputs = s.vocabulary
		_, s.tied = r.at[hubTiedHead]
		s.tied = !s.tied || r.config["tie_word_embeddings"] != false
		if llama { // its default is false
			s.tied = r.config["tie_word_embeddings"] == true
		}
	case !classifies && r.opt.Classes > 0:
		s.outputs = r.opt.Classes
		r.boundDrawn("--classes")
	case !classifies:
		r.boundDrawn("config.json num_labels")
	case classifies && r.opt.Classes > 0 && r.opt.Classes != s.outputs:
		r.fault("--classes", "the folder has a classifier of %d classes; model.init.replaceHead replaces it", s.outputs)
	}
}

// boundDrawn refuses a classifier that would take memory for a number alone: no tensor of the folder has its size.
func (r *hubReader) boundDrawn(path string) {
	if n := r.sizes.outputs; n > mostDrawn {
		r.fault(path, "%d classes; a classifier that the folder lacks has at most %d", n, mostDrawn)
	}
}

// classifies tells whether the folder has a classifier.
func (r *hubReader) classifies() bool {
	return r.class == "ForSequenceClassification" || r.class == "ForImageClassification"
}

// finishAnswers makes probabilities of the outputs, and names the classes.
func (r *hubReader) finishAnswers(m *HubModel) {
	if m.Network.NextToken {
		return
	}
	names, _ := r.config["id2label"].(map[string]any)
	for i := range len(names) {
		if name, ok := names[fmt.Sprint(i)].(string); ok && r.classifies() {
			m.Labels = append(m.Labels, name)
		}
	}
	if len(m.Labels) != r.sizes.outputs {
		m.Labels = nil
	}
	switch {
	case r.config["problem_type"] == "multi_label_classification":
		m.Network.Layers = append(m.Network.Layers, disdel.Layer{Kind: "sigmoid", Name: "sigmoid"})
	case r.sizes.outputs > 1:
		m.Network.Layers = append(m.Network.Layers, disdel.Layer{Kind: "softmax", Name: "softmax"})
		r.notes = append(r.notes, "a softmax was added: answers are probabilities, where the hub's model gives scores")
	}
	if r.family.kind == "ViT" {
		r.notes = append(r.notes, "rows are pixels as preprocessor_config.json scales them: (pixel - image_mean) / image_std")
	}
}

// readWeights reads the network's arrays. What is missing or left over is told all at once.
func (r *hubReader) readWeights(g *model.Graph) (disdel.Weights, error) {
	params := g.Params()
	var drawn []string
	for _, p := range params {
		if !r.check(p) {
			drawn = append(drawn, p.Name)
		}
	}
	r.leftOver()
	if len(r.faults) > 0 {
		return nil, &disdel.Faults{Faults: r.faults}
	}
	if len(drawn) > 0 {
		r.notes = append(r.notes, fmt.Sprintf("the folder has no %s: they are drawn, and need training",
			strings.Join(drawn, ", ")))
	}
	var out disdel.Weights
	random := rand.New(rand.NewPCG(0, 0)) //nolint:gosec // first weights, the same each time
	for _, p := range params {
		t := disdel.Tensor{Name: p.Name, Shape: p.Shape, Data: make([]float32, p.Len())}
		if slices.Contains(drawn, p.Name) {
			for i := 0; strings.HasSuffix(p.Name, ".weight") && i < len(t.Data); i++ {
				t.Data[i] = float32(random.NormFloat64() * 0.02)
			}
		} else if err := r.fill(&t); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, r.checkTie(out)
}

// check compares the tensors of an array with its shape. It returns false for an array of a new head.
func (r *hubReader) check(p model.Param) (given bool) {
	names, turned := r.family.tensors(p.Name)
	layer, _, _ := strings.Cut(p.Name, ".")
	want := slices.Clone(p.Shape)
	if turned {
		slices.Reverse(want)
	}
	rows := rowsOf(want, len(names))
	for i, name := range names {
		want[0] = rows[i]
		t, ok := r.at[name]
		r.used[name] = true
		switch got := withoutOnes(t.Shape); {
		case !ok && slices.Contains(r.family.head, layer) && !r.classifies():
			return false
		case !ok:
			r.fault(name, "the tensor is missing; it has the shape %v", want)
		case t.DType == safetensors.U8 || t.DType == safetensors.I32 || t.DType == safetensors.I64 ||
			t.DType == safetensors.Bool:
			r.fault(name, "the tensor has the type %s, which no weights have", t.DType)
		case r.isCut(p.Name) && len(got) == 2 && got[1] == want[1] && got[0] >= want[0]: // the first positions
		case !slices.Equal(got, withoutOnes(want)):
			r.fault(name, "the tensor has the shape %v, and config.json says %v", t.Shape, want)
		}
	}
	return true
}

// isCut tells whether an array has only the first rows of its tensor.
func (r *hubReader) isCut(array string) bool {
	return r.opt.Positions > 0 && strings.HasSuffix(array, "positions.weight") && r.family.keys.positions != ""
}

func withoutOnes(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(n int) bool { return n == 1 })
}

// leftOver notes tensors that the network has no place for. Heads for other tasks are left out.
func (r *hubReader) leftOver() {
	left := 0
	for _, name := range slices.Sorted(maps.Keys(r.at)) {
		t := r.at[name]
		switch {
		case r.used[name]:
		case slices.ContainsFunc(r.family.others, func(part string) bool { return strings.Contains(name, part) }):
			r.keep(t, name)
		case !r.classifies() && !strings.HasPrefix(name, r.family.prefix):
			left++
		default:
			r.fault(name, "the network has no place for the tensor, of the shape %v", t.Shape)
		}
	}
	if left > 0 {
		r.notes = append(r.notes, fmt.Sprintf("%d tensors are of a head for another task (%s), and were left out", left,
			r.class))
	}
}

// keep reads a small tensor that only an export needs. Larger ones are masks, which each program makes itself.
func (r *hubReader) keep(t hubTensor, name string) {
	size := int64(t.DType.Size())
	for _, n := range t.Shape {
		size *= int64(n)
	}
	if name == hubTiedHead || size > mostKept {
		return
	}
	data := make([]byte, size)
	if _, err := t.file.ReadAt(data, t.from); err != nil {
		r.fault(name, "read it: %v", err)
	}
	r.kept = append(r.kept, safetensors.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Data: data})
}

// fill reads the values of an array.
func (r *hubReader) fill(t *disdel.Tensor) error {
	names, turned := r.family.tensors(t.Name)
	rows, at := rowsOf(t.Shape, len(names)), 0
	for i, name := range names {
		part := rows[i] * len(t.Data) / t.Shape[0]
		values := t.Data[at : at+part]
		at += part
		if err := r.values(r.at[name], values); err != nil {
			return err
		}
		if turned {
			copy(values, transposed(values, t.Shape[1], t.Shape[0]))
		}
	}
	if t.Name == "embeddings.positions.weight" {
		return r.addTypes(t, r.at[names[0]])
	}
	return nil
}

// addTypes adds the vector of BERT's first part to each position: rows of text have one part. An export needs both.
func (r *hubReader) addTypes(t *disdel.Tensor, positions hubTensor) error {
	types, ok := r.at[hubTypes]
	if !ok {
		return nil
	}
	if len(types.Shape) != 2 || types.Shape[0] < 1 || types.Shape[1] != t.Shape[1] {
		return hubError(fmt.Sprintf("%s has the shape %v", types.Name, types.Shape), "check config.json", nil)
	}
	first := make([]float32, t.Shape[1])
	if err := r.values(types, first); err != nil {
		return err
	}
	if isZero(first) {
		return nil
	}
	kept := safetensors.FromFloat32s(positions.Name, t.Shape, slices.Clone(t.Data))
	r.kept = append(r.kept, kept)
	addRow(t.Data, first)
	return nil
}

// isZero tells whether adding values changes nothing.
func isZero(values []float32) bool {
	return !slices.ContainsFunc(values, func(v float32) bool { return v != 0 })
}

func addRow(values, row []float32) {
	for i := range values {
		values[i] += row[i%len(row)]
	}
}

// checkTie refuses a language model whose file has another head than its embedding, though config.json ties them.
func (r *hubReader) checkTie(w disdel.Weights) error {
	head, ok := r.at[hubTiedHead]
	if !ok || !r.sizes.tied {
		return nil
	}
	values := make([]float32, len(w[0].Data))
	if !slices.Equal(withoutOnes(head.Shape), withoutOnes(w[0].Shape)) {
		return hubError(fmt.Sprintf("lm_head.weight has the shape %v", head.Shape), "check config.json", nil)
	}
	if err := r.values(head, values); err != nil {
		return err
	}
	if !slices.Equal(values, w[0].Data) {
		return hubError("lm_head.weight differs from the embedding, and config.json ties them",
			"write tie_word_embeddings: false into config.json", nil)
	}
	return nil
}

// transposed turns rows x columns values.
func transposed(values []float32, rows, columns int) []float32 {
	out := make([]float32, len(values))
	for i := range rows {
		for j := range columns {
			out[j*rows+i] = values[i*columns+j]
		}
	}
	return out
}

// values reads the first values of a tensor as float32.
func (r *hubReader) values(t hubTensor, to []float32) error {
	size := t.DType.Size()
	block := make([]byte, min(len(to), 1<<16)*size)
	for at := 0; at < len(to); {
		n := min(len(to)-at, 1<<16)
		if _, err := t.file.ReadAt(block[:n*size], t.from+int64(at*size)); err != nil {
			return &disdel.Error{Kind: disdel.Corrupt, Op: "read tensors", Msg: "tensor " + t.Name, Err: err}
		}
		safetensors.Widen(to[at:at+n], t.DType, block[:n*size])
		at += n
	}
	return nil
}

// Keys of an origin's metadata.
const (
	originMetadata = "metadata" // of the weights' file
	originNames    = "names"    // of its tensors, in order
)

// writeOrigin writes what an export of the same model needs.
func (r *hubReader) writeOrigin() ([]byte, error) {
	names, err := json.Marshal(r.order)
	if err != nil {
		return nil, err
	}
	r.origin[originNames] = string(names)
	var out bytes.Buffer
	err = safetensors.Write(&out, safetensors.File{Metadata: r.origin, Tensors: r.kept})
	return out.Bytes(), err
}
