package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/safetensors"
)

// DenseRow is a row on its way into a data set. It is good until the next one.
type DenseRow struct {
	Bytes   []byte    // its values, where the data set keeps bytes
	Values  []float32 // else these
	Label   int32
	HeldOut bool // it is of the part that is evaluated, and never learned from
}

// DenseInput is a data set of dense rows to add. Rows are read as a stream: of as many as there are, a chunk of each
// part is in memory.
type DenseInput struct {
	Name, Title, License string
	Shape                []int // [channels height width]
	Classes              int
	ClassNames           []string
	LabelClasses         bool     // each label is a class, also where labels look like numbers to predict
	Bytes                bool     // rows have Bytes, kept as 0..1 from 0..255
	Columns              []Column // what the values of a row come from; nil: they have no names
	// Each gives the rows one after the other, the same ones whenever it is called. It returns what yield returns.
	Each func(yield func(DenseRow) error) error
	// Understood is what the reader took the files for.
	Understood Understood
}

// AddDense stores a data set of dense rows that come as a stream, as Add does one in memory, with the same errors. Who
// is interrupted, or whose rows turn out to be wrong, has added nothing and changed nothing.
func (s *Store) AddDense(ctx context.Context, in DenseInput, overwrite bool) (Manifest, error) {
	if err := in.check(); err != nil {
		return Manifest{}, err
	}
	return s.addStream(ctx, in.Name, overwrite, func(dry bool) (Manifest, error) { return s.writeDense(ctx, &in, dry) })
}

// writeDense writes the chunks, or with dry only works out what they would be, and returns the manifest.
func (s *Store) writeDense(ctx context.Context, in *DenseInput, dry bool) (Manifest, error) {
	m := Manifest{
		APIVersion: disdel.APIVersion, Name: in.Name, Title: in.Title, License: in.License, Sample: in.Shape,
		Classes: in.Classes, ClassNames: in.ClassNames, DType: "F32", Scale: 1, Columns: in.Columns,
	}
	if in.Bytes {
		m.DType, m.Scale = "U8", 1.0/255
	}
	step := rowsOfChunk(int(m.SampleSize()))
	train := &denseWriter{s: s, in: in, part: "train", dry: dry, step: step, sample: m.SampleLen()}
	test := &denseWriter{s: s, in: in, part: "test", dry: dry, step: step, sample: m.SampleLen()}
	rows := make([]int, in.Classes)
	err := in.Each(func(row DenseRow) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if row.HeldOut {
			return test.add(ctx, row)
		}
		if err := train.add(ctx, row); err != nil {
			return err
		}
		rows[row.Label]++
		return nil
	})
	for _, w := range []*denseWriter{train, test} {
		if err == nil {
			err = w.flush(ctx)
		}
		if late := w.settle(); err == nil {
			err = late
		}
	}
	m.Train, m.Test = train.done, test.done
	if err == nil && m.Train.Rows == 0 {
		err = in.bad("it has no rows to learn from")
	}
	if err == nil {
		err = in.judgeLabels(&m, rows)
	}
	return m, err
}

func (in *DenseInput) check() error {
	if err := checkName(in.Name); err != nil {
		return err
	}
	switch {
	case len(in.Shape) != 3 || !bounded(in.Shape, largestSample):
		return in.bad("rows of shape %v, and they are [channels height width]", in.Shape)
	case in.Classes < 1 || in.Classes > largestClasses || len(in.ClassNames) > in.Classes:
		return in.bad("%d classes and %d names of them", in.Classes, len(in.ClassNames))
	default:
		return nil
	}
}

func (in *DenseInput) bad(format string, args ...any) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "add data set " + in.Name, Msg: fmt.Sprintf(format, args...)}
}

// denseWriter makes the chunks of a part. While one is made, the one before it is written.
type denseWriter struct {
	s            *Store
	in           *DenseInput
	part         string
	dry          bool
	step, sample int // rows of a full chunk, values of a row

	done   Part
	rows   int // of the chunk being made
	made   denseChunk
	before denseChunk
	late   chan error // what becomes of the chunk before; nil: it is written
}

// denseChunk is a chunk as it is made.
type denseChunk struct {
	values, labels []byte
	Chunk
}

// add takes a row, and writes the chunk that is full with it.
func (w *denseWriter) add(ctx context.Context, row DenseRow) error {
	if err := w.check(row); err != nil {
		return err
	}
	w.made.values = append(w.made.values, row.Bytes...)
	w.made.values = appendFloats(w.made.values, row.Values)
	w.made.labels = binary.LittleEndian.AppendUint32(w.made.labels, uint32(row.Label))
	if w.rows++; w.rows < w.step {
		return nil
	}
	return w.flush(ctx)
}

// appendFloats appends values as files have them.
func appendFloats(to []byte, values []float32) []byte {
	at := len(to)
	to = slices.Grow(to, 4*len(values))[:at+4*len(values)]
	for i, v := range values {
		binary.LittleEndian.PutUint32(to[at+4*i:], math.Float32bits(v))
	}
	return to
}

func (w *denseWriter) check(row DenseRow) error {
	values, other := len(row.Values), len(row.Bytes)
	if w.in.Bytes {
		values, other = other, values
	}
	at := w.done.Rows + w.rows
	if values != w.sample || other != 0 {
		return w.in.bad("row %d has %d values, and shape %v needs %d", at, values, w.in.Shape, w.sample)
	}
	if row.Label < 0 || int(row.Label) >= w.in.Classes {
		return w.in.bad("the label of row %d is %d, and there are %d classes", at, row.Label, w.in.Classes)
	}
	for _, v := range row.Values {
		if v-v != 0 { // as of NaN and of what is infinite; it is asked of every value of a file
			return w.in.bad("row %d holds %g, which is no value to learn from", at, v)
		}
	}
	return nil
}

// flush begins to write the chunk that was being made, if there is any row in it.
func (w *denseWriter) flush(ctx context.Context) error {
	if err := w.settle(); err != nil || w.rows == 0 {
		return err
	}
	w.made, w.before = w.before, w.made
	w.made.values, w.made.labels = w.made.values[:0], w.made.labels[:0]
	c := &w.before
	c.Chunk = Chunk{Key: chunkKey(w.in.Name, w.part, len(w.done.Chunks)), Rows: w.rows}
	w.done.Rows += w.rows
	w.rows, w.late = 0, make(chan error, 1)
	go func(late chan<- error) { late <- w.write(ctx, c) }(w.late)
	return nil
}

// settle waits for the chunk that is being written.
func (w *denseWriter) settle() error {
	if w.late == nil {
		return nil
	}
	err := <-w.late
	w.late = nil
	w.done.Chunks = append(w.done.Chunks, w.before.Chunk)
	return err
}

// write writes a chunk from the memory that it was made in, and says what it came to.
func (w *denseWriter) write(ctx context.Context, c *denseChunk) error {
	x := safetensors.Tensor{
		Name: "x", DType: safetensors.F32, Shape: append([]int{c.Rows}, w.in.Shape...), Data: c.values,
	}
	if w.in.Bytes {
		x.DType = safetensors.U8
	}
	y := safetensors.Tensor{Name: "y", DType: safetensors.I32, Shape: []int{c.Rows}, Data: c.labels}
	sum, file := sha256.New(), safetensors.File{Tensors: []safetensors.Tensor{x, y}}
	write := func(to io.Writer) error { return safetensors.Write(to, file) }
	size, err := safetensors.Size(file)
	switch {
	case err != nil:
	case w.dry:
		err = write(sum)
	default:
		err = blobs.Wrap(blobs.Write(ctx, w.s.bucket, c.Key, func(to io.Writer) error {
			return write(io.MultiWriter(sum, to))
		}), "write chunk", c.Key)
	}
	c.Size, c.Checksum = disdel.Bytes(size), checksumText(sum.Sum(nil))
	return err
}
