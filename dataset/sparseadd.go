package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/safetensors"
)

// SparseRow is a row on its way into a data set. It is good until the next one.
type SparseRow struct {
	Index   []int32   // columns, each once
	Value   []float32 // of those columns; nil where every entry of the data set is 1
	Target  float32
	HeldOut bool // it is of the part that is evaluated, and never learned from
}

// SparseInput is a data set of sparse rows to add. Rows are read as a stream: of as many as there are, a chunk is in
// memory.
type SparseInput struct {
	Name, Title, License string
	Columns              int      // 0: the largest and one
	Classes              int      // 2: targets are 0 or 1; 1: they are numbers
	ClassNames           []string // of 0 and 1
	Ones                 bool     // every entry is 1
	Users, Items         int      // of ratings: a row has column u, of its user, and Users+i, of its item; else 0
	// Each gives the rows one after the other, the same ones whenever it is called. It returns what yield returns.
	Each func(yield func(SparseRow) error) error
	// Bayes is asked after the rows: the loss of who knows how they were made; nil: nobody does.
	Bayes func() float64
}

// AddSparse stores a data set of sparse rows, as AddDense does one of dense rows, with the same errors; Invalid also
// for rows that do not fit together and for targets and entries that are not finite.
func (s *Store) AddSparse(ctx context.Context, in SparseInput, overwrite bool) (Manifest, error) {
	if err := checkName(in.Name); err != nil {
		return Manifest{}, err
	}
	return s.addStream(ctx, in.Name, overwrite, func(dry bool) (Manifest, error) { return s.writeSparse(ctx, in, dry) })
}

// writeSparse writes the chunks, or with dry only works out what they would be, and returns the manifest.
func (s *Store) writeSparse(ctx context.Context, in SparseInput, dry bool) (Manifest, error) {
	m := Manifest{
		APIVersion: disdel.APIVersion, Name: in.Name, Title: in.Title, License: in.License, Classes: in.Classes,
		ClassNames: in.ClassNames, DType: sparseType, Scale: 1,
		Sparse: &disdel.SparseData{Ones: in.Ones, Users: in.Users, Items: in.Items},
	}
	sums := spread{low: math.MaxFloat32, high: -math.MaxFloat32}
	train := &sparseWriter{s: s, ctx: ctx, in: &in, part: "train", dry: dry}
	test := &sparseWriter{s: s, ctx: ctx, in: &in, part: "test", dry: dry}
	err := in.Each(func(row SparseRow) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if row.HeldOut {
			return test.add(row)
		}
		sums.add(row.Target)
		return train.add(row)
	})
	for _, w := range []*sparseWriter{train, test} {
		if err == nil {
			err = w.flush()
		}
		m.Sparse.Entries += w.entries
		m.Sparse.Most = max(m.Sparse.Most, w.most)
	}
	if err != nil {
		return m, err
	}
	m.Train, m.Test = train.done, test.done
	columns := max(train.columns, test.columns)
	if in.Columns > 0 {
		columns = in.Columns
	}
	m.Sample = []int{columns}
	if m.Train.Rows == 0 || m.Sparse.Entries == 0 {
		return m, in.bad("it has %d rows to learn from, with %d entries", m.Train.Rows, m.Sparse.Entries)
	}
	m.Sparse.Mean, m.Sparse.Deviation, m.Sparse.Low, m.Sparse.High = sums.mean, sums.deviation(), sums.low, sums.high
	if in.Bayes != nil {
		m.Sparse.Bayes = in.Bayes()
	}
	return m, nil
}

func (in *SparseInput) bad(format string, args ...any) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "add data set " + in.Name, Msg: fmt.Sprintf(format, args...)}
}

// spread is mean and variance of numbers that come one by one (Welford 1962).
type spread struct {
	n         int
	mean, sum float64
	low, high float32
}

func (s *spread) add(v float32) {
	s.n++
	d := float64(v) - s.mean
	s.mean += d / float64(s.n)
	s.sum += d * (float64(v) - s.mean)
	s.low, s.high = min(s.low, v), max(s.high, v)
}

func (s *spread) deviation() float64 { return math.Sqrt(s.sum / float64(max(1, s.n))) }

// sparseWriter makes the chunks of a part.
type sparseWriter struct {
	s    *Store
	ctx  context.Context //nolint:containedctx // of one call of AddSparse
	in   *SparseInput
	part string
	dry  bool

	done    Part
	entries int64
	most    int // entries of a row
	columns int

	rows                         int // of the chunk being made
	starts, index, value, target []byte
	file                         bytes.Buffer
}

// add takes a row, and writes the chunk that is full with it.
func (w *sparseWriter) add(row SparseRow) error {
	if err := w.check(row); err != nil {
		return err
	}
	if w.rows == 0 {
		w.starts = binary.LittleEndian.AppendUint32(w.starts[:0], 0)
	}
	for k, c := range row.Index {
		w.index = binary.LittleEndian.AppendUint32(w.index, uint32(c))
		if !w.in.Ones {
			w.value = binary.LittleEndian.AppendUint32(w.value, math.Float32bits(row.Value[k]))
		}
		w.columns = max(w.columns, int(c)+1)
	}
	w.starts = binary.LittleEndian.AppendUint32(w.starts, uint32(len(w.index)/4))
	w.target = binary.LittleEndian.AppendUint32(w.target, math.Float32bits(row.Target))
	w.rows++
	w.entries += int64(len(row.Index))
	w.most = max(w.most, len(row.Index))
	if len(w.starts)+len(w.index)+len(w.value)+len(w.target) < chunkBytes {
		return nil
	}
	return w.flush()
}

func (w *sparseWriter) check(row SparseRow) error {
	at := w.done.Rows + w.rows
	switch {
	case !w.in.Ones && len(row.Value) != len(row.Index):
		return w.in.bad("row %d has %d columns and %d values", at, len(row.Index), len(row.Value))
	case !finite(row.Target):
		return w.in.bad("the target of row %d is %g, which is nothing to learn from", at, row.Target)
	case w.in.Classes == 2 && row.Target != 0 && row.Target != 1:
		return w.in.bad("the target of row %d is %g, and neither 0 nor 1", at, row.Target)
	case w.in.Users > 0 && (len(row.Index) != 2 || int(row.Index[0]) >= w.in.Users || int(row.Index[1]) < w.in.Users):
		return w.in.bad("row %d is no user and an item", at)
	}
	for k, c := range row.Index {
		if c < 0 || w.in.Columns > 0 && int(c) >= w.in.Columns {
			return w.in.bad("row %d has an entry in column %d, and there are %d", at, c, w.in.Columns)
		}
		if !w.in.Ones && !finite(row.Value[k]) {
			return w.in.bad("row %d has %g in column %d, which is no value to learn from", at, row.Value[k], c)
		}
	}
	return nil
}

// flush writes the chunk that was being made, if there is any row in it.
func (w *sparseWriter) flush() error {
	if w.rows == 0 {
		return nil
	}
	entries := len(w.index) / 4
	tensors := []safetensors.Tensor{
		{Name: "start", DType: safetensors.I32, Shape: []int{w.rows + 1}, Data: w.starts},
		{Name: "index", DType: safetensors.I32, Shape: []int{entries}, Data: w.index},
	}
	if !w.in.Ones {
		tensors = append(tensors, safetensors.Tensor{Name: "value", DType: safetensors.F32, Shape: []int{entries}, Data: w.value})
	}
	tensors = append(tensors, safetensors.Tensor{Name: "y", DType: safetensors.F32, Shape: []int{w.rows}, Data: w.target})
	w.file.Reset()
	if err := safetensors.Write(&w.file, safetensors.File{Tensors: tensors}); err != nil {
		return err
	}
	data := w.file.Bytes()
	c := Chunk{
		Key: chunkKey(w.in.Name, w.part, len(w.done.Chunks)), Rows: w.rows, Entries: entries, Size: disdel.Bytes(len(data)),
		Checksum: checksum(data),
	}
	if !w.dry {
		if err := blobs.WriteAll(w.ctx, w.s.bucket, c.Key, data); err != nil {
			return blobs.Wrap(err, "write chunk", c.Key)
		}
	}
	w.done.Chunks = append(w.done.Chunks, c)
	w.done.Rows += w.rows
	w.rows, w.index, w.value, w.target = 0, w.index[:0], w.value[:0], w.target[:0]
	return nil
}
