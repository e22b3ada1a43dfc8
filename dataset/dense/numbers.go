package dense

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// number reads a number that a data set can store.
func number(text string) (float64, bool) {
	if v, ok := decimal(text); ok {
		return v, true
	}
	if text == "" || text[0] > '9' || strings.ContainsAny(text, "_xXpP") { // Go's own ways to write numbers
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && math.Abs(v) <= math.MaxFloat32
}

// written reads a number whose decimals have a comma or a point; the other one may separate thousands, and so may
// spaces and apostrophes. Without decimal it is [number].
func written(text, decimal string) (float64, bool) {
	if decimal == "" {
		return number(text)
	}
	whole, behind, hasBehind := strings.Cut(text, decimal)
	sign := ""
	if whole != "" && (whole[0] == '-' || whole[0] == '+') {
		sign, whole = whole[:1], whole[1:]
	}
	group := ","
	if decimal == group {
		group = "."
	}
	for _, other := range []string{" ", "\u00a0", "\u202f", "'", "\u2019"} {
		if strings.Contains(whole, other) {
			group = other
		}
	}
	parts := strings.Split(whole, group)
	const digits = 3 // of a group
	for i, part := range parts {
		if i > 0 && (len(part) != digits || len(parts[0]) == 0 || len(parts[0]) > digits) ||
			len(parts) > 1 && strings.Trim(part, "0123456789") != "" {
			return 0, false
		}
	}
	if text = sign + strings.Join(parts, ""); hasBehind {
		text += "." + behind
	}
	return number(text)
}

// tens are the powers of ten that decimal divides by.
var tens = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// decimal reads the common form of numbers: without an exponent, and of at most 15 digits. ok is false for all
// others.
func decimal(text string) (v float64, ok bool) {
	v, end, ok := scan(text)
	return v, ok && end == len(text)
}

// scan reads such a number at the start of a text, and returns where its characters end. Its digits and the power of
// ten are exact, and their quotient is the nearest number (Clinger 1990).
func scan(text string) (v float64, end int, ok bool) {
	first, point, integer := 0, -1, uint64(0)
	if text != "" && (text[0] == '-' || text[0] == '+') {
		first = 1
	}
	for end = first; end < len(text); end++ {
		if digit := text[end] - '0'; digit <= 9 {
			integer = 10*integer + uint64(digit)
			continue
		}
		if text[end] != '.' || point >= 0 {
			break
		}
		point = end
	}
	digits, behind := end-first, 0
	if point >= 0 {
		digits--
		behind = end - 1 - point
	}
	if digits <= 0 || digits >= len(tens) {
		return 0, end, false
	}
	v = float64(integer) / tens[behind]
	if text[0] == '-' {
		v = -v
	}
	return v, end, true
}

// looked is how many characters scanAt reads: a sign, 8 digits, a point, twice 8 digits.
const looked = 1 + 8 + 1 + 16

// scanAt is scan at a place of a text, up to over, where there is no digit and no point. It reads eight characters at
// once: the end of a number differs each time, and a processor's wrong branch prediction takes longer than all the
// rest.
func scanAt(text string, at, over int) (v float64, end int, ok bool) {
	if len(text)-at < looked {
		v, end, ok = scan(text[at:over])
		return v, at + end, ok
	}
	// The sign needs no branch either: the difference to '+', which is two below '-', is 0 without bit 1 for both.
	const highest = 1 << 63
	first := at + int((uint64((text[at]-'+')&^2)-1)>>63)
	sign := (uint64(text[at]^'-') - 1) & highest
	integer, digits := uint64(text[first]-'0'), 1
	if integer > 9 || text[first+1] != '.' { // most numbers have one digit before the point
		integer, digits = leading(text[first:])
	}
	end = first + digits
	behind := 0
	if digits < 8 && text[end] == '.' {
		var part uint64
		end++
		if part, behind = leading(text[end:]); behind == 8 {
			more, n := leading(text[end+8:])
			part, behind = part*wholeTens[n]+more, behind+n
		}
		end += behind
		digits += behind
		if digits < len(tens) { // else it would overflow
			integer = integer*wholeTens[behind] + part
		}
	}
	switch {
	case behind == 16, behind == 0 && digits == 8, digits >= len(tens): // it may go on
		v, end, ok = scan(text[at:over])
		return v, at + end, ok
	case digits == 0:
		return 0, end, false
	}
	v = float64(int64(integer)) / tens[behind]
	return math.Float64frombits(math.Float64bits(v) | sign), end, true
}

// wholeTens are the powers of ten that whole numbers are multiplied by.
var wholeTens = [...]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
}

// leading reads the digits at the start of a text of at least 8 characters: their number, and how many of the first 8
// they are. It adds pairs of digits, pairs of these and pairs of those (Lemire 2018, Quickly parsing eight digits).
func leading(text string) (v uint64, digits int) {
	text = text[:8]
	w := uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
		uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
	w ^= 0x3030303030303030 // digits are now 0 to 9, and all others larger: their highest bits show where the first one is
	others := (w + 0x7676767676767676 | w) & 0x8080808080808080
	digits = bits.TrailingZeros64(others) / 8
	w <<= 64 - 8*digits // 0 where there are none
	w = w*10 + w>>8
	const pairs = 0x000000FF000000FF
	return ((w&pairs)*(100+1000000<<32) + (w>>16&pairs)*(1+10000<<32)) >> 32, digits
}
