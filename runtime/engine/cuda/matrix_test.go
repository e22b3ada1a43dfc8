package cuda_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/emulated"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/cuda"
	"github.com/disdel/disdel/runtime/engine/cuda/kernel"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// rounded is values with so many bits of their fraction: the nearest, of two as near the even one, or the one farther
// from zero. By arithmetic, where the kernels go by bits.
func rounded(v []float32, fraction int, even bool) []float32 {
	out := make([]float32, len(v), cap(v))
	for i, x := range v {
		_, exponent := math.Frexp(float64(x))
		unit := math.Ldexp(1, exponent-1-fraction)
		if even {
			out[i] = float32(math.RoundToEven(float64(x)/unit) * unit)
		} else {
			out[i] = float32(math.Round(float64(x)/unit) * unit)
		}
	}
	return out
}

// precisions are those that take matrix units, with how they round.
var precisions = map[kernel.Precision]func(v []float32) []float32{
	kernel.TF32: func(v []float32) []float32 { return rounded(v, 10, false) },
	kernel.BF16: func(v []float32) []float32 { return rounded(v, 7, true) },
}

// Products by matrix units come to what the processor's engine makes of both sides rounded: every value of a warp's
// fragments and tiles is where it belongs.
func TestMatrixUnitsRoundWhatTheyMultiply(t *testing.T) {
	emulation(t)
	for precision, round := range precisions {
		rng := rand.New(rand.NewPCG(21, 22))
		for _, c := range geometries() {
			rows := c.In.Lanes - 5
			x, dy := image(rng, c.In, rows), image(rng, c.Out(), rows)
			weights, bias := random(rng, c.Filters*c.Inner()*c.Taps()), random(rng, c.Filters)
			x[1], dy[2] = 1+1.0/2048, 1+3.0/256 // ties
			y, dx, dw, _ := convolved(t, c, rows, [5][]float32{round(x), round(dy), round(weights), bias, image(rng, c.In, 0)})
			got := both(t, func(b *bench) []float32 {
				k := kernel.Conv{Conv: c, Control: b.control(rows), Precision: precision}
				px, pdy, pw := b.up(x), b.up(dy), b.up(weights)
				py, pdx, pdw := b.room(len(y)), b.room(len(dx)), b.room(len(dw))
				b.run(k.Forward(py, px, pw, b.up(bias)), k.Data(pdx, pdy, pw, false))
				b.run(k.Weights(pdw, px, pdy, b.alloc(max(k.Work(), 16)))...)
				return slices.Concat(b.down(py, len(y)), b.down(pdx, len(dx)), b.down(pdw, len(dw)))
			})
			near(t, "forward", got[:len(y)], y, c.Inner()*c.Taps())
			near(t, "by the data", got[len(y):len(y)+len(dx)], dx, c.Outer()*c.Taps())
			near(t, "by the weights", got[len(y)+len(dx):], dw, c.OH*c.OW*rows)
			if t.Failed() {
				t.Fatalf("%v of %+v", precision, c)
			}
		}
	}
}

// A training in another precision says so, is near that in float32 and not the same, and evaluates in float32. A
// device without matrix units refuses it.
func TestATrainingHasItsPrecision(t *testing.T) {
	d := emulation(t)
	g := build(t, "residual", networks()["residual"], model.OpSoftmax)
	s := engine.Spec{
		Graph: g, BatchSize: 18, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.05}}, Training: true,
	}
	plain := made(t, cuda.Backend{Driver: d}, s)
	before, err := plain.Evaluate(batch(g, 18, 99))
	if err != nil {
		t.Fatal(err)
	}
	want := trained(t, plain, g, 18, 7)
	for name, kernels := range map[disdel.Precision]string{
		disdel.PrecisionTF32: "cuda-tf32", disdel.PrecisionBF16: "cuda-bf16", disdel.PrecisionFloat32: "cuda",
	} {
		s.Precision = name
		d.Capability = [2]int{8, 6}
		e := made(t, cuda.Backend{Driver: d}, s)
		if e.Kernels() != kernels {
			t.Errorf("%s: kernels %q", name, e.Kernels())
		}
		if m, err := e.Evaluate(batch(g, 18, 99)); err != nil || m.Loss != before.Loss {
			t.Errorf("%s: a loss of %v, %v; in float32 %v", name, m.Loss, err, before.Loss)
		}
		got := trained(t, e, g, 18, 7)
		for i := range want {
			if math.Abs(got[i]-want[i]) > 0.02*(1+want[i]) {
				t.Errorf("%s: loss %d is %v, in float32 %v", name, i, got[i], want[i])
			}
		}
		if same := slices.Equal(got, want); same != (name == disdel.PrecisionFloat32) {
			t.Errorf("%s: losses %v, in float32 %v", name, got, want)
		}
		d.Capability = [2]int{7, 5}
		older, err := cuda.Backend{Driver: d}.New(s)
		if refused := errors.Is(err, disdel.Unavailable); refused == (name == disdel.PrecisionFloat32) {
			t.Errorf("%s on a device of 7.5: %v", name, err)
		}
		if older != nil {
			older.Close() //nolint:errcheck // nothing was done with it
		}
	}
	s.Precision = "int4"
	if _, err := (cuda.Backend{Driver: d}).New(s); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a precision that is none: %v", err)
	}
}

// Large plain products that a library computes come to what our kernels make of them, in training and in evaluation,
// with short batches, and the kernels' name says so.
func TestALibrarysProductsAreOurs(t *testing.T) {
	d := emulation(t)
	d.Capability, d.Library = [2]int{8, 0}, true
	wide := func(b *model.Builder) int {
		x := b.Same("r0", b.Conv("a", 0, 64, model.Square(3, 2, 1), 1, true), model.OpReLU)
		y := b.Same("r1", b.Conv("b", x, 68, model.Square(1, 1, 0), 1, true), model.OpReLU)
		z := b.Conv("c", y, 64, model.Square(1, 1, 0), 1, false)
		p := b.GlobalPool("g", b.Same("r2", b.Add("add", z, x), model.OpReLU))
		return b.Same("r3", b.Dense("d", b.Flatten("f", p), 70), model.OpReLU)
	}
	g := build(t, "wide", wide, model.OpSoftmax)
	for _, precision := range []disdel.Precision{disdel.PrecisionFloat32, disdel.PrecisionTF32, disdel.PrecisionBF16} {
		s := engine.Spec{
			Graph: g, BatchSize: 18, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.05}}, Training: true,
			Precision: precision,
		}
		ours, theirs := made(t, cuda.Backend{Driver: d}, s), made(t, cuda.Backend{Driver: d, Library: true}, s)
		want, got := trained(t, ours, g, 18, 7), trained(t, theirs, g, 18, 7)
		alike(t, string(precision), want, got, engine.Copies(ours.State()), engine.Copies(theirs.State()))
		if !strings.HasPrefix(theirs.Kernels(), "cuda-blas") || strings.Contains(ours.Kernels(), "blas") {
			t.Errorf("%s: kernels %q and %q", precision, theirs.Kernels(), ours.Kernels())
		}
	}
	d.Library = false
	s := engine.Spec{Graph: g, BatchSize: 2}
	if e := made(t, cuda.Backend{Driver: d, Library: true}, s); e.Kernels() != "cuda" {
		t.Errorf("a driver without one: kernels %q", e.Kernels())
	}
}

// What the library works in is in the footprint of networks that have products of its own, as long as nobody knows of a
// device without one.
func TestWhatALibraryWorksInIsCounted(t *testing.T) {
	d := emulation(t)
	d.Library = true
	with := cuda.Backend{Driver: d, Library: true, Workspace: 3 * disdel.MB}
	for width, want := range map[int]disdel.Bytes{63: 0, 64: 3 * disdel.MB} {
		g := build(t, "dense", func(b *model.Builder) int {
			x := b.Same("r", b.Dense("a", b.Flatten("f", 0), 64), model.OpReLU)
			return b.Dense("b", x, width)
		}, model.OpSoftmax)
		for _, s := range []engine.Spec{
			{Graph: g, BatchSize: 2},
			{
				Graph: g, BatchSize: 2, Training: true, Precision: disdel.PrecisionBF16, // whose evaluations are float32
				Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}},
			},
		} {
			f, err := with.Footprint(s)
			if err != nil || f.Sum(footprint.Library) != want {
				t.Errorf("%d units: the library has %v, %v; want %v", width, f.Sum(footprint.Library), err, want)
			}
			if got := made(t, with, s).Footprint(); got.In(footprint.Device) != f.In(footprint.Device) {
				t.Errorf("%d units: the engine holds %v, and %v were foretold", width, got.In(footprint.Device),
					f.In(footprint.Device))
			}
			none := with
			none.Driver = emulated.Driver{Program: d.Program}
			if got := made(t, none, s).Footprint(); got.Sum(footprint.Library) != 0 {
				t.Errorf("%d units: a library that is not there has %v", width, got.Sum(footprint.Library))
			}
		}
	}
}
