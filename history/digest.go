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
type Revision struct {
	ID  disdel.JobID `json:"_id"`
	Rev string       `json:"_rev"`
}

// Revisions lists the newest records like List without conditions, but reads only ids and revisions.
func (s *Store) Revisions(ctx context.Context, limit int) ([]Revision, error) {
	q := search{fields: []string{"_id", "_rev"}}
	if s.tenant != nil && *s.tenant != "" {
		q.by = order{tenantField}
	}
	out := []Revision{}
	for before := highest; ; {
		asked, came, seen := limit-len(out)+1, 0, 0
		err := s.selected(ctx, q, before, asked, func(_ string, raw json.RawMessage) (bool, error) {
			var m Revision
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
type RecordCache[T any] struct {
	summarize func(*disdel.Record) T
	max       int

	mu     sync.Mutex
	values map[disdel.JobID]cachedValue[T] // guarded by mu
}

type cachedValue[T any] struct {
	revision string
	tenant   string
	value    T
	there    bool // false: this version cannot read the document
}

// NewRecordCache returns a cache of at most most records with the values that of computes. of gets incomplete records:
// activations have only task and peak, rounds only the results of training and evaluation; stages, decisions,
// transitions, adjustments and outages are missing.
func NewRecordCache[T any](maximum int, summarize func(r *disdel.Record) T) *RecordCache[T] {
	return &RecordCache[T]{summarize: summarize, max: maximum, values: map[disdel.JobID]cachedValue[T]{}}
}

// readAtOnce is about how many bytes of records are in memory while a list is computed.
const readAtOnce = 2 << 20

// listPages is List for a query with conditions. It reads the records page by page and caches nothing.
func (d *RecordCache[T]) listPages(ctx context.Context, s *Store, q Query) ([]T, error) {
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	out := []T{}
	for {
		list, cut, err := s.Page(ctx, q, readAtOnce)
		for i := range list {
			out = append(out, d.summarize(&list[i]))
		}
		if err != nil || !cut {
			return out, err
		}
		q.Before, q.Limit = list[len(list)-1].ID, q.Limit-len(list)
	}
}

// List returns the values of List's records, newest first.
func (d *RecordCache[T]) List(ctx context.Context, s *Store, q Query) ([]T, error) {
	if len(q.conditions()) > 0 || !q.Since.IsZero() || q.Before != "" || q.Where.holds != nil {
		return d.listPages(ctx, s, q)
	}
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	marks, err := s.Revisions(ctx, q.Limit)
	if err != nil {
		return nil, err
	}
	return d.lookUp(ctx, s, marks)
}

// Get returns the values of some records, ordered by id. It returns NotFound for a missing one.
func (d *RecordCache[T]) Get(ctx context.Context, s *Store, ids []disdel.JobID) ([]T, error) {
	out, err := d.Find(ctx, s, ids)
	if err == nil && len(out) < len(ids) {
		for _, id := range ids { // the error says what is wrong
			if _, err := s.Get(ctx, id); err != nil {
				return nil, err
			}
		}
	}
	return out, err
}

// Find is Get that leaves out records that are missing or that this version cannot read.
func (d *RecordCache[T]) Find(ctx context.Context, s *Store, ids []disdel.JobID) ([]T, error) {
	marks, err := s.revisionsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	return d.lookUp(ctx, s, marks)
}

// lookUp returns the values of those records that s shows. It reads the changed ones.
func (d *RecordCache[T]) lookUp(ctx context.Context, s *Store, marks []Revision) ([]T, error) {
	found := make(map[disdel.JobID]cachedValue[T], len(marks))
	var missing []string
	d.mu.Lock()
	for _, m := range marks {
		if v, ok := d.values[m.ID]; ok && v.revision == m.Rev {
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
const cachePage = 20

// read reads documents, several pages at once, and caches their values.
func (d *RecordCache[T]) read(ctx context.Context, s *Store, ids []string,
	found map[disdel.JobID]cachedValue[T],
) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	for page := range slices.Chunk(ids, cachePage) {
		work.Go(func() error {
			documents, err := s.byIDs(ctx, page)
			if err != nil {
				return err
			}
			made := make(map[disdel.JobID]cachedValue[T], len(page))
			for id, raw := range documents {
				made[disdel.JobID(id)] = d.decode(s, raw)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			for id, v := range made {
				found[id] = v
				d.put(id, v)
			}
			return nil
		})
	}
	return work.Wait()
}

// put caches a value; a full cache drops another one. The caller holds the lock.
func (d *RecordCache[T]) put(id disdel.JobID, v cachedValue[T]) {
	if len(d.values) >= d.max {
		for other := range d.values {
			delete(d.values, other)
			break
		}
	}
	d.values[id] = v
}

// decode computes the value of a document.
func (d *RecordCache[T]) decode(s *Store, raw json.RawMessage) (out cachedValue[T]) {
	var b briefRecord
	err := json.Unmarshal(restoreIntegers(raw), &b)
	out.revision, out.tenant = b.Rev, b.Tenant
	if err != nil || b.APIVersion != disdel.APIVersion || string(b.ID) != b.Key || !b.ID.Valid() {
		s.passOver(raw, unreadable(raw, err)) //nolint:errcheck // it logs what there is to say
		out.tenant = tenantOf(raw)
		return out
	}
	r := b.record()
	out.value, out.there = d.summarize(&r), true
	return out
}

// briefRecord is the part of a record that a cache reads.
type briefRecord struct {
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
func (b *briefRecord) record() disdel.Record {
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
func (s *Store) revisionsOf(ctx context.Context, ids []disdel.JobID) (out []Revision, err error) {
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
		out = append(out, Revision{disdel.JobID(id), value.Revision})
	}
	return out, wrap(rows.Err(), "list records", "")
}

// SizeCache keeps the sizes of records as JSON, so that a record is read once for each of its revisions. Its zero value
// is ready. It is safe for concurrent use.
type SizeCache struct {
	mu    sync.Mutex
	sizes map[Revision]disdel.Bytes // guarded by mu
}

// Total returns the size of all records that s shows. It returns the errors of Store.List.
func (c *SizeCache) Total(ctx context.Context, s *Store) (all disdel.Bytes, err error) {
	marks, err := s.Revisions(ctx, mostRecords)
	if err != nil {
		return 0, err
	}
	var missing []string
	c.mu.Lock()
	for _, m := range marks {
		size, ok := c.sizes[m]
		if all += size; !ok {
			missing = append(missing, string(m.ID))
		}
	}
	c.mu.Unlock()
	for page := range slices.Chunk(missing, cachePage) {
		documents, err := s.byIDs(ctx, page)
		if err != nil {
			return 0, err
		}
		all += c.put(marks, documents)
	}
	return all, nil
}

// put keeps the sizes of documents, and returns their sum.
func (c *SizeCache) put(marks []Revision, documents map[string]json.RawMessage) (sum disdel.Bytes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sizes == nil || len(c.sizes) > mostSizes {
		c.sizes = map[Revision]disdel.Bytes{}
	}
	for _, m := range marks {
		if raw, ok := documents[string(m.ID)]; ok {
			c.sizes[m] = disdel.Bytes(len(raw))
			sum += disdel.Bytes(len(raw))
		}
	}
	return sum
}

// Bounds of a SizeCache: the sizes that are kept, older revisions among them, and the records that count.
const (
	mostSizes   = 100_000
	mostRecords = 1 << 30
)
