package actions

import (
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// feed puts the batches of an action together, each by as many goroutines as the action computes with. Where the engine
// computes on a device, whose processor waits meanwhile, the batch that follows is filled beside the one that computes,
// into memory of its own, which the estimate has. On the processor itself that would win nothing: all its threads
// compute, and one that fills is missed wherever they wait for each other. It is for one goroutine.
type feed struct {
	filler *dataset.Filler
	fill   func(b *dataset.Batch, number int) // puts a batch of this number together
	beside bool
	batch  dataset.Batch // that computes

	next   dataset.Batch
	number int      // that next is filled for
	done   chan any // gets what filling it panicked with; nil: nothing is being filled
}

// newFeed is one for batches of so many rows of a shard; fill says which rows a number has.
func newFeed(e engine.Engine, s *dataset.Shard, rows, threads int) *feed {
	f := &feed{filler: s.Filler(threads), batch: s.NewBatch(rows), beside: onDevice(e)}
	if f.beside {
		f.next = s.NewBatch(rows)
	}
	return f
}

// onDevice tells whether an engine computes on a device, with memory of its own.
func onDevice(e engine.Engine) bool { return e.Footprint().In(footprint.Device) > 0 }

// threads is how many processors an action takes that computes with so many: who waits for a device has one still.
func (f *feed) threads(computing int) int {
	if f.beside && computing > 0 {
		return computing + 1
	}
	return computing
}

// take returns the batch of a number, good until the next call. then is the one that will be taken next, below 0 where
// that is not known or none.
func (f *feed) take(number, then int) dataset.Batch {
	if f.wait() && f.number == number {
		f.batch, f.next = f.next, f.batch
	} else {
		f.fill(&f.batch, number)
	}
	if f.beside && then >= 0 {
		f.start(then)
	}
	return f.batch
}

// start has a goroutine fill next, which ends when it is filled.
func (f *feed) start(number int) {
	f.number = number
	fill, done := f.fill, make(chan any, 1)
	f.done = done
	go func() {
		defer func() { done <- recover() }()
		fill(&f.next, number)
	}()
}

// wait waits until next is filled, and tells whether it was being. Who leaves a feed calls it: until then a goroutine
// may read the shard. What filling panicked with is raised here: in its own goroutine it would have ended the process.
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
