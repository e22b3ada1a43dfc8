package jobfile

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
)

// A printed source line: its width, and how much text stands before a place far to the right, in characters.
const (
	lineWidth = 120
	lead      = 40
)

// Render prints faults: FILE:LINE:COLUMN, path, message and hint, then the line of the source with a caret under the
// wrong key or value, and at the end the number of problems. source is the job file's text, nil if it is unknown or
// the file is no job file: then the source lines are omitted. A fault without a line is one of a --set in a job file
// with a name, and otherwise one of the whole file. Control characters of the source are escaped. Errors of w are
// ignored.
func Render(faults *disdel.Faults, source []byte, w io.Writer) {
	lines := splitLines(source)
	for _, f := range faults.Faults {
		fmt.Fprintln(w, headline(faults.File, f, source != nil))
		if f.Line > 0 && f.Line <= len(lines) {
			fmt.Fprint(w, snippet(lines[f.Line-1], f.Line, f.Column))
		}
	}
	if n := len(faults.Faults); n == 1 {
		fmt.Fprintln(w, "1 problem")
	} else {
		fmt.Fprintf(w, "%d problems\n", n)
	}
}

// splitLines splits text at every line end of YAML.
func splitLines(source []byte) []string {
	text := strings.TrimPrefix(string(source), "\ufeff")
	if text == "" {
		return nil
	}
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
}

// headline is the line with the place. A fault of a job file without a line is one of a --set.
func headline(file string, f disdel.Fault, job bool) string {
	where := file
	switch {
	case f.Line > 0:
		where = fmt.Sprintf("%s:%d:%d", file, f.Line, f.Column)
	case job && file != "":
		where = "--set"
	}
	var parts []string
	for _, p := range []string{where, f.Path, f.Msg} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	line := strings.Join(parts, ": ")
	if f.Hint != "" {
		line += "; " + f.Hint
	}
	return escape(strings.ReplaceAll(line, "\n", " "))
}

// snippet prints one line of the source and the carets below. A place behind the line's end gets its caret there.
func snippet(line string, number, column int) string {
	chars := []rune(strings.ToValidUTF8(line, "\ufffd"))
	start := min(max(column-1, 0), len(chars))
	end := start + tokenLength(chars[start:])
	from, before := 0, ""
	if start > lineWidth-lead {
		from, before = start-lead, "..."
	}
	to, after := len(chars), ""
	if to > from+lineWidth {
		to, after = from+lineWidth, "..."
	}
	show := func(part []rune) string { return escape(strings.ReplaceAll(string(part), "\t", " ")) }
	left, middle := before+show(chars[from:start]), show(chars[start:min(end, to)])
	gutter := fmt.Sprintf("%4d | ", number)
	return gutter + left + middle + show(chars[min(end, to):to]) + after + "\n" +
		strings.Repeat(" ", len(gutter)-2) + "| " + strings.Repeat(" ", width(left)) +
		strings.Repeat("^", max(1, width(middle))) + "\n"
}

// width counts characters; those that terminals draw two columns wide count once.
func width(s string) int { return utf8.RuneCountInString(s) }

// tokenLength is the length of the key or value at the start of text, in characters.
func tokenLength(text []rune) int {
	if len(text) == 0 {
		return 0
	}
	if q := text[0]; q == '"' || q == '\'' {
		for i := 1; i < len(text); i++ {
			if text[i] == q {
				return i + 1
			}
		}
		return len(text)
	}
	n := 0
	for n < len(text) && !endsToken(text[n:]) {
		n++
	}
	return len([]rune(strings.TrimRight(string(text[:n]), " \t")))
}

// endsToken tells whether a plain key or value ends before text: at a colon or comment, or at a bracket or comma.
func endsToken(text []rune) bool {
	next := ' '
	if len(text) > 1 {
		next = text[1]
	}
	switch text[0] {
	case ',', '[', ']', '{', '}':
		return true
	case ':':
		return next == ' '
	case ' ', '\t':
		return next == '#'
	default:
		return false
	}
}

// longestQuote is how much of the file's text one message repeats, in characters.
const longestQuote = 64

// shorten cuts and escapes text for a message.
func shorten(s string) string { return escape(cut(s)) }

// quote is shorten for text in quotes.
func quote(s string) string { return strconv.Quote(cut(s)) }

func cut(s string) string {
	n := 0
	for i := range s {
		if n++; n > longestQuote {
			return s[:i] + "..."
		}
	}
	return s
}

// escape makes control characters and broken UTF-8 visible, so that text of a file cannot control the terminal.
func escape(s string) string {
	var b strings.Builder
	for i, c := range s {
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case isControl(c):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_$/][-A-Za-z0-9_$/]*$`)

// join adds a key of the file to a path; one that would make the path ambiguous is quoted.
func join(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		key = quote(key)
	case len(key) > longestQuote:
		key = shorten(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// found describes a value for "expected X, found Y".
func found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	value := shorten(n.Value)
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!str":
		return "text " + quote(n.Value)
	case "!!int":
		return "the integer " + value
	case "!!float":
		return "the number " + value
	case "!!timestamp":
		return "the date " + value
	case "!!bool":
		return value
	default:
		return "a value tagged " + shorten(n.Tag)
	}
}
