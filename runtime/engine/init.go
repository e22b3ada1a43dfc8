package engine

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// InitWeights draws the weights that training starts from: uniform by Glorot's or He's bound, zero biases, batch norms
// at identity. The same graph and seed give the same bits on every machine. Sources: Glorot and Bengio 2010, eq. 16; He
// et al. 2015, eq. 10 as a uniform distribution of the same variance.
func InitWeights(g *model.Graph, init disdel.Init) disdel.Weights {
	draws := NewDraws(g, init)
	var out disdel.Weights
	for _, p := range g.Params() {
		t := disdel.Tensor{Name: p.Name, Shape: p.Shape, Data: make([]float32, p.Len())}
		draw := draws.Of(p)
		for i := range t.Data {
			t.Data[i] = draw()
		}
		out = append(out, t)
	}
	return out
}

// Draws yields the values of InitWeights one by one, for engines without room for a second copy.
type Draws struct {
	g      *model.Graph
	scheme string
	rng    *rand.Rand
}

// NewDraws starts at the first value of the graph's first array.
func NewDraws(g *model.Graph, init disdel.Init) *Draws {
	return &Draws{g: g, scheme: init.Scheme, rng: rand.New(rand.NewPCG(uint64(init.Seed), 0xd15de1))}
}

// Of returns a function that draws the values of an array. Arrays come in the order of the graph's Params, and their
// values in PyTorch's layout, all of one array before those of the next.
func (d *Draws) Of(p model.Param) func() float32 {
	if v, ok := d.g.Fill(p); ok {
		return func() float32 { return v }
	}
	if deviation, ok := d.g.Spread(p); ok {
		return func() float32 { return float32(deviation * d.rng.NormFloat64()) }
	}
	switch {
	case len(p.Shape) > 1:
		bound := initBound(p.Shape, d.scheme)
		if d.g.AdapterOf(p) == model.AdapterDown { // as PEFT draws it: He's uniform distribution with a slope of 5^0.5
			bound = 1 / math.Sqrt(float64(p.Shape[1]))
		}
		return func() float32 { return float32((2*d.rng.Float64() - 1) * bound) }
	case IsVariance(p.Name), strings.HasSuffix(p.Name, ".weight"):
		return func() float32 { return 1 }
	default:
		return func() float32 { return 0 }
	}
}

// IsVariance says whether an array is the running variance of a batch norm. It is never negative.
func IsVariance(name string) bool { return strings.HasSuffix(name, ".running_var") }

// StartOf is the start value of a statistic.
func StartOf(g *model.Graph, statistic model.Param) float32 {
	if v, ok := g.Fill(statistic); ok {
		return v
	}
	if IsVariance(statistic.Name) {
		return 1
	}
	return 0
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
