package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// windowCase is an attention in drawn windows, and its arrays by the definition.
type windowCase struct {
	Attention
	x, y, dy, dx   []float32
	wantY, wantDX  []float64
	dTable, dScale []float64
}

// Attention in windows on every path is its definition in float64, forward and back, with the gradients of biases and
// scales. One and two threads give the same bits.
func TestWindowAttentionIsItsDefinition(t *testing.T) {
	rng, cases := rand.New(rand.NewPCG(37, 5)), make([]*windowCase, some(24))
	for i := range cases {
		cases[i] = drawWindows(rng)
		cases[i].define()
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

func drawWindows(rng *rand.Rand) *windowCase {
	c := &windowCase{}
	w := &c.Windows
	w.H, w.W = 1+rng.IntN(9), 1+rng.IntN(9)
	down, right := 1+rng.IntN(3), 1+rng.IntN(3)
	w.MapH, w.MapW, w.Grid = down*w.H, right*w.W, rng.IntN(3) == 0
	if !w.Grid && down > 1 {
		w.ShiftH = rng.IntN(w.H)
	}
	if !w.Grid && right > 1 {
		w.ShiftW = rng.IntN(w.W)
	}
	c.Heads, c.Width, c.Lanes = 1+rng.IntN(3), 1+rng.IntN(20), []int{16, 32}[rng.IntN(2)]
	c.KVHeads, c.C, c.H, c.W = c.Heads, 3*c.Heads*c.Width, w.MapH, w.MapW
	c.Rows = 1 + rng.IntN(c.Lanes)
	w.Out = Image{C: c.Heads * c.Width, H: 1 + rng.IntN(w.MapH), W: 1 + rng.IntN(w.MapW), Lanes: c.Lanes}
	draw := func(n int) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(rng.NormFloat64())
		}
		return out
	}
	w.Table = draw(w.Distances() * c.Heads)
	if rng.IntN(2) == 0 {
		w.Scale = draw(c.Heads)
		w.Scale[0] = 5 // above the largest
	}
	c.x, c.dx, c.y, c.dy = draw(c.Image.Len()), draw(c.Image.Len()), make([]float32, w.Out.Len()), draw(w.Out.Len())
	return c
}

// vector is a head's part of a place of a window, and the scale of its length.
func (c *windowCase) vector(window, place, channel, row int) (v []float64, length float64) {
	down, right := c.Windows.Pixel(window, place)
	for k := range c.Width {
		x := float64(c.x[((down*c.W+right)*c.C+channel+k)*c.Lanes+row])
		v, length = append(v, x), length+x*x
	}
	return v, math.Sqrt(length)
}

func (c *windowCase) define() {
	c.wantY, c.wantDX = make([]float64, len(c.y)), make([]float64, len(c.x))
	for i, v := range c.dx {
		c.wantDX[i] = float64(v)
	}
	c.dTable, c.dScale = make([]float64, len(c.Windows.Table)), make([]float64, c.Heads)
	for row := range c.Rows {
		for head := range c.Heads {
			for window := range c.Windows.Count() {
				for place := range c.Windows.Len() {
					c.defineQuery(row, head, window, place)
				}
			}
		}
	}
}

// defineQuery adds what a query gives to the wanted arrays.
func (c *windowCase) defineQuery(row, head, window, i int) {
	s, all := &c.Windows, c.Heads*c.Width
	down, right := s.Pixel(window, i)
	if down >= s.Out.H || right >= s.Out.W {
		return
	}
	q, long := c.vector(window, i, head*c.Width, row)
	scale := 1 / math.Sqrt(float64(c.Width))
	if s.Scale != nil {
		scale = math.Min(math.Exp(float64(s.Scale[head])), 100)
	}
	n := s.Len()
	p, products, sum, mean, slopes := make([]float64, n), make([]float64, n), 0.0, 0.0, make([]float64, n)
	for k := range n {
		less := 0.0
		if s.Part(window, i) != s.Part(window, k) {
			less = plan.ApartScore
		}
		key, other := c.vector(window, k, all+head*c.Width, row)
		for j := range key {
			products[k] += q[j] * key[j]
		}
		if s.Scale != nil {
			products[k] /= long * other
		}
		p[k] = math.Exp(scale*products[k] + float64(s.Table[s.Distance(i, k)*c.Heads+head]) - less)
		sum += p[k]
	}
	out := (down*s.Out.W + right) * s.Out.C
	for k := range p {
		p[k] /= sum
		value, _ := c.vector(window, k, 2*all+head*c.Width, row)
		for j, v := range value {
			at := (out+head*c.Width+j)*c.Lanes + row
			c.wantY[at] += p[k] * v
			slopes[k] += float64(c.dy[at]) * v
			c.slope(window, k, 2*all+head*c.Width+j, row, p[k]*float64(c.dy[at]))
		}
		mean += p[k] * slopes[k]
	}
	for k := range p {
		ds := p[k] * (slopes[k] - mean)
		c.dTable[s.Distance(i, k)*c.Heads+head] += ds
		if s.Scale != nil && scale < 100 {
			c.dScale[head] += ds * scale * products[k]
		}
		key, other := c.vector(window, k, all+head*c.Width, row)
		for j := range key {
			dq, dk := key[j], q[j]
			if s.Scale != nil {
				dq = key[j]/(long*other) - products[k]*q[j]/(long*long)
				dk = q[j]/(long*other) - products[k]*key[j]/(other*other)
			}
			c.slope(window, i, head*c.Width+j, row, ds*scale*dq)
			c.slope(window, k, all+head*c.Width+j, row, ds*scale*dk)
		}
	}
}

func (c *windowCase) slope(window, place, channel, row int, v float64) {
	down, right := c.Windows.Pixel(window, place)
	c.wantDX[((down*c.W+right)*c.C+channel)*c.Lanes+row] += v
}

func (c *windowCase) run(team *Team) (y, dx, dTable, dScale []float32) {
	a := c.Attention
	shape, tasks := a.shape(), c.Heads*c.Lanes/lanes
	a.Kept, a.Scratch = make([]float32, c.Heads*c.H*c.W*c.Lanes), make([]float32, tasks*shape.Scratch(true))
	y, dx = slices.Clone(c.y), slices.Clone(c.dx)
	dTable, dScale = make([]float32, len(c.Windows.Table)), make([]float32, c.Heads)
	fromSpoiled(team, &a, tasks*shape.Scratch(false), c.x, y, func(w *Worker) {
		w.AttentionBack(&a, c.x, y, c.dy, dx)
		w.Sync()
		w.WindowSums(&a, dTable, dScale)
	})
	return y, dx, dTable, dScale
}

func (c *windowCase) check(t *testing.T, one, two *Team) {
	t.Helper()
	y, dx, dTable, dScale := c.run(one)
	againY, againDX, againTable, againScale := c.run(two)
	if !slices.Equal(y, againY) || !slices.Equal(dx, againDX) || !slices.Equal(dTable, againTable) ||
		!slices.Equal(dScale, againScale) {
		t.Errorf("%+v: two threads give other bits", c.Windows.Windows)
	}
	for _, of := range []struct {
		name  string
		got   []float32
		want  []float64
		lanes int
	}{
		{"output", y, c.wantY, c.Lanes},
		{"gradient", dx, c.wantDX, c.Lanes},
		{"gradient of biases", dTable, c.dTable, 0},
		{"gradient of scales", dScale, c.dScale, 0},
	} {
		for i, v := range of.got {
			want := of.want[i]
			if of.lanes > 0 && i%of.lanes >= c.Rows {
				continue
			}
			if !(math.Abs(float64(v)-want) <= 3e-4*max(1, math.Abs(want))) {
				t.Fatalf("%+v, %d heads of %d, %d rows, cosine %v: value %d of the %s is %v, not %v", c.Windows.Windows, c.Heads,
					c.Width, c.Rows, c.Windows.Scale != nil, i, of.name, v, want)
			}
		}
	}
}

// Each pixel of a map is in one window, and windows are divided where the shift joins edges.
func TestEachPixelIsInOneWindow(t *testing.T) {
	for seed := range uint64(50) {
		s := &drawWindows(rand.New(rand.NewPCG(seed, 8))).Windows
		seen := map[[2]int]bool{}
		for window := range s.Count() {
			parts := map[int]bool{}
			for i := range s.Len() {
				row, column := s.Pixel(window, i)
				seen[[2]int{row, column}] = row >= 0 && row < s.MapH && column >= 0 && column < s.MapW
				parts[s.Part(window, i)] = true
			}
			if s.Divided(window) != (len(parts) > 1) {
				t.Errorf("%+v: window %d has %d parts", s.Windows, window, len(parts))
			}
		}
		delete(seen, [2]int{})
		if len(seen) != s.MapH*s.MapW-1 {
			t.Errorf("%+v: %d pixels", s.Windows, len(seen)+1)
		}
	}
}

// A block's pixels become channels in the order of rows, and come back.
func TestSpaceToDepth(t *testing.T) {
	out := plan.Image{C: 12, H: 2, W: 3, Lanes: 16}
	x, y, back := make([]float32, out.Len()), make([]float32, out.Len()), make([]float32, out.Len())
	for i := range x {
		x[i] = float32(i)
	}
	NewTeam(Sets()[0], 2, 64).Run(func(w *Worker) {
		w.SpaceToDepth(out, 2, 3, x, y)
		w.Sync()
		w.SpaceToDepthBack(out, 2, 3, y, back, false)
		w.SpaceToDepthBack(out, 2, 3, y, back, true)
	})
	for px := range 6 {
		for k := range 6 {
			row, column := px/3*2+k/3, px%3*3+k%3
			if got, want := y[(px*12+2*k)*16], x[(row*9+column)*2*16]; got != want {
				t.Errorf("pixel %d, place %d: %v, not %v", px, k, got, want)
			}
		}
	}
	for i, v := range back {
		if v != 2*x[i] {
			t.Fatalf("value %d is %v, not %v", i, v, 2*x[i])
		}
	}
}
