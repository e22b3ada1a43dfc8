package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// class is what the patterns tell apart.
type class uint8

const (
	other class = iota
	letter
	number
	space
)

// classes are those of ASCII.
var classes = asciiClasses() //nolint:gochecknoglobals // a constant table

func asciiClasses() (out [utf8.RuneSelf]class) {
	for i := range out {
		out[i] = classOf(rune(i))
	}
	return out
}

func classOf(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// next is the class of the first rune of s and its length; 0 at the end.
func next(s string) (class, int) {
	if s == "" {
		return other, 0
	}
	if c := s[0]; c < utf8.RuneSelf {
		return classes[c], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	return classOf(r), n
}

// run is the length of the runes of a class from offset i on, at most so many.
func run(s string, i int, c class, maximum int) int {
	from := i
	for ; maximum > 0; maximum-- {
		k, n := next(s[i:])
		if n == 0 || k != c {
			break
		}
		i += n
	}
	return i - from
}

const unbounded = 1 << 62

// starting makes a matcher of a function that returns the length of the match at the start. It always matches there.
func starting(length func(s string) int) matcher {
	return func(s string) (from, to int) { return 0, length(s) }
}

// gpt2 is the length of the match of gpt2Pattern at the start of s.
func gpt2(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	skip := 0
	c, _ := next(s)
	if s[0] == ' ' {
		if after, n := next(s[1:]); n > 0 && after != space {
			skip, c = 1, after
		}
	}
	if c == space {
		return blanks(s)
	}
	return skip + run(s, skip, c, unbounded)
}

// llama is the length of the match of llamaPattern or qwenPattern, which differ in the digits of a part.
func llama(s string, digits int) int {
	if n := contraction(s, true); n > 0 {
		return n
	}
	c, n := next(s)
	switch after, _ := next(s[n:]); {
	case c == letter:
		return run(s, 0, letter, unbounded)
	case c == number:
		return run(s, 0, number, digits)
	case s[0] != '\r' && s[0] != '\n' && after == letter && len(s) > n:
		return n + run(s, n, letter, unbounded)
	}
	skip := 0
	if s[0] == ' ' {
		skip = 1
	}
	if signs := run(s, skip, other, unbounded); signs > 0 {
		end := skip + signs
		for end < len(s) && (s[end] == '\r' || s[end] == '\n') {
			end++
		}
		return end
	}
	all := run(s, 0, space, unbounded)
	for end := all; end > 0; end-- { // up to the last line break
		if s[end-1] == '\r' || s[end-1] == '\n' {
			return end
		}
	}
	return blanks(s)
}

// contraction is the length of an English ending after an apostrophe, 0 if there is none.
func contraction(s string, anyCase bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	lower := func(i int) byte {
		if i >= len(s) {
			return 0
		}
		if c := s[i]; !anyCase || c < 'A' || c > 'Z' {
			return c
		}
		return s[i] + 'a' - 'A'
	}
	if longS := "'ſ"; anyCase && strings.HasPrefix(s, longS) { // that letter is an s in another case
		return len(longS)
	}
	switch a, b := lower(1), lower(2); {
	case a == 's' || a == 't' || a == 'm' || a == 'd':
		return 2
	case a == 'r' && b == 'e', a == 'v' && b == 'e', a == 'l' && b == 'l':
		return 3
	}
	return 0
}

// blanks is the length of white space, without the last of several before a word.
func blanks(s string) int {
	all := run(s, 0, space, unbounded)
	if all == len(s) {
		return all
	}
	if _, n := utf8.DecodeLastRuneInString(s[:all]); n < all {
		return all - n
	}
	return all
}
