package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/disdel/disdel"
)

// IDX is an array in the format of the MNIST files: zero, zero, a type, the rank, the sides as big-endian u32, values.
// It holds unsigned bytes (type 8) or floats (type 13, big-endian).
type IDX struct {
	Shape  []int
	Data   []byte // one of Data and Floats holds the values
	Floats []float32
}

const (
	idxBytes  = 8
	idxFloats = 13
)

// idxTypes are the types that IDX files may have besides.
var idxTypes = map[byte]string{9: "signed bytes", 11: "16-bit integers", 12: "32-bit integers", 14: "64-bit floats"}

// ReadIDX reads an IDX file, plain or gzip, of rank 1 to 4. It returns Corrupt for another magic or type and for data
// that does not fill the shape exactly, and says what the file is instead where that is plain to see.
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

// Layout is the order of an image's sides in a file.
type Layout string

// The layouts: channels first, as kept here and by PyTorch, and last, as Pillow, TensorFlow and OpenCV have them.
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

// pairShape checks that the shapes of images and labels go together, and returns the shape of a row. It is [channels
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

// labels reads labels that may be stored as floats.
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

// wholeLabel is the label of a row that is kept as a float.
func wholeLabel(row int, y float32) (int32, error) {
	if y < 0 || y > largestClasses-1 || y != float32(int32(y)) {
		return 0, damaged("IDX labels", "the label of row %d is %g, no whole number from 0", row, y)
	}
	return int32(y), nil
}

// channelsFirst turns rows of [H W C] into rows of [C H W], a row at a time.
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
