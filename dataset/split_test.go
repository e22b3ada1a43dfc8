package dataset

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// A job divides its rows today as the versions before did: the order is that of Perm, and each shard's rows are in it.
func TestSplitsAreThoseOfEarlierVersions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "rows")
		split := disdel.Split{
			Train: rapid.SampledFrom([]float64{0, 0.5, 0.8}).Draw(t, "share"),
			Seed:  rapid.Int64().Draw(t, "seed"),
		}
		s, err := OpenStore(ctx, "mem://")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		in := Input{
			Name: "a", Classes: n,
			Train: Samples{Shape: []int{1, 1, 1}, U8: make([]byte, n), Labels: make([]int32, n)},
		}
		for i := range n {
			in.Train.Labels[i] = int32(i)
		}
		m, err := s.Add(ctx, in, false)
		if err != nil {
			t.Fatal(err)
		}
		order := rand.New(rand.NewPCG(uint64(split.Seed), 0x5eed)).Perm(n)
		ref, info := disdel.DataRef{Name: "a", Checksum: m.Checksum(), Split: split}, m.Info(split)
		var got []int
		for _, rows := range []disdel.RowRange{
			{End: info.Train / 2},
			{Start: info.Train / 2, End: info.Train},
			{End: info.HeldOut},
		} {
			read := s.ReadTrain
			if len(got) == info.Train && rows.Start == 0 {
				read = s.ReadHeldOut
			}
			shard, err := read(ctx, ref, rows)
			if err != nil {
				t.Fatal(err)
			}
			for _, y := range shard.labels {
				got = append(got, int(y))
			}
		}
		if !slices.Equal(got, order) {
			t.Fatalf("rows %v, and earlier versions took %v", got, order)
		}
		if epoch := Order(nil, split.Seed, 3, 2, n); !slices.EqualFunc(epoch,
			rand.New(rand.NewPCG(uint64(split.Seed), 3<<32|2)).Perm(n), func(a int32, b int) bool { return int(a) == b }) {
			t.Fatalf("an epoch's order is another one: %v", epoch)
		}
	})
}

// Rows of a drawn split take their own memory, a chunk's, and four bytes for each row of the set: nothing more for
// each.
func TestDrawnSplitsTakeLittleMemory(t *testing.T) {
	const rows, sample = 2_000_000, 6
	s, err := OpenStore(ctx, "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in := Input{Name: "a", Train: Samples{
		Shape: []int{1, 1, sample}, U8: make([]byte, rows*sample),
		Labels: make([]int32, rows),
	}}
	m, err := s.Add(ctx, in, false)
	if err != nil {
		t.Fatal(err)
	}
	ref := disdel.DataRef{Name: "a", Checksum: m.Checksum(), Split: disdel.Split{Train: 0.8, Seed: 1}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	shard, err := s.ReadTrain(ctx, ref, disdel.RowRange{End: rows / 2})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	got := disdel.Bytes(after.TotalAlloc - before.TotalAlloc)
	if most := shard.Size() + chunkBytes/sample*(sample+4) + 4*rows + 1<<20; got > most {
		t.Errorf("reading %v of rows allocated %v, and %v is planned for", shard.Size(), got, most)
	}
	runtime.ReadMemStats(&before)
	info := m.Info(ref.Split)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<16 || info.Train != rows*8/10 || !info.Drawn {
		t.Errorf("counting the rows of a split allocated %d bytes: %+v", n, info)
	}
}
