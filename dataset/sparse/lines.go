package sparse

import (
	"bufio"
	"bytes"
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

const bufferBytes = 256 << 10

// longestLine is the longest line of a file of rows.
const longestLine = 16 << 20

// lines calls f with every line of the source that is not empty, and its number from 1. The line is good during the
// call alone.
func lines(s dataset.Source, f func(number int, line []byte) error) error {
	in, err := s.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, bufferBytes), longestLine)
	number := 0
	for scan.Scan() {
		number++
		line := bytes.TrimRight(scan.Bytes(), "\r")
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte(byteOrderMark))
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if bytes.IndexByte(line, 0) >= 0 {
			return bad(s, number, zeroByte)
		}
		if err := f(number, line); err != nil {
			return err
		}
	}
	if err := scan.Err(); err != nil {
		return &disdel.Error{
			Kind: disdel.Corrupt, Op: "read " + s.Name, Msg: fmt.Sprintf("after line %d", number), Err: err,
		}
	}
	return nil
}

// byteOrderMark is what some programs begin a text with. It is no part of it: as one of the first name it would make
// that another one.
const byteOrderMark = "\xef\xbb\xbf"

// zeroByte is what is wrong with a line that has one: texts of two bytes a character would be read as names with
// nothing in between, which are names as others.
const zeroByte = "it has a byte of 0, and is no text in UTF-8"

// bad is the error of a line that cannot be read.
func bad(s dataset.Source, line int, format string, args ...any) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read " + s.Name, Msg: fmt.Sprintf("line %d: %s", line, fmt.Sprintf(format, args...)),
	}
}
