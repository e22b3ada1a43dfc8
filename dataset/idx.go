package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/disdel/disdel"
)

// maxExpanded bounds what one file may unpack to, whatever its header or its compression says.
const maxExpanded = 4 << 30

func damaged(what, format string, args ...any) error {
	return &disdel.Error{Kind: disdel.Corrupt, Op: "read " + what, Msg: fmt.Sprintf(format, args...)}
}

// Expand returns r as it is, or unpacked if it is gzip; reading more than 4 GiB of it fails as Corrupt.
func Expand(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	head, err := in.Peek(2)
	if err != nil || head[0] != 0x1f || head[1] != 0x8b {
		return &capped{in, maxExpanded}, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, damaged("gzip", "%v", err)
	}
	return &capped{z, maxExpanded}, nil
}

type capped struct {
	r    io.Reader
	left int64
}

func (c *capped) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return n, damaged("file", "it unpacks to more than %v", disdel.Bytes(maxExpanded))
	}
	return n, err
}

// IDX is an array of bytes in the format of the MNIST files: zero, zero, type 8, rank, the sides as big-endian u32, values.
type IDX struct {
	Shape []int
	Data  []byte
}

// ReadIDX reads an IDX file, plain or gzip. It returns Corrupt for another magic or type, a rank other than 1, 3 or 4,
// and data that does not fill the shape exactly.
func ReadIDX(r io.Reader) (IDX, error) {
	in, err := Expand(r)
	if err != nil {
		return IDX{}, err
	}
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return IDX{}, damaged("IDX file", "it ends in its header")
	}
	rank := int(head[3])
	if head[0] != 0 || head[1] != 0 || head[2] != 8 || rank != 1 && rank != 3 && rank != 4 {
		return IDX{}, damaged("IDX file", "it starts with % x, not with 00 00 08 and a rank of 1, 3 or 4", head)
	}
	sides := make([]byte, 4*rank)
	if _, err := io.ReadFull(in, sides); err != nil {
		return IDX{}, damaged("IDX file", "it ends in its header")
	}
	x := IDX{}
	size := int64(1)
	for i := range rank {
		v := int64(binary.BigEndian.Uint32(sides[4*i:]))
		if v > 0 && size > maxExpanded/v {
			return IDX{}, damaged("IDX file", "its shape is too large")
		}
		size *= v
		x.Shape = append(x.Shape, int(v))
	}
	var data bytes.Buffer // grows with what is there, not with what the header says
	n, err := io.Copy(&data, io.LimitReader(in, size+1))
	if err != nil {
		return IDX{}, damaged("IDX file", "%v", err)
	}
	if n != size {
		return IDX{}, damaged("IDX file", "it holds %d bytes or more, and shape %v needs %d", n, x.Shape, size)
	}
	x.Data = data.Bytes()
	return x, nil
}

// FromIDX makes samples of images, [rows H W] or [rows C H W], and labels, [rows].
func FromIDX(images, labels IDX) (Samples, error) {
	if len(images.Shape) < 3 || len(labels.Shape) != 1 {
		return Samples{}, damaged("IDX pair", "images of shape %v and labels of shape %v", images.Shape, labels.Shape)
	}
	if images.Shape[0] != labels.Shape[0] {
		return Samples{}, damaged("IDX pair", "%d images and %d labels", images.Shape[0], labels.Shape[0])
	}
	shape := images.Shape[1:]
	if len(shape) == 2 {
		shape = []int{1, shape[0], shape[1]}
	}
	s := Samples{Shape: shape, U8: images.Data, Labels: make([]int32, len(labels.Data))}
	for i, y := range labels.Data {
		s.Labels[i] = int32(y)
	}
	return s, nil
}
