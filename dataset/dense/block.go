package dense

import (
	"bytes"
	"errors"
	"io"
)

// block is a part of a table's text that ends where a record does.
type block struct {
	text []byte
	line int   // that it begins at
	err  error // what there is instead of the end of its last record; nothing of the block counts then
}

// blockBytes is about how long a block is: long enough to be worth handing on, short enough that its cells, which are
// four times as large, stay in a core's own memory.
const blockBytes = 64 << 10

// cutter cuts a text into blocks.
type cutter struct {
	in   io.Reader
	size int    // of a block, about
	rest []byte // that was read beyond the newest block
	line int
	over bool
}

// newCutter begins to read a text; a byte order mark is none of it.
func newCutter(in io.Reader, size int) *cutter {
	c := &cutter{in: in, size: size, line: 1, rest: make([]byte, len(byteOrderMark))}
	n, _ := io.ReadFull(in, c.rest) // what is wrong comes again with the next read
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
	*b = block{text: append(b.text[:0], c.rest...), line: c.line}
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
			c.line += bytes.Count(b.text, []byte{'\n'})
			return true
		}
		if len(b.text) >= longestRecord {
			c.over, b.err = true, errLong
			return true
		}
	}
}

// fill reads on until the block has so many bytes.
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

// recordsEnd is where the last whole record of a text ends that begins with one; 0: there is none. A line ends a record
// where the quotes before it are even in number: who closes what he opens has as many of the one as of the other, and
// doubles those that are meant. Where somebody does not, the reader of the block finds out.
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
