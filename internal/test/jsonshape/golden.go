package jsonshape

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel/internal/test/golden"
)

const heading = "== "

// Golden holds the shapes of named documents against a file, which update writes anew. The docs of a name are those of
// [Of]; a name without docs is one that prints no document.
func Golden(t *testing.T, file string, update bool, docs map[string][]any) {
	t.Helper()
	shapes := map[string]Shape{}
	for name, list := range docs {
		s, err := Of(Vocabulary(), list...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		shapes[name] = s
	}
	golden.Same(t, file, Print(shapes), update)
}

// Print writes shapes as [Read] reads them, sorted by name. A part of a shape that is all of another shape is one line
// "PATH is NAME".
func Print(shapes map[string]Shape) string {
	names := slices.Sorted(maps.Keys(shapes))
	whole := map[string]string{} // body -> the first name that has it
	for _, name := range names {
		if body := shapes[name].below("$"); whole[body] == "" {
			whole[body] = name
		}
	}
	var out strings.Builder
	for _, name := range names {
		fmt.Fprintf(&out, "%s%s\n", heading, name)
		if len(shapes[name]) == 0 {
			out.WriteString("none\n")
		}
		for _, line := range shapes[name].lines(name, whole) {
			fmt.Fprintln(&out, line)
		}
	}
	return out.String()
}

// lines are a shape's lines, sorted, with parts that are another shape in one line.
func (s Shape) lines(name string, whole map[string]string) (out []string) {
	for _, line := range slices.Sorted(maps.Keys(s)) {
		path, kind, _ := strings.Cut(line, " ")
		if len(out) > 0 {
			if part, _, is := strings.Cut(out[len(out)-1], " is "); is && (path == part || isBelow(path, part)) {
				continue
			}
		}
		if other := whole[s.below(path)]; kind == "object" && other != "" && (other != name || path != "$") {
			line = path + " is " + other
		}
		out = append(out, line)
	}
	return out
}

// below is the part of a shape at and below a path, as if that were the root.
func (s Shape) below(root string) string {
	var out []string
	for line := range s {
		if path, kind, _ := strings.Cut(line, " "); path == root || isBelow(path, root) {
			if at, again := strings.CutPrefix(kind, "as "); again && strings.HasPrefix(at, root) {
				kind = "as $" + at[len(root):]
			}
			out = append(out, "$"+path[len(root):]+" "+kind)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func isBelow(path, root string) bool {
	return strings.HasPrefix(path, root+".") || strings.HasPrefix(path, root+"[")
}

// Read reads what [Print] wrote.
func Read(text string) map[string]Shape {
	out, current := map[string]Shape{}, Shape{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if name, found := strings.CutPrefix(line, heading); found {
			current = Shape{}
			out[name] = current
		} else if line != "none" {
			current[line] = true
		}
	}
	for _, s := range out {
		s.expand(out)
	}
	return out
}

// expand replaces lines "PATH is NAME" by the lines of the shape of that name.
func (s Shape) expand(all map[string]Shape) {
	for line := range maps.Clone(s) {
		path, name, is := strings.Cut(line, " is ")
		if !is {
			continue
		}
		delete(s, line)
		all[name].expand(all)
		for other := range all[name] {
			at, kind, _ := strings.Cut(other, " ")
			if up, again := strings.CutPrefix(kind, "as $"); again {
				kind = "as " + path + up
			}
			s[path+at[1:]+" "+kind] = true
		}
	}
}
