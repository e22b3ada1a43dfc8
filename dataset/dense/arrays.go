package dense

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/safetensors"
)

// Arrays is NumPy arrays: data, [rows features], [rows H W] or [rows C H W], and labels, [rows] or [rows 1], numbers
// or texts. Bytes, and whole numbers from 0 to 255, stand for 0..1; other values are unchanged.
type Arrays struct {
	Images, Labels         dataset.Source
	TestImages, TestLabels dataset.Source // of held-out rows; without Open: none
	Layout                 dataset.Layout
	LabelClasses           bool     // as in CSV
	AsIs                   bool     // bytes and whole numbers are unchanged, too: tokens
	ClassNames             []string // of whole numbers from 0; nil: their numbers, or the texts themselves
}

// archiveNames are common names of arrays in archives: data, labels, and the held-out ones.
var archiveNames = [][4]string{
	{"x_train", "y_train", "x_test", "y_test"}, // Keras
	{"X_train", "y_train", "X_test", "y_test"},
	{"train_images", "train_labels", "test_images", "test_labels"}, // MedMNIST
	{"x", "y", "x_test", "y_test"},
	{"X", "y", "X_test", "y_test"},
	{"images", "labels", "test_images", "test_labels"},
	{"data", "target", "test_data", "test_target"},
	{"data", "labels", "test_data", "test_labels"},
	{"arr_0", "arr_1", "arr_2", "arr_3"}, // numpy.savez(file, x, y)
}

// Archive finds the arrays of a .npz file by their common names. It returns Invalid if there are none, with the names
// that there are.
func Archive(file string) (Arrays, error) {
	there, err := archive(file)
	if err != nil {
		return Arrays{}, err
	}
	return named(file, there, "numpy.savez(FILE, x=x, y=y)")
}

// named finds the arrays of a file that are data and labels by their names.
func named(file string, there map[string]dataset.Source, example string) (a Arrays, err error) {
	for _, names := range archiveNames {
		images, labels := there[names[0]], there[names[1]]
		if images.Open == nil || labels.Open == nil {
			continue
		}
		a = Arrays{Images: images, Labels: labels}
		if there[names[2]].Open != nil && there[names[3]].Open != nil {
			a.TestImages, a.TestLabels = there[names[2]], there[names[3]]
		}
		return a, nil
	}
	return a, &disdel.Error{
		Kind: disdel.Invalid, Op: "read " + file,
		Msg: "it has the arrays " + strings.Join(slices.Sorted(maps.Keys(there)), ", ") +
			", and none that are data and labels by their names",
		Hint: "call them x_train, y_train, x_test and y_test, or x and y: " + example,
	}
}

// Input reads the arrays once, to find out their values. It returns Invalid, or *disdel.Faults with the rows.
func (s Arrays) Input(name string) (in dataset.DenseInput, err error) {
	p := &pairs{Arrays: s, labels: newLabels()}
	if err := p.begin(); err != nil {
		return in, err
	}
	if err := p.learn(); err != nil {
		return in, err
	}
	if why := p.labels.name(s.ClassNames); why != "" {
		return in, p.parts[0].y.bad("%s", why)
	}
	in = dataset.DenseInput{
		Name: name, Title: "Arrays of " + base(s.Images.Name), Shape: p.shape(), Classes: len(p.labels.names),
		ClassNames: p.labels.classNames(), LabelClasses: s.LabelClasses || len(s.ClassNames) > 0,
		Bytes: p.inBytes(), Each: p.each,
	}
	in.Understood = p.understood(&in)
	return in, nil
}

// pairs is the arrays of a data set.
type pairs struct {
	Arrays
	parts    []*pair // for training, and perhaps held out
	labels   *labels
	low      float64
	high     float64
	integers bool // all values are whole numbers
	example  dataset.Example
}

// pair is the data and labels of a part.
type pair struct{ x, y *array }

func (p *pairs) begin() error {
	p.low, p.high, p.integers = math.Inf(1), math.Inf(-1), true
	for _, from := range [][2]dataset.Source{{p.Images, p.Labels}, {p.TestImages, p.TestLabels}} {
		if from[0].Open == nil {
			continue
		}
		x, err := readArray(from[0])
		if err != nil {
			return err
		}
		y, err := readArray(from[1])
		if err != nil {
			return err
		}
		one := &pair{x, y}
		if err := one.check(); err != nil {
			return err
		}
		p.parts = append(p.parts, one)
	}
	if len(p.parts) > 1 {
		if a, b := p.parts[0].x, p.parts[1].x; !slices.Equal(a.shape[1:], b.shape[1:]) {
			return b.bad("its rows are %v, and those to learn from %v", b.shape[1:], a.shape[1:])
		}
	}
	return nil
}

func (p *pair) check() error {
	switch {
	case len(p.x.shape) < 2:
		return p.x.bad("data are [rows features], [rows H W] or [rows C H W], and these are %v; perhaps the two files were "+
			"swapped",
			p.x.shape)
	case strings.ContainsRune("US", rune(p.x.kind)):
		return p.x.bad("data are numbers, and these are texts")
	case p.y.rowLen() != 1:
		return p.y.bad("labels are [rows], and these are %v; of a row's outputs, numpy.argmax(y, axis=1) is the label",
			p.y.shape)
	case p.x.shape[0] != p.y.shape[0]:
		return p.y.bad("it has %d labels, and %s has %d rows", p.y.shape[0], p.x.Name, p.x.shape[0])
	case p.x.rowLen() > mostValues:
		return p.x.bad("a row has %d values, and %d are the most", p.x.rowLen(), mostValues)
	default:
		return nil
	}
}

// shape is the shape of a row, [channels height width].
func (p *pairs) shape() []int {
	s := p.parts[0].x.shape[1:]
	switch {
	case len(s) == 1:
		return []int{1, 1, s[0]}
	case len(s) == 2:
		return []int{1, s[0], s[1]}
	case p.Layout == dataset.HWC:
		return []int{s[2], s[0], s[1]}
	default:
		return slices.Clone(s)
	}
}

// inBytes tells whether values are stored in a byte each.
func (p *pairs) inBytes() bool {
	x := p.parts[0].x
	if p.AsIs {
		return false
	}
	return x.kind == 'u' && x.size == 1 || x.kind != 'f' && p.low >= 0 && p.high <= math.MaxUint8 && p.high > 1
}

// learn reads all rows for their common properties.
func (p *pairs) learn() error {
	for i, one := range p.parts {
		wrong := &faults{file: one.x.Name}
		err := one.rows(func(row int, x, y []byte) error {
			if i == 0 && row == 0 {
				p.example = one.example(x, y)
			}
			p.look(one, row, x, wrong)
			if text := one.y.text(y); i == 0 {
				p.labels.add(text)
			} else if _, ok := p.labels.index(text); !ok {
				wrong.add(disdel.Fault{
					Path: fmt.Sprintf("row %d", row),
					Msg:  fmt.Sprintf("no row to learn from has the label %.40q", text),
				})
			}
			return nil
		})
		if err != nil {
			return err
		}
		if i == 0 {
			p.labels.close()
			if why := p.labels.fault(); why != "" {
				wrong.add(disdel.Fault{Path: "labels", Msg: why})
			} else if why := p.labels.numeric(p.LabelClasses || len(p.ClassNames) > 0); why != "" {
				wrong.add(disdel.Fault{Path: "labels", Msg: why, Hint: dataset.NumericTargetHint})
			}
		}
		if err := wrong.err(); err != nil {
			return err
		}
	}
	return nil
}

// look considers the values of a row.
func (p *pairs) look(one *pair, row int, x []byte, wrong *faults) {
	if one.x.kind == 'u' && one.x.size == 1 {
		return // they are bytes
	}
	for at := 0; at < len(x); at += one.x.size {
		v := one.x.value(x[at:])
		if math.IsNaN(v) || math.Abs(v) > math.MaxFloat32 {
			wrong.add(disdel.Fault{
				Path: fmt.Sprintf("row %d", row),
				Msg:  fmt.Sprintf("its value %d is %g, which is nothing to learn from", at/one.x.size, v),
			})
			return
		}
		p.low, p.high = min(p.low, v), max(p.high, v)
		p.integers = p.integers && v == math.Trunc(v)
	}
}

// rows calls f with every row and its label.
func (p *pair) rows(f func(row int, x, y []byte) error) error {
	x, err := p.x.open()
	if err != nil {
		return err
	}
	defer x.close()
	y, err := p.y.open()
	if err != nil {
		return err
	}
	defer y.close()
	for row := range p.x.shape[0] {
		data, err := x.next()
		if err != nil {
			return err
		}
		label, err := y.next()
		if err != nil {
			return err
		}
		if err := f(row, data, label); err != nil {
			return err
		}
	}
	if err := x.end(); err != nil {
		return err
	}
	return y.end()
}

func (p *pair) example(x, y []byte) dataset.Example {
	e := dataset.Example{Place: "row 0", Class: p.y.text(y)}
	for at := 0; at < len(x); at += p.x.size {
		if len(e.Values) == mostShown {
			e.More = len(x)/p.x.size - mostShown
			break
		}
		e.Values = append(e.Values, fmt.Sprintf("%.4g", p.x.value(x[at:])))
	}
	return e
}

// each yields the rows.
func (p *pairs) each(yield func(dataset.DenseRow) error) error {
	shape, bytes := p.shape(), p.inBytes()
	n := product(shape)
	row := dataset.DenseRow{}
	values, raw := make([]float32, n), make([]byte, n)
	order := places(shape, p.Layout == dataset.HWC && len(p.parts[0].x.shape) == mostRank)
	for i, one := range p.parts {
		row.HeldOut = i == 1
		err := one.rows(func(_ int, x, y []byte) error {
			row.Label, _ = p.labels.index(one.y.text(y))
			for k := range n {
				v := one.x.value(x[k*one.x.size:])
				if bytes {
					raw[order(k)] = byte(v)
				} else {
					values[order(k)] = float32(v)
				}
			}
			if bytes {
				row.Bytes = raw
			} else {
				row.Values = values
			}
			return yield(row)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// places maps value k of a row in a file to its place here, where channels come first.
func places(shape []int, channelsLast bool) func(k int) int {
	if !channelsLast {
		return func(k int) int { return k }
	}
	channels, pixels := shape[0], shape[1]*shape[2]
	return func(k int) int { return k%channels*pixels + k/channels }
}

// understood is the interpretation of the arrays.
func (p *pairs) understood(in *dataset.DenseInput) dataset.Interpretation {
	x := p.parts[0].x
	u := dataset.Interpretation{
		Kind: fmt.Sprintf("NumPy array of shape %v", x.shape), Rows: x.shape[0], Classes: p.labels.counts(),
		Values: "numbers as they are", Example: p.example,
	}
	if in.Bytes {
		u.Values = "bytes, as 0..1 from 0..255"
	}
	if len(p.parts) > 1 {
		u.HeldOut = p.parts[1].x.shape[0]
	}
	u.Notes = p.labels.numericNotes(in.LabelClasses)
	if s := x.shape; len(s) == mostRank && p.Layout == "" && isChannels(s[3]) && !isChannels(s[1]) {
		u.Notes = append(u.Notes,
			fmt.Sprintf("images are read as %d channels of %dx%d pixels; if they are %dx%d pixels of %d "+
				"channels, add --layout hwc --overwrite", s[1], s[2], s[3], s[1], s[2], s[3]))
	}
	if !in.Bytes && !p.AsIs && p.high > mostUsual {
		u.Notes = append(u.Notes,
			fmt.Sprintf("values are %.4g to %.4g and kept as they are; networks learn best from about -1 to 1",
				p.low, p.high))
	}
	return u
}

// mostUsual is the largest value that looks scaled.
const mostUsual = 50

func isChannels(n int) bool { return n == 1 || n == 3 || n == 4 }

// Tensors finds the tensors of a safetensors file by the common names of arrays. It returns Invalid like Archive, and
// for any other file.
func Tensors(file string) (a Arrays, err error) {
	in, err := os.Open(file)
	if err != nil {
		return a, &disdel.Error{Kind: disdel.Invalid, Op: "read " + file, Err: plain(err), Hint: "check the file's name"}
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return a, &disdel.Error{Kind: disdel.Invalid, Op: "read " + file, Err: plain(err)}
	}
	index, from, err := safetensors.Index(in, info.Size())
	for _, t := range index.Tensors {
		if asNumPy[t.DType] == "" {
			err = fmt.Errorf("tensor %q has values of type %q", t.Name, t.DType)
		}
	}
	if err != nil {
		return a, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + file, Msg: disdel.AsError(err).Msg,
			Hint: "--safetensors takes what safetensors.numpy.save_file wrote, of float32, uint8, int32 and int64; " +
				"of PyTorch, x.float() makes the first of half precision, and x.byte() the second of truth values",
		}
	}
	there := map[string]dataset.Source{}
	for _, t := range index.Tensors {
		there[t.Name] = dataset.Source{
			Name: file + ": " + t.Name,
			Open: func() (io.ReadCloser, error) { return openTensor(file, &t, from[t.Name]) },
		}
	}
	return named(file, there, "safetensors.numpy.save_file({\"x\": x, \"y\": y}, FILE)")
}

// asNumPy are NumPy's names of types.
var asNumPy = map[safetensors.DType]string{
	safetensors.F32: "<f4", safetensors.U8: "|u1", safetensors.I32: "<i4", safetensors.I64: "<i8",
}

// openTensor opens a tensor as the array that NumPy would have written.
func openTensor(file string, t *safetensors.Tensor, from int64) (io.ReadCloser, error) {
	f, err := os.Open(file)
	if err == nil {
		_, err = f.Seek(from, io.SeekStart)
	}
	if err != nil {
		if f != nil {
			f.Close() //nolint:errcheck // nothing was written
		}
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + file, Err: plain(err)}
	}
	sides := strings.Trim(strings.ReplaceAll(fmt.Sprint(t.Shape), " ", ", "), "[]")
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s,)}\n", asNumPy[t.DType], sides)
	magic := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	size := int64(t.DType.Size())
	for _, v := range t.Shape {
		size *= int64(v)
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(append(magic, head...)), io.LimitReader(f, size)), f}, nil
}
