package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/disdel/disdel"
)

// mostFile is the largest tokenizer.json that is read: published ones have up to 20 MB.
const mostFile = 64 * disdel.MB

// part is a part of tokenizer.json that has a type.
type part struct {
	Type string          `json:"type"`
	raw  json.RawMessage // the whole part
}

func (p *part) UnmarshalJSON(data []byte) error {
	p.raw = bytes.Clone(data)
	return json.Unmarshal(data, &struct {
		Type *string `json:"type"`
	}{&p.Type})
}

// file is tokenizer.json.
type file struct {
	Added     []addedToken `json:"added_tokens"` //nolint:tagliatelle // the names of tokenizer.json
	Normalize *part        `json:"normalizer"`
	Split     *part        `json:"pre_tokenizer"`  //nolint:tagliatelle // as above
	After     *part        `json:"post_processor"` //nolint:tagliatelle // as above
	Decode    *part        `json:"decoder"`
	Model     *part        `json:"model"`
}

// reader builds a Tokenizer and collects everything that is wrong with its file.
type reader struct {
	*Tokenizer
	byteLevel bool
	faults    []error
}

func (r *reader) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf(format, args...))
}

// read decodes a part, and notes a fault if it is not what it should be.
func (r *reader) read(p *part, to any) {
	if err := json.Unmarshal(p.raw, to); err != nil {
		r.fault("%s: %w", p.Type, err)
	}
}

// Read reads a tokenizer.json. It returns Invalid, with everything that is wrong, for a file that is none, and for
// parts that are not known here.
func Read(from io.Reader) (*Tokenizer, error) {
	data, err := io.ReadAll(io.LimitReader(from, int64(mostFile)+1))
	if err != nil {
		return nil, err
	}
	var f file
	if disdel.Bytes(len(data)) > mostFile {
		err = fmt.Errorf("it has more than %v", mostFile)
	} else {
		err = json.Unmarshal(data, &f)
	}
	r := &reader{Tokenizer: &Tokenizer{file: data}}
	switch {
	case err != nil:
		r.faults = append(r.faults, err)
	case f.Model == nil:
		r.fault("it has no model")
	default:
		r.build(f)
	}
	if err := errors.Join(r.faults...); err != nil {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read tokenizer.json", Err: err,
			Hint: "byte-level BPE and WordPiece can be read; or train one here: disdel dataset add --tokenizer bpe:8000",
		}
	}
	return r.Tokenizer, nil
}

func (r *reader) build(f file) {
	r.readNormalizer(f.Normalize)
	r.readSplit(f.Split)
	ids := r.readModel(f.Model)
	r.readTokens(f.Added, ids)
	r.readAfter(f.After)
	r.readDecoder(f.Decode)
}

func (r *reader) readNormalizer(p *part) {
	if p == nil {
		return
	}
	switch p.Type {
	case "Sequence":
		var s struct {
			All []*part `json:"normalizers"`
		}
		r.read(p, &s)
		for _, one := range s.All {
			r.readNormalizer(one)
		}
	case "BertNormalizer":
		var b bertNormalizer
		r.read(p, &b)
		r.normalize = append(r.normalize, b.normalize)
	case "NFC", "NFD", "NFKC", "NFKD":
		r.normalize = append(r.normalize, map[string]norm.Form{
			"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD,
		}[p.Type].String)
	case "Lowercase":
		r.normalize = append(r.normalize, lowercase)
	case "StripAccents":
		r.normalize = append(r.normalize, without(unicode.M))
	default:
		r.fault("the normaliser %q is not known", p.Type)
	}
}

func (r *reader) readSplit(p *part) {
	if p == nil {
		return
	}
	var s struct {
		All        []*part `json:"pretokenizers"`
		Prefix     bool    `json:"add_prefix_space"` //nolint:tagliatelle // the names of tokenizer.json
		Regex      *bool   `json:"use_regex"`        //nolint:tagliatelle // as above
		Individual bool    `json:"individual_digits"`
		Behaviour  string  `json:"behavior"`
		Invert     bool    `json:"invert"`
		Pattern    struct {
			Text  *string `json:"String"`
			Regex *string `json:"Regex"`
		} `json:"pattern"`
	}
	r.read(p, &s)
	add := func(all ...splitter) { r.split = append(r.split, all...) }
	switch p.Type {
	case "Sequence":
		for _, one := range s.All {
			r.readSplit(one)
		}
	case "ByteLevel":
		r.byteLevel = true
		if s.Prefix {
			add(prefixSpace)
		}
		if s.Regex == nil || *s.Regex {
			add(splitBy(starting(gpt2), isolated, false))
		}
	case "Digits":
		add(digits(s.Individual))
	case "BertPreTokenizer":
		add(each(bertWords))
	case "Whitespace":
		add(each(wordsAndSigns))
	case "WhitespaceSplit":
		add(each(spaces))
	case "Punctuation":
		if s.Behaviour != "" && s.Behaviour != isolated {
			r.fault("Punctuation has the behaviour %q, not Isolated", s.Behaviour)
		}
		add(each(punctuation))
	case "Split":
		r.readPattern(s.Pattern.Text, s.Pattern.Regex, s.Behaviour, s.Invert)
	default:
		r.fault("the pre-tokenizer %q is not known", p.Type)
	}
}

func (r *reader) readPattern(text, regex *string, behaviour string, invert bool) {
	if behaviour != isolated && behaviour != removed {
		r.fault("Split has the behaviour %q, neither Isolated nor Removed", behaviour)
		return
	}
	switch {
	case text != nil && *text != "":
		r.split = append(r.split, splitBy(func(s string) (from, to int) {
			at := strings.Index(s, *text)
			return at, at + len(*text)
		}, behaviour, invert))
	case regex != nil:
		m, err := compile(*regex)
		if err != nil {
			r.fault("the pattern %q of Split: %w", *regex, err)
			return
		}
		r.split = append(r.split, splitBy(m, behaviour, invert))
	default:
		r.fault("Split has no pattern")
	}
}

// readModel reads the model and returns its tokens as they are written in the file.
func (r *reader) readModel(p *part) map[string]int32 {
	var m struct {
		Vocabulary map[string]int32  `json:"vocab"`
		Merges     []json.RawMessage `json:"merges"`
		Unknown    *string           `json:"unk_token"`                 //nolint:tagliatelle // the names of tokenizer.json
		Prefix     *string           `json:"continuing_subword_prefix"` //nolint:tagliatelle // as above
		Suffix     *string           `json:"end_of_word_suffix"`        //nolint:tagliatelle // as above
		Longest    *int              `json:"max_input_chars_per_word"`  //nolint:tagliatelle // as above
		Dropout    *float64          `json:"dropout"`
		Fallback   bool              `json:"byte_fallback"` //nolint:tagliatelle // as above
		Whole      bool              `json:"ignore_merges"` //nolint:tagliatelle // as above
	}
	r.read(p, &m)
	kind := p.Type
	if kind == "" { // files of early versions do not say it
		kind = "BPE"
		if m.Merges == nil {
			kind = "WordPiece"
		}
	}
	switch kind {
	case "BPE":
		if !r.byteLevel || m.Fallback || m.Prefix != nil && *m.Prefix != "" || m.Suffix != nil && *m.Suffix != "" {
			r.fault("the BPE is not byte-level")
			return nil
		}
		if m.Dropout != nil && *m.Dropout > 0 {
			r.fault("the BPE has dropout: its tokens are not the same each time")
		}
		r.readBPE(m.Vocabulary, m.Merges, m.Whole)
	case "WordPiece":
		unknown, ok := m.Vocabulary[value(m.Unknown, "[UNK]")]
		if !ok {
			r.fault("the vocabulary has no token for unknown words")
		}
		r.model = newWordPiece(m.Vocabulary, value(m.Prefix, "##"), unknown, max(1, value(m.Longest, 100)))
	default:
		r.fault("the model %q is not known", kind)
	}
	return m.Vocabulary
}

func value[T any](v *T, instead T) T {
	if v == nil {
		return instead
	}
	return *v
}

func (r *reader) readBPE(vocabulary map[string]int32, merges []json.RawMessage, whole bool) {
	b := &bpe{merges: make(map[pair]merge, len(merges)), ids: make(map[string]int32, len(vocabulary)), wordFirst: whole}
	for token, id := range vocabulary {
		if raw, ok := fromByteLetters(token); ok {
			b.ids[raw] = id
		}
	}
	for c := range b.bytes {
		id, ok := b.ids[string([]byte{byte(c)})]
		if !ok {
			r.fault("the vocabulary has no token for the byte %d", c)
			return
		}
		b.bytes[c] = id
	}
	for rank, raw := range merges {
		left, right, ok := readMerge(raw)
		a, okA := vocabulary[left]
		c, okB := vocabulary[right]
		together, okC := vocabulary[left+right]
		if !ok || !okA || !okB || !okC {
			r.fault("merge %d, %s: the vocabulary does not have these tokens", rank, raw)
			return
		}
		p := pair{a, c}
		if _, twice := b.merges[p]; !twice {
			b.merges[p] = merge{int32(rank), together}
		}
	}
	r.model = b
}

// readMerge reads "a b" or ["a", "b"].
func readMerge(raw json.RawMessage) (left, right string, ok bool) {
	var two [2]string
	if json.Unmarshal(raw, &two) == nil {
		return two[0], two[1], true
	}
	var one string
	if json.Unmarshal(raw, &one) != nil {
		return "", "", false
	}
	return strings.Cut(one, " ")
}

// readTokens collects the text of every token.
func (r *reader) readTokens(added []addedToken, vocabulary map[string]int32) {
	const maximum = 1 << 24
	size := int32(0)
	for _, id := range vocabulary {
		size = max(size, id+1)
	}
	for _, t := range added {
		size = max(size, t.ID+1)
		if t.Content == "" {
			r.fault("added token %d is empty", t.ID)
		}
	}
	if size > maximum || len(r.faults) > 0 {
		if size > maximum {
			r.fault("a token has the number %d, above %d", size-1, maximum)
		}
		return
	}
	r.tokens = make([]string, size)
	put := func(id int32, token string) {
		if id < 0 {
			r.fault("the token %q has the number %d", token, id)
			return
		}
		r.tokens[id] = token
	}
	for token, id := range vocabulary {
		if raw, ok := fromByteLetters(token); ok && r.byteLevel {
			token = raw
		}
		put(id, token)
	}
	for _, t := range added {
		put(t.ID, t.Content)
	}
	r.added = newAddedTokens(added, r.normalize)
}

// readAfter reads which special tokens stand around a text.
func (r *reader) readAfter(p *part) {
	if p == nil {
		return
	}
	type token struct {
		ID string `json:"id"`
	}
	var s struct {
		All    []*part           `json:"processors"`
		CLS    []json.RawMessage `json:"cls"`
		SEP    []json.RawMessage `json:"sep"`
		Single []struct {
			Special  *token `json:"SpecialToken"`
			Sequence *token `json:"Sequence"`
		} `json:"single"`
		Special map[string]struct {
			IDs []int32 `json:"ids"`
		} `json:"special_tokens"` //nolint:tagliatelle // the names of tokenizer.json
	}
	r.read(p, &s)
	switch p.Type {
	case "Sequence":
		for _, one := range s.All {
			r.readAfter(one)
		}
	case "ByteLevel": // it only moves offsets
	case "BertProcessing", "RobertaProcessing":
		r.before, r.after = r.number(s.CLS), r.number(s.SEP)
	case "TemplateProcessing":
		to := &r.before
		for _, piece := range s.Single {
			switch {
			case piece.Sequence != nil:
				to = &r.after
			case piece.Special != nil:
				*to = append(*to, s.Special[piece.Special.ID].IDs...)
			}
		}
	default:
		r.fault("the post-processor %q is not known", p.Type)
	}
	for _, id := range slices.Concat(r.before, r.after) {
		if r.tokens != nil && (id < 0 || int(id) >= len(r.tokens)) { // without tokens another fault was found
			r.fault("%s names the token %d, which is not there", p.Type, id)
		}
	}
}

// number is the second of a pair of a text and a number.
func (r *reader) number(two []json.RawMessage) []int32 {
	var id int32
	if len(two) != 2 || json.Unmarshal(two[1], &id) != nil {
		r.fault("the post-processor's tokens are no pairs of a text and a number")
		return nil
	}
	return []int32{id}
}

// decoder joins the texts of tokens.
type decoder func(tokens []string) string

func (r *reader) readDecoder(p *part) {
	r.decode = func(tokens []string) string {
		if r.byteLevel {
			return strings.Join(tokens, "")
		}
		return strings.Join(tokens, " ")
	}
	if p == nil {
		return
	}
	var d struct {
		Prefix  string `json:"prefix"`
		Cleanup bool   `json:"cleanup"`
	}
	r.read(p, &d)
	switch p.Type {
	case "ByteLevel": // as above
	case "WordPiece":
		r.decode = func(tokens []string) string { return joinPieces(tokens, d.Prefix, d.Cleanup) }
	default:
		r.fault("the decoder %q is not known", p.Type)
	}
}

// joinPieces joins the pieces of words. The clean-up takes the spaces before punctuation away, token by token.
func joinPieces(tokens []string, prefix string, cleanup bool) string {
	cleaned := strings.NewReplacer(" .", ".", " ?", "?", " !", "!", " ,", ",", " ' ", "'", " n't", "n't", " 'm", "'m",
		" do not", " don't", " 's", "'s", " 've", "'ve", " 're", "'re")
	var out strings.Builder
	for i, token := range tokens {
		if rest, ok := strings.CutPrefix(token, prefix); ok && i > 0 {
			token = rest
		} else if i > 0 {
			token = " " + token
		}
		if cleanup {
			token = cleaned.Replace(token)
		}
		out.WriteString(token)
	}
	return out.String()
}
