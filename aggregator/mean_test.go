package aggregator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// drawnWeights has values for some drawn tensors, of which some are empty.
func drawnWeights(rng *rand.Rand, shapes [][]int) disdel.Weights {
	var w disdel.Weights
	for i, shape := range shapes {
		n := 1
		for _, side := range shape {
			n *= side
		}
		t := disdel.Tensor{Name: fmt.Sprintf("t%d", i), Shape: shape, Data: make([]float32, n)}
		for k := range t.Data {
			t.Data[k] = float32(rng.NormFloat64() * math.Exp2(float64(rng.IntN(20)-10)))
		}
		w = append(w, t)
	}
	return w
}

// plainMean is the weighted mean by its definition: in float64, in the order of the members, the reference last.
type plainMean struct {
	sums               []float64
	total, differences float64
}

func (p *plainMean) add(values []float32, weight float64) {
	for i, v := range values {
		p.sums[i] += float64(weight * float64(v))
	}
}

// Of any tensors, members, weights and formats, in columns of any length, the mean that is written column by column has
// the bits of the definition: as an update, as a reference, read as a whole or in blocks, and where it is adjusted.
func TestAMeanInColumnsHasTheBitsOfItsDefinition(outer *testing.T) {
	s := enter(outer, embedded(outer), "definition")
	job := 0
	rapid.Check(outer, func(t *rapid.T) {
		job++
		id := disdel.UpdateID{Job: disdel.JobID(fmt.Sprintf("job-%d", job)), Round: rapid.IntRange(0, 3).Draw(t, "round")}
		defer s.Sweep(ctx, id.Job)
		s.column = rapid.SampledFrom([]int{1, 3, 4, 17, 256, 1000, columnValues}).Draw(t, "column")
		side := rapid.SampledFrom([]int{0, 1, 2, 3, 5, 8})
		shapes := rapid.SliceOfN(rapid.SliceOfN(side, 0, 3), 1, 5).Draw(t, "shapes")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		reference := drawnWeights(rng, shapes)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(s.PutReference(ctx, id.Job, id.Round, reference))
		want := plainMean{sums: make([]float64, reference.Len())}
		var ids []disdel.UpdateID
		for m := range rapid.IntRange(1, 7).Draw(t, "members") {
			u := disdel.Update{ID: id, Samples: rapid.Float64Range(0.5, 1e6).Draw(t, "samples")}
			u.ID.Member, u.Weights = m, drawnWeights(rng, shapes)
			ids, want.total = append(ids, u.ID), want.total+u.Samples
			wire := rapid.SampledFrom(disdel.Wires()).Draw(t, "wire")
			if wire == disdel.WireFloat32 {
				must(s.PushUpdate(ctx, u))
				want.add(flat(u.Weights), u.Samples)
				continue
			}
			f, err := NewFeedback(Format{Wire: wire, Threshold: float64(rng.IntN(2)), Round: id.Round}, nil)
			must(err)
			f.column = s.column
			e, err := f.Encode(u.Weights, reference)
			must(err)
			must(s.PushEncoded(ctx, u, e))
			want.add(flat(decoded(outer, e)), u.Samples)
			want.differences += u.Samples
		}
		if want.differences > 0 {
			want.add(flat(reference), want.differences)
		}
		c := Claim{ID: disdel.UpdateID{Job: id.Job, Round: id.Round, Level: 1}}
		what := Reduction{Members: ids, Like: reference, Reference: rapid.Bool().Draw(t, "reference")}
		least := rapid.SampledFrom([]float32{float32(math.Inf(-1)), 0}).Draw(t, "least value of t0")
		what.Adjust = func(tensor string, values []float32) {
			for i := range values {
				if tensor == "t0" {
					values[i] = max(values[i], least)
				}
			}
		}
		mean, err := s.Store.Reduce(ctx, c, what)
		must(err)
		must(s.CommitMean(ctx, mean))
		var got, blocks []float32
		if what.Reference {
			w, err := s.Reference(ctx, id.Job, id.Round+1, reference)
			must(err)
			got = flat(w)
			must(s.StreamReference(ctx, id.Job, id.Round+1, reference, func(block []float32) error {
				blocks = append(blocks, block...)
				return nil
			}))
			from := rapid.IntRange(0, len(got)).Draw(t, "first value of a part")
			to := rapid.IntRange(from, len(got)).Draw(t, "end of the part")
			var part []float32
			must(s.StreamReferencePart(ctx, id.Job, id.Round+1, reference, from, to, func(block []float32) error {
				part = append(part, block...)
				return nil
			}))
			if !slices.Equal(part, got[from:to]) {
				t.Fatalf("values %d to %d are %v, want %v", from, to, part, got[from:to])
			}
		} else {
			u, err := s.FetchUpdate(ctx, c.ID, reference)
			must(err)
			got, blocks = flat(u.Weights), flat(u.Weights)
			if u.Samples != want.total {
				t.Fatalf("%g samples, want %g", u.Samples, want.total)
			}
		}
		if len(got) != len(want.sums) || len(blocks) != len(got) {
			t.Fatalf("%d values, %d in blocks, want %d", len(got), len(blocks), len(want.sums))
		}
		for i, sum := range want.sums {
			value := float32(sum / want.total)
			if i < len(reference[0].Data) {
				value = max(value, least)
			}
			if math.Float32bits(got[i]) != math.Float32bits(value) || got[i] != blocks[i] {
				t.Fatalf("value %d is %g, in blocks %g, want %g", i, got[i], blocks[i], value)
			}
		}
	})
}

// ofMeans are the keys of values that an aggregation made: at level 1, or the next reference.
func (p *place) ofMeans() (out []string) {
	for key := range p.all() {
		if strings.Contains(key, "update:2:1:") || strings.Contains(key, "reference:3:") {
			out = append(out, key)
		}
	}
	return out
}

// A mean is read by nobody before it is committed. Of an attempt that was taken over, or could not write it all, no
// column stays.
func TestAMeanThatIsNotCommittedLeavesNothing(t *testing.T) {
	address := []string{plainRedis(t)}
	s := enter(t, serverUnderTest{disdel.Store{URLs: address}, address}, "left")
	s.column = columnValues / 16
	like := disdel.Weights{{Name: "w", Shape: []int{20 * s.column}, Data: make([]float32, 20*s.column)}}
	var ids []disdel.UpdateID
	for m := range 3 {
		u := update(m, 1)
		u.Weights = like
		push(t, s, u)
		ids = append(ids, u.ID)
	}
	for _, reference := range []bool{false, true} {
		id := disdel.UpdateID{Job: "job-1", Round: 2, Level: 1}
		what := Reduction{Members: ids, Like: like, Reference: reference}
		old := claim(t, s, id, "a", 1, Claimed)
		mean, err := s.Store.Reduce(ctx, old, what)
		if err != nil || mean.Samples != 3 {
			t.Fatalf("%g samples, %v", mean.Samples, err)
		}
		if len(s.ofMeans()) != 20 {
			t.Errorf("%d columns before the commit", len(s.ofMeans()))
		}
		if _, err := s.FetchUpdate(ctx, id, like); !errors.Is(err, disdel.NotFound) {
			t.Errorf("an update before the commit: %v", err)
		}
		young := claim(t, s, id, "b", 2, Claimed)
		want(t, disdel.Conflict, s.CommitMean(ctx, mean))
		canceled, cancel := context.WithCancel(ctx)
		broken := what
		broken.Adjust = func(string, []float32) { cancel() } // in its first column
		_, err = s.Store.Reduce(canceled, young, broken)
		want(t, disdel.Canceled, err)
		if left := s.ofMeans(); len(left) > 0 {
			t.Errorf("%d keys are left", len(left))
		}
		if err := s.Release(ctx, young); err != nil {
			t.Fatal(err)
		}
	}
	servers, err := s.Capacity(ctx)
	if err != nil {
		t.Fatal(err)
	}
	most := int64(servers[0].Used) + int64(4*6*s.column) // six of twenty columns
	if err := s.admins[0].ConfigSet(ctx, "maxmemory", fmt.Sprint(most)).Err(); err != nil {
		t.Fatal(err)
	}
	full := Claim{ID: disdel.UpdateID{Job: "job-1", Round: 2, Level: 1}}
	_, err = s.Store.Reduce(ctx, full, Reduction{Members: ids, Like: like})
	want(t, disdel.OverLimit, err)
	if left := s.ofMeans(); len(left) > 0 {
		t.Errorf("%d keys are left on a full server", len(left))
	}
}
