package jobfile

import (
	"cmp"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
)

// Bounds of what is read, as reliability promises them: no input costs over a second or 256 MiB.
const (
	maxFile   = 1 << 20 // bytes
	maxMarks  = 50_000  // brackets, colons and so on; see countMarks
	maxDepth  = 32      // objects and lists inside each other
	maxLayers = 1000    // of model.layers
	maxFaults = 100     // listed; a file with more is no job file
	maxKept   = 1000    // looked at closely; of more, only the number is kept
)

// File is a job file that was read.
type File struct {
	Name   string     // as messages call it
	Source []byte     // the text, for Render
	Job    disdel.Job // with every default filled in

	// ParseMany says of each job of a file what its matrix gave it, in the matrix's order, and what is wrong with it
	// alone.
	Choices []Choice
	Faults  []disdel.Fault

	places map[string]place
}

// place is a position in the file, 1-based; the zero place is a --set on the command line.
type place struct{ line, column int }

// Parse reads a job file. name is what messages call it. Each of sets is PATH=VALUE as in training.batchSize=32, where
// VALUE is YAML; it takes the place of what the file says, in the order given.
//
// The error is a *disdel.Faults, of kind Invalid, with every fault of the file at once. The File comes back even then,
// with what could be read, so that a caller may add the faults that only the network and the data set show. A fault of
// a value that a set gave has line 0.
//
// A job that names a file of Keras is refused: ParseWith reads those.
func Parse(name string, data []byte, sets []string) (File, error) {
	return ParseWith(name, data, sets, nil)
}

// ParseWith is Parse for jobs that may name a file of Keras: open returns the content of the file that model.keras
// gives. The network ends up in Job.Model.Layers, as if the job file had listed it, and Job.Model.Keras is empty.
func ParseWith(name string, data []byte, sets []string, open func(file string) ([]byte, error)) (File, error) {
	r := newReader(open)
	file := File{Name: name, Source: data, places: r.places}
	if root := r.load(data); root != nil {
		for _, set := range sets {
			r.override(root, set)
		}
		r.root(root, &file.Job)
		r.finish(&file.Job)
	}
	if len(r.faults) > 0 {
		return file, &disdel.Faults{File: name, Faults: r.inOrder()}
	}
	return file, nil
}

// Locate returns the 1-based line and column of the field at a dotted path such as model.layers[2].dense.units, for
// faults that are found later. A field that the file does not give is located at the closest object around it, the file
// itself at 1:1. A field that a --set gave is at 0, 0.
func (f File) Locate(path string) (line, column int) {
	for {
		if p, ok := f.places[path]; ok {
			return p.line, p.column
		}
		path = outer(path)
	}
}

// inOrder sorts faults as the file goes, those of --set first, and cuts a list that nobody would read.
func (r *reader) inOrder() []disdel.Fault {
	faults := r.faults
	slices.SortStableFunc(faults, func(a, b disdel.Fault) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	if n := len(faults) + r.more; n > maxFaults {
		last := faults[maxFaults]
		faults = append(faults[:maxFaults:maxFaults], disdel.Fault{
			Line: last.Line, Column: last.Column,
			Msg: fmt.Sprintf("%d more problems from here on", n-maxFaults),
		})
	}
	return faults
}

// reader collects what one call of Parse finds.
type reader struct {
	faults []disdel.Fault
	more   int // faults beyond maxKept
	places map[string]place
	failed map[string]bool // paths with a fault
	open   func(file string) ([]byte, error)
	meant  map[string]bool // fields that a misspelt key probably means: not missing as well
}

func newReader(open func(file string) ([]byte, error)) *reader {
	return &reader{open: open, places: map[string]place{"": {1, 1}}, failed: map[string]bool{}, meant: map[string]bool{}}
}

// full says whether there are enough faults to give up looking closely, and counts one more if so.
func (r *reader) full() bool {
	if len(r.faults) < maxKept {
		return false
	}
	r.more++
	return true
}

// fault adds a fault at p.
func (r *reader) fault(p place, path, hint, format string, args ...any) {
	if r.full() {
		return
	}
	r.failed[path] = true
	r.faults = append(r.faults,
		disdel.Fault{Path: path, Line: p.line, Column: p.column, Msg: fmt.Sprintf(format, args...), Hint: hint})
}

// given says whether the file or a --set gives a value at path.
func (r *reader) given(path string) bool { _, ok := r.places[path]; return ok }

// sound says whether nothing is wrong at any of the paths, so that a rule about them makes sense.
func (r *reader) sound(paths ...string) bool {
	return !slices.ContainsFunc(paths, func(p string) bool { return r.failed[p] })
}

// at is the place of a node.
func at(n *yaml.Node) place { return place{n.Line, n.Column} }

// keyPlace is where a key stands that should not be there.
func keyPlace(key, value *yaml.Node) place {
	if value.Line == 0 {
		return place{}
	}
	return at(key)
}

// placeOf is where a person looks for a field: at the value of a scalar, at the key of everything else.
func placeOf(key, value *yaml.Node) place {
	empty := value.Kind == yaml.ScalarNode && value.Value == "" && value.Style == 0
	if value.Line > 0 && (value.Kind != yaml.ScalarNode || empty) {
		return at(key)
	}
	return at(value)
}
