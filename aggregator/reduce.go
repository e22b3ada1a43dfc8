package aggregator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// Reduction is what Store.Reduce averages, and what the mean is for.
type Reduction struct {
	Members []disdel.UpdateID // of one round, at least one; they are added in this order
	Like    disdel.Weights    // names and shapes of every member; its data is ignored
	// Reference makes the mean the reference of the next round. Otherwise it is the update that is claimed.
	Reference bool
	// Shard is the part of the values to average; the zero value is all. With Reference, the mean is a shard of the next
	// reference, which Store.JoinShards publishes.
	Shard Shard
	// Adjust changes values of the mean before they are stored. It gets a part of one tensor at a time, in order. nil
	// changes nothing.
	Adjust func(tensor string, values []float32)
}

// Mean is a weighted mean in the store that nobody can read before CommitMean.
type Mean struct {
	Samples float64 // of all members

	staged stagedValue
	body   []byte // the only column, which follows the head; nil: the columns are in the store
	work   Claim
}

// Reduce computes the weighted mean of members (DiSDeL III-B.1) in their order, so equal members give equal bits. It
// works column by column and writes the columns of the mean while it reads the next ones. It holds a few columns, for
// any number of members and weights of any size. To members that are differences it adds the round's reference, which
// it reads once. CommitMean makes the mean visible. Reduce returns NotFound, Corrupt or Diverged with the member's name
// unless every byte of every member is valid; damage is counted. It returns OverLimit if Redis is out of memory.
func (s *Store) Reduce(ctx context.Context, c Claim, what Reduction) (Mean, error) {
	if len(what.Members) == 0 {
		return Mean{}, &disdel.Error{Kind: disdel.Invalid, Op: "average updates", Msg: "there are none"}
	}
	defer s.connections.interruptAfter(ctx)()
	r := newReduction(s, what.Members, what.Like)
	r.adjust, r.shard = what.Adjust, what.Shard
	if err := what.Shard.check(r.layout); err != nil {
		return Mean{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "average updates", Job: c.ID.Job, Msg: err.Error(),
			Hint: "use fewer shards",
		}
	}
	err := r.readHeads(ctx)
	if err != nil {
		return Mean{}, s.countDamage(ctx, what.Members[0].Job, err)
	}
	m := Mean{Samples: r.total, work: c}
	m.staged, err = s.begin(ctx, r.head(c, what.Reference))
	if err != nil {
		return Mean{}, wrap(err, "average updates", c.ID.String())
	}
	if err := r.writeMean(ctx, &m); err != nil {
		s.discard(ctx, c.ID.Job, m.staged.entry())
		return Mean{}, s.countDamage(ctx, what.Members[0].Job, err)
	}
	return m, nil
}

// CommitMean makes a mean of Reduce visible under its claim, as an update or as the next round's reference; afterwards
// the claim's update counts as committed. Its errors are those of PushUpdate and PutReference, and Conflict if the claim
// is lost.
func (s *Store) CommitMean(ctx context.Context, m Mean) error {
	defer s.connections.interruptAfter(ctx)()
	if err := s.writeHead(ctx, m.staged, m.body); err != nil {
		s.discard(ctx, m.work.ID.Job, m.staged.entry())
		return wrap(err, "push "+m.staged.head.kind.String(), m.staged.head.id.String())
	}
	return s.commit(ctx, m.staged, m.work.ID, m.work.Fence)
}

// reduction is a Reduce in progress.
type reduction struct {
	store       *Store
	members     []disdel.UpdateID
	like        disdel.Weights
	layout      layout
	shard       Shard
	terms       []reductionTerm
	total       float64 // samples of all members
	differences float64 // samples of members that are differences
	sums        sums    // sums of one column
	runs        []int   // runs of that column
	waiting     []byte  // a column that is added together with the next one; nil: none
	space       scratch
	means       []float32 // of one column
	adjust      func(tensor string, values []float32)
	emit        func(k int, means []float32) (next []float32, err error) // takes the means of column k for another buffer
}

// reductionTerm is a value and its weight in the sum.
type reductionTerm struct {
	head   *head
	weight float64
}

// plain tells whether the values can be added directly.
func (t reductionTerm) plain() bool { return t.head.codec.plain() }

func newReduction(s *Store, members []disdel.UpdateID, like disdel.Weights) *reduction {
	r := &reduction{store: s, members: members, like: like, layout: newLayout(like, s.column)}
	longest := r.layout.longest()
	r.sums, r.means = make(sums, longest), make([]float32, longest)
	return r
}

// head is the head of the mean.
func (r *reduction) head(c Claim, reference bool) *head {
	h := &head{
		kind: kindUpdate, id: c.ID, attempt: c.Attempt, fence: c.Fence, samples: r.total, wire: disdel.WireFloat32,
		codec: float32s{}, layout: r.layout, division: division{Shard: r.shard},
	}
	switch {
	case reference && r.shard.Count > 1:
		h.kind, h.id.Round = kindShard, c.ID.Round+1
	case reference:
		h.kind, h.id, h.attempt, h.samples = kindReference, referenceID(c.ID.Job, c.ID.Round+1), 0, 1
	}
	return h
}

// writeMean computes the mean and writes its columns; a single one stays in m.
func (r *reduction) writeMean(ctx context.Context, m *Mean) error {
	if m.staged.head.inline() {
		r.emit = func(_ int, means []float32) ([]float32, error) {
			m.body = floatBytes(means)
			m.staged.head.sums[0] = crc32.Checksum(m.body, castagnoli)
			return nil, nil
		}
		return r.finish(0)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := newColumnWriter(r.store, m.staged, stop)
	r.emit = func(k int, means []float32) ([]float32, error) { return w.write(ctx, k, means) }
	err := r.readColumns(ctx)
	w.wait()
	if ctx.Err() != nil { // a write failed, which ended the reads, or the caller gave up
		err = context.Cause(ctx)
	}
	return wrap(err, "average updates", m.work.ID.String())
}

// readHeads reads every member's head; a single column comes with it and is added at once. If there are differences,
// the reference is the last term.
func (r *reduction) readHeads(ctx context.Context) error {
	keys := r.store.keys
	fetch := func(ctx context.Context, i int, buf []byte) ([]byte, error) {
		return r.fetchHead(ctx, keys.value(kindUpdate, r.members[i]), buf, kindUpdate, r.members[i])
	}
	err := readAhead(ctx, len(r.members), alike(r.headSize()), fetch, func(i int, data []byte) error {
		return r.begin(kindUpdate, r.members[i], data)
	})
	if err != nil || r.differences == 0 {
		return err
	}
	id := referenceID(r.members[0].Job, r.members[0].Round)
	data, err := r.fetchHead(ctx, keys.value(kindReference, id), make([]byte, r.headSize()), kindReference, id)
	if err != nil {
		return noReference(err, id.Job, id.Round)
	}
	return r.begin(kindReference, id, data)
}

// headSize is the buffer for a head of the expected shapes, with its column if there is only one. Spare room lets a
// head of slightly different shapes be read and reported.
func (r *reduction) headSize() int {
	n := fixedHead + maxJob + 4*r.layout.columns() + 1<<14 + bufferSpare
	for _, t := range r.like {
		n += 3 + len(t.Name) + 4*len(t.Shape)
	}
	if r.layout.columns() == 1 {
		n += r.longestColumn(0)
	}
	return n
}

func (r *reduction) fetchHead(ctx context.Context, key string, buf []byte, k kind, id disdel.UpdateID) ([]byte, error) {
	data, err := r.store.fetch(ctx, r.store.client, key, buf)
	if isTooLong(err) {
		data, err = r.store.fetch(ctx, r.store.client, key, make([]byte, len(buf)+maxMeta))
	}
	if isTooLong(err) {
		return nil, corruptError(k, id, "it is longer than one of this network")
	}
	return data, fetchError(err, k, id)
}

// maxMeta bounds Meta, for example a loss for every epoch of a long round. OpenWhisk does not return larger results. A
// head that is too long for its buffer is read again with this much more room.
const maxMeta = 1 << 20

// isTooLong reports whether a value was longer than the buffer for it. go-redis has no type for this error.
func isTooLong(err error) bool {
	return err != nil && !errors.Is(err, redis.Nil) && strings.Contains(err.Error(), "buffer too small")
}

// begin checks a head and adds it to the terms.
func (r *reduction) begin(k kind, id disdel.UpdateID, data []byte) error {
	h, body, err := decodeHead(data, k, id, r.like)
	if err != nil {
		return err
	}
	if h.layout.column != r.layout.column {
		return corruptError(k, id, "columns of %d values, not %d", h.layout.column, r.layout.column)
	}
	if s := h.division.Shard; s != (Shard{}) && s != r.shard {
		return corruptError(k, id, "it is shard %d of %d, not %d of %d", s.Index, s.Count, r.shard.Index, r.shard.Count)
	}
	if id.Job != r.members[0].Job || id.Round != r.members[0].Round {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "average updates", Job: id.Job,
			Msg: fmt.Sprintf("%v and %v are of different rounds", id, r.members[0]),
		}
	}
	t := reductionTerm{head: h, weight: h.samples}
	switch {
	case k == kindReference:
		t.weight = r.differences
	case h.difference:
		r.differences += h.samples
		fallthrough
	default:
		r.total += h.samples
	}
	h.layout, h.meta = r.layout, nil // equal to r.layout; meta is not needed
	r.terms = append(r.terms, t)
	if !h.inline() {
		return nil
	}
	if err := h.checkColumn(0, body); err != nil {
		return err
	}
	r.runs = r.layout.runs(0)
	return r.add(t, 0, body)
}

// readColumns adds the terms column by column and emits the means.
func (r *reduction) readColumns(ctx context.Context) error {
	n := len(r.terms)
	from, to := r.shard.columns(r.layout)
	fetch := func(ctx context.Context, i int, buf []byte) ([]byte, error) {
		h := r.terms[i%n].head
		data, err := r.store.fetchPart(ctx, h, from+i/n, buf)
		return data, fetchError(err, h.kind, h.id)
	}
	use := func(i int, data []byte) error { return r.fold(from+i/n, i%n, data) }
	return readAheadKeeping(ctx, n*(to-from), alike(r.columnSize()+bufferSpare), 1, fetch, use)
}

// longestColumn is the most bytes of column k in any format.
func (r *reduction) longestColumn(k int) int {
	longest, runs := 0, r.layout.runs(k)
	for _, row := range codecs {
		_, maximum := row.open(Format{}).size(runs)
		longest = max(longest, maximum)
	}
	return longest
}

// columnSize is the most bytes of a column of any term.
func (r *reduction) columnSize() int {
	size, seen := 0, map[disdel.Wire]bool{}
	for _, t := range r.terms {
		if !seen[t.head.wire] {
			seen[t.head.wire], size = true, max(size, r.layout.largest(t.head.codec, 0, 1))
		}
	}
	return size
}

// fold adds column k of term m, in the order of the terms, and emits the means after the last. Two plain columns in a
// row are added in one pass.
func (r *reduction) fold(k, m int, data []byte) error {
	n, t := len(r.terms), r.terms[m]
	if m == 0 {
		r.runs = r.layout.runs(k)
	}
	switch waiting := r.waiting; {
	case waiting != nil:
		r.waiting = nil
		return r.foldTwo(k, m, waiting, data)
	case t.plain() && m+1 < n && r.terms[m+1].plain():
		r.waiting = data
		return nil
	case t.plain() && m > 0 && m == n-1:
		return r.addLast(t, k, data)
	case t.plain() && m == 0:
		if !r.column(k).set(data, t.weight) {
			return r.add(t, k, data) // which finds the value
		}
	default:
		if m == 0 {
			clear(r.sums)
		}
		if err := r.add(t, k, data); err != nil {
			return err
		}
	}
	if m < n-1 {
		return nil
	}
	return r.finish(k)
}

// foldTwo adds column k of terms m-1 and m, which are plain.
func (r *reduction) foldTwo(k, m int, before, data []byte) error {
	s := r.column(k)
	a, b := column{before, r.terms[m-1].weight}, column{data, r.terms[m].weight}
	values, means := true, true
	last := m == len(r.terms)-1
	switch {
	case m > 1 && last:
		values, means = s.lastTwo(r.means[:len(s)], a, b, r.total)
	case m > 1:
		values = s.addTwo(a, b)
	default:
		values = s.setTwo(a, b)
		means = !values || !last || s.mean(r.means[:len(s)], r.total)
	}
	switch {
	case !values:
		return cmp.Or(r.add(r.terms[m-1], k, before), r.add(r.terms[m], k, data)) // one of them finds the value
	case last:
		return r.deliver(k, means)
	}
	return nil
}

// column is the sums of column k.
func (r *reduction) column(k int) sums {
	from, to := r.layout.columnRange(k)
	return r.sums[:to-from]
}

// addLast adds the column of the last term and writes the means.
func (r *reduction) addLast(t reductionTerm, k int, data []byte) error {
	s := r.column(k)
	values, means := s.last(r.means[:len(s)], data, t.weight, r.total)
	if !values {
		return r.add(t, k, data) // which finds the value
	}
	return r.deliver(k, means)
}

// add adds a checked column of a term.
func (r *reduction) add(t reductionTerm, k int, data []byte) error {
	bad, err := t.head.codec.add(r.column(k), column{data, t.weight}, r.runs, &r.space)
	switch {
	case err != nil:
		return corruptError(t.head.kind, t.head.id, "column %d: %v", k, err)
	case bad >= 0:
		return notFiniteError(t.head.kind, t.head.id, r.layout.valueName(k*r.layout.column+bad))
	}
	return nil
}

// finish computes the means of column k from its sums, and emits them.
func (r *reduction) finish(k int) error {
	s := r.column(k)
	return r.deliver(k, s.mean(r.means[:len(s)], r.total))
}

// deliver adjusts and emits the means of column k. It refuses means that are not finite: a difference and its reference
// may be finite while their sum is not.
func (r *reduction) deliver(k int, finite bool) error {
	from, to := r.layout.columnRange(k)
	means := r.means[:to-from]
	if !finite {
		return &disdel.Error{
			Kind: disdel.Diverged, Op: "average updates", Job: r.members[0].Job,
			Msg:  r.layout.valueName(from+max(0, notFinite(means))) + " of the mean is not finite",
			Hint: "lower the learning rate",
		}
	}
	if r.adjust != nil {
		rest := means
		for p := range r.layout.pieces(k) {
			r.adjust(r.layout.tensors[p.tensor].Name, rest[:p.to-p.from])
			rest = rest[p.to-p.from:]
		}
	}
	var err error
	r.means, err = r.emit(k, means)
	return err
}
