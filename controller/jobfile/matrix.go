package jobfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
)

// maxJobs limits the jobs of a file.
const maxJobs = 1000

// Choice is a value of a matrix for a field of one of its jobs.
type Choice struct {
	Path  string `json:"path"`
	Value string `json:"value"` // as in the file
}

// ParseMany reads the jobs of a file: one for each of its YAML documents, or if a document has a matrix, one for each
// combination of its values:
//
//	matrix: {training.batchSize: [32, 64], training.optimizer.adam.learningRate: [0.001, 0.003]}
//
// The last field of a matrix changes fastest. Its jobs have the document's name with -1, -2 and so on appended,
// unless the matrix has their names. Sets change every document before its matrix is read, so that --set matrix=null
// removes it. Everything else is as in ParseWith; a fault of several jobs is reported once.
func ParseMany(name string, data []byte, sets []string, open func(file string) ([]byte, error)) ([]File, error) {
	m := &matrixReader{reader: newReader(open), name: name, data: data, known: map[disdel.Fault]bool{}}
	documents := m.documents(data, maxJobs+1)
	for i := range documents {
		if root := m.flat(documents[i].Content[0]); root != nil {
			m.document(root, sets)
		}
	}
	if len(m.files) > maxJobs {
		m.fault(place{1, 1}, "", "", "the file has more than %d jobs", maxJobs)
		m.files = nil
	}
	if len(m.faults) > 0 {
		return m.files, &disdel.Faults{File: name, Faults: m.inOrder()}
	}
	return m.files, nil
}

// matrixReader collects the jobs of a file, and their faults.
type matrixReader struct {
	*reader
	name  string
	data  []byte
	files []File
	known map[disdel.Fault]bool
}

// document reads the jobs of one document.
func (m *matrixReader) document(root *yaml.Node, sets []string) {
	r := newReader(m.open)
	for _, set := range sets {
		r.override(root, set)
	}
	m.take(r)
	axes := m.matrix(root)
	if axes == nil {
		m.job(root, nil)
		return
	}
	count := 1
	for _, a := range axes {
		if count *= len(a.values); count > maxJobs {
			m.fault(axes[0].at, matrixKey, "", "makes more than %d jobs", maxJobs)
			return
		}
	}
	for i := range count {
		m.combination(root, axes, i, count)
	}
}

// combination reads the job of a matrix with a number, from 0.
func (m *matrixReader) combination(root *yaml.Node, axes []axis, number, count int) {
	tree := cloned(root)
	named := slices.ContainsFunc(axes, func(a axis) bool { return a.path == "metadata.name" || a.path == "metadata" })
	if !named {
		numberName(tree, number+1)
	}
	choices, r := make([]Choice, len(axes)), newReader(m.open)
	for i, a := range axes {
		count /= len(a.values)
		value := a.values[number/count%len(a.values)]
		choices[i] = Choice{a.path, textOf(value)}
		if isNull(value) && !strings.Contains(a.path, "[") {
			takeOut(tree, steps(a.path)) // as with --set: the field is not given
		} else {
			r.put(tree, a.path, cloned(value), a.at)
		}
	}
	m.take(r)
	m.job(tree, choices)
}

// job reads one job.
func (m *matrixReader) job(root *yaml.Node, choices []Choice) {
	r := newReader(m.open)
	file := File{Name: m.name, Source: m.data, Choices: choices, places: r.places}
	r.root(root, &file.Job)
	r.finish(&file.Job)
	m.take(r)
	file.Faults = r.faults[:min(len(r.faults), maxFaults)]
	m.files = append(m.files, file)
}

// take adds the faults of a job's reader, unless another job had them.
func (m *matrixReader) take(r *reader) {
	for _, f := range r.faults {
		if !m.known[f] && !m.full() {
			m.known[f] = true
			m.faults = append(m.faults, f)
		}
	}
}

// axis is a field of a matrix with its values.
type axis struct {
	path   string
	at     place
	values []*yaml.Node
}

const matrixKey = "matrix"

// matrix removes the matrix from a document; nil if it has none.
func (m *matrixReader) matrix(root *yaml.Node) []axis {
	if root.Kind != yaml.MappingNode {
		return nil
	}
	i := slices.IndexFunc(root.Content, func(n *yaml.Node) bool { return n.Value == matrixKey })
	if i < 0 || i%2 != 0 {
		return nil
	}
	key, n := root.Content[i], root.Content[i+1]
	root.Content = slices.Delete(root.Content, i, i+2)
	const hint = "write matrix: {training.batchSize: [32, 64]}"
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		m.fault(keyPlace(key, n), matrixKey, hint, "expected fields with a list of values each, found %s", found(n))
		return nil
	}
	var out []axis
	for i := 0; i+1 < len(n.Content); i += 2 {
		path, values := n.Content[i], n.Content[i+1]
		where := keyPlace(path, values)
		switch {
		case path.Kind != yaml.ScalarNode || isNull(path):
			m.fault(where, matrixKey, hint, "a field is a path, not %s", found(path))
		case slices.ContainsFunc(out, func(a axis) bool { return a.path == path.Value }):
			m.fault(where, matrixKey+"."+shorten(path.Value), "", "given twice")
		case values.Kind == yaml.SequenceNode && len(values.Content) == 0:
			m.fault(where, matrixKey+"."+shorten(path.Value), hint, "needs at least one value")
		case values.Kind != yaml.SequenceNode:
			m.fault(where, matrixKey+"."+shorten(path.Value), hint, "expected a list of values, found %s", found(values))
		default:
			out = append(out, axis{path.Value, where, values.Content})
		}
	}
	return out
}

func cloned(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out.Content[i] = cloned(c)
	}
	return &out
}

// numberName appends a number to the name of a document's job.
func numberName(root *yaml.Node, number int) {
	n := root
	for _, key := range []string{"metadata", "name"} {
		i := -1
		if n.Kind == yaml.MappingNode {
			i = slices.IndexFunc(n.Content, func(c *yaml.Node) bool { return c.Value == key })
		}
		if i < 0 || i%2 != 0 {
			return // it is reported as missing
		}
		n = n.Content[i+1]
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		n.Value = fmt.Sprintf("%s-%d", n.Value, number)
	}
}

// textOf is a value on one line.
func textOf(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return shorten(cmp.Or(n.Value, "null"))
	}
	flow := cloned(n)
	flow.Style = yaml.FlowStyle
	text, err := yaml.Dump(flow)
	if err != nil {
		return found(n)
	}
	return shorten(strings.Join(strings.Fields(string(text)), " "))
}
