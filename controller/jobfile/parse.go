package jobfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// Limits of the input: no file takes over a second or 256 MiB.
const (
	maxFile   = 1 << 20 // bytes
	maxMarks  = 50_000  // brackets, colons and so on; see countMarks
	maxDepth  = 32      // objects and lists inside each other
	maxLayers = 1000    // of model.layers
	maxFaults = 100     // listed; a file with more is no job file
	maxKept   = 1000    // examined; further ones are only counted
)

// File is a parsed job file.
type File struct {
	Name   string     // in messages
	Source []byte     // the text, for Render
	Job    disdel.Job // with every default filled in

	// ParseMany sets each job's values of its matrix, in the matrix's order, and the faults of that job.
	Choices []Choice
	Faults  []disdel.Fault

	places map[string]place
}

// place is a position in the file, 1-based; the zero place is a --set on the command line.
type place struct{ line, column int }

// Parse reads a job file. name is used in messages. Each of sets is PATH=VALUE as in training.batchSize=32, where
// VALUE is YAML; it replaces the file's value, in the given order.
//
// The error is a *disdel.Faults, of kind Invalid, with every fault of the file at once. The File is returned even
// then, with what could be read, so that a caller may add the faults that only the network and the data set show. A
// fault of a value from a set has line 0.
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
// faults that are found later. For a field that the file does not give it returns the closest object around it, for
// the file itself 1:1, and for a field of a --set 0, 0.
func (f File) Locate(path string) (line, column int) {
	for {
		if p, ok := f.places[path]; ok {
			return p.line, p.column
		}
		path = outer(path)
	}
}

// inOrder sorts faults by their places, those of --set first, and cuts a list that is too long.
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

// reader collects the results of one Parse.
type reader struct {
	faults   []disdel.Fault
	more     int // faults beyond maxKept
	places   map[string]place
	failed   map[string]bool // paths with a fault
	open     func(file string) ([]byte, error)
	misspelt map[string]bool // fields that a misspelt key probably means: they are not reported as missing
}

func newReader(open func(file string) ([]byte, error)) *reader {
	return &reader{
		open: open, places: map[string]place{"": {1, 1}}, failed: map[string]bool{}, misspelt: map[string]bool{},
	}
}

// full tells whether there are too many faults to examine, and counts one more if so.
func (r *reader) full() bool {
	if len(r.faults) < maxKept {
		return false
	}
	r.more++
	return true
}

func (r *reader) fault(p place, path, hint, format string, args ...any) {
	if r.full() {
		return
	}
	r.failed[path] = true
	r.faults = append(r.faults,
		disdel.Fault{Path: path, Line: p.line, Column: p.column, Msg: fmt.Sprintf(format, args...), Hint: hint})
}

// isSet tells whether the file or a --set gives a value at path.
func (r *reader) isSet(path string) bool { _, ok := r.places[path]; return ok }

// sound tells whether there is no fault at any of the paths, so that a rule about them makes sense.
func (r *reader) sound(paths ...string) bool {
	return !slices.ContainsFunc(paths, func(p string) bool { return r.failed[p] })
}

func at(n *yaml.Node) place { return place{n.Line, n.Column} }

// keyPlace is the place of a key that should not be there.
func keyPlace(key, value *yaml.Node) place {
	if value.Line == 0 {
		return place{}
	}
	return at(key)
}

// placeOf is the place of a field in messages: the value of a scalar, the key of everything else.
func placeOf(key, value *yaml.Node) place {
	empty := value.Kind == yaml.ScalarNode && value.Value == "" && value.Style == 0
	if value.Line > 0 && (value.Kind != yaml.ScalarNode || empty) {
		return at(key)
	}
	return at(value)
}

// load reads the file's one document. It returns nil if there is nothing to continue with.
func (r *reader) load(data []byte) *yaml.Node {
	documents := r.documents(data, 2)
	if len(documents) == 0 {
		return nil
	}
	if len(documents) > 1 {
		r.fault(at(&documents[1]), "", "one job a file; disdel batch takes several", "a second document starts here")
	}
	return r.flat(documents[0].Content[0])
}

// documents reads at most most documents of a file. It returns none if there is nothing to continue with.
func (r *reader) documents(data []byte, maximum int) []yaml.Node {
	if len(data) > maxFile {
		r.fault(place{1, 1}, "", "", "the file has %d bytes; a job file has at most %d", len(data), maxFile)
		return nil
	}
	if p, msg := firstBadText(data); msg != "" {
		r.fault(p, "", "", "%s", msg)
		return nil
	}
	if n := countMarks(data); n > maxMarks {
		r.fault(place{1, 1}, "", "", "the file has %d brackets, colons, commas, dashes and quotes; a job file has at most %d",
			n, maxMarks)
		return nil
	}
	documents, err := loadYAML(data, maximum)
	switch {
	case err != nil:
		p, msg := describe(err)
		r.fault(p, "", mend(data, p, msg), "not YAML: %s", msg)
		return nil
	case len(documents) == 0:
		r.fault(place{1, 1}, "", "disdel explain lists the fields; disdel example lists job files to start from",
			"the file is empty")
	}
	return documents
}

// flat returns a document's tree, nil if it is nested too deep.
func (r *reader) flat(root *yaml.Node) *yaml.Node {
	if deep := deeper(root, maxDepth); deep != nil {
		r.fault(at(deep), "", "", "nested deeper than %d levels", maxDepth)
		return nil
	}
	return root
}

// countMarks counts the characters that may start or end a token. The YAML package holds all tokens of an open
// bracket in memory, at least 200 bytes each: a bracket around a megabyte of commas took 555 MB.
func countMarks(data []byte) int {
	n := 0
	for _, c := range data {
		if strings.IndexByte("-[]{},:?&*!\"'", c) >= 0 {
			n++
		}
	}
	return n
}

// loadYAML reads at most most documents as trees; it does not follow aliases. The recover is for defects of the YAML
// package, which is the first to see foreign text.
func loadYAML(data []byte, maximum int) (documents []yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the reader gave up: %v", p)
		}
	}()
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	for err == nil && len(documents) < maximum {
		var n yaml.Node
		if err = loader.Load(&n); err == nil {
			documents = append(documents, n)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return documents, err
}

// describe returns the place and message of an error of the YAML package.
func describe(err error) (place, string) {
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		return place{1, 1}, shorten(err.Error())
	}
	msg := le.Message
	if le.ContextMsg != "" && le.ContextMark.Line > 0 && le.ContextMark.Line < le.Mark.Line {
		msg += fmt.Sprintf(" %s that starts in line %d", le.ContextMsg, le.ContextMark.Line)
	}
	return place{max(1, le.Mark.Line), max(1, le.Mark.Column)}, terminal.Escape(msg)
}

// mend is the hint for invalid YAML, by the character at which the reader stopped.
func mend(data []byte, p place, msg string) string {
	lines := terminal.SourceLines(data)
	if p.line > len(lines) {
		return ""
	}
	switch rest := []rune(lines[p.line-1]); {
	case p.column > len(rest):
		return ""
	case rest[p.column-1] == '\t':
		return "indent with blanks, not with tabs"
	case strings.ContainsRune("@`", rest[p.column-1]), strings.HasPrefix(msg, "mapping values"):
		return "put the value in quotes"
	default:
		return ""
	}
}

// deeper returns a node more than levels below n, or nil.
func deeper(n *yaml.Node, levels int) *yaml.Node {
	if levels < 0 {
		return n
	}
	for _, c := range n.Content {
		if deep := deeper(c, levels-1); deep != nil {
			return deep
		}
	}
	return nil
}

// firstBadText finds the first character that a job file must not have: broken UTF-8, control characters, and
// separators of Unicode that only some programs read as a line end.
func firstBadText(data []byte) (place, string) {
	p := place{1, 1}
	for rest := bytes.TrimPrefix(data, []byte("\ufeff")); len(rest) > 0; {
		c, n := utf8.DecodeRune(rest)
		switch {
		case c == utf8.RuneError && n == 1:
			return p, fmt.Sprintf("byte %#02x is not UTF-8", rest[0])
		case terminal.IsControl(c) && !isSpace(rest):
			return p, fmt.Sprintf("the control character %U is not allowed", c)
		}
		p.column++
		if c == '\n' {
			p = place{p.line + 1, 1}
		}
		rest = rest[n:]
	}
	return place{}, ""
}

// isSpace tells whether text starts with a tab or a line end.
func isSpace(text []byte) bool {
	return text[0] == '\t' || text[0] == '\n' || bytes.HasPrefix(text, []byte("\r\n"))
}
