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

// store keeps a platform's state in one file: entities by namespace/path, code apart from its action (a list must not
// read code), and activations twice: whole by id, and as the summaries of lists by start time.
type store struct {
	path    string
	db      *bbolt.DB
	kept    int          // activations of a namespace
	most    disdel.Bytes // of a namespace's activations; 0: any
	filings filings
	changes atomic.Uint64 // how often anything but records of activations may have changed

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
	s := &store{path: filepath.Join(dir, "platform.db"), kept: kept, cache: map[string]*storedAction{}}
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

// damaged is what a platform says of a file that it cannot believe.
func damaged(path string, err error) error {
	return &disdel.Error{
		Kind: disdel.Corrupt, Op: "open the platform's state", Err: err,
		Hint: "mv " + path + " " + path +
			".damaged, and start again: actions, triggers and rules are then to be made anew; or name another folder with " +
			"--data-dir",
	}
}

// open looks at the file before it is mapped, where a missing page would end the process.
func (s *store) open(durable bool) error {
	if err := boltcheck.CheckLeaves(s.path, time.Second); err != nil {
		return err
	}
	return boltcheck.Guard(s.path, func() (err error) {
		s.db, err = bbolt.Open(s.path, 0o600,
			&bbolt.Options{Timeout: time.Second, NoSync: !durable, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
		return err
	})
}

func (s *store) close() error { return s.db.Close() }

// view, update and record run f in a transaction, which may write in the latter two. What the file's damage does to f
// is an error that names the file.
func (s *store) view(f func(tx) error) error {
	return boltcheck.Guard(s.path, func() error { return s.db.View(func(t *bbolt.Tx) error { return f(tx{t}) }) })
}

func (s *store) update(f func(tx) error) error {
	defer s.changes.Add(1)
	return s.record(f)
}

// record is update where nothing but records of activations changes.
func (s *store) record(f func(tx) error) error {
	return boltcheck.Guard(s.path, func() error { return s.db.Update(func(t *bbolt.Tx) error { return f(tx{t}) }) })
}

// get reads an entity; nil where there is none.
func get[T any](t tx, b bucket, key string) (*T, error) {
	data := t.of(b).Get([]byte(key))
	if data == nil {
		return nil, nil
	}
	return decode[T]([]byte(key), data)
}

// decode reads a stored value, which is what was stored or an error.
func decode[T any](key, data []byte) (*T, error) {
	value, _, err := boltcheck.Open(key, data)
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(value, v); err != nil {
		return nil, &disdel.Error{Kind: disdel.Corrupt, Msg: fmt.Sprintf("the value of %.80q is no record", key), Err: err}
	}
	return v, nil
}

// seal stores a value with a checksum.
func (t tx) seal(b bucket, key, value []byte) error {
	return t.of(b).Put(key, boltcheck.Seal(key, value))
}

func put(t tx, b bucket, key string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return t.seal(b, []byte(key), data)
}

func (t tx) drop(b bucket, key string) error { return t.of(b).Delete([]byte(key)) }

// each reads the entities whose keys start with prefix, in the keys' order.
func each[T any](t tx, b bucket, prefix string, f func(*T)) error {
	c := t.of(b).Cursor()
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

// file keeps an activation and lets the namespace's oldest go for it.
func (s *store) file(a *activation) error {
	return s.filings.file(s, a)
}

func (s *store) fileIn(t tx, a *activation) error {
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
	n, size := t.counted(a.Namespace)
	return s.prune(t, a.Namespace, n+1, size+len(data)+len(summary))
}

// has tells whether an activation's record is on the disk.
func (t tx) has(a *activation) bool {
	return t.of(records).Get([]byte(a.Namespace+"\x00"+a.ActivationID)) != nil
}

func (t tx) count(ns string) int {
	n, _ := t.counted(ns)
	return n
}

// counted is how many activations a namespace has, and their bytes. Versions before did not write down the bytes.
func (t tx) counted(ns string) (n, size int) {
	data, _, err := boltcheck.Open([]byte(ns), t.of(counts).Get([]byte(ns)))
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

// recount counts what is there, where the number that was written down cannot be believed.
func (t tx) recount(ns string) (n, size int) {
	c := t.of(records).Cursor()
	for k, v := c.Seek([]byte(ns + "\x00")); hasPrefix(k, ns+"\x00"); k, v = c.Next() {
		n++
		size += len(v)
	}
	return n, size
}

// prune deletes the oldest of n activations until no more than kept are left, in no more than the bytes they may take,
// and writes down what there is. The newest stays, however large.
func (s *store) prune(t tx, ns string, n, size int) error {
	prefix := ns + "\x00"
	for ; n > s.kept || s.most > 0 && disdel.Bytes(size) > s.most && n > 1; n-- {
		k, summary := t.of(timeline).Cursor().Seek([]byte(prefix))
		if !hasPrefix(k, prefix) {
			break
		}
		record := []byte(prefix + string(k[len(prefix)+8:]))
		size = max(0, size-len(summary)-len(t.of(records).Get(record)))
		if err := t.of(timeline).Delete(k); err != nil {
			return err
		}
		if err := t.of(records).Delete(record); err != nil {
			return err
		}
	}
	return t.seal(counts, []byte(ns),
		binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(n)), uint64(size)))
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
