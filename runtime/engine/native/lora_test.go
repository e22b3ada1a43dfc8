package native

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// adapted is a network with adapters, and what testdata/lora.py prints for it.
type adapted struct {
	graph  func(t *testing.T) *model.Graph
	init   disdel.Init
	lora   disdel.LoRA
	x      []float32
	losses []float64
	values map[string][]float64 // the first values of arrays after four steps
}

func adaptedNetworks() map[string]adapted {
	x := wave(9, 5*72)
	for i := range x {
		x[i] *= 3
	}
	tokens := make([]float32, 35)
	for i := range tokens {
		tokens[i] = float32(1 + 3*i%8)
	}
	return map[string]adapted{
		"convolution": {
			func(t *testing.T) *model.Graph { return smallCNN(t) },
			disdel.Init{Except: "a, fc"},
			disdel.LoRA{Rank: 4, Alpha: 4, Layers: "b"},
			x,
			[]float64{1.2288914787, 1.1777211872, 1.1321227540, 1.0785223025},
			map[string][]float64{
				"a.weight":        {-0.0034391398, 0.3358770448, -0.0790748425, -0.2879592153},
				"b.lora_A.weight": {0.2169787916, 0.2278761571, -0.2242928795, -0.1152368232},
				"b.lora_B.weight": {0.2596048897, -0.1174134551, -0.3158193664, 0.1365315152},
				"fc.weight":       {0.1636381385, -0.2469672132, -0.0097437146, 0.3395464875},
			},
		},
		"transformer": {
			func(t *testing.T) *model.Graph { return attending(t, 7) },
			disdel.Init{Except: "fc"},
			disdel.LoRA{Rank: 2, Alpha: 3, Layers: "*"},
			tokens,
			[]float64{1.1343985865, 1.1047724427, 1.0834690045, 1.0693852072},
			map[string][]float64{
				"t.attention.qkv.lora_A.weight": {-0.2553831236, 0.0869703556, 0.2206441029, -0.1531836535},
				"t.down.lora_B.weight":          {0.3124495280, 0.1237801651, -0.3360747025, -0.0494396789},
				"fc.weight":                     {0.2149497350, -0.2338216899, -0.1638704055, 0.2837357203},
			},
		},
	}
}

// Adapters and drawn layers give the steps of PyTorch 1.13, with all other layers frozen, and nothing else moves.
func TestAdaptersAgreeWithPyTorch(t *testing.T) {
	for name, c := range adaptedNetworks() {
		g := c.graph(t)
		if err := g.Adapt(c.init, c.lora); err != nil {
			t.Fatal(err)
		}
		for _, how := range []engine.Spec{
			{}, {Threads: 2}, {ClipNorm: 1e6}, {StepMemory: disdel.StepMemory{Recompute: "auto"}},
		} {
			how.BatchSize, how.Training = 5, true
			how.Optimizer = disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}}
			e := newEngine(t, g, how)
			start := waveWeights(g)
			if err := engine.SetWeights(e, start); err != nil {
				t.Fatal(err)
			}
			for k, want := range c.losses {
				loss, err := enginetest.Train(e, c.x, []int32{0, 1, 2, 1, 0})
				if err != nil || math.Abs(loss-want) > 1e-5 {
					t.Errorf("%s: step %d: loss %v, PyTorch %v, %v", name, k, loss, want, err)
				}
			}
			for i, v := range engine.Weights(e) {
				trains := strings.Contains(v.Name, ".lora_") || c.init.Excepts(v.Name)
				if moved := !slices.Equal(v.Data, start[i].Data); moved != trains {
					t.Errorf("%s: %s moved: %v", name, v.Name, moved)
				}
				for k, want := range c.values[v.Name] {
					if math.Abs(float64(v.Data[k])-want) > 1e-5 {
						t.Errorf("%s: value %d of %s is %v, PyTorch's %v", name, k, v.Name, v.Data[k], want)
					}
				}
			}
		}
	}
}

// Frozen layers pass gradients to the layers below them: the first step gives those the same bits as without freezing.
func TestGradientsPassFrozenLayers(t *testing.T) {
	for name, f := range networks() {
		plain, frozen := build(t, name, f), build(t, name, f)
		if slices.ContainsFunc(plain.Nodes, func(n model.Node) bool { return n.Op == model.OpBatchNorm }) {
			continue // frozen, it has other outputs
		}
		var names []string
		for _, p := range plain.Params() {
			if layer := plain.Nodes[p.Node].Name; !slices.Contains(names, layer) {
				names = append(names, layer)
			}
		}
		if len(names) < 2 {
			continue
		}
		if err := frozen.Freeze(disdel.Init{Freeze: strings.Join(names[1:], ", ")}); err != nil {
			t.Fatal(name, err)
		}
		var after [2]disdel.Weights
		x, y := batch(plain, 7, 3)
		for i, g := range []*model.Graph{plain, frozen} {
			e := initialized(t, g, engine.Spec{BatchSize: 7, Training: true, Optimizer: sgd1})
			if _, err := enginetest.Train(e, x, y); err != nil {
				t.Fatal(name, err)
			}
			after[i] = engine.Weights(e)
		}
		for i, v := range after[0] {
			if strings.HasPrefix(v.Name, names[0]+".") && !slices.Equal(after[1][i].Data, v.Data) {
				t.Errorf("%s: %s is another", name, v.Name)
			}
		}
	}
}

// A is drawn as PEFT draws it, between the roots of 1/in, and B is zero: training begins with the outputs of the base.
func TestAdaptersBeginWithTheBase(t *testing.T) {
	g := attending(t, 7)
	if err := g.Adapt(disdel.Init{Except: "fc"}, disdel.LoRA{Rank: 4, Alpha: 16, Layers: "t"}); err != nil {
		t.Fatal(err)
	}
	base, e := engineOf(t, attending(t, 7), engine.Spec{BatchSize: 4}), engineOf(t, g, engine.Spec{BatchSize: 4})
	if err := e.Init(disdel.Init{Seed: 3}); err != nil {
		t.Fatal(err)
	}
	var given disdel.Weights
	for _, v := range engine.Weights(e) {
		least, most := slices.Min(v.Data), slices.Max(v.Data)
		bound := float32(1 / math.Sqrt(float64(v.Shape[len(v.Shape)-1])))
		switch {
		case strings.HasSuffix(v.Name, ".lora_B.weight"):
			if least != 0 || most != 0 {
				t.Errorf("%s is from %v to %v", v.Name, least, most)
			}
		case strings.HasSuffix(v.Name, ".lora_A.weight"):
			if least < -bound || most > bound || most-least < bound {
				t.Errorf("%s is from %v to %v, and the bound is %v", v.Name, least, most, bound)
			}
		default:
			given = append(given, v)
		}
	}
	if err := engine.SetWeights(base, given); err != nil {
		t.Fatal(err)
	}
	x, _ := batch(g, 4, 1)
	for i := range x {
		x[i] = float32(i % 9)
	}
	want, err1 := enginetest.Predict(base, x, 4)
	got, err2 := enginetest.Predict(e, x, 4)
	if err1 != nil || err2 != nil || !slices.Equal(want, got) {
		t.Error(want, got, err1, err2)
	}
}
