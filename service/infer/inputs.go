package infer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset/dense"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
)

// Inputs are rows of a network's input, with their labels if the file has them.
type Inputs struct {
	Rows   [][]float32
	Labels []int32 // nil: none
	// Numbers are the targets of each row in their units, as `dataset sample` writes them; nil: none.
	Numbers [][]float64
	Notes   []string // what a reader of the answers should know of the rows
}

// ReadInputs reads rows of a network's input. JSON, .npy and IDX have a list of rows, one row, or arrays with the shape
// of the input. A name that ends in .csv, or has no ending and is no JSON, is a table with a row in each line. A PNG or
// JPEG file is one row.
func ReadInputs(name string, data []byte, input model.Shape) (in Inputs, err error) {
	return readInputs(name, data, input, 0)
}

// readInputs is ReadInputs; if side is not 0, the job resized its images to side, and readInputs resizes images of
// other sizes.
func readInputs(name string, data []byte, input model.Shape, side int) (in Inputs, err error) {
	sample := input.Len()
	bad := func(format string, args ...any) (Inputs, error) {
		return in, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + name, Msg: fmt.Sprintf(format, args...),
			Hint: fmt.Sprintf("give rows of %d values (%s) as JSON, {\"inputs\": [[...]]}, or as a .npy or IDX array", sample,
				input.Text()),
		}
	}
	switch {
	case isPicture(data):
		return readPicture(name, data, input, side)
	case isCSV(name, data):
		return readTable(name, data, sample)
	}
	var a array
	var shape []int
	switch {
	case isIDX(data):
		if a, err = readIDX(name, data); err != nil {
			return in, err
		}
	case strings.EqualFold(filepath.Ext(name), ".npy") || bytes.HasPrefix(data, []byte("\x93NUMPY")):
		if a.values, a.shape, err = dense.ReadNPY(data); err != nil {
			return in, err
		}
	case bytes.HasPrefix(data, []byte("PK")):
		return bad("it is a zip archive, as .npz is: give one of its arrays, or ask with --dataset for all rows")
	default:
		doc, err := inputsOf(data)
		if err == nil {
			a, err = readArray(doc.Inputs)
		}
		if err != nil {
			return bad("%s", err)
		}
		in.Labels, shape, in.Numbers = doc.labels, doc.shape, doc.Numbers
	}
	if len(a.values) == 0 {
		return bad("there are no inputs")
	}
	if side > 0 {
		if a, err = a.resized(shape, input, side); err != nil {
			return in, err
		}
	}
	if why := a.misfit(input); why != "" {
		return bad("%s", why)
	}
	in.Rows = rowsOf(a.values, sample)
	if in.Labels != nil && len(in.Labels) != len(in.Rows) {
		return bad("there are %d labels for %d inputs", len(in.Labels), len(in.Rows))
	}
	if in.Numbers != nil && len(in.Numbers) != len(in.Rows) {
		return bad("there are numbers of %d rows for %d inputs", len(in.Numbers), len(in.Rows))
	}
	return in, nil
}

// isTable tells whether a file is a table of lines, by its ending.
func isTable(name string) bool {
	ending := strings.ToLower(filepath.Ext(name))
	return ending == ".csv" || ending == ".tsv"
}

// isCSV tells whether data is CSV: by the file's ending, and by its start where there is none, as of standard input, or
// another one, as .data and .txt.
func isCSV(name string, data []byte) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv", ".tsv":
		return true
	case ".json", ".jsonl", ".ndjson":
		return false
	}
	data = bytes.TrimSpace(data)
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return len(line) > 0 && utf8.Valid(line) && !bytes.ContainsRune(line, 0) && !bytes.ContainsAny(line[:1], "[{") &&
		!json.Valid(data)
}

// document is inputs in JSON: only an array, or an object with fields.
type document struct {
	Inputs json.RawMessage `json:"inputs"`
	Labels json.RawMessage `json:"labels"`
	Shape  json.RawMessage `json:"shape"`

	Numbers [][]float64 `json:"numbers"`

	labels []int32
	shape  []int // of a row, as `dataset sample` says it; nil: unknown
}

// inputsOf parses a JSON document.
func inputsOf(data []byte) (doc document, err error) {
	data = bytes.TrimSpace(data)
	if !bytes.HasPrefix(data, []byte("{")) {
		return document{Inputs: data}, nil
	}
	if json.Unmarshal(data, &doc) != nil {
		return doc, errors.New("it is no JSON of inputs")
	}
	if doc.Inputs == nil {
		return doc, errors.New("it has no field inputs")
	}
	if doc.Labels != nil && json.Unmarshal(doc.Labels, &doc.labels) != nil {
		return doc, errors.New("its labels are no list of whole numbers")
	}
	if json.Unmarshal(doc.Shape, &doc.shape) != nil { // one of another kind says nothing
		doc.shape = nil
	}
	return doc, nil
}

// array is numbers with the shape of their nested lists.
type array struct {
	values []float32
	shape  []int
	top    int // of the outermost list, while it is read
}

// deepest bounds the depth of nested lists.
const deepest = 8

// readArray reads nested lists of numbers. All lists of a depth have the same length.
func readArray(data []byte) (a array, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := a.read(dec, 0); err != nil {
		return a, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return a, errors.New("it is no JSON of inputs: more follows the array")
	}
	return a, nil
}

func (a *array) read(dec *json.Decoder, depth int) error {
	token, err := dec.Token()
	if err != nil {
		return errors.New("it is no JSON of inputs")
	}
	switch v := token.(type) {
	case float64:
		return a.number(v, depth)
	case json.Delim:
		if v == '[' && depth < deepest {
			return a.list(dec, depth)
		}
	}
	return errors.New("it is no JSON of inputs: arrays of numbers are expected")
}

func (a *array) number(v float64, depth int) error {
	switch {
	case depth == 0:
		return errors.New("it is no JSON of inputs: a single number")
	case depth != len(a.shape):
		return fmt.Errorf("input %d is nested in another way than those before it", a.top)
	case math.Abs(v) > math.MaxFloat32:
		return fmt.Errorf("%g in input %d is too large", v, a.top)
	}
	a.values = append(a.values, float32(v))
	return nil
}

// list reads a list at a depth. The first list of a depth sets the length of the others.
func (a *array) list(dec *json.Decoder, depth int) error {
	if depth == len(a.shape) {
		if len(a.values) > 0 {
			return fmt.Errorf("input %d is nested in another way than those before it", a.top)
		}
		a.shape = append(a.shape, -1)
	}
	n := 0
	for ; dec.More(); n++ {
		if depth == 0 {
			a.top = n
		}
		if err := a.read(dec, depth+1); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return errors.New("it is no JSON of inputs: it ends within an array")
	}
	switch want := a.shape[depth]; {
	case want < 0:
		a.shape[depth] = n
	case n != want:
		return fmt.Errorf("input %d has %d values where others have %d", a.top, n, want)
	}
	return nil
}

// misfit says why an array is no rows of a network's input, "" if it is.
func (a *array) misfit(input model.Shape) string {
	sample, inner := input.Len(), 1
	if len(a.values)%sample != 0 {
		return fmt.Sprintf("an array of shape %s is no rows of %d values", model.Shape(a.shape).Text(), sample)
	}
	if n := len(a.shape); n >= 3 && len(input) == 3 && input[0] > 1 {
		h, w, c := a.shape[n-3], a.shape[n-2], a.shape[n-1]
		if c == input[0] && h == input[1] && w == input[2] && (h != c || w != h) {
			return fmt.Sprintf("an array of shape %s has the channels last; the model takes [channels height width]: in NumPy "+
				"np.moveaxis(x, -1, -3)", model.Shape(a.shape).Text())
		}
	}
	for i := len(a.shape) - 1; i >= 0 && inner < sample; i-- {
		inner *= a.shape[i]
	}
	if inner != sample && len(a.shape) > 1 {
		return fmt.Sprintf("an array of shape %s is no rows of %d values", model.Shape(a.shape).Text(), sample)
	}
	return ""
}

// outOfRange says that inputs are far from the values that the network was trained on, "" if they are not or nothing is
// known. A network for values of 0 to 1 answers inputs of 0 to 255 with certainty, and wrong.
func outOfRange(rows [][]float32, seen *modelstore.Range) string {
	if seen == nil || len(rows) == 0 {
		return ""
	}
	low, high := rows[0][0], rows[0][0]
	for _, r := range rows {
		for _, v := range r {
			low, high = min(low, v), max(high, v)
		}
	}
	width := float64(seen.High) - float64(seen.Low)
	if width <= 0 {
		return ""
	}
	far := max(float64(seen.Low)-float64(low), float64(high)-float64(seen.High)) / width
	spread := (float64(high) - float64(low)) / width
	text := fmt.Sprintf("the inputs go from %.4g to %.4g, and the model was trained on %.4g to %.4g", low, high, seen.Low,
		seen.High)
	switch {
	case far > farOff && low >= 0 && high > 1 && high <= 255 && seen.Low == 0 && seen.High == 1:
		return text + ": scale them as the data set was, with 255 by dividing them by 255"
	case far > farOff:
		return text + ": scale them as in training"
	case spread > 0 && spread < 1/farOff/10:
		return text + ": perhaps they were scaled twice"
	default:
		return ""
	}
}

// farOff is how many times its own width the range of training may be exceeded before a warning.
const farOff = 9.0
