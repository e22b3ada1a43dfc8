package dataset

import (
	"slices"
	"sync"
)

// Filler puts batches of a shard together by several goroutines at once. Each writes rows of its own, so that the bits
// do not depend on how many there are. It is for one goroutine.
type Filler struct {
	parts  []*fillPart
	starts []func() // one a part but the first: go statements of these allocate nothing
	wait   sync.WaitGroup
}

// fillPart is what one goroutine does of a batch.
type fillPart struct {
	shard  *Shard // with working memory of its own
	batch  Batch  // its rows, in the memory of the whole one
	rows   []int32
	show   showing
	raised any // what it panicked with
}

// showing is how rows are seen: as they are, or as training sees them in an epoch.
type showing struct {
	augmented bool
	seed      int64
	epoch     int
}

// leastPart is the values that are worth a goroutine: fewer are written in the time that it takes to start one.
const leastPart = 16 << 10

// Filler returns one that fills by so many goroutines, the caller's among them; below 1 is 1.
func (s *Shard) Filler(threads int) *Filler {
	f := &Filler{parts: []*fillPart{{shard: s}}}
	for range max(threads, 1) - 1 {
		if s.sparse != nil { // whose rows begin where those before them end
			break
		}
		p := &fillPart{shard: s.view()}
		f.parts = append(f.parts, p)
		f.starts = append(f.starts, func() {
			defer f.wait.Done()
			defer func() { p.raised = recover() }()
			p.fill()
		})
	}
	return f
}

// view is the same rows with working memory of its own, for another goroutine.
func (s *Shard) view() *Shard {
	v := *s
	if s.to != nil {
		to := *s.to
		to.row = slices.Clone(to.row)
		v.to = &to
	}
	if s.change != nil {
		change := *s.change
		change.image = slices.Clone(change.image)
		v.change = &change
	}
	return &v
}

// Fill is Shard.Fill.
func (f *Filler) Fill(b *Batch, rows []int32) { f.fill(b, rows, showing{}) }

// FillAugmented is Shard.FillAugmented.
func (f *Filler) FillAugmented(b *Batch, rows []int32, seed int64, epoch int) {
	f.fill(b, rows, showing{augmented: true, seed: seed, epoch: epoch})
}

// fill has the parts write their rows, and returns when all have. A part that panics does so here, in the caller's
// goroutine: in its own it would end the process.
func (f *Filler) fill(b *Batch, rows []int32, show showing) {
	s := f.parts[0].shard
	columns := s.SampleLen()
	n := max(1, min(len(f.parts), len(rows), len(rows)*columns/leastPart))
	if n == 1 {
		s.show(b, rows, show)
		return
	}
	s.makeRoom(b, len(rows))
	f.wait.Add(n - 1)
	for i, p := range f.parts[:n] {
		from, to := len(rows)*i/n, len(rows)*(i+1)/n
		p.rows, p.show = rows[from:to], show
		p.batch.Input.Values = b.Input.Values[from*columns : to*columns]
		p.batch.Target.Classes = b.Target.Classes[from:to]
		if i > 0 {
			go f.starts[i-1]()
		}
	}
	defer f.end(n)
	f.parts[0].fill()
}

// end waits for the parts, and lets go of the batch.
func (f *Filler) end(n int) {
	f.wait.Wait()
	var raised any
	for _, p := range f.parts[:n] {
		if p.raised != nil {
			raised = p.raised
		}
		p.batch, p.rows, p.raised = Batch{}, nil, nil
	}
	if raised != nil {
		panic(raised)
	}
}

func (p *fillPart) fill() { p.shard.show(&p.batch, p.rows, p.show) }

// show fills a batch as it is to be seen.
func (s *Shard) show(b *Batch, rows []int32, how showing) {
	if how.augmented {
		s.FillAugmented(b, rows, how.seed, how.epoch)
		return
	}
	s.Fill(b, rows)
}
