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

// Revision identifies the state of a record. It changes with every change of the record.
type Mark struct {
	ID       disdel.JobID `json:"_id"`
	Revision string       `json:"_rev"`
}

// Revisions lists the newest records like List without conditions, but reads only ids and revisions.
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
			if string(m.ID) < before { // PouchDB's pages start with the last record of the page before
				out, before, seen = append(out, m), string(m.ID), seen+1
			}
			return len(out) < limit, nil
		})
		if err != nil || seen == 0 || len(out) >= limit || came < asked-1 { // PouchDB's pages may be one record short
			return out, err
		}
	}
}

// RecordCache caches a value that is computed from each record, so that a record is read once for each of its
// revisions. It is safe for concurrent use.
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
	there    bool // false: this version cannot read the document
}

// NewRecordCache returns a cache of at most most records with the values that of computes. of gets incomplete records:
// activations have only task and peak, rounds only the results of training and evaluation; stages, decisions,
// transitions, adjustments and outages are missing.
func NewDigest[T any](most int, of func(r *disdel.Record) T) *Digest[T] {
	return &Digest[T]{of: of, most: most, known: map[disdel.JobID]digested[T]{}}
}

// readAtOnce is about how many bytes of records are in memory while a list is computed.
const readAtOnce = 2 << 20

// listPages is List for a query with conditions. It reads the records page by page and caches nothing.
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

// List returns the values of List's records, newest first.
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

// Get returns the values of some records, ordered by id. It returns NotFound for a missing one.
func (d *Digest[T]) Get(ctx context.Context, s *Store, ids []disdel.JobID) ([]T, error) {
	marks, err := s.marksOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	out, err := d.values(ctx, s, marks)
	if err == nil && len(out) < len(ids) {
		for _, id := range ids { // the error says what is wrong
			if _, err := s.Get(ctx, id); err != nil {
				return nil, err
			}
		}
	}
	return out, err
}

// lookUp returns the values of those records that s shows. It reads the changed ones.
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

// cachePage is how many records one request reads.
const digestPage = 20

// read reads documents, several pages at once, and caches their values.
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

// put caches a value; a full cache drops another one. The caller holds the lock.
func (d *Digest[T]) keep(id disdel.JobID, v digested[T]) {
	if len(d.known) >= d.most {
		for other := range d.known {
			delete(d.known, other)
			break
		}
	}
	d.known[id] = v
}

// decode computes the value of a document.
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

// briefRecord is the part of a record that a cache reads.
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

// skipped is a part of a document that is not read.
type skipped struct{}

func (*skipped) UnmarshalJSON([]byte) error { return nil }

// record converts to a Record.
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

// revisionsOf are the revisions of existing records, in the order of ids.
func (s *Store) marksOf(ctx context.Context, ids []disdel.JobID) (out []Mark, err error) {
	rows := s.db.AllDocs(ctx, kivik.Params(map[string]any{"keys": ids}))
	defer rows.Close() //nolint:errcheck // what it had to say has been said
	for rows.Next() {
		id, err := rows.ID()
		if err != nil {
			continue // the record does not exist
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
