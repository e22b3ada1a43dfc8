package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
)

// someSparse is rows by a seed, of which every tenth is held out where held says so. A row's target is its number, so
// that it is known again.
func someSparse(name string, rows, entries int, ones, held bool) SparseInput {
	in := SparseInput{Name: name, Classes: 1, Columns: 5000, Ones: ones}
	in.Each = func(yield func(SparseRow) error) error {
		rng := rand.New(rand.NewPCG(1, 2))
		for r := range rows {
			row := SparseRow{Target: float32(r), HeldOut: held && r%10 == 9}
			column := int32(-1)
			for range rng.IntN(entries + 1) {
				column += 1 + int32(rng.IntN(5000/entries-1))
				row.Index = append(row.Index, column)
				if !ones {
					row.Value = append(row.Value, float32(rng.NormFloat64()))
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

// rowsOfSparse is an input's rows by their targets.
func rowsOfSparse(t *testing.T, in SparseInput) map[float32]disdel.SparseRow {
	t.Helper()
	out := map[float32]disdel.SparseRow{}
	if err := in.Each(func(r SparseRow) error {
		out[r.Target] = disdel.SparseRow{Index: slices.Clone(r.Index), Value: slices.Clone(r.Value)}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// held is the rows of a shard by their targets, in batches of 7.
func heldBy(t *testing.T, s *Shard, want map[float32]disdel.SparseRow) []float32 {
	t.Helper()
	b := s.NewBatch(7)
	var targets []float32
	for from := 0; from < s.Len(); from += 7 {
		var rows []int32
		for r := from; r < min(from+7, s.Len()); r++ {
			rows = append(rows, int32(r))
		}
		s.Fill(&b, rows)
		if b.Input.Rows != len(rows) || len(b.Input.Start) != len(rows)+1 || b.Target.Classes != nil {
			t.Fatalf("a batch of %d rows has %d, with %d starts", len(rows), b.Input.Rows, len(b.Input.Start))
		}
		for i, y := range b.Target.Values {
			from, to := b.Input.Start[i], b.Input.Start[i+1]
			row := want[y]
			if !slices.Equal(b.Input.Index[from:to], row.Index) {
				t.Fatalf("row %v has columns %v, want %v", y, b.Input.Index[from:to], row.Index)
			}
			if row.Value != nil && !slices.Equal(b.Input.Values[from:to], row.Value) {
				t.Fatalf("row %v has values %v, want %v", y, b.Input.Values[from:to], row.Value)
			}
			targets = append(targets, y)
		}
	}
	return targets
}

// What is stored comes back, to the bit, in shards that divide it: no row twice, none left out, and none of the
// held-out ones to learn from.
func TestSparseRowsComeBackInShards(t *testing.T) {
	for name, c := range map[string]struct {
		rows, entries int
		ones, held    bool
	}{
		"values": {503, 12, false, false}, "ones": {503, 12, true, false}, "a part of its own": {503, 12, false, true},
		"several chunks": {14000, 160, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := memory(t)
			in := someSparse("rows", c.rows, c.entries, c.ones, c.held)
			want := rowsOfSparse(t, in)
			m, err := s.AddSparse(ctx, in, false)
			if err != nil {
				t.Fatal(err)
			}
			if c.rows > 10000 && len(m.Train.Chunks) < 2 {
				t.Errorf("%d chunks: the test does not see several", len(m.Train.Chunks))
			}
			split := disdel.Split{Train: 0.8, Validation: 0.2, Seed: 3}
			info := m.Info(split)
			if info.Train+info.HeldOut != c.rows || info.Sparse == nil || !info.Drawn {
				t.Fatalf("%+v of %d rows", info, c.rows)
			}
			ref := disdel.DataRef{Name: "rows", Checksum: info.Checksum, Split: split}
			var all []float32
			for w := range 3 {
				part := disdel.RowRange{Start: info.Train * w / 3, End: info.Train * (w + 1) / 3}
				shard, err := s.ReadTrain(ctx, ref, part)
				if err != nil || shard.Len() != part.Len() {
					t.Fatalf("%d of %d rows: %v", shard.Len(), part.Len(), err)
				}
				if room := info.SampleSize*disdel.Bytes(part.Len())*9/8 + 4*disdel.Bytes(part.Len()) + 4096; shard.Size() > room {
					t.Errorf("%d rows take %v, and the plan goes by %v", part.Len(), shard.Size(), room)
				}
				targets := heldBy(t, shard, want)
				if slices.IsSorted(targets) {
					t.Error("a worker's rows are in the order of the file, not drawn by lot")
				}
				all = append(all, targets...)
			}
			shard, err := s.ReadHeldOut(ctx, ref, disdel.RowRange{End: info.HeldOut})
			if err != nil {
				t.Fatal(err)
			}
			heldOut := heldBy(t, shard, want)
			for _, y := range heldOut {
				if c.held && int(y)%10 != 9 {
					t.Errorf("row %v is held out", y)
				}
			}
			all = append(all, heldOut...)
			slices.Sort(all)
			for i, y := range all {
				if int(y) != i {
					t.Fatalf("row %d is missing or there twice", i)
				}
			}
		})
	}
}

// The sums of a manifest are those of the rows to learn from.
func TestSparseManifestsKnowTheirTargets(t *testing.T) {
	s := memory(t)
	in := someSparse("rows", 100, 12, true, true)
	m, err := s.AddSparse(ctx, in, false)
	if err != nil {
		t.Fatal(err)
	}
	var targets []float64
	entries, most := int64(0), 0
	for y, r := range rowsOfSparse(t, in) {
		entries, most = entries+int64(len(r.Index)), max(most, len(r.Index))
		if int(y)%10 != 9 {
			targets = append(targets, float64(y))
		}
	}
	mean, squares := 0.0, 0.0
	for _, y := range targets {
		mean += y / float64(len(targets))
	}
	for _, y := range targets {
		squares += (y - mean) * (y - mean) / float64(len(targets))
	}
	d := m.Sparse
	if d.Entries != entries || d.Most != most || d.Low != 0 || d.High != 98 || math.Abs(d.Mean-mean) > 1e-9 ||
		math.Abs(d.Guess(disdel.LossSquared)-squares) > 1e-6 {
		t.Errorf("%+v, want %d entries, %d at most, mean %v and variance %v", d, entries, most, mean, squares)
	}
	half := disdel.SparseData{Mean: 0.5}
	if got := half.Guess(disdel.LossLogistic); math.Abs(got-math.Ln2) > 1e-12 {
		t.Errorf("one guess for half and half has the loss %v", got)
	}
}

// A batch is filled in the memory of the one before.
func TestSparseBatchesAreFilledInPlace(t *testing.T) {
	s := memory(t)
	m, err := s.AddSparse(ctx, someSparse("rows", 200, 12, false, false), false)
	if err != nil {
		t.Fatal(err)
	}
	shard, err := s.ReadTrain(ctx, disdel.DataRef{Name: "rows", Checksum: m.Checksum()}, disdel.RowRange{End: 200})
	if err != nil {
		t.Fatal(err)
	}
	b, rows := shard.NewBatch(50), make([]int32, 50)
	n := 0
	fill := func() {
		for i := range rows {
			rows[i] = int32((n*50 + i) % 200)
		}
		n++
		shard.Fill(&b, rows)
	}
	for range 4 {
		fill()
	}
	if got := testing.AllocsPerRun(20, fill); got > 0 {
		t.Errorf("filling a batch allocates %v times", got)
	}
}

func TestSparseRowsThatDoNotFitAreRefused(t *testing.T) {
	one := func(change func(*SparseInput, *SparseRow)) SparseInput {
		in := SparseInput{Name: "rows", Classes: 1, Columns: 9}
		row := SparseRow{Index: []int32{1, 2}, Value: []float32{1, 2}, Target: 1}
		change(&in, &row)
		in.Each = func(yield func(SparseRow) error) error { return yield(row) }
		return in
	}
	for want, in := range map[string]SparseInput{
		"2 columns and 1 values":  one(func(_ *SparseInput, r *SparseRow) { r.Value = r.Value[1:] }),
		"in column 9":             one(func(_ *SparseInput, r *SparseRow) { r.Index[1] = 9 }),
		"in column -1":            one(func(_ *SparseInput, r *SparseRow) { r.Index[1] = -1 }),
		"NaN in column 2":         one(func(_ *SparseInput, r *SparseRow) { r.Value[1] = float32(math.NaN()) }),
		"target of row 0 is +Inf": one(func(_ *SparseInput, r *SparseRow) { r.Target = float32(math.Inf(1)) }),
		"neither 0 nor 1":         one(func(in *SparseInput, r *SparseRow) { in.Classes, r.Target = 2, 0.5 }),
		"no user and an item":     one(func(in *SparseInput, r *SparseRow) { in.Users, in.Items, in.Ones = 2, 7, true; r.Index[0] = 3 }),
		"0 rows to learn from":    one(func(_ *SparseInput, r *SparseRow) { r.HeldOut = true }),
		"with 0 entries":          one(func(_ *SparseInput, r *SparseRow) { r.Index, r.Value = nil, nil }),
		"is no data set's name":   one(func(in *SparseInput, _ *SparseRow) { in.Name = "No Name" }),
	} {
		_, err := memory(t).AddSparse(ctx, in, false)
		if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Adding the same again changes nothing; other rows are a conflict, or take its place and leave nothing of it.
func TestSparseSetsAreReplacedOnlyOnRequest(t *testing.T) {
	s := memory(t)
	first, err := s.AddSparse(ctx, someSparse("rows", 14000, 160, false, true), false)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.AddSparse(ctx, someSparse("rows", 14000, 160, false, true), false)
	if err != nil || again.Checksum() != first.Checksum() {
		t.Fatalf("the same again is another: %v", err)
	}
	other := someSparse("rows", 50, 12, true, false)
	if _, err := s.AddSparse(ctx, other, false); !errors.Is(err, disdel.Conflict) {
		t.Fatalf("other rows: %v", err)
	}
	if _, err := s.AddSparse(ctx, other, true); err != nil {
		t.Fatal(err)
	}
	keys, err := s.keys(ctx, "rows")
	if err != nil || len(keys) != 3 {
		t.Errorf("%d keys are left: %v, %v", len(keys), keys, err)
	}
	if _, err := s.AddSparse(ctx, SparseInput{Name: "rows", Classes: 1, Each: func(func(SparseRow) error) error {
		return errors.New("the file is gone")
	}}, true); err == nil {
		t.Error("a source that fails is no error")
	}
	if m, err := s.Manifest(ctx, "rows"); err != nil || m.Train.Rows != 50 {
		t.Errorf("after a source that failed: %+v, %v", m.Train.Rows, err)
	}
}

// A manifest of sparse rows is believed as little as any.
func TestSparseManifestsThatLieAreRefused(t *testing.T) {
	s := memory(t)
	m, err := s.AddSparse(ctx, someSparse("rows", 100, 12, false, true), false)
	if err != nil {
		t.Fatal(err)
	}
	sparse := func(edit func(*disdel.SparseData)) func(*Manifest) {
		return func(m *Manifest) {
			d := *m.Sparse
			edit(&d)
			m.Sparse = &d
		}
	}
	for want, edit := range map[string]func(*Manifest){
		"sparse is false":                    func(m *Manifest) { m.Sparse = nil },
		"dtype is \"F32\"":                   func(m *Manifest) { m.DType = "F32" },
		"sample is [1 2 3]":                  func(m *Manifest) { m.Sample = []int{1, 2, 3} },
		"sample is [-4]":                     func(m *Manifest) { m.Sample = []int{-4} },
		"classes is 3":                       func(m *Manifest) { m.Classes = 3 },
		"entries, and its chunks have":       sparse(func(d *disdel.SparseData) { d.Entries++ }),
		"of a row, of 5000 columns":          sparse(func(d *disdel.SparseData) { d.Most = 5001 }),
		"users and 3 items of 5000 columns":  sparse(func(d *disdel.SparseData) { d.Users, d.Items = 4, 3 }),
		"has -3 entries":                     func(m *Manifest) { m.Train.Chunks[0].Entries = -3 },
		"rows/train-00000.safetensors has 9": func(m *Manifest) { m.Train.Chunks[0].Size = 9 },
	} {
		plant(t, s, "rows", edited(t, m, edit))
		_, err := s.Manifest(ctx, "rows")
		if !errors.Is(err, disdel.Corrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A chunk that is not what the manifest says is refused, whatever its checksum.
func TestDamagedSparseChunksAreRefused(t *testing.T) {
	for want, damage := range map[string]func(data []byte, start, index int){
		"begin and end":         func(data []byte, start, _ int) { data[start] = 1 },
		"ends before it begins": func(data []byte, start, _ int) { binary.LittleEndian.PutUint32(data[start+4:], 1<<30) },
		"of 5000":               func(data []byte, _, index int) { binary.LittleEndian.PutUint32(data[index:], 5000) },
		"no checksum of it":     func(data []byte, _, index int) { data[index] ^= 1 },
	} {
		s := memory(t)
		m, err := s.AddSparse(ctx, someSparse("rows", 100, 12, true, false), false)
		if err != nil {
			t.Fatal(err)
		}
		c := &m.Train.Chunks[0]
		data, err := blobs.ReadUpTo(ctx, s.bucket, c.Key, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		start := 8 + int(binary.LittleEndian.Uint64(data))
		damage(data, start, start+4*(c.Rows+1))
		if err := blobs.WriteAll(ctx, s.bucket, c.Key, data); err != nil {
			t.Fatal(err)
		}
		if want != "no checksum of it" {
			c.Checksum = checksum(data)
			plant(t, s, "rows", m.encode())
		} else {
			want = "its checksum is not the manifest's"
		}
		_, err = s.ReadTrain(ctx, disdel.DataRef{Name: "rows", Checksum: m.Checksum()}, disdel.RowRange{End: 10})
		if !errors.Is(err, disdel.Corrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Held-out rows are given as infer takes them.
func TestSparseRowsAreSampled(t *testing.T) {
	s := memory(t)
	in := someSparse("rows", 100, 12, false, true)
	if _, err := s.AddSparse(ctx, in, false); err != nil {
		t.Fatal(err)
	}
	doc, err := s.Sample(ctx, "rows", []int{2, 0}, 1)
	if err != nil || len(doc.Rows) != 2 || doc.Inputs != nil || !slices.Equal(doc.Targets, []float32{29, 9}) {
		t.Fatalf("%+v, %v", doc, err)
	}
	want := rowsOfSparse(t, in)
	for i, y := range doc.Targets {
		if !slices.Equal(doc.Rows[i].Index, want[y].Index) || !slices.Equal(doc.Rows[i].Value, want[y].Value) {
			t.Errorf("row %v is %v", y, doc.Rows[i])
		}
	}
	m, _ := s.Manifest(ctx, "rows")
	if _, _, err := s.Range(ctx, m); !errors.Is(err, disdel.Invalid) {
		t.Errorf("sparse rows have a range: %v", err)
	}
}

func ExampleStore_AddSparse() {
	s, err := OpenStore(ctx, "mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	m, err := s.AddSparse(ctx, SparseInput{
		Name: "words", Classes: 2, ClassNames: []string{"ham", "spam"},
		Each: func(yield func(SparseRow) error) error {
			for i := range 4 { // column 0 in every row, column i+1 in one
				row := SparseRow{Index: []int32{0, int32(i + 1)}, Value: []float32{1, 0.5}, Target: float32(i % 2)}
				if err := yield(row); err != nil {
					return err
				}
			}
			return nil
		},
	}, false)
	fmt.Println(m.Sample, m.Train.Rows, m.Sparse.Entries, m.Sparse.Mean, err)
	// Output: [5] 4 8 0.5 <nil>
}
