package aggregator

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/disdel/disdel"
)

// Join concatenates the updates of stages to an update of the whole network. The tensors of all stages, in order, must
// equal what.Like in name and shape. Join holds a few columns, as Reduce does. The samples are those of the first
// member. CommitMean makes the result visible. Join returns Invalid for updates in another format than float32, and the errors of Reduce.
func (s *Store) Join(ctx context.Context, c Claim, what Reduction) (Mean, error) {
	defer s.connections.interruptAfter(ctx)()
	heads, bodies, err := s.stageHeads(ctx, what)
	if err != nil {
		return Mean{}, s.countDamage(ctx, c.ID.Job, err)
	}
	r := newReduction(s, what.Members, what.Like)
	r.total = heads[0].samples
	m := Mean{Samples: r.total, work: c}
	if m.staged, err = s.begin(ctx, r.head(c, what.Reference)); err != nil {
		return Mean{}, wrap(err, "join stages", c.ID.String())
	}
	if err := s.writeJoined(ctx, &m, heads, bodies); err != nil {
		s.discard(ctx, c.ID.Job, m.staged.entry())
		return Mean{}, s.countDamage(ctx, c.ID.Job, wrap(err, "join stages", c.ID.String()))
	}
	return m, nil
}

// stageHeads reads the heads of the members, and their columns where they have only one. All tensors together must be
// those that are expected.
func (s *Store) stageHeads(ctx context.Context, what Reduction) (heads []*head, bodies [][]byte, err error) {
	var all disdel.Weights
	for _, id := range what.Members {
		h, body, err := s.open(ctx, kindUpdate, id, nil)
		if err != nil {
			return nil, nil, err
		}
		if h.difference || !h.codec.plain() {
			return nil, nil, &disdel.Error{
				Kind: disdel.Invalid, Op: "join stages", Job: id.Job, Msg: fmt.Sprintf("%v is not float32", id),
			}
		}
		heads, bodies, all = append(heads, h), append(bodies, body), append(all, h.layout.tensors...)
	}
	same := func(a, b disdel.Tensor) bool { return a.Name == b.Name && slices.Equal(a.Shape, b.Shape) }
	if !slices.EqualFunc(all, what.Like, same) {
		return nil, nil, corruptError(kindUpdate, what.Members[0], "the stages have other arrays than the network")
	}
	return heads, bodies, nil
}

// writeJoined writes the values of all members as the columns of one value.
func (s *Store) writeJoined(ctx context.Context, m *Mean, heads []*head, bodies [][]byte) error {
	layout := m.staged.head.layout
	column := make([]float32, 0, layout.longest())
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	emit := func(_ int, full []float32) ([]float32, error) {
		m.body = floatBytes(full)
		m.staged.head.sums[0] = crc32.Checksum(m.body, castagnoli)
		return nil, nil
	}
	wait := func() {}
	if !m.staged.head.inline() {
		w := newColumnWriter(s, m.staged, stop)
		emit, wait = func(k int, full []float32) ([]float32, error) { return w.write(ctx, k, full) }, w.wait
	}
	k := 0
	add := func(values []float32) (err error) {
		for len(values) > 0 {
			n := min(len(values), cap(column)-len(column))
			column, values = append(column, values[:n]...), values[n:]
			if from, to := layout.columnRange(k); len(column) == to-from {
				if column, err = emit(k, column); err != nil {
					return err
				}
				column, k = column[:0], k+1
			}
		}
		return nil
	}
	var err error
	for i, h := range heads {
		if err = s.streamColumns(ctx, h, bodies[i], add); err != nil {
			break
		}
	}
	wait()
	if ctx.Err() != nil { // a write failed, or the caller gave up
		return context.Cause(ctx)
	}
	return err
}
