package couchlite

import (
	"encoding/binary"
	"encoding/json"

	"github.com/disdel/disdel/internal/boltcheck"
)

// stored is a document on disk: a sealed value of a version, whether the document was deleted, its sequence number, its
// revision and its body. Versions before this one stored it as JSON and without a seal, in the fields' names below.
type stored struct {
	Rev     string          `json:"r"`
	Seq     uint64          `json:"s"`
	Deleted bool            `json:"d,omitempty"`
	Body    json.RawMessage `json:"b"` // without _id, _rev and _deleted
}

const storedVersion = 1

// value is what is written for a document.
func (d stored) value(id string) []byte {
	out := make([]byte, 0, 64+len(d.Body))
	out = append(out, storedVersion, byte(toInt(d.Deleted)))
	out = binary.AppendUvarint(out, d.Seq)
	out = binary.AppendUvarint(out, uint64(len(d.Rev)))
	out = append(out, d.Rev...)
	return boltcheck.Seal([]byte(id), append(out, d.Body...))
}

// parse reads what value wrote, or an earlier version. The body shares memory with it. It tells whether the document
// was sealed.
func parse(key, value []byte) (d stored, was bool, err error) {
	data, was, err := boltcheck.Open(key, value)
	if err != nil {
		return d, was, err
	}
	if !was {
		if err := json.Unmarshal(data, &d); err != nil || d.Rev == "" {
			return d, false, damaged("document %q is no document", key)
		}
		return d, false, nil
	}
	if len(data) < 2 || data[0] != storedVersion {
		return d, true, damaged("document %q was written by another version of this program", key)
	}
	d.Deleted, data = data[1] != 0, data[2:]
	seq, n := binary.Uvarint(data)
	if n <= 0 {
		return d, true, damaged("document %q is cut short", key)
	}
	size, m := binary.Uvarint(data[n:])
	if m <= 0 || size > uint64(len(data)-n-m) {
		return d, true, damaged("document %q is cut short", key)
	}
	data = data[n+m:]
	d.Seq, d.Rev, d.Body = seq, string(data[:size]), data[size:]
	return d, true, nil
}

// text is the document as JSON, with its id and revision in it.
func (d stored) text(id string) []byte {
	out := append([]byte(`{"_id":`), quoted(id)...)
	out = append(append(out, `,"_rev":`...), quoted(d.Rev)...)
	if len(d.Body) <= 2 {
		return append(out, '}')
	}
	return append(append(out, ','), d.Body[1:]...)
}

// whole is the document with all that is in it.
func (d stored) whole(id string) (document, error) {
	out := document{}
	if err := decodeNumbers(d.Body, &out); err != nil {
		return nil, damaged("document %q: %v", id, err)
	}
	out["_id"], out["_rev"] = id, d.Rev
	return out, nil
}
