package dataset

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/safetensors"
)

// Shard is rows in memory in their stored type: an 8-bit image uses one byte per pixel until it is in a batch.
type Shard struct {
	sample        int
	sparse        *sparseRows // nil: rows are dense
	u8            []byte
	f32           []float32
	disk          *diskRows // instead of u8 and f32; nil: rows are in memory
	labels        []int32
	targets       []float32 // instead of labels, [rows outputs], standardised
	outputs       int       // targets of a row; 0: rows have labels
	scale, offset float32
	levels        *levels // of 8-bit values, scaled

	shape  []int       // [channels height width] as stored
	to     *resizing   // nil: the stored size
	change *augmenting // nil: none
}

// Len is the number of rows.
func (s *Shard) Len() int {
	if s.sparse != nil {
		return len(s.sparse.target)
	}
	if s.outputs > 0 {
		return len(s.targets) / s.outputs
	}
	return len(s.labels)
}

// SampleLen is the number of values of a row.
func (s *Shard) SampleLen() int {
	if s.to != nil {
		return s.to.len()
	}
	return s.sample
}

// Size is the memory of the rows.
func (s *Shard) Size() disdel.Bytes {
	if s.sparse != nil {
		return s.sparse.size()
	}
	n := disdel.Bytes(len(s.u8) + 4*len(s.f32) + 4*len(s.labels) + 4*len(s.targets))
	if s.disk != nil {
		n += disdel.Bytes(len(s.disk.row) + 4*len(s.disk.place))
	}
	if s.to != nil {
		n += disdel.Bytes(4 * len(s.to.row))
	}
	if s.change != nil {
		n += disdel.Bytes(4 * len(s.change.image))
	}
	return n
}

// Batch writes dense rows into x, [len(rows) SampleLen], scaled as the manifest says and resized as requested, and
// their labels into labels. Both must be long enough; rows with targets have no labels. If rows are resized, only one
// goroutine may call it.
func (s *Shard) Batch(rows []int32, x []float32, labels []int32) {
	n := s.SampleLen()
	for i, row := range rows {
		if s.outputs == 0 {
			labels[i] = s.labels[row]
		}
		dst := x[i*n : (i+1)*n]
		if s.to == nil {
			s.scaled(dst, int(row)*s.sample)
			continue
		}
		s.resized(dst, int(row))
	}
}

// resized writes a row in the requested size.
func (s *Shard) resized(dst []float32, row int) {
	s.scaled(s.to.row, row*s.sample)
	s.to.resize(dst)
}

// scaled writes scaled values from at on.
func (s *Shard) scaled(dst []float32, at int) {
	switch {
	case s.disk != nil:
		s.fromDisk(dst, at)
		return
	case s.u8 != nil:
		s.levels.scale(dst, s.u8[at:at+len(dst)])
		return
	}
	for k, v := range s.f32[at : at+len(dst)] {
		dst[k] = v*s.scale + s.offset
	}
}

// levels are the scaled values of a byte: the table is twice as fast as the arithmetic.
type levels [256]float32

func newLevels(scale, offset float32) *levels {
	var l levels
	for v := range l {
		l[v] = float32(v)*scale + offset
	}
	return &l
}

// scale converts bytes, eight at a time: one at a time takes a fifth longer.
func (l *levels) scale(dst []float32, bytes []byte) {
	for len(bytes) >= 8 && len(dst) >= 8 {
		from, to := (*[8]byte)(bytes), (*[8]float32)(dst)
		to[0], to[1], to[2], to[3] = l[from[0]], l[from[1]], l[from[2]], l[from[3]]
		to[4], to[5], to[6], to[7] = l[from[4]], l[from[5]], l[from[6]], l[from[7]]
		bytes, dst = bytes[8:], dst[8:]
	}
	for k, v := range bytes {
		dst[k] = l[v]
	}
}

// ReadTrain reads rows of the training part. It refuses a data set other than ref's (Conflict) and damaged chunks
// (Corrupt); it reads only the chunks that it needs, one at a time.
func (s *Store) ReadTrain(ctx context.Context, ref disdel.DataRef, rows disdel.RowRange) (*Shard, error) {
	m, d, err := s.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	if rows.Start < 0 || rows.End > d.train || rows.Start > rows.End {
		return nil, outside(ref.Name, rows, d.train)
	}
	if m.Sparse != nil {
		return s.sparseTrain(ctx, m, ref.Split, rows)
	}
	if !d.drawn {
		return augmented(ref, rows.Start)(resized(ref)(s.contiguous(ctx, m, m.Train, rows, ref.OnDisk)))
	}
	return augmented(ref, rows.Start)(resized(ref)(s.scattered(ctx, m, ref, rows)))
}

// ReadHeldOut reads rows of the held-out part, with ReadTrain's errors.
func (s *Store) ReadHeldOut(ctx context.Context, ref disdel.DataRef, rows disdel.RowRange) (*Shard, error) {
	m, d, err := s.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	if rows.Start < 0 || rows.End > d.heldOut || rows.Start > rows.End {
		return nil, outside(ref.Name, rows, d.heldOut)
	}
	if m.Sparse != nil {
		return s.sparseHeldOut(ctx, m, d, ref.Split, rows)
	}
	if !d.drawn {
		return resized(ref)(s.contiguous(ctx, m, m.Test, rows, ref.OnDisk))
	}
	return resized(ref)(s.scattered(ctx, m, ref,
		disdel.RowRange{Start: d.train + rows.Start, End: d.train + rows.End}))
}

func outside(name string, rows disdel.RowRange, n int) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read data set " + name,
		Msg: fmt.Sprintf("rows %d to %d of %d", rows.Start, rows.End, n),
	}
}

func (s *Store) open(ctx context.Context, ref disdel.DataRef) (Manifest, division, error) {
	m, err := s.Manifest(ctx, ref.Name)
	if err != nil {
		return m, division{}, err
	}
	if got := m.Checksum(); got != ref.Checksum {
		return m, division{}, &disdel.Error{
			Kind: disdel.Conflict, Op: "read data set " + ref.Name,
			Msg:  fmt.Sprintf("it has checksum %s, not %s", got, ref.Checksum),
			Hint: "the data set was replaced while the job ran; submit the job again",
		}
	}
	if rows := max(m.Train.Rows, m.Test.Rows); rows > math.MaxInt32 { // places are counted in int32
		return m, division{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "read data set " + ref.Name,
			Msg: fmt.Sprintf("%d rows are too many", rows),
		}
	}
	if err := checkSplit(ref.Split); err != nil {
		return m, division{}, err
	}
	if err := s.checkSizes(ctx, &m); err != nil { // before anything is allocated by its rows
		return m, division{}, err
	}
	return m, m.divide(ref.Split), nil
}

func (m *Manifest) shard(rows int) *Shard {
	s := &Shard{
		sample: m.SampleLen(), shape: m.Sample, outputs: len(m.Targets), scale: m.Scale, offset: m.Offset,
	}
	if s.outputs > 0 {
		s.targets = make([]float32, rows*s.outputs)
	} else {
		s.labels = make([]int32, rows)
	}
	if m.DType == "U8" {
		s.u8, s.levels = make([]byte, rows*s.sample), newLevels(m.Scale, m.Offset)
	} else {
		s.f32 = make([]float32, rows*s.sample)
	}
	return s
}

// shardOf makes room for rows, in memory or in a file.
func (m *Manifest) shardOf(rows int, onDisk bool) (s *Shard, err error) {
	if !onDisk {
		return m.shard(rows), nil
	}
	s = m.shard(0)
	if s.outputs > 0 {
		s.targets = make([]float32, rows*s.outputs)
	} else {
		s.labels = make([]int32, rows)
	}
	s.disk, err = newDiskRows(m.Name, rows, int(m.SampleSize()))
	return s, err
}

// contiguous reads a range of a part in stored order.
func (s *Store) contiguous(ctx context.Context, m Manifest, p Part, rows disdel.RowRange, onDisk bool) (*Shard, error) {
	out, err := m.shardOf(rows.Len(), onDisk)
	if err != nil {
		return nil, err
	}
	at := 0
	read := chunkReader{s: s, m: m}
	for _, c := range p.Chunks {
		from, to := max(rows.Start, at), min(rows.End, at+c.Rows)
		if from < to {
			chunk, err := read.next(ctx, c)
			if err != nil {
				return nil, err
			}
			for r := from; r < to; r++ {
				if err := chunk.copyRow(r-at, out, r-rows.Start); err != nil {
					return nil, err
				}
			}
		}
		at += c.Rows
	}
	return out, out.finish(unfilled(m.Name, max(0, min(at, rows.End)-rows.Start), rows.Len()))
}

// scattered reads rows of the train part by their places in the split's random order. Besides the rows and a chunk it
// needs four bytes for each row of the part.
func (s *Store) scattered(ctx context.Context, m Manifest, ref disdel.DataRef, rows disdel.RowRange) (*Shard, error) {
	place := drawn(ref.Split, m.Train.Rows)
	invert(place)
	out, err := m.shardOf(rows.Len(), ref.OnDisk)
	if err != nil {
		return nil, err
	}
	at := 0
	read, filled := chunkReader{s: s, m: m}, 0
	for _, c := range m.Train.Chunks {
		chunk, err := read.next(ctx, c)
		if err != nil {
			return nil, err
		}
		for r := range c.Rows {
			if to := int(place[at+r]); to >= rows.Start && to < rows.End {
				if err := chunk.copyRow(r, out, to-rows.Start); err != nil {
					return nil, err
				}
				filled++
			}
		}
		at += c.Rows
	}
	return out, out.finish(unfilled(m.Name, filled, rows.Len()))
}

// finish ends the writing of rows, unless it failed.
func (s *Shard) finish(err error) error {
	if err != nil || s.disk == nil {
		return err
	}
	return s.disk.finish()
}

type chunkRows struct {
	x safetensors.Tensor
	y []byte
	n int // bytes of a row of x
}

func (c *chunkRows) copyRow(from int, out *Shard, to int) error {
	row := c.x.Data[from*c.n : (from+1)*c.n]
	if n := out.outputs; n > 0 {
		for k := range n {
			out.targets[to*n+k] = math.Float32frombits(binary.LittleEndian.Uint32(c.y[4*(from*n+k):]))
		}
	} else {
		out.labels[to] = int32(binary.LittleEndian.Uint32(c.y[4*from:]))
	}
	switch {
	case out.disk != nil:
		return out.disk.write(to, row)
	case out.u8 != nil:
		copy(out.u8[to*out.sample:], row)
		return nil
	}
	for k := range out.sample {
		out.f32[to*out.sample+k] = math.Float32frombits(binary.LittleEndian.Uint32(row[4*k:]))
	}
	return nil
}

// chunkReader reads chunks one after the other into the same memory: besides a shard there is room for one.
type chunkReader struct {
	s      *Store
	m      Manifest
	memory []byte
}

// read reads a chunk's file into the memory.
func (r *chunkReader) read(ctx context.Context, c Chunk) ([]byte, error) {
	in, err := r.s.bucket.NewReader(ctx, c.Key)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	n := min(in.Size(), int64(c.Size)+1) // one byte is enough to notice a longer file
	if int64(cap(r.memory)) < n {
		r.memory = make([]byte, n)
	}
	data := r.memory[:n]
	_, err = io.ReadFull(in, data)
	return data, err
}

// file reads a chunk and checks its checksum. The file is valid until the next call.
func (r *chunkReader) file(ctx context.Context, c Chunk) (safetensors.File, error) {
	data, err := r.read(ctx, c)
	if err != nil {
		return safetensors.File{}, blobs.Wrap(err, "read chunk", c.Key)
	}
	if checksum(data) != c.Checksum {
		return safetensors.File{}, r.damaged(c, "its checksum is not the manifest's")
	}
	return safetensors.Parse(data)
}

// damaged is the error of a chunk that differs from the manifest.
func (r *chunkReader) damaged(c Chunk, why string) error {
	return &disdel.Error{Kind: disdel.Corrupt, Op: "read chunk " + c.Key, Msg: why, Hint: rebuildHint(r.m.Name)}
}

// next reads a chunk of dense rows and checks its shapes. The chunk is valid until the next call.
func (r *chunkReader) next(ctx context.Context, c Chunk) (*chunkRows, error) {
	m := &r.m
	f, err := r.file(ctx, c)
	if err != nil {
		return nil, err
	}
	damaged := func(why string) error { return r.damaged(c, why) }
	if len(f.Tensors) != 2 || f.Tensors[0].Name != "x" || f.Tensors[1].Name != "y" {
		return nil, damaged("it does not hold x and y")
	}
	x, y := f.Tensors[0], f.Tensors[1]
	if string(x.DType) != m.DType || fmt.Sprint(x.Shape) != fmt.Sprint(append([]int{c.Rows}, m.Sample...)) ||
		y.DType != m.labelType() || len(y.Data) != c.Rows*int(m.labelSize()) {
		return nil, damaged(fmt.Sprintf("it holds %s %v and %d bytes of labels", x.DType, x.Shape, len(y.Data)))
	}
	if err := m.checkLabels(y.Data); err != nil {
		return nil, damaged(err.Error())
	}
	return &chunkRows{x: x, y: y.Data, n: int(m.SampleSize())}, nil
}

// labelType is the type of the stored labels or targets.
func (m *Manifest) labelType() safetensors.DType {
	if len(m.Targets) > 0 {
		return safetensors.F32
	}
	return safetensors.I32
}

// SampleRows is rows as `infer --input` reads them, with their labels for comparison.
type SampleRows struct {
	Shape  []int       `json:"shape"`
	Inputs [][]float32 `json:"inputs,omitempty"`
	Labels []int32     `json:"labels,omitempty"`

	Rows    []disdel.SparseRow `json:"rows,omitempty"`    // sparse ones
	Targets []float32          `json:"targets,omitempty"` // of sparse rows
	Numbers [][]float64        `json:"numbers,omitempty"` // of dense rows with targets: each row's, in their units
}

// Sample reads held-out rows of a data set by their numbers. If it has none of its own, they are those of a split
// into four fifths and one by a seed. It returns NotFound, and Invalid for rows that do not exist.
func (s *Store) Sample(ctx context.Context, name string, rows []int, seed int64) (doc SampleRows, err error) {
	m, err := s.Manifest(ctx, name)
	if err != nil {
		return doc, err
	}
	split := disdel.Split{Train: 0.8, Validation: 0.2, Seed: seed}
	info := m.Info(split)
	if info.HeldOut == 0 {
		return doc, &disdel.Error{
			Kind: disdel.Invalid, Op: "sample " + name, Msg: "no row of it is held out",
			Hint: "a data set without held-out rows of its own needs at least 3 rows",
		}
	}
	if slices.Min(rows) < 0 || slices.Max(rows) >= info.HeldOut {
		return doc, &disdel.Error{
			Kind: disdel.Invalid, Op: "sample " + name,
			Msg: fmt.Sprintf("rows go from 0 to %d", info.HeldOut-1),
		}
	}
	shard, err := s.ReadHeldOut(ctx, disdel.DataRef{Name: name, Checksum: info.Checksum, Split: split},
		disdel.RowRange{End: info.HeldOut})
	if err != nil {
		return doc, err
	}
	if shard.sparse != nil {
		return shard.sparse.sample(m.Sample, rows), nil
	}
	doc = SampleRows{Shape: m.Sample, Labels: make([]int32, len(rows))}
	x := make([]float32, len(rows)*shard.SampleLen())
	places := make([]int32, len(rows))
	for i, r := range rows {
		places[i] = int32(r)
	}
	shard.Batch(places, x, doc.Labels)
	if doc.Numbers = shard.numbers(m.Targets, places); doc.Numbers != nil {
		doc.Labels = nil
	}
	for i := range rows {
		doc.Inputs = append(doc.Inputs, x[i*shard.SampleLen():(i+1)*shard.SampleLen()])
	}
	return doc, nil
}

// numbers returns the targets of rows in their units, nil for rows with classes.
func (s *Shard) numbers(targets []disdel.Target, rows []int32) (out [][]float64) {
	for _, row := range rows[:len(rows)*min(1, len(targets))] {
		values := make([]float64, len(targets))
		for k, t := range targets {
			values[k] = t.Value(s.targets[int(row)*len(targets)+k])
		}
		out = append(out, values)
	}
	return out
}

// ReadPart reads rows of a part: of PartTrain like ReadTrain, of PartTest like ReadHeldOut, and of PartAll in stored
// order, whatever the split, so that a row's number is its place in the data set. Its errors are those of ReadTrain,
// and Invalid for another part.
func (s *Store) ReadPart(ctx context.Context, ref disdel.DataRef, part disdel.DataPart, rows disdel.RowRange) (*Shard,
	error,
) {
	switch part {
	case disdel.PartTrain:
		return s.ReadTrain(ctx, ref, rows)
	case disdel.PartTest:
		return s.ReadHeldOut(ctx, ref, rows)
	case disdel.PartAll:
		return s.readStored(ctx, ref, rows)
	default:
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read data set " + ref.Name, Msg: fmt.Sprintf("it has no part %.40q", part),
			Hint: "the parts are all, train and test",
		}
	}
}

// readStored reads rows of both parts, one after the other.
func (s *Store) readStored(ctx context.Context, ref disdel.DataRef, rows disdel.RowRange) (*Shard, error) {
	m, _, err := s.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	all := Part{Rows: m.Train.Rows + m.Test.Rows, Chunks: slices.Concat(m.Train.Chunks, m.Test.Chunks)}
	if rows.Start < 0 || rows.End > all.Rows || rows.Start > rows.End {
		return nil, outside(ref.Name, rows, all.Rows)
	}
	if m.Sparse != nil {
		return s.readSparse(ctx, m, all, nil, rows)
	}
	return resized(ref)(s.contiguous(ctx, m, all, rows, ref.OnDisk))
}

// Labels returns the classes of dense rows in order, nil for rows with targets. It is no copy.
func (s *Shard) Labels() []int32 { return s.labels }

// Targets returns the targets in order, nil for rows with classes: of sparse rows one each, of dense rows all targets
// of a row one after the other, standardised. It is no copy.
func (s *Shard) Targets() []float32 {
	if s.sparse == nil {
		return s.targets
	}
	return s.sparse.target
}

// Sparse tells whether the rows are sparse.
func (s *Shard) Sparse() bool { return s.sparse != nil }

// Range returns the least and the greatest input among the first rows of the training part: enough to distinguish
// values of 0 to 255 from values of 0 to 1.
func (s *Store) Range(ctx context.Context, m Manifest) (low, high float32, err error) {
	if m.Sparse != nil {
		return 0, 0, &disdel.Error{Kind: disdel.Invalid, Op: "read data set " + m.Name, Msg: "its rows are sparse"}
	}
	if len(m.Train.Chunks) == 0 {
		return 0, 0, &disdel.Error{Kind: disdel.Invalid, Op: "read data set " + m.Name, Msg: "it has no training rows"}
	}
	rows := min(m.Train.Chunks[0].Rows, rangeRows)
	shard, err := s.contiguous(ctx, m, m.Train, disdel.RowRange{End: rows}, false)
	if err != nil {
		return 0, 0, err
	}
	x, labels := make([]float32, shard.SampleLen()), make([]int32, 1)
	for i := range rows {
		shard.Batch([]int32{int32(i)}, x, labels)
		for k, v := range x {
			if i == 0 && k == 0 {
				low, high = v, v
			}
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high, nil
}

// rangeRows is how many rows Range reads.
const rangeRows = 1000
