package modelstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
)

// WriteRows writes inputs of a network, rows of one length, for an action to read: values one after another,
// little-endian. It returns the file's sha256, as WriteWeights does.
func (s *Store) WriteRows(ctx context.Context, key string, rows [][]float32) (sha string, err error) {
	size := 0
	for _, r := range rows {
		size += 4 * len(r)
	}
	data := make([]byte, 0, size)
	for _, r := range rows {
		for _, v := range r {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
	}
	if err := blobs.WriteAll(ctx, s.bucket, key, data); err != nil {
		return "", blobs.Wrap(err, "write inputs", key)
	}
	sum := sha256.Sum256(data)
	return checksum(sum[:]), nil
}

// Rows are inputs that were read.
type Rows struct {
	data   []byte
	sample int
}

// ReadRows reads rows of so many values. It returns Corrupt if the file's sha256 is not want.
func (s *Store) ReadRows(ctx context.Context, key, want string, sample int) (Rows, error) {
	data, err := blobs.ReadAll(ctx, s.bucket, key)
	if err != nil {
		return Rows{}, blobs.Wrap(err, "read inputs", key)
	}
	sum := sha256.Sum256(data)
	if got := checksum(sum[:]); got != want {
		return Rows{}, &disdel.Error{
			Kind: disdel.Corrupt, Op: "read inputs", Msg: key + " has checksum " + got + ", not " + want, Hint: "ask again",
		}
	}
	return Rows{data, sample}, nil
}

// Len is how many rows there are.
func (r Rows) Len() int { return len(r.data) / 4 / r.sample }

// Append appends the values of the rows from start to end.
func (r Rows) Append(to []float32, start, end int) []float32 {
	for at := 4 * start * r.sample; at < 4*end*r.sample; at += 4 {
		to = append(to, math.Float32frombits(binary.LittleEndian.Uint32(r.data[at:])))
	}
	return to
}
