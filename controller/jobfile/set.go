package jobfile

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxSet limits one --set, in bytes.
const maxSet = 64 << 10

// step is one segment of a --set's path: a key, and then the items of lists below it.
var step = regexp.MustCompile(`^([^\[\]]+)((?:\[[0-9]{1,6}\])*)$`)

// override puts the value of PATH=VALUE into the tree. New nodes have line 0, so that their faults point at the
// --set.
func (r *reader) override(root *yaml.Node, set string) {
	path, source, ok := strings.Cut(set, "=")
	shown := shorten(path)
	if !ok || path == "" || len(set) > maxSet {
		r.fault(place{}, shown, "write --set training.batchSize=32", "a --set is PATH=VALUE")
		return
	}
	if word := strings.TrimSpace(source); (word == "null" || word == "~") && !strings.Contains(path, "[") {
		takeOut(root, steps(path))
		return
	}
	value, msg := setValue(source)
	if msg != "" {
		r.fault(place{}, shown, "", "the value is not YAML: %s", msg)
		return
	}
	r.put(root, path, value, place{})
}

// put puts a value at a path of the tree. New nodes around the value have the place where.
func (r *reader) put(root *yaml.Node, path string, value *yaml.Node, where place) {
	path = rateOf(root, path)
	node, passed, msg := root, "", ""
	for _, name := range steps(path) {
		if f := find(passed); f != nil && f.form == syncMode && node.Kind == yaml.ScalarNode {
			*node = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"} // a word gives way to the object
		}
		passed = join(passed, name)
		match := step.FindStringSubmatch(name)
		if match == nil {
			r.fault(where, shorten(path), "write --set training.batchSize=32", "%s is no field", quote(name))
			return
		}
		if node, msg = descend(node, match[1], match[2], where); msg != "" {
			r.fault(where, shorten(path), "", "%s", msg)
			return
		}
	}
	*node = *value
}

// shortRate is the learning rate of whichever optimiser the file has.
const shortRate = "training.optimizer.learningRate"

// rateOf completes shortRate by the file's optimiser, or by adam, which is the default. Other paths stay.
func rateOf(root *yaml.Node, path string) string {
	if path != shortRate {
		return path
	}
	chosen := "adam"
	if n := valueOf(valueOf(root, "training"), "optimizer"); n != nil && n.Kind == yaml.MappingNode && len(n.Content) > 0 {
		chosen = n.Content[0].Value
	}
	return "training.optimizer." + chosen + ".learningRate"
}

// valueOf is the value of an object's key, or nil.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// takeOut removes a path: null says that a field, or a whole block, is not given.
func takeOut(n *yaml.Node, names []string) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != names[0] {
			continue
		}
		if len(names) == 1 {
			n.Content = slices.Delete(n.Content, i, i+2)
		} else {
			takeOut(n.Content[i+1], names[1:])
		}
		return
	}
}

// steps splits a path at its dots, except for the key of a label, which may have dots.
func steps(path string) []string {
	const labels = "metadata.labels."
	if key, ok := strings.CutPrefix(path, labels); ok {
		return []string{"metadata", "labels", key}
	}
	return strings.SplitN(path, ".", maxDepth)
}

// setValue reads the value of a --set, without places.
func setValue(source string) (*yaml.Node, string) {
	if _, msg := firstBadText([]byte(source)); msg != "" {
		return nil, msg
	}
	documents, err := loadYAML([]byte(source), 2)
	switch {
	case err != nil:
		_, msg := describe(err)
		return nil, msg
	case len(documents) > 1:
		return nil, "more than one document"
	case len(documents) == 0:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, ""
	}
	value := documents[0].Content[0]
	if deeper(value, maxDepth) != nil {
		return nil, "nested deeper than " + strconv.Itoa(maxDepth) + " levels"
	}
	unplace(value)
	return value, ""
}

func unplace(n *yaml.Node) {
	n.Line, n.Column = 0, 0
	for _, c := range n.Content {
		unplace(c)
	}
}

// descend goes to a key and the items below it, and adds a missing key. msg says why it could not.
func descend(n *yaml.Node, key, items string, where place) (next *yaml.Node, msg string) {
	if isNull(n) {
		*n = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: where.line, Column: where.column}
	}
	if n.Kind != yaml.MappingNode {
		return nil, quote(key) + " is looked for in " + found(n)
	}
	next = entry(n, key, where)
	for index := range strings.SplitSeq(strings.Trim(items, "[]"), "][") {
		i, err := strconv.Atoi(index)
		if err != nil {
			break // no items
		}
		if next.Kind != yaml.SequenceNode || i >= len(next.Content) {
			return nil, key + " has no item " + index
		}
		next = next.Content[i]
	}
	return next, ""
}

// entry returns the value of a key of an object; a new one is null.
func entry(n *yaml.Node, key string, where place) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key && n.Content[i].Kind == yaml.ScalarNode {
			return n.Content[i+1]
		}
	}
	made := func(tag, text string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text, Line: where.line, Column: where.column}
	}
	value := made("!!null", "")
	n.Content = append(n.Content, made("!!str", key), value)
	return value
}
