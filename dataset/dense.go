package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/safetensors"
)

// DenseRow is a row to add to a data set. It is valid until the next one.
type DenseRow struct {
	Bytes   []byte    // its values, if the data set stores bytes
	Values  []float32 // its values otherwise
	Label   int32
	Targets []float32 // instead of the label, of a data set with targets: standardised, one for each
	HeldOut bool      // it is for evaluation, not for training
}

// DenseInput is a data set of dense rows to add. Rows are read as a stream, with one chunk of each part in memory.
type DenseInput struct {
	Name         string   `json:"-"`
	Title        string   `json:"title"`
	License      string   `json:"license,omitempty"`
	Shape        []int    `json:"shape"` // [channels height width]
	Classes      int      `json:"classes"`
	ClassNames   []string `json:"classNames,omitempty"`
	LabelClasses bool     `json:"labelClasses,omitempty"` // labels are classes, even if they look like numbers to predict
	// Targets are numbers to predict instead of classes. Classes is then their number.
	Targets []disdel.Target `json:"targets,omitempty"`
	Bytes   bool            `json:"bytes,omitempty"`   // rows have Bytes, 0..255 for 0..1
	Columns []Column        `json:"columns,omitempty"` // of a table; nil: the values have no names
	// Label is the column of the classes in a table's file, and Missing are its texts that stand for no value besides the
	// usual ones.
	Label   string   `json:"label,omitempty"`
	Missing []string `json:"missing,omitempty"`
	Decimal string   `json:"decimal,omitempty"` // the mark of decimals in a table's file; "": a point, none for thousands
	// Separator is the character between the columns of a table's file that the user named; "": it was detected.
	Separator string `json:"separator,omitempty"`
	// Tokenizer is the tokenizer.json of rows that are tokens of text; nil: they are not.
	Tokenizer json.RawMessage `json:"tokenizer,omitempty"`
	// NextToken says that rows are texts whose next tokens are learned; Classes is the number of tokens.
	NextToken bool `json:"nextToken,omitempty"`
	// Each yields the rows in order, the same ones at every call. It returns yield's error.
	Each func(yield func(DenseRow) error) error `json:"-"`
	// Understood is how the reader interpreted the files.
	Understood Interpretation `json:"understood"`
}

// AddDense stores a data set of dense rows from a stream, with the errors of Add. An interrupted or failed call
// changes nothing.
func (s *Store) AddDense(ctx context.Context, in DenseInput, overwrite bool) (Manifest, error) {
	if err := in.check(); err != nil {
		return Manifest{}, err
	}
	return s.addStream(ctx, in.Name, overwrite, func(dry bool) (Manifest, error) { return s.writeDense(ctx, &in, dry) })
}

// writeDense writes the chunks, or with dry only computes them, and returns the manifest.
func (s *Store) writeDense(ctx context.Context, in *DenseInput, dry bool) (Manifest, error) {
	m := Manifest{
		APIVersion: disdel.APIVersion, Name: in.Name, Title: in.Title, License: in.License, Sample: in.Shape,
		Classes: in.Classes, ClassNames: in.ClassNames, Targets: in.Targets, DType: "F32", Scale: 1, Columns: in.Columns,
		Label: in.Label, Missing: in.Missing, Decimal: in.Decimal, Separator: in.Separator,
		NextToken: in.NextToken,
	}
	if in.Bytes {
		m.DType, m.Scale = "U8", 1.0/255
	}
	if in.Tokenizer != nil {
		m.Tokenizer = checksum(in.Tokenizer)
		if !dry {
			key := tokenizerKey(in.Name)
			if err := blobs.WriteAll(ctx, s.bucket, key, in.Tokenizer); err != nil {
				return m, blobs.Wrap(err, "write tokenizer", key)
			}
		}
	}
	step := rowsOfChunk(int(m.SampleSize()))
	same := newDuplicates()
	train := &denseWriter{s: s, in: in, part: "train", dry: dry, step: step, sample: m.SampleLen(), same: same}
	test := &denseWriter{s: s, in: in, part: "test", dry: dry, step: step, sample: m.SampleLen(), same: same}
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
	if in.Tokenizer != nil {
		m.Tokens = 1 + int(max(train.largest, test.largest))
	}
	m.Duplicates = min(same.rows(), m.Test.Rows) // an estimate may be above
	if err == nil && m.Train.Rows == 0 {
		err = in.bad("it has no rows to learn from")
	}
	if err == nil && len(in.Targets) == 0 && !in.NextToken {
		err = in.checkLabelsAreClasses(&m, rows)
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
	case len(in.Targets) > 0 && len(in.Targets) != in.Classes:
		return in.bad("it has %d targets and says %d", len(in.Targets), in.Classes)
	case targetsFault(in.Targets) != "":
		return in.bad("%s", targetsFault(in.Targets))
	default:
		return nil
	}
}

// targetsFault says why targets cannot be learned, "" if they can.
func targetsFault(list []disdel.Target) string {
	for _, t := range list {
		for _, v := range []float64{t.Mean, t.Deviation, t.Low, t.High} {
			if v-v != 0 {
				return fmt.Sprintf("the target %.40s has a value of %g", t.Name, v)
			}
		}
		if t.Label != list[0].Label || t.Label && (t.Mean != 0 || t.Deviation != 1) {
			return fmt.Sprintf("the target %.40s: either all targets are labels of mean 0 and deviation 1, or none is", t.Name)
		}
		if !(t.Deviation > 0) {
			return fmt.Sprintf("the target %.40s has a deviation of %g, and needs one above 0", t.Name, t.Deviation)
		}
	}
	return ""
}

func (in *DenseInput) bad(format string, args ...any) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "add data set " + in.Name, Msg: fmt.Sprintf(format, args...)}
}

func tokenizerKey(name string) string { return path.Join(name, tokenizerFile) }

// tokenizerFile is the name of a data set's tokenizer.
const tokenizerFile = "tokenizer.json"

// Tokenizer returns the tokenizer.json that made the rows of a data set; nil if they are no tokens. It returns NotFound
// if the file is gone, and Corrupt if it is another one.
func (s *Store) Tokenizer(ctx context.Context, m *Manifest) ([]byte, error) {
	if m.Tokenizer == "" {
		return nil, nil
	}
	key := tokenizerKey(m.Name)
	data, err := blobs.ReadAll(ctx, s.bucket, key)
	if err != nil {
		return nil, blobs.Wrap(err, "read tokenizer", key)
	}
	if got := checksum(data); got != m.Tokenizer {
		return nil, &disdel.Error{
			Kind: disdel.Corrupt, Op: "read tokenizer", Msg: fmt.Sprintf("%s has checksum %s, not %s", key, got, m.Tokenizer),
			Hint: "add the data set again, with --overwrite",
		}
	}
	return data, nil
}

// denseWriter makes the chunks of a part. While one is made, the previous one is written.
type denseWriter struct {
	s            *Store
	in           *DenseInput
	part         string
	dry          bool
	step, sample int // rows of a full chunk, values of a row
	same         *duplicates

	done    Part
	largest float32 // token of a row of text
	rows    int     // of the chunk being made
	made    denseChunk
	before  denseChunk
	late    chan error // result of writing the previous chunk; nil: it is written
}

type denseChunk struct {
	values, labels []byte
	Chunk
}

// add adds a row, and writes a full chunk.
func (w *denseWriter) add(ctx context.Context, row DenseRow) error {
	if err := w.check(row); err != nil {
		return err
	}
	values, labels := len(w.made.values), len(w.made.labels)
	w.made.values = append(w.made.values, row.Bytes...)
	w.made.values = appendFloats(w.made.values, row.Values)
	w.made.labels = appendLabel(w.made.labels, w.in, row)
	w.same.add(row.HeldOut, w.made.values[values:], w.made.labels[labels:])
	if w.rows++; w.rows < w.step {
		return nil
	}
	return w.flush(ctx)
}

// appendLabel appends a row's label or its targets in the format of files.
func appendLabel(to []byte, in *DenseInput, row DenseRow) []byte {
	if len(in.Targets) > 0 {
		return appendFloats(to, row.Targets)
	}
	return binary.LittleEndian.AppendUint32(to, uint32(row.Label))
}

// appendFloats appends values in the format of files.
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
	if len(row.Targets) != len(w.in.Targets) {
		return w.in.bad("row %d has %d targets, and the data set has %d", at, len(row.Targets), len(w.in.Targets))
	}
	if row.Label < 0 || int(row.Label) >= w.in.Classes {
		return w.in.bad("the label of row %d is %d, and there are %d classes", at, row.Label, w.in.Classes)
	}
	for k, v := range row.Targets {
		if !finite(v) {
			return w.in.bad("the target %s of row %d is %g, which no network can learn", w.in.Targets[k].Name, at, v)
		}
		if w.in.Targets[k].Label && v != 0 && v != 1 {
			return w.in.bad("the label %s of row %d is %g, not 0 or 1", w.in.Targets[k].Name, at, v)
		}
	}
	for _, v := range row.Values {
		if v-v != 0 { // true for NaN and infinity; fast, since it runs for every value of a file
			return w.in.bad("row %d holds %g, which is no value to learn from", at, v)
		}
	}
	if w.in.Tokenizer != nil && !w.in.Bytes {
		w.largest = max(w.largest, slices.Max(row.Values))
	}
	return nil
}

// flush starts to write the current chunk if it has any row.
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

// write writes a chunk and sets its size and checksum.
func (w *denseWriter) write(ctx context.Context, c *denseChunk) error {
	x := safetensors.Tensor{
		Name: "x", DType: safetensors.F32, Shape: append([]int{c.Rows}, w.in.Shape...), Data: c.values,
	}
	if w.in.Bytes {
		x.DType = safetensors.U8
	}
	y := safetensors.Tensor{Name: "y", DType: safetensors.I32, Shape: []int{c.Rows}, Data: c.labels}
	if n := len(w.in.Targets); n > 0 {
		y.DType, y.Shape = safetensors.F32, []int{c.Rows, n}
	}
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
