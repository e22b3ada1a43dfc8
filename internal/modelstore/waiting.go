package modelstore

import (
	"context"
	"errors"
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
