package report

import (
	"regexp"
	"strings"
)

// escapes are the sequences that a terminal acts on: CSI, OSC with its end, and the short ones.
var escapes = regexp.MustCompile("(?s)\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[@-Z\\\\-_]")

// clean takes the teeth out of text that came from outside: terminal sequences go, and other characters that a terminal
// would act on instead of showing, or that turn the direction of text, become a question mark. Lines stay lines.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return c
		case c < ' ', c >= 0x7f && c < 0xa0, c >= 0x2028 && c <= 0x202e, c >= 0x2066 && c <= 0x2069, c == 0x200e, c == 0x200f, c == 0xfeff:
			return '?'
		default:
			return c
		}
	}, escapes.ReplaceAllString(s, ""))
}

// oneLine is clean for text that must not start a line of its own.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(clean(s), func(c rune) bool { return c == '\n' || c == '\t' }), " ")
}
