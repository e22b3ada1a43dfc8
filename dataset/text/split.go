package text

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/rangetable"
)

// splitter splits a part of a text into smaller parts, from left to right. It may drop some of it.
type splitter func(part string, emit func(string))

// splitAll sends a text through all splitters, and what comes out to emit. Empty parts are left out.
func splitAll(all []splitter, part string, emit func(string)) {
	if len(all) == 0 {
		if part != "" {
			emit(part)
		}
		return
	}
	all[0](part, func(p string) { splitAll(all[1:], p, emit) })
}

// matcher returns the first match in a text, or -1 if there is none. A match is never empty.
type matcher func(s string) (from, to int)

// what happens to matches of a pattern.
const (
	isolated = "Isolated"
	removed  = "Removed"
)

// splitBy splits a text at matches. With the behaviour isolated, matches are parts of their own, and with removed they
// are dropped. invert exchanges the matches and the texts between them.
func splitBy(m matcher, behaviour string, invert bool) splitter {
	return func(s string, emit func(string)) {
		keep := func(part string, match bool) {
			if part != "" && (behaviour == isolated || match == invert) {
				emit(part)
			}
		}
		for s != "" {
			from, to := m(s)
			if from < 0 {
				break
			}
			keep(s[:from], false)
			keep(s[from:to], true)
			s = s[to:]
		}
		keep(s, false)
	}
}

// each splits a text into runs of one kind of rune. Runes of a kind that is single are parts of their own; those of
// kind -1 are dropped.
func each(kind func(r rune) (k int, single bool)) splitter {
	return func(s string, emit func(string)) {
		from, last := 0, -1
		for i, r := range s {
			k, single := kind(r)
			if i > from && (k != last || single) {
				if last >= 0 {
					emit(s[from:i])
				}
				from = i
			}
			last = k
		}
		if last >= 0 && from < len(s) {
			emit(s[from:])
		}
	}
}

func isBERTPunctuation(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsPunct(r) || unicode.IsSymbol(r)) || unicode.IsPunct(r)
}

// bertWords splits at white space and makes every punctuation mark a word.
func bertWords(r rune) (kind int, single bool) {
	switch {
	case unicode.IsSpace(r):
		return -1, false
	case isBERTPunctuation(r):
		return 1, true
	}
	return 0, false
}

func punctuation(r rune) (kind int, single bool) {
	if isBERTPunctuation(r) {
		return 1, true
	}
	return 0, false
}

func spaces(r rune) (kind int, single bool) {
	if unicode.IsSpace(r) {
		return -1, false
	}
	return 0, false
}

// wordsAndSigns is the pattern \w+|[^\w\s]+.
func wordsAndSigns(r rune) (kind int, single bool) {
	switch {
	case unicode.IsSpace(r):
		return -1, false
	case isWord(r):
		return 0, false
	}
	return 1, false
}

func digits(individual bool) splitter {
	return each(func(r rune) (kind int, single bool) {
		if unicode.IsNumber(r) {
			return 1, individual
		}
		return 0, false
	})
}

// prefixSpace adds the space that a byte-level tokenizer may put before a text.
func prefixSpace(s string, emit func(string)) {
	if !strings.HasPrefix(s, " ") {
		s = " " + s
	}
	emit(s)
}

// Patterns of published tokenizers, which functions of this package match much faster than a regular expression.
const (
	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|`
	signsAndRest = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	gpt2Pattern  = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	llamaPattern = contractions + `\p{N}{1,3}` + signsAndRest
	qwenPattern  = contractions + `\p{N}` + signsAndRest
)

// compile makes a matcher of a pattern of tokenizer.json. It returns an error if Go's regular expressions cannot
// express it.
func compile(pattern string) (matcher, error) {
	switch pattern {
	case gpt2Pattern:
		return starting(gpt2), nil
	case llamaPattern:
		return starting(func(s string) int { return llama(s, 3) }), nil
	case qwenPattern:
		return starting(func(s string) int { return llama(s, 1) }), nil
	}
	// Go has no look-ahead: the match of this group is shortened instead
	pattern = strings.Replace(pattern, spacesBeforeWord, `(`+spaceRun+`)`, 1)
	e, err := regexp.Compile(unicodeClasses(pattern))
	if err != nil {
		return nil, err
	}
	return func(s string) (from, to int) {
		for at := 0; at <= len(s); {
			found := e.FindStringSubmatchIndex(s[at:])
			if found == nil {
				break
			}
			from, to := at+found[0], at+found[1]
			if e.NumSubexp() == 1 && found[2] >= 0 {
				to = from + blanks(s[from:])
			}
			if to > from {
				return from, to
			}
			_, n := utf8.DecodeRuneInString(s[from:])
			at = from + max(1, n)
		}
		return -1, -1
	}, nil
}

const (
	spaceRun = `\s+`
	// spacesBeforeWord is white space without the last one before a word.
	spacesBeforeWord = spaceRun + `(?!\S)|` + spaceRun
)

// unicodeClasses writes \s, \w, \d and their opposites in a pattern as classes of Go, where these mean ASCII.
func unicodeClasses(pattern string) string {
	// PyPI's tokenizers take these six numbers of Latin-1 as parts of words, and no others
	word := rangetable.Merge(wordRunes, rangetable.New('²', '³', '¹', '¼', '½', '¾'))
	tables := map[byte]*unicode.RangeTable{'s': unicode.White_Space, 'w': word, 'd': unicode.Nd}
	var out strings.Builder
	class := false
	for i := 0; i < len(pattern); i++ {
		two := pattern[i:min(i+2, len(pattern))]
		if two[0] != '\\' || len(two) < 2 {
			if two[0] == '[' || two[0] == ']' {
				class = two[0] == '['
			}
			out.WriteByte(two[0])
			continue
		}
		i++
		switch table, ok := tables[two[1]|0x20]; { // in lower case
		case ok && class:
			out.WriteString(ranges(table, two[1] < 'a'))
		case ok:
			out.WriteString("[" + ranges(table, two[1] < 'a') + "]")
		default:
			out.WriteString(two)
		}
	}
	return out.String()
}

// ranges writes the runes of a table, or all others, as the inside of a class.
func ranges(table *unicode.RangeTable, others bool) string {
	var out strings.Builder
	from, end := rune(0), rune(0) // the newest run of runes of the table, without its end
	closeRun := func(next rune) {
		first, last := from, end-1
		if others {
			first, last = end, next-1
		}
		if first <= last {
			fmt.Fprintf(&out, `\x{%x}-\x{%x}`, first, last)
		}
	}
	rangetable.Visit(table, func(r rune) {
		if r != end {
			closeRun(r)
			from = r
		}
		end = r + 1
	})
	closeRun(unicode.MaxRune + 1)
	return out.String()
}
