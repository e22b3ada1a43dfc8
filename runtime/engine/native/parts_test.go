package native

import (
	"errors"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// wideNetworks have dense layers whose gradients are computed in parts where moments are in a file.
func wideNetworks(t *testing.T) map[string]*model.Graph {
	t.Helper()
	return map[string]*model.Graph{
		"images": build(t, "images", func(b *model.Builder) {
			x := b.Flatten("flat", b.Conv("conv", 0, 6, model.Square(3, 1, 1), 1, true))
			x = b.Same("relu", b.Dense("wide", x, 4507), model.OpReLU)
			b.Same("softmax", b.Dense("out", b.Dense("narrow", x, 299), 5), model.OpSoftmax)
		}),
		"tokens": build(t, "tokens", func(b *model.Builder) {
			x := b.Dense("wide", b.Embedding("embedding", 0, 20, 520, false), 2090)
			b.Same("softmax", b.Dense("out", b.TakePosition("take", x, model.TakeMean), 5), model.OpSoftmax)
		}),
	}
}

func hasParts(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Params, func(q plan.Param) bool { return q.Part > 0 })
}

// Weights of large dense layers that change part by part come to the bits of those that change at once, on any number
// of threads, as do engines that take the state over piece by piece. A step needs less memory for gradients. Steps that
// need all gradients at once have them.
func TestWeightsThatChangeInPartsKeepTheBits(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for name, g := range wideNetworks(t) {
		for kind, o := range map[string]disdel.Optimizer{
			"adam":     {AdamW: &disdel.Adam{LearningRate: 0.01, WeightDecay: 0.01}},
			"momentum": {SGD: &disdel.SGD{LearningRate: 0.01, Momentum: 0.9, WeightDecay: 0.01}},
		} {
			if testing.Short() && kind != "adam" {
				continue
			}
			s := shortAdam
			s.Optimizer, s.StateFormat = o, ""
			whole := initialized(t, g, s)
			s.StateFormat, s.Threads = disdel.StatePaged, 3
			parts, later := initialized(t, g, s), newEngine(t, g, s)
			if !hasParts(parts.plan) {
				t.Fatal("the network has no weight that changes in parts")
			}
			steps(t, whole, g, 0, 2)
			steps(t, parts, g, 0, 2)
			sameBits(t, name+", "+kind, engine.Copies(whole.State()), engine.Copies(parts.State()))
			to := later.State()
			for k, a := range parts.State() {
				for at := 0; at < a.Len(); at += 77777 {
					part := make([]float32, min(77777, a.Len()-at))
					if err := errors.Join(a.ReadAt(part, at), to[k].WriteAt(part, at)); err != nil {
						t.Fatal(err)
					}
				}
			}
			steps(t, whole, g, 2, 3)
			steps(t, later, g, 2, 3)
			sameBits(t, name+", "+kind+", resumed", engine.Copies(whole.State()), engine.Copies(later.State()))
			before, after := whole.Footprint().Sum(footprint.Gradients), later.Footprint().Sum(footprint.Gradients)
			if after > before*9/10 {
				t.Errorf("%s: gradients take %v, and %v at once", name, after, before)
			}
		}
	}
	g := wideNetworks(t)["images"]
	for name, change := range map[string]func(*engine.Spec){
		"micro-batches": func(s *engine.Spec) { s.MicroBatch = 16 },
		"clipping":      func(s *engine.Spec) { s.ClipNorm = 1 },
		"LAMB":          func(s *engine.Spec) { s.Optimizer = disdel.Optimizer{LAMB: &disdel.LAMB{LearningRate: 0.01}} },
		"bf16":          func(s *engine.Spec) { s.Precision = disdel.PrecisionBF16 },
		"in memory":     func(s *engine.Spec) { s.StateFormat = "" },
	} {
		s := shortAdam
		s.Graph, s.StateFormat = g, disdel.StatePaged
		change(&s)
		if p, err := PlanOf(s); err != nil || hasParts(p) {
			t.Errorf("%s: weights change in parts; %v", name, err)
		}
	}
}
