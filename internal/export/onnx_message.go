package export

import (
	"encoding/binary"
	"io"
	"math"
)

// message is a message of protobuf in pieces, so that what is large in it is where it was.
type message struct {
	pieces [][]byte
	open   []byte // the last piece, as long as something may be added to it
	closed int    // bytes of the pieces
}

// The kinds of fields, as protobuf's encoding has them.
const (
	kindVarint = 0
	kindBytes  = 2
	kindFixed4 = 5
)

func (m *message) size() int { return m.closed + len(m.open) }

func (m *message) tag(field, kind int) {
	m.open = binary.AppendUvarint(m.open, uint64(field)<<3|uint64(kind))
}

// integer adds a number; those below 0 take ten bytes.
func (m *message) integer(field int, v int64) {
	m.tag(field, kindVarint)
	m.open = binary.AppendUvarint(m.open, uint64(v))
}

func (m *message) float(field int, v float32) {
	m.tag(field, kindFixed4)
	m.open = binary.LittleEndian.AppendUint32(m.open, math.Float32bits(v))
}

func (m *message) text(field int, v string) {
	m.tag(field, kindBytes)
	m.open = append(binary.AppendUvarint(m.open, uint64(len(v))), v...)
}

// large adds bytes that are not to change until the message is written.
func (m *message) large(field int, data []byte) {
	m.tag(field, kindBytes)
	m.open = binary.AppendUvarint(m.open, uint64(len(data)))
	m.piece(data)
}

func (m *message) piece(data []byte) {
	m.pieces = append(m.pieces, m.open, data)
	m.closed += len(m.open) + len(data)
	m.open = nil
}

// part adds a message, which is not to be added to any more.
func (m *message) part(field int, v *message) {
	m.tag(field, kindBytes)
	m.open = binary.AppendUvarint(m.open, uint64(v.size()))
	for _, p := range v.pieces {
		m.piece(p)
	}
	m.open = append(m.open, v.open...)
}

// write writes the message.
func (m *message) write(w io.Writer) error {
	for _, p := range append(m.pieces, m.open) {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}
