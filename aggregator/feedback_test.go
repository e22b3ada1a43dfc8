package aggregator

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// lenet has LeNet-5's shapes.
func lenet(seed uint64) disdel.Weights {
	rng := rand.New(rand.NewPCG(seed, 1))
	var w disdel.Weights
	for _, t := range []disdel.Tensor{
		{Name: "c1.weight", Shape: []int{6, 1, 5, 5}},
		{Name: "c1.bias", Shape: []int{6}},
		{Name: "c2.weight", Shape: []int{16, 6, 5, 5}},
		{Name: "c2.bias", Shape: []int{16}},
		{Name: "f1.weight", Shape: []int{120, 400}},
		{Name: "f1.bias", Shape: []int{120}},
		{Name: "f2.weight", Shape: []int{84, 120}},
		{Name: "f2.bias", Shape: []int{84}},
		{Name: "f3.weight", Shape: []int{10, 84}},
		{Name: "f3.bias", Shape: []int{10}},
	} {
		n := 1
		for _, side := range t.Shape {
			n *= side
		}
		t.Data = make([]float32, n)
		for i := range t.Data {
			t.Data[i] = float32(rng.NormFloat64() * 0.1)
		}
		w = append(w, t)
	}
	return w
}

// The bound: int8 takes at most 0.27 of float32, all included.
func TestInt8TakesAQuarter(t *testing.T) {
	// a worker that has none yet gives an empty one as well as nil
	f, err := NewFeedback(Format{Wire: disdel.WireInt8}, disdel.Weights{})
	if err != nil {
		t.Fatal(err)
	}
	w := lenet(1)
	e, err := f.Encode(w, lenet(2))
	if err != nil {
		t.Fatal(err)
	}
	if e.Bytes() != WireBytes(w, disdel.WireInt8) {
		t.Errorf("%d bytes, %d foretold", e.Bytes(), WireBytes(w, disdel.WireInt8))
	}
	h := &head{id: update(1, 1).ID, wire: disdel.WireInt8, codec: int8s{}, layout: e.layout, sums: make([]uint32, 1)}
	data, err := h.encode()
	if err != nil {
		t.Fatal(err)
	}
	if ratio := float64(len(data)+int(e.Bytes())) / float64(len(data)+4*w.Len()); ratio > 0.27 {
		t.Errorf("%.3f of float32's bytes", ratio)
	}
}

func decoded(t *testing.T, e *Encoded) disdel.Weights {
	t.Helper()
	values := make([]float32, e.layout.values())
	for k, c := range e.columns {
		from, to := e.layout.columnRange(k)
		if err := decodeColumn(values[from:to], e.wire, e.layout.runs(k), c); err != nil {
			t.Fatal(err)
		}
	}
	return e.layout.weightsOver(values)
}

// Error feedback's identity: what was sent and what is kept add up to what was to be sent, so that over many rounds
// nothing is lost. The residual stays within half a step.
func TestWhatIsRoundedAwayIsSentLater(t *testing.T) {
	for _, wire := range []disdel.Wire{disdel.WireInt8, disdel.WireBfloat16} {
		f, _ := NewFeedback(Format{Wire: wire}, nil)
		f.column = 1000
		reference := lenet(0)
		exact, sent := make([]float64, reference.Len()), make([]float64, reference.Len())
		for round := range uint64(20) {
			w := lenet(round + 1)
			e, err := f.Encode(w, reference)
			if err != nil {
				t.Fatal(err)
			}
			i := 0
			for k, tensor := range decoded(t, e) {
				for n, v := range tensor.Data {
					exact[i] += float64(w[k].Data[n] - reference[k].Data[n])
					sent[i] += float64(v)
					i++
				}
			}
		}
		step := 0.8 / 127.0
		i := 0
		for _, tensor := range f.Residual() {
			for _, kept := range tensor.Data {
				if d := exact[i] - sent[i]; math.Abs(d) > step || math.Abs(d-float64(kept)) > 1e-5 {
					t.Fatalf("%s: value %d is %g behind and keeps %g", wire, i, d, kept)
				}
				i++
			}
		}
		if f.residualNorm() == 0 {
			t.Errorf("%s lost nothing: the test shows nothing", wire)
		}
	}
}

// A worker that is retried with the residual of its stored state sends the same bytes.
func TestARetriedWorkerSendsTheSameBytes(t *testing.T) {
	f, _ := NewFeedback(Format{Wire: disdel.WireInt8}, nil)
	if _, err := f.Encode(lenet(1), lenet(0)); err != nil {
		t.Fatal(err)
	}
	kept := slices.Clone(f.Residual())
	for i := range kept {
		kept[i].Data = slices.Clone(kept[i].Data)
	}
	again, err := NewFeedback(Format{Wire: disdel.WireInt8}, kept)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := f.Encode(lenet(3), lenet(2))
	b, err := again.Encode(lenet(3), lenet(2))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a.columns, b.columns); diff != "" {
		t.Error(diff)
	}
}

func TestFeedbackRefusesWhatItCannotSend(t *testing.T) {
	for _, wire := range []disdel.Wire{"", disdel.WireFloat32, "int4"} {
		if _, err := NewFeedback(Format{Wire: wire}, nil); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%q: %v", wire, err)
		}
	}
	f, _ := NewFeedback(Format{Wire: disdel.WireInt8}, nil)
	if _, err := f.Encode(someWeights(1), lenet(1)); !errors.Is(err, disdel.Invalid) {
		t.Errorf("other shapes: %v", err)
	}
	if _, err := f.Encode(someWeights(2), someWeights(1)); err != nil {
		t.Fatal(err)
	}
	lost := f.residualNorm()
	for _, v := range []float64{math.NaN(), math.Inf(1), math.MaxFloat32} {
		bad := someWeights(3)
		bad[1].Data[1] = float32(v)
		if _, err := f.Encode(bad, someWeights(1)); !errors.Is(err, disdel.Diverged) || f.residualNorm() != lost {
			t.Errorf("%g: %v, residual %g, before %g", v, err, f.residualNorm(), lost)
		}
	}
}

// Columns and blocks cut the values anywhere: what comes back is within half a step of what went.
func TestFormatsRoundToTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := disdel.Weights{}
		for i := range rapid.IntRange(0, 4).Draw(t, "tensors") {
			n := rapid.IntRange(0, 600).Draw(t, "values")
			rng := rand.New(rand.NewPCG(uint64(n), uint64(i)))
			tensor := disdel.Tensor{Name: string(rune('a' + i)), Shape: []int{n}, Data: make([]float32, n)}
			for k := range tensor.Data {
				tensor.Data[k] = float32(rng.NormFloat64() * math.Pow(10, float64(i)))
			}
			w = append(w, tensor)
		}
		l := newLayout(w, rapid.IntRange(1, 700).Draw(t, "column"))
		for _, wire := range disdel.Wires() {
			values := make([]float32, l.values())
			for k := range l.columns() {
				runs := l.runs(k)
				from, to := l.columnRange(k)
				b := encodeColumn(nil, wire, runs, l.gather(nil, w, k))
				if err := decodeColumn(values[from:to], wire, runs, b); err != nil {
					t.Fatal(err)
				}
			}
			for i, tensor := range l.weightsOver(values) {
				scale := blockScale(w[i].Data)
				for k, v := range tensor.Data {
					d := math.Abs(float64(v - w[i].Data[k]))
					bound := map[disdel.Wire]float64{ // 0: it comes back as it was
						disdel.WireBfloat16: math.Abs(float64(v)) / 256, disdel.WireInt8: 0.5001 * float64(scale),
					}[wire]
					if d > bound {
						t.Fatalf("%s: %g came back as %g", wire, w[i].Data[k], v)
					}
				}
			}
		}
	})
}

// residualNorm is the Euclidean norm of the residual.
func (f *Feedback) residualNorm() float64 {
	sum := 0.0
	for _, t := range f.residual {
		for _, v := range t.Data {
			sum += float64(v) * float64(v)
		}
	}
	return math.Sqrt(sum)
}
