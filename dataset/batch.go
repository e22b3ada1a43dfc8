package dataset

import (
	"slices"
	"sync"
)

// Matrix holds rows of values, one after the other: all values of dense rows, or the nonzero values of sparse ones
// (CSR), with their columns in fields that are nil for dense rows.
type Matrix struct {
	Rows    int
	Columns int       // values of a dense row, [channels height width] or [units]; possible columns of a sparse one
	Values  []float32 // [Rows Columns]; of sparse rows [len(Index)], or nil if all are 1

	Start []int32 // of sparse rows, [Rows+1]: row i has the entries from Start[i] to Start[i+1]
	Index []int32 // of sparse rows: the column of each entry, from 0
	// Checked says that all columns of sparse rows are below Columns, and all values finite. Their maker checks it once,
	// so that not every step has to.
	Checked bool
}

// Row returns the values of a row. It is no copy.
func (m Matrix) Row(i int) []float32 { return m.Values[i*m.Columns : (i+1)*m.Columns] }

// Target is what the network should output for the rows of a batch.
type Target struct {
	Classes []int32   // by row; nil for numbers, or if only an output is needed
	Values  []float32 // numbers by row, of a dense row one for each output, standardised; nil likewise
}

// Batch is rows for an engine, and their targets. The engine reads it only during the call.
type Batch struct {
	Input  Matrix
	Target Target
}

// NewBatch allocates an empty batch for so many rows of so many values, each with a class.
func NewBatch(rows, columns int) Batch {
	return Batch{
		Input:  Matrix{Columns: columns, Values: make([]float32, 0, rows*columns)},
		Target: Target{Classes: make([]int32, 0, rows)},
	}
}

// Dense is a batch of dense rows: x is [rows columns], classes are by row, or nil.
func Dense(rows int, x []float32, classes []int32) Batch {
	return Batch{Input: Matrix{Rows: rows, Columns: len(x) / max(rows, 1), Values: x}, Target: Target{Classes: classes}}
}

// NewBatch allocates an empty batch for so many rows of the shard.
func (s *Shard) NewBatch(rows int) Batch {
	if s.sparse != nil {
		return s.sparse.newBatch(rows, s.sample)
	}
	b := NewBatch(rows, s.sample)
	if s.outputs > 0 {
		b.Target = Target{Values: make([]float32, 0, rows*s.outputs)}
	}
	return b
}

// Fill fills b with these rows of the shard, in this order. It allocates only if b has too little memory.
func (s *Shard) Fill(b *Batch, rows []int32) {
	if s.sparse != nil {
		s.sparse.fill(b, rows, s.sample)
		return
	}
	s.makeRoom(b, len(rows))
	s.Batch(rows, b.Input.Values, b.Target.Classes)
	for i, row := range rows[:len(rows)*min(1, s.outputs)] {
		s.label(b, i, row)
	}
}

// label writes the label or the targets of a row as those of row i of the batch.
func (s *Shard) label(b *Batch, i int, row int32) {
	if n := s.outputs; n > 0 {
		copy(b.Target.Values[i*n:(i+1)*n], s.targets[int(row)*n:])
		return
	}
	b.Target.Classes[i] = s.labels[row]
}

// makeRoom makes b as long as so many dense rows of the shard.
func (s *Shard) makeRoom(b *Batch, rows int) {
	columns := s.SampleLen()
	b.Input.Rows, b.Input.Columns = rows, columns
	b.Input.Values = sized(b.Input.Values, rows*columns)
	if s.outputs > 0 {
		b.Target = Target{Values: sized(b.Target.Values, rows*s.outputs)}
		return
	}
	b.Target.Classes = sized(b.Target.Classes, rows)
}

// sized returns v with length n, in its own memory if that is enough.
func sized[T any](v []T, n int) []T {
	if n > cap(v) {
		return make([]T, n)
	}
	return v[:n]
}

// Filler fills batches of a shard in several goroutines. Each writes its own rows, so that the bits do not depend on
// how many there are. A Filler is for one goroutine.
type Filler struct {
	parts  []*fillPart
	starts []func() // for each part except the first: a go statement of these allocates nothing
	wait   sync.WaitGroup
}

// fillPart is one goroutine's part of a batch.
type fillPart struct {
	shard  *Shard // with working memory of its own
	batch  Batch  // its rows, in the memory of the whole one
	rows   []int32
	show   showing
	raised any // value of its panic
}

// showing says how rows are filled: as they are, or as training sees them in an epoch.
type showing struct {
	augmented bool
	seed      int64
	epoch     int
}

// leastPart is how many values make a goroutine worth it: fewer are written in the time of its start.
const leastPart = 16 << 10

// Filler returns a Filler with so many goroutines, including the caller's; below 1 is 1.
func (s *Shard) Filler(threads int) *Filler {
	f := &Filler{parts: []*fillPart{{shard: s}}}
	for range max(threads, 1) - 1 {
		if s.sparse != nil { // rows start where the previous ones end
			break
		}
		p := &fillPart{shard: s.view()}
		f.parts = append(f.parts, p)
		f.starts = append(f.starts, func() {
			defer f.wait.Done()
			defer func() { p.raised = recover() }()
			p.fill()
		})
	}
	return f
}

// view is the same rows with its own working memory, for another goroutine.
func (s *Shard) view() *Shard {
	v := *s
	if s.disk != nil {
		v.disk = s.disk.view()
	}
	if s.to != nil {
		to := *s.to
		to.row = slices.Clone(to.row)
		v.to = &to
	}
	if s.change != nil {
		change := *s.change
		change.image = slices.Clone(change.image)
		v.change = &change
	}
	return &v
}

// Fill is Shard.Fill.
func (f *Filler) Fill(b *Batch, rows []int32) { f.fill(b, rows, showing{}) }

// FillAugmented is Shard.FillAugmented.
func (f *Filler) FillAugmented(b *Batch, rows []int32, seed int64, epoch int) {
	f.fill(b, rows, showing{augmented: true, seed: seed, epoch: epoch})
}

// fill lets the parts write their rows, and returns when all have finished. A panic of a part is raised again in the
// caller's goroutine: in its own it would end the process.
func (f *Filler) fill(b *Batch, rows []int32, show showing) {
	s := f.parts[0].shard
	columns := s.SampleLen()
	if s.disk != nil {
		s.disk.prepare(rows)
	}
	n := max(1, min(len(f.parts), len(rows), len(rows)*columns/leastPart))
	if n == 1 {
		s.show(b, rows, show)
		return
	}
	s.makeRoom(b, len(rows))
	f.wait.Add(n - 1)
	for i, p := range f.parts[:n] {
		from, to := len(rows)*i/n, len(rows)*(i+1)/n
		p.rows, p.show = rows[from:to], show
		p.batch.Input.Values = b.Input.Values[from*columns : to*columns]
		if k := s.outputs; k > 0 {
			p.batch.Target.Values = b.Target.Values[from*k : to*k]
		} else {
			p.batch.Target.Classes = b.Target.Classes[from:to]
		}
		if i > 0 {
			go f.starts[i-1]()
		}
	}
	defer f.end(n)
	f.parts[0].fill()
}

// end waits for the parts, and releases the batch.
func (f *Filler) end(n int) {
	f.wait.Wait()
	var raised any
	for _, p := range f.parts[:n] {
		if p.raised != nil {
			raised = p.raised
		}
		p.batch, p.rows, p.raised = Batch{}, nil, nil
	}
	if raised != nil {
		panic(raised)
	}
}

func (p *fillPart) fill() { p.shard.show(&p.batch, p.rows, p.show) }

func (s *Shard) show(b *Batch, rows []int32, how showing) {
	if how.augmented {
		s.FillAugmented(b, rows, how.seed, how.epoch)
		return
	}
	s.Fill(b, rows)
}
