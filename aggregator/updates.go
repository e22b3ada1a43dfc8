package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/disdel/disdel"
)

// damaged tells whether err is about a damaged value.
func damaged(err error) bool {
	return errors.Is(err, disdel.Corrupt) || errors.Is(err, disdel.Diverged)
}

// PushUpdate stores an update as float32 and commits it under its fence. Pushing the same content again changes
// nothing. Fence 0 means that nobody claims the update; then the last one counts. It returns Invalid for samples that
// are not above 0, and Diverged for values that are not finite. It returns OverLimit if Redis is out of memory, and
// Conflict if another attempt has the claim or committed something else. It needs memory for a few columns.
func (s *Store) PushUpdate(ctx context.Context, u disdel.Update) error {
	h, err := s.headOf(kindUpdate, u.ID, u.Weights)
	if err != nil {
		return err
	}
	h.attempt, h.fence, h.samples, h.meta = u.Attempt, u.Fence, u.Samples, u.Meta
	return s.publish(ctx, h, fromWeights(h, u.Weights), u.ID, u.Fence)
}

// PushInBlocks is PushUpdate for a worker without memory for a copy of its weights: u.Weights are names and shapes.
// read sets dst to the values of a tensor from an index on. Several goroutines call it, and it reads each value twice.
func (s *Store) PushInBlocks(ctx context.Context, u disdel.Update, read func(dst []float32, tensor, from int)) error {
	h := &head{
		kind: kindUpdate, id: u.ID, attempt: u.Attempt, fence: u.Fence, samples: u.Samples, meta: u.Meta,
		wire: disdel.WireFloat32, codec: float32s{}, layout: newLayout(u.Weights, s.column),
	}
	gather := func(values []float32, k int) []float32 {
		values = values[:0]
		for p := range h.layout.pieces(k) {
			n := p.to - p.from
			values = values[:len(values)+n]
			read(values[len(values)-n:], p.tensor, p.from)
		}
		return values
	}
	for i, t := range h.layout.tensors {
		if k := firstNotFinite(h.layout.starts[i+1]-h.layout.starts[i], i, read); k >= 0 {
			return notFiniteError(h.kind, h.id, fmt.Sprintf("value %d of %s", k, t.Name))
		}
	}
	columns := func(dst []byte, values []float32, k int) []byte { return appendFloats(dst[:0], gather(values, k)) }
	return s.publish(ctx, h, columns, u.ID, u.Fence)
}

// firstNotFinite returns the index of the first of n values of a tensor that is not finite, or -1. It holds few at a
// time.
func firstNotFinite(n, tensor int, read func(dst []float32, tensor, from int)) int {
	values := make([]float32, min(n, 1<<16))
	for from := 0; from < n; from += len(values) {
		part := values[:min(len(values), n-from)]
		read(part, tensor, from)
		if i := notFinite(part); i >= 0 {
			return from + i
		}
	}
	return -1
}

// PushEncoded stores an update that Feedback encoded; it ignores u.Weights. Its errors are those of PushUpdate.
func (s *Store) PushEncoded(ctx context.Context, u disdel.Update, e *Encoded) error {
	h := &head{
		kind: kindUpdate, id: u.ID, attempt: u.Attempt, fence: u.Fence, samples: u.Samples,
		wire: e.wire, codec: codecOf(e.wire), difference: true, layout: e.layout, meta: u.Meta,
	}
	return s.publish(ctx, h, func(_ []byte, _ []float32, k int) []byte { return e.columns[k] }, u.ID, u.Fence)
}

// publish stages a value and commits it.
func (s *Store) publish(ctx context.Context, h *head, columns source, work disdel.UpdateID, fence uint64) error {
	t, err := s.stage(ctx, h, columns)
	if err != nil {
		return wrap(err, "push "+h.kind.String(), h.id.String())
	}
	return s.commit(ctx, t, work, fence)
}

// FetchUpdate reads an update and checks it against the names and shapes of like. It adds a difference to the round's
// reference. It returns NotFound if it was not pushed, and Corrupt or Diverged, which are counted, if it is damaged.
func (s *Store) FetchUpdate(ctx context.Context, id disdel.UpdateID, like disdel.Weights) (disdel.Update, error) {
	h, inline, err := s.open(ctx, kindUpdate, id, like)
	if err != nil {
		return disdel.Update{}, s.countDamage(ctx, id.Job, err)
	}
	u := disdel.Update{ID: id, Attempt: h.attempt, Fence: h.fence, Samples: h.samples, Meta: h.meta}
	if u.Weights, err = s.load(ctx, h, inline); err != nil {
		return disdel.Update{}, s.countDamage(ctx, id.Job, err)
	}
	if !h.difference {
		return u, nil
	}
	reference, err := s.Reference(ctx, id.Job, id.Round, like)
	if err != nil {
		return disdel.Update{}, err
	}
	for i, t := range u.Weights {
		for k := range t.Data {
			t.Data[k] += reference[i].Data[k]
		}
		if k := notFinite(t.Data); k >= 0 {
			return disdel.Update{}, s.countDamage(ctx, id.Job,
				notFiniteError(kindUpdate, id, fmt.Sprintf("value %d of %s", k, t.Name)))
		}
	}
	return u, nil
}

// UpdateMeta reads Samples and Meta of an update without its values. Its errors are those of FetchUpdate.
func (s *Store) UpdateMeta(ctx context.Context, id disdel.UpdateID) (disdel.Update, error) {
	h, _, err := s.open(ctx, kindUpdate, id, nil)
	if err != nil {
		return disdel.Update{}, s.countDamage(ctx, id.Job, err)
	}
	return disdel.Update{ID: id, Attempt: h.attempt, Fence: h.fence, Samples: h.samples, Meta: h.meta}, nil
}

// ResultKey is the key in Meta of the train action's result.
const ResultKey = "result"

// Delivered returns the result that a committed update carries: a TrainResult, or an AggregateResult for a mean. It
// returns false if no update is committed.
func (s *Store) Delivered(ctx context.Context, id disdel.UpdateID) (result json.RawMessage, there bool, err error) {
	u, err := s.UpdateMeta(ctx, id)
	if errors.Is(err, disdel.NotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if id.Level == 0 {
		text := u.Meta[ResultKey]
		return json.RawMessage(text), json.Valid([]byte(text)), nil
	}
	result, err = json.Marshal(disdel.AggregateResult{Weight: u.Samples, Duplicate: true})
	return result, err == nil, wrap(err, "read update", id.String())
}

// referenceID is the id of a reference, at a level that no tree reaches.
func referenceID(job disdel.JobID, round int) disdel.UpdateID {
	return disdel.UpdateID{Job: job, Round: round, Level: 1<<31 - 1}
}

// PutReference publishes the weights that round starts from without a claim: a job's first ones, or a checkpoint's.
// Publishing the same weights again changes nothing. It returns Conflict for other weights, and for a round that does
// not follow the newest one. Without a reference any round is allowed.
func (s *Store) PutReference(ctx context.Context, job disdel.JobID, round int, w disdel.Weights) error {
	h, err := s.headOf(kindReference, referenceID(job, round), w)
	if err != nil {
		return err
	}
	return s.publish(ctx, h, fromWeights(h, w), h.id, 0)
}

// Reference reads the weights that round starts from and checks them against like. It returns NotFound before they are
// published, and Corrupt or Diverged if they are damaged.
func (s *Store) Reference(ctx context.Context, job disdel.JobID, round int, like disdel.Weights) (disdel.Weights,
	error,
) {
	h, inline, err := s.open(ctx, kindReference, referenceID(job, round), like)
	if err != nil {
		return nil, s.countDamage(ctx, job, noReference(err, job, round))
	}
	w, err := s.load(ctx, h, inline)
	if err != nil {
		return nil, s.countDamage(ctx, job, err)
	}
	return w, nil
}

// StreamReference reads the weights that round starts from in blocks. It calls take with the values of all tensors in
// a row; a block is valid until take returns. It holds a few columns, and needs no memory for the weights. Its errors
// are those of Reference and take; blocks before a damaged one were taken already.
func (s *Store) StreamReference(ctx context.Context, job disdel.JobID, round int, like disdel.Weights,
	take func(block []float32) error,
) error {
	return s.StreamReferencePart(ctx, job, round, like, 0, math.MaxInt, take)
}

// StreamReferencePart is StreamReference for the values from (included) to (not) of all tensors in a row. It reads only
// the columns that have some of them.
func (s *Store) StreamReferencePart(ctx context.Context, job disdel.JobID, round int, like disdel.Weights, from, to int,
	take func(block []float32) error,
) error {
	defer s.connections.interruptAfter(ctx)()
	h, inline, err := s.open(ctx, kindReference, referenceID(job, round), like)
	if err != nil {
		return s.countDamage(ctx, job, noReference(err, job, round))
	}
	return s.countDamage(ctx, job, s.streamPart(ctx, h, inline, from, to, take))
}

func noReference(err error, job disdel.JobID, round int) error {
	if errors.Is(err, disdel.NotFound) {
		return &disdel.Error{
			Kind: disdel.NotFound, Code: disdel.CodeLostReference, Op: "fetch reference", Job: job,
			Subject: kindReference.subject(referenceID(job, round)),
			Msg:     fmt.Sprintf("%s round %d", job, round),
		}
	}
	return err
}

// PutState stores a worker's own state under a claim. The worker continues from it in its next segment, after a
// failure, or, under the next round's id, in the next round. There is one state for each worker, round and level; a new
// one replaces it. meta has what is not a tensor, such as the position in the data. It returns Conflict if the claim is
// lost, and the errors of PushUpdate. The claim may be of another round than id.
func (s *Store) PutState(ctx context.Context, id disdel.UpdateID, c Claim, meta map[string]string,
	tensors disdel.Weights,
) error {
	h, err := s.headOf(kindState, id, tensors)
	if err != nil {
		return err
	}
	h.attempt, h.fence, h.meta = c.Attempt, c.Fence, meta
	return s.publish(ctx, h, fromWeights(h, tensors), c.ID, c.Fence)
}

// State reads a state that PutState stored. Names and shapes must be those of like, unless like is nil. It returns
// NotFound, and Corrupt or Diverged if it is damaged.
func (s *Store) State(ctx context.Context, id disdel.UpdateID, like disdel.Weights) (map[string]string, disdel.Weights,
	error,
) {
	h, inline, err := s.open(ctx, kindState, id, like)
	if err != nil {
		return nil, nil, s.countDamage(ctx, id.Job, err)
	}
	w, err := s.load(ctx, h, inline)
	if err != nil {
		return nil, nil, s.countDamage(ctx, id.Job, err)
	}
	return h.meta, w, nil
}

// StateSource is a state whose tensors are produced one at a time.
type StateSource struct {
	Tensors disdel.Weights        // names and shapes without data
	Read    func(i int) []float32 // returns the values of tensor i, valid until the next call
}

// WriteState is PutState for a worker without memory for a copy of its state. It reads a tensor several times and holds
// a few columns.
func (s *Store) WriteState(ctx context.Context, id disdel.UpdateID, c Claim, meta map[string]string,
	from StateSource,
) error {
	h := &head{
		kind: kindState, id: id, attempt: c.Attempt, fence: c.Fence, samples: 1,
		wire: disdel.WireFloat32, codec: float32s{},
		layout: newLayout(from.Tensors, s.column), meta: meta,
	}
	for i, t := range from.Tensors {
		values := from.Read(i)
		if n := h.layout.starts[i+1] - h.layout.starts[i]; len(values) != n {
			return &disdel.Error{
				Kind: disdel.Invalid, Op: "write state", Job: id.Job,
				Msg: fmt.Sprintf("tensor %s of %v has %d values", t.Name, t.Shape, len(values)),
			}
		}
		if k := notFinite(values); k >= 0 {
			return notFiniteError(kindState, id, fmt.Sprintf("value %d of %s", k, t.Name))
		}
	}
	r := tensorReader{layout: h.layout, read: from.Read, at: -1}
	columns := func(dst []byte, values []float32, k int) []byte {
		return appendFloats(dst[:0], r.gather(values, k))
	}
	return s.publish(ctx, h, columns, c.ID, c.Fence)
}

// tensorReader reads tensors one at a time for several goroutines.
type tensorReader struct {
	sync.Mutex
	layout layout
	read   func(i int) []float32
	at     int // index of the tensor in values; -1: none
	values []float32
}

// gather copies column k into dst and returns it.
func (r *tensorReader) gather(dst []float32, k int) []float32 {
	r.Lock()
	defer r.Unlock()
	dst = dst[:0]
	for p := range r.layout.pieces(k) {
		if p.tensor != r.at {
			r.at, r.values = p.tensor, r.read(p.tensor)
		}
		dst = append(dst, r.values[p.from:p.to]...)
	}
	return dst
}

// ReadState reads a state one tensor at a time. It calls begin with the state's meta, and then the returned take with
// each tensor, whose data is valid until take returns. If take is nil it reads nothing more. Its errors are those of
// State, begin and take; tensors before a damaged one were taken already.
func (s *Store) ReadState(ctx context.Context, id disdel.UpdateID,
	begin func(meta map[string]string) (take func(disdel.Tensor) error, err error),
) error {
	defer s.connections.interruptAfter(ctx)()
	h, inline, err := s.open(ctx, kindState, id, nil)
	if err == nil {
		err = s.streamTensors(ctx, h, inline, begin)
	}
	return s.countDamage(ctx, id.Job, err)
}

func (s *Store) streamTensors(ctx context.Context, h *head, inline []byte,
	begin func(map[string]string) (func(disdel.Tensor) error, error),
) error {
	take, err := begin(h.meta)
	if err != nil || take == nil {
		return err
	}
	l, largest := h.layout, 0
	for i := range l.tensors {
		largest = max(largest, l.starts[i+1]-l.starts[i])
	}
	a := tensorBuilder{layout: l, take: take, values: make([]float32, 0, largest)}
	return s.streamColumns(ctx, h, inline, a.add)
}

// streamColumns calls use with the values of every column, in order. They are valid until use returns.
func (s *Store) streamColumns(ctx context.Context, h *head, inline []byte, use func(column []float32) error) error {
	return s.streamPart(ctx, h, inline, 0, math.MaxInt, use)
}

// streamPart is streamColumns for the values from begin (included) to end (not).
func (s *Store) streamPart(ctx context.Context, h *head, inline []byte, begin, end int,
	use func(values []float32) error,
) error {
	l := h.layout
	if begin = max(0, begin); begin >= end {
		return nil
	}
	values := make([]float32, l.longest())
	add := func(k int, data []byte) error {
		from, to := l.columnRange(k)
		if err := h.decodeColumn(values[:to-from], k, data); err != nil {
			return err
		}
		return use(values[max(begin-from, 0) : min(end, to)-from])
	}
	if h.inline() {
		if err := h.checkColumn(0, inline); err != nil {
			return err
		}
		return add(0, inline)
	}
	first, last := begin/l.column, (min(end, l.values())-1)/l.column
	fetch := func(ctx context.Context, k int, buf []byte) ([]byte, error) {
		data, err := s.fetchPart(ctx, h, first+k, buf)
		return data, fetchError(err, h.kind, h.id)
	}
	size := func(reader int) int { return l.largest(h.codec, first+reader, readDepth) + bufferSpare }
	return readAhead(ctx, last-first+1, size, fetch,
		func(k int, data []byte) error { return add(first+k, data) })
}

// tensorBuilder assembles tensors from columns.
type tensorBuilder struct {
	layout layout
	take   func(disdel.Tensor) error
	next   int       // index of the tensor being assembled
	values []float32 // its values so far
}

func (a *tensorBuilder) add(column []float32) error {
	l := a.layout
	for a.next < len(l.tensors) {
		size := l.starts[a.next+1] - l.starts[a.next]
		n := min(size-len(a.values), len(column))
		a.values, column = append(a.values, column[:n]...), column[n:]
		if len(a.values) < size {
			return nil
		}
		t := l.tensors[a.next]
		t.Data = a.values
		if err := a.take(t); err != nil {
			return err
		}
		a.next, a.values = a.next+1, a.values[:0]
	}
	return nil
}
