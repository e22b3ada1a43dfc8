package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// attentionCase is an attention of a drawn shape, and its arrays.
type attentionCase struct {
	Attention
	tokens        []float32
	x, y, dy, dx  []float32
	wantY, wantDX []float64 // by the definition; 0 in lanes without a row
}

func (c *attentionCase) String() string {
	return fmt.Sprintf("%d positions, %d rows in %d lanes folded by %d, %d heads, %d of keys, width %d, ", c.Positions(),
		c.Rows, c.Lanes, c.Fold, c.Heads, c.KVHeads, c.Width) +
		fmt.Sprintf("causal %v, rotary %v, padding %v", c.Causal, c.Theta > 0, c.Tokens != nil)
}

// Attention on every path is its definition in float64, forward and back, at the lengths where tiles, blocks of
// queries and blocks of keys begin and end. One and two threads give the same bits.
func TestAttentionIsItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(36, 3))
	var cases []*attentionCase
	for _, edge := range []int{1, 12, 16, 32, 64, 128} {
		for i, length := range []int{edge - 1, edge, edge + 1, 2*edge + 1} {
			if length == 0 || testing.Short() && (i == 3 || length > mostQueries+1) {
				continue // an emulator takes longest for the longest
			}
			c := drawAttention(rng, length)
			c.define()
			cases = append(cases, c)
		}
	}
	for _, s := range plainSets() {
		t.Run(s.Name, func(t *testing.T) {
			one, two := NewTeam(s, 1, 64), NewTeam(s, 2, 64)
			for _, c := range cases {
				c.check(t, one, two)
			}
		})
	}
}

// drawAttention draws all but the length, which grows to whole pixels where several positions share one.
func drawAttention(rng *rand.Rand, length int) *attentionCase {
	c := &attentionCase{}
	c.KVHeads, c.Width = 1+rng.IntN(2), 2*(1+rng.IntN(20))
	c.Heads, c.Causal = c.KVHeads*(1+rng.IntN(2)), rng.IntN(2) == 0
	if c.Lanes = []int{16, 32}[rng.IntN(2)]; rng.IntN(3) > 0 {
		c.Fold = max(2, c.Lanes>>rng.IntN(5)) // a position has 1 to 16 lanes
	}
	c.C, c.W, c.H = (c.Heads+2*c.KVHeads)*c.Width, 1, (length+max(1, c.Fold)-1)/max(1, c.Fold)
	c.Rows = 1 + rng.IntN(c.Span())
	if rng.IntN(3) == 0 {
		c.Theta = 10000
	}
	draw := func(n int, spread float64) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(spread * rng.NormFloat64())
		}
		return out
	}
	outputs := c.H * c.Heads * c.Width * c.Lanes
	// Scores far apart make the largest one of a query change from block to block.
	c.x, c.dx, c.dy, c.y = draw(c.Image.Len(), 2), draw(c.Image.Len(), 1), draw(outputs, 1), make([]float32, outputs)
	if rng.IntN(2) == 0 {
		c.tokens = make([]float32, c.H*c.Lanes)
		for i := range c.tokens {
			c.tokens[i] = float32(rng.IntN(4))
		}
		c.Tokens = c.tokens
	}
	return c
}

// row reads some channels of a position of a row, rotated where that is asked for.
func (c *attentionCase) row(position, channel, row int, rotated bool) []float64 {
	out := make([]float64, c.Width)
	for k := range out {
		out[k] = float64(c.x[c.Index(position, channel+k, row)])
	}
	if rotated {
		c.rotate(out, float64(position))
	}
	return out
}

func (c *attentionCase) rotate(v []float64, position float64) {
	half := c.Width / 2
	for k := 0; c.Theta > 0 && k < half; k++ {
		sin, cos := math.Sincos(position / math.Pow(c.Theta, float64(k)/float64(half)))
		v[k], v[k+half] = v[k]*cos-v[k+half]*sin, v[k]*sin+v[k+half]*cos
	}
}

// define computes the wanted arrays: each query's softmax over all keys that it sees, and its gradients.
func (c *attentionCase) define() {
	c.wantY, c.wantDX = make([]float64, len(c.y)), make([]float64, len(c.x))
	for i, v := range c.dx {
		c.wantDX[i] = float64(v)
	}
	for row := range c.Rows {
		for head := range c.Heads {
			var keys, values [][]float64
			for j := range c.Positions() {
				keys = append(keys, c.row(j, c.key(head), row, true))
				values = append(values, c.row(j, c.value(head), row, false))
			}
			for i := range keys {
				c.defineQuery(row, head, i, keys, values)
			}
		}
	}
}

// key and value are the first channels of the keys and of the values that a head of queries attends to.
func (c *attentionCase) key(head int) int   { return (c.Heads + head/(c.Heads/c.KVHeads)) * c.Width }
func (c *attentionCase) value(head int) int { return c.key(head) + c.KVHeads*c.Width }

// defineQuery adds what a query gives to the wanted arrays.
func (c *attentionCase) defineQuery(row, head, i int, keys, values [][]float64) {
	query, out := c.row(i, head*c.Width, row, true), c.out()
	p, slopes, mean := make([]float64, len(keys)), make([]float64, len(keys)), 0.0
	c.weights(p, query, keys, i, row)
	for j, v := range values {
		for k := range v {
			at := out.Index(i, head*c.Width+k, row)
			slope := float64(c.dy[at])
			c.wantY[at] += p[j] * v[k]
			slopes[j] += slope * v[k]
			c.wantDX[c.Index(j, c.value(head)+k, row)] += p[j] * slope
		}
		mean += p[j] * slopes[j]
	}
	scale, dq := 1/math.Sqrt(float64(c.Width)), make([]float64, c.Width)
	for j := range keys {
		ds, dk := p[j]*(slopes[j]-mean)*scale, make([]float64, c.Width)
		for k := range dk {
			dq[k] += ds * keys[j][k]
			dk[k] = ds * query[k]
		}
		c.add(dk, j, c.key(head), row)
	}
	c.add(dq, i, head*c.Width, row)
}

// weights are the softmax of a query's scores. They are 0 where it sees no key.
func (c *attentionCase) weights(p, query []float64, keys [][]float64, i, row int) {
	top, sum := math.Inf(-1), 0.0
	for j := range p {
		p[j] = math.Inf(-1)
		if c.Causal && j > i || c.Tokens.isPadding(&c.Sequence, j, row) {
			continue
		}
		p[j] = 0
		for k, v := range query {
			p[j] += v * keys[j][k] / math.Sqrt(float64(c.Width))
		}
		top = max(top, p[j])
	}
	for j := range p {
		if p[j] = math.Exp(p[j] - top); math.IsInf(top, -1) {
			p[j] = 0
		}
		sum += p[j]
	}
	for j := range p {
		if sum > 0 {
			p[j] /= sum
		}
	}
}

// add adds the gradient of a rotated position to that of the position.
func (c *attentionCase) add(d []float64, position, channel, row int) {
	c.rotate(d, -float64(position))
	for k, v := range d {
		c.wantDX[c.Index(position, channel+k, row)] += v
	}
}

func (c *attentionCase) run(team *Team) (y, dx []float32) {
	shape, tasks := c.Image.Attention(c.Width), c.KVHeads
	if c.Fold == 0 {
		tasks *= c.Lanes / lanes
	}
	a := c.Attention
	a.Kept, a.Scratch = make([]float32, c.Heads*c.H*c.Lanes), make([]float32, tasks*shape.Scratch(true))
	y, dx = slices.Clone(c.y), slices.Clone(c.dx)
	fromSpoiled(team, &a, tasks*shape.Scratch(false), c.x, y, func(w *Worker) { w.AttentionBack(&a, c.x, y, c.dy, dx) })
	return y, dx
}

// fromSpoiled computes an attention and its way back with a team. Each begins with scratch of numbers that nothing may
// read; forward is how much of it the attention has.
func fromSpoiled(team *Team, a *Attention, forward int, x, y []float32, back func(w *Worker)) {
	spoil := func() {
		for i := range a.Scratch {
			a.Scratch[i] = float32(math.NaN())
		}
	}
	spoil()
	there := *a
	there.Scratch = a.Scratch[:forward]
	team.Run(func(w *Worker) { w.Attention(&there, x, y) })
	spoil()
	team.Run(back)
}

func (c *attentionCase) check(t *testing.T, one, two *Team) {
	t.Helper()
	y, dx := c.run(one)
	again, dxAgain := c.run(two)
	if !slices.Equal(y, again) || !slices.Equal(dx, dxAgain) {
		t.Errorf("%v: two threads give other bits", c)
	}
	out := c.out()
	for name, of := range map[string]struct {
		s    *Sequence
		got  []float32
		want []float64
	}{"output": {&out, y, c.wantY}, "gradient": {&c.Sequence, dx, c.wantDX}} {
		for i, v := range of.got {
			if want := of.want[i]; of.s.holds(i%of.s.Lanes) && !(math.Abs(float64(v)-want) <= 1e-4*max(1, math.Abs(want))) {
				t.Fatalf("%v: value %d of the %s is %v, not %v", c, i, name, v, want)
			}
		}
	}
}
