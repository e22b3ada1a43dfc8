package aggregator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

func reduceIsTheMean(t *testing.T, s *place) {
	for _, column := range []int{columnValues, 4} {
		s.column = column
		var ids []disdel.UpdateID
		var list []disdel.Update
		for m, n := range []float64{10, 30, 20} {
			u := update(m, n)
			u.ID.Job = disdel.JobID(fmt.Sprintf("job-%d", column))
			push(t, s, u)
			ids, list = append(ids, u.ID), append(list, u)
		}
		got, err := s.Reduce(ctx, ids, someWeights(1))
		if err != nil {
			t.Fatal(err)
		}
		if got.Samples != 60 {
			t.Errorf("%g samples, want 60", got.Samples)
		}
		for i := range got.Weights {
			for k, v := range got.Weights[i].Data {
				want := (10*float64(list[0].Weights[i].Data[k]) + 30*float64(list[1].Weights[i].Data[k]) +
					20*float64(list[2].Weights[i].Data[k])) / 60
				if v != float32(want) {
					t.Errorf("%s[%d] = %g, want %g", got.Weights[i].Name, k, v, want)
				}
			}
		}
		other := ids[0]
		other.Member = 8
		_, err = s.Reduce(ctx, append(ids, other), someWeights(1))
		want(t, disdel.NotFound, err)
		_, err = s.Reduce(ctx, ids, someWeights(1)[:1])
		want(t, disdel.Corrupt, err)
	}
	_, err := s.Reduce(ctx, nil, someWeights(1))
	want(t, disdel.Invalid, err)
}

// What a producer says of its update grows with the epochs of its round, and is no part of the mean.
func reduceTakesWhatIsSaid(t *testing.T, s *place) {
	for _, column := range []int{columnValues, 4} {
		s.column = column
		u := update(1, 10)
		u.ID.Job = disdel.JobID(fmt.Sprintf("job-%d", column))
		// a loss for each of so many epochs
		u.Meta = map[string]string{"result": strings.Repeat("0.12345678901234567,", 10000)}
		push(t, s, u)
		if got, err := s.Reduce(ctx, []disdel.UpdateID{u.ID}, someWeights(1)); err != nil || got.Samples != 10 {
			t.Errorf("columns of %d: %g samples, %v", column, got.Samples, err)
		}
		u.ID.Member, u.Meta["result"] = 2, strings.Repeat("x", 2*maxMeta)
		push(t, s, u)
		_, err := s.Reduce(ctx, []disdel.UpdateID{u.ID}, someWeights(1))
		want(t, disdel.Corrupt, err)
	}
}

// Members whose sum depends on the order show that it is theirs.
func reduceKeepsOrder(t *testing.T, s *place) {
	s.column = 4
	var ids []disdel.UpdateID
	for m, v := range []float32{1e30, 1, -1e30} {
		u := update(m, 1)
		for _, tensor := range u.Weights {
			for i := range tensor.Data {
				tensor.Data[i] = v
			}
		}
		push(t, s, u)
		ids = append(ids, u.ID)
	}
	for _, c := range []struct {
		order []disdel.UpdateID
		want  float32
	}{{ids, 0}, {[]disdel.UpdateID{ids[0], ids[2], ids[1]}, float32(1.0 / 3)}} {
		got, err := s.Reduce(ctx, c.order, someWeights(1))
		if err != nil {
			t.Fatal(err)
		}
		for _, tensor := range got.Weights {
			for _, v := range tensor.Data {
				if v != c.want {
					t.Fatalf("%v gives %g, want %g", c.order, v, c.want)
				}
			}
		}
	}
}

// narrowFormatsTravel: workers of three formats in one mean, which holds the reference once.
func narrowFormatsTravel(t *testing.T, s *place) {
	for _, column := range []int{columnValues, 4} {
		s.column = column
		job := disdel.JobID(fmt.Sprintf("job-%d", column))
		reference := someWeights(50)
		if err := s.PutReference(ctx, job, 2, reference); err != nil {
			t.Fatal(err)
		}
		var ids []disdel.UpdateID
		sum, total := someWeights(0), 0.0
		for _, tensor := range sum {
			clear(tensor.Data)
		}
		for m, wire := range []disdel.Wire{disdel.WireInt8, disdel.WireFloat32, disdel.WireBfloat16} {
			u := update(m, float64(10+m))
			u.ID.Job = job
			pushAs(t, s, u, wire, reference)
			got, err := s.FetchUpdate(ctx, u.ID, reference)
			if err != nil {
				t.Fatal(err)
			}
			near(t, u.Weights, got.Weights, 0.02)
			for i := range sum {
				for k := range sum[i].Data {
					sum[i].Data[k] += float32(u.Samples) * got.Weights[i].Data[k]
				}
			}
			ids, total = append(ids, u.ID), total+u.Samples
		}
		got, err := s.Reduce(ctx, ids, reference)
		if err != nil {
			t.Fatal(err)
		}
		for i := range sum {
			for k := range sum[i].Data {
				sum[i].Data[k] /= float32(total)
			}
		}
		near(t, sum, got.Weights, 1e-5)
		if err := s.DropRound(ctx, job, 2); err != nil {
			t.Fatal(err)
		}
		for m, wire := range []disdel.Wire{disdel.WireInt8, disdel.WireFloat32} {
			u := update(m, 1)
			u.ID.Job = job
			pushAs(t, s, u, wire, reference)
		}
		_, err = s.Reduce(ctx, ids[:2], reference)
		want(t, disdel.NotFound, err) // differences without what they differ from
	}
}

func pushAs(t *testing.T, s *place, u disdel.Update, wire disdel.Wire, reference disdel.Weights) {
	t.Helper()
	if wire == disdel.WireFloat32 {
		push(t, s, u)
		return
	}
	f, err := NewFeedback(Format{Wire: wire}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.column = s.column
	e, err := f.Encode(u.Weights, reference)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.PushEncoded(ctx, u, e); err != nil {
			t.Fatal(err)
		}
	}
}

func near(t *testing.T, want, got disdel.Weights, tolerance float64) {
	t.Helper()
	for i := range want {
		for k, v := range want[i].Data {
			if d := math.Abs(float64(v - got[i].Data[k])); !(d <= tolerance) {
				t.Errorf("%s[%d] = %g, want %g", want[i].Name, k, got[i].Data[k], v)
			}
		}
	}
}

func bytesOf(v []float32) []byte {
	return encodeColumn(nil, disdel.WireFloat32, nil, v)
}

// The vector code and the plain loop give the same bits, and see the same values that are not finite.
func TestEveryPathAddsAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 70).Draw(t, "values")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		v, a := make([]float32, n), make(sums, n)
		for i := range v {
			v[i], a[i] = float32(rng.NormFloat64()), rng.NormFloat64()
		}
		if n > 0 && rapid.Bool().Draw(t, "odd one") {
			v[rng.IntN(n)] = rapid.SampledFrom([]float32{
				float32(math.NaN()), float32(math.Inf(-1)), math.MaxFloat32,
				math.SmallestNonzeroFloat32, float32(math.Copysign(0, -1)),
			}).Draw(t, "which")
		}
		b, c := append(sums{}, a...), append(sums{}, a...)
		weight := rapid.Float64Range(0.1, 1e6).Draw(t, "weight")
		bad := bytesOf(v)
		if values, _ := append(sums{}, a...).last(make([]float32, n), bad, weight, 1); values != (notFinite(v) < 0) ||
			append(sums{}, a...).set(bad, weight) != values {
			t.Fatalf("a first or a last member: finite is %v", notFinite(v) < 0)
		}
		okA, okB, okC := a.add(bytesOf(v), weight), addScalar(b, bytesOf(v), weight), c.addFloats(v, weight)
		if finite := notFinite(v) < 0; okA != finite || okB != finite || okC != finite {
			t.Fatalf("finite is %v: %v %v %v", finite, okA, okB, okC)
		}
		if !okA {
			return
		}
		for i := range a {
			if math.Float64bits(a[i]) != math.Float64bits(b[i]) || a[i] != c[i] {
				t.Fatalf("sum %d: %g %g %g", i, a[i], b[i], c[i])
			}
		}
		first, begun := append(sums{}, a...), make(sums, n) // of a first member, whatever the sums were
		if !first.set(bytesOf(v), weight) || !addScalar(begun, bytesOf(v), weight) {
			t.Fatal("the first member is not finite")
		}
		for i := range first {
			if math.Float64bits(first[i]) != math.Float64bits(begun[i]) {
				t.Fatalf("first sum %d: %g %g", i, first[i], begun[i])
			}
		}
		x, y := make([]float32, n), make([]float32, n)
		total := rapid.Float64Range(1e-30, 1e6).Draw(t, "total")
		okX, okY := a.mean(x, total), meanScalar(y, a, total)
		if finite := notFinite(y) < 0; okX != finite || okY != finite || finite && !slices.Equal(x, y) {
			t.Fatalf("means: %v %v %v", okX, okY, finite)
		}
		z := make([]float32, n) // of a last member, on the way
		values, means := begun.last(z, bytesOf(v), weight, total)
		if !addScalar(first, bytesOf(v), weight) || !values || means != meanScalar(y, first, total) || means &&
			!slices.Equal(y, z) {
			t.Fatalf("the last member's means: %v %v", values, means)
		}
	})
}

// Two members in one pass give the bits of one after the other, on every path, and a value that is not finite is seen
// in either of them.
func TestTwoMembersInOnePassAddAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 70).Draw(t, "values")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		v, start := [2][]float32{make([]float32, n), make([]float32, n)}, make(sums, n)
		for i := range n {
			v[0][i], v[1][i], start[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64()), rng.NormFloat64()
		}
		odd := []float32{float32(math.NaN()), float32(math.Inf(-1)), math.MaxFloat32, float32(math.Copysign(0, -1))}
		if n > 0 && rapid.Bool().Draw(t, "odd one") {
			v[rng.IntN(2)][rng.IntN(n)] = rapid.SampledFrom(odd).Draw(t, "which")
		}
		weight := rapid.Float64Range(0.1, 1e6)
		a := column{bytesOf(v[0]), weight.Draw(t, "weight")}
		b := column{bytesOf(v[1]), weight.Draw(t, "other weight")}
		total := rapid.Float64Range(1e-30, 1e6).Draw(t, "total")
		finite := notFinite(v[0]) < 0 && notFinite(v[1]) < 0
		means := make([]float32, n)
		added, set, last := slices.Clone(start), slices.Clone(start), slices.Clone(start)
		values, ok := last.lastTwo(means, a, b, total)
		if added.addTwo(a, b) != finite || set.setTwo(a, b) != finite || values != finite {
			t.Fatalf("finite is %v", finite)
		}
		if !finite {
			return
		}
		one, begun, wanted := slices.Clone(start), make(sums, n), make([]float32, n)
		for _, c := range []column{a, b} {
			addScalar(one, c.bytes, c.weight)
			addScalar(begun, c.bytes, c.weight)
		}
		if !sameBits(added, one) || !sameBits(set, begun) {
			t.Fatal("the sums differ from those of one member after the other")
		}
		if ok != meanScalar(wanted, one, total) || ok && !slices.Equal(means, wanted) {
			t.Fatalf("the means differ, or %v is wrong", ok)
		}
	})
}

func sameBits(a, b sums) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}

// However many members there are, every one counts once, and the one that is not finite is named.
func TestAnyNumberOfMembersIsAddedAndNamed(t *testing.T) {
	s := enter(t, embedded(t), "pairs")
	s.column = 40
	const values = 100
	var ids []disdel.UpdateID
	sum, total := make([]float64, values), 0.0
	for m := range 7 {
		u := disdel.Update{ID: disdel.UpdateID{Job: "job-1", Member: m}, Samples: float64(1 + m)}
		data := make([]float32, values)
		for i := range data {
			data[i] = float32(m*m) + float32(i)/8
			sum[i] += u.Samples * float64(data[i])
		}
		u.Weights = disdel.Weights{{Name: "w", Shape: []int{values}, Data: data}}
		push(t, s, u)
		ids, total = append(ids, u.ID), total+u.Samples
		got, err := s.Reduce(ctx, ids, u.Weights)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got.Weights[0].Data {
			if v != float32(sum[i]/total) {
				t.Fatalf("%d members, value %d: %g, want %g", len(ids), i, v, sum[i]/total)
			}
		}
		for bad := range ids {
			broken := slices.Clone(ids)
			broken[bad] = s.pushNaN(t, u.Weights, bad)
			_, err := s.Reduce(ctx, broken, u.Weights)
			e := disdel.AsError(err)
			if !errors.Is(err, disdel.Diverged) || e.Subject == nil || *e.Subject != broken[bad] {
				t.Fatalf("member %d of %d: %v", bad, len(ids), err)
			}
		}
	}
}

// pushNaN puts an update with a NaN in its second column where nobody can push one, and returns its id.
func (p *place) pushNaN(t *testing.T, like disdel.Weights, member int) disdel.UpdateID {
	t.Helper()
	id := disdel.UpdateID{Job: "job-1", Level: 1, Member: member}
	data := make([]float32, like.Len())
	data[50] = float32(math.NaN())
	h := &head{
		kind: kindUpdate, id: id, samples: 1, wire: disdel.WireFloat32, codec: float32s{},
		layout: newLayout(like, p.column),
	}
	if err := p.publish(ctx, h, fromWeights(h, h.layout.weightsOver(data)), id, 0); err != nil {
		t.Fatal(err)
	}
	return id
}

// Any tree of means equals the flat mean; equal orders give equal bits (DiSDeL III-B.1, Fig. 6: levels).
func TestTreesOfMeansEqualTheFlatMean(t *testing.T) {
	at := enter(t, embedded(t), "trees")
	at.column = 4
	const n = 9
	var ids []disdel.UpdateID
	for m := range n {
		u := update(m, float64(1+7*m%5))
		push(t, at, u)
		ids = append(ids, u.ID)
	}
	flat, err := at.Reduce(ctx, ids, someWeights(0))
	if err != nil {
		t.Fatal(err)
	}
	again, _ := at.Reduce(ctx, ids, someWeights(0))
	if diff := cmp.Diff(flat, again); diff != "" {
		t.Fatalf("equal orders differ:\n%s", diff)
	}
	for cut := 1; cut < n; cut++ {
		var top []disdel.UpdateID
		for c, part := range [][]disdel.UpdateID{ids[:cut], ids[cut:]} {
			u, err := at.Reduce(ctx, part, someWeights(0))
			if err != nil {
				t.Fatal(err)
			}
			u.ID = disdel.UpdateID{Job: "job-1", Round: 2, Level: cut, Member: c}
			push(t, at, u)
			top = append(top, u.ID)
		}
		tree, err := at.Reduce(ctx, top, someWeights(0))
		if err != nil {
			t.Fatal(err)
		}
		if tree.Samples != flat.Samples {
			t.Errorf("%g samples, want %g", tree.Samples, flat.Samples)
		}
		near(t, flat.Weights, tree.Weights, 1e-6)
	}
}

// A mean beyond float32 is refused: the reference and a difference are finite, their sum is not.
func TestAMeanThatOverflowsIsRefused(t *testing.T) {
	s := enter(t, embedded(t), "overflow")
	reference, weights := someWeights(1), someWeights(1)
	reference[0].Data[0], weights[0].Data[0] = -math.MaxFloat32, -math.MaxFloat32
	f, _ := NewFeedback(Format{Wire: disdel.WireInt8}, nil)
	e, err := f.Encode(someWeights(2), someWeights(1))
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(e.columns[0], math.Float32bits(-math.MaxFloat32/200)) // the first block's scale
	e.columns[0][4] = 127
	if err := s.PutReference(ctx, "job-1", 2, reference); err != nil {
		t.Fatal(err)
	}
	u := update(0, 1)
	if err := s.PushEncoded(ctx, u, e); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reduce(ctx, []disdel.UpdateID{u.ID}, reference); !errors.Is(err, disdel.Diverged) {
		t.Errorf("got %v, want Diverged", err)
	}
}

// Whatever the fan-in and the size of the weights, a reduction holds a few columns, and so does reading a reference in
// blocks. All that they allocate is bounded here, held or not.
func TestAReductionHoldsAFewColumns(t *testing.T) {
	s := enter(t, redisServer(t), "memory")
	const columns, most = 24, 10 // three that are read, two of sums (they are float64), one of means, two that are written
	weights := disdel.Weights{
		{Name: "w", Shape: []int{columns * columnValues}, Data: make([]float32, columns*columnValues)},
	}
	var ids []disdel.UpdateID
	for m := range 6 {
		u := update(m, 1)
		u.Weights = weights
		push(t, s, u)
		ids = append(ids, u.ID)
	}
	defer s.Sweep(ctx, "job-1")
	held := func(what string, do func() error) {
		t.Helper()
		if got := columnsTaken(t, do); got > most {
			t.Errorf("%s: %.1f columns of %d", what, got, columns)
		}
	}
	for _, members := range []int{2, 6} {
		c := Claim{ID: disdel.UpdateID{Job: "job-1", Round: 2, Level: 1, Member: members}}
		held("a mean", func() error {
			m, err := s.Store.Reduce(ctx, c, Reduction{Members: ids[:members], Like: weights, Reference: members > 2})
			if err != nil {
				return err
			}
			return s.CommitMean(ctx, m)
		})
	}
	held("its values", func() error {
		return s.StreamReference(ctx, "job-1", 3, weights, func([]float32) error { return nil })
	})
}

// columnsTaken is the memory that do takes, in columns of float32.
func columnsTaken(t *testing.T, do func() error) float64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := do(); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / (4 * columnValues)
}

// The estimate counts buffers by the weights, up to three columns. So weights a little longer than a column have no
// further buffer of a whole one.
func TestBuffersAreAsLongAsTheirColumns(t *testing.T) {
	s := enter(t, redisServer(t), "buffers")
	defer s.Sweep(ctx, "job-1")
	push(t, s, update(0, 1)) // makes the connections
	const other = 0.2        // heads, commands and the like, in columns
	for round, weights := range []float64{0.5, 0.99, 1.02, 1.5, 2.01, 3.5} {
		n := int(weights * columnValues)
		u := update(1, 1)
		u.ID.Round, u.Weights = round, disdel.Weights{{Name: "w", Shape: []int{n}, Data: make([]float32, n)}}
		held := func(what string, most float64, do func() error) {
			t.Helper()
			if got := columnsTaken(t, do); got > most+other {
				t.Errorf("%s of %.2f columns: %.2f columns, not %.2f", what, weights, got, most)
			}
		}
		bounded := min(weights, readDepth)
		if err := s.PutReference(ctx, "job-1", round, u.Weights); err != nil {
			t.Fatal(err)
		}
		held("a push", 2*bounded, func() error { return s.PushUpdate(ctx, u) })
		held("an update that is read", weights+bounded, func() error {
			_, err := s.FetchUpdate(ctx, u.ID, u.Weights)
			return err
		})
		held("a reference in columns", min(weights, 1)+bounded, func() error {
			return s.StreamReference(ctx, "job-1", round, u.Weights, func([]float32) error { return nil })
		})
	}
}

// Networks without weights have updates all the same: what stands for samples.
func TestAMeanOfNoArraysIsOne(t *testing.T) {
	s := enter(t, embedded(t), "empty")
	var ids []disdel.UpdateID
	for m := range 2 {
		u := update(m, 3)
		u.Weights = disdel.Weights{}
		push(t, s, u)
		ids = append(ids, u.ID)
	}
	got, err := s.Reduce(ctx, ids, disdel.Weights{})
	if err != nil || got.Samples != 6 || len(got.Weights) != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := s.PutReference(ctx, "job-1", 3, got.Weights); err != nil {
		t.Fatal(err)
	}
	if w, err := s.Reference(ctx, "job-1", 3, disdel.Weights{}); err != nil || len(w) != 0 {
		t.Errorf("%v, %v", w, err)
	}
}
