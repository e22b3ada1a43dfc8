// Package safetensors reads and writes the safetensors format (huggingface.co/docs/safetensors), which PyTorch, Keras
// and NumPy read: 8 bytes of header length, a JSON header, raw little-endian data. Data sets, updates and models are
// stored in it.
//
// The reader checks every number of the header against the size of the data before it returns a tensor. It returns
// Corrupt for damaged files.
package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sort"
	"unsafe"

	"github.com/disdel/disdel"
)

// DType is the type of a tensor's values.
type DType string

// The types that disdel uses.
const (
	F32 DType = "F32"
	U8  DType = "U8"
	I32 DType = "I32"
	I64 DType = "I64"
)

// Types that other programs write: disdel only reads them, as numbers or as bytes.
const (
	F16  DType = "F16"
	BF16 DType = "BF16"
	F64  DType = "F64"
	Bool DType = "BOOL"
)

// Size is the bytes of one value, 0 for a type that is not supported.
func (d DType) Size() int {
	switch d {
	case U8, Bool:
		return 1
	case F16, BF16:
		return 2
	case F32, I32:
		return 4
	case I64, F64:
		return 8
	default:
		return 0
	}
}

// Tensor is a named array, row-major and little-endian.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	Data  []byte
}

// File is a set of tensors in file order, and text about them.
type File struct {
	Metadata map[string]string
	Tensors  []Tensor
}

const (
	metadataKey = "__metadata__"
	maxHeader   = 16 << 20
	maxRank     = 8
)

type entry struct {
	DType   DType    `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// Write writes f; the same file always gives the same bytes. It returns Invalid for a tensor whose data does not fit
// its shape or whose name is taken.
func Write(w io.Writer, f File) error {
	for _, t := range f.Tensors {
		if err := fits(t, len(t.Data)); err != nil {
			return err
		}
	}
	return write(w, f, func(i int) ([]byte, error) { return f.Tensors[i].Data, nil })
}

// WriteValues writes weights that need not be in memory: shapes has only names and shapes, and each calls take with the
// values of all tensors in a row, in blocks of any length. The bytes are those that Write writes of FromWeights. It
// returns Invalid if there are more or fewer values, and the errors of each.
func WriteValues(w io.Writer, shapes disdel.Weights, metadata map[string]string,
	each func(take func(block []float32) error) error,
) error {
	f := File{Metadata: metadata, Tensors: make([]Tensor, len(shapes))}
	remaining := int64(0)
	for i, t := range shapes {
		f.Tensors[i] = Tensor{Name: t.Name, DType: F32, Shape: t.Shape}
		n, err := size(F32, t.Shape)
		if err != nil {
			return fits(f.Tensors[i], 0)
		}
		remaining += n
	}
	if err := WriteHeader(w, f); err != nil {
		return err
	}
	err := each(func(block []float32) error {
		data := FromFloat32s("", nil, block).Data
		if remaining -= int64(len(data)); remaining < 0 {
			return unlike(remaining)
		}
		if _, err := w.Write(data); err != nil {
			return unwritten(err)
		}
		return nil
	})
	if err == nil && remaining > 0 {
		return unlike(remaining)
	}
	return err
}

// unlike is the error of values that do not fit their shapes: so many bytes are missing, or too many if below 0.
func unlike(remaining int64) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "write tensors",
		Msg: fmt.Sprintf("the values differ from their shapes by %d bytes", remaining),
	}
}

// fits returns Invalid unless a tensor's bytes are as many as its shape says.
func fits(t Tensor, bytes int) error {
	n, err := size(t.DType, t.Shape)
	if err == nil && n == int64(bytes) {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "write tensors", Err: err,
		Msg: fmt.Sprintf("tensor %q of %s %v with %d bytes", t.Name, t.DType, t.Shape, bytes),
	}
}

// write writes a file whose tensors' data comes from data.
func write(w io.Writer, f File, data func(i int) ([]byte, error)) error {
	if err := WriteHeader(w, f); err != nil {
		return err
	}
	for i := range f.Tensors {
		part, err := data(i)
		if err != nil {
			return err
		}
		if _, err := w.Write(part); err != nil {
			return unwritten(err)
		}
	}
	return nil
}

// WriteHeader writes what stands before the data of f's tensors, whose own Data it does not look at: for who writes it
// behind, in file order and little-endian, as it comes to be. It returns Invalid for tensors that cannot be.
func WriteHeader(w io.Writer, f File) error {
	header, err := header(f)
	if err != nil {
		return err
	}
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(header)))
	for _, part := range [][]byte{length[:], header} {
		if _, err := w.Write(part); err != nil {
			return unwritten(err)
		}
	}
	return nil
}

func unwritten(err error) error {
	return &disdel.Error{Kind: disdel.Unavailable, Op: "write tensors", Err: err}
}

// header is the JSON object in file order, padded with spaces so that the data starts at a multiple of eight.
func header(f File) ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	if len(f.Metadata) > 0 {
		if err := field(&out, metadataKey, f.Metadata); err != nil {
			return nil, err
		}
	}
	seen, offset := map[string]bool{metadataKey: true}, int64(0)
	for _, t := range f.Tensors {
		n, err := size(t.DType, t.Shape)
		if err != nil || seen[t.Name] {
			return nil, &disdel.Error{
				Kind: disdel.Invalid, Op: "write tensors", Err: err,
				Msg: fmt.Sprintf("tensor %q of %s %v", t.Name, t.DType, t.Shape),
			}
		}
		seen[t.Name] = true
		if err := field(&out, t.Name, entry{t.DType, append([]int{}, t.Shape...), [2]int64{offset, offset + n}}); err != nil {
			return nil, err
		}
		offset += n
	}
	out.WriteByte('}')
	for out.Len()%8 != 0 {
		out.WriteByte(' ')
	}
	return out.Bytes(), nil
}

func field(out *bytes.Buffer, name string, v any) error {
	if out.Len() > 1 {
		out.WriteByte(',')
	}
	key, err := json.Marshal(name)
	if err != nil {
		return err
	}
	value, err := json.Marshal(v)
	if err != nil {
		return err
	}
	out.Write(key)
	out.WriteByte(':')
	out.Write(value)
	return nil
}

// size is the bytes of a tensor, or an error for a type, rank or product that cannot be.
func size(d DType, shape []int) (int64, error) {
	n := int64(d.Size())
	if n == 0 {
		return 0, fmt.Errorf("type %q is not supported", d)
	}
	if len(shape) > maxRank {
		return 0, fmt.Errorf("rank %d is above %d", len(shape), maxRank)
	}
	for _, v := range shape {
		if v < 0 {
			return 0, fmt.Errorf("side %d is negative", v)
		}
		if v > 0 && n > math.MaxInt64/int64(v) {
			return 0, fmt.Errorf("shape %v is too large", shape)
		}
		n *= int64(v)
	}
	return n, nil
}

func corrupt(format string, args ...any) error {
	return &disdel.Error{Kind: disdel.Corrupt, Op: "read tensors", Msg: fmt.Sprintf(format, args...)}
}

// Parse reads a file; its tensors are slices of data. It returns Corrupt unless the tensors fill the data exactly,
// without holes, overlaps or bytes left over.
func Parse(data []byte) (File, error) {
	if len(data) < 8 {
		return File{}, corrupt("%d bytes are too few for a header", len(data))
	}
	n, err := headerSize(data[:8], int64(len(data)))
	if err != nil {
		return File{}, err
	}
	body := data[8+n:]
	f, offsets, err := parse(data[8:8+n], int64(len(body)))
	for i, t := range f.Tensors {
		from, to := offsets[t.Name][0], offsets[t.Name][1]
		f.Tensors[i].Data = body[from:to:to]
	}
	return f, err
}

// Read reads a file of size bytes one tensor at a time, for who has no room for all of them: begin is told the
// metadata, and gives what takes the tensors in file order; the data of each is good until take returns. Where take is
// nil nothing more is read. It returns Corrupt as Parse does, before any tensor was taken, or if the file ends early,
// and the errors of begin and take.
func Read(r io.Reader, size int64, begin func(metadata map[string]string) (take func(Tensor) error, err error)) error {
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return corrupt("%d bytes are too few for a header", size)
	}
	n, err := headerSize(length[:], size)
	if err != nil {
		return err
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return corrupt("it ends in its header")
	}
	f, offsets, err := parse(text, size-8-int64(n))
	if err != nil {
		return err
	}
	take, err := begin(f.Metadata)
	if err != nil || take == nil {
		return err
	}
	largest := int64(0)
	for _, o := range offsets {
		largest = max(largest, o[1]-o[0])
	}
	buffer := make([]byte, largest)
	for _, t := range f.Tensors {
		t.Data = buffer[:offsets[t.Name][1]-offsets[t.Name][0]]
		if _, err := io.ReadFull(r, t.Data); err != nil {
			return corrupt("it ends in tensor %q", t.Name)
		}
		if err := take(t); err != nil {
			return err
		}
	}
	return nil
}

// Index reads the header of a file of size bytes: its tensors without their data, and where in the file that of each
// begins, by name. It returns Corrupt as Parse does.
func Index(r io.Reader, size int64) (f File, from map[string]int64, err error) {
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return f, nil, corrupt("%d bytes are too few for a header", size)
	}
	n, err := headerSize(length[:], size)
	if err != nil {
		return f, nil, err
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return f, nil, corrupt("it ends in its header")
	}
	f, offsets, err := parse(text, size-8-int64(n))
	from = map[string]int64{}
	for name, o := range offsets {
		from[name] = 8 + int64(n) + o[0]
	}
	return f, from, err
}

// headerSize reads the length of the header of a file of so many bytes.
func headerSize(length []byte, size int64) (int, error) {
	n := binary.LittleEndian.Uint64(length)
	if n > maxHeader || int64(n) > size-8 {
		return 0, corrupt("a header of %d bytes does not fit %d", n, size)
	}
	return int(n), nil
}

// parse reads a header that so many bytes of data follow: tensors without their data, and where that is.
func parse(header []byte, length int64) (File, map[string][2]int64, error) {
	fields, err := object(header)
	if err != nil {
		return File{}, nil, err
	}
	f, offsets, err := tensors(fields, length)
	if err == nil {
		err = tile(f, offsets, length)
	}
	if err != nil {
		return File{}, nil, err
	}
	return f, offsets, nil
}

// tensors reads the header's entries.
func tensors(fields map[string]json.RawMessage, length int64) (f File, offsets map[string][2]int64, err error) {
	offsets = map[string][2]int64{}
	for name, raw := range fields {
		if name == metadataKey {
			if err := strict(raw, &f.Metadata); err != nil {
				return f, nil, corrupt("metadata: %v", err)
			}
			continue
		}
		var e entry
		if err := strict(raw, &e); err != nil {
			return f, nil, corrupt("tensor %q: %v", name, err)
		}
		if e.DType.Size() == 0 {
			return f, nil, corrupt("tensor %q has values of type %.20q; numbers of 8 to 64 bits are read", name, e.DType)
		}
		want, err := size(e.DType, e.Shape)
		from, to := e.Offsets[0], e.Offsets[1]
		if err != nil || from < 0 || to < from || to > length || to-from != want {
			return f, nil, corrupt("tensor %q: %s %v at %d to %d of %d bytes", name, e.DType, e.Shape, from, to, length)
		}
		offsets[name] = e.Offsets
		f.Tensors = append(f.Tensors, Tensor{Name: name, DType: e.DType, Shape: e.Shape})
	}
	sort.Slice(f.Tensors, func(i, j int) bool {
		a, b := offsets[f.Tensors[i].Name], offsets[f.Tensors[j].Name]
		return a[0] < b[0] || a[0] == b[0] && (a[1] < b[1] || a[1] == b[1] && f.Tensors[i].Name < f.Tensors[j].Name)
	})
	return f, offsets, nil
}

// tile checks that the tensors cover the data exactly once.
func tile(f File, offsets map[string][2]int64, length int64) error {
	at := int64(0)
	for _, t := range f.Tensors {
		if offsets[t.Name][0] != at {
			return corrupt("tensor %q starts at %d, not at %d", t.Name, offsets[t.Name][0], at)
		}
		at = offsets[t.Name][1]
	}
	if at != length {
		return corrupt("%d bytes belong to no tensor", length-at)
	}
	return nil
}

// object reads a JSON object and refuses a key that comes twice, which encoding/json would let pass.
func object(data []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, corrupt("the header is no JSON object")
	}
	out := map[string]json.RawMessage{}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return nil, corrupt("the header is no JSON object")
		}
		if _, twice := out[name]; twice {
			return nil, corrupt("the header names %q twice", name)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, corrupt("the header's %q is no JSON", name)
		}
		out[name] = raw
	}
	if _, err := d.Token(); err != nil {
		return nil, corrupt("the header does not end")
	}
	if rest := data[d.InputOffset():]; len(bytes.TrimRight(rest, " ")) > 0 {
		return nil, corrupt("something follows the header")
	}
	return out, nil
}

func strict(raw json.RawMessage, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// FromFloat32s makes an F32 tensor of values. Where the machine's own order of bytes is the file's the tensor is a view
// of v: weights are the largest thing a process holds, and a copy just to write them would be one too many.
func FromFloat32s(name string, shape []int, v []float32) Tensor {
	t := Tensor{Name: name, DType: F32, Shape: shape}
	if littleEndian() && len(v) > 0 {
		t.Data = unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v))
		return t
	}
	t.Data = make([]byte, 4*len(v))
	PutFloat32s(t.Data, v)
	return t
}

func aligned(b []byte) bool { return uintptr(unsafe.Pointer(&b[0]))%unsafe.Alignof(float32(0)) == 0 }

func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }

// Size is the number of bytes that Write writes of f.
func Size(f File) (int, error) {
	h, err := header(f)
	n := 8 + len(h)
	for _, t := range f.Tensors {
		n += len(t.Data)
	}
	return n, err
}

// PutFloat32s writes v into dst, which has 4 bytes for each value.
func PutFloat32s(dst []byte, v []float32) {
	for i, x := range v {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
	}
}

// Float32s is the values of an F32 tensor. Where the machine's own order of bytes is the file's and the tensor lies at
// a multiple of four they are a view of its data, as in FromFloat32s: a copy would be all the weights once more.
// Elsewhere they are new memory. It returns Corrupt for another type.
func Float32s(t Tensor) ([]float32, error) {
	if t.DType != F32 {
		return nil, corrupt("tensor %q holds %s, not F32", t.Name, t.DType)
	}
	out := make([]float32, 0)
	if n := len(t.Data) / 4; n > 0 && littleEndian() && aligned(t.Data) {
		return unsafe.Slice((*float32)(unsafe.Pointer(&t.Data[0])), n), nil
	} else if n > 0 {
		out = make([]float32, n)
	}
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
	}
	return out, nil
}

// FromWeights makes a file of weights.
func FromWeights(w disdel.Weights, metadata map[string]string) File {
	f := File{Metadata: metadata, Tensors: make([]Tensor, len(w))}
	for i, t := range w {
		f.Tensors[i] = FromFloat32s(t.Name, t.Shape, t.Data)
	}
	return f
}

// ToWeights is every tensor of a file as weights, which are views of the file's data where Float32s' are: they keep all
// of it.
func ToWeights(f File) (disdel.Weights, error) {
	out := make(disdel.Weights, len(f.Tensors))
	for i, t := range f.Tensors {
		v, err := Float32s(t)
		if err != nil {
			return nil, err
		}
		out[i] = disdel.Tensor{Name: t.Name, Shape: t.Shape, Data: v}
	}
	return out, nil
}

// Widen writes the values of data as float32: those of F16 and BF16 exactly, those of F64 rounded. Other types than
// those and F32 give zeros.
func Widen(to []float32, from DType, data []byte) {
	for i := range to {
		switch from {
		case F32:
			to[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		case F64:
			to[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:])))
		case BF16:
			to[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
		case F16:
			to[i] = half(binary.LittleEndian.Uint16(data[2*i:]))
		default:
			to[i] = 0
		}
	}
}

// half is the value of IEEE 754's binary16.
func half(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exponent {
	case 0: // below the least normal number
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)/(1<<24)))
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	default:
		return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
	}
}
