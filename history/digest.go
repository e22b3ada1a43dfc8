package history

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

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

// NewRecordCache returns a cache of at most maximum records with the values that summarize computes. It gets incomplete
// records: activations have only task and peak, rounds only the results of training and evaluation; stages, decisions,
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
	b, err := decodeBrief(raw)
	out.revision, out.tenant = b.Rev, b.Tenant
	if err != nil || b.APIVersion != disdel.APIVersion || string(b.ID) != b.Key || !b.ID.Valid() {
		s.passOver(raw, unreadable(raw, err)) //nolint:errcheck // it logs what there is to say
		out.tenant = tenantOf(raw)
		return out
	}
	out.value, out.there = d.summarize(&b.Record), true
	return out
}

// briefHead is the part of a document without its long lists.
type briefHead struct {
	Key string `json:"_id"`
	Rev string `json:"_rev"`
	disdel.Record
}

// briefRecord is the part of a record that a cache reads.
type briefRecord struct {
	briefHead
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
	disdel.Scores
}

type briefActivation struct {
	Task disdel.Task  `json:"task"`
	Peak disdel.Bytes `json:"peakBytes"`
}

// skipped is a part of a document that is not read.
type skipped struct{}

func (*skipped) UnmarshalJSON([]byte) error { return nil }

// decodeBrief reads the part of a document that a cache reads. The long lists of a record take most of the time, so a
// scanner reads them. Whatever the scanner does not expect, encoding/json reads, or says what is wrong.
func decodeBrief(raw json.RawMessage) (briefHead, error) {
	if b, ok := scanBrief(raw); ok {
		return b, nil
	}
	return parseBrief(raw)
}

// parseBrief is decodeBrief with encoding/json.
func parseBrief(raw json.RawMessage) (briefHead, error) {
	var b briefRecord
	err := json.Unmarshal(restoreIntegers(raw), &b)
	for _, v := range b.Rounds {
		b.Record.Rounds = append(b.Record.Rounds, disdel.Round{
			Round: v.Round, TrainLoss: v.TrainLoss, Loss: v.Loss, Accuracy: v.Accuracy, TrainAccuracy: v.TrainAccuracy,
			Duration: v.Duration, Scores: v.Scores,
		})
	}
	for _, a := range b.Activations {
		b.Record.Activations = append(b.Record.Activations,
			disdel.Activation{Invocation: disdel.Invocation{Task: a.Task}, Peak: a.Peak})
	}
	return b.briefHead, err
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

// scanner reads JSON from the start to the end, without checking what it skips. After anything that it does not expect,
// failed is true and what it returned does not count.
type scanner struct {
	data   []byte
	at     int
	failed bool
}

// peek is the next byte that is no space, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take reads one byte, which has to be this one.
func (s *scanner) take(want byte) {
	if s.peek() != want {
		s.failed = true
		return
	}
	s.at++
}

// text reads a string without escapes, and returns it without its quotes.
func (s *scanner) text() []byte {
	s.take('"')
	n := bytes.IndexByte(s.data[s.at:], '"')
	if s.failed || n < 0 || bytes.IndexByte(s.data[s.at:s.at+n], '\\') >= 0 {
		s.failed = true
		return nil
	}
	out := s.data[s.at : s.at+n]
	s.at += n + 1
	return out
}

// skipText skips a string, of which the opening quote was read.
func (s *scanner) skipText() {
	for {
		n := bytes.IndexByte(s.data[s.at:], '"')
		if n < 0 {
			s.failed = true
			return
		}
		s.at += n + 1
		slashes := 0
		for k := s.at - 2; k >= 0 && s.data[k] == '\\'; k-- {
			slashes++
		}
		if slashes%2 == 0 {
			return
		}
	}
}

// skip skips a value and returns it.
func (s *scanner) skip() []byte {
	s.peek()
	start, depth := s.at, 0
	for s.at < len(s.data) && !s.failed {
		c := s.data[s.at]
		switch c {
		case '"':
			s.at++
			s.skipText()
			c = 0
		case '{', '[':
			depth++
			s.at++
			continue
		case '}', ']', ',':
			if depth == 0 {
				return s.value(start)
			}
			if c != ',' {
				depth--
			}
			s.at++
		default:
			for s.at++; s.at < len(s.data) && !marksJSON[s.data[s.at]]; s.at++ {
			}
			continue
		}
		if depth == 0 && c != ',' {
			return s.value(start)
		}
	}
	return s.value(start)
}

// value is what was read since start. There has to be something.
func (s *scanner) value(start int) []byte {
	out := bytes.TrimSpace(s.data[start:s.at])
	s.failed = s.failed || len(out) == 0
	return out
}

// object calls f with each key of an object; f reads the value.
func (s *scanner) object(f func(key []byte)) {
	s.list('{', '}', func() {
		key := s.text()
		if s.take(':'); !s.failed {
			f(key)
		}
	})
}

// array calls f for each element of an array, which f reads. null is an array without elements.
func (s *scanner) array(f func()) {
	if s.peek() == 'n' {
		s.failed = s.failed || string(s.skip()) != "null"
		return
	}
	s.list('[', ']', f)
}

func (s *scanner) list(begin, end byte, f func()) {
	s.take(begin)
	if s.peek() == end {
		s.at++
		return
	}
	for !s.failed {
		if f(); s.failed {
			return
		}
		if s.peek() == end {
			s.at++
			return
		}
		s.take(',')
	}
}

// numberText is the text of a number, nil for null.
func (s *scanner) numberText() []byte {
	c := s.peek()
	start := s.at
	for s.at < len(s.data) && numberBytes[s.data[s.at]] {
		s.at++
	}
	switch {
	case c == '-' || '0' <= c && c <= '9':
		return s.data[start:s.at]
	case string(s.skip()) != "null":
		s.failed = true
	}
	return nil
}

var numberBytes = [256]bool{
	'0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true, '7': true, '8': true, '9': true,
	'-': true, '+': true, '.': true, 'e': true, 'E': true,
}

// marksJSON are the bytes that skip looks at.
var marksJSON = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true, ',': true}

// decimal is strconv.ParseFloat for the usual numbers of records: at most 18 digits and no sign or exponent. A long job
// has tens of thousands of them. ok is false for all others.
func decimal(text []byte) (v float64, ok bool) {
	digits, point := uint64(0), -1
	for i, c := range text {
		switch {
		case c == '.' && point < 0:
			point = i
		case '0' <= c && c <= '9' && digits < 1e17:
			digits = 10*digits + uint64(c-'0')
		default:
			return 0, false
		}
	}
	scale := 0
	if point >= 0 {
		scale = len(text) - 1 - point
	}
	if len(text) < 2 || scale >= len(powersOfTen) {
		return 0, false
	}
	// high+low and power are exact, so the quotient's error is far below the distance to the next number: unless both
	// ends of its interval round to the same number, ParseFloat decides.
	high, power := float64(digits), powersOfTen[scale]
	low := float64(int64(digits - uint64(high)))
	first := high / power
	rest := (math.FMA(-first, power, high) + low) / power
	v = first + rest*(1+1e-14)
	return v, v == first+rest*(1-1e-14)
}

// powersOfTen are the powers of ten that a float64 has exactly.
var powersOfTen = [...]float64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21,
	1e22,
}

// integer reads an integer; null is 0.
func (s *scanner) integer() int64 {
	text := s.numberText()
	if text == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	s.failed = s.failed || err != nil
	return n
}

// float reads a number; there is false for null.
func (s *scanner) float() (v float64, there bool) {
	text := s.numberText()
	if text == nil {
		return 0, false
	}
	if v, ok := decimal(text); ok {
		return v, true
	}
	v, err := strconv.ParseFloat(string(text), 64)
	s.failed = s.failed || err != nil
	return v, true
}

// splitDocuments returns the documents of an answer to _all_docs by their ids, and about how many it expects.
func splitDocuments(answer []byte, expected int) (map[string]json.RawMessage, bool) {
	out := make(map[string]json.RawMessage, expected)
	s := &scanner{data: answer}
	s.object(func(key []byte) {
		if string(key) != "rows" {
			s.skip()
			return
		}
		s.array(func() {
			var id, document []byte
			s.object(func(key []byte) {
				switch string(key) {
				case "id":
					id = s.text()
				case "doc":
					document = s.skip()
				default:
					s.skip()
				}
			})
			if len(id) > 0 && len(document) > 0 && document[0] == '{' {
				out[string(id)] = document
			}
		})
	})
	return out, !s.failed
}

// briefScan is a scan for the part of a record that a cache reads.
type briefScan struct {
	scanner
	rest   []byte // an object of the fields that encoding/json reads
	rounds []disdel.Round
	acts   []disdel.Activation
	found  map[string]bool // the long lists that were read
	floats []float64       // values that rounds point to, in large pieces
}

// longLists are the fields that encoding/json does not read. A record has two of them that a cache reads.
var longLists = []string{
	"rounds", "actions", "stages", "decisions", "transitions", "outages", "adjustments", "byClass",
}

// scanBrief is decodeBrief for a document that looks as disdel writes it; ok is false for others.
func scanBrief(raw []byte) (b briefHead, ok bool) {
	s := &briefScan{scanner: scanner{data: raw}, rest: []byte{'{'}, found: map[string]bool{}}
	s.object(s.field)
	if s.failed || s.peek() != 0 {
		return b, false
	}
	rest := append(bytes.TrimSuffix(s.rest, []byte{','}), '}')
	if json.Unmarshal(restoreIntegers(rest), &b) != nil {
		return briefHead{}, false
	}
	b.Record.Rounds, b.Record.Activations = s.rounds, s.acts
	return b, true
}

// field reads a field of a record.
func (s *briefScan) field(key []byte) {
	i := slices.IndexFunc(longLists, func(name string) bool { return bytes.EqualFold(key, []byte(name)) })
	if i < 0 {
		s.rest = append(append(append(append(s.rest, '"'), key...), `":`...), s.skip()...)
		s.rest = append(s.rest, ',')
		return
	}
	name := longLists[i]
	if string(key) != name || s.found[name] { // encoding/json reads it nevertheless
		s.failed = true
		return
	}
	s.found[name] = true
	switch name {
	case "rounds":
		s.rounds = make([]disdel.Round, 0, s.about(`"round":`))
		s.array(s.round)
	case "actions":
		s.array(s.action)
	default:
		s.skip()
	}
}

// about is how often a text is in the rest of the document.
func (s *briefScan) about(text string) int { return bytes.Count(s.data[s.at:], []byte(text)) }

// round reads a round.
func (s *briefScan) round() {
	s.rounds = append(s.rounds, disdel.Round{})
	r := &s.rounds[len(s.rounds)-1]
	s.object(func(key []byte) {
		switch string(key) {
		case "round":
			r.Round = int(s.integer())
		case "trainLoss":
			r.TrainLoss, _ = s.float()
		case "loss":
			r.Loss = s.optional()
		case "accuracy":
			r.Accuracy = s.optional()
		case "trainAccuracy":
			r.TrainAccuracy = s.optional()
		case "durationMs":
			r.Duration = disdel.Millis(time.Duration(s.integer()) * time.Millisecond)
		case "rmse":
			r.RMSE, _ = s.float()
		case "auc":
			r.AUC, _ = s.float()
		case "mae":
			r.MAE, _ = s.float()
		case "perplexity":
			r.Perplexity, _ = s.float()
		case "r2":
			r.R2 = s.optional()
		case "f1":
			r.F1 = s.optional()
		case "microF1":
			r.MicroF1, _ = s.float()
		case "top5":
			r.Top5 = s.optional()
		default:
			s.other(key, "round", "trainLoss", "loss", "accuracy", "trainAccuracy", "durationMs", "rmse", "auc", "mae",
				"perplexity", "r2", "f1", "microF1", "top5")
		}
	})
}

// other skips a field, whose key has to be none of these in other letters: encoding/json would read it.
func (s *briefScan) other(key []byte, names ...string) {
	for _, name := range names {
		s.failed = s.failed || bytes.EqualFold(key, []byte(name))
	}
	s.skip()
}

// floatsAtOnce is how many values share an allocation.
const floatsAtOnce = 256

// optional reads a number that may be missing.
func (s *briefScan) optional() *float64 {
	v, there := s.float()
	if !there {
		return nil
	}
	if len(s.floats) == cap(s.floats) {
		s.floats = make([]float64, 0, floatsAtOnce)
	}
	s.floats = append(s.floats, v)
	return &s.floats[len(s.floats)-1]
}

// action reads an activation.
func (s *briefScan) action() {
	a := disdel.Activation{}
	s.object(func(key []byte) {
		switch string(key) {
		case "task":
			a.Task = disdel.Task(s.text())
		case "peakBytes":
			a.Peak = disdel.Bytes(s.integer())
		default:
			s.other(key, "task", "peakBytes")
		}
	})
	s.acts = append(s.acts, a)
}
