package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/safetensors"
	"github.com/disdel/disdel/model"
)

// HubExport is a trained model that goes to a hub's folder.
type HubExport struct {
	Network   disdel.Network
	Weights   disdel.Weights
	Labels    []string // names of classes; nil: they have none
	Tokenizer []byte   // tokenizer.json; nil: the model has none
	Origin    []byte   // of the HubModel that training began with; nil: of none
	Card      string   // README.md
}

// ExportHub writes a model as a hub's folder, which must not exist or be empty: config.json, model.safetensors,
// tokenizer.json and README.md. Weights that nobody trained since ImportHub are written bit for bit, under the names
// that they came with. It returns Invalid for another folder, and for networks that are no BERT, DistilBERT, GPT-2 or
// ViT, and Corrupt for a damaged origin.
func ExportHub(folder string, m HubExport) error {
	w := &hubWriter{model: m}
	g, err := model.Build(m.Network)
	if err == nil {
		err = w.readOrigin()
	}
	if err == nil {
		err = w.makeTensors(g)
	}
	if err != nil {
		return err
	}
	config, err := w.makeConfig(g)
	if err == nil {
		err = claim(folder)
	}
	if err != nil {
		return err
	}
	files := map[string][]byte{tokenizerFile: m.Tokenizer, "README.md": []byte(m.Card), hubConfigFile: config}
	for _, name := range keptFiles[1:] {
		files[name] = []byte(w.origin.Metadata[name])
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if len(files[name]) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, name), files[name], 0o666); err != nil {
			return unwrittenHub(folder, err)
		}
	}
	metadata := map[string]string{"format": "pt"}
	if text := w.origin.Metadata[originMetadata]; text != "" {
		metadata = nil
		if err := json.Unmarshal([]byte(text), &metadata); err != nil {
			return damagedOrigin(err)
		}
	}
	f, err := os.Create(filepath.Join(folder, HubWeightsFile)) // last: a folder that has it is complete
	if err != nil {
		return unwrittenHub(folder, err)
	}
	err = safetensors.Write(f, safetensors.File{Metadata: metadata, Tensors: w.tensors})
	if err = errors.Join(err, f.Close()); err != nil {
		return unwrittenHub(folder, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

func unwrittenHub(folder string, err error) error {
	return &disdel.Error{
		Kind: disdel.Unavailable, Op: "export model", Msg: folder + " is incomplete", Err: err,
		Hint: "remove the folder, and export again",
	}
}

// hubWriter writes a hub's folder.
type hubWriter struct {
	model   HubExport
	family  *hubFamily
	kind    string // model_type
	origin  safetensors.File
	names   map[string]string // of the origin's tensors, by canonical name
	order   []string
	config  map[string]any // of the origin; nil: there is none
	tensors []safetensors.Tensor
}

func damagedOrigin(err error) error {
	return &disdel.Error{
		Kind: disdel.Corrupt, Op: "export model", Msg: "what the model's import kept for an export is damaged", Err: err,
		Hint: "import the folder again",
	}
}

func noHubFamily(msg string) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "export model", Msg: msg,
		Hint: "write safetensors or ONNX (--to), which every network has; hubs have a place for bert-*, gpt*, vit-* of " +
			"the zoo, and for models that came from a hub",
	}
}

func (w *hubWriter) readOrigin() (err error) {
	if w.model.Origin == nil {
		for kind, f := range hubFamilies {
			if f.zoo != "" && strings.HasPrefix(w.model.Network.Name, f.zoo) {
				w.kind, w.family = kind, f
				return nil
			}
		}
		return noHubFamily("no architecture of a hub is known for this network")
	}
	if w.origin, err = safetensors.Parse(w.model.Origin); err != nil {
		return damagedOrigin(err)
	}
	err = json.Unmarshal([]byte(w.origin.Metadata[hubConfigFile]), &w.config)
	if err == nil {
		err = json.Unmarshal([]byte(w.origin.Metadata[originNames]), &w.order)
	}
	w.kind, _ = w.config["model_type"].(string)
	if w.family = hubFamilies[w.kind]; err != nil || w.family == nil {
		return damagedOrigin(err)
	}
	w.names = map[string]string{}
	for _, name := range w.order {
		w.names[w.family.canonical(name)] = name
	}
	return nil
}

// makeTensors makes the hub's tensors of the network's arrays.
func (w *hubWriter) makeTensors(g *model.Graph) error {
	byName := map[string]disdel.Tensor{}
	for _, t := range w.model.Weights {
		byName[t.Name] = t
	}
	var all []safetensors.Tensor
	for _, p := range g.Params() {
		names, turned := w.family.tensors(p.Name)
		t, ok := byName[p.Name]
		if len(names) == 0 || !ok || len(t.Data) != p.Len() {
			return noHubFamily(fmt.Sprintf("%s has no place for the array %s", w.family.kind, p.Name))
		}
		if p.Name == "embeddings.positions.weight" && w.kind == "bert" {
			t.Data = w.positionsAlone(t)
		}
		all = append(all, w.split(t, names, turned)...)
	}
	for _, kept := range w.origin.Tensors {
		if name := w.family.canonical(kept.Name); name != "bert.embeddings.position_embeddings.weight" {
			kept.Name = name
			all = append(all, kept)
		}
	}
	if w.kind == "bert" && w.config == nil { // rows of one part need no vectors of parts, and the hub's program has two
		width := g.Params()[0].Shape[1]
		all = append(all, safetensors.FromFloat32s(hubTypes, []int{2, width}, make([]float32, 2*width)))
	}
	if _, ok := w.names[hubTiedHead]; ok && !slices.ContainsFunc(all, named(hubTiedHead)) {
		head := all[slices.IndexFunc(all, named(w.family.outside["tokens"][0]+".weight"))]
		head.Name = hubTiedHead
		all = append(all, head)
	}
	w.tensors = w.ordered(all)
	return nil
}

func named(name string) func(safetensors.Tensor) bool {
	return func(t safetensors.Tensor) bool { return t.Name == name }
}

// split makes the tensors of one array.
func (w *hubWriter) split(t disdel.Tensor, names []string, turned bool) (out []safetensors.Tensor) {
	shape, rows, at := slices.Clone(t.Shape), rowsOf(t.Shape, len(names)), 0
	for i, name := range names {
		shape[0] = rows[i]
		part := rows[i] * len(t.Data) / t.Shape[0]
		values := t.Data[at : at+part]
		at += part
		sides := slices.Clone(shape)
		if turned {
			values = transposed(values, shape[0], shape[1])
			slices.Reverse(sides)
		}
		if strings.HasSuffix(name, "cls_token") || w.kind == "vit" && strings.HasSuffix(name, "position_embeddings") {
			sides = append([]int{1}, sides...)
		}
		out = append(out, safetensors.FromFloat32s(name, sides, values))
	}
	return out
}

// positionsAlone takes the vector of BERT's first part away from the positions, see addTypes. Positions that nobody
// trained are those of the origin.
func (w *hubWriter) positionsAlone(t disdel.Tensor) []float32 {
	var first, before []float32
	for _, kept := range w.origin.Tensors {
		values, err := safetensors.Float32s(kept)
		switch name := w.family.canonical(kept.Name); {
		case err != nil || len(kept.Shape) != 2 || kept.Shape[1] != t.Shape[1]:
		case name == hubTypes:
			first = values[:t.Shape[1]]
		case len(values) == len(t.Data):
			before = values
		}
	}
	if first == nil || isZero(first) {
		return t.Data
	}
	if before != nil {
		sum := slices.Clone(before)
		addRow(sum, first)
		if bytes.Equal(safetensors.FromFloat32s("", nil, sum).Data, safetensors.FromFloat32s("", nil, t.Data).Data) {
			return before
		}
	}
	out := slices.Clone(t.Data)
	for i := range out {
		out[i] -= first[i%len(first)]
	}
	return out
}

// ordered gives tensors the names and the order of the origin. Without one, and with others, the order is the names'.
func (w *hubWriter) ordered(all []safetensors.Tensor) []safetensors.Tensor {
	place := map[string]int{}
	for i, name := range w.order {
		place[w.family.canonical(name)] = i
	}
	same := true
	for _, t := range all {
		_, ok := place[t.Name]
		same = same && ok
	}
	slices.SortFunc(all, func(a, b safetensors.Tensor) int {
		if same {
			return place[a.Name] - place[b.Name]
		}
		return strings.Compare(a.Name, b.Name)
	})
	for i := range all {
		if same {
			all[i].Name = w.names[all[i].Name]
		}
	}
	return all
}

// makeConfig writes config.json: that of the origin where it says the same.
func (w *hubWriter) makeConfig(g *model.Graph) ([]byte, error) {
	config, changed := maps.Clone(w.config), w.config == nil
	if changed {
		config = map[string]any{}
	}
	for key, value := range w.wanted(g) {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			return nil, err
		}
		if have, ok := config[key]; !ok || !reflect.DeepEqual(have, v) {
			config[key], changed = v, true
		}
	}
	if !changed {
		return []byte(w.origin.Metadata[hubConfigFile]), nil
	}
	text, err := json.MarshalIndent(config, "", "  ")
	return append(text, '\n'), err
}

// wanted are the keys of config.json that the network decides.
func (w *hubWriter) wanted(g *model.Graph) map[string]any {
	out, params := map[string]any{}, map[string][]int{}
	for _, p := range g.Params() {
		params[p.Name] = p.Shape
	}
	class := w.family.kind + "ForSequenceClassification"
	switch {
	case w.kind == "vit":
		class = "ViTForImageClassification"
	case w.model.Network.NextToken:
		class = map[string]string{"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM"}[w.kind]
	}
	if have, _ := w.config["architectures"].([]any); !w.model.Network.NextToken || len(have) == 0 {
		out["architectures"] = []string{class}
	}
	if !w.model.Network.NextToken {
		w.wantLabels(out)
	}
	k := w.family.keys
	if shape := params["embeddings.positions.weight"]; k.positions != "" && shape != nil {
		out[k.positions] = shape[0]
	} else if shape := params["positions.weight"]; k.positions != "" && shape != nil {
		out[k.positions] = shape[0]
	}
	if g.Vocabulary() > 0 {
		out["vocab_size"] = g.Vocabulary()
	}
	if v, ok := w.config["torch_dtype"]; ok && v != "float32" {
		out["torch_dtype"] = "float32"
	}
	if w.config == nil {
		w.describe(g, out)
	}
	return out
}

// wantLabels names the classes, if the origin has others.
func (w *hubWriter) wantLabels(out map[string]any) {
	n := w.model.Network.Classes
	names, ids := map[string]string{}, map[string]int{}
	for i := range n {
		name := fmt.Sprintf("LABEL_%d", i)
		if i < len(w.model.Labels) {
			name = w.model.Labels[i]
		}
		names[fmt.Sprint(i)], ids[name] = name, i
	}
	if have, ok := w.config["id2label"].(map[string]any); !ok && n == 2 && w.model.Labels == nil ||
		len(have) == n && w.model.Labels == nil {
		return
	}
	out["id2label"], out["label2id"] = names, ids
}

// describe are all sizes of a network that came from no hub.
func (w *hubWriter) describe(g *model.Graph, out map[string]any) {
	k, blocks := w.family.keys, 0
	for i := range g.Nodes {
		n := &g.Nodes[i]
		switch {
		case n.Op == model.OpAttention:
			blocks++
			out[k.heads], out[k.width] = n.Heads, n.Out[0]
		case n.Op == model.OpLayerNorm:
			out[k.eps] = n.Eps
		case strings.HasSuffix(n.Name, ".up"):
			out[k.hidden] = n.Units
		case n.Name == "layers.0.activation":
			out[k.activation] = map[model.Op]string{model.OpGELU: "gelu", model.OpGELUTanh: "gelu_new"}[n.Op]
		case n.Op == model.OpConv:
			out["patch_size"], out["image_size"], out["num_channels"] = n.Kernel.H, g.Input()[1], g.Input()[0]
		}
	}
	out["model_type"], out[k.blocks], out["torch_dtype"] = w.kind, blocks, "float32"
	maps.Copy(out, w.family.fixed)
}

// AdapterExport is a trained model and the weights that the training of its adapters began with.
type AdapterExport struct {
	Adapter       disdel.LoRA    // Layers and Whole name its layers one by one
	Base, Trained disdel.Weights // the adapters are merged into Trained
	BaseName      string         // NAME:vN
}

// The files of an adapter's folder, as PEFT has them.
const (
	AdapterWeightsFile = "adapter_model.safetensors"
	adapterConfigFile  = "adapter_config.json"
	peftPrefix         = "base_model.model."
)

// ExportAdapter writes what a model's adapters learned as a folder in the layout of PEFT, which must not exist or be
// empty. A and B are a factorisation of the difference between the trained and the base weight of each layer: their
// product is what was trained, A and B themselves differ from those of the training by a change of basis. Layers that
// were trained whole are written whole. It returns Invalid for weights that are not of one network.
func ExportAdapter(folder string, m AdapterExport) error {
	base := map[string]disdel.Tensor{}
	for _, t := range m.Base {
		base[t.Name] = t
	}
	adapted := map[string]string{} // layers by the name of their weight
	for _, layer := range m.Adapter.Names() {
		adapted[layer+".weight"] = layer
	}
	file := safetensors.File{Metadata: map[string]string{"format": "pt", "base": m.BaseName}}
	add := func(name string, shape []int, values []float32) {
		file.Tensors = append(file.Tensors, safetensors.FromFloat32s(peftPrefix+name, shape, values))
	}
	for _, t := range m.Trained {
		layer, ok := adapted[t.Name]
		switch before := base[t.Name]; {
		case ok && slices.Equal(before.Shape, t.Shape) && len(t.Shape) == 2:
			up, down := lowRank(t, before, m.Adapter)
			_, a, b := model.AdapterArrays(layer)
			add(a, []int{m.Adapter.Rank, t.Shape[1]}, down)
			add(b, []int{t.Shape[0], m.Adapter.Rank}, up)
			delete(adapted, t.Name)
		case slices.ContainsFunc(m.Adapter.WholeNames(), func(l string) bool { return strings.HasPrefix(t.Name, l+".") }):
			add(t.Name, t.Shape, t.Data)
		}
	}
	if len(adapted) > 0 {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export adapter",
			Msg:  fmt.Sprintf("%s has no weight like %s", m.BaseName, slices.Sorted(maps.Keys(adapted))[0]),
			Hint: "write the merged weights: --to safetensors",
		}
	}
	config, err := json.MarshalIndent(map[string]any{
		"peft_type": "LORA", "r": m.Adapter.Rank, "lora_alpha": m.Adapter.Alpha, "target_modules": m.Adapter.Names(),
		"modules_to_save": m.Adapter.WholeNames(), "base_model_name_or_path": m.BaseName, "lora_dropout": 0, "bias": "none",
		"fan_in_fan_out": false, "inference_mode": true, "task_type": nil,
	}, "", "  ")
	if err == nil {
		err = claim(folder)
	}
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(folder, AdapterWeightsFile))
	if err == nil {
		err = errors.Join(safetensors.Write(f, file), f.Close())
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, adapterConfigFile), append(config, '\n'), 0o666)
	}
	if err != nil {
		return unwrittenHub(folder, err)
	}
	return nil
}

// lowRank returns B, [outputs rank], and A, [rank inputs], whose product times the adapter's factor is the difference
// of two weights. It finds the range of the difference by iterating on a random subspace (Halko 2011).
func lowRank(trained, base disdel.Tensor, l disdel.LoRA) (up, down []float32) {
	n, k, r := trained.Shape[0], trained.Shape[1], l.Rank
	d := make([]float64, n*k)
	for i := range d {
		d[i] = float64(trained.Data[i]) - float64(base.Data[i])
	}
	rng := rand.New(rand.NewPCG(1, uint64(r)))
	in, out := make([]float64, r*k), make([]float64, r*n) // rows are the vectors of a basis
	for i := range in {
		in[i] = rng.NormFloat64()
	}
	for range 3 {
		multiply(out, in, d, k, false)
		orthonormal(out, n)
		multiply(in, out, d, k, true)
		down = make([]float32, len(in))
		for i, v := range in {
			down[i] = float32(v / l.Factor())
		}
		orthonormal(in, k)
	}
	up = make([]float32, n*r)
	for j := range r {
		for i := range n {
			up[i*r+j] = float32(out[j*n+i])
		}
	}
	return up, down
}

// multiply sets each row of to to the product of the matrix d, of so many columns, and a row of from. back: of its
// transpose.
func multiply(to, from, d []float64, columns int, back bool) {
	rows := len(d) / columns
	clear(to)
	for i := range rows {
		line := d[i*columns:][:columns]
		if back {
			for j := range len(from) / rows {
				v, row := from[j*rows+i], to[j*columns:][:columns]
				for c, x := range line {
					row[c] += v * x
				}
			}
			continue
		}
		for j := range len(from) / columns {
			row := from[j*columns:][:columns]
			for c, x := range line {
				to[j*rows+i] += row[c] * x
			}
		}
	}
}

// orthonormal makes rows of n values orthonormal (Gram-Schmidt, twice). A row that the others span becomes zero.
func orthonormal(rows []float64, n int) {
	for at := 0; at < len(rows); at += n {
		row := rows[at : at+n]
		first := length(row)
		for range 2 {
			for before := 0; before < at; before += n {
				dot := 0.0
				for i, v := range rows[before : before+n] {
					dot += v * row[i]
				}
				for i, v := range rows[before : before+n] {
					row[i] -= dot * v
				}
			}
		}
		norm := length(row)
		for i := range row {
			if row[i] /= norm; !(norm > 1e-12*first) {
				row[i] = 0
			}
		}
	}
}

func length(row []float64) float64 {
	sum := 0.0
	for _, v := range row {
		sum += v * v
	}
	return math.Sqrt(sum)
}
