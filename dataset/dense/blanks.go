package dense

import (
	"bufio"
	"io"

	"github.com/disdel/disdel/dataset"
)

// Blanks is the separator of tables whose columns have spaces, tabs or several of both between them. It is no
// character.
const Blanks rune = -1

// BlanksAsTabs returns a text with one tab for each run of spaces and tabs. It leaves texts in quotes as they are, and
// omits the blanks at both ends of lines.
func BlanksAsTabs(text []byte) []byte {
	return new(blanks).asTabs(make([]byte, 0, len(text)), text)
}

// blanks reads a table with one tab for each run of blanks.
type blanks struct {
	in                  io.Reader
	quoted, run, inLine bool
}

// asTabs appends what comes of a part of the text.
func (b *blanks) asTabs(to, text []byte) []byte {
	for _, c := range text {
		switch {
		case !b.quoted && (c == ' ' || c == '\t' || c == '\r'):
			b.run = true
			continue
		case !b.quoted && c == '\n':
			b.run, b.inLine = false, false
			to = append(to, c)
			continue
		case c == '"':
			b.quoted = !b.quoted
		}
		if b.run && b.inLine {
			to = append(to, '\t')
		}
		b.run, b.inLine = false, true
		to = append(to, c)
	}
	return to
}

// Read reads into p after its first byte, for a tab that the text before ends with. It needs two bytes.
func (b *blanks) Read(p []byte) (int, error) {
	for {
		n, err := b.in.Read(p[1:])
		if out := b.asTabs(p[:0], p[1:1+n]); len(out) > 0 || err != nil {
			return len(out), err
		}
	}
}

// blanksSource is a source of a table with one tab for each run of blanks.
func blanksSource(from dataset.Source) dataset.Source {
	open := from.Open
	from.Open = func() (io.ReadCloser, error) {
		file, err := open()
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{bufio.NewReaderSize(&blanks{in: file}, bufferBytes), file}, nil
	}
	return from
}

// separateBlanks lets the file, and that of held-out rows, be read with tabs instead of runs of blanks.
func (t *table) separateBlanks() {
	t.blanks, t.Separator, t.Source = true, '\t', blanksSource(t.Source)
	if t.Test != nil {
		test := blanksSource(*t.Test)
		t.Test = &test
	}
}
