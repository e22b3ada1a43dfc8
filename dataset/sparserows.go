package dataset

import (
	"encoding/binary"
	"math"

	"github.com/disdel/disdel"
)

// sparseType is the DType of a manifest of sparse rows.
const sparseType = "CSR"

// sparseRows is the rows of a shard of sparse data. Their entries lie in the order that they were read in, which is not
// that of the rows where these are drawn by lot.
type sparseRows struct {
	place  []extent // by row: of its entries
	index  []int32
	value  []float32 // nil: every entry is 1
	target []float32 // by row
	most   int32     // of the columns
	odd    bool      // a column is below 0, or a value not finite
}

// extent is where a row's entries begin and end. Both are wanted at once, of rows that are drawn by lot.
type extent struct{ begin, end int32 }

// The bytes of a sparse row in memory without its target, and of an entry; in a file a row has one place, not two.
const (
	rowBytes     = 8
	startBytes   = 4
	columnBytes  = 4
	entryBytes   = 8 // a column and a value
	targetBytes  = 4
	sparseRowMin = startBytes + targetBytes // of a row without entries in a file
)

// bytesOfEntry is what an entry takes.
func bytesOfEntry(ones bool) int64 {
	if ones {
		return columnBytes
	}
	return entryBytes
}

// sparseSize is the bytes of a row of sparse data in memory without its target, in the mean.
func (m *Manifest) sparseSize() disdel.Bytes {
	rows := int64(max(1, m.Train.Rows+m.Test.Rows))
	return disdel.Bytes(rowBytes + (m.Sparse.Entries*bytesOfEntry(m.Sparse.Ones)+rows-1)/rows)
}

func newSparseRows(rows, entries int, ones bool) *sparseRows {
	s := &sparseRows{
		place: make([]extent, rows), target: make([]float32, rows), index: make([]int32, 0, entries),
	}
	if !ones {
		s.value = make([]float32, 0, entries)
	}
	return s
}

func (s *sparseRows) size() disdel.Bytes {
	return disdel.Bytes(4 * (2*len(s.place) + len(s.target) + cap(s.index) + cap(s.value)))
}

// set appends the entries of a chunk's row as those of row to.
func (s *sparseRows) set(to int, c *sparseChunk, row int) {
	from, until := c.start(row), c.start(row+1)
	s.place[to].begin = int32(len(s.index))
	s.index = appendInt32s(s.index, c.index[4*from:4*until])
	if s.value != nil {
		s.value = appendFloat32s(s.value, c.value[4*from:4*until])
	}
	s.place[to].end = int32(len(s.index))
	s.target[to] = float32At(c.target, row)
	s.look(int(s.place[to].begin))
}

// look looks at the entries from one on.
func (s *sparseRows) look(from int) {
	for _, c := range s.index[from:] {
		s.most, s.odd = max(s.most, c), s.odd || c < 0
	}
	if s.value == nil {
		return
	}
	for _, v := range s.value[from:] {
		s.odd = s.odd || v-v != 0
	}
}

func (s *sparseRows) newBatch(rows, columns int) Batch {
	return Batch{
		Input:  Matrix{Columns: columns, Start: make([]int32, 0, rows+1)},
		Target: Target{Values: make([]float32, 0, rows)},
	}
}

// fill makes b these rows.
func (s *sparseRows) fill(b *Batch, rows []int32, columns int) {
	n := 0
	for _, r := range rows {
		n += int(s.place[r].end - s.place[r].begin)
	}
	in := &b.Input
	in.Rows, in.Columns, in.Checked = len(rows), columns, !s.odd && int(s.most) < columns
	in.Start = sized(in.Start, len(rows)+1)
	in.Index = roomy(in.Index, n)
	values := in.Values
	in.Values = nil
	if s.value != nil {
		in.Values = roomy(values, n)
	}
	b.Target.Values, b.Target.Classes = sized(b.Target.Values, len(rows)), nil
	at := 0
	for i, r := range rows {
		from, to := s.place[r].begin, s.place[r].end
		in.Start[i] = int32(at)
		copy(in.Index[at:], s.index[from:to])
		if s.value != nil {
			copy(in.Values[at:], s.value[from:to])
		}
		at += int(to - from)
		b.Target.Values[i] = s.target[r]
	}
	in.Start[len(rows)] = int32(at)
}

// roomy is sized with an eighth more where it allocates: batches of sparse rows are never of one size.
func roomy[T any](v []T, n int) []T {
	if n > cap(v) {
		return make([]T, n, n+n/8)
	}
	return v[:n]
}

func appendInt32s(dst []int32, data []byte) []int32 {
	for i := 0; i+4 <= len(data); i += 4 {
		dst = append(dst, int32(binary.LittleEndian.Uint32(data[i:])))
	}
	return dst
}

func appendFloat32s(dst []float32, data []byte) []float32 {
	for i := 0; i+4 <= len(data); i += 4 {
		dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(data[i:])))
	}
	return dst
}

func float32At(data []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
}

// sample is some rows as `infer --input` reads them.
func (s *sparseRows) sample(shape, rows []int) Sampled {
	doc := Sampled{Shape: shape}
	for _, r := range rows {
		at := s.place[r]
		row := disdel.SparseRow{Index: append([]int32{}, s.index[at.begin:at.end]...)}
		if s.value != nil {
			row.Value = append([]float32{}, s.value[at.begin:at.end]...)
		}
		doc.Rows, doc.Targets = append(doc.Rows, row), append(doc.Targets, s.target[r])
	}
	return doc
}
