package text

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// normalizer changes a text before it is split.
type normalizer func(string) string

// bertNormalizer is the normaliser of BERT.
type bertNormalizer struct {
	CleanText    bool  `json:"clean_text"`           //nolint:tagliatelle // the names of tokenizer.json
	ChineseChars bool  `json:"handle_chinese_chars"` //nolint:tagliatelle // as above
	StripAccents *bool `json:"strip_accents"`        //nolint:tagliatelle // as above
	Lowercase    bool  `json:"lowercase"`
}

func (b bertNormalizer) normalize(s string) string {
	if b.CleanText {
		s = strings.Map(clean, s)
	}
	if b.ChineseChars {
		s = spaceIdeographs(s)
	}
	if b.StripAccents != nil && *b.StripAccents || b.StripAccents == nil && b.Lowercase {
		s = without(unicode.Mn)(norm.NFD.String(s))
	}
	if b.Lowercase {
		s = lowercase(s)
	}
	return s
}

// clean drops control characters and makes every white space a space.
func clean(r rune) rune {
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return ' '
	case r == unicode.ReplacementChar || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
		return -1
	case unicode.IsSpace(r):
		return ' '
	}
	return r
}

// ideographs are the blocks of CJK ideographs that BERT takes one by one.
var ideographs = &unicode.RangeTable{ //nolint:gochecknoglobals // a constant table
	R16: []unicode.Range16{{0x3400, 0x4DBF, 1}, {0x4E00, 0x9FFF, 1}, {0xF900, 0xFAFF, 1}},
	R32: []unicode.Range32{
		{0x20000, 0x2A6DF, 1},
		{0x2A700, 0x2B73F, 1},
		{0x2B740, 0x2B81F, 1},
		{0x2B920, 0x2CEAF, 1},
		{0x2F800, 0x2FA1F, 1},
	},
}

func spaceIdeographs(s string) string {
	var out strings.Builder
	for _, r := range s {
		if unicode.Is(ideographs, r) {
			out.WriteByte(' ')
			out.WriteRune(r)
			out.WriteByte(' ')
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// without drops the runes of a table, for example marks, which decomposed accents are.
func without(table *unicode.RangeTable) normalizer {
	return func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.Is(table, r) {
				return -1
			}
			return r
		}, s)
	}
}

// lowercase lowers every letter by its full mapping: of all letters one becomes two.
func lowercase(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, "İ", "i\u0307"))
}
