package aggregator

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// encodeColumn writes a column whose values are differences in weights of 1.
func encodeColumn(dst []byte, w disdel.Wire, runs []int, v []float32) []byte {
	return codecOf(w).encode(dst, encodeInput{runs: runs, values: v, weights: func() []float32 {
		return slices.Repeat([]float32{1}, len(v))
	}})
}

func decodeColumn(dst []float32, w disdel.Wire, runs []int, b []byte) error {
	return codecOf(w).decode(dst, runs, b)
}

// conformance has a row for every codec: how far a value that is read back may be from what was sent and kept, relative
// to the largest of its block.
var conformance = []struct {
	format Format
	bound  float64
}{
	{Format{Wire: disdel.WireFloat32}, 0},
	{Format{Wire: disdel.WireBfloat16}, 1. / 256},
	{Format{Wire: disdel.WireInt8}, 0.5001 / 127},
	{Format{Wire: disdel.WireSignificant}, 0},
	{Format{Wire: disdel.WireSignificant, Threshold: 0.7, Round: 3}, math.Inf(1)}, // what is small stays at home
}

func TestEveryFormatHasACodecAndARowHere(t *testing.T) {
	seen := map[disdel.Wire]bool{}
	for _, c := range conformance {
		seen[c.format.Wire] = true
	}
	for i, wire := range disdel.Wires() {
		if wireNumber(wire) != i || !seen[wire] {
			t.Errorf("%s has number %d, not %d; in the table below: %v", wire, wireNumber(wire), i, seen[wire])
		}
	}
	if len(codecs) != len(disdel.Wires()) {
		t.Errorf("%d codecs of %d formats", len(codecs), len(disdel.Wires()))
	}
}

// drawn is weights of any shapes, some of them and some values 0, and what they differ from.
func drawn(t *rapid.T) (weights, reference disdel.Weights) {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
	for i := range rapid.IntRange(1, 4).Draw(t, "tensors") {
		n := rapid.IntRange(0, 300).Draw(t, "values")
		name := string(rune('a' + i))
		w := disdel.Tensor{Name: name, Shape: []int{n}, Data: make([]float32, n)}
		r := disdel.Tensor{Name: name, Shape: []int{n}, Data: make([]float32, n)}
		for k := range n {
			r.Data[k] = float32(rng.NormFloat64())
			w.Data[k] = r.Data[k]
			if rng.IntN(3) > 0 {
				w.Data[k] += float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(5)-4)))
			}
			if rng.IntN(5) == 0 {
				w.Data[k] = 0
			}
		}
		weights, reference = append(weights, w), append(reference, r)
	}
	return weights, reference
}

// What a codec sends and what Feedback keeps add up to what there was to send, to the bit where a value goes whole; no
// value is further off than the codec's bound; the size is within what was said.
func TestWhatIsSentAndKeptIsWhatWasGiven(t *testing.T) {
	for _, c := range conformance {
		t.Run(string(c.format.Wire), rapid.MakeCheck(func(t *rapid.T) {
			weights, reference := drawn(t)
			f := feedback(c.format, nil)
			f.column = rapid.IntRange(1, 300).Draw(t, "column")
			e, err := f.Encode(weights, reference)
			if err != nil {
				t.Fatal(err)
			}
			most, bytes := disdel.Bytes(0), disdel.Bytes(0)
			for k, column := range e.columns {
				_, m := f.codec.size(e.layout.runs(k))
				if err := checkSize(f.codec, e.layout.runs(k), len(column)); err != nil || cap(column) > m+64 {
					t.Fatalf("column %d: %v, room for %d", k, err, cap(column))
				}
				most, bytes = most+disdel.Bytes(m), bytes+disdel.Bytes(len(column))
			}
			if e.Bytes() != bytes || bytes > most {
				t.Fatalf("%d bytes, %d said, %d at most", bytes, e.Bytes(), most)
			}
			values := make([]float32, e.layout.values())
			for k, column := range e.columns {
				from, to := e.layout.columnRange(k)
				if err := f.codec.decode(values[from:to], e.layout.runs(k), column); err != nil {
					t.Fatal(err)
				}
			}
			for i, sent := range e.layout.weightsOver(values) {
				largest := 0.0
				for k := range sent.Data {
					largest = max(largest, math.Abs(float64(weights[i].Data[k]-reference[i].Data[k])))
				}
				for k, v := range sent.Data {
					given, kept := weights[i].Data[k]-reference[i].Data[k], f.Residual()[i].Data[k]
					if kept != given-v {
						t.Fatalf("%s[%d]: %g given, %g sent, %g kept", sent.Name, k, given, v, kept)
					}
					if math.Abs(float64(kept)) > c.bound*largest {
						t.Fatalf("%s[%d]: %g kept of %g", sent.Name, k, kept, given)
					}
				}
			}
		}))
	}
}

// A column that is cut or grown is refused, and none that is read is other than what is added.
func TestNoCodecTakesDamage(t *testing.T) {
	w, runs := lenet(1), []int{300, 200, 0, 12}
	v := w[2].Data[:sumOf(runs)]
	for _, row := range codecs {
		c := row.open(Format{})
		good := encodeColumn(nil, row.wire, runs, v)
		dst := make([]float32, len(v))
		if err := c.decode(dst, runs, good); err != nil {
			t.Fatal(err)
		}
		for n := range good {
			if c.decode(dst, runs, good[:n]) == nil {
				t.Fatalf("%s: %d of %d bytes are taken", row.wire, n, len(good))
			}
			if _, err := c.add(make(sums, len(v)), column{good[:n], 1}, runs, &scratch{}); err == nil {
				t.Fatalf("%s: %d of %d bytes are added", row.wire, n, len(good))
			}
		}
		if c.decode(dst, runs, append(slices.Clone(good), 0)) == nil {
			t.Fatalf("%s: a byte more is taken", row.wire)
		}
	}
}

// The mean of members in every format is that of what each of them decodes to, added in their order.
func TestAMeanOfEveryFormatIsThatOfWhatIsDecoded(t *testing.T) {
	s := enter(t, embedded(t), "formats")
	for _, width := range []int{columnValues, 7} {
		s.column = width
		job := disdel.JobID("job-" + string(rune('0'+width%10)))
		reference := someWeights(9)
		if err := s.PutReference(ctx, job, 2, reference); err != nil {
			t.Fatal(err)
		}
		l, total, differences := newLayout(reference, width), 0.0, 0.0
		exact := make(sums, l.values())
		var ids []disdel.UpdateID
		for m, c := range conformance {
			u := update(m, float64(3+m))
			u.ID.Job = job
			ids, total = append(ids, u.ID), total+u.Samples
			var values []float32
			if c.format.Wire == disdel.WireFloat32 {
				values = flat(u.Weights)
				push(t, s, u)
			} else {
				f := feedback(c.format, nil)
				f.column = width
				e, err := f.Encode(u.Weights, reference)
				if err != nil {
					t.Fatal(err)
				}
				values, differences = flat(decoded(t, e)), differences+u.Samples
				if err := s.PushEncoded(ctx, u, e); err != nil {
					t.Fatal(err)
				}
			}
			exact.addFloats(values, u.Samples)
		}
		exact.addFloats(flat(reference), differences)
		want := make([]float32, len(exact))
		meanScalar(want, exact, total)
		got, err := s.Reduce(ctx, ids, reference)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, flat(got.Weights)); diff != "" {
			t.Errorf("columns of %d (-want +got):\n%s", width, diff)
		}
	}
}

func flat(w disdel.Weights) []float32 {
	var out []float32
	for _, t := range w {
		out = append(out, t.Data...)
	}
	return out
}

// With a threshold of 0 a mean has the bits of differences sent as float32, whoever else is in it (MLLess, Corollary 1:
// the filter is then none).
func TestAThresholdOfZeroIsFloat32(t *testing.T) {
	s := enter(t, embedded(t), "zero")
	s.column = 7
	reference := someWeights(9)
	if err := s.PutReference(ctx, "job-1", 2, reference); err != nil {
		t.Fatal(err)
	}
	means := map[disdel.Wire][]float32{}
	for _, wire := range []disdel.Wire{disdel.WireFloat32, disdel.WireSignificant} {
		var ids []disdel.UpdateID
		for m, of := range []disdel.Wire{disdel.WireInt8, wire, wire, disdel.WireFloat32, disdel.WireBfloat16, wire} {
			u := update(m, float64(3+m))
			u.ID.Level = wireNumber(wire)
			u.Weights[0].Data[m] = reference[0].Data[m] // a difference of 0, which is not sent
			u.Weights[1].Data[1] = 0                    // a weight of 0
			ids = append(ids, u.ID)
			if m == 3 {
				push(t, s, u)
				continue
			}
			f := feedback(Format{Wire: of}, nil)
			f.column = s.column
			e, err := f.Encode(u.Weights, reference)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.PushEncoded(ctx, u, e); err != nil {
				t.Fatal(err)
			}
			if of == disdel.WireSignificant && f.residualNorm() != 0 {
				t.Errorf("member %d keeps %g", m, f.residualNorm())
			}
		}
		got, err := s.Reduce(ctx, ids, reference)
		if err != nil {
			t.Fatal(err)
		}
		means[wire] = flat(got.Weights)
	}
	for i, v := range means[disdel.WireFloat32] {
		if math.Float32bits(v) != math.Float32bits(means[disdel.WireSignificant][i]) {
			t.Errorf("value %d: %g, as float32 %g", i, means[disdel.WireSignificant][i], v)
		}
	}
}

// MLLess, section 4.1: an entry goes if what is owed of it is more than v / sqrt(t) of the weight.
func TestWhatIsSignificant(t *testing.T) {
	const denormal = math.SmallestNonzeroFloat32
	for _, c := range []struct {
		name         string
		threshold    float64
		round        int
		owed, weight float32
		sent         bool
	}{
		{"above", 0.5, 0, 0.51, 1, true},
		{"at the bound", 0.5, 0, 0.5, 1, false},
		{"below", 0.5, 0, 0.49, 1, false},
		{"both below 0", 0.5, 0, -0.51, -1, true},
		{"below 0 and small", 0.5, 0, -0.49, 1, false},
		{"the bound shrinks: 0.5 / sqrt(4)", 0.5, 3, 0.26, 1, true},
		{"to that and not below", 0.5, 3, 0.25, 1, false},
		{"a weight of 0", 0.5, 0, denormal, 0, true},
		{"a weight of 0 that nothing is owed to", 0.5, 0, 0, 0, false},
		{"nothing is owed", 0, 0, 0, 1, false},
		{"-0 is nothing", 0, 0, float32(math.Copysign(0, -1)), 1, false},
		{"without a bound", 0, 0, denormal, math.MaxFloat32, true},
		{"a huge bound", 1e300, 0, math.MaxFloat32 / 4, math.MaxFloat32, false},
	} {
		codec := codecs[wireNumber(disdel.WireSignificant)].open(Format{Threshold: c.threshold, Round: c.round})
		weights := func() []float32 { return []float32{c.weight} }
		b := codec.encode(nil, encodeInput{runs: []int{1}, values: []float32{c.owed}, weights: weights})
		if sent := len(b) > 1; sent != c.sent {
			t.Errorf("%s: sent is %v", c.name, sent)
		}
	}
	for _, f := range []Format{
		{Wire: disdel.WireSignificant, Threshold: -1},
		{Wire: disdel.WireSignificant, Threshold: math.NaN()},
		{Wire: disdel.WireSignificant, Threshold: math.Inf(1)},
		{Wire: disdel.WireSignificant, Round: -1},
	} {
		if _, err := NewFeedback(f, nil); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// Entries that point elsewhere are refused with the update's name, whatever the checksum says.
func TestEntriesThatBelongNowhereAreCorrupt(t *testing.T) {
	one := binary.LittleEndian.AppendUint32(nil, math.Float32bits(1))
	nan := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	for _, c := range []struct {
		why  string
		kind error
		b    []byte
	}{
		{"place 0 comes twice", disdel.Corrupt, slices.Concat([]byte{2, 1}, one, []byte{0}, one, []byte{0})},
		{"place -1 comes twice", disdel.Corrupt, slices.Concat([]byte{1, 0}, one, []byte{0})},
		{"beyond the 12 values", disdel.Corrupt, slices.Concat([]byte{1, 13}, one, []byte{0})},
		{"beyond the 3 values", disdel.Corrupt, slices.Concat([]byte{0, 2, 2}, one, []byte{2}, one)},
		{
			"beyond the 12 values", disdel.Corrupt,
			slices.Concat(binary.AppendUvarint([]byte{1}, math.MaxUint64), one, []byte{0}),
		},
		{"13 entries of 12 values", disdel.Corrupt, slices.Concat([]byte{13, 1}, one, []byte{0})},
		{"cut off", disdel.Corrupt, slices.Concat([]byte{1, 1}, one)},
		{"cut off", disdel.Corrupt, []byte{0x80, 0x80}},
		{"more than its entries", disdel.Corrupt, slices.Concat([]byte{0, 0}, one)},
		{"value 2 of a.weight is not finite", disdel.Diverged, slices.Concat([]byte{1, 3}, nan, []byte{0})},
	} {
		s := enter(t, embedded(t), "entries")
		reference, u := someWeights(1), update(4, 2)
		if err := s.PutReference(ctx, "job-1", 2, reference); err != nil {
			t.Fatal(err)
		}
		e := &Encoded{wire: disdel.WireSignificant, layout: newLayout(reference, s.column), columns: [][]byte{c.b}}
		if err := s.PushEncoded(ctx, u, e); err != nil {
			t.Fatal(err)
		}
		_, fetched := s.FetchUpdate(ctx, u.ID, reference)
		_, reduced := s.Reduce(ctx, []disdel.UpdateID{u.ID}, reference)
		for _, err := range []error{fetched, reduced} {
			e := disdel.AsError(err)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.why) || e.Subject == nil || *e.Subject != u.ID {
				t.Errorf("%s: %v", c.why, err)
			}
		}
		if _, err := s.Sweep(ctx, "job-1"); err != nil {
			t.Fatal(err)
		}
	}
}

// However the values lie, an update is at most as large as was said before it was made, at a threshold of 0 too.
func TestASparseUpdateIsNeverLargerThanForetold(t *testing.T) {
	for _, every := range []int{1, 2, 127, 128, 129, 1000} {
		w := lenet(1)
		reference := lenet(1)
		for i := range w {
			for k := range w[i].Data {
				if k%every == every-1 {
					w[i].Data[k] += 1
				}
			}
		}
		e, err := feedback(Format{Wire: disdel.WireSignificant}, nil).Encode(w, reference)
		if err != nil {
			t.Fatal(err)
		}
		foretold, sent := WireBytes(w, disdel.WireSignificant), e.Bytes()
		if sent > foretold || every == 1 && sent != foretold || every > 100 && sent > foretold/50 {
			t.Errorf("every %d: %d bytes, %d foretold", every, sent, foretold)
		}
		limit := disdel.Bytes(disdel.WireSignificant.SmallShare() * float64(WireBytes(w, disdel.WireFloat32)))
		if foretold > limit {
			t.Errorf("%d bytes foretold, %d planned for", foretold, limit)
		}
	}
}
