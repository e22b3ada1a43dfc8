package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/disdel/disdel"
)

// Shape of a printed source line: its width, and how much of it stands left of a place far to the right, in characters.
const (
	lineWidth   = 120
	leftOfPlace = 40
)

// PrintFaults prints faults for people: FILE:LINE:COLUMN, path, message and hint, then the line of the source with a
// caret under the wrong key or value, and at the end the number of problems. source is the text of the job file; nil
// leaves out its lines. A fault without a line belongs to a --set if source is given, and to the whole file otherwise.
// Control characters of the source are escaped. PrintFaults ignores errors of w.
func PrintFaults(faults *disdel.Faults, source []byte, w io.Writer) {
	lines := SourceLines(source)
	for _, f := range faults.Faults {
		fmt.Fprintln(w, faultLine(faults.File, f, source != nil))
		if f.Line > 0 && f.Line <= len(lines) {
			fmt.Fprint(w, snippet(lines[f.Line-1], f.Line, f.Column))
		}
	}
	fmt.Fprintln(w, Counted(len(faults.Faults), "problem"))
}

// SourceLines splits a text at every line end that YAML knows.
func SourceLines(source []byte) []string {
	text := strings.TrimPrefix(string(source), "\ufeff")
	if text == "" {
		return nil
	}
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
}

// faultLine is the line by which editors and people find the place.
func faultLine(file string, f disdel.Fault, job bool) string {
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
	return Escape(strings.ReplaceAll(line, "\n", " "))
}

// snippet is one line of the source with carets below. A place behind the end of the line gets its caret there.
func snippet(line string, number, column int) string {
	chars := []rune(strings.ToValidUTF8(line, "\ufffd"))
	start := min(max(column-1, 0), len(chars))
	end := start + tokenLength(chars[start:])
	from, before := 0, ""
	if start > lineWidth-leftOfPlace {
		from, before = start-leftOfPlace, "..."
	}
	to, after := len(chars), ""
	if to > from+lineWidth {
		to, after = from+lineWidth, "..."
	}
	show := func(part []rune) string { return Escape(strings.ReplaceAll(string(part), "\t", " ")) }
	left, middle := before+show(chars[from:start]), show(chars[start:min(end, to)])
	gutter := fmt.Sprintf("%4d | ", number)
	return gutter + left + middle + show(chars[min(end, to):to]) + after + "\n" +
		strings.Repeat(" ", len(gutter)-2) + "| " + strings.Repeat(" ", width(left)) +
		strings.Repeat("^", max(1, width(middle))) + "\n"
}

// width counts characters. Wide characters count as one column.
func width(s string) int { return utf8.RuneCountInString(s) }

// tokenLength is the length of the key or value that text starts with, in characters.
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

// endsToken says whether a plain key or value ends before text: at a colon or comment, or at a mark of a flow.
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
