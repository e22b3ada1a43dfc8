package text

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/disdel/disdel"
)

// fixture is what testdata/make.py wrote with PyPI's tokenizers.
type fixture struct {
	Texts      []string `json:"texts"`
	Tokenizers map[string]struct {
		File    json.RawMessage `json:"file"`
		Plain   [][]int32       `json:"plain"`
		Special [][]int32       `json:"special"`
		Decoded []string        `json:"decoded"`
	} `json:"tokenizers"`
}

func fixtures(t *testing.T) (f fixture) {
	t.Helper()
	packed, err := os.Open("testdata/tokenizers.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(plain).Decode(&f); err != nil {
		t.Fatal(err)
	}
	return f
}

func read(t *testing.T, data []byte) *Tokenizer {
	t.Helper()
	got, err := Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Tokens and decoded texts are those of PyPI's tokenizers, for texts of 20 scripts with control characters and added
// tokens.
func TestTokensAreThoseOfTheLibrary(t *testing.T) {
	f := fixtures(t)
	for name, want := range f.Tokenizers {
		t.Run(name, func(t *testing.T) {
			tokenizer := read(t, want.File)
			e := tokenizer.Encoder()
			for i, text := range f.Texts {
				if got := e.Append(nil, text, false); !slices.Equal(got, want.Plain[i]) {
					t.Errorf("%q: %v, not %v", text, got, want.Plain[i])
				}
				if got := e.Append(nil, text, true); !slices.Equal(got, want.Special[i]) {
					t.Errorf("%q with special tokens: %v, not %v", text, got, want.Special[i])
				}
				if got := tokenizer.Decode(want.Special[i]); got != want.Decoded[i] {
					t.Errorf("%q decodes to %q, not %q", text, got, want.Decoded[i])
				}
			}
		})
	}
}

// vocabulary is what a file says of its tokens.
func vocabulary(t *testing.T, data []byte) (tokens map[string]int32, merges []string) {
	t.Helper()
	var f struct {
		Model struct {
			Vocabulary map[string]int32  `json:"vocab"`
			Merges     []json.RawMessage `json:"merges"`
		} `json:"model"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	for _, raw := range f.Model.Merges {
		left, right, _ := readMerge(raw)
		merges = append(merges, left+" "+right)
	}
	return f.Model.Vocabulary, merges
}

// Training gives the tokens, numbers and merges that the library learns from the same texts.
func TestTrainedTokensAreThoseOfTheLibrary(t *testing.T) {
	f := fixtures(t)
	want, merges := vocabulary(t, f.Tokenizers["gpt2"].File)
	trained, err := TrainBPE(slices.Values(f.Texts), len(want), "<|end|>")
	if err != nil {
		t.Fatal(err)
	}
	got, gotMerges := vocabulary(t, trained.JSON())
	if len(got) != len(want) || !slices.Equal(gotMerges, merges) {
		t.Errorf("%d tokens and merges %q, not %d and %q", len(got), gotMerges, len(want), merges)
	}
	for token, id := range want {
		if got[token] != id {
			t.Errorf("%q is %d, not %d", token, got[token], id)
		}
	}
}

// A byte-level tokenizer loses nothing, whatever the text, and a long word has the tokens that the slow way gives it.
func TestNothingIsLost(t *testing.T) {
	f := fixtures(t)
	tokenizer := read(t, f.Tokenizers["gpt2"].File)
	e, b := tokenizer.Encoder(), tokenizer.model.(*bpe) //nolint:forcetypeassert // it is one
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var text strings.Builder
		for range 1 + r.IntN(300) {
			if r.IntN(2) == 0 {
				text.WriteRune(rune("abdegiklou "[r.IntN(11)]))
			} else if c := rune(r.IntN(0x3000)); utf8.ValidRune(c) {
				text.WriteRune(c)
			}
		}
		if got := tokenizer.Decode(e.Append(nil, text.String(), false)); got != text.String() {
			t.Fatalf("seed %d: %q became %q", seed, text.String(), got)
		}
		word := make([]int32, 0, text.Len())
		for i := range text.Len() {
			word = append(word, b.bytes[text.String()[i]])
		}
		slow := slices.Clone(word)
		slow = slow[:b.mergeShort(slow)]
		if fast := b.mergeLong(word); !slices.Equal(fast, slow) {
			t.Fatalf("seed %d: %v, not %v", seed, fast, slow)
		}
	}
}

// A word of four megabytes is no reason to wait for hours.
func TestLongWordsTakeNoQuadraticTime(t *testing.T) {
	f := fixtures(t)
	for _, name := range []string{"gpt2", "bert", "stages"} {
		tokenizer := read(t, f.Tokenizers[name].File)
		if got := tokenizer.Encoder().Append(nil, strings.Repeat("ba", 2<<20), false); len(got) == 0 {
			t.Errorf("%s: no tokens", name)
		}
	}
}

// Everything that is wrong with a file is named at once.
func TestFaultsAreNamed(t *testing.T) {
	for in, want := range map[string][]string{
		``:                       {"unexpected end"},
		`[]`:                     {"cannot unmarshal"},
		`{}`:                     {"no model"},
		`{"model":{"type":"X"}}`: {`model "X"`},
		`{"normalizer":{"type":"Nmt"},"pre_tokenizer":{"type":"Metaspace"},"model":{"type":"Unigram"},
			"post_processor":{"type":"P"},"decoder":{"type":"D"}}`: {`"Nmt"`, `"Metaspace"`, `"Unigram"`, `"P"`, `"D"`},
		`{"model":{"type":"BPE","vocab":{},"merges":[]}}`:                                           {"not byte-level"},
		`{"pre_tokenizer":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{},"merges":[]}}`:      {"byte 0"},
		`{"model":{"type":"WordPiece","vocab":{"a":0}}}`:                                            {"unknown words"},
		`{"model":{"type":"WordPiece","vocab":{"[UNK]":-1}}}`:                                       {"number -1"},
		`{"model":{"type":"WordPiece","vocab":{"[UNK]":99999999}}}`:                                 {"99999999"},
		`{"added_tokens":[{"id":1,"content":""}],"model":{"type":"WordPiece","vocab":{"[UNK]":0}}}`: {"empty"},
		`{"pre_tokenizer":{"type":"Split","behavior":"Isolated","pattern":{"Regex":"(?<=a)b"}},
			"model":{"type":"WordPiece","vocab":{"[UNK]":0}}}`: {"(?<=a)b"},
	} {
		_, err := Read(strings.NewReader(in))
		if disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%s: %v", in, err)
			continue
		}
		for _, word := range want {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v does not name %s", in, err, word)
			}
		}
	}
}

// A vocabulary that is too small for the bytes is refused, and one that texts cannot fill is smaller.
func TestTheSizeOfATrainedVocabulary(t *testing.T) {
	if _, err := TrainBPE(slices.Values([]string{"a"}), 256, "<|end|>"); disdel.KindOf(err) != disdel.Invalid {
		t.Error(err)
	}
	got, err := TrainBPE(slices.Values([]string{"abab"}), 1000)
	if err != nil || got.Size() != 258 {
		t.Errorf("%v tokens, %v", got.Size(), err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"model":{"type":"WordPiece","vocab":{"[UNK]":0}},"normalizer":{"type":"BertNormalizer"}}`), "a b")
	f.Fuzz(func(_ *testing.T, file []byte, text string) {
		if t, err := Read(bytes.NewReader(file)); err == nil {
			t.Decode(t.Encoder().Append(nil, text, true))
		}
	})
}

// An added token that is looked for in normalised texts is normalised, too, as the library does. A fault of the model
// brings no others about the tokens, which were not read.
func TestAddedTokensAreNormalised(t *testing.T) {
	const file = `{"normalizer": {"type": "BertNormalizer", "lowercase": true},
		"pre_tokenizer": {"type": "BertPreTokenizer"},
		"model": {"type": "WordPiece", "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "co": 1, "##vid": 2}},
		"added_tokens": [{"id": 3, "content": "COVID", "normalized": true}, {"id": 4, "content": "Co"}],
		"post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 0], "cls": ["[CLS]", 0]}}`
	tokenizer := read(t, []byte(file))
	if got := tokenizer.Encoder().Append(nil, "COVID covid Co CO", false); !slices.Equal(got, []int32{3, 3, 4, 1}) {
		t.Errorf("the tokens are %v", got)
	}
	if _, err := Read(strings.NewReader(strings.ReplaceAll(file, `"[UNK]": 0, `, ""))); err == nil ||
		strings.Contains(err.Error(), "BertProcessing") {
		t.Error(err)
	}
}

// A WordPiece that does not say how long a word may be takes words of 100 characters, as the library does.
func TestWordsMayHaveAHundredCharacters(t *testing.T) {
	tokenizer := read(t, []byte(`{"pre_tokenizer": {"type": "BertPreTokenizer"},
		"model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, "##a": 2}}}`))
	for length, want := range map[int]int32{1: 1, 2: 1, 100: 1, 101: 0} {
		got := tokenizer.Encoder().Append(nil, strings.Repeat("a", length), false)
		if got[0] != want || want == 1 && len(got) != length {
			t.Errorf("%d characters are the tokens %v", length, got)
		}
	}
}

// byteLevel is a tokenizer.json with the letters of all bytes as tokens.
func byteLevel(t *testing.T, parts string) *Tokenizer {
	t.Helper()
	ids := map[string]int{}
	for c, letter := range letters {
		ids[string(letter)] = c
	}
	vocabulary, err := json.Marshal(ids)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, []byte(`{`+parts+`,"decoder":{"type":"ByteLevel"},
		"model":{"type":"BPE","merges":[],"vocab":`+string(vocabulary)+`}}`))
}

// Decode writes a replacement character for each byte that no character has, and one for the bytes of a cut character,
// as PyPI's tokenizers do.
func TestBytesThatAreNoCharacter(t *testing.T) {
	tokenizer := byteLevel(t, `"pre_tokenizer":{"type":"ByteLevel"}`)
	for text, want := range map[string]string{
		"\xc9\xdf": "\ufffd\ufffd", "\xa4\xb2\xbd": "\ufffd\ufffd\ufffd", "a\xf0\x9f\x98b": "a\ufffdb",
		"\xe0\xcbw": "\ufffd\ufffdw", "\xed\xa0\x80": "\ufffd\ufffd\ufffd", "é": "é",
	} {
		tokens := make([]int32, len(text))
		for i := range len(text) {
			tokens[i] = int32(text[i])
		}
		if got := tokenizer.Decode(tokens); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

// Classes in a pattern mean what they mean in PyPI's tokenizers: all of Unicode, also inside brackets and in capitals.
func TestClassesOfPatternsAreThoseOfUnicode(t *testing.T) {
	for pattern, want := range map[string][]string{
		`[\\W]`: {"é١a", "-", "Ⓐ", "!", "b"}, `\\W+`: {"é١a", "-", "Ⓐ", "!", "b"},
		`[^\\w]`: {"é١a", "-", "Ⓐ", "!", "b"},
		`[\\D]`:  {"é", "١", "a", "-", "Ⓐ", "!", "b"}, `[\\S]+`: {"é١a-Ⓐ!b"}, `[\\W1]`: {"é١a", "-", "Ⓐ", "!", "b"},
	} {
		tokenizer := byteLevel(t, `"pre_tokenizer":{"type":"Sequence",
			"pretokenizers":[{"type":"Split","behavior":"Isolated",
			"pattern":{"Regex":"`+pattern+`"}},{"type":"ByteLevel","use_regex":false}]}`)
		var got []string
		splitAll(tokenizer.split, "é١a-Ⓐ!b", func(word string) { got = append(got, word) })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", pattern, got, want)
		}
	}
	if m, err := compile(`\W+`); err != nil {
		t.Error(err)
	} else if from, to := m("a½①b"); from != len("a½") || to != len("a½①") {
		t.Errorf("\\W+ matches %d to %d: of these numbers only ½ is part of a word", from, to)
	}
	m, err := compile(llamaPattern)
	if err != nil {
		t.Fatal(err)
	}
	if _, to := m("'ſa"); to != len("'ſ") {
		t.Error("a long s is an s in another case, so it is part of a contraction")
	}
}

// A token that has to stand alone and does not hides the tokens inside it. Blanks that one token takes with it can
// still be a token of their own. Both is what PyPI's tokenizers do.
func TestAddedTokensThatOverlap(t *testing.T) {
	tokenizer := byteLevel(t, `"pre_tokenizer":{"type":"ByteLevel"},"added_tokens":[
		{"id":300,"content":"foob","single_word":true},{"id":301,"content":"foo"},
		{"id":302,"content":"bar","lstrip":true,"rstrip":true},{"id":303,"content":"  "}]`)
	for text, want := range map[string][]int32{
		"foobx": {'f', 'o', 'o', 'b', 'x'}, "foob": {300}, "foox": {301, 'x'}, "bar  foo": {302, 303, 301},
		"  bar": {303, 302}, " bar x": {302, 'x'},
	} {
		if got := tokenizer.Encoder().Append(nil, text, true); !slices.Equal(got, want) {
			t.Errorf("%q: %v, not %v", text, got, want)
		}
	}
}
