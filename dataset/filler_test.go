package dataset

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

func ExampleFiller() {
	s := &Shard{sample: 1, f32: []float32{1, 2, 3}, labels: []int32{0, 1, 0}, scale: 2}
	b, f := s.NewBatch(2), s.Filler(2)
	f.Fill(&b, []int32{2, 0})
	fmt.Println(b.Input.Values, b.Target.Classes)
	// Output: [6 2] [0 0]
}

// bytesOf is a shard of so many images of 8-bit values, [3 side side], all different.
func bytesOf(rows, side, resize int, how disdel.Augment) *Shard {
	shape := []int{3, side, side}
	s := &Shard{
		sample: 3 * side * side, shape: shape, labels: make([]int32, rows), u8: make([]byte, rows*3*side*side),
		levels: newLevels(1.0/255, -0.25),
	}
	for i := range s.u8 {
		s.u8[i] = byte(mixed(uint64(i)))
	}
	for i := range s.labels {
		s.labels[i] = int32(i)
	}
	if resize > 0 {
		s.to = newResizing(shape, resize)
		side = resize
	}
	if how != (disdel.Augment{}) {
		s.change = &augmenting{how: how, channels: 3, height: side, width: side}
		if s.to != nil {
			s.change.image = make([]float32, s.to.len())
		}
	}
	return s
}

// Several goroutines come to the bits of one, resized, moved or as stored, whatever their number; memory is taken once.
func TestAnyNumberFillsTheSameBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		resize := rapid.SampledFrom([]int{0, 0, 40}).Draw(t, "resize")
		how := rapid.SampledFrom([]disdel.Augment{{}, {Crop: 4}, {Crop: 3, Flip: true}}).Draw(t, "how")
		s := bytesOf(60, 32, resize, how)
		rows := make([]int32, rapid.IntRange(1, 60).Draw(t, "rows"))
		for i := range rows {
			rows[i] = int32(rapid.IntRange(0, 59).Draw(t, "row"))
		}
		one, many := s.NewBatch(1), s.NewBatch(len(rows))
		s.FillAugmented(&one, rows, 5, 2)
		f := s.Filler(rapid.IntRange(0, 5).Draw(t, "threads"))
		for range 2 {
			many.Input.Values = many.Input.Values[:0]
			if f.FillAugmented(&many, rows, 5, 2); !slices.Equal(one.Input.Values, many.Input.Values) ||
				!slices.Equal(one.Target.Classes, many.Target.Classes) || many.Input.Rows != len(rows) {
				t.Fatal("another batch")
			}
		}
		f.Fill(&many, rows)
		if same := slices.Equal(one.Input.Values, many.Input.Values); same && how != (disdel.Augment{}) && len(rows) > 9 {
			t.Fatal("nothing was moved")
		}
	})
	s := bytesOf(60, 32, 0, disdel.Augment{Crop: 4, Flip: true})
	b, f, rows := s.NewBatch(40), s.Filler(2), make([]int32, 40)
	if n := testing.AllocsPerRun(5, func() { f.FillAugmented(&b, rows, 1, 1) }); n != 0 {
		t.Errorf("%v allocations where there is room", n)
	}
}

// A row that is not there is the caller's to recover from, whoever was to write it, and what comes after is filled.
func TestAMissingRowIsTheCallersPanic(t *testing.T) {
	s := bytesOf(60, 32, 0, disdel.Augment{})
	b, f, rows := s.NewBatch(60), s.Filler(3), make([]int32, 60)
	for _, at := range []int{0, 59} {
		rows[at] = 60
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("row %d of %d was filled", rows[at], s.Len())
				}
			}()
			f.Fill(&b, rows)
		}()
		rows[at] = 1
	}
	if f.Fill(&b, rows); b.Target.Classes[59] != 1 || b.Target.Classes[0] != 1 {
		t.Errorf("classes %v", b.Target.Classes)
	}
}

// Sparse rows are filled by one: each begins where the one before it ends.
func TestSparseRowsHaveOneFiller(t *testing.T) {
	s := &Shard{sample: 1 << 20, sparse: newSparseRows(2, 1, true)}
	s.sparse.index, s.sparse.place = []int32{7}, []extent{{0, 1}, {1, 1}}
	b, f := s.NewBatch(2), s.Filler(4)
	if f.FillAugmented(&b, []int32{1, 0}, 1, 1); len(f.parts) != 1 || !slices.Equal(b.Input.Start, []int32{0, 0, 1}) {
		t.Errorf("%d goroutines, %+v", len(f.parts), b.Input)
	}
}

// BenchmarkFill says what a batch of 128 images of CIFAR's size takes, by one goroutine and by two.
func BenchmarkFill(b *testing.B) {
	rows := make([]int32, 128)
	for i := range rows {
		rows[i] = int32(i * 37 % 1000)
	}
	for _, c := range []struct {
		name string
		how  disdel.Augment
	}{{"asStored", disdel.Augment{}}, {"moved", disdel.Augment{Crop: 4, Flip: true}}} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", c.name, threads), func(b *testing.B) {
				s := bytesOf(1000, 32, 0, c.how)
				batch, f := s.NewBatch(len(rows)), s.Filler(threads)
				b.SetBytes(int64(4 * len(rows) * s.sample))
				for b.Loop() {
					f.FillAugmented(&batch, rows, 1, 1)
				}
			})
		}
	}
}

// BenchmarkFillSparse says what a row of clicks takes, drawn by lot of more than a cache holds.
func BenchmarkFillSparse(b *testing.B) {
	const rows, each, batch = 60_000, 39, 6250
	s := &Shard{sample: 100_000, sparse: newSparseRows(rows, rows*each, false)}
	for r := range rows {
		s.sparse.place[r] = extent{int32(r * each), int32((r + 1) * each)}
	}
	for i := range rows * each { // written once: pages that nobody wrote are all the same one
		s.sparse.index, s.sparse.value = append(s.sparse.index, int32(i%1000)), append(s.sparse.value, 1)
	}
	order, from, into := Order(nil, 1, 0, 0, rows), 0, s.NewBatch(batch)
	for b.Loop() {
		s.Fill(&into, order[from:from+batch])
		if from += batch; from+batch > rows {
			from = 0
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/row")
}
