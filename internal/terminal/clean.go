package terminal

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// escapes are the sequences that a terminal acts on: CSI, OSC with its end, and the short ones.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?s)\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[@-Z\\\\-_]")
})

// Clean makes text from outside safe for a terminal: it removes control sequences, and replaces other control
// characters, and marks that turn the direction of text, by a question mark. Lines stay lines.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return c
		case IsControl(c):
			return '?'
		default:
			return c
		}
	}, escapes().ReplaceAllString(s, ""))
}

// isClean says whether Clean would change nothing. Nearly every text is clean, and checking is cheaper than copying.
func isClean(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= ' ' && c < 0x7f || c == '\n' || c == '\t' {
			continue
		} else if c < utf8.RuneSelf {
			return false
		}
		c, size := utf8.DecodeRuneInString(s[i:])
		if c == utf8.RuneError || IsControl(c) {
			return false
		}
		i += size - 1
	}
	return true
}

// IsControl says whether a terminal or an editor may act on a character instead of showing it: control characters, line
// separators, marks that turn the direction of text, and non-characters.
func IsControl(c rune) bool {
	switch {
	case c < ' ', c >= 0x7f && c < 0xa0, c >= 0x2028 && c <= 0x202e, c >= 0x2066 && c <= 0x2069, c == 0x200e, c == 0x200f:
		return true
	default:
		return c == 0xfeff || c == 0xfffe || c == 0xffff
	}
}

// Escape makes control characters and broken UTF-8 visible, as \x1b.
func Escape(s string) string {
	var b strings.Builder
	for i, c := range s {
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case IsControl(c):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// OneLine is Clean for text that must stay on one line.
func OneLine(s string) string {
	return strings.Join(strings.FieldsFunc(Clean(s), func(c rune) bool { return c == '\n' || c == '\t' }), " ")
}

// CleanJSON writes the control characters of a JSON document as JSON escapes. The meaning stays, because such
// characters only stand within strings.
func CleanJSON(document []byte) []byte {
	out := make([]byte, 0, len(document))
	for _, c := range string(document) {
		if c != '\n' && IsControl(c) {
			out = fmt.Appendf(out, `\u%04x`, c)
			continue
		}
		out = utf8.AppendRune(out, c)
	}
	return out
}
