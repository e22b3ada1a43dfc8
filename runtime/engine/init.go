package native

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// InitWeights draws the weights a training starts from: uniform by Glorot's or He's bound, zero biases, batch norms at
// identity. The same graph and seed give the same bits on every machine. Sources: Glorot and Bengio 2010, eq. 16; He et
// al. 2015, eq. 10 as a uniform distribution of the same variance.
func InitWeights(g *model.Graph, init disdel.Init) disdel.Weights {
	rng := newInitRNG(init)
	var out disdel.Weights
	for _, p := range g.Params() {
		t := disdel.Tensor{Name: p.Name, Shape: p.Shape, Data: make([]float32, p.Len())}
		draw := initializer(p, init, rng)
		if v, ok := g.Fill(p); ok {
			draw = func() float32 { return v }
		}
		for i := range t.Data {
			t.Data[i] = draw()
		}
		out = append(out, t)
	}
	return out
}

func newInitRNG(init disdel.Init) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(init.Seed), 0xd15de1))
}

// initializer returns what draws the next value of an array.
func initializer(p model.Param, init disdel.Init, rng *rand.Rand) func() float32 {
	switch {
	case len(p.Shape) > 1:
		bound := initBound(p.Shape, init.Scheme)
		return func() float32 { return float32((2*rng.Float64() - 1) * bound) }
	case strings.HasSuffix(p.Name, ".running_var"), strings.HasSuffix(p.Name, ".weight"):
		return func() float32 { return 1 }
	default:
		return func() float32 { return 0 }
	}
}

// Init sets the weights to InitWeights' values without a second copy of them in memory.
func (e *Engine) Init(init disdel.Init) {
	rng := newInitRNG(init)
	for i := range e.params {
		p := &e.params[i]
		clear(p.value)
		draw := initializer(p.Param, init, rng)
		p.convert(func(_, here int) { p.value[here] = draw() })
	}
}

// initBound is the bound of the uniform distribution for [out in kh kw] or [out in].
func initBound(shape []int, scheme string) float64 {
	window := model.Shape(shape[2:]).Len()
	in, out := float64(shape[1]*window), float64(shape[0]*window)
	if scheme == "he" {
		return math.Sqrt(6 / in)
	}
	return math.Sqrt(6 / (in + out))
}
