package platform

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/boltcheck"
)

// store keeps a platform's state in one bbolt file. Entities have the key namespace/path. Code is stored apart from its
// action, because lists do not read code. Activations are stored twice: the record by id, and the summary that lists
// show by start time.
type store struct {
	path       string
	db         *bbolt.DB
	maxRecords int           // activations kept of one namespace
	maxBytes   disdel.Bytes  // of the activations of one namespace; 0: no bound
	readWithin time.Duration // of its end: an activation stays for so long, however many there are
	commits    recordCommits
	changes    atomic.Uint64 // grows with every change except records of activations

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
	tenants  bucket = "tenants"  // ns -> its key and throttles
)

var allBuckets = [...]bucket{packages, actions, codes, triggers, rules, records, timeline, counts, tenants}

// tx is a transaction. Callers must not change the values that its methods return.
type tx struct{ *bbolt.Tx }

func (t tx) bucket(b bucket) *bbolt.Bucket { return t.Bucket([]byte(b)) }

// openStore opens the file in dir. A file that is not durable is not synced, because nobody reads it after a crash.
func openStore(dir string, durable bool, kept int) (*store, error) {
	fail := func(err error, hint string) error {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "open the platform's state", Err: err, Hint: hint}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fail(err, "choose a data folder that can be written")
	}
	s := &store{path: filepath.Join(dir, "platform.db"), maxRecords: kept, cache: map[string]*storedAction{}}
	switch err := s.open(durable); {
	case errors.Is(err, berrors.ErrTimeout) || errors.Is(err, boltcheck.ErrBusy):
		return nil, fail(err, "another platform has this data folder open: end it, or choose another folder")
	case errors.Is(err, disdel.Corrupt):
		return nil, damaged(s.path, err)
	case err != nil:
		return nil, fail(err, "choose a data folder that can be written")
	}
	err := s.update(func(t tx) error {
		for _, b := range allBuckets {
			if _, err := t.CreateBucketIfNotExists([]byte(b)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.close() //nolint:errcheck // the first error is the one to tell
	}
	switch {
	case errors.Is(err, disdel.Corrupt):
		return nil, damaged(s.path, err)
	case err != nil:
		return nil, fail(err, "choose a data folder that can be written")
	}
	return s, nil
}

// damaged is the error of a file that fails its checksums.
func damaged(path string, err error) error {
	return &disdel.Error{
		Kind: disdel.Corrupt, Op: "open the platform's state", Err: err,
		Hint: "mv " + path + " " + path +
			".damaged, and start again: actions, triggers and rules are then to be made anew; or name another folder with " +
			"--data-dir",
	}
}

// open creates a missing file, and checks the file before bbolt maps it, because a missing page of a mapped file ends
// the process.
func (s *store) open(durable bool) error {
	err := boltcheck.Create(s.path, func(path string) error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: !durable})
		if err != nil {
			return err
		}
		return db.Close()
	})
	if err != nil {
		return err
	}
	if err := boltcheck.CheckLeaves(s.path, time.Second); err != nil {
		return err
	}
	return boltcheck.Guard(s.path, func() (err error) {
		s.db, err = bbolt.Open(s.path, 0o600,
			&bbolt.Options{Timeout: time.Second, NoSync: !durable, NoFreelistSync: true})
		return err
	})
}

func (s *store) close() error { return s.db.Close() }

// view, update and updateRecords run f in a transaction. Only the latter two may write. If the file is damaged they
// return an error that names it.
func (s *store) view(f func(tx) error) error {
	return boltcheck.Guard(s.path, func() error { return s.db.View(func(t *bbolt.Tx) error { return f(tx{t}) }) })
}

func (s *store) update(f func(tx) error) error {
	defer s.changes.Add(1)
	return s.updateRecords(f)
}

// updateRecords is update for a transaction that changes only records of activations.
func (s *store) updateRecords(f func(tx) error) error {
	return boltcheck.Guard(s.path, func() error { return s.db.Update(func(t *bbolt.Tx) error { return f(tx{t}) }) })
}

// get reads an entity; nil if there is none.
func get[T any](t tx, b bucket, key string) (*T, error) {
	data := t.bucket(b).Get([]byte(key))
	if data == nil {
		return nil, nil
	}
	return decode[T]([]byte(key), data)
}

// decode reads a stored value and checks its checksum.
func decode[T any](key, data []byte) (*T, error) {
	value, _, err := boltcheck.Open(key, data)
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(value, v); err != nil {
		// err is not wrapped: a refusal by a field's own reader would pass for the answer to a request.
		return nil, &disdel.Error{Kind: disdel.Corrupt, Msg: fmt.Sprintf("the value of %.80q is no record: %v", key, err)}
	}
	return v, nil
}

// seal stores a value with a checksum.
func (t tx) seal(b bucket, key, value []byte) error {
	return t.bucket(b).Put(key, boltcheck.Seal(key, value))
}

func put(t tx, b bucket, key string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return t.seal(b, []byte(key), data)
}

func (t tx) drop(b bucket, key string) error { return t.bucket(b).Delete([]byte(key)) }

// each reads the entities whose keys start with prefix, in the order of the keys.
func each[T any](t tx, b bucket, prefix string, f func(*T)) error {
	c := t.bucket(b).Cursor()
	for k, data := c.Seek([]byte(prefix)); hasPrefix(k, prefix); k, data = c.Next() {
		v, err := decode[T](k, data)
		if err != nil {
			return err
		}
		f(v)
	}
	return nil
}

func hasPrefix(key []byte, prefix string) bool {
	return key != nil && len(key) >= len(prefix) && string(key[:len(prefix)]) == prefix
}

func timelineKey(ns string, start int64, id string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte(ns+"\x00"), uint64(start)), id...)
}

// saveRecord stores a record and deletes the namespace's oldest records to make room.
func (s *store) saveRecord(a *activation) error {
	return s.commits.commit(s, a)
}

func (s *store) putRecord(t tx, a *activation) error {
	data, err := a.bytes()
	if err != nil {
		return err
	}
	summary, err := json.Marshal(a.summary())
	if err != nil {
		return err
	}
	if err := t.seal(records, []byte(a.Namespace+"\x00"+a.ActivationID), data); err != nil {
		return err
	}
	if err := t.seal(timeline, timelineKey(a.Namespace, a.Start, a.ActivationID), summary); err != nil {
		return err
	}
	n, size := t.recordCount(a.Namespace)
	return s.prune(t, a, n+1, size+len(data)+len(summary))
}

// hasRecord tells whether the store has the record of an activation.
func (t tx) hasRecord(a *activation) bool {
	return t.bucket(records).Get([]byte(a.Namespace+"\x00"+a.ActivationID)) != nil
}

func (t tx) count(ns string) int {
	n, _ := t.recordCount(ns)
	return n
}

// recordCount is the number and the bytes of a namespace's activations. Earlier versions stored no bytes.
func (t tx) recordCount(ns string) (n, size int) {
	data, _, err := boltcheck.Open([]byte(ns), t.bucket(counts).Get([]byte(ns)))
	switch {
	case err != nil:
		return t.recount(ns)
	case len(data) == 8:
		return int(binary.BigEndian.Uint64(data)), 0
	case len(data) == 16:
		return int(binary.BigEndian.Uint64(data)), int(binary.BigEndian.Uint64(data[8:]))
	default:
		return 0, 0
	}
}

// recount counts the records if the stored number is damaged.
func (t tx) recount(ns string) (n, size int) {
	c := t.bucket(records).Cursor()
	for k, v := c.Seek([]byte(ns + "\x00")); hasPrefix(k, ns+"\x00"); k, v = c.Next() {
		n++
		size += len(v)
	}
	return n, size
}

// prune deletes the oldest of n activations until both bounds hold, and stores the new count. The newest record stays,
// and more than the bound of records stay for a while: activations are in the order of their starts, and the oldest one
// may have ended just now.
func (s *store) prune(t tx, newest *activation, n, size int) error {
	ns := newest.Namespace
	prefix := ns + "\x00"
	for ; n > 1; n-- {
		k, summary := t.bucket(timeline).Cursor().Seek([]byte(prefix))
		tooMany := n > s.maxRecords && !s.isUnread(k, summary, newest)
		if !hasPrefix(k, prefix) || !tooMany && (s.maxBytes == 0 || disdel.Bytes(size) <= s.maxBytes) {
			break
		}
		record := []byte(prefix + string(k[len(prefix)+8:]))
		size = max(0, size-len(summary)-len(t.bucket(records).Get(record)))
		if err := t.bucket(timeline).Delete(k); err != nil {
			return err
		}
		if err := t.bucket(records).Delete(record); err != nil {
			return err
		}
	}
	return t.seal(counts, []byte(ns),
		binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(n)), uint64(size)))
}

// isUnread tells whether an activation ended so shortly before the newest one that its invoker may not have read it.
func (s *store) isUnread(key, data []byte, newest *activation) bool {
	v, err := decode[summary](key, data)
	since := max(newest.Start, newest.End) - max(v.Start, v.End) // triggers have no end
	return err == nil && since < s.readWithin.Milliseconds()
}

// newest walks a namespace's summaries from upto back to since until f returns false. It reads only what it walks over.
func (t tx) newest(ns string, since, upto int64, f func(*summary) bool) error {
	prefix := ns + "\x00"
	c := t.bucket(timeline).Cursor()
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
		v, err := decode[summary](k, data)
		if err != nil {
			return err
		}
		if !f(v) {
			return nil
		}
	}
	return nil
}

// storedAction is an action without its code. Revision differs between any two states of any actions.
type storedAction struct {
	Action   *action `json:"action"`
	Revision uint64  `json:"revision"`
}

func (t tx) putAction(a *action) error {
	revision, err := t.bucket(actions).NextSequence()
	if err != nil {
		return err
	}
	bare := *a
	bare.Exec.Code = ""
	if err := put(t, actions, a.path(), storedAction{&bare, revision}); err != nil {
		return err
	}
	return t.seal(codes, []byte(a.path()), []byte(a.Exec.Code))
}

func (s *store) dropAction(t tx, key string) error {
	s.mu.Lock()
	delete(s.cache, key)
	s.mu.Unlock()
	if err := t.drop(actions, key); err != nil {
		return err
	}
	return t.drop(codes, key)
}

// maxCached bounds the actions whose code stays in memory.
const maxCached = 64

// actionWithCode reads an action with its code; nil if there is none. Runs of one state of an action share one value,
// so that the pool compares pointers and not 48 MB of code.
func (s *store) actionWithCode(t tx, key string) (*action, error) {
	v, err := get[storedAction](t, actions, key)
	if v == nil || err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if hit := s.cache[key]; hit != nil && hit.Revision == v.Revision {
		return hit.Action, nil
	}
	code, _, err := boltcheck.Open([]byte(key), t.bucket(codes).Get([]byte(key)))
	if err != nil {
		return nil, err
	}
	v.Action.Exec.Code = string(code)
	if len(s.cache) >= maxCached {
		clear(s.cache)
	}
	s.cache[key] = v
	return v.Action, nil
}

// actionCache caches actions as users reach them, so that a repeated invocation does not read the store. Every change
// except a stored record empties it.
type actionCache struct {
	mu      sync.Mutex
	version uint64 // store.changes when the entries were read
	actions map[actionRoute]*resolved
}

// actionRoute is how a user reaches an action.
type actionRoute struct {
	user string
	path pathName
}

// findAction finds an action that a user may invoke. Callers must not change it.
func (p *Platform) findAction(u *user, path pathName) (*resolved, error) {
	as, w := p.store.changes.Load(), actionRoute{u.Name, path} // read before the state, which may change meanwhile
	if found := p.actionCache.get(as, w); found != nil {
		return found, nil
	}
	var found *resolved
	err := p.store.view(func(t tx) (err error) {
		found, err = p.resolve(t, u, path)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.actionCache.put(as, w, found)
	return found, nil
}

func (f *actionCache) get(as uint64, w actionRoute) *resolved {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.version != as {
		return nil
	}
	return f.actions[w]
}

func (f *actionCache) put(as uint64, w actionRoute, found *resolved) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.version > as {
		return // another goroutine read a newer state
	}
	if f.version < as || len(f.actions) >= maxCached || f.actions == nil {
		f.version, f.actions = as, map[actionRoute]*resolved{}
	}
	f.actions[w] = found
}
