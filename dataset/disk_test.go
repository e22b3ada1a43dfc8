package dataset

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/race"
)

// drawnInput is dense rows of a drawn type and shape, with classes or numbers to predict.
func drawnInput(t *rapid.T) DenseInput {
	side := rapid.IntRange(1, 9).Draw(t, "side")
	in := DenseInput{
		Name: "drawn", Shape: []int{rapid.IntRange(1, 3).Draw(t, "channels"), side, side}, Classes: 3,
		Bytes: rapid.Bool().Draw(t, "bytes"),
	}
	rows, n := rapid.IntRange(3, 60).Draw(t, "rows"), in.Shape[0]*side*side
	in.Each = func(yield func(DenseRow) error) error {
		for i := range rows {
			row := DenseRow{Label: int32(i % 3)}
			for k := range n {
				if in.Bytes {
					row.Bytes = append(row.Bytes, byte(i*7+k))
				} else {
					row.Values = append(row.Values, float32(i)+float32(k)/7)
				}
			}
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	}
	return in
}

// Rows on disk give the same batches as rows in memory, to the bit: whatever their type, split, size and augmentation,
// in any order, and from any number of goroutines.
func TestRowsOnDiskAreThoseInMemory(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := memory(t)
		m, err := s.AddDense(ctx, drawnInput(r), false)
		if err != nil {
			r.Fatal(err)
		}
		ref := disdel.DataRef{
			Name: m.Name, Checksum: m.Checksum(), Split: disdel.Split{Train: 0.8, Validation: 0.2, Seed: 4},
			Resize: rapid.SampledFrom([]int{0, 5, 12}).Draw(r, "resize"),
		}
		if rapid.Bool().Draw(r, "augment") {
			ref.Augment = disdel.Augment{Flip: true}
		}
		train := m.Info(ref.Split).Train
		from := rapid.IntRange(0, train-1).Draw(r, "from")
		rows := disdel.RowRange{Start: from, End: rapid.IntRange(from+1, train).Draw(r, "to")}
		want, err := s.ReadTrain(ctx, ref, rows)
		if err != nil {
			r.Fatal(err)
		}
		ref.OnDisk = true
		got, err := s.ReadTrain(ctx, ref, rows)
		if err != nil {
			r.Fatal(err)
		}
		defer got.Close()
		if in := got.Size() - 8*disdel.Bytes(got.Len()); in > want.Size() && got.Len() > 8 {
			r.Errorf("%v in memory beside labels and places, of %v", in, want.Size())
		}
		order := Order(nil, 1, 2, 3, want.Len())
		a, b := want.NewBatch(want.Len()), got.NewBatch(want.Len())
		want.Filler(1).FillAugmented(&a, order, 7, 1)
		got.Filler(rapid.IntRange(1, 4).Draw(r, "threads")).FillAugmented(&b, order, 7, 1)
		same := slices.EqualFunc(a.Input.Values, b.Input.Values, func(x, y float32) bool {
			return math.Float32bits(x) == math.Float32bits(y)
		})
		if !same || !slices.Equal(a.Target.Classes, b.Target.Classes) {
			r.Error("the batches differ")
		}
	})
}

// shardMemoryEnv has a child of TestMemoryDoesNotGrowWithRowsOnDisk read so many rows; it prints its peak memory.
const shardMemoryEnv = "DISDEL_TEST_SHARD_ROWS"

// An action's memory does not grow with rows on disk: a child reads 8 and 160 MB, and fills batches of all of them.
func TestMemoryDoesNotGrowWithRowsOnDisk(t *testing.T) {
	if rows := os.Getenv(shardMemoryEnv); rows != "" {
		readOnDisk(t, rows)
		return
	}
	race.SkipMemory(t)
	if testing.Short() || inMemory(os.TempDir()) && inMemory("/var/tmp") {
		t.Skip("writes 168 MB, and there is no disk")
	}
	peak := func(rows int) (kb int) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestMemoryDoesNotGrowWithRowsOnDisk$", "-test.v")
		cmd.Env = append(os.Environ(), shardMemoryEnv+"="+strconv.Itoa(rows), "GOMEMLIMIT=60MiB")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_, after, _ := strings.Cut(string(out), "VmHWM:")
		if _, err := fmt.Sscan(after, &kb); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return kb
	}
	small, large := peak(10_000), peak(200_000)
	if large > small+16_000 { // labels and places are 3 MB of it, and the collector leaves more or less
		t.Errorf("%d KB of 160 MB of rows, and %d KB of 8 MB", large, small)
	}
	t.Logf("%d KB of 8 MB of rows, %d KB of 160 MB", small, large)
}

func readOnDisk(t *testing.T, text string) {
	t.Helper()
	rows, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(ctx, "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := DenseInput{Name: "large", Shape: []int{1, 20, 40}, Classes: 2, Bytes: true}
	in.Each = func(yield func(DenseRow) error) error {
		row := DenseRow{Bytes: make([]byte, 800)}
		for i := range rows {
			row.Bytes[i%800]++
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	}
	m, err := s.AddDense(ctx, in, false)
	if err != nil {
		t.Fatal(err)
	}
	ref := disdel.DataRef{Name: m.Name, Checksum: m.Checksum(), Split: disdel.Split{Train: 1}, OnDisk: true}
	shard, err := s.ReadTrain(ctx, ref, disdel.RowRange{End: rows})
	if err != nil {
		t.Fatal(err)
	}
	defer shard.Close()
	b, order := shard.NewBatch(100), Order(nil, 1, 2, 3, rows)
	for at := 0; at+100 <= rows; at += 100 {
		shard.Fill(&b, order[at:at+100])
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	fmt.Println("VmHWM:", strings.Fields(peak)[0])
}
