package dataset

import (
	"errors"
	"slices"
	"testing"

	"github.com/disdel/disdel"
)

// Rows of the part all are those of the data set as they are stored, whatever the split; of the others they are what
// jobs read.
func TestPartsAreCountedAsTheyAreStored(t *testing.T) {
	s, err := OpenStore(ctx, "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]Input{"divided": someInput("divided", 25, 7), "whole": someInput("whole", 32, 0)} {
		m, err := s.Add(ctx, in, false)
		if err != nil {
			t.Fatal(err)
		}
		ref := disdel.DataRef{Name: name, Checksum: m.Checksum(), Split: disdel.Split{Train: 0.5, Validation: 0.5, Seed: 3}}
		want := slices.Clone(in.Train.Labels)
		if in.Test != nil {
			want = append(want, in.Test.Labels...)
		}
		var got []int32
		for from := 0; from < 32; from += 9 { // across the border between the two
			shard, err := s.ReadPart(ctx, ref, disdel.PartAll, disdel.RowRange{Start: from, End: min(from+9, 32)})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, shard.Labels()...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		held, err := s.ReadHeldOut(ctx, ref, disdel.RowRange{Start: 1, End: 5})
		if err != nil {
			t.Fatal(err)
		}
		part, err := s.ReadPart(ctx, ref, disdel.PartTest, disdel.RowRange{Start: 1, End: 5})
		if err != nil || !slices.Equal(part.Labels(), held.Labels()) {
			t.Errorf("%s: held out %v, want %v, %v", name, part.Labels(), held.Labels(), err)
		}
		for _, c := range []struct {
			part disdel.DataPart
			rows disdel.RowRange
		}{{disdel.PartAll, disdel.RowRange{Start: 5, End: 33}}, {"half", disdel.RowRange{End: 1}}} {
			if _, err := s.ReadPart(ctx, ref, c.part, c.rows); !errors.Is(err, disdel.Invalid) {
				t.Errorf("%s %v: %v", c.part, c.rows, err)
			}
		}
	}
	m, err := s.AddSparse(ctx, someSparse("sparse", 40, 5, false, true), false)
	if err != nil {
		t.Fatal(err)
	}
	shard, err := s.ReadPart(ctx, disdel.DataRef{Name: "sparse", Checksum: m.Checksum()}, disdel.PartAll,
		disdel.RowRange{Start: 34, End: 38})
	// of 40 rows every tenth is held out, and stored behind the 36 others
	if want := []float32{37, 38, 9, 19}; err != nil || !slices.Equal(shard.Targets(), want) {
		t.Errorf("sparse rows %v, want %v, %v", shard.Targets(), want, err)
	}
}
