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

// IDX is an array in the format of the MNIST files: two zero bytes, a type, the rank, the sides as big-endian u32,
// values. It has unsigned bytes (type 8) or floats (type 13, big-endian).
type IDX struct {
	Shape  []int
	Data   []byte // one of Data and Floats holds the values
	Floats []float32
}

const (
	idxBytes  = 8
	idxFloats = 13
)

// idxTypes are other types of IDX files.
var idxTypes = map[byte]string{9: "signed bytes", 11: "16-bit integers", 12: "32-bit integers", 14: "64-bit floats"}

// ReadIDX reads an IDX file, plain or gzip, of rank 1 to 4. It returns Corrupt for another magic or type and for data
// that does not fill the shape exactly, and says what the file is instead if that is obvious.
func ReadIDX(r io.Reader) (IDX, error) {
	in, err := expand(r)
	if err != nil {
		return IDX{}, err
	}
	x, kind, err := idxHead(in)
	if err != nil {
		return x, err
	}
	size, width, err := idxValues(x.Shape, kind)
	if err != nil {
		return IDX{}, err
	}
	data, err := in.read(size * width)
	if err != nil {
		e := disdel.AsError(err)
		return IDX{}, notFilled(x.Shape, size*width, e.Msg, e.Hint)
	}
	if kind == idxBytes {
		x.Data = data
		return x, nil
	}
	x.Floats = make([]float32, size)
	for i := range x.Floats {
		x.Floats[i] = math.Float32frombits(binary.BigEndian.Uint32(data[4*i:]))
		if !finite(x.Floats[i]) {
			return IDX{}, damaged("IDX file", "value %d is %g", i, x.Floats[i])
		}
	}
	return x, nil
}

// idxValues returns how many values a shape has, and the bytes of each.
func idxValues(shape []int, kind byte) (size, width int64, err error) {
	size, width = 1, map[byte]int64{idxBytes: 1, idxFloats: 4}[kind]
	for _, v := range shape {
		switch {
		case v < 1:
			return 0, 0, damaged("IDX file", "shape %v has a side of 0", shape)
		case size > maxExpanded/width/int64(v):
			return 0, 0, damaged("IDX file", "its shape %v is too large: a file may have %v", shape, disdel.Bytes(maxExpanded))
		}
		size *= int64(v)
	}
	return size, width, nil
}

// notFilled is the error of a file that does not fill its shape exactly.
func notFilled(shape []int, needs int64, why, hint string) error {
	return &disdel.Error{
		Kind: disdel.Corrupt, Op: "read IDX file", Hint: hint,
		Msg: fmt.Sprintf("shape %v needs %d bytes behind the header: %s", shape, needs, why),
	}
}

// idxHead reads the type and the shape.
func idxHead(in io.Reader) (x IDX, kind byte, err error) {
	var head [4]byte
	if n, err := io.ReadFull(in, head[:]); err != nil {
		var known *disdel.Error
		if errors.As(err, &known) {
			return x, 0, err
		}
		return x, 0, notIDX(head[:n])
	}
	kind, rank := head[2], int(head[3])
	if head[0] != 0 || head[1] != 0 || kind != idxBytes && kind != idxFloats || rank < 1 || rank > 4 {
		return x, 0, notIDX(head[:])
	}
	sides := make([]byte, 4*rank)
	if _, err := io.ReadFull(in, sides); err != nil {
		return x, 0, damaged("IDX file", "it ends in its header")
	}
	for i := range rank {
		x.Shape = append(x.Shape, int(binary.BigEndian.Uint32(sides[4*i:])))
	}
	return x, kind, nil
}

// notIDX says what a file is instead of an IDX file, by its first bytes.
func notIDX(head []byte) error {
	e := &disdel.Error{Kind: disdel.Corrupt, Op: "read IDX file"}
	is := func(magic string) bool { return len(head) >= len(magic) && string(head[:len(magic)]) == magic }
	const write = "write it as IDX: 00 00 08 (unsigned bytes) or 00 00 0d (32-bit floats), the rank, every side as 4 " +
		"bytes, the values; all big-endian"
	switch {
	case len(head) == 0:
		e.Msg = "it is empty"
	case is("\x1f\x8b"):
		e.Msg, e.Hint = "it is packed with gzip more than once", "unpack it with gunzip"
	case is("\x93NUM"):
		e.Msg, e.Hint = "it is a NumPy array (.npy)", "leave out --format, or say --format npy"
	case is("PK"):
		e.Msg, e.Hint = "it is a zip archive, perhaps .npz", "--npz FILE reads one"
	case is("\x89PNG"), is("\xff\xd8"), is("GIF8"):
		e.Msg, e.Hint = "it is a picture", "--images FOLDER reads a folder with a folder of pictures for each class"
	case is("\x89HDF"):
		e.Msg, e.Hint = "it is an HDF5 file", write
	case text(head):
		e.Msg, e.Hint = fmt.Sprintf("it is text: it starts with %q", head), "--csv FILE reads a table"
	case len(head) == 4 && head[0] == 0 && head[1] == 0 && idxTypes[head[2]] != "":
		e.Msg, e.Hint = "it holds "+idxTypes[head[2]], "give unsigned bytes (type 8) or 32-bit floats (type 13)"
	case len(head) == 4 && head[0] == 0 && head[1] == 0 && (head[2] == idxBytes || head[2] == idxFloats):
		e.Msg, e.Hint = fmt.Sprintf("it has rank %d", head[3]),
			"give labels of rank 1, and data of [rows features], [rows H W] or [rows C H W]"
	default:
		e.Msg, e.Hint = fmt.Sprintf("it starts with % x, not with 00 00 08 or 00 00 0d and a rank of 1 to 4", head), write
	}
	return e
}

func text(head []byte) bool {
	for _, c := range head {
		if c != '\n' && c != '\r' && c != '\t' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}

// Layout is the order of an image's dimensions in a file.
type Layout string

// The layouts: channels first, as here and in PyTorch, or last, as in Pillow, TensorFlow and OpenCV.
const (
	CHW Layout = "chw"
	HWC Layout = "hwc"
)

// FromIDX makes samples of data, [rows features], [rows H W] or [rows C H W] (HWC: [rows H W C]), and labels, [rows].
func FromIDX(images, labels IDX, layout Layout) (Samples, error) {
	shape, err := pairShape(images.Shape, labels.Shape)
	if err != nil {
		return Samples{}, err
	}
	s := Samples{Shape: shape, U8: images.Data, F32: images.Floats}
	if len(images.Shape) == 4 && layout == HWC {
		s.channelsFirst()
	}
	s.Labels, err = labels.labels()
	return s, err
}

// pairShape checks that the shapes of images and labels fit together, and returns the shape of a row. It is [channels
// height width] if the file's layout is, too.
func pairShape(images, labels []int) ([]int, error) {
	if len(images) < 2 || len(labels) != 1 {
		return nil, &disdel.Error{
			Kind: disdel.Corrupt, Op: "read IDX pair",
			Msg:  fmt.Sprintf("data of shape %v and labels of shape %v", images, labels),
			Hint: "data are [rows features], [rows H W] or [rows C H W], labels [rows]; perhaps the two files were swapped",
		}
	}
	if images[0] != labels[0] {
		return nil, damaged("IDX pair", "%d images and %d labels", images[0], labels[0])
	}
	shape := []int{1, 1, 1}
	copy(shape[4-len(images):], images[1:])
	return shape, nil
}

// labels reads labels that may be floats.
func (x *IDX) labels() ([]int32, error) {
	out := make([]int32, x.Shape[0])
	for i, y := range x.Data {
		out[i] = int32(y)
	}
	for i, y := range x.Floats {
		var err error
		if out[i], err = wholeLabel(i, y); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// wholeLabel is a row's label from a float.
func wholeLabel(row int, y float32) (int32, error) {
	if y < 0 || y > largestClasses-1 || y != float32(int32(y)) {
		return 0, damaged("IDX labels", "the label of row %d is %g, no whole number from 0", row, y)
	}
	return int32(y), nil
}

// channelsFirst turns rows of [H W C] into rows of [C H W].
func (x *Samples) channelsFirst() {
	h, w, c := x.Shape[0], x.Shape[1], x.Shape[2]
	x.Shape = []int{c, h, w}
	transpose(x.U8, h*w, c)
	transpose(x.F32, h*w, c)
}

// transpose turns rows of [pixels channels] into rows of [channels pixels] in place.
func transpose[T byte | float32](rows []T, pixels, channels int) {
	one := make([]T, pixels*channels)
	for ; len(rows) > 0; rows = rows[len(one):] {
		copy(one, rows)
		for p := range pixels {
			for c := range channels {
				rows[c*pixels+p] = one[p*channels+c]
			}
		}
	}
}

// IDXFiles is a data set of open, unpacked IDX files. Its rows are read one at a time, so files of any size need the
// memory of one row.
type IDXFiles struct {
	Images, Labels         *os.File
	TestImages, TestLabels *os.File // of held-out rows; both nil: none
	Layout                 Layout   // "": CHW
	ClassNames             []string
}

// IDXRows is the rows of IDXFiles as a data set to add.
type IDXRows struct {
	DenseInput
	rows  []int // training rows of each class
	first int32 // class of the first training row
}

// Warnings returns warnings about valid but unusual data.
func (x *IDXRows) Warnings(m *Manifest, layoutGiven bool) []string {
	rows := append(x.rows, make([]int, max(0, m.Classes-len(x.rows)))...)
	return warningsOf(rows, m, layoutGiven)
}

// Interpretation is how the files were interpreted. m is the manifest of the data set that they became.
func (x *IDXRows) Interpretation(m *Manifest) Interpretation {
	rows := append(slices.Clone(x.rows), make([]int, max(0, m.Classes-len(x.rows)))...)
	return arraysUnderstood("IDX arrays", rows, int(x.first), m)
}

// Rows returns the files as a data set to add, equal to that of Parts.Input. It reads all labels, but no images. It
// returns Corrupt like ReadIDX, and Invalid for rows that are too large to be sent.
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
		if !p.heldOut { // these decide the number of classes without names
			x.rows, x.Classes = rows, len(rows)
		}
	}
	if train.rows > 0 {
		if x.first, err = train.label(train.labels.values(), 0); err != nil {
			return x, err
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

// idxPair is images with their labels.
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

// label reads the label of the next row.
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

// each yields the rows.
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

// bigEndian appends floats of an IDX file.
func bigEndian(to []float32, text []byte) []float32 {
	for ; len(text) >= 4; text = text[4:] {
		to = append(to, math.Float32frombits(binary.BigEndian.Uint32(text)))
	}
	return to
}
