package history

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"sync"

	"github.com/go-kivik/kivik/v4"
	"golang.org/x/sync/errgroup"

	"github.com/disdel/disdel"
)

// Mark is a record's revision: it is another one as soon as anything in the record is.
type Mark struct {
	ID       disdel.JobID `json:"_id"`
	Revision string       `json:"_rev"`
}

// Marks lists the newest records, as List does without any condition, and reads nothing else of them.
func (s *Store) Marks(ctx context.Context, limit int) ([]Mark, error) {
	q := search{fields: []string{"_id", "_rev"}}
	if s.tenant != nil && *s.tenant != "" {
		q.by = order{tenantField}
	}
	out := []Mark{}
	for before := highest; ; {
		asked, came, seen := limit-len(out)+1, 0, 0
		err := s.selected(ctx, q, before, asked, func(_ string, raw json.RawMessage) (bool, error) {
			var m Mark
			if err := json.Unmarshal(raw, &m); err != nil {
				return false, unreadable(raw, err)
			}
			came++
			if string(m.ID) < before { // PouchDB's pages begin with the one that the page before ended with
				out, before, seen = append(out, m), string(m.ID), seen+1
			}
			return len(out) < limit, nil
		})
		if err != nil || seen == 0 || len(out) >= limit || came < asked-1 { // PouchDB's pages may be a record short
			return out, err
		}
	}
}

// Digest keeps what somebody makes of records, so that a record is read once for each of its revisions and not for
// every look at it. It is safe for concurrent use.
type Digest[T any] struct {
	of   func(*disdel.Record) T
	most int

	mu    sync.Mutex
	known map[disdel.JobID]digested[T] // guarded by mu
}

type digested[T any] struct {
	revision string
	tenant   string
	value    T
	there    bool // false: the document is no record of this version
}

// NewDigest makes one that keeps what of makes of so many records at most. What of gets lacks most of what a record is:
// of activations it has task and peak, of rounds what evaluations and training gave, and no stages, decisions,
// transitions, adjustments and outages.
func NewDigest[T any](most int, of func(r *disdel.Record) T) *Digest[T] {
	return &Digest[T]{of: of, most: most, known: map[disdel.JobID]digested[T]{}}
}

// readAtOnce is about how many bytes of records are in memory while a list of any length is made of them.
const readAtOnce = 2 << 20

// paged is List of a query with conditions: its records are read a page at a time.
func (d *Digest[T]) paged(ctx context.Context, s *Store, q Query) ([]T, error) {
	if q.Limit == 0 {
		q.Limit = UsualLimit
	}
	out := []T{}
	for {
		list, cut, err := s.Page(ctx, q, readAtOnce)
		for i := range list {
			out = append(out, d.of(&list[i]))
		}
		if err != nil || !cut {
			return out, err
		}
		q.Before, q.Limit = list[len(list)-1].ID, q.Limit-len(list)
	}
}

// List is what becomes of List's records, newest first.
func (d *Digest[T]) List(ctx context.Context, s *Store, q Query) ([]T, error) {
	if len(q.conditions()) > 0 || !q.Since.IsZero() || q.Before != "" {
		return d.paged(ctx, s, q)
	}
	if q.Limit == 0 {
		q.Limit = UsualLimit
	}
	marks, err := s.Marks(ctx, q.Limit)
	if err != nil {
		return nil, err
	}
	return d.values(ctx, s, marks)
}

// Get is what becomes of some records, in the order of their ids. It returns NotFound for one that is not there.
func (d *Digest[T]) Get(ctx context.Context, s *Store, ids []disdel.JobID) ([]T, error) {
	marks, err := s.marksOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	out, err := d.values(ctx, s, marks)
	if err == nil && len(out) < len(ids) {
		for _, id := range ids { // which says what is wrong with it
			if _, err := s.Get(ctx, id); err != nil {
				return nil, err
			}
		}
	}
	return out, err
}

// values is what is known of the marked records that s shows, after those were read that have changed.
func (d *Digest[T]) values(ctx context.Context, s *Store, marks []Mark) ([]T, error) {
	found := make(map[disdel.JobID]digested[T], len(marks))
	var missing []string
	d.mu.Lock()
	for _, m := range marks {
		if v, ok := d.known[m.ID]; ok && v.revision == m.Revision {
			found[m.ID] = v
		} else {
			missing = append(missing, string(m.ID))
		}
	}
	d.mu.Unlock()
	if err := d.read(ctx, s, missing, found); err != nil {
		return nil, err
	}
	out := make([]T, 0, len(marks))
	for _, m := range marks {
		if v := found[m.ID]; v.there && s.sees(&disdel.Record{Tenant: v.tenant}) {
			out = append(out, v.value)
		}
	}
	return out, nil
}

// digestPage is how many records are read at once.
const digestPage = 20

// read reads documents, some of them at the same time, and makes of them what is kept.
func (d *Digest[T]) read(ctx context.Context, s *Store, ids []string, found map[disdel.JobID]digested[T]) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	for page := range slices.Chunk(ids, digestPage) {
		work.Go(func() error {
			documents, err := s.byIDs(ctx, page)
			if err != nil {
				return err
			}
			made := make(map[disdel.JobID]digested[T], len(page))
			for id, raw := range documents {
				made[disdel.JobID(id)] = d.make(s, raw)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			for id, v := range made {
				found[id] = v
				d.keep(id, v)
			}
			return nil
		})
	}
	return work.Wait()
}

// keep remembers a value, in the place of any other where there are too many; the caller holds the lock.
func (d *Digest[T]) keep(id disdel.JobID, v digested[T]) {
	if len(d.known) >= d.most {
		for other := range d.known {
			delete(d.known, other)
			break
		}
	}
	d.known[id] = v
}

// make is what becomes of a document.
func (d *Digest[T]) make(s *Store, raw json.RawMessage) (out digested[T]) {
	var b brief
	err := json.Unmarshal(plain(raw), &b)
	out.revision, out.tenant = b.Rev, b.Tenant
	if err != nil || b.APIVersion != disdel.APIVersion || string(b.ID) != b.Key || !b.ID.Valid() {
		s.passOver(raw, unreadable(raw, err)) //nolint:errcheck // it logs what there is to say
		out.tenant = tenantOf(raw)
		return out
	}
	r := b.record()
	out.value, out.there = d.of(&r), true
	return out
}

// brief is what a digest reads of a record.
type brief struct {
	Key string `json:"_id"`
	Rev string `json:"_rev"`
	disdel.Record
	Rounds      []briefRound      `json:"rounds"`
	Activations []briefActivation `json:"actions"`
	Stages      skipped           `json:"stages"`
	Decisions   skipped           `json:"decisions"`
	Transitions skipped           `json:"transitions"`
	Outages     skipped           `json:"outages"`
	Adjustments skipped           `json:"adjustments"`
	ByClass     skipped           `json:"byClass"`
}

type briefRound struct {
	Round         int           `json:"round"`
	TrainLoss     float64       `json:"trainLoss"`
	Loss          *float64      `json:"loss"`
	Accuracy      *float64      `json:"accuracy"`
	TrainAccuracy *float64      `json:"trainAccuracy"`
	Duration      disdel.Millis `json:"durationMs"`
}

type briefActivation struct {
	Task disdel.Task  `json:"task"`
	Peak disdel.Bytes `json:"peakBytes"`
}

// skipped is a part of a document that nobody reads.
type skipped struct{}

func (*skipped) UnmarshalJSON([]byte) error { return nil }

// record is a record with what was read of it.
func (b *brief) record() disdel.Record {
	r := b.Record
	for _, v := range b.Rounds {
		r.Rounds = append(r.Rounds, disdel.Round{
			Round: v.Round, TrainLoss: v.TrainLoss, Loss: v.Loss, Accuracy: v.Accuracy, TrainAccuracy: v.TrainAccuracy,
			Duration: v.Duration,
		})
	}
	for _, a := range b.Activations {
		r.Activations = append(r.Activations, disdel.Activation{Invocation: disdel.Invocation{Task: a.Task}, Peak: a.Peak})
	}
	return r
}

// marksOf is the revisions of those of some records that are there, in their order.
func (s *Store) marksOf(ctx context.Context, ids []disdel.JobID) (out []Mark, err error) {
	rows := s.db.AllDocs(ctx, kivik.Params(map[string]any{"keys": ids}))
	defer rows.Close() //nolint:errcheck // what it had to say has been said
	for rows.Next() {
		id, err := rows.ID()
		if err != nil {
			continue // there is none
		}
		var value struct {
			Revision string `json:"rev"`
		}
		if err := rows.ScanValue(&value); err != nil {
			return nil, wrap(err, "list records", "")
		}
		out = append(out, Mark{disdel.JobID(id), value.Revision})
	}
	return out, wrap(rows.Err(), "list records", "")
}
