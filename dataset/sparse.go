package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/safetensors"
)

// SparseRow is a row to add to a data set. It is valid until the next one.
type SparseRow struct {
	Index   []int32   // columns, each once
	Value   []float32 // of those columns; nil if every entry of the data set is 1
	Target  float32
	HeldOut bool // it is for evaluation, not for training
}

// SparseInput is a data set of sparse rows to add. Rows are read as a stream, with one chunk in memory.
type SparseInput struct {
	Name       string   `json:"-"`
	Title      string   `json:"title"`
	License    string   `json:"license,omitempty"`
	Columns    int      `json:"columns,omitempty"` // 0: the largest column of the rows plus 1
	Classes    int      `json:"classes"`           // 2: targets are 0 or 1; 1: they are numbers
	ClassNames []string `json:"classNames,omitempty"`
	Ones       bool     `json:"ones,omitempty"` // every entry is 1
	// FromZero says that the columns of the LIBSVM file count from 0, and not from 1.
	FromZero bool `json:"fromZero,omitempty"`
	// For ratings: a row has column u of its user, and Users+i of its item. 0: no ratings.
	Users int `json:"users,omitempty"`
	Items int `json:"items,omitempty"`
	// Understood is how the reader interpreted the file. It has no kind if the reader does not say.
	Understood Interpretation `json:"understood,omitzero"`
	// Each yields the rows in order, the same ones at every call. It returns yield's error.
	Each func(yield func(SparseRow) error) error `json:"-"`
	// Bayes, called after the rows, is the loss of a model that knows how the rows were made; nil: unknown.
	Bayes func() float64 `json:"-"`
}

// AddSparse stores a data set of sparse rows, with the errors of AddDense; it also returns Invalid for rows that do
// not fit together and for targets and entries that are not finite.
func (s *Store) AddSparse(ctx context.Context, in SparseInput, overwrite bool) (Manifest, error) {
	if err := checkName(in.Name); err != nil {
		return Manifest{}, err
	}
	return s.addStream(ctx, in.Name, overwrite, func(dry bool) (Manifest, error) { return s.writeSparse(ctx, in, dry) })
}

// writeSparse writes the chunks, or with dry only computes them, and returns the manifest.
func (s *Store) writeSparse(ctx context.Context, in SparseInput, dry bool) (Manifest, error) {
	m := Manifest{
		APIVersion: disdel.APIVersion, Name: in.Name, Title: in.Title, License: in.License, Classes: in.Classes,
		ClassNames: in.ClassNames, DType: sparseType, Scale: 1,
		Sparse: &disdel.SparseData{Ones: in.Ones, Users: in.Users, Items: in.Items, FromZero: in.FromZero},
	}
	sums := spread{low: math.MaxFloat32, high: -math.MaxFloat32}
	train := &sparseWriter{s: s, ctx: ctx, in: &in, part: "train", dry: dry}
	test := &sparseWriter{s: s, ctx: ctx, in: &in, part: "test", dry: dry}
	err := in.Each(func(row SparseRow) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if row.HeldOut {
			return test.add(row)
		}
		sums.add(row.Target)
		return train.add(row)
	})
	for _, w := range []*sparseWriter{train, test} {
		if err == nil {
			err = w.flush()
		}
		m.Sparse.Entries += w.entries
		m.Sparse.Most = max(m.Sparse.Most, w.maximum)
	}
	if err != nil {
		return m, err
	}
	m.Train, m.Test = train.done, test.done
	columns := max(train.columns, test.columns)
	if in.Columns > 0 {
		columns = in.Columns
	}
	m.Sample = []int{columns}
	if m.Train.Rows == 0 || m.Sparse.Entries == 0 {
		return m, in.bad("it has %d rows to learn from, with %d entries", m.Train.Rows, m.Sparse.Entries)
	}
	m.Sparse.Mean, m.Sparse.Deviation, m.Sparse.Low, m.Sparse.High = sums.mean, sums.deviation(), sums.low, sums.high
	if in.Bayes != nil {
		m.Sparse.Bayes = in.Bayes()
	}
	return m, nil
}

func (in *SparseInput) bad(format string, args ...any) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "add data set " + in.Name, Msg: fmt.Sprintf(format, args...)}
}

// spread is the mean and variance of numbers that are added one by one (Welford 1962).
type spread struct {
	n         int
	mean, sum float64
	low, high float32
}

func (s *spread) add(v float32) {
	s.n++
	d := float64(v) - s.mean
	s.mean += d / float64(s.n)
	s.sum += d * (float64(v) - s.mean)
	s.low, s.high = min(s.low, v), max(s.high, v)
}

func (s *spread) deviation() float64 { return math.Sqrt(s.sum / float64(max(1, s.n))) }

// sparseWriter makes the chunks of a part.
type sparseWriter struct {
	s    *Store
	ctx  context.Context //nolint:containedctx // of one call of AddSparse
	in   *SparseInput
	part string
	dry  bool

	done    Part
	entries int64
	maximum int // entries of a row
	columns int

	rows                         int // of the chunk being made
	starts, index, value, target []byte
	file                         bytes.Buffer
}

// add adds a row, and writes a full chunk.
func (w *sparseWriter) add(row SparseRow) error {
	if err := w.check(row); err != nil {
		return err
	}
	if w.rows == 0 {
		w.starts = binary.LittleEndian.AppendUint32(w.starts[:0], 0)
	}
	for k, c := range row.Index {
		w.index = binary.LittleEndian.AppendUint32(w.index, uint32(c))
		if !w.in.Ones {
			w.value = binary.LittleEndian.AppendUint32(w.value, math.Float32bits(row.Value[k]))
		}
		w.columns = max(w.columns, int(c)+1)
	}
	w.starts = binary.LittleEndian.AppendUint32(w.starts, uint32(len(w.index)/4))
	w.target = binary.LittleEndian.AppendUint32(w.target, math.Float32bits(row.Target))
	w.rows++
	w.entries += int64(len(row.Index))
	w.maximum = max(w.maximum, len(row.Index))
	if len(w.starts)+len(w.index)+len(w.value)+len(w.target) < chunkBytes {
		return nil
	}
	return w.flush()
}

func (w *sparseWriter) check(row SparseRow) error {
	at := w.done.Rows + w.rows
	switch {
	case !w.in.Ones && len(row.Value) != len(row.Index):
		return w.in.bad("row %d has %d columns and %d values", at, len(row.Index), len(row.Value))
	case !finite(row.Target):
		return w.in.bad("the target of row %d is %g, which is nothing to learn from", at, row.Target)
	case w.in.Classes == 2 && row.Target != 0 && row.Target != 1:
		return w.in.bad("the target of row %d is %g, and neither 0 nor 1", at, row.Target)
	case w.in.Users > 0 && (len(row.Index) != 2 || int(row.Index[0]) >= w.in.Users || int(row.Index[1]) < w.in.Users):
		return w.in.bad("row %d is no user and an item", at)
	}
	for k, c := range row.Index {
		if c < 0 || w.in.Columns > 0 && int(c) >= w.in.Columns {
			return w.in.bad("row %d has an entry in column %d, and there are %d", at, c, w.in.Columns)
		}
		if !w.in.Ones && !finite(row.Value[k]) {
			return w.in.bad("row %d has %g in column %d, which is no value to learn from", at, row.Value[k], c)
		}
	}
	return nil
}

// flush writes the current chunk if it has any row.
func (w *sparseWriter) flush() error {
	if w.rows == 0 {
		return nil
	}
	entries := len(w.index) / 4
	tensors := []safetensors.Tensor{
		{Name: "start", DType: safetensors.I32, Shape: []int{w.rows + 1}, Data: w.starts},
		{Name: "index", DType: safetensors.I32, Shape: []int{entries}, Data: w.index},
	}
	if !w.in.Ones {
		tensors = append(tensors,
			safetensors.Tensor{Name: "value", DType: safetensors.F32, Shape: []int{entries}, Data: w.value})
	}
	tensors = append(tensors, safetensors.Tensor{Name: "y", DType: safetensors.F32, Shape: []int{w.rows}, Data: w.target})
	w.file.Reset()
	if err := safetensors.Write(&w.file, safetensors.File{Tensors: tensors}); err != nil {
		return err
	}
	data := w.file.Bytes()
	c := Chunk{
		Key: chunkKey(w.in.Name, w.part, len(w.done.Chunks)), Rows: w.rows, Entries: entries, Size: disdel.Bytes(len(data)),
		Checksum: checksum(data),
	}
	if !w.dry {
		if err := blobs.WriteAll(w.ctx, w.s.bucket, c.Key, data); err != nil {
			return blobs.Wrap(err, "write chunk", c.Key)
		}
	}
	w.done.Chunks = append(w.done.Chunks, c)
	w.done.Rows += w.rows
	w.rows, w.index, w.value, w.target = 0, w.index[:0], w.value[:0], w.target[:0]
	return nil
}

// sparseChunk is a chunk of sparse rows in memory, little-endian.
type sparseChunk struct {
	starts, index, value, target []byte // value: nil if every entry is 1
}

func (c *sparseChunk) start(row int) int {
	return int(int32(binary.LittleEndian.Uint32(c.starts[4*row:])))
}

// nextSparse reads a chunk of sparse rows and checks its checksum, shapes and columns. The chunk is valid until the
// next call.
func (r *chunkReader) nextSparse(ctx context.Context, c Chunk) (*sparseChunk, error) {
	f, err := r.file(ctx, c)
	if err != nil {
		return nil, err
	}
	out := &sparseChunk{}
	want := []struct {
		name  string
		dtype safetensors.DType
		len   int
		into  *[]byte
	}{
		{"start", safetensors.I32, c.Rows + 1, &out.starts},
		{"index", safetensors.I32, c.Entries, &out.index},
		{"value", safetensors.F32, c.Entries, &out.value},
		{"y", safetensors.F32, c.Rows, &out.target},
	}
	if r.m.Sparse.Ones {
		want = append(want[:2], want[3])
	}
	if len(f.Tensors) != len(want) {
		return nil, r.damaged(c, fmt.Sprintf("it holds %d arrays, and sparse rows are %d", len(f.Tensors), len(want)))
	}
	for i, w := range want {
		t := f.Tensors[i]
		if t.Name != w.name || t.DType != w.dtype || len(t.Shape) != 1 || len(t.Data) != 4*w.len {
			return nil, r.damaged(c, fmt.Sprintf("it holds %s %v %v, not %s of %d", t.Name, t.DType, t.Shape, w.name, w.len))
		}
		*w.into = t.Data
	}
	if why := out.fault(c, r.m.Sample[0]); why != "" {
		return nil, r.damaged(c, why)
	}
	return out, nil
}

// fault says what is wrong with the rows of a chunk, "" if nothing is.
func (c *sparseChunk) fault(chunk Chunk, columns int) string {
	if c.start(0) != 0 || c.start(chunk.Rows) != chunk.Entries {
		return "its rows do not begin and end where its entries do"
	}
	for i := range chunk.Rows {
		if c.start(i) > c.start(i+1) {
			return fmt.Sprintf("its row %d ends before it begins", i)
		}
	}
	for i := range chunk.Entries {
		if v := binary.LittleEndian.Uint32(c.index[4*i:]); uint64(v) >= uint64(columns) {
			return fmt.Sprintf("its entry %d is in column %d of %d", i, int32(v), columns)
		}
	}
	return ""
}

// sparseTrain reads training rows by their places in the split's random order of all rows: files of ratings are
// sorted by user or by time, and each worker needs a mix.
func (s *Store) sparseTrain(ctx context.Context, m Manifest, split disdel.Split, rows disdel.RowRange) (*Shard, error) {
	return s.readSparse(ctx, m, m.Train, places(split, m.Train.Rows), rows)
}

// sparseHeldOut reads held-out rows: those of a separate part in stored order, else the drawn ones.
func (s *Store) sparseHeldOut(ctx context.Context, m Manifest, d division, split disdel.Split, rows disdel.RowRange) (
	*Shard, error,
) {
	if !d.drawn {
		return s.readSparse(ctx, m, m.Test, nil, rows)
	}
	rows.Start, rows.End = rows.Start+d.train, rows.End+d.train
	return s.readSparse(ctx, m, m.Train, places(split, m.Train.Rows), rows)
}

// places is the place of each of n rows in a split's random order.
func places(split disdel.Split, n int) []int32 {
	order := drawn(split, n)
	invert(order)
	return order
}

// readSparse reads the rows of a part whose places are in rows; nil: a row's place is where it is stored. It skips
// chunks without any of them.
func (s *Store) readSparse(ctx context.Context, m Manifest, p Part, place []int32,
	rows disdel.RowRange,
) (*Shard, error) {
	out := newSparseRows(rows.Len(), p.expected(place != nil, rows), m.Sparse.Ones)
	read, at, filled := chunkReader{s: s, m: m}, 0, 0
	for _, c := range p.Chunks {
		if place != nil || at < rows.End && at+c.Rows > rows.Start {
			chunk, err := read.nextSparse(ctx, c)
			if err != nil {
				return nil, err
			}
			for r := range c.Rows {
				to := at + r
				if place != nil {
					to = int(place[to])
				}
				if to < rows.Start || to >= rows.End {
					continue
				}
				if len(out.index) > math.MaxInt32-chunkBytes {
					return nil, tooManyEntries(m.Name)
				}
				out.set(to-rows.Start, chunk, r)
				filled++
			}
		}
		at += c.Rows
	}
	return &Shard{sample: m.SampleLen(), sparse: out}, unfilled(m.Name, filled, rows.Len())
}

// expected is for how many entries to allocate: those of all chunks that a range touches, or as many as random rows
// have in the mean, and a sixteenth.
func (p Part) expected(drawn bool, rows disdel.RowRange) int {
	at, entries := 0, 0
	for _, c := range p.Chunks {
		if drawn || at < rows.End && at+c.Rows > rows.Start {
			entries += c.Entries
		}
		at += c.Rows
	}
	if !drawn || rows.Len() == p.Rows {
		return entries
	}
	mean := float64(entries) / float64(max(1, p.Rows))
	return min(entries, int(mean*float64(rows.Len())*17/16)+1)
}

func tooManyEntries(name string) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read data set " + name, Msg: "a shard has more entries than fit",
		Hint: "raise distribution.workers",
	}
}

// sparseFaults compares the numbers of a manifest of sparse rows with each other, and tells whether its columns are
// valid.
func (m *Manifest) sparseFaults(fault func(wrong bool, format string, args ...any)) (columns bool) {
	d := m.Sparse
	fault(m.DType != sparseType || d == nil, "dtype is %.20q, and sparse is %v", m.DType, d != nil)
	columns = len(m.Sample) == 1 && m.Sample[0] >= 1 && m.Sample[0] <= math.MaxInt32
	if d == nil || !columns {
		return columns
	}
	fault(m.Classes > 2, "classes is %d, and sparse rows have 1 or 2", m.Classes)
	fault(d.Most < 0 || d.Most > m.Sample[0] || d.Entries < 0, "%d entries, %d of a row, of %d columns", d.Entries, d.Most,
		m.Sample[0])
	fault(d.Users != 0 && (d.Users < 1 || d.Items < 1 || d.Users > m.Sample[0] || d.Users+d.Items != m.Sample[0]),
		"%d users and %d items of %d columns", d.Users, d.Items, m.Sample[0])
	fault(!finite64(d.Mean) || !finite64(d.Deviation) || !finite64(d.Bayes) || !finite(d.Low) || !finite(d.High),
		"targets of mean %g and deviation %g", d.Mean, d.Deviation)
	entries := int64(0)
	for _, p := range []Part{m.Train, m.Test} {
		for _, c := range p.Chunks {
			if c.Entries < 0 || c.Entries > math.MaxInt32 {
				fault(true, "%.120q has %d entries", c.Key, c.Entries)
				return columns
			}
			entries += int64(c.Entries)
		}
	}
	fault(entries != d.Entries, "%d entries, and its chunks have %d", d.Entries, entries)
	return columns
}

// sparseChunkSize is the size of a chunk of sparse rows.
func (m *Manifest) sparseChunkSize(c Chunk) disdel.Bytes {
	if c.Rows < 0 || c.Rows > math.MaxInt32 || c.Entries < 0 || c.Entries > math.MaxInt32 {
		return 1 << 60
	}
	return disdel.Bytes(int64(c.Rows)*sparseRowMin + startBytes + int64(c.Entries)*bytesOfEntry(m.Sparse.Ones))
}

func finite64(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// sparseType is the DType of a manifest of sparse rows.
const sparseType = "CSR"

// sparseRows is the rows of a shard of sparse data. Their entries are in the order in which they were read, which
// differs from that of randomly drawn rows.
type sparseRows struct {
	place   []extent // by row: of its entries
	index   []int32
	value   []float32 // nil: every entry is 1
	target  []float32 // by row
	maximum int32     // of the columns
	odd     bool      // a column is negative, or a value is not finite
}

// extent is where a row's entries start and end, next to each other for fast random access.
type extent struct{ begin, end int32 }

// The size of a sparse row in memory without its target, and of an entry; in a file a row has one offset, not two.
const (
	rowBytes     = 8
	startBytes   = 4
	columnBytes  = 4
	entryBytes   = 8 // a column and a value
	targetBytes  = 4
	sparseRowMin = startBytes + targetBytes // of a row without entries in a file
)

func bytesOfEntry(ones bool) int64 {
	if ones {
		return columnBytes
	}
	return entryBytes
}

// sparseSize is the mean size of a row of sparse data in memory without its target.
func (m *Manifest) sparseSize() disdel.Bytes {
	rows := int64(max(1, m.Train.Rows+m.Test.Rows))
	return disdel.Bytes(rowBytes + (m.Sparse.Entries*bytesOfEntry(m.Sparse.Ones)+rows-1)/rows)
}

func newSparseRows(rows, entries int, ones bool) *sparseRows {
	s := &sparseRows{
		place: make([]extent, rows), target: make([]float32, rows), index: make([]int32, 0, entries),
	}
	if !ones {
		s.value = make([]float32, 0, entries)
	}
	return s
}

func (s *sparseRows) size() disdel.Bytes {
	return disdel.Bytes(4 * (2*len(s.place) + len(s.target) + cap(s.index) + cap(s.value)))
}

// set appends the entries of a chunk's row as those of row to.
func (s *sparseRows) set(to int, c *sparseChunk, row int) {
	from, until := c.start(row), c.start(row+1)
	s.place[to].begin = int32(len(s.index))
	s.index = appendInt32s(s.index, c.index[4*from:4*until])
	if s.value != nil {
		s.value = appendFloat32s(s.value, c.value[4*from:4*until])
	}
	s.place[to].end = int32(len(s.index))
	s.target[to] = float32At(c.target, row)
	s.look(int(s.place[to].begin))
}

// look checks the entries from one on.
func (s *sparseRows) look(from int) {
	for _, c := range s.index[from:] {
		s.maximum, s.odd = max(s.maximum, c), s.odd || c < 0
	}
	if s.value == nil {
		return
	}
	for _, v := range s.value[from:] {
		s.odd = s.odd || v-v != 0
	}
}

func (s *sparseRows) newBatch(rows, columns int) Batch {
	return Batch{
		Input:  Matrix{Columns: columns, Start: make([]int32, 0, rows+1)},
		Target: Target{Values: make([]float32, 0, rows)},
	}
}

func (s *sparseRows) fill(b *Batch, rows []int32, columns int) {
	n := 0
	for _, r := range rows {
		n += int(s.place[r].end - s.place[r].begin)
	}
	in := &b.Input
	in.Rows, in.Columns, in.Checked = len(rows), columns, !s.odd && int(s.maximum) < columns
	in.Start = sized(in.Start, len(rows)+1)
	in.Index = roomy(in.Index, n)
	values := in.Values
	in.Values = nil
	if s.value != nil {
		in.Values = roomy(values, n)
	}
	b.Target.Values, b.Target.Classes = sized(b.Target.Values, len(rows)), nil
	at := 0
	for i, r := range rows {
		from, to := s.place[r].begin, s.place[r].end
		in.Start[i] = int32(at)
		copy(in.Index[at:], s.index[from:to])
		if s.value != nil {
			copy(in.Values[at:], s.value[from:to])
		}
		at += int(to - from)
		b.Target.Values[i] = s.target[r]
	}
	in.Start[len(rows)] = int32(at)
}

// roomy is sized with an eighth more if it allocates: batches of sparse rows differ in size.
func roomy[T any](v []T, n int) []T {
	if n > cap(v) {
		return make([]T, n, n+n/8)
	}
	return v[:n]
}

func appendInt32s(dst []int32, data []byte) []int32 {
	for i := 0; i+4 <= len(data); i += 4 {
		dst = append(dst, int32(binary.LittleEndian.Uint32(data[i:])))
	}
	return dst
}

func appendFloat32s(dst []float32, data []byte) []float32 {
	for i := 0; i+4 <= len(data); i += 4 {
		dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(data[i:])))
	}
	return dst
}

func float32At(data []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
}

// sample returns some rows as `infer --input` reads them.
func (s *sparseRows) sample(shape, rows []int) SampleRows {
	doc := SampleRows{Shape: shape}
	for _, r := range rows {
		at := s.place[r]
		row := disdel.SparseRow{Index: append([]int32{}, s.index[at.begin:at.end]...)}
		if s.value != nil {
			row.Value = append([]float32{}, s.value[at.begin:at.end]...)
		}
		doc.Rows, doc.Targets = append(doc.Rows, row), append(doc.Targets, s.target[r])
	}
	return doc
}
