package modelstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"path"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
)

// waitingFolder has a file for each question whose inputs or answers lie beside the models.
const waitingFolder = "waiting"

// mostWho limits the size of such a file.
const mostWho = 4 << 10

// PendingQuestion says who waits for the answers under a name.
type PendingQuestion struct {
	Name  string
	Who   []byte // as he has said
	Since time.Time
}

// AddQuestion notes who waits, before inputs or answers are written.
func (s *Store) AddQuestion(ctx context.Context, name string, who []byte) error {
	key := path.Join(waitingFolder, name)
	return blobs.Wrap(blobs.WriteAll(ctx, s.bucket, key, who), "note who waits", key)
}

// RemoveQuestion deletes the note, after inputs and answers are gone.
func (s *Store) RemoveQuestion(ctx context.Context, name string) error {
	return s.deleteIfThere(ctx, "end waiting", path.Join(waitingFolder, name))
}

// PendingQuestions are all notes except those that the caller knows by name: each of hundreds of askers lists them.
// unread joins the errors of notes that cannot be read.
func (s *Store) PendingQuestions(ctx context.Context, known func(name string) bool) (all []PendingQuestion,
	unread error,
) {
	for o, err := range s.bucket.List(ctx, waitingFolder+"/") {
		if err != nil {
			return all, errors.Join(unread, blobs.Wrap(err, "see who waits", waitingFolder))
		}
		name := path.Base(o.Key)
		if known(name) {
			continue
		}
		who, err := blobs.ReadUpTo(ctx, s.bucket, o.Key, mostWho)
		if err = blobs.Wrap(err, "see who waits", o.Key); disdel.KindOf(err) == disdel.NotFound {
			continue // he is done
		}
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		all = append(all, PendingQuestion{Name: name, Who: who, Since: o.Written})
	}
	return all, unread
}

// WriteRows writes input rows of one length for an action: little-endian values, row after row. It returns the sha256
// of the file, as WriteWeights does.
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

// Rows are input rows that were read.
type Rows struct {
	data   []byte
	sample int
}

// ReadRows reads rows of sample values. It returns Corrupt if the sha256 of the file is not want.
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

// Len is the number of rows.
func (r Rows) Len() int { return len(r.data) / 4 / r.sample }

// Append appends the values of the rows from start to end.
func (r Rows) Append(to []float32, start, end int) []float32 {
	for at := 4 * start * r.sample; at < 4*end*r.sample; at += 4 {
		to = append(to, math.Float32frombits(binary.LittleEndian.Uint32(r.data[at:])))
	}
	return to
}
