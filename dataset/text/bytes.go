package text

import "strings"

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
