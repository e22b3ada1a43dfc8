package export_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset/text"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/safetensors"
	"github.com/disdel/disdel/model"
)

// hubFolder copies a folder of testdata/hub, which make.py wrote with transformers 4.30 (Llama: 4.33) and PyTorch 1.13.
func hubFolder(t testing.TB, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "hub", name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func readHub(t testing.TB, dir string, opt export.HubOptions) (export.HubModel, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return export.ImportHub(root, opt)
}

func mustReadHub(t testing.TB, dir string, opt export.HubOptions) (export.HubModel, *model.Graph) {
	t.Helper()
	m, err := readHub(t, dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	g, err := model.Build(m.Network)
	if err != nil {
		t.Fatal(err)
	}
	return m, g
}

// writeHub exports a model to a new folder, and returns it with its files.
func writeHub(t testing.TB, m export.HubExport) (dir string, files map[string][]byte) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "model")
	if err := export.ExportHub(dir, m); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string][]byte{}
	for _, f := range list {
		if files[f.Name()], err = os.ReadFile(filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return dir, files
}

// A hub's models answer what transformers and PyTorch do, to 1e-5: with padding, from shards, from a body alone.
func TestHubFoldersAnswerAsPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/hub/rows.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]struct{ Rows, Answers []float32 }
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for name, c := range want {
		m, g := mustReadHub(t, hubFolder(t, name), export.HubOptions{})
		got := answers(t, g, m.Weights, 3, c.Rows)
		if m.Network.NextToken { // the engine gives the probabilities after the last token, PyTorch scores everywhere
			c.Answers = lastProbabilities(c.Answers, 3, g.Vocabulary())
		}
		t.Run(name, func(t *testing.T) { wantClose(t, name, got, c.Answers) })
	}
}

func lastProbabilities(scores []float32, rows, tokens int) (out []float32) {
	for r := range rows {
		row := scores[:(r+1)*len(scores)/rows]
		sum := 0.0
		for _, v := range row[len(row)-tokens:] {
			sum += math.Exp(float64(v))
		}
		for _, v := range row[len(row)-tokens:] {
			out = append(out, float32(math.Exp(float64(v))/sum))
		}
	}
	return out
}

// A model that nobody trained leaves with the bytes that it came with.
func TestHubFoldersComeBackBitForBit(t *testing.T) {
	for _, name := range []string{
		"bert", "gpt2", "gpt2-body", "gpt2-classes", "vit", "distilbert", "llama", "llama-tied", "llama-classes",
	} {
		dir := hubFolder(t, name)
		m, _ := mustReadHub(t, dir, export.HubOptions{})
		_, got := writeHub(t, export.HubExport{
			Network: m.Network, Weights: m.Weights, Labels: m.Labels, Origin: m.Origin, Card: "a card",
		})
		if string(got["README.md"]) != "a card" {
			t.Errorf("%s: the card is %q", name, got["README.md"])
		}
		files := []string{"config.json", "model.safetensors"}
		if name == "distilbert" { // of shards one file is made: the tensors are compared
			files = files[:1]
			if !bytes.Equal(got["model.safetensors"], wholeFile(t, dir)) {
				t.Errorf("%s: the tensors differ", name)
			}
		}
		for _, file := range files {
			want, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got[file], want) {
				t.Errorf("%s: %s differs:\n%.600q\n%.600q", name, file, got[file], want)
			}
		}
	}
}

// wholeFile writes the tensors of shards into one file.
func wholeFile(t testing.TB, dir string) []byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	if err != nil || len(names) < 2 {
		t.Fatal(names, err)
	}
	all := safetensors.File{Metadata: map[string]string{"format": "pt"}}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := safetensors.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		all.Tensors = append(all.Tensors, f.Tensors...)
	}
	var out bytes.Buffer
	if err := safetensors.Write(&out, all); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// eachOnHub calls do with networks of the zoo, drawn weights, and the folder that both were written to.
func eachOnHub(t *testing.T, do func(n disdel.Network, g *model.Graph, w disdel.Weights, dir string)) {
	t.Helper()
	for _, n := range []disdel.Network{
		{Name: "bert-tiny", Input: []int{1, 1, 16}, Classes: 3},
		{Name: "gpt-tiny", Input: []int{1, 1, 16}, Classes: 90, NextToken: true},
		{Name: "gpt-tiny", Input: []int{1, 1, 16}, Classes: 4},
		{Name: "vit-tiny-cifar", Input: []int{3, 32, 32}, Classes: 10},
	} {
		g, err := model.Build(n)
		if err != nil {
			t.Fatal(err)
		}
		w := drawnWeights(g)
		dir, _ := writeHub(t, export.HubExport{Network: n, Weights: w})
		do(n, g, w, dir)
	}
}

// Networks of the zoo leave as a hub has them, and come back with the same bits.
func TestZooNetworksGoToAHubAndBack(t *testing.T) {
	eachOnHub(t, func(n disdel.Network, g *model.Graph, w disdel.Weights, dir string) {
		m, _ := mustReadHub(t, dir, export.HubOptions{})
		for i := range w {
			if got := m.Weights[i]; got.Name != w[i].Name || !slices.Equal(got.Data, w[i].Data) {
				t.Errorf("%s: %s differs from %s", n.Name, got.Name, w[i].Name)
			}
		}
	})
}

// Positions that were trained leave without the vector of BERT's first part, which the hub's program adds.
func TestTrainedPositionsLeaveAlone(t *testing.T) {
	m, _ := mustReadHub(t, hubFolder(t, "bert"), export.HubOptions{})
	for _, w := range m.Weights {
		w.Data[0]++
	}
	dir, _ := writeHub(t, export.HubExport{Network: m.Network, Weights: m.Weights, Origin: m.Origin})
	again, _ := mustReadHub(t, dir, export.HubOptions{})
	for i, w := range again.Weights {
		wantClose(t, w.Name, w.Data, m.Weights[i].Data)
	}
}

// A folder without a classifier gets one, of as many classes as are asked for; a row may have fewer tokens.
func TestBodiesGetAClassifier(t *testing.T) {
	m, g := mustReadHub(t, hubFolder(t, "bert-masked"), export.HubOptions{Classes: 7, Positions: 5})
	if g.Output().Len() != 7 || g.Input().Len() != 5 ||
		!strings.Contains(strings.Join(m.Notes, " "), "classifier.weight") {
		t.Errorf("%d classes of %v: %v", g.Output().Len(), g.Input(), m.Notes)
	}
	_, files := writeHub(t, export.HubExport{Network: m.Network, Weights: m.Weights, Origin: m.Origin})
	for _, want := range []string{`"BertForSequenceClassification"`, `"max_position_embeddings": 5`, `"LABEL_6"`} {
		if !bytes.Contains(files["config.json"], []byte(want)) {
			t.Errorf("config.json has no %s:\n%s", want, files["config.json"])
		}
	}
}

// BERT's vocab.txt becomes a tokenizer.json.
func TestHubVocabulariesBecomeTokenizers(t *testing.T) {
	m, _ := mustReadHub(t, hubFolder(t, "bert"), export.HubOptions{})
	tok, err := text.Read(bytes.NewReader(m.Tokenizer))
	if err != nil {
		t.Fatal(err)
	}
	got := tok.Encoder().Append(nil, "The film was badly .", true)
	if !slices.Equal(got, []int32{2, 5, 7, 10, 9, 12, 13, 3}) {
		t.Errorf("tokens %v", got)
	}
	dir := hubFolder(t, "gpt2")
	bpe, err := text.TrainBPE(slices.Values([]string{"low lower lowest low low"}), 260)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Model struct {
			Vocab  map[string]int
			Merges []json.RawMessage
		}
	}
	if err := json.Unmarshal(bpe.JSON(), &file); err != nil {
		t.Fatal(err)
	}
	vocabulary, _ := json.Marshal(file.Model.Vocab)
	var merges strings.Builder
	merges.WriteString("#version: 0.2\n")
	for _, m := range file.Model.Merges {
		var pair [2]string
		if json.Unmarshal(m, &pair) != nil {
			var one string
			json.Unmarshal(m, &one)
			merges.WriteString(one + "\n")
			continue
		}
		merges.WriteString(pair[0] + " " + pair[1] + "\n")
	}
	os.WriteFile(filepath.Join(dir, "vocab.json"), vocabulary, 0o600)
	os.WriteFile(filepath.Join(dir, "merges.txt"), []byte(merges.String()), 0o600)
	m, _ = mustReadHub(t, dir, export.HubOptions{})
	if tok, err = text.Read(bytes.NewReader(m.Tokenizer)); err != nil {
		t.Fatal(err)
	}
	a, b := tok.Encoder().Append(nil, "lowest", false), bpe.Encoder().Append(nil, "lowest", false)
	if !slices.Equal(a, b) {
		t.Errorf("tokens %v, not %v", a, b)
	}
}

// Everything that is unknown is told at once.
func TestHubFoldersTellAllThatIsUnknown(t *testing.T) {
	dir := hubFolder(t, "bert")
	change(t, dir, func(config map[string]any) {
		config["hidden_act"], config["position_embedding_type"], config["is_decoder"] = "snake", "relative_key", true
	})
	_, err := readHub(t, dir, export.HubOptions{})
	var faults *disdel.Faults
	if !errors.As(err, &faults) || len(faults.Faults) != 3 {
		t.Errorf("%v, not 3 faults", err)
	}
	dir = hubFolder(t, "bert")
	change(t, dir, func(config map[string]any) { config["num_hidden_layers"], config["intermediate_size"] = 1, 21 })
	_, err = readHub(t, dir, export.HubOptions{})
	if !errors.As(err, &faults) || len(faults.Faults) != 3+16 { // up's weight and bias and down's weight; a block
		t.Errorf("%v, not 19 faults", err)
	}
	if _, err := readHub(t, hubFolder(t, "bert"), export.HubOptions{Classes: 4}); !errors.As(err, &faults) {
		t.Errorf("%v of other classes than the folder's", err)
	}
	dir = hubFolder(t, "bert")
	os.Rename(filepath.Join(dir, "model.safetensors"), filepath.Join(dir, "pytorch_model.bin"))
	if _, err := readHub(t, dir, export.HubOptions{}); !errors.Is(err, disdel.Invalid) ||
		!strings.Contains(err.Error(), "runs the code in it") {
		t.Errorf("a pickle: %v", err)
	}
	change(t, dir, func(config map[string]any) { config["model_type"] = "t5" })
	_, err = readHub(t, dir, export.HubOptions{})
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "t5") {
		t.Errorf("another architecture: %v", err)
	}
}

// Networks of Llama's kind whose positions or heads disdel computes in another way are refused.
func TestOtherLlamasAreRefused(t *testing.T) {
	for want, values := range map[string]map[string]any{
		"rope_theta":              {"rope_theta": 1},
		"rope_scaling":            {"rope_scaling": map[string]any{"type": "linear", "factor": 2}},
		"rope_parameters":         {"rope_parameters": map[string]any{"rope_type": "llama3", "rope_theta": 500000}},
		"attention_bias":          {"attention_bias": true},
		"head_dim":                {"head_dim": 6},
		"self_attn.k_proj.weight": {"num_key_value_heads": 2},
	} {
		dir := hubFolder(t, "llama")
		change(t, dir, func(config map[string]any) { maps.Copy(config, values) })
		_, err := readHub(t, dir, export.HubOptions{})
		if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want a fault of %s", values, err, want)
		}
	}
}

// The base of Llama's angles is read from files of all versions of transformers.
func TestTheBaseOfAnglesIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		config map[string]any
		want   float64
	}{
		"none":   {map[string]any{"rope_theta": nil}, 0},
		"usual":  {map[string]any{"rope_theta": 10000, "rope_scaling": nil}, 0},
		"larger": {map[string]any{"rope_theta": 500000}, 500000},
		"newer":  {map[string]any{"rope_parameters": map[string]any{"rope_type": "default", "rope_theta": 1e6}}, 1e6},
	} {
		dir := hubFolder(t, "llama")
		change(t, dir, func(config map[string]any) { maps.Copy(config, c.config) })
		m, g := mustReadHub(t, dir, export.HubOptions{})
		for i := range g.Nodes {
			if n := &g.Nodes[i]; n.Op == model.OpAttention && n.Theta != cmp.Or(c.want, model.UsualTheta) {
				t.Errorf("%s: %s has the base %g, want %g", name, n.Name, n.Theta, c.want)
			}
		}
		if got := m.Network.Layers[3].Theta; got != c.want {
			t.Errorf("%s: the layer has %g, want %g", name, got, c.want)
		}
	}
}

func change(t testing.TB, dir string, f func(config map[string]any)) {
	t.Helper()
	name := filepath.Join(dir, "config.json")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	f(config)
	if data, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Hostile folders are errors, and cost no memory for what they only claim: each size of config.json as large as can be,
// shards outside of the folder, and headers that lie.
func TestHostileHubFolders(t *testing.T) {
	for _, name := range []string{"bert", "gpt2", "vit", "llama"} {
		var config map[string]any
		change(t, hubFolder(t, name), func(c map[string]any) { config = maps.Clone(c) })
		for key, v := range config {
			if _, ok := v.(float64); !ok || strings.Contains(key, "token_id") {
				continue
			}
			for _, hostile := range []any{1 << 23, -1, 0.5, "x", 1e300, []int{1}} {
				dir := hubFolder(t, name)
				change(t, dir, func(c map[string]any) { c[key] = hostile })
				readHub(t, dir, export.HubOptions{}) // it ends
			}
		}
	}
	dir := hubFolder(t, "bert-masked") // has no classifier
	change(t, dir, func(c map[string]any) { delete(c, "id2label"); c["num_labels"] = 1 << 24 })
	var faults *disdel.Faults
	if _, err := readHub(t, dir, export.HubOptions{}); !errors.As(err, &faults) {
		t.Errorf("2^24 classes of a new classifier: %v", err)
	}
	if _, err := readHub(t, dir, export.HubOptions{Classes: 1 << 24}); !errors.As(err, &faults) {
		t.Errorf("2^24 classes that were asked for: %v", err)
	}
	dir = hubFolder(t, "distilbert")
	index := filepath.Join(dir, "model.safetensors.index.json")
	for _, text := range []string{
		`{"weight_map":{"a":"../bert/model.safetensors"}}`, `{"weight_map":{"a":"/etc/passwd"}}`, `[`,
	} {
		os.WriteFile(index, []byte(text), 0o600)
		if _, err := readHub(t, dir, export.HubOptions{}); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%s: %v", text, err)
		}
	}
	dir = hubFolder(t, "bert")
	header := `{"classifier.bias":{"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4000000000000]}}`
	data := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	os.WriteFile(filepath.Join(dir, "model.safetensors"), append(data, header...), 0o600)
	if _, err := readHub(t, dir, export.HubOptions{}); disdel.KindOf(err) != disdel.Corrupt {
		t.Errorf("a header that lies: %v", err)
	}
}

// transformers loads what is exported, misses nothing, and answers the same. DISDEL_TEST_TRANSFORMERS names a Python
// that has it.
func TestTransformersLoadsWhatIsExported(t *testing.T) {
	python := os.Getenv("DISDEL_TEST_TRANSFORMERS")
	if python == "" {
		t.Skip("DISDEL_TEST_TRANSFORMERS names no Python with transformers")
	}
	eachOnHub(t, func(n disdel.Network, g *model.Graph, w disdel.Weights, dir string) {
		x, shape := drawnRows(2*g.Input().Len()), "2x3x32x32"
		if g.HasTokens() {
			shape = "2x16"
			for i := range x {
				x[i] = float32(1 + int(1e6*math.Abs(float64(x[i])))%80)
			}
		}
		rows, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(python, "testdata/hub/answers.py", dir, shape)
		cmd.Stdin, cmd.Stderr = bytes.NewReader(rows), os.Stderr
		text, err := cmd.Output()
		var want []float32
		if err == nil {
			err = json.Unmarshal(text[bytes.IndexByte(text, '['):], &want)
		}
		if err != nil {
			t.Fatal(n.Name, err)
		}
		wantClose(t, n.Name, answers(t, g, w, 2, x), want)
	})
}
