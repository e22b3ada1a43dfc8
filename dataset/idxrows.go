package dataset

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/disdel/disdel"
)

// IDXFiles is a data set in the format IDX whose files are open and unpacked. Its rows are read one at a time: files of
// any size take the memory of a row.
type IDXFiles struct {
	Images, Labels         *os.File
	TestImages, TestLabels *os.File // of held-out rows; both nil: none
	Layout                 Layout   // "": CHW
	ClassNames             []string
}

// IDXRows is the rows of IDXFiles as a data set to add.
type IDXRows struct {
	DenseInput
	rows []int // of each class, to learn from
}

// Doubts says what is allowed and yet probably not meant.
func (x *IDXRows) Doubts(m *Manifest, layoutGiven bool) []string {
	rows := append(x.rows, make([]int, max(0, m.Classes-len(x.rows)))...)
	return doubtsOf(rows, m, layoutGiven)
}

// Rows returns the files as a data set to add: the same one that Parts.Input makes of the files in memory. It reads all
// labels, but no images. It returns Corrupt as ReadIDX does, and Invalid for rows that are too large to be sent.
func (f IDXFiles) Rows(name string) (x IDXRows, err error) {
	train, err := openPair(f.Images, f.Labels, f.Layout)
	if err != nil {
		return x, err
	}
	pairs := []*idxPair{train}
	if f.TestImages != nil && f.TestLabels != nil {
		test, err := openPair(f.TestImages, f.TestLabels, f.Layout)
		if err != nil {
			return x, err
		}
		test.heldOut = true
		pairs = append(pairs, test)
	}
	x.DenseInput = DenseInput{
		Name: name, Shape: train.shape, ClassNames: f.ClassNames, LabelClasses: true, Bytes: train.images.width == 1,
	}
	for _, p := range pairs {
		if !slices.Equal(p.shape, train.shape) || p.images.width != train.images.width {
			return x, x.bad("%d rows of shape %v, and every part needs rows of one shape [channels height width]", p.rows,
				p.shape)
		}
		rows, err := p.count()
		if err != nil {
			return x, err
		}
		if !p.heldOut { // which says how many classes there are, where nobody names them
			x.rows, x.Classes = rows, len(rows)
		}
	}
	if n := len(f.ClassNames); n > 0 {
		x.Classes = n
		x.rows = x.rows[:min(n, len(x.rows))]
	}
	x.Each = func(yield func(DenseRow) error) error {
		for _, p := range pairs {
			if err := p.each(yield); err != nil {
				return err
			}
		}
		return nil
	}
	if err := x.check(); err != nil {
		return x, err
	}
	return x, x.checkSent()
}

// idxArray is an IDX file that is read row by row.
type idxArray struct {
	file  *os.File
	shape []int
	start int64 // of the values
	size  int64 // values
	width int64 // bytes of a value
}

func openIDX(file *os.File) (x idxArray, err error) {
	info, err := file.Stat()
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return x, damaged("IDX file", "%v", err)
	}
	head, kind, err := idxHead(file)
	if err != nil {
		return x, err
	}
	x = idxArray{file: file, shape: head.Shape, start: int64(4 + 4*len(head.Shape))}
	if x.size, x.width, err = idxValues(x.shape, kind); err != nil {
		return x, err
	}
	switch needs, has := x.size*x.width, info.Size()-x.start; {
	case has < needs:
		err = notFilled(x.shape, needs, fmt.Sprintf("it ends after %d of %d bytes", has, needs), "")
	case has > needs:
		err = notFilled(x.shape, needs, "more follows than its header says", "")
	}
	return x, err
}

// values reads the file's values from the first on.
func (x *idxArray) values() *bufio.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(x.file, x.start, x.size*x.width), rowsBuffer)
}

// idxPair is images and labels that go together.
type idxPair struct {
	images, labels idxArray
	rows           int
	shape          []int // of a row, [channels height width]
	lastChannels   bool  // rows lie in the file as [height width channels]
	heldOut        bool
}

func openPair(images, labels *os.File, layout Layout) (*idxPair, error) {
	p := &idxPair{}
	var err error
	if p.images, err = openIDX(images); err == nil {
		p.labels, err = openIDX(labels)
	}
	if err == nil {
		p.shape, err = pairShape(p.images.shape, p.labels.shape)
	}
	if err != nil {
		return nil, err
	}
	p.rows = p.images.shape[0]
	if len(p.images.shape) == 4 && layout == HWC {
		p.lastChannels = true
		p.shape = []int{p.shape[2], p.shape[0], p.shape[1]}
	}
	return p, nil
}

// label reads the label of a row, the next one.
func (p *idxPair) label(in io.Reader, row int) (int32, error) {
	var text [4]byte
	if _, err := io.ReadFull(in, text[:p.labels.width]); err != nil {
		return 0, unread(err)
	}
	if p.labels.width == 1 {
		return int32(text[0]), nil
	}
	return wholeLabel(row, math.Float32frombits(binary.BigEndian.Uint32(text[:])))
}

func unread(err error) error {
	if known := new(disdel.Error); errors.As(err, &known) {
		return err
	}
	return damaged("IDX file", "%v", err)
}

// count counts the rows of each class.
func (p *idxPair) count() (rows []int, err error) {
	labels := p.labels.values()
	for i := range p.rows {
		y, err := p.label(labels, i)
		if err != nil {
			return nil, err
		}
		if y >= mostClasses {
			return nil, damaged("IDX labels", "the label of row %d is %d, and %d classes are the most", i, y, mostClasses)
		}
		if more := int(y) + 1 - len(rows); more > 0 {
			rows = append(rows, make([]int, more)...)
		}
		rows[y]++
	}
	return rows, nil
}

// each gives the rows one after the other.
func (p *idxPair) each(yield func(DenseRow) error) error {
	sample := (&Manifest{Sample: p.shape}).SampleLen()
	images, labels := p.images.values(), p.labels.values()
	text := make([]byte, sample*int(p.images.width))
	var values []float32
	for i := range p.rows {
		if _, err := io.ReadFull(images, text); err != nil {
			return unread(err)
		}
		y, err := p.label(labels, i)
		if err != nil {
			return err
		}
		row := DenseRow{Label: y, HeldOut: p.heldOut}
		if p.images.width == 1 {
			row.Bytes = text
		} else {
			values = bigEndian(values[:0], text)
			row.Values = values
		}
		if c := p.shape[0]; p.lastChannels {
			transpose(row.Bytes, sample/c, c)
			transpose(row.Values, sample/c, c)
		}
		if err := yield(row); err != nil {
			return err
		}
	}
	return nil
}

// bigEndian appends floats as IDX files have them.
func bigEndian(to []float32, text []byte) []float32 {
	for ; len(text) >= 4; text = text[4:] {
		to = append(to, math.Float32frombits(binary.BigEndian.Uint32(text)))
	}
	return to
}
