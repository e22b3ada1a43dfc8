package dense

import (
	"bytes"
	"errors"
	"io"
)

// block is a part of a table's text that ends with a record.
type block struct {
	text []byte
	line int   // that it begins at
	err  error // if its last record does not end; then the block does not count

	countRows bool // line numbers are those of rows: line breaks within cells do not count
}

// blockBytes is the approximate size of a block: large enough to be worth passing on, small enough that its cells,
// which are four times as large, stay in a core's own cache.
const blockBytes = 64 << 10

// cutter cuts a text into blocks.
type cutter struct {
	in   io.Reader
	size int    // approximate size of a block
	rest []byte // that was read beyond the newest block
	line int
	over bool

	countRows bool
}

// newCutter starts to read a text after its byte order mark.
func newCutter(in io.Reader, size int) *cutter {
	c := &cutter{in: in, size: size, line: 1, rest: make([]byte, len(byteOrderMark))}
	n, _ := io.ReadFull(in, c.rest) // an error returns with the next read
	if c.rest = c.rest[:n]; string(c.rest) == byteOrderMark {
		c.rest = c.rest[:0]
	}
	return c
}

// next cuts the next block, in the memory of an earlier one; false: there is none.
func (c *cutter) next(b *block) bool {
	if c.over {
		return false
	}
	*b = block{text: append(b.text[:0], c.rest...), line: c.line, countRows: c.countRows}
	c.rest = c.rest[:0]
	for want := c.size; ; want *= 2 {
		if err := c.fill(b, want); err != nil {
			c.over = true
			if !errors.Is(err, io.EOF) {
				b.err = err
			}
			return len(b.text) > 0 || b.err != nil
		}
		if end := recordsEnd(b.text); end > 0 {
			c.rest = append(c.rest, b.text[end:]...)
			b.text = b.text[:end]
			c.line += b.lines()
			return true
		}
		if len(b.text) >= longestRecord {
			c.over, b.err = true, errLong
			return true
		}
	}
}

// lines is the number of lines of a block that ends with a record, or of its rows.
func (b *block) lines() (n int) {
	if !b.countRows || bytes.IndexByte(b.text, '"') < 0 {
		return bytes.Count(b.text, []byte{'\n'})
	}
	quoted := false
	for _, c := range b.text {
		if c == '"' {
			quoted = !quoted
		} else if c == '\n' && !quoted {
			n++
		}
	}
	return n
}

// fill reads until the block has so many bytes.
func (c *cutter) fill(b *block, want int) error {
	if cap(b.text) < want {
		b.text = append(make([]byte, 0, want), b.text...)
	}
	for len(b.text) < want {
		n, err := c.in.Read(b.text[len(b.text):want])
		b.text = b.text[:len(b.text)+n]
		if err != nil {
			return err
		}
	}
	return nil
}

// recordsEnd is the end of the last complete record of a text that starts with one; 0: there is none. A line ends a
// record if the number of quotes before it is even: quotes come in pairs, and literal ones are doubled. If they do
// not, the reader of the block notices.
func recordsEnd(text []byte) int {
	quotes := bytes.Count(text, []byte{'"'})
	if quotes == 0 {
		return bytes.LastIndexByte(text, '\n') + 1
	}
	for at := len(text); at > 0; at-- {
		switch text[at-1] {
		case '"':
			quotes--
		case '\n':
			if quotes%2 == 0 {
				return at
			}
		}
	}
	return 0
}
