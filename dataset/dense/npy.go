package dense

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// array is a NumPy array in a file that is read row by row.
type array struct {
	dataset.Source
	shape     []int
	kind      byte // u, i, f: numbers; b: true or false; U, S: texts
	size      int  // bytes of a value
	order     binary.ByteOrder
	reordered []byte // the values if they were in Fortran's order; nil: they are read from the file
}

// The header of a .npy file is a Python dictionary: numpy.org/doc/stable/reference/generated/numpy.lib.format.html
var npyField = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`'(descr|fortran_order|shape)': ('([^']*)'|True|False|\(([0-9, ]*)\))`)
})

const (
	mostRank    = 4
	mostTurned  = 1 << 30 // bytes of an array in Fortran's order, which has to be turned in memory
	mostElement = 1 << 20 // bytes of a text
)

// readArray reads the header of a .npy file.
func readArray(from dataset.Source) (*array, error) {
	a := &array{Source: from}
	in, err := from.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := npyHead(in)
	if err != nil {
		return nil, a.bad("%v", err)
	}
	fields := map[string]string{}
	for _, m := range npyField().FindAllStringSubmatch(text, -1) {
		fields[m[1]] = m[2]
	}
	if len(fields) != 3 {
		return nil, a.bad("its header is %.80q; it must hold plain numbers, no records and no objects", text)
	}
	if err := a.describe(strings.Trim(fields["descr"], "'")); err != nil {
		return nil, err
	}
	if err := a.sides(strings.Trim(fields["shape"], "()")); err != nil {
		return nil, err
	}
	if fields["fortran_order"] == "True" && len(a.shape) > 1 {
		return a, a.turn(in)
	}
	return a, nil
}

// npyHead reads the text of a header.
func npyHead(in io.Reader) (string, error) {
	var head [8]byte
	if _, err := io.ReadFull(in, head[:]); err != nil || string(head[:6]) != "\x93NUMPY" {
		return "", errors.New("it is no NumPy array")
	}
	length := make([]byte, 2)
	if head[6] > 1 {
		length = make([]byte, 4)
	}
	if _, err := io.ReadFull(in, length); err != nil {
		return "", errors.New("it ends in its header")
	}
	n := int(length[0]) | int(length[1])<<8
	if head[6] > 1 {
		n |= int(length[2])<<16 | int(length[3])<<24
	}
	if n > 1<<20 {
		return "", fmt.Errorf("a header of %d bytes is none", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(in, text); err != nil {
		return "", errors.New("it ends in its header")
	}
	return string(text), nil
}

// describe reads the type of the values: byte order, kind and size.
func (a *array) describe(descr string) error {
	order, rest := "|", descr
	if descr != "" && strings.ContainsRune("<>|=", rune(descr[0])) {
		order, rest = descr[:1], descr[1:]
	}
	a.order = binary.LittleEndian
	if order == ">" {
		a.order = binary.BigEndian
	}
	if rest == "" || !strings.ContainsRune("uifbUS", rune(rest[0])) {
		return a.bad("values of type %.20q are not read: numbers, booleans and texts are", descr)
	}
	n, err := strconv.Atoi(rest[1:])
	a.kind, a.size = rest[0], n
	switch {
	case err != nil || n < 1 || n > mostElement:
	case a.kind == 'U':
		a.size = 4 * n
		return nil
	case a.kind == 'S', a.kind == 'b' && n == 1:
		return nil
	case a.kind == 'f' && (n == 2 || n == 4 || n == 8), strings.ContainsRune("ui", rune(a.kind)) &&
		bits.OnesCount(uint(n)) == 1 && n <= 8:
		return nil
	}
	return a.bad("values of type %.20q are not read", descr)
}

// sides reads the shape.
func (a *array) sides(text string) error {
	n := int64(a.size)
	for side := range strings.SplitSeq(text, ",") {
		if side = strings.TrimSpace(side); side == "" {
			continue
		}
		v, err := strconv.ParseInt(side, 10, 64)
		if err != nil || v < 1 || v > math.MaxInt64/n {
			return a.bad("shape (%.60s) has a side of 0, or is too large", text)
		}
		n *= v
		a.shape = append(a.shape, int(v))
	}
	if len(a.shape) < 1 || len(a.shape) > mostRank {
		return a.bad("it has rank %d: data are [rows features], [rows H W] or [rows C H W], labels [rows]", len(a.shape))
	}
	return nil
}

// turn reads an array in Fortran's order, with the first index fastest, and changes it to C's order.
func (a *array) turn(in io.Reader) error {
	n, size := product(a.shape), a.size
	if n > mostTurned/size {
		return a.bad("it is in Fortran's order and has more than %v: write it with numpy.ascontiguousarray",
			disdel.Bytes(mostTurned))
	}
	data, err := io.ReadAll(io.LimitReader(in, int64(n*size)+1)) // a header may claim much more than the file has
	switch {
	case err != nil || len(data) < n*size:
		return a.bad("it ends before its shape %v is full", a.shape)
	case len(data) > n*size:
		return a.bad("more follows than its shape %v says", a.shape)
	}
	a.reordered = make([]byte, len(data))
	index := make([]int, len(a.shape))
	for at := range n {
		from, stride := 0, 1
		for d, i := range index {
			from, stride = from+i*stride, stride*a.shape[d]
		}
		copy(a.reordered[at*size:], data[from*size:(from+1)*size])
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < a.shape[d] {
				break
			}
			index[d] = 0
		}
	}
	return nil
}

// ReadNPY reads a file of one NumPy array of numbers: its values in C's order, and its shape. It returns Invalid for
// anything else, and for data that do not fill the shape exactly.
func ReadNPY(data []byte) (values []float32, shape []int, err error) {
	a, err := readArray(dataset.Source{Name: "npy file", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}})
	switch {
	case err != nil:
		return nil, nil, err
	case strings.ContainsRune("US", rune(a.kind)):
		return nil, nil, a.bad("it holds texts, not numbers")
	case product(a.shape) > len(data)/a.size:
		return nil, nil, a.bad("it ends before its shape %v is full", a.shape)
	}
	rows, err := a.open()
	if err != nil {
		return nil, nil, err
	}
	values = make([]float32, 0, product(a.shape))
	for range a.shape[0] {
		row, err := rows.next()
		if err != nil {
			return nil, nil, err
		}
		for ; len(row) > 0; row = row[a.size:] {
			values = append(values, float32(a.value(row)))
		}
	}
	return values, a.shape, rows.end()
}

func (a *array) bad(format string, args ...any) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "read " + a.Name, Msg: fmt.Sprintf(format, args...)}
}

// rowLen is the number of values of a row.
func (a *array) rowLen() int { return product(a.shape[1:]) }

// rows reads an array.
type rows struct {
	a    *array
	in   io.ReadCloser // nil: from memory
	at   int
	data []byte // of a row
}

// open starts to read the rows.
func (a *array) open() (*rows, error) {
	r := &rows{a: a, data: make([]byte, a.rowLen()*a.size)}
	if a.reordered != nil {
		return r, nil
	}
	in, err := a.Open()
	if err != nil {
		return nil, err
	}
	if _, err := npyHead(in); err != nil {
		in.Close() //nolint:errcheck // nothing was written
		return nil, a.bad("%v", err)
	}
	r.in = in
	return r, nil
}

func (r *rows) close() {
	if r.in != nil {
		r.in.Close() //nolint:errcheck // nothing was written
	}
}

// next reads a row. It is valid until the next call.
func (r *rows) next() ([]byte, error) {
	if r.a.reordered != nil {
		r.data = r.a.reordered[r.at*len(r.data) : (r.at+1)*len(r.data)]
		r.at++
		return r.data, nil
	}
	if _, err := io.ReadFull(r.in, r.data); err != nil {
		return nil, r.a.bad("it ends in row %d of %d", r.at, r.a.shape[0])
	}
	r.at++
	return r.data, nil
}

// end checks that nothing follows the last row.
func (r *rows) end() error {
	if r.in == nil {
		return nil
	}
	if n, _ := io.ReadFull(r.in, make([]byte, 1)); n > 0 {
		return r.a.bad("more follows than its shape %v says", r.a.shape)
	}
	return nil
}

// value reads a number; a boolean is 0 or 1.
func (a *array) value(b []byte) float64 {
	var raw uint64
	switch a.size {
	case 1:
		raw = uint64(b[0])
	case 2:
		raw = uint64(a.order.Uint16(b))
	case 4:
		raw = uint64(a.order.Uint32(b))
	default:
		raw = a.order.Uint64(b)
	}
	switch a.kind {
	case 'f':
		return a.float(raw)
	case 'i':
		shift := 64 - 8*a.size
		return float64(int64(raw<<shift) >> shift)
	default:
		return float64(raw)
	}
}

func (a *array) float(raw uint64) float64 {
	switch a.size {
	case 2:
		return half(uint16(raw))
	case 4:
		return float64(math.Float32frombits(uint32(raw)))
	default:
		return math.Float64frombits(raw)
	}
}

// half is a 16-bit number of IEEE 754.
func half(h uint16) float64 {
	sign, exponent, fraction := 1.0, int(h>>10&31), float64(h&1023)
	if h>>15 == 1 {
		sign = -1
	}
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	default:
		return sign * math.Ldexp(1024+fraction, exponent-25)
	}
}

// text is a value as text.
func (a *array) text(b []byte) string {
	switch a.kind {
	case 'S':
		return strings.TrimRight(string(b), "\x00")
	case 'U':
		var out []byte
		for ; len(b) >= 4; b = b[4:] {
			if r := rune(a.order.Uint32(b)); r != 0 {
				out = utf8.AppendRune(out, r)
			}
		}
		return string(out)
	case 'b':
		return strconv.FormatBool(b[0] != 0)
	default:
		return strconv.FormatFloat(a.value(b), 'g', -1, 64)
	}
}

// archive is the arrays of a .npz file, by name.
func archive(file string) (map[string]dataset.Source, error) {
	z, err := zip.OpenReader(file)
	if err != nil {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + file, Err: plain(err),
			Hint: "--npz takes what numpy.savez wrote",
		}
	}
	defer z.Close()
	out := map[string]dataset.Source{}
	for _, entry := range z.File {
		name, ok := strings.CutSuffix(entry.Name, ".npy")
		if !ok || len(out) >= mostArrays {
			continue
		}
		out[name] = dataset.Source{
			Name: file + ": " + name,
			Open: func() (io.ReadCloser, error) { return openEntry(file, entry.Name) },
		}
	}
	return out, nil
}

// mostArrays is how many arrays of an archive are considered.
const mostArrays = 1000

// openEntry opens a file of an archive, and the archive with it.
func openEntry(file, name string) (io.ReadCloser, error) {
	z, err := zip.OpenReader(file)
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + file, Err: plain(err)}
	}
	in, err := z.Open(name)
	if err != nil {
		z.Close() //nolint:errcheck // nothing was written
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + file, Msg: name, Err: plain(err)}
	}
	return struct {
		io.Reader
		io.Closer
	}{in, z}, nil
}
