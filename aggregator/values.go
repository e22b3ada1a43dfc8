package aggregator

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/safetensors"
)

// source returns the bytes of column k, in dst if they fit.
type source func(dst []byte, values []float32, k int) []byte

// fromWeights encodes columns of float32 on demand.
func fromWeights(h *head, w disdel.Weights) source {
	return func(dst []byte, values []float32, k int) []byte {
		return appendFloats(dst[:0], h.layout.gather(values, w, k))
	}
}

// valid checks a head before it is written.
func (h *head) valid() error {
	invalid := func(format string, args ...any) error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "write " + h.kind.String(), Job: h.id.Job,
			Msg: fmt.Sprintf(format, args...),
		}
	}
	switch {
	case !(h.samples > 0) || math.IsInf(h.samples, 0):
		return invalid("%v stands for %g samples", h.id, h.samples)
	case len(h.id.Job) > maxJob:
		return invalid("the job's name has %d bytes", len(h.id.Job))
	case wireNumber(h.wire) < 0:
		return invalid("format %q is none", h.wire)
	}
	for _, t := range h.layout.tensors {
		if len(t.Name) > maxName {
			return invalid("a tensor's name has %d bytes", len(t.Name))
		}
	}
	return nil
}

// headOf makes the head for weights, after checking that all values are finite.
func (s *Store) headOf(k kind, id disdel.UpdateID, w disdel.Weights) (*head, error) {
	h := &head{kind: k, id: id, samples: 1, wire: disdel.WireFloat32, codec: float32s{}, layout: newLayout(w, s.column)}
	if err := h.layout.checkData(w); err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "write " + k.String(), Job: id.Job, Err: err}
	}
	for _, t := range w {
		if i := notFinite(t.Data); i >= 0 {
			return nil, notFiniteError(k, id, fmt.Sprintf("value %d of %s", i, t.Name))
		}
	}
	return h, nil
}

// stagedValue is a value that is written and not committed.
type stagedValue struct {
	head  *head
	key   string
	parts int
}

func (t stagedValue) entry() string { return entry(t.key, t.parts) }

// begin prepares a value for staging: it draws the token, and adds a large value to the index before anything is
// written, so that a sweep finds what a crash leaves.
func (s *Store) begin(ctx context.Context, h *head) (stagedValue, error) {
	if err := h.valid(); err != nil {
		return stagedValue{}, err
	}
	var token [8]byte
	rand.Read(token[:])
	h.token = binary.LittleEndian.Uint64(token[:])
	h.sums = make([]uint32, h.layout.columns())
	t := stagedValue{head: h, key: s.keys.staged(h)}
	if h.inline() || h.division.Pieces != nil {
		return t, nil
	}
	t.parts = h.layout.columns()
	return t, s.register(ctx, h.id.Job, t.entry())
}

// stage writes a value under its staging key: columns first, on all servers, then the head on the first one.
func (s *Store) stage(ctx context.Context, h *head, columns source) (stagedValue, error) {
	defer s.connections.interruptAfter(ctx)()
	t, err := s.begin(ctx, h)
	if err != nil {
		return t, err
	}
	if h.inline() {
		return t, s.writeInline(ctx, t, columns)
	}
	if err := s.writeParts(ctx, t, columns); err != nil {
		s.discard(ctx, h.id.Job, t.entry())
		return t, err
	}
	return t, s.writeHead(ctx, t, nil)
}

func (s *Store) register(ctx context.Context, job disdel.JobID, entries ...any) error {
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, s.keys.index(job), entries...)
		p.Expire(ctx, s.keys.index(job), keyLife)
		return nil
	})
	return err
}

func (s *Store) writeParts(ctx context.Context, t stagedValue, columns source) error {
	type scratch struct {
		bytes  []byte
		values []float32
	}
	width := readDepth
	if t.head.kind == kindState { // a worker has no memory for more than one buffer
		width = 1
	}
	buffers := make([]scratch, width)
	return forEachN(ctx, t.parts, width, func(ctx context.Context, worker, k int) error {
		b := &buffers[worker]
		if b.values == nil {
			from, to := t.head.layout.columnRange(k) // no later one is longer
			b.values = make([]float32, 0, to-from)
			b.bytes = make([]byte, 0, 4*(to-from))
		}
		return s.writePart(ctx, t, k, columns(b.bytes, b.values, k))
	})
}

// writePart writes column k of a staged value and notes its checksum.
func (s *Store) writePart(ctx context.Context, t stagedValue, k int, data []byte) error {
	t.head.sums[k] = crc32.Checksum(data, castagnoli)
	key := part(t.key, k)
	return s.server(key).large.Set(ctx, key, data, keyLife).Err()
}

// columnWriter writes the columns of a staged value in the background, while the next ones are computed.
type columnWriter struct {
	store  *Store
	to     stagedValue
	failed func(error)    // is called with the error of a write
	free   chan []float32 // buffers that no write uses
	writes sync.WaitGroup
	panics panicCatcher
}

// writeDepth is how many columns of a mean are written at once.
const writeDepth = 2

func newColumnWriter(s *Store, to stagedValue, failed func(error)) *columnWriter {
	// One more than it makes: the caller's buffer comes back even if nobody takes another one.
	w := &columnWriter{store: s, to: to, failed: failed, free: make(chan []float32, writeDepth+1)}
	for range writeDepth {
		w.free <- make([]float32, to.head.layout.column)
	}
	return w
}

// write takes the values of column k and returns before they are written, with another buffer for the caller. It waits
// until one is free.
func (w *columnWriter) write(ctx context.Context, k int, values []float32) (next []float32, err error) {
	w.writes.Go(func() {
		defer w.panics.capture(func() { w.failed(context.Canceled) })
		if err := w.store.writePart(ctx, w.to, k, floatBytes(values)); err != nil {
			w.failed(err)
		}
		w.free <- values[:cap(values)]
	})
	select {
	case next = <-w.free:
		return next, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// floatBytes is values as little-endian bytes, without a copy where the processor has that order.
func floatBytes(values []float32) []byte { return safetensors.FromFloat32s("", nil, values).Data }

// wait waits for all writes.
func (w *columnWriter) wait() {
	w.writes.Wait()
	w.panics.raise()
}

// writeInline writes a value of one column, which is behind its head. Both are made in one buffer: a worker has no
// memory for another copy of its weights.
func (s *Store) writeInline(ctx context.Context, t stagedValue, columns source) error {
	head, err := t.head.encode() // of the final length; its checksum follows
	if err != nil {
		return err
	}
	n := t.head.layout.values()
	all := make([]byte, len(head), len(head)+4*n)
	body := columns(all[len(head):], make([]float32, 0, n), 0)
	t.head.sums[0] = crc32.Checksum(body, castagnoli)
	if head, err = t.head.encode(); err != nil {
		return err
	}
	copy(all, head)
	return s.writeStaged(ctx, t, append(all, body...)) // copies nothing where body is in its place
}

func (s *Store) writeHead(ctx context.Context, t stagedValue, body []byte) error {
	data, err := t.head.encode()
	if err != nil {
		return err
	}
	return s.writeStaged(ctx, t, slices.Concat(data, body))
}

// writeStaged writes the head of a value, and its column if it has only one, under the staging key.
func (s *Store) writeStaged(ctx context.Context, t stagedValue, data []byte) error {
	_, err := s.client.large.Pipelined(ctx, func(p redis.Pipeliner) error {
		index := s.keys.index(t.head.id.Job)
		p.SAdd(ctx, index, t.entry(), entry(s.keys.value(t.head.kind, t.head.id), 0))
		p.Expire(ctx, index, keyLife)
		p.Set(ctx, t.key, data, keyLife)
		return nil
	})
	return err
}

// discard deletes values by their index entries, even if the caller was canceled. A sweep deletes what it misses.
func (s *Store) discard(ctx context.Context, job disdel.JobID, entries ...string) error {
	return s.remove(context.WithoutCancel(ctx), job, entries)
}

// fetch reads a key into buf. It retries broken connections and starting servers, because go-redis does not retry reads
// into a caller's buffer.
func (s *Store) fetch(ctx context.Context, server *server, key string, buf []byte) ([]byte, error) {
	for i, pause := 1, leastPause; ; i, pause = i+1, min(2*pause, mostPause) {
		cmd := server.large.GetToBuffer(ctx, key, buf)
		err := cmd.Err()
		if err == nil {
			return cmd.Bytes(), nil
		}
		if !isTransient(err) || i > server.retries {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// isTransient tells whether a failed read may succeed if it is retried.
func isTransient(err error) bool {
	var network net.Error
	return errors.As(err, &network) && !isStopped(err) || errors.Is(err, io.EOF) ||
		redis.IsLoadingError(err) || redis.IsClusterDownError(err)
}

// fetchPart reads column k and checks its length and checksum.
func (s *Store) fetchPart(ctx context.Context, h *head, k int, buf []byte) ([]byte, error) {
	key := part(s.keys.columns(h, k), k)
	data, err := s.fetch(ctx, s.server(key), key, buf)
	switch {
	case errors.Is(err, redis.Nil):
		return nil, corruptError(h.kind, h.id, "column %d is gone", k)
	case isTooLong(err):
		return nil, corruptError(h.kind, h.id, "column %d is too long", k)
	case err != nil:
		return nil, err
	}
	return data, h.checkColumn(k, data)
}

func (h *head) checkColumn(k int, data []byte) error {
	if err := checkSize(h.codec, h.layout.runs(k), len(data)); err != nil {
		return corruptError(h.kind, h.id, "column %d has %v", k, err)
	}
	if crc32.Checksum(data, castagnoli) != h.sums[k] {
		return corruptError(h.kind, h.id, "column %d is damaged", k)
	}
	return nil
}

// open reads a value's head, and its column if there is only one.
func (s *Store) open(ctx context.Context, k kind, id disdel.UpdateID, like disdel.Weights) (*head, []byte, error) {
	defer s.connections.interruptAfter(ctx)()
	data, err := s.client.large.Get(ctx, s.keys.value(k, id)).Bytes()
	if err != nil {
		return nil, nil, fetchError(err, k, id)
	}
	return decodeHead(data, k, id, like)
}

// load reads the values of a value directly into weights.
func (s *Store) load(ctx context.Context, h *head, inline []byte) (disdel.Weights, error) {
	values := make([]float32, h.layout.values())
	if h.inline() {
		if err := h.checkColumn(0, inline); err != nil {
			return nil, err
		}
		return h.layout.weightsOver(values), h.decode(values, 0, inline)
	}
	defer s.connections.interruptAfter(ctx)()
	buffers := make([][]byte, readDepth)
	err := forEach(ctx, h.layout.columns(), func(ctx context.Context, worker, k int) error {
		if buffers[worker] == nil {
			buffers[worker] = make([]byte, h.layout.largest(h.codec, k, readDepth)+bufferSpare)
		}
		data, err := s.fetchPart(ctx, h, k, buffers[worker])
		if err != nil {
			return err
		}
		return h.decode(values, k, data)
	})
	return h.layout.weightsOver(values), fetchError(err, h.kind, h.id)
}

// bufferSpare is the room behind a value that go-redis needs to read into a buffer.
const bufferSpare = 2

// decode reads column k into its place among all values and checks that it is finite.
func (h *head) decode(values []float32, k int, data []byte) error {
	from, to := h.layout.columnRange(k)
	return h.decodeColumn(values[from:to], k, data)
}

// decodeColumn reads column k and checks that it is finite.
func (h *head) decodeColumn(column []float32, k int, data []byte) error {
	if err := h.codec.decode(column, h.layout.runs(k), data); err != nil {
		return corruptError(h.kind, h.id, "column %d: %v", k, err)
	}
	if i := notFinite(column); i >= 0 {
		return notFiniteError(h.kind, h.id, h.layout.valueName(k*h.layout.column+i))
	}
	return nil
}

// isStopped tells whether an error only says that the work was stopped.
func isStopped(err error) bool { return errors.Is(err, context.Canceled) }

// columnValues is the number of values in one key. A column has whole blocks of int8 and fits a processor's cache. In
// every format it fits a size class of Redis' allocator (1 MiB, 512 KiB, 256 KiB); one byte more would cost a quarter
// more memory.
const columnValues = 1000 * blockValues

// layout maps the values of weights to columns: all tensors in a row, cut into columns of equal length. Column k of
// every member of a reduction has the same values, in any format.
type layout struct {
	tensors []disdel.Tensor // without data
	starts  []int           // index of each tensor's first value, then the number of values
	column  int
}

func newLayout(w disdel.Weights, column int) layout {
	l := layout{tensors: make([]disdel.Tensor, len(w)), starts: make([]int, len(w)+1), column: column}
	for i, t := range w {
		l.tensors[i] = disdel.Tensor{Name: t.Name, Shape: t.Shape}
		n := 1
		for _, side := range t.Shape {
			n *= side
		}
		l.starts[i+1] = l.starts[i] + n
	}
	return l
}

func (l layout) values() int { return l.starts[len(l.starts)-1] }

// columns is at least 1, so that weights without values are a value too.
func (l layout) columns() int { return max(1, (l.values()+l.column-1)/l.column) }

// longest is the number of values of the longest column.
func (l layout) longest() int { return min(l.column, l.values()) }

// columnRange is the range of values of column k.
func (l layout) columnRange(k int) (from, to int) {
	return k * l.column, min((k+1)*l.column, l.values())
}

// tensorPart is a part of one tensor: its values from to to-1.
type tensorPart struct{ tensor, from, to int }

// pieces are the parts of tensors in column k, in order. None is empty.
func (l layout) pieces(k int) iter.Seq[tensorPart] {
	return func(yield func(tensorPart) bool) {
		from, to := l.columnRange(k)
		for i := 0; from < to; i++ {
			end := min(to, l.starts[i+1])
			if end > from && !yield(tensorPart{i, from - l.starts[i], end - l.starts[i]}) {
				return
			}
			from = max(from, end)
		}
	}
}

// runs are the numbers of values of each tensor in column k. Blocks of int8 do not cross them.
func (l layout) runs(k int) (out []int) {
	for p := range l.pieces(k) {
		out = append(out, p.to-p.from)
	}
	return out
}

// gather copies column k of w into dst and returns it.
func (l layout) gather(dst []float32, w disdel.Weights, k int) []float32 {
	dst = dst[:0]
	for p := range l.pieces(k) {
		dst = append(dst, w[p.tensor].Data[p.from:p.to]...)
	}
	return dst
}

// weightsOver makes weights that are slices of one array.
func (l layout) weightsOver(values []float32) disdel.Weights {
	out := make(disdel.Weights, len(l.tensors))
	for i, t := range l.tensors {
		a, b := l.starts[i], l.starts[i+1]
		out[i] = disdel.Tensor{Name: t.Name, Shape: t.Shape, Data: values[a:b:b]}
	}
	return out
}

// valueName names value number i.
func (l layout) valueName(i int) string {
	t, _ := slices.BinarySearch(l.starts, i+1)
	return fmt.Sprintf("value %d of %s", i-l.starts[t-1], l.tensors[t-1].Name)
}

// checkData checks that w has data for its shapes.
func (l layout) checkData(w disdel.Weights) error {
	for i, t := range w {
		if len(t.Data) != l.starts[i+1]-l.starts[i] || len(t.Shape) > maxRank ||
			slices.ContainsFunc(t.Shape, func(n int) bool { return n < 0 }) {
			return fmt.Errorf("tensor %s of %v has %d values", t.Name, t.Shape, len(t.Data))
		}
	}
	return nil
}

// checkShapes compares names and shapes.
func (l layout) checkShapes(like disdel.Weights) error {
	if len(l.tensors) != len(like) {
		return fmt.Errorf("%d tensors, not %d", len(l.tensors), len(like))
	}
	for i, t := range l.tensors {
		if t.Name != like[i].Name || !slices.Equal(t.Shape, like[i].Shape) {
			return fmt.Errorf("tensor %d is %s %v, not %s %v", i, t.Name, t.Shape, like[i].Name, like[i].Shape)
		}
	}
	return nil
}
