package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// drawnConv is a convolution of a small image by a kernel that may be larger.
func drawnConv(rng *rand.Rand) Conv {
	return Conv{
		In: Image{C: 2, H: 1 + rng.IntN(4), W: 1 + rng.IntN(4), Lanes: 16}, Filters: 18,
		KH: 1 + rng.IntN(6), KW: 1 + rng.IntN(6),
		SH: 1 + rng.IntN(3), SW: 1 + rng.IntN(3), DH: 1 + rng.IntN(3), DW: 1 + rng.IntN(3),
		Top: rng.IntN(9), Left: rng.IntN(9), OH: 1 + rng.IntN(3), OW: 1 + rng.IntN(3), Groups: 1 + rng.IntN(2),
	}
}

// meets tells at which pixel of a side each output meets each tap of the whole kernel.
func meets(outputs, stride, dilation, pad, taps, idle, size int) (out [][3]int) {
	for o := range outputs {
		for t := range taps {
			if at := o*stride - pad + t*dilation; at >= 0 && at < size {
				out = append(out, [3]int{o, t + idle, at})
			}
		}
	}
	return out
}

// Every output meets the same pixels by the same taps as before, the padding is never negative, and the outermost taps
// that are left are idle only where the padding, or an image that nothing meets, wants them.
func TestIdleTapsMeetNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	trimmed, nothing := 0, 0
	for range 5000 {
		whole := drawnConv(rng)
		c := whole
		c.Trim()
		rows := meets(c.OH, c.SH, c.DH, c.Top, c.KH, c.Idle.Top, c.In.H)
		columns := meets(c.OW, c.SW, c.DW, c.Left, c.KW, c.Idle.Left, c.In.W)
		if !slices.Equal(rows, meets(c.OH, c.SH, c.DH, whole.Top, whole.KH, 0, c.In.H)) ||
			!slices.Equal(columns, meets(c.OW, c.SW, c.DW, whole.Left, whole.KW, 0, c.In.W)) {
			t.Fatalf("%+v meets other pixels as %+v", whole, c)
		}
		if c.Top < 0 || c.Left < 0 || c.KH < 1 || c.KW < 1 || c.KH+c.Idle.Top+c.Idle.Bottom != whole.KH {
			t.Fatalf("%+v became %+v", whole, c)
		}
		again := c
		if again.Trim(); again != c {
			t.Fatalf("%+v became %+v the second time", c, again)
		}
		last := func(met [][3]int, tap int) bool {
			return slices.ContainsFunc(met, func(m [3]int) bool { return m[1] == tap })
		}
		if len(rows) == 0 {
			if nothing++; c.KH != whole.KH {
				t.Fatalf("%+v became %+v, and meets nothing", whole, c)
			}
		} else if !last(rows, c.Idle.Top+c.KH-1) || !last(rows, c.Idle.Top) && c.Top >= c.DH {
			t.Fatalf("%+v could be smaller than %+v", whole, c)
		}
		if c.IdleLen() > 0 {
			trimmed++
		}
		eachOnce(t, &c, whole.KH*whole.KW)
	}
	if trimmed < 500 || nothing < 20 {
		t.Errorf("only %d have idle taps, and %d meet nothing", trimmed, nothing)
	}
}

// eachOnce fails unless all weights have a place of their own in memory, those of idle taps behind the others.
func eachOnce(t *testing.T, c *Conv, taps int) {
	t.Helper()
	used := make([]bool, c.WeightLen()+c.IdleLen())
	next, idle := 0, 0
	c.Each(func(there, here int) {
		if there != next || used[here] {
			t.Fatalf("%+v: weight %d is at %d, after %d", c, there, here, next)
		}
		next++
		if used[here] = true; here >= c.WeightLen() {
			idle++
		}
	})
	if next != c.Filters*c.Inner()*taps || idle != c.IdleLen() {
		t.Fatalf("%+v: %d weights, %d of them idle", c, next, idle)
	}
}

// An engine with kernels of its own has weights as PyTorch has them, and no tap of theirs is idle.
func TestPlainPlansHaveNoIdleTaps(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "resnet18", Input: []int{3, 32, 32}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Spec{
		{BatchSize: 32, Training: true}, {BatchSize: 1}, {BatchSize: 32, Training: true, Exact: true, Plain: true},
	} {
		idle := 0
		for _, n := range mustPlan(t, g, s).Nodes {
			if n.Conv.Groups > 0 { // it has one
				idle += n.Conv.IdleLen()
			}
		}
		if want := 512 * (3*512*8 + 256*5); s.Plain && idle != 0 || !s.Plain && idle != want {
			t.Errorf("%+v: %d idle weights of %d", s, idle, want)
		}
	}
}

// A kernel of 3 x 3 with padding meets a single pixel by its middle tap alone.
func ExampleConv_Trim() {
	c := Conv{
		In: Image{C: 4, H: 1, W: 1, Lanes: 16}, Filters: 16, KH: 3, KW: 3, SH: 1, SW: 1, DH: 1, DW: 1, Top: 1, Left: 1,
		OH: 1, OW: 1, Groups: 1,
	}
	c.Trim()
	fmt.Println(c.Taps(), "tap computes;", c.IdleLen(), "weights of", 9*4*16, "are idle")
	// Output: 1 tap computes; 512 weights of 576 are idle
}
