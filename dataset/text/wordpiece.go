package text

import (
	"strings"
	"unicode/utf8"
)

// wordPiece finds the longest token at the start of a word, then the longest that continues it, and so on.
type wordPiece struct {
	ids     map[string]int32 // of tokens as they are written
	starts  map[string]int32 // of tokens that begin a word
	goesOn  map[string]int32 // of tokens that continue one, without the prefix
	unknown int32
	longest int // runes of a word; a longer one is unknown
	bytes   int // of the longest token
}

func newWordPiece(ids map[string]int32, prefix string, unknown int32, longest int) *wordPiece {
	w := &wordPiece{
		ids: ids, starts: ids, goesOn: map[string]int32{}, unknown: unknown, longest: longest,
	}
	for token, id := range ids {
		if rest, ok := strings.CutPrefix(token, prefix); ok {
			w.goesOn[rest] = id
		}
		w.bytes = max(w.bytes, len(token))
	}
	return w
}

func (w *wordPiece) id(token string) (int32, bool) {
	id, ok := w.ids[token]
	return id, ok
}

func (w *wordPiece) appendWord(dst []int32, word string) []int32 {
	if utf8.RuneCountInString(word) > w.longest {
		return append(dst, w.unknown)
	}
	from := len(dst)
	for at := 0; at < len(word); {
		known := w.starts
		if at > 0 {
			known = w.goesOn
		}
		end := min(len(word), at+w.bytes)
		id, found := int32(0), false
		for ; end > at; end-- {
			if end < len(word) && !utf8.RuneStart(word[end]) {
				continue
			}
			if id, found = known[word[at:end]]; found {
				break
			}
		}
		if !found {
			return append(dst[:from], w.unknown)
		}
		dst, at = append(dst, id), end
	}
	return dst
}
