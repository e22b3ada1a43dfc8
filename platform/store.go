package platform

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/disdel/disdel"
)

// store keeps a platform's state in one file: entities by namespace/path, code apart from its action (a list must not
// read code), and activations twice: whole by id, and as the summaries of lists by start time.
type store struct {
	db      *bbolt.DB
	kept    int // activations of a namespace
	filings filings

	mu    sync.Mutex
	cache map[string]*storedAction
}

type bucket string

// The buckets.
const (
	packages bucket = "packages"
	actions  bucket = "actions"
	codes    bucket = "codes"
	triggers bucket = "triggers"
	rules    bucket = "rules"
	records  bucket = "records"  // ns 0 id -> activation
	timeline bucket = "timeline" // ns 0 start id -> summary
	counts   bucket = "counts"   // ns -> activations kept
)

var allBuckets = [...]bucket{packages, actions, codes, triggers, rules, records, timeline, counts}

// tx is a transaction; its methods return what is stored, not to be changed.
type tx struct{ *bbolt.Tx }

func (t tx) of(b bucket) *bbolt.Bucket { return t.Bucket([]byte(b)) }

// openStore opens the file in dir. One that does not outlive the platform is not synced: nobody reads it after a crash.
func openStore(dir string, durable bool, kept int) (*store, error) {
	fail := func(err error, hint string) error {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "open the platform's state", Err: err, Hint: hint}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fail(err, "choose a data folder that can be written")
	}
	db, err := bbolt.Open(filepath.Join(dir, "platform.db"), 0o600, &bbolt.Options{Timeout: time.Second, NoSync: !durable, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fail(err, "another platform has this data folder open: end it, or choose another folder")
	}
	if err != nil {
		return nil, fail(err, "choose a data folder that can be written")
	}
	s := &store{db: db, kept: kept, cache: map[string]*storedAction{}}
	err = s.update(func(t tx) error {
		for _, b := range allBuckets {
			if _, err := t.CreateBucketIfNotExists([]byte(b)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		db.Close()
		return nil, fail(err, "")
	}
	return s, nil
}

func (s *store) close() error { return s.db.Close() }

func (s *store) view(f func(tx) error) error {
	return s.db.View(func(t *bbolt.Tx) error { return f(tx{t}) })
}

func (s *store) update(f func(tx) error) error {
	return s.db.Update(func(t *bbolt.Tx) error { return f(tx{t}) })
}

// get reads an entity; nil where there is none.
func get[T any](t tx, b bucket, key string) (*T, error) {
	data := t.of(b).Get([]byte(key))
	if data == nil {
		return nil, nil
	}
	v := new(T)
	return v, json.Unmarshal(data, v)
}

func put(t tx, b bucket, key string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return t.of(b).Put([]byte(key), data)
}

func (t tx) drop(b bucket, key string) error { return t.of(b).Delete([]byte(key)) }

// each reads the entities whose keys start with prefix, in the keys' order.
func each[T any](t tx, b bucket, prefix string, f func(*T)) error {
	c := t.of(b).Cursor()
	for k, data := c.Seek([]byte(prefix)); hasPrefix(k, prefix); k, data = c.Next() {
		v := new(T)
		if err := json.Unmarshal(data, v); err != nil {
			return err
		}
		f(v)
	}
	return nil
}

func hasPrefix(key []byte, prefix string) bool {
	return key != nil && len(key) >= len(prefix) && string(key[:len(prefix)]) == prefix
}

// storedAction is an action without its code, and a number that no other state of any action has.
type storedAction struct {
	Action   *action `json:"action"`
	Revision uint64  `json:"revision"`
}

func (t tx) putAction(a *action) error {
	revision, err := t.of(actions).NextSequence()
	if err != nil {
		return err
	}
	bare := *a
	bare.Exec.Code = ""
	if err := put(t, actions, a.path(), storedAction{&bare, revision}); err != nil {
		return err
	}
	return t.of(codes).Put([]byte(a.path()), []byte(a.Exec.Code))
}

func (t tx) dropAction(key string) error {
	if err := t.drop(actions, key); err != nil {
		return err
	}
	return t.drop(codes, key)
}

// maxCached bounds the actions whose code stays in memory.
const maxCached = 64

// whole reads an action with its code; nil where there is none. Activations of one state of an action share one value,
// so that a warm container's is the same, and not 48 MB to compare.
func (s *store) whole(t tx, key string) (*action, error) {
	v, err := get[storedAction](t, actions, key)
	if v == nil || err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if hit := s.cache[key]; hit != nil && hit.Revision == v.Revision {
		return hit.Action, nil
	}
	v.Action.Exec.Code = string(t.of(codes).Get([]byte(key)))
	if len(s.cache) >= maxCached {
		clear(s.cache)
	}
	s.cache[key] = v
	return v.Action, nil
}

func timelineKey(ns string, start int64, id string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte(ns+"\x00"), uint64(start)), id...)
}

// file keeps an activation and lets the namespace's oldest go for it.
func (s *store) file(a *activation) error {
	return s.filings.file(s, a)
}

func (s *store) fileIn(t tx, a *activation) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	summary, err := json.Marshal(a.summary())
	if err != nil {
		return err
	}
	if err := t.of(records).Put([]byte(a.Namespace+"\x00"+a.ActivationID), data); err != nil {
		return err
	}
	if err := t.of(timeline).Put(timelineKey(a.Namespace, a.Start, a.ActivationID), summary); err != nil {
		return err
	}
	return s.prune(t, a.Namespace, t.count(a.Namespace)+1)
}

func (t tx) count(ns string) int {
	data := t.of(counts).Get([]byte(ns))
	if len(data) != 8 {
		return 0
	}
	return int(binary.BigEndian.Uint64(data))
}

// prune deletes the oldest of n activations until no more than kept are left, and writes down how many there are.
func (s *store) prune(t tx, ns string, n int) error {
	prefix := ns + "\x00"
	for ; n > s.kept; n-- {
		k, _ := t.of(timeline).Cursor().Seek([]byte(prefix))
		if !hasPrefix(k, prefix) {
			break
		}
		id := string(k[len(prefix)+8:])
		if err := t.of(timeline).Delete(k); err != nil {
			return err
		}
		if err := t.of(records).Delete([]byte(prefix + id)); err != nil {
			return err
		}
	}
	return t.of(counts).Put([]byte(ns), binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// newest walks a namespace's summaries from upto back to since until f returns false. It reads no more than it passes.
func (t tx) newest(ns string, since, upto int64, f func(*summary) bool) error {
	prefix := ns + "\x00"
	c := t.of(timeline).Cursor()
	// the first key after upto; there may be none
	k, _ := c.Seek(append(binary.BigEndian.AppendUint64([]byte(prefix), uint64(upto)), 0xff))
	var data []byte
	if k == nil {
		k, data = c.Last()
	} else {
		k, data = c.Prev()
	}
	for ; hasPrefix(k, prefix); k, data = c.Prev() {
		if int64(binary.BigEndian.Uint64(k[len(prefix):])) < since {
			return nil
		}
		v := new(summary)
		if err := json.Unmarshal(data, v); err != nil {
			return err
		}
		if !f(v) {
			return nil
		}
	}
	return nil
}
