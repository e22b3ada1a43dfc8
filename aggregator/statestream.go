package aggregator

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/disdel/disdel"
)

// StateSource is a state whose tensors are made one at a time.
type StateSource struct {
	Tensors disdel.Weights        // their names and shapes; they have no data
	Read    func(i int) []float32 // the values of tensor i, good until it is called again
}

// WriteState is PutState for a worker that has no room for a copy of its state. It reads a tensor more than once, and
// holds a few columns.
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
			return nonFinite(kindState, id, fmt.Sprintf("value %d of %s", k, t.Name))
		}
	}
	r := borrowed{layout: h.layout, read: from.Read, at: -1}
	columns := func(dst []byte, values []float32, k int) []byte {
		return appendFloats(dst[:0], r.gather(values, k))
	}
	return s.publish(ctx, h, columns, c.ID, c.Fence)
}

// borrowed reads tensors one at a time for several writers.
type borrowed struct {
	sync.Mutex
	layout layout
	read   func(i int) []float32
	at     int // which tensor values are; -1: none yet
	values []float32
}

// gather copies column k into dst and returns it.
func (r *borrowed) gather(dst []float32, k int) []float32 {
	r.Lock()
	defer r.Unlock()
	l := r.layout
	from, to := l.span(k)
	dst = dst[:0]
	i, _ := slices.BinarySearch(l.starts, from+1)
	for i--; from < to; i++ {
		end := min(to, l.starts[i+1])
		if end > from && i != r.at {
			r.at, r.values = i, r.read(i)
		}
		if end > from {
			dst = append(dst, r.values[from-l.starts[i]:end-l.starts[i]]...)
		}
		from = max(from, end)
	}
	return dst
}

// ReadState reads what was stored for a round and worker, one tensor at a time: begin is told what PutState's meta
// said, and gives what takes the tensors in their order; the data of each is good until take returns. Where take is nil
// nothing more is read. Errors are State's, and those of begin and take; tensors before the damage have been taken by
// then.
func (s *Store) ReadState(ctx context.Context, id disdel.UpdateID,
	begin func(meta map[string]string) (take func(disdel.Tensor) error, err error),
) error {
	defer s.lines.with(ctx)()
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
	a := assembly{
		head: h, take: take, column: make([]float32, min(l.column, l.values())),
		values: make([]float32, 0, largest),
	}
	if h.inline() {
		if err := h.checkColumn(0, inline); err != nil {
			return err
		}
		return a.add(0, inline)
	}
	fetch := func(ctx context.Context, k int, buf []byte) ([]byte, error) {
		data, err := s.fetchPart(ctx, h, k, buf)
		return data, unread(err, h.kind, h.id)
	}
	return ahead(ctx, l.columns(), l.largest(h.codec)+spare, fetch, a.add)
}

// assembly makes tensors of columns.
type assembly struct {
	head   *head
	take   func(disdel.Tensor) error
	column []float32
	next   int       // tensor
	values []float32 // of it, as far as they came
}

func (a *assembly) add(k int, data []byte) error {
	h, l := a.head, a.head.layout
	from, to := l.span(k)
	column := a.column[:to-from]
	if err := h.codec.decode(column, l.runs(k), data); err != nil {
		return refuse(h.kind, h.id, "column %d: %v", k, err)
	}
	if i := notFinite(column); i >= 0 {
		return nonFinite(h.kind, h.id, l.at(from+i))
	}
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
