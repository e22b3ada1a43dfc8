package text

import (
	"container/heap"
	"strings"
)

// pair is two tokens that stand beside each other.
type pair struct{ left, right int32 }

// merge is what a pair becomes, and when: lower ranks first.
type merge struct{ rank, token int32 }

// bpe is a byte-level BPE: a word begins as its bytes, and pairs are merged in the order of their ranks.
type bpe struct {
	bytes  [256]int32 // the tokens of single bytes
	merges map[pair]merge
	ids    map[string]int32 // tokens by their bytes
	// wordFirst makes a word that is a token that token, whatever the merges say.
	wordFirst bool
}

func (b *bpe) id(token string) (int32, bool) {
	id, ok := b.ids[token]
	return id, ok
}

// shortWord is the bytes of words that are merged by looking at all pairs again and again, which is faster for them.
const shortWord = 48

func (b *bpe) appendWord(dst []int32, word string) []int32 {
	if b.wordFirst {
		if id, ok := b.ids[word]; ok {
			return append(dst, id)
		}
	}
	from := len(dst)
	for i := range len(word) {
		dst = append(dst, b.bytes[word[i]])
	}
	if len(word) > shortWord {
		return append(dst[:from], b.mergeLong(dst[from:])...)
	}
	return dst[:from+b.mergeShort(dst[from:])]
}

// mergeShort merges in place and returns the number of tokens.
func (b *bpe) mergeShort(word []int32) int {
	for len(word) > 1 {
		at, best := -1, merge{}
		for i := range len(word) - 1 {
			if m, ok := b.merges[pair{word[i], word[i+1]}]; ok && (at < 0 || m.rank < best.rank) {
				at, best = i, m
			}
		}
		if at < 0 {
			break
		}
		word[at] = best.token
		word = append(word[:at+1], word[at+2:]...)
	}
	return len(word)
}

// candidate is a merge at a place of a long word.
type candidate struct {
	merge
	at   int32
	pair pair
}

type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].rank < c[j].rank || c[i].rank == c[j].rank && c[i].at < c[j].at
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) } //nolint:forcetypeassert // heap's interface
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// mergeLong merges in n log n steps, so that a word of a megabyte takes no quadratic time.
func (b *bpe) mergeLong(word []int32) []int32 {
	after, before := make([]int32, len(word)), make([]int32, len(word)) // places of the neighbours
	var waiting candidates
	push := func(at int32) {
		if at < 0 || int(after[at]) >= len(word) {
			return
		}
		p := pair{word[at], word[after[at]]}
		if m, ok := b.merges[p]; ok {
			heap.Push(&waiting, candidate{m, at, p})
		}
	}
	for i := range word {
		after[i], before[i] = int32(i+1), int32(i-1)
	}
	for i := range len(word) {
		push(int32(i))
	}
	const gone = -1
	for waiting.Len() > 0 {
		c := heap.Pop(&waiting).(candidate) //nolint:forcetypeassert // the heap has nothing else
		right := after[c.at]
		if word[c.at] != c.pair.left || int(right) >= len(word) || word[right] != c.pair.right {
			continue // one of them was merged with another meanwhile
		}
		word[c.at], word[right] = c.token, gone
		after[c.at] = after[right]
		if int(after[c.at]) < len(word) {
			before[after[c.at]] = c.at
		}
		push(before[c.at])
		push(c.at)
	}
	out := word[:0]
	for _, token := range word {
		if token != gone {
			out = append(out, token)
		}
	}
	return out
}

// A byte-level tokenizer writes its tokens with a letter for each byte: printable bytes of Latin-1 stand for
// themselves, and the others are numbered from U+0100 on.

// letters are the letters of all bytes.
var letters, byteOf = byteLetters() //nolint:gochecknoglobals // constant tables

func byteLetters() (letters [256]rune, byteOf map[rune]byte) {
	byteOf = map[rune]byte{}
	extra := rune(0x100)
	for c := range letters {
		r := rune(c)
		if !(r >= '!' && r <= '~' || r >= 0xA1 && r <= 0xAC || r >= 0xAE) {
			r = extra
			extra++
		}
		letters[c], byteOf[r] = r, byte(c)
	}
	return letters, byteOf
}

// fromByteLetters returns the bytes of a token, and false if it has other letters.
func fromByteLetters(token string) (string, bool) {
	var out strings.Builder
	for _, r := range token {
		c, ok := byteOf[r]
		if !ok {
			return "", false
		}
		out.WriteByte(c)
	}
	return out.String(), true
}
