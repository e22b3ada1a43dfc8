package jobfile

import (
	"reflect"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
)

// Words of distribution.sync: what else than a word it takes, what to use instead of those that this version does not
// carry out yet, and those.
const (
	syncPath   = "distribution.sync"
	syncObject = "{every: K}"
	useSync    = "use epoch, end or " + syncObject
)

var laterSyncs = []string{"bsp", "ssp", "isp", "hsp"}

// sync reads n, a word or an object with the key every, into v.
func (r *reader) sync(n *yaml.Node, f *field, path string, v reflect.Value) {
	if n.Kind == yaml.ScalarNode {
		r.scalar(n, f, path, v)
		return
	}
	var interval struct {
		Every int `json:"every"`
	}
	r.object(n, f.path, path, reflect.ValueOf(&interval).Elem())
	if interval.Every > 0 {
		v.SetString(string(disdel.SyncEvery(interval.Every)))
	}
}

// decodeSync reads a word; a number is taken for the K of an object.
func decodeSync(n *yaml.Node, f *field) (scalarValue, string, string) {
	if n.ShortTag() == "!!int" {
		return unexpected(n, f, writeEvery(n.Value))
	}
	if !isText(n) {
		return unexpected(n, f, f.write())
	}
	return scalarValue{text: n.Value}, "", ""
}

// meantWord is the hint for a word that is none of those that the field takes.
func (f *field) meantWord(word string) string {
	switch k := disdel.Sync(word).Every(); {
	case f.form != syncMode:
		return nearWord(word, f.oneOf)
	case k > 0:
		return writeEvery(strconv.Itoa(k))
	case closestKey(word, append(slices.Clone(f.oneOf), "every")) == "every":
		return writeEvery("")
	default:
		return nearWord(word, f.oneOf)
	}
}

// writeEvery is the hint that shows the object, with the file's own number where that is one.
func writeEvery(k string) string {
	if v, err := strconv.Atoi(k); err != nil || v < 1 || v > largestInt {
		k = child(syncPath, "every").example
	}
	return "write sync: {every: " + k + "}"
}

// printSync makes the tree of a word or of an interval.
func printSync(s disdel.Sync) *yaml.Node {
	if s.Every() == 0 {
		return scalarNode("!!str", string(s))
	}
	every := scalarNode("!!int", strconv.Itoa(s.Every()))
	return &yaml.Node{
		Kind: yaml.MappingNode, Tag: "!!map", Style: yaml.FlowStyle,
		Content: []*yaml.Node{scalarNode("!!str", "every"), every},
	}
}

// syncSchema describes a word or an interval.
func (f *field) syncSchema() schemaNode {
	return schemaNode{"anyOf": []schemaNode{f.textSchema(), objectSchema(f.path)}}
}
