package export

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/safetensors"
)

// Field numbers of onnx.proto that only the reader knows.
const (
	opsetDomain                                     = 1
	nodeDomain                                      = 7
	attributeText, attributeArray, attributeNumbers = 4, 5, 7
	attributeTexts                                  = 9
	arrayFloats, arrayInts32, arrayInts             = 4, 5, 7
	arrayPlace, arrayWhere, placedOutside           = 13, 14, 1
	placeKey, placeValue                            = 1, 2
)

// Bounds of a file.
const (
	mostItems  = 200_000 // nodes, names, attributes and arrays
	mostSides  = 8
	mostFolded = 1024 // numbers of a list that is computed while reading
)

// array is a constant of an ONNX file. Its bytes are the file's.
type array struct {
	name  string
	sides []int
	kind  int64
	data  []byte
	ints  []int64 // of int64_data
	place map[string]string
	float []float32 // the values, once they were asked for

	computed bool // a node computes it of weights
}

// length is the number of values; the reader has checked that it does not overflow.
func (a *array) length() int {
	n := 1
	for _, side := range a.sides {
		n *= side
	}
	return n
}

// option is an attribute of a node.
type option struct {
	number float32
	whole  int64
	list   []int64
	text   string
	array  *array

	numbers []float32
	texts   []string // at most mostSides
}

// step is a node of an ONNX file.
type step struct {
	name, kind, domain string
	in, out            []string
	options            map[string]option
	done               bool // another node has taken it over
}

// end is an input or output of an ONNX graph. A side of 0 is not fixed.
type end struct {
	name  string
	kind  int64
	sides []int
}

// source is an ONNX graph that was read.
type source struct {
	name     string
	opset    int64
	steps    []*step
	arrays   map[string]*array
	inputs   []end
	outputs  []end
	mask     *end // the input that says which tokens are padding; nil: there is none
	items    int
	folder   *os.Root         // that has external data; nil: none is read
	loaded   map[string]int64 // bytes read of each file of external data
	network  []byte           // of networkNote; nil: there is none
	checksum string           // of checksumNote
	notes    []string         // what is different in the network
}

func damaged(format string, args ...any) error {
	return &disdel.Error{
		Kind: disdel.Corrupt, Op: "read ONNX", Msg: fmt.Sprintf(format, args...),
		Hint: "check that the file is an ONNX model and was copied completely",
	}
}

// fields calls take for each field of a protobuf message. number is the value of a varint or of fixed bytes.
func fields(data []byte, take func(field int, number uint64, part []byte) error) error {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 || tag>>3 == 0 || tag>>3 > math.MaxInt32 {
			return damaged("a field has no valid tag")
		}
		data = data[n:]
		var number uint64
		var part []byte
		switch tag & 7 {
		case kindVarint:
			if number, n = binary.Uvarint(data); n <= 0 {
				return damaged("a number ends early")
			}
		case kindBytes:
			length, head := binary.Uvarint(data)
			if head <= 0 || length > uint64(len(data)-head) {
				return damaged("a field is longer than the file")
			}
			n = head + int(length)
			part = data[head:n:n]
		case kindFixed4, 1:
			if n = 4; tag&7 == 1 {
				n = 8
			}
			if len(data) < n {
				return damaged("a number ends early")
			}
			part = data[:n:n]
			if n == 4 {
				number = uint64(binary.LittleEndian.Uint32(part))
			}
		default:
			return damaged("a field has the unknown wire type %d", tag&7)
		}
		data = data[n:]
		if err := take(int(tag>>3), number, part); err != nil {
			return err
		}
	}
	return nil
}

// readONNX reads the graph of a model. It holds views of data, and at most mostItems small things besides.
func readONNX(data []byte, folder *os.Root) (*source, error) {
	s := &source{arrays: map[string]*array{}, folder: folder, loaded: map[string]int64{}}
	graphs := 0
	err := fields(data, func(field int, _ uint64, part []byte) error {
		switch field {
		case modelGraph:
			graphs++
			return s.graph(part)
		case modelOpset:
			return s.operators(part)
		case modelNote:
			return s.note(part)
		}
		return nil
	})
	if err == nil && graphs != 1 {
		err = damaged("it has %d graphs, and a model has one", graphs)
	}
	return s, err
}

// count refuses files with more small parts than any network has.
func (s *source) count() error {
	if s.items++; s.items > mostItems {
		return damaged("the graph has more than %d parts", mostItems)
	}
	return nil
}

func (s *source) note(data []byte) error {
	var key string
	var value []byte
	err := fields(data, func(field int, _ uint64, part []byte) error {
		switch field {
		case noteKey:
			key = string(part)
		case noteValue:
			value = part
		}
		return nil
	})
	switch key {
	case networkNote:
		s.network = value
	case checksumNote:
		s.checksum = string(value)
	}
	return err
}

func (s *source) operators(data []byte) error {
	domain, version := "", int64(0)
	err := fields(data, func(field int, number uint64, part []byte) error {
		switch field {
		case opsetDomain:
			domain = string(part)
		case opsetNumber:
			version = int64(number)
		}
		return nil
	})
	if domain == "" || domain == "ai.onnx" {
		s.opset = version
	}
	return err
}

func (s *source) graph(data []byte) error {
	return fields(data, func(field int, _ uint64, part []byte) (err error) {
		if err := s.count(); err != nil {
			return err
		}
		switch field {
		case graphName:
			s.name = string(part)
		case graphNode:
			var n *step
			n, err = s.node(part)
			s.steps = append(s.steps, n)
		case graphArray:
			var a *array
			if a, err = s.array(part); err == nil {
				s.arrays[a.name] = a
			}
		case graphInput:
			s.inputs, err = s.ends(s.inputs, part)
		case graphOutput:
			s.outputs, err = s.ends(s.outputs, part)
		}
		return err
	})
}

func (s *source) node(data []byte) (*step, error) {
	n := &step{options: map[string]option{}}
	err := fields(data, func(field int, _ uint64, part []byte) error {
		if err := s.count(); err != nil {
			return err
		}
		switch field {
		case nodeInput:
			n.in = append(n.in, string(part))
		case nodeOutput:
			n.out = append(n.out, string(part))
		case nodeName:
			n.name = string(part)
		case nodeOperator:
			n.kind = string(part)
		case nodeDomain:
			n.domain = string(part)
		case nodeAttribute:
			return s.attribute(n, part)
		}
		return nil
	})
	return n, err
}

func (s *source) attribute(n *step, data []byte) error {
	var name string
	var o option
	err := fields(data, func(field int, number uint64, part []byte) (err error) {
		switch field {
		case attributeName:
			name = string(part)
		case attributeFloat:
			o.number = math.Float32frombits(uint32(number))
		case attributeInt:
			o.whole = int64(number)
		case attributeText:
			o.text = string(part)
		case attributeArray:
			o.array, err = s.array(part)
		case attributeInts:
			o.list, err = s.whole(o.list, number, part)
		case attributeNumbers:
			for ; len(part) >= 4; part = part[4:] {
				o.numbers = append(o.numbers, math.Float32frombits(binary.LittleEndian.Uint32(part)))
			}
		case attributeTexts:
			if len(o.texts) < mostSides {
				o.texts = append(o.texts, string(part))
			}
		}
		return err
	})
	n.options[name] = o
	return err
}

// whole appends a number, or all numbers of a packed field.
func (s *source) whole(list []int64, number uint64, part []byte) ([]int64, error) {
	if part == nil {
		return append(list, int64(number)), s.count()
	}
	for len(part) > 0 {
		v, n := binary.Uvarint(part)
		if n <= 0 {
			return nil, damaged("a number ends early")
		}
		if err := s.count(); err != nil {
			return nil, err
		}
		list, part = append(list, int64(v)), part[n:]
	}
	return list, nil
}

// array reads a constant, and refuses one whose data does not fit its shape.
func (s *source) array(data []byte) (*array, error) {
	a := &array{}
	var sides []int64
	outside := false
	err := fields(data, func(field int, number uint64, part []byte) (err error) {
		switch field {
		case arraySide:
			sides, err = s.whole(sides, number, part)
		case arrayKind:
			a.kind = int64(number)
		case arrayName:
			a.name = string(part)
		case arrayData:
			a.data = part
		case arrayFloats:
			a.data, err = s.floats(a.data, part)
		case arrayInts, arrayInts32:
			a.ints, err = s.whole(a.ints, number, part)
		case arrayPlace:
			err = s.placed(a, part)
		case arrayWhere:
			outside = number == placedOutside
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(sides) > mostSides {
		return nil, damaged("array %.80q has %d sides", a.name, len(sides))
	}
	n := int64(1)
	for _, side := range sides {
		if side < 0 || side > math.MaxInt32 || n*side > math.MaxInt32 {
			return nil, damaged("array %.80q has the shape %d", a.name, sides)
		}
		n, a.sides = n*side, append(a.sides, int(side))
	}
	if outside {
		if err := s.load(a); err != nil {
			return nil, err
		}
	}
	return a, a.check()
}

// floats takes the values of float_data: packed, or one at a time.
func (s *source) floats(have, part []byte) ([]byte, error) {
	if have == nil {
		return part, nil
	}
	return append(have, part...), s.count()
}

// sizeOf is the bytes of a value of a kind. It is false for a kind that is not known.
func sizeOf(kind int64) (bytes int, ok bool) {
	bytes, ok = map[int64]int{float32s: 4, int64s: 8, int32s: 4, booleans: 1, doubles: 8}[kind]
	return bytes, ok
}

// check compares the bytes with the shape.
func (a *array) check() error {
	size, known := sizeOf(a.kind)
	switch {
	case !known || a.data == nil && (a.kind == booleans || a.kind == doubles): // told where it is used
	case a.kind == int64s && a.data == nil && len(a.ints) == a.length():
	case a.kind == int32s && a.data == nil && len(a.ints) == a.length():
		a.kind = int64s
	case len(a.data) != size*a.length():
		return damaged("array %.80q has %d bytes, and its shape %v needs %d", a.name, len(a.data), a.sides, size*a.length())
	case a.kind == int32s: // PaddlePaddle's sides of shapes
		a.kind, a.ints = int64s, make([]int64, a.length())
		for i := range a.ints {
			a.ints[i] = int64(int32(binary.LittleEndian.Uint32(a.data[4*i:])))
		}
		a.data = nil
	case a.kind == doubles: // a constant that PyTorch computed; layers have float32
		a.kind, a.float = float32s, make([]float32, a.length())
		for i := range a.float {
			a.float[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(a.data[8*i:])))
		}
	}
	return nil
}

func (s *source) placed(a *array, data []byte) error {
	var key, value string
	err := fields(data, func(field int, _ uint64, part []byte) error {
		switch field {
		case placeKey:
			key = string(part)
		case placeValue:
			value = string(part)
		}
		return nil
	})
	if a.place == nil {
		a.place = map[string]string{}
	}
	a.place[key] = value
	if err == nil {
		err = s.count()
	}
	return err
}

// load reads external data. An os.Root opens no file outside its folder, also not through a link.
func (s *source) load(a *array) error {
	refused := func(why string, cause error) error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read ONNX", Err: cause,
			Msg:  fmt.Sprintf("array %.80q is in the file %.200q: %s", a.name, a.place["location"], why),
			Hint: "put the file of weights into the folder of the ONNX file",
		}
	}
	if s.folder == nil {
		return refused("external data is not read here", nil)
	}
	each, ok := sizeOf(a.kind)
	if !ok {
		return refused("only float32, float64, integers and booleans are read from other files", nil)
	}
	size := int64(each * a.length())
	offset := int64(0)
	for key, to := range map[string]*int64{"offset": &offset, "length": nil} {
		text, ok := a.place[key]
		if !ok {
			continue
		}
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < 0 || (to == nil && v != size) {
			return refused(fmt.Sprintf("its %s is %.40q, and the shape %v needs %d bytes", key, text, a.sides, size), nil)
		}
		if to != nil {
			*to = v
		}
	}
	f, err := s.folder.Open(a.place["location"])
	if err != nil {
		return refused("it cannot be opened", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || offset > info.Size() || size > info.Size()-offset {
		return refused("the file is shorter than the array, or no regular file", err)
	}
	place := a.place["location"]
	if s.loaded[place] += size; s.loaded[place] > info.Size() {
		return refused("its arrays overlap", nil)
	}
	a.data = make([]byte, size)
	if _, err := f.ReadAt(a.data, offset); err != nil && err != io.EOF {
		return refused("it cannot be read", err)
	}
	return nil
}

func (s *source) ends(list []end, data []byte) ([]end, error) {
	e := end{}
	inner := func(data []byte, want int, then func(part []byte) error) error {
		return fields(data, func(field int, _ uint64, part []byte) error {
			if field != want {
				return nil
			}
			return then(part)
		})
	}
	side := func(part []byte) error {
		n := 0
		err := fields(part, func(field int, number uint64, _ []byte) error {
			if field == sideValue {
				n = int(max(0, min(int64(number), math.MaxInt32))) // some files have -1 for what is not fixed
			}
			return nil
		})
		if len(e.sides) >= mostSides {
			return damaged("an input has more than %d sides", mostSides)
		}
		e.sides = append(e.sides, n)
		return err
	}
	err := fields(data, func(field int, _ uint64, part []byte) error {
		switch field {
		case valueName:
			e.name = string(part)
		case valueType:
			return inner(part, typeTensor, func(part []byte) error {
				return fields(part, func(field int, number uint64, part []byte) error {
					switch field {
					case tensorKind:
						e.kind = int64(number)
					case tensorShape:
						return inner(part, shapeSide, side)
					}
					return nil
				})
			})
		}
		return nil
	})
	return append(list, e), err
}

// floats32 are the values of an array of float32, nil of another kind. They may be a view of the file.
func (a *array) floats32() []float32 {
	if a == nil || a.kind != float32s {
		return nil
	}
	if a.float == nil {
		t := safetensors.Tensor{Name: a.name, DType: safetensors.F32, Shape: a.sides, Data: a.data}
		a.float, _ = safetensors.Float32s(t) // the reader has compared the size with the shape
	}
	return a.float
}

// numbers are the values of a short list of integers.
func (a *array) numbers() (list []int64, ok bool) {
	if a == nil || a.kind != int64s || a.length() > mostFolded {
		return nil, false
	}
	return a.integers(), true
}

// integers are the values of an array of int64, or of truth values.
func (a *array) integers() (list []int64) {
	if a.kind == booleans {
		for _, v := range a.data {
			list = append(list, int64(v))
		}
		return list
	}
	if a.kind != int64s {
		return nil
	}
	if a.data == nil {
		return a.ints
	}
	for at := 0; at < len(a.data); at += 8 {
		list = append(list, int64(binary.LittleEndian.Uint64(a.data[at:])))
	}
	return list
}
