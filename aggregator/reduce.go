package aggregator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// Reduce computes the weighted mean of members (DiSDeL III-B.1) in their order, so equal members give equal bits. It
// works column by column and holds the result and a few columns, for any number of members. To members that are
// differences it adds the round's reference, which it reads once. The result has no id. It returns NotFound, Corrupt or
// Diverged with the member's name unless every byte of every member is valid; damage is counted.
func (s *Store) Reduce(ctx context.Context, members []disdel.UpdateID, like disdel.Weights) (disdel.Update, error) {
	if len(members) == 0 {
		return disdel.Update{}, &disdel.Error{Kind: disdel.Invalid, Op: "average updates", Msg: "there are none"}
	}
	defer s.connections.interruptAfter(ctx)()
	r := newReduction(s, members, like)
	err := r.readHeads(ctx)
	if err == nil {
		err = r.readColumns(ctx)
	}
	if err != nil {
		return disdel.Update{}, s.countDamage(ctx, members[0].Job, err)
	}
	return disdel.Update{Samples: r.total, Weights: r.layout.weightsOver(r.result)}, nil
}

// reduction is a Reduce in progress.
type reduction struct {
	store       *Store
	members     []disdel.UpdateID
	like        disdel.Weights
	layout      layout
	terms       []reductionTerm
	total       float64 // samples of all members
	differences float64 // samples of members that are differences
	sums        sums    // sums of one column
	runs        []int   // runs of that column
	waiting     []byte  // a column that is added together with the next one; nil: none
	space       scratch
	result      []float32
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
	r.result = make([]float32, r.layout.values())
	r.sums = make(sums, min(r.layout.column, len(r.result)))
	return r
}

// readHeads reads every member's head; a single column comes with it and is added at once. If there are differences,
// the reference is the last term.
func (r *reduction) readHeads(ctx context.Context) error {
	keys := r.store.keys
	fetch := func(ctx context.Context, i int, buf []byte) ([]byte, error) {
		return r.fetchHead(ctx, keys.value(kindUpdate, r.members[i]), buf, kindUpdate, r.members[i])
	}
	err := readAhead(ctx, len(r.members), r.headSize(), fetch, func(i int, data []byte) error {
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

// readColumns adds the terms column by column and writes the means. A single column was added with the heads.
func (r *reduction) readColumns(ctx context.Context) error {
	if r.layout.columns() == 1 {
		return r.finish(0)
	}
	n := len(r.terms)
	fetch := func(ctx context.Context, i int, buf []byte) ([]byte, error) {
		h := r.terms[i%n].head
		data, err := r.store.fetchPart(ctx, h, i/n, buf)
		return data, fetchError(err, h.kind, h.id)
	}
	use := func(i int, data []byte) error { return r.fold(i/n, i%n, data) }
	return readAheadKeeping(ctx, n*r.layout.columns(), r.columnSize()+bufferSpare, 1, fetch, use)
}

// longestColumn is the most bytes of column k in any format.
func (r *reduction) longestColumn(k int) int {
	longest, runs := 0, r.layout.runs(k)
	for _, row := range codecs {
		_, most := row.open(Format{}).size(runs)
		longest = max(longest, most)
	}
	return longest
}

// columnSize is the most bytes of a column of any term.
func (r *reduction) columnSize() int {
	size, seen := 0, map[disdel.Wire]bool{}
	for _, t := range r.terms {
		if !seen[t.head.wire] {
			seen[t.head.wire], size = true, max(size, r.layout.largest(t.head.codec))
		}
	}
	return size
}

// fold adds column k of term m, in the order of the terms, and writes the means after the last. Two plain columns in a
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
	s, from := r.column(k), k*r.layout.column
	a, b := column{before, r.terms[m-1].weight}, column{data, r.terms[m].weight}
	values, means := true, true
	switch last := m == len(r.terms)-1; {
	case m > 1 && last:
		values, means = s.lastTwo(r.result[from:from+len(s)], a, b, r.total)
	case m > 1:
		values = s.addTwo(a, b)
	default:
		values = s.setTwo(a, b)
		means = !values || !last || s.mean(r.result[from:from+len(s)], r.total)
	}
	switch {
	case !values:
		return cmp.Or(r.add(r.terms[m-1], k, before), r.add(r.terms[m], k, data)) // one of them finds the value
	case !means:
		return r.overflow(k)
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
	from, to := r.layout.columnRange(k)
	switch values, means := r.column(k).last(r.result[from:to], data, t.weight, r.total); {
	case !values:
		return r.add(t, k, data) // which finds the value
	case !means:
		return r.overflow(k)
	}
	return nil
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

// finish writes the means of column k. It refuses means that are not finite: a difference and its reference may be
// finite while their sum is not.
func (r *reduction) finish(k int) error {
	from, to := r.layout.columnRange(k)
	if r.sums.mean(r.result[from:to], r.total) {
		return nil
	}
	return r.overflow(k)
}

// overflow is the error of means that are not finite.
func (r *reduction) overflow(k int) error {
	from, to := r.layout.columnRange(k)
	return &disdel.Error{
		Kind: disdel.Diverged, Op: "average updates", Job: r.members[0].Job,
		Msg:  r.layout.valueName(from+max(0, notFinite(r.result[from:to]))) + " of the mean is not finite",
		Hint: "lower the learning rate",
	}
}
