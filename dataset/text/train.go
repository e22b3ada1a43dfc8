package text

import (
	"bytes"
	"cmp"
	"container/heap"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// TrainBPE learns a byte-level BPE of at most size tokens from texts: special tokens first, then the 256 bytes, then
// the most frequent pairs, merged one after the other. Equal texts give equal tokens. It returns fewer tokens if no
// pair is left. It returns Invalid if size has no room for the bytes and the special tokens.
func TrainBPE(texts iter.Seq[string], size int, special ...string) (*Tokenizer, error) {
	if minimum := 256 + len(special); size < minimum {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "train a tokenizer",
			Msg:  fmt.Sprintf("%d tokens are fewer than the least, %d", size, minimum),
			Hint: fmt.Sprintf("ask for %d or more: every byte needs a token", minimum),
		}
	}
	t := newTrainer(len(special))
	t.count(texts)
	t.merge(size)
	return Read(bytes.NewReader(t.file(special)))
}

// trainer learns merges.
type trainer struct {
	first  int32    // the token of the first byte
	tokens []string // with byte letters, without special tokens
	ids    map[string]int32
	merges [][2]string
	words  []countedWord
	pairs  map[pair]int64            // how often they stand in texts
	where  map[pair]map[int]struct{} // words that have, or had, them
}

type countedWord struct {
	tokens []int32
	count  int64
}

// newTrainer numbers the bytes in the order of their letters, as the library does.
func newTrainer(special int) *trainer {
	t := &trainer{
		first: int32(special), ids: map[string]int32{},
		pairs: map[pair]int64{}, where: map[pair]map[int]struct{}{},
	}
	ordered := slices.Clone(letters[:])
	slices.Sort(ordered)
	for _, r := range ordered {
		t.add(string(r))
	}
	return t
}

func (t *trainer) add(token string) int32 {
	if id, ok := t.ids[token]; ok {
		return id
	}
	id := t.first + int32(len(t.tokens))
	t.ids[token] = id
	t.tokens = append(t.tokens, token)
	return id
}

func (t *trainer) text(id int32) string { return t.tokens[id-t.first] }

// count counts the words of texts and their pairs.
func (t *trainer) count(texts iter.Seq[string]) {
	counts := map[string]int64{}
	split := []splitter{splitBy(starting(gpt2), isolated, false)}
	for one := range texts {
		splitAll(split, one, func(word string) {
			if _, ok := counts[word]; !ok {
				word = strings.Clone(word)
			}
			counts[word]++
		})
	}
	for word, n := range counts {
		w := countedWord{make([]int32, len(word)), n}
		for i := range len(word) {
			w.tokens[i] = t.ids[string(letters[word[i]])]
		}
		t.words = append(t.words, w)
	}
	for i, w := range t.words {
		for k := range len(w.tokens) - 1 {
			t.change(pair{w.tokens[k], w.tokens[k+1]}, i, w.count)
		}
	}
}

// change adds to the count of a pair of a word.
func (t *trainer) change(p pair, word int, by int64) {
	t.pairs[p] += by
	if by > 0 {
		if t.where[p] == nil {
			t.where[p] = map[int]struct{}{}
		}
		t.where[p][word] = struct{}{}
	}
}

// frequent is a pair and the count that it had when it was noted.
type frequent struct {
	pair
	count int64
}

type frequents []frequent

func (f frequents) Len() int      { return len(f) }
func (f frequents) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f frequents) Less(i, j int) bool {
	a, b := f[i], f[j]
	return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.left, b.left), cmp.Compare(a.right, b.right)) < 0
}
func (f *frequents) Push(x any) { *f = append(*f, x.(frequent)) } //nolint:forcetypeassert // heap's interface
func (f *frequents) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}

// merge merges the most frequent pair until there are enough tokens. Of equally frequent pairs that of the lower
// tokens is first.
func (t *trainer) merge(size int) {
	waiting := make(frequents, 0, len(t.pairs))
	for p, n := range t.pairs {
		waiting = append(waiting, frequent{p, n})
	}
	heap.Init(&waiting)
	for int(t.first)+len(t.tokens) < size && waiting.Len() > 0 {
		top := heap.Pop(&waiting).(frequent) //nolint:forcetypeassert // the heap has nothing else
		if now := t.pairs[top.pair]; now != top.count {
			if now > 0 {
				heap.Push(&waiting, frequent{top.pair, now})
			}
			continue
		}
		if top.count < 1 {
			break
		}
		left, right := t.text(top.left), t.text(top.right)
		t.merges = append(t.merges, [2]string{left, right})
		token := t.add(left + right)
		fresh := map[pair]struct{}{}
		for word := range t.where[top.pair] {
			t.mergeIn(word, top.pair, token, fresh)
		}
		delete(t.where, top.pair)
		delete(t.pairs, top.pair)
		for p := range fresh {
			if n := t.pairs[p]; n > 0 {
				heap.Push(&waiting, frequent{p, n})
			}
		}
	}
}

// mergeIn merges a pair in one word, and notes the pairs that come into being.
func (t *trainer) mergeIn(word int, p pair, token int32, fresh map[pair]struct{}) {
	w := &t.words[word]
	out := w.tokens[:0:0]
	for i := 0; i < len(w.tokens); i++ {
		if i+1 == len(w.tokens) || w.tokens[i] != p.left || w.tokens[i+1] != p.right {
			out = append(out, w.tokens[i])
			continue
		}
		if n := len(out); n > 0 {
			t.change(pair{out[n-1], p.left}, word, -w.count)
			t.change(pair{out[n-1], token}, word, w.count)
			fresh[pair{out[n-1], token}] = struct{}{}
		}
		if i+2 < len(w.tokens) {
			after := w.tokens[i+2]
			t.change(pair{p.right, after}, word, -w.count)
			t.change(pair{token, after}, word, w.count)
			fresh[pair{token, after}] = struct{}{}
		}
		out = append(out, token)
		i++
	}
	w.tokens = out
}

// file writes what was learned as tokenizer.json.
func (t *trainer) file(special []string) []byte {
	type object = map[string]any
	added := make([]addedToken, len(special))
	vocabulary := make(map[string]int32, len(t.ids)+len(special))
	for i, token := range special {
		added[i] = addedToken{ID: int32(i), Content: token, Special: true}
		vocabulary[token] = int32(i)
	}
	maps.Copy(vocabulary, t.ids)
	level := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	merges := t.merges
	if merges == nil {
		merges = [][2]string{}
	}
	data, err := json.Marshal(object{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": nil,
		"pre_tokenizer": level, "post_processor": nil, "decoder": level,
		"model": object{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocabulary, "merges": merges,
		},
	})
	if err != nil {
		panic(err) // maps, texts and numbers always have a JSON form
	}
	return data
}
