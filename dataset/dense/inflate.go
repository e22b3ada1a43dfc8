package dense

import (
	"encoding/binary"
	"math/bits"
)

// inflater unpacks DEFLATE (RFC 1951) from memory to memory, where the size of what comes out is known: it keeps no
// window and never waits for input, and so takes half the time of compress/flate. It says nothing of what is wrong.
type inflater struct {
	literals, distances, lengths huffman

	in   []byte
	at   int    // of in, what is read next
	bits uint64 // read and not yet used, the next one lowest
	n    uint   // how many
	out  []byte
	done int // bytes of out
}

// spare is how many bytes behind its end an output needs: copies are made eight bytes at a time.
const spare = 8

// inflate fills out, which has spare bytes more of capacity, and says where in goes on behind what it has unpacked;
// false where anything is wrong, or where there is more or less than what fits.
func (z *inflater) inflate(in, out []byte) (rest []byte, ok bool) {
	z.in, z.at, z.bits, z.n = in, 0, 0, 0
	z.out, z.done = out[:len(out)+spare], 0
	defer func() { z.in, z.out = nil, nil }()
	for last := false; !last; {
		z.refill()
		last = z.take(1) == 1
		switch z.take(2) {
		case 0:
			ok = z.stored()
		case 1:
			ok = z.fixed() && z.block()
		case 2:
			ok = z.dynamic() && z.block()
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	used := z.at - int(z.n/8) // whole bytes go back
	if z.done != len(out) || used > len(in) {
		return nil, false
	}
	return in[used:], true
}

// refill makes 56 bits or more be there. Behind the input there are zeros: at counts them, and who has used one fails.
func (z *inflater) refill() {
	if z.at+8 <= len(z.in) {
		z.bits |= binary.LittleEndian.Uint64(z.in[z.at:]) << (z.n & 63)
		z.at += int(63-z.n) / 8
		z.n |= 56
		return
	}
	for ; z.n < 56; z.n += 8 {
		if z.at < len(z.in) {
			z.bits |= uint64(z.in[z.at]) << (z.n & 63)
		}
		z.at++
	}
}

// take uses so many bits.
func (z *inflater) take(n uint) uint {
	v := uint(z.bits & (1<<n - 1))
	z.bits >>= n
	z.n -= n
	return v
}

// stored copies a block that is not packed.
func (z *inflater) stored() bool {
	z.take(z.n % 8)
	z.refill()
	size := z.take(16)
	if z.take(16) != size^0xFFFF {
		return false
	}
	z.at -= int(z.n / 8)
	z.bits, z.n = 0, 0
	if z.at+int(size) > len(z.in) || z.done+int(size) > len(z.out)-spare {
		return false
	}
	copy(z.out[z.done:], z.in[z.at:][:size])
	z.at += int(size)
	z.done += int(size)
	return true
}

// What symbols mean: literals are below endOfBlock, and lengths above.
const (
	endOfBlock    = 256
	mostLiterals  = 288
	mostDistances = 32
)

// fixed makes the codes those of a block that brings none.
func (z *inflater) fixed() bool {
	var lengths [mostLiterals]byte
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		default:
			lengths[i] = 8
		}
	}
	var distances [mostDistances]byte
	for i := range distances {
		distances[i] = 5
	}
	return z.literals.build(lengths[:], literalEntry) && z.distances.build(distances[:], distanceEntry)
}

// lengthOrder is the order in which the lengths of the code of lengths are written.
var lengthOrder = [...]byte{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic reads the codes of a block.
func (z *inflater) dynamic() bool {
	literals, distances, lengths := int(z.take(5))+257, int(z.take(5))+1, int(z.take(4))+4
	if literals > 286 || distances > 30 {
		return false
	}
	var of [len(lengthOrder)]byte
	for _, symbol := range lengthOrder[:lengths] {
		z.refill()
		of[symbol] = byte(z.take(3))
	}
	if !z.lengths.build(of[:], func(symbol int) uint32 { return uint32(symbol)<<16 | isLiteral }) {
		return false
	}
	var all [286 + 30]byte
	for i := 0; i < literals+distances; {
		z.refill()
		e := z.lengths.at(z.bits)
		if e == 0 {
			return false
		}
		z.take(uint(e & 15))
		length, times := byte(e>>16), 1
		switch length {
		case 16: // the one before again
			if i == 0 {
				return false
			}
			length, times = all[i-1], 3+int(z.take(2))
		case 17:
			length, times = 0, 3+int(z.take(3))
		case 18:
			length, times = 0, 11+int(z.take(7))
		}
		if i+times > literals+distances {
			return false
		}
		for ; times > 0; times-- {
			all[i] = length
			i++
		}
	}
	return all[endOfBlock] > 0 && z.literals.build(all[:literals], literalEntry) &&
		z.distances.build(all[literals:literals+distances], distanceEntry)
}

// An entry of a table says what a symbol means: the bits of its code, how many bits more there are, what it is, and a
// value that those bits are added to. 0 is no symbol.
const (
	isLiteral = 1 << 13
	isEnd     = 1 << 14
	isLonger  = 1 << 15 // than the table is wide: the code has to be looked for
)

func literalEntry(symbol int) uint32 {
	switch {
	case symbol < endOfBlock:
		return uint32(symbol)<<16 | isLiteral
	case symbol == endOfBlock:
		return isEnd
	case symbol < 265:
		return uint32(symbol-254) << 16
	case symbol < 285:
		extra := uint32(symbol-261) / 4
		return (3+(4+uint32(symbol-265)%4)<<extra)<<16 | extra<<8
	case symbol == 285:
		return 258 << 16
	default:
		return 0
	}
}

func distanceEntry(symbol int) uint32 {
	switch {
	case symbol < 4:
		return uint32(symbol+1) << 16
	case symbol < 30:
		extra := uint32(symbol-2) / 2
		return (1+(2+uint32(symbol)%2)<<extra)<<16 | extra<<8
	default:
		return 0
	}
}

// tableBits is how wide tables are: few codes are longer.
const tableBits = 10

// longestCode is the longest there is.
const longestCode = 15

// huffman is a code.
type huffman struct {
	table   [1 << tableBits]uint32 // what the symbol is that the next bits begin with
	entries [mostLiterals]uint32   // of all symbols, in the order of their codes
	limit   [longestCode + 1]uint32
	offset  [longestCode + 1]int // of entries, for codes of a length
}

// build makes the code that has the given lengths, 0 for a symbol that does not occur. It refuses a code that stands
// for two symbols, and one that leaves bits without a meaning; but of a single symbol, and of none.
func (h *huffman) build(lengths []byte, entry func(symbol int) uint32) bool {
	var count [longestCode + 1]int
	for _, l := range lengths {
		count[l]++
	}
	symbols := len(lengths) - count[0]
	count[0] = 0
	var next, place [longestCode + 1]int // the next code of a length, and the place of its entry
	code, before := 0, 0
	for l := 1; l <= longestCode; l++ {
		code = (code + count[l-1]) << 1
		next[l], place[l] = code, before
		h.offset[l] = before - code
		before += count[l]
		h.limit[l] = uint32(code+count[l]) << (16 - l)
	}
	switch full := next[longestCode] + count[longestCode]; {
	case full > 1<<longestCode:
		return false
	case full < 1<<longestCode && (symbols > 1 || symbols == 1 && count[1] == 0):
		return false
	case full < 1<<longestCode:
		h.table = [1 << tableBits]uint32{}
	}
	for symbol, length := range lengths {
		if length == 0 {
			continue
		}
		l := int(length)
		e := entry(symbol)
		if e != 0 {
			e |= uint32(l)
		}
		h.entries[place[l]] = e
		first := int(bits.Reverse16(uint16(next[l])) >> (16 - l))
		place[l]++
		next[l]++
		if l > tableBits {
			h.table[first&(1<<tableBits-1)] = isLonger
			continue
		}
		for i := first; i < len(h.table); i += 1 << l {
			h.table[i] = e
		}
	}
	return true
}

// at is the entry of the symbol that bits begin with.
func (h *huffman) at(b uint64) uint32 {
	e := h.table[b&(1<<tableBits-1)]
	if e&isLonger != 0 {
		return h.longer(b)
	}
	return e
}

// longer is that of a code which is longer than the table is wide.
func (h *huffman) longer(b uint64) uint32 {
	code := uint32(bits.Reverse16(uint16(b)))
	for l := tableBits + 1; l <= longestCode; l++ {
		if code < h.limit[l] {
			return h.entries[h.offset[l]+int(code>>(16-l))]
		}
	}
	return 0
}

// mostRun is how many literals, of 15 bits at most, are looked for in the bits that are there.
const mostRun = 3

// block unpacks what a block's codes stand for. What it needs of the inflater it keeps beside it: its fields would be
// written with each symbol.
func (z *inflater) block() bool {
	in, out, end := z.in, z.out, len(z.out)-spare
	at, held, n, done := z.at, z.bits, z.n, z.done
	for {
		if at+8 <= len(in) {
			held |= binary.LittleEndian.Uint64(in[at:]) << (n & 63)
			at += int(63-n) / 8
			n |= 56
		} else {
			if at > len(in)+8 { // zeros have been used, of which there are none
				return false
			}
			z.at, z.bits, z.n = at, held, n
			z.refill()
			at, held, n = z.at, z.bits, z.n
		}
		e, run := z.literals.at(held), 0
		for ; e&isLiteral != 0 && run < mostRun; run++ {
			if done == end {
				return false
			}
			out[done] = byte(e >> 16)
			done++
			held >>= e & 15
			n -= uint(e & 15)
			e = z.literals.at(held)
		}
		if run > 0 { // of the next code not all may be there
			continue
		}
		held >>= e & 15
		n -= uint(e & 15)
		if e>>16 == 0 { // the end, or no symbol
			z.at, z.bits, z.n, z.done = at, held, n, done
			return e&isEnd != 0
		}
		extra := e >> 8 & 15
		length := int(e>>16) + int(held&(1<<extra-1))
		held >>= extra
		n -= uint(extra)
		d := z.distances.at(held) // a length takes 20 bits, and a distance 28
		held >>= d & 15
		n -= uint(d & 15)
		extra = d >> 8 & 15
		distance := int(d>>16) + int(held&(1<<extra-1))
		held >>= extra
		n -= uint(extra)
		if d == 0 || distance > done || done+length > end {
			return false
		}
		repeat(out, done, distance, length)
		done += length
	}
}

// repeat writes again what is so far before a place: eight bytes at a time, of which the last ones may be beyond it.
func repeat(out []byte, at, distance, length int) {
	from, end := at-distance, at+length
	if distance < 8 {
		for ; at < end; at++ {
			out[at] = out[from]
			from++
		}
		return
	}
	for ; at < end; at += 8 {
		binary.LittleEndian.PutUint64(out[at:], binary.LittleEndian.Uint64(out[from:]))
		from += 8
	}
}
