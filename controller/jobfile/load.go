package jobfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel/internal/terminal"
)

// load reads the file's one document. It returns nil where there is nothing to continue with.
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

// documents reads the first documents of a file, most at most. None are left where there is nothing to continue with.
func (r *reader) documents(data []byte, most int) []yaml.Node {
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
	documents, err := loadYAML(data, most)
	switch {
	case err != nil:
		p, msg := describe(err)
		r.fault(p, "", mend(data, p, msg), "not YAML: %s", msg)
		return nil
	case len(documents) == 0:
		r.fault(place{1, 1}, "", "disdel explain lists the fields, examples/lenet-fashion.yaml is a job to start from",
			"the file is empty")
	}
	return documents
}

// flat is a document's tree, nil for one that is nested too deep.
func (r *reader) flat(root *yaml.Node) *yaml.Node {
	if deep := deeper(root, maxDepth); deep != nil {
		r.fault(at(deep), "", "", "nested deeper than %d levels", maxDepth)
		return nil
	}
	return root
}

// countMarks counts the characters that may start or end a token. The YAML package holds all tokens of an open bracket
// in memory, 200 bytes and more for each: a bracket around a megabyte of commas took 555 MB.
func countMarks(data []byte) int {
	n := 0
	for _, c := range data {
		if strings.IndexByte("-[]{},:?&*!\"'", c) >= 0 {
			n++
		}
	}
	return n
}

// loadYAML reads the first documents as trees, most at most; aliases are not followed. The recover is for defects of
// the YAML package, which sees text from outside before anything else does.
func loadYAML(data []byte, most int) (documents []yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the reader gave up: %v", p)
		}
	}()
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	for err == nil && len(documents) < most {
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

// describe takes place and message out of an error of the YAML package.
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

// mend is the hint for text that is no YAML, by the character that the reader stopped at.
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

// firstBadText finds the first character that has no business in a job file: broken UTF-8, control characters, and the
// separators of Unicode that only some programs take for the end of a line.
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

// isSpace says whether text starts with a tab or the end of a line.
func isSpace(text []byte) bool {
	return text[0] == '\t' || text[0] == '\n' || bytes.HasPrefix(text, []byte("\r\n"))
}
