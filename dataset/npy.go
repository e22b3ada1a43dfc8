package dataset

import (
	"encoding/binary"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// maxNPY bounds the values of an array read from a .npy file.
const maxNPY = 64 << 20

var npyHeader = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\{'descr': '([<|=]?[a-z]\d+)', 'fortran_order': (True|False), 'shape': \(([0-9, ` +
		`]*)\),? *\}\s*$`)
})

// ReadNPY reads a NumPy array of float32, float64, uint8, int32 or int64, in C or Fortran order, as float32 values in C
// order with its shape. It returns Corrupt for anything else, for big-endian values, and for data that does not fill
// the shape exactly.
func ReadNPY(r io.Reader) (values []float32, shape []int, err error) {
	var head [10]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || string(head[:6]) != "\x93NUMPY" || head[6] != 1 {
		return nil, nil, damaged("npy file", "it is no NumPy array of format 1.0")
	}
	text := make([]byte, binary.LittleEndian.Uint16(head[8:]))
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, nil, damaged("npy file", "it ends in its header")
	}
	m := npyHeader().FindStringSubmatch(string(text))
	if m == nil {
		return nil, nil, damaged("npy file", "its header is %.80q; it must hold plain little-endian numbers", text)
	}
	size, read := npyType(strings.TrimLeft(m[1], "<|="))
	if read == nil {
		return nil, nil, damaged("npy file", "values of type %s are not supported", m[1])
	}
	shape, n, err := npyShape(m[3])
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(n*size)+1))
	if err != nil || len(data) != n*size {
		return nil, nil, damaged("npy file", "it holds %d bytes, and shape %v needs %d", len(data), shape, n*size)
	}
	values = make([]float32, n)
	for i := range values {
		values[i] = read(data[i*size:])
	}
	if m[2] == "True" {
		values = rowMajor(values, shape)
	}
	return values, shape, nil
}

// rowMajor turns values in Fortran's order, the first index running fastest, into C's.
func rowMajor(values []float32, shape []int) []float32 {
	out, index := make([]float32, len(values)), make([]int, len(shape))
	for at := range out {
		from, stride := 0, 1
		for d, i := range index {
			from, stride = from+i*stride, stride*shape[d]
		}
		out[at] = values[from]
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < shape[d] {
				break
			}
			index[d] = 0
		}
	}
	return out
}

func npyShape(text string) (shape []int, n int, err error) {
	n = 1
	for side := range strings.SplitSeq(text, ",") {
		if side = strings.TrimSpace(side); side == "" {
			continue
		}
		v, err := strconv.Atoi(side)
		if err != nil || v > maxNPY || v > 0 && n > maxNPY/v {
			return nil, 0, damaged("npy file", "shape (%s) is too large", text)
		}
		n *= v
		shape = append(shape, v)
	}
	return shape, n, nil
}

func npyType(code string) (size int, read func([]byte) float32) {
	le := binary.LittleEndian
	switch code {
	case "f4":
		return 4, func(b []byte) float32 { return math.Float32frombits(le.Uint32(b)) }
	case "f8":
		return 8, func(b []byte) float32 { return float32(math.Float64frombits(le.Uint64(b))) }
	case "u1":
		return 1, func(b []byte) float32 { return float32(b[0]) }
	case "i4":
		return 4, func(b []byte) float32 { return float32(int32(le.Uint32(b))) }
	case "i8":
		return 8, func(b []byte) float32 { return float32(int64(le.Uint64(b))) }
	default:
		return 0, nil
	}
}
