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

// mostWho bounds what a file says of who waits.
const mostWho = 4 << 10

// Waiting is that somebody waits for what lies beside the models under a name.
type Waiting struct {
	Name  string
	Who   []byte // as he has said
	Since time.Time
}

// Wait notes that somebody waits, before anything of his lies beside the models.
func (s *Store) Wait(ctx context.Context, name string, who []byte) error {
	key := path.Join(waitingFolder, name)
	return blobs.Wrap(blobs.WriteAll(ctx, s.bucket, key, who), "note who waits", key)
}

// EndWait takes the note away, once nothing of his lies there any more.
func (s *Store) EndWait(ctx context.Context, name string) error {
	return s.takeAway(ctx, "end waiting", path.Join(waitingFolder, name))
}

// Waiting is all who wait, but for those that the caller knows by name: of hundreds who ask at once each looks for all.
// Of notes that cannot be read it says in its error, and goes on.
func (s *Store) Waiting(ctx context.Context, known func(name string) bool) (all []Waiting, unread error) {
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
		all = append(all, Waiting{Name: name, Who: who, Since: o.Written})
	}
	return all, unread
}

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
