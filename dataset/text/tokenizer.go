package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	encoding "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/unicode/rangetable"
)

// Tokenizer turns text into tokens and back. A token is a number from 0 to Size()-1. A Tokenizer is never changed, so
// it is safe for concurrent use.
type Tokenizer struct {
	normalize []normalizer
	split     []splitter
	model     model
	added     addedTokens
	before    []int32 // special tokens before a text
	after     []int32 // special tokens after it
	decode    decoder
	tokens    []string // the text of every token; of a byte-level tokenizer its bytes
	file      []byte   // tokenizer.json
}

// model turns one word into tokens.
type model interface {
	// appendWord adds the tokens of a word.
	appendWord(dst []int32, word string) []int32
	// id is the token of a text, false if there is none.
	id(token string) (int32, bool)
}

// Size is the number of tokens.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// ID returns the token with this text, and false if there is none. A byte-level tokenizer has bytes as texts.
func (t *Tokenizer) ID(token string) (int, bool) {
	if id, ok := t.added.ids[token]; ok {
		return int(id), true
	}
	id, ok := t.model.id(token)
	return int(id), ok
}

// JSON returns the tokenizer as a file tokenizer.json.
func (t *Tokenizer) JSON() []byte { return t.file }

// Encoder encodes texts one after the other. It remembers the tokens of words, so one of these is much faster than
// many. It must not be used by two goroutines at once.
type Encoder struct {
	*Tokenizer
	known map[string][]int32
}

// Encoder returns a new Encoder.
func (t *Tokenizer) Encoder() *Encoder { return &Encoder{Tokenizer: t, known: map[string][]int32{}} }

const (
	mostKnown   = 1 << 16 // words that an Encoder remembers
	longestWord = 64      // in bytes, of a word that is remembered
)

// Append adds the tokens of a text to dst. With special it also adds the special tokens that the tokenizer puts
// around a text, for example [CLS] and [SEP].
func (e *Encoder) Append(dst []int32, text string, special bool) []int32 {
	if special {
		dst = append(dst, e.before...)
	}
	e.added.cut(text, false, func(part string, token int32) {
		if token >= 0 {
			dst = append(dst, token)
			return
		}
		for _, n := range e.normalize {
			part = n(part)
		}
		e.added.cut(part, true, func(part string, token int32) {
			if token >= 0 {
				dst = append(dst, token)
				return
			}
			dst = e.words(dst, part)
		})
	})
	if special {
		dst = append(dst, e.after...)
	}
	return dst
}

// words adds the tokens of all words of a text without added tokens.
func (e *Encoder) words(dst []int32, text string) []int32 {
	if text == "" {
		return dst
	}
	splitAll(e.split, text, func(word string) {
		if found, ok := e.known[word]; ok {
			dst = append(dst, found...)
			return
		}
		from := len(dst)
		dst = e.model.appendWord(dst, word)
		if len(word) <= longestWord && len(e.known) < mostKnown {
			e.known[strings.Clone(word)] = append([]int32(nil), dst[from:]...)
		}
	})
	return dst
}

// Decode returns the text of tokens. It leaves out special tokens and numbers that are no tokens. Bytes that are no
// UTF-8 become the replacement character.
func (t *Tokenizer) Decode(tokens []int32) string {
	parts := make([]string, 0, len(tokens))
	for _, id := range tokens {
		if id >= 0 && int(id) < len(t.tokens) && !t.added.special[id] {
			parts = append(parts, t.tokens[id])
		}
	}
	text, err := encoding.UTF8.NewDecoder().String(t.decode(parts))
	if err != nil {
		panic(err) // it only replaces
	}
	return text
}

// addedToken is a text that is one token wherever it stands.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` //nolint:tagliatelle // the names of tokenizer.json
	Lstrip     bool   `json:"lstrip"`
	Rstrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// addedTokens finds added tokens in texts.
type addedTokens struct {
	ids     map[string]int32
	special map[int32]bool
	// first has, for raw and for normalised texts, the tokens by their first byte, longer ones first.
	first [2][256][]addedToken
	any   [2]bool
}

// newAddedTokens normalises the tokens that are looked for in normalised texts.
func newAddedTokens(all []addedToken, normalize []normalizer) addedTokens {
	a := addedTokens{ids: map[string]int32{}, special: map[int32]bool{}}
	for _, t := range all {
		a.ids[t.Content] = t.ID
		if t.Special {
			a.special[t.ID] = true
		}
		k := 0
		if t.Normalized {
			k = 1
			for _, n := range normalize {
				t.Content = n(t.Content)
			}
		}
		if t.Content == "" {
			continue
		}
		a.any[k] = true
		list := &a.first[k][t.Content[0]]
		at := len(*list)
		for at > 0 && len((*list)[at-1].Content) < len(t.Content) {
			at--
		}
		*list = append((*list)[:at], append([]addedToken{t}, (*list)[at:]...)...)
	}
	return a
}

// cut calls take with the parts of a text: added tokens, and what is between them with token -1.
func (a *addedTokens) cut(text string, normalized bool, take func(part string, token int32)) {
	k := 0
	if normalized {
		k = 1
	}
	if !a.any[k] {
		take(text, -1)
		return
	}
	from := 0 // what is before was taken
	for i := 0; i < len(text); {
		t := a.at(k, text, i)
		if t == nil {
			i++
			continue
		}
		start, end := i, i+len(t.Content)
		i = end // a token that is no single word hides those inside it, too
		if t.SingleWord && !alone(text, start, end) {
			continue
		}
		if t.Lstrip {
			start = max(min(from, start), len(strings.TrimRightFunc(text[:start], unicode.IsSpace)))
		}
		if t.Rstrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		if from < start {
			take(text[from:start], -1)
		}
		take(t.Content, t.ID)
		from = end
	}
	if from < len(text) {
		take(text[from:], -1)
	}
}

// at is the longest added token at an offset, nil if there is none.
func (a *addedTokens) at(k int, text string, i int) *addedToken {
	list := a.first[k][text[i]]
	for j := range list {
		if t := &list[j]; strings.HasPrefix(text[i:], t.Content) {
			return t
		}
	}
	return nil
}

// alone tells whether no letter, digit or underscore stands beside a part of a text.
func alone(text string, from, to int) bool {
	before, n := utf8.DecodeLastRuneInString(text[:from])
	after, m := utf8.DecodeRuneInString(text[to:])
	return (n == 0 || !isWord(before)) && (m == 0 || !isWord(after))
}

// wordRunes are letters, marks, digits and connectors.
var wordRunes = rangetable.Merge( //nolint:gochecknoglobals // a constant table
	unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic)

// isWord tells whether a rune is part of a word. Annex C of Unicode's Technical Standard 18 adds joiners to wordRunes.
func isWord(r rune) bool { return unicode.In(r, wordRunes, unicode.Join_Control) }
