package dataset

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// RowsType is the media type of the rows that WriteDenseRows and WriteSparseRows write: the receiver need not know
// the formats of the original files.
const RowsType = "application/vnd.disdel.rows"

const rowsMagic = "disdel rows 1\n"

// Limits of sent rows. A few bytes can claim any size, so these are checked before anything is allocated.
const (
	longestHead = 16 << 20 // bytes of the head
	mostValues  = 1 << 20  // values in the head, as its commas count them
	mostObjects = 3 << 16  // columns and classes in the head, as its braces and nulls count them
	mostColumns = 1 << 16
	mostClasses = 1 << 16
	mostRow     = 16 << 20 // bytes of a dense row's values
	mostEntries = 1 << 20  // entries of a sparse row
)

// checkSent returns Invalid for rows that are too large to be sent. Their shape was checked before.
func (in *DenseInput) checkSent() error {
	switch size := in.RowBytes(); {
	case size > mostRow:
		return in.bad("a row has %v, and %v are the most", disdel.Bytes(size), disdel.Bytes(mostRow))
	case in.Classes > mostClasses:
		return in.bad("it has %d classes, and %d are the most", in.Classes, mostClasses)
	case len(in.Columns) > mostColumns:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "add data set " + in.Name,
			Msg:  fmt.Sprintf("it has %d columns, and a server takes at most %d", len(in.Columns), mostColumns),
			Hint: "leave columns out (--skip), or add and use it on your own computer, without a server",
		}
	default:
		return nil
	}
}

// RowBytes returns the memory of one row's values while they are added, in bytes.
func (in *DenseInput) RowBytes() int64 {
	width := int64(4)
	if in.Bytes {
		width = 1
	}
	return width * int64((&Manifest{Sample: in.Shape}).SampleLen())
}

// RowsHead returns the length of the head of rows, in bytes, and seeks back to the start. It returns Corrupt for data
// without such a head.
func RowsHead(from io.ReadSeeker) (int64, error) {
	r := &rowsReader{from: from}
	size, err := r.begin()
	if err == nil {
		_, err = from.Seek(0, io.SeekStart)
	}
	return size, err
}

// The first byte of a row.
const (
	rowLearned byte = iota
	rowHeldOut
	rowsEnd // the end, followed by the loss of a model that knows how the rows were made, 0 if unknown
)

// rowsHead describes all rows, with one of its fields.
type rowsHead struct {
	Dense  *DenseInput `json:"dense,omitempty"`
	Sparse *sparseHead `json:"sparse,omitempty"`
}

type sparseHead struct {
	SparseInput
	Made bool `json:"bayes,omitempty"` // the result of Bayes follows the rows
}

// WriteDenseRows writes a data set of dense rows for ReadRows. It returns Invalid for rows that ReadRows refuses for
// their size.
func WriteDenseRows(w io.Writer, in DenseInput) error {
	if err := in.checkSent(); err != nil {
		return err
	}
	return writeRows(w, rowsHead{Dense: &in}, func(put func(heldOut bool, row []byte) error) (float64, error) {
		var row []byte
		return 0, in.Each(func(r DenseRow) error {
			row = appendLabel(row[:0], &in, r)
			row = appendFloats(append(row, r.Bytes...), r.Values)
			return put(r.HeldOut, row)
		})
	})
}

// WriteSparseRows writes a data set of sparse rows for ReadRows.
func WriteSparseRows(w io.Writer, in SparseInput) error {
	head := rowsHead{Sparse: &sparseHead{in, in.Bayes != nil}}
	return writeRows(w, head, func(put func(heldOut bool, row []byte) error) (float64, error) {
		var row []byte
		err := in.Each(func(r SparseRow) error {
			row = appendFloats(row[:0], []float32{r.Target})
			row = binary.LittleEndian.AppendUint32(row, uint32(len(r.Index)))
			for _, column := range r.Index {
				row = binary.LittleEndian.AppendUint32(row, uint32(column))
			}
			if !in.Ones {
				row = appendFloats(row, r.Value)
			}
			return put(r.HeldOut, row)
		})
		if err != nil || in.Bayes == nil {
			return 0, err
		}
		return in.Bayes(), nil
	})
}

// writeRows writes the head, the rows, and the end.
func writeRows(w io.Writer, head rowsHead, rows func(put func(heldOut bool, row []byte) error) (float64, error)) error {
	text, err := json.Marshal(head)
	if err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "write rows", Err: err}
	}
	out := bufio.NewWriterSize(w, rowsBuffer)
	out.WriteString(rowsMagic) //nolint:errcheck // said by Flush, as the next ones
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(text))))
	out.Write(text)
	bayes, err := rows(func(heldOut bool, row []byte) error {
		kind := rowLearned
		if heldOut {
			kind = rowHeldOut
		}
		out.WriteByte(kind) //nolint:errcheck // the row's own says it too
		_, err := out.Write(row)
		return err
	})
	if err != nil {
		return err
	}
	out.WriteByte(rowsEnd) //nolint:errcheck // said by Flush
	out.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(bayes)))
	return out.Flush()
}

const rowsBuffer = 256 << 10

// ReadRows reads the head of rows as a data set with a name: one of dense rows, or of sparse ones. Their Each reads
// from, as often as it is called. It returns Corrupt for anything else.
func ReadRows(name string, from io.ReadSeeker) (dense *DenseInput, sparse *SparseInput, err error) {
	r := &rowsReader{from: from, name: name}
	head, err := r.head()
	if err != nil {
		return nil, nil, err
	}
	switch {
	case head.Dense != nil:
		in := head.Dense
		in.Name = name
		in.Each = func(yield func(DenseRow) error) error { return r.dense(in, yield) }
		if err := in.check(); err != nil {
			return nil, nil, err
		}
		return in, nil, in.checkSent()
	case head.Sparse != nil:
		in := &head.Sparse.SparseInput
		in.Name = name
		in.Each = func(yield func(SparseRow) error) error { return r.sparse(in.Ones, yield) }
		if head.Sparse.Made {
			in.Bayes = func() float64 { return r.bayes }
		}
		return nil, in, nil
	default:
		return nil, nil, r.bad("they are neither dense nor sparse", nil)
	}
}

// rowsReader reads sent rows.
type rowsReader struct {
	from  io.ReadSeeker
	name  string
	start int64   // of the first row
	bayes float64 // see SparseInput, once all rows were read
}

func (r *rowsReader) bad(why string, err error) error {
	return &disdel.Error{Kind: disdel.Corrupt, Op: "read rows of " + r.name, Msg: why, Err: err}
}

// begin reads up to the head, and returns its length.
func (r *rowsReader) begin() (int64, error) {
	begin := make([]byte, len(rowsMagic)+4)
	if _, err := io.ReadFull(r.from, begin); err != nil || string(begin[:len(rowsMagic)]) != rowsMagic {
		return 0, r.bad("they do not begin as rows do", nil)
	}
	size := binary.LittleEndian.Uint32(begin[len(rowsMagic):])
	if size > longestHead {
		return 0, r.bad(fmt.Sprintf("%d bytes are said of them", size), nil)
	}
	return int64(size), nil
}

func (r *rowsReader) head() (head rowsHead, err error) {
	size, err := r.begin()
	if err != nil {
		return head, err
	}
	var text bytes.Buffer
	if n, err := io.CopyN(&text, r.from, size); err != nil {
		return head, r.bad(fmt.Sprintf("they end after %d bytes of what is said of them", n), nil)
	}
	// A column takes many times the memory of its text, so values and columns are counted before they are decoded.
	data := text.Bytes()
	if bytes.Count(data, []byte(",")) > mostValues ||
		bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("null")) > mostObjects {
		return head, r.bad("more is said of them than of any rows", nil)
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return head, r.bad("what is said of them is no JSON of rows", err)
	}
	r.start = int64(len(rowsMagic)) + 4 + size
	return head, nil
}

// each calls take at each row; take reads it.
func (r *rowsReader) each(take func(in *bufio.Reader, heldOut bool) error) error {
	if _, err := r.from.Seek(r.start, io.SeekStart); err != nil {
		return r.bad("", err)
	}
	in := bufio.NewReaderSize(r.from, rowsBuffer)
	for {
		kind, err := in.ReadByte()
		switch {
		case err != nil:
			return r.broken(err)
		case kind == rowsEnd:
			var end [8]byte
			if _, err := io.ReadFull(in, end[:]); err != nil {
				return r.broken(err)
			}
			r.bayes = math.Float64frombits(binary.LittleEndian.Uint64(end[:]))
			return nil
		case kind > rowsEnd:
			return r.bad(fmt.Sprintf("a row begins with %d", kind), nil)
		}
		if err := take(in, kind == rowHeldOut); err != nil {
			return err
		}
	}
}

// broken is the error of rows that end too early, or cannot be read.
func (r *rowsReader) broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.bad("they have not come whole", nil)
	}
	return r.bad("", err)
}

func (r *rowsReader) dense(head *DenseInput, yield func(DenseRow) error) error {
	size := 1
	for _, side := range head.Shape { // checked before
		size *= side
	}
	if !head.Bytes {
		size *= 4
	}
	label := 4 * max(1, len(head.Targets))
	text := make([]byte, label+size)
	var values, targets []float32
	return r.each(func(in *bufio.Reader, heldOut bool) error {
		if _, err := io.ReadFull(in, text); err != nil {
			return r.broken(err)
		}
		row := DenseRow{HeldOut: heldOut}
		if len(head.Targets) > 0 {
			targets = floatsOf(targets[:0], text[:label])
			row.Targets = targets
		} else {
			row.Label = int32(binary.LittleEndian.Uint32(text))
		}
		if head.Bytes {
			row.Bytes = text[label:]
		} else {
			values = floatsOf(values[:0], text[label:])
			row.Values = values
		}
		return yield(row)
	})
}

func (r *rowsReader) sparse(ones bool, yield func(SparseRow) error) error {
	var text []byte
	var index []int32
	var values []float32
	return r.each(func(in *bufio.Reader, heldOut bool) error {
		var begin [8]byte
		if _, err := io.ReadFull(in, begin[:]); err != nil {
			return r.broken(err)
		}
		n := int(binary.LittleEndian.Uint32(begin[4:]))
		if n > mostEntries {
			return r.bad(fmt.Sprintf("a row has %d entries", n), nil)
		}
		size := 4 * n
		if !ones {
			size *= 2
		}
		text = slices.Grow(text[:0], size)[:size]
		if _, err := io.ReadFull(in, text); err != nil {
			return r.broken(err)
		}
		row := SparseRow{Target: math.Float32frombits(binary.LittleEndian.Uint32(begin[:])), HeldOut: heldOut}
		index = index[:0]
		for i := range n {
			index = append(index, int32(binary.LittleEndian.Uint32(text[4*i:])))
		}
		row.Index = index
		if !ones {
			values = floatsOf(values[:0], text[4*n:])
			row.Value = values
		}
		return yield(row)
	})
}

// floatsOf appends the values that appendFloats wrote.
func floatsOf(to []float32, text []byte) []float32 {
	for ; len(text) >= 4; text = text[4:] {
		to = append(to, math.Float32frombits(binary.LittleEndian.Uint32(text)))
	}
	return to
}

// Dense is a data set in memory as a stream.
func (in Input) Dense() (DenseInput, error) {
	m, err := in.manifest()
	if err != nil {
		return DenseInput{}, err
	}
	return in.dense(m), nil
}

// dense is Dense with a known manifest.
func (in Input) dense(m Manifest) DenseInput {
	out := DenseInput{
		Name: in.Name, Title: in.Title, License: in.License, Shape: in.Train.Shape, Classes: m.Classes,
		ClassNames: in.ClassNames, LabelClasses: true, Bytes: in.Train.U8 != nil,
	}
	out.Each = func(yield func(DenseRow) error) error {
		if err := in.Train.rows(false, yield); err != nil || in.Test == nil {
			return err
		}
		return in.Test.rows(true, yield)
	}
	return out
}

func (x *Samples) rows(heldOut bool, yield func(DenseRow) error) error {
	size := (&Manifest{Sample: x.Shape}).SampleLen()
	for i, label := range x.Labels {
		row := DenseRow{Label: label, HeldOut: heldOut}
		if x.U8 != nil {
			row.Bytes = x.U8[i*size : (i+1)*size]
		} else {
			row.Values = x.F32[i*size : (i+1)*size]
		}
		if err := yield(row); err != nil {
			return err
		}
	}
	return nil
}
