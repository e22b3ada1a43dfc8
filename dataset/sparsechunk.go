package dataset

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/safetensors"
)

// sparseChunk is a chunk of sparse rows as it lies in memory, little-endian.
type sparseChunk struct {
	starts, index, value, target []byte // value: nil where every entry is 1
}

func (c *sparseChunk) start(row int) int {
	return int(int32(binary.LittleEndian.Uint32(c.starts[4*row:])))
}

// nextSparse reads a chunk of sparse rows and refuses it unless its checksum, its shapes and its columns are such as
// the manifest says. The chunk lasts until the next.
func (r *chunkReader) nextSparse(ctx context.Context, c Chunk) (*sparseChunk, error) {
	f, err := r.file(ctx, c)
	if err != nil {
		return nil, err
	}
	out := &sparseChunk{}
	want := []struct {
		name  string
		dtype safetensors.DType
		len   int
		into  *[]byte
	}{
		{"start", safetensors.I32, c.Rows + 1, &out.starts},
		{"index", safetensors.I32, c.Entries, &out.index},
		{"value", safetensors.F32, c.Entries, &out.value},
		{"y", safetensors.F32, c.Rows, &out.target},
	}
	if r.m.Sparse.Ones {
		want = append(want[:2], want[3])
	}
	if len(f.Tensors) != len(want) {
		return nil, r.damaged(c, fmt.Sprintf("it holds %d arrays, and sparse rows are %d", len(f.Tensors), len(want)))
	}
	for i, w := range want {
		t := f.Tensors[i]
		if t.Name != w.name || t.DType != w.dtype || len(t.Shape) != 1 || len(t.Data) != 4*w.len {
			return nil, r.damaged(c, fmt.Sprintf("it holds %s %v %v, not %s of %d", t.Name, t.DType, t.Shape, w.name, w.len))
		}
		*w.into = t.Data
	}
	if why := out.fault(c, r.m.Sample[0]); why != "" {
		return nil, r.damaged(c, why)
	}
	return out, nil
}

// fault says what is wrong with the rows of a chunk, "" if nothing is.
func (c *sparseChunk) fault(of Chunk, columns int) string {
	if c.start(0) != 0 || c.start(of.Rows) != of.Entries {
		return "its rows do not begin and end where its entries do"
	}
	for i := range of.Rows {
		if c.start(i) > c.start(i+1) {
			return fmt.Sprintf("its row %d ends before it begins", i)
		}
	}
	for i := range of.Entries {
		if v := binary.LittleEndian.Uint32(c.index[4*i:]); uint64(v) >= uint64(columns) {
			return fmt.Sprintf("its entry %d is in column %d of %d", i, int32(v), columns)
		}
	}
	return ""
}

// sparseTrain reads rows to learn from, by their places in the order that the split draws of all of them: files of
// ratings are sorted by user or by time, and each worker is to see all sorts.
func (s *Store) sparseTrain(ctx context.Context, m Manifest, split disdel.Split, rows disdel.RowRange) (*Shard, error) {
	return s.readSparse(ctx, m, m.Train, places(split, m.Train.Rows), rows)
}

// sparseHeldOut reads held-out rows: those of a part of their own as they are stored, else those that were drawn.
func (s *Store) sparseHeldOut(ctx context.Context, m Manifest, d division, split disdel.Split, rows disdel.RowRange) (
	*Shard, error,
) {
	if !d.drawn {
		return s.readSparse(ctx, m, m.Test, nil, rows)
	}
	rows.Start, rows.End = rows.Start+d.train, rows.End+d.train
	return s.readSparse(ctx, m, m.Train, places(split, m.Train.Rows), rows)
}

// places is the place of each of n rows in the order that a split draws.
func places(split disdel.Split, n int) []int32 {
	order := drawn(split, n)
	invert(order)
	return order
}

// readSparse reads the rows of a part whose places are in rows; nil: a row's place is where it is stored. Of chunks
// without any of them it reads nothing.
func (s *Store) readSparse(ctx context.Context, m Manifest, p Part, place []int32, rows disdel.RowRange) (*Shard, error) {
	out := newSparseRows(rows.Len(), p.expected(place != nil, rows), m.Sparse.Ones)
	read, at, filled := chunkReader{s: s, m: m}, 0, 0
	for _, c := range p.Chunks {
		if place != nil || at < rows.End && at+c.Rows > rows.Start {
			chunk, err := read.nextSparse(ctx, c)
			if err != nil {
				return nil, err
			}
			for r := range c.Rows {
				to := at + r
				if place != nil {
					to = int(place[to])
				}
				if to < rows.Start || to >= rows.End {
					continue
				}
				if len(out.index) > math.MaxInt32-chunkBytes {
					return nil, tooManyEntries(m.Name)
				}
				out.set(to-rows.Start, chunk, r)
				filled++
			}
		}
		at += c.Rows
	}
	return &Shard{sample: m.SampleLen(), sparse: out}, unfilled(m.Name, filled, rows.Len())
}

// expected is for how many entries there is to be room: those of all chunks that a range touches, or as many as rows
// drawn by lot have in the mean, and a sixteenth.
func (p Part) expected(drawn bool, rows disdel.RowRange) int {
	at, entries := 0, 0
	for _, c := range p.Chunks {
		if drawn || at < rows.End && at+c.Rows > rows.Start {
			entries += c.Entries
		}
		at += c.Rows
	}
	if !drawn || rows.Len() == p.Rows {
		return entries
	}
	mean := float64(entries) / float64(max(1, p.Rows))
	return min(entries, int(mean*float64(rows.Len())*17/16)+1)
}

func tooManyEntries(name string) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read data set " + name, Msg: "a shard has more entries than fit",
		Hint: "raise distribution.workers",
	}
}

// sparseFaults holds the numbers of a manifest of sparse rows against each other, and tells whether its columns can be.
func (m *Manifest) sparseFaults(fault func(wrong bool, format string, args ...any)) (columns bool) {
	d := m.Sparse
	fault(m.DType != sparseType || d == nil, "dtype is %.20q, and sparse is %v", m.DType, d != nil)
	columns = len(m.Sample) == 1 && m.Sample[0] >= 1 && m.Sample[0] <= math.MaxInt32
	if d == nil || !columns {
		return columns
	}
	fault(m.Classes > 2, "classes is %d, and sparse rows have 1 or 2", m.Classes)
	fault(d.Most < 0 || d.Most > m.Sample[0] || d.Entries < 0, "%d entries, %d of a row, of %d columns", d.Entries, d.Most,
		m.Sample[0])
	fault(d.Users != 0 && (d.Users < 1 || d.Items < 1 || d.Users > m.Sample[0] || d.Users+d.Items != m.Sample[0]),
		"%d users and %d items of %d columns", d.Users, d.Items, m.Sample[0])
	fault(!finite64(d.Mean) || !finite64(d.Deviation) || !finite64(d.Bayes) || !finite(d.Low) || !finite(d.High),
		"targets of mean %g and deviation %g", d.Mean, d.Deviation)
	entries := int64(0)
	for _, p := range []Part{m.Train, m.Test} {
		for _, c := range p.Chunks {
			if c.Entries < 0 || c.Entries > math.MaxInt32 {
				fault(true, "%.120q has %d entries", c.Key, c.Entries)
				return columns
			}
			entries += int64(c.Entries)
		}
	}
	fault(entries != d.Entries, "%d entries, and its chunks have %d", d.Entries, entries)
	return columns
}

// sparseChunkSize is what a chunk of sparse rows takes.
func (m *Manifest) sparseChunkSize(c Chunk) disdel.Bytes {
	if c.Rows < 0 || c.Rows > math.MaxInt32 || c.Entries < 0 || c.Entries > math.MaxInt32 {
		return 1 << 60
	}
	return disdel.Bytes(int64(c.Rows)*sparseRowMin + startBytes + int64(c.Entries)*bytesOfEntry(m.Sparse.Ones))
}

func finite64(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
