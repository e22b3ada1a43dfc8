package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Cells of recurrent layers on every path are their definitions, forward and back, at the first position and later, for
// batches that leave vectors empty.
func TestCellsAreTheirDefinitions(t *testing.T) {
	each(t, func(t *testing.T, w *Worker, rng *rand.Rand) {
		for _, rows := range []int{3, 16, 19, 32} {
			for _, gates := range []int{3, 4} {
				testCell(t, w, rng, gates, rows, 48)
				testCell(t, w, rng, gates, rows, plan.Padded(rows))
			}
		}
	})
}

func testCell(t *testing.T, w *Worker, rng *rand.Rand, gates, rows, width int) {
	t.Helper()
	const channels, positions = 5, 2
	position := channels * width
	drawn := func(n int) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(rng.NormFloat64())
		}
		return out
	}
	r := &Recurrent{
		Sequence: Sequence{Image: Image{C: channels, H: positions, W: 1, Lanes: width}, Rows: rows},
		X:        drawn(positions * gates * position), Products: drawn(gates * position), Zeros: make([]float32, position),
		Y: drawn(positions * position), DY: drawn(positions * position), Memory: drawn(position),
		Gates: make([]float32, positions*gates*position), Memories: drawn(positions * position),
	}
	close := func(what string, at int, got float32, want float64) {
		t.Helper()
		if math.Abs(float64(got)-want) > 4e-6*max(1, math.Abs(want)) {
			t.Errorf("%d gates, %d rows of %d, %s %d: %v, not %v", gates, rows, width, what, at, got, want)
		}
	}
	for at := range positions {
		memory, y := slices.Clone(r.Memory), slices.Clone(r.Y)
		if gates == 4 {
			w.LSTM(r, at)
		} else {
			w.GRU(r, at)
		}
		for i := range position {
			if i%width >= rows {
				continue
			}
			var g [4]float64
			for k := range gates {
				g[k] = float64(r.X[(at*gates+k)*position+i]) + float64(r.Products[k*position+i])
			}
			if gates == 4 {
				m := sigmoid(g[1])*float64(memory[i]) + sigmoid(g[0])*math.Tanh(g[2])
				close("memory", i, r.Memory[i], m)
				close("output", i, r.Y[at*position+i], sigmoid(g[3])*math.Tanh(m))
				continue
			}
			before, hidden := 0.0, float64(r.Products[2*position+i])
			if at > 0 {
				before = float64(y[i])
			}
			n := math.Tanh(g[2] - hidden + sigmoid(g[0])*hidden)
			close("output", i, r.Y[at*position+i], sigmoid(-g[1])*n+sigmoid(g[1])*before)
		}
	}
	for at := positions - 1; at >= 0; at-- {
		testCellBack(w, r, gates, at, func(what string, i int, got float32, want float64) {
			if i%width < rows {
				close(what, i, got, want)
			}
		})
	}
}

// testCellBack compares the way back of a position with its definition.
func testCellBack(w *Worker, r *Recurrent, gates, at int, check func(what string, i int, got float32, want float64)) {
	position := r.Pixel()
	given, memory, memories, grads := slices.Clone(r.Gates), slices.Clone(r.Memory), slices.Clone(r.Memories),
		slices.Clone(r.DY)
	if gates == 4 {
		w.LSTMBack(r, at)
	} else {
		w.GRUBack(r, at)
	}
	for i := range position {
		var g [4]float64
		var got [4]float32
		for k := range gates {
			g[k], got[k] = float64(given[(at*gates+k)*position+i]), r.Gates[(at*gates+k)*position+i]
		}
		dy, kept, before := float64(grads[at*position+i]), float64(memories[at*position+i]), 0.0
		if gates == 4 {
			if at > 0 {
				before = float64(memories[(at-1)*position+i])
			}
			m := math.Tanh(kept)
			slope := float64(memory[i]) + dy*g[3]*(1-m*m)
			check("input gate", i, got[0], slope*g[2]*g[0]*(1-g[0]))
			check("forget gate", i, got[1], slope*before*g[1]*(1-g[1]))
			check("candidate", i, got[2], slope*g[0]*(1-g[2]*g[2]))
			check("output gate", i, got[3], dy*m*g[3]*(1-g[3]))
			check("memory's gradient", i, r.Memory[i], slope*g[1])
			continue
		}
		if at > 0 {
			before = float64(r.Y[(at-1)*position+i])
			check("gradient before", i, r.DY[(at-1)*position+i], float64(grads[(at-1)*position+i])+dy*g[1])
		}
		dn := dy * (1 - g[1]) * (1 - kept*kept)
		check("reset gate", i, got[0], dn*g[2]*g[0]*(1-g[0]))
		check("update gate", i, got[1], dy*(before-kept)*g[1]*(1-g[1]))
		check("hidden part", i, got[2], dn*g[0])
		check("candidate", i, r.Memories[at*position+i], dn)
	}
}

// The functions of single precision are within 1e-6 of their definitions, and finite wherever these are.
func TestFunctionsOfSinglePrecision(t *testing.T) {
	for name, f := range map[string][2]func(float64) float64{
		"sigmoid": {
			func(x float64) float64 { return float64(sigmoid32(float32(x))) },
			func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
		},
		"tanh": {func(x float64) float64 { return float64(tanh32(float32(x))) }, math.Tanh},
		"normal": {
			func(x float64) float64 { v, _ := normal32(float32(x)); return float64(v) },
			func(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) },
		},
		"density": {
			func(x float64) float64 { _, v := normal32(float32(x)); return float64(v) },
			func(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) },
		},
		"exp": { // relative to its size
			func(x float64) float64 { return float64(exp32(float32(x))) / math.Exp(float64(float32(x))) },
			func(float64) float64 { return 1 },
		},
	} {
		for x := -80.0; x < 80; x += 0.0371 {
			if got, want := f[0](x), f[1](x); !(math.Abs(got-want) < 1e-6) {
				t.Fatalf("%s of %v is %v, want %v", name, x, got, want)
			}
		}
	}
	for x, want := range map[float32]float32{-1e30: 0, 1e30: exp32(88), 0: 1} {
		if got := exp32(x); got != want {
			t.Errorf("exp32(%v) is %v", x, got)
		}
	}
	if v := exp32(float32(math.NaN())); v == v {
		t.Errorf("exp32 of NaN is %v", v)
	}
}
