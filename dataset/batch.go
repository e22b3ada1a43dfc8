package dataset

// Matrix is rows of values, one after the other: all values of dense rows, or of sparse ones those that are not zero
// (CSR), with their columns in fields that are nil in dense ones.
type Matrix struct {
	Rows    int
	Columns int       // values of a dense row: a sample, [channels height width] or [units]; what a sparse one could have
	Values  []float32 // [Rows Columns]; of sparse rows [len(Index)], or nil where all are 1

	Start []int32 // of sparse rows, [Rows+1]: row i has the entries from Start[i] to Start[i+1]
	Index []int32 // of sparse rows: the column of each entry, from 0
	// Checked says of sparse rows that all columns are below Columns, and all values finite: who made them has looked,
	// once, so that not every step has to.
	Checked bool
}

// Row is the values of a row. It is no copy.
func (m Matrix) Row(i int) []float32 { return m.Values[i*m.Columns : (i+1)*m.Columns] }

// Target is what the rows of a batch are to come to.
type Target struct {
	Classes []int32   // by row; nil where nothing is asked of the rows but an output
	Values  []float32 // by row, of sparse rows, whose targets are numbers; nil likewise
}

// Batch is rows that an engine computes on at once, and what they are to come to. An engine reads it during the call
// alone: who fills it may fill it again.
type Batch struct {
	Input  Matrix
	Target Target
}

// NewBatch has memory for as many rows of so many values, each with a class. It holds no rows yet.
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

// NewBatch has memory for as many rows of the shard. It holds no rows yet.
func (s *Shard) NewBatch(rows int) Batch {
	if s.sparse != nil {
		return s.sparse.newBatch(rows, s.sample)
	}
	return NewBatch(rows, s.sample)
}

// Fill makes b these rows of the shard, in this order. It allocates only where b has no memory for so many.
func (s *Shard) Fill(b *Batch, rows []int32) {
	if s.sparse != nil {
		s.sparse.fill(b, rows, s.sample)
		return
	}
	s.makeRoom(b, len(rows))
	s.Batch(rows, b.Input.Values, b.Target.Classes)
}

// makeRoom makes b as long as so many dense rows of the shard.
func (s *Shard) makeRoom(b *Batch, rows int) {
	columns := s.SampleLen()
	b.Input.Rows, b.Input.Columns = rows, columns
	b.Input.Values = sized(b.Input.Values, rows*columns)
	b.Target.Classes = sized(b.Target.Classes, rows)
}

// sized is v with length n, in its own memory where that is enough.
func sized[T any](v []T, n int) []T {
	if n > cap(v) {
		return make([]T, n)
	}
	return v[:n]
}
