package actions

import (
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// feed assembles the batches of an action, with as many goroutines as the action has threads. If the engine computes on
// a GPU, the next batch is filled meanwhile into memory of its own, which the estimate includes. On the processor that
// would gain nothing: all threads compute. A feed is for one goroutine.
type feed struct {
	filler     *dataset.Filler
	fill       func(b *dataset.Batch, number int) // puts a batch of this number together
	concurrent bool
	batch      dataset.Batch // that computes

	next   dataset.Batch
	number int      // that next is filled for
	done   chan any // gets what filling it panicked with; nil: nothing is being filled
}

// newFeed makes a feed for batches of a shard with so many rows; fill gives the rows of a batch.
func newFeed(onDevice bool, s *dataset.Shard, rows, threads int) *feed {
	f := &feed{filler: s.Filler(threads), batch: s.NewBatch(rows), concurrent: onDevice}
	if f.concurrent {
		f.next = s.NewBatch(rows)
	}
	return f
}

// onDevice tells whether an engine computes on a GPU.
func onDevice(e engine.Engine) bool { return e.Footprint().In(footprint.Device) > 0 }

// threads is how many processors the feed uses: at least one is free while a GPU computes.
func (f *feed) threads(computing int) int {
	if f.concurrent && computing > 0 {
		return computing + 1
	}
	return computing
}

// take returns a batch, valid until the next call. then is the number of the next batch, below 0 if it is unknown.
func (f *feed) take(number, then int) dataset.Batch {
	if f.wait() && f.number == number {
		f.batch, f.next = f.next, f.batch
	} else {
		f.fill(&f.batch, number)
	}
	if f.concurrent && then >= 0 {
		f.start(then)
	}
	return f.batch
}

// start fills next in a goroutine.
func (f *feed) start(number int) {
	f.number = number
	fill, done := f.fill, make(chan any, 1)
	f.done = done
	go func() {
		defer func() { done <- recover() }()
		fill(&f.next, number)
	}()
}

// wait waits until next is filled, and tells whether it was being filled. Call it before you leave a feed: until then a
// goroutine may read the shard. It re-raises a panic of that goroutine, which would end the process otherwise.
func (f *feed) wait() bool {
	if f.done == nil {
		return false
	}
	raised := <-f.done
	f.done = nil
	if raised != nil {
		panic(raised)
	}
	return true
}
