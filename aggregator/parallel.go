package aggregator

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// depth is how many reads or writes of a value are under way at once: one on the wire, one in the server, one being
// worked on.
const depth = 3

// fetched is one item as it came.
type fetched struct {
	data []byte
	err  error
}

// ahead reads items 0 to n-1 on several connections at once and gives them to use in their order. Each reader has one
// buffer of size bytes, which it fills again once use has returned: memory is bounded whatever n is. When the context
// ends it returns the context's cause, having waited for the readers: fetch is expected to return then, too.
func ahead(ctx context.Context, n, size int, fetch fetching, use func(i int, data []byte) error) error {
	return aheadBy(ctx, n, size, 0, fetch, use)
}

// fetching reads item i, into buf if it fits.
type fetching func(ctx context.Context, i int, buf []byte) ([]byte, error)

// aheadBy is ahead where use may still look at the data of the kept items before i, of which there are fewer than
// depth: no more is held than in ahead, and less is under way.
func aheadBy(
	ctx context.Context, n, size, kept int, fetch fetching, use func(i int, data []byte) error,
) error {
	ctx, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	var panics caught
	defer panics.raise()
	defer readers.Wait()
	defer stop()
	width := min(depth, n)
	ready, free := make([]chan fetched, width), make([]chan struct{}, width)
	for slot := range width {
		ready[slot], free[slot] = make(chan fetched, 1), make(chan struct{}, 1)
		readers.Go(func() {
			defer panics.capture(stop)
			buf := make([]byte, size)
			for i := slot; i < n; i += width {
				data, err := fetch(ctx, i, buf)
				ready[slot] <- fetched{data, err} // never blocks: the one before was taken
				select {
				case <-free[slot]:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for i := range n {
		var got fetched
		select {
		case got = <-ready[i%width]:
		case <-ctx.Done(): // its reader may be gone
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case got.err != nil:
			return got.err
		}
		if err := use(i, got.data); err != nil {
			return err
		}
		if i >= kept {
			free[(i-kept)%width] <- struct{}{}
		}
	}
	return nil
}

// each is eachOf for depth at once.
func each(ctx context.Context, n int, f func(ctx context.Context, worker, i int) error) error {
	return eachOf(ctx, n, depth, f)
}

// eachOf does f for 0 to n-1, at most width at once, and returns the error of the smallest index that failed. worker
// tells those at work apart, so that each can keep a buffer.
func eachOf(ctx context.Context, n, width int, f func(ctx context.Context, worker, i int) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	width = min(width, n)
	faults, at := make([]error, width), make([]int, width)
	var workers sync.WaitGroup
	var panics caught
	for w := range width {
		workers.Go(func() {
			defer panics.capture(stop)
			for i := w; i < n && ctx.Err() == nil; i += width {
				if faults[w] = f(ctx, w, i); faults[w] != nil {
					at[w] = i
					stop()
					return
				}
			}
		})
	}
	workers.Wait()
	panics.raise()
	return first(ctx, faults, at)
}

// first is the fault that the others followed from: a reader that was stopped reports being stopped.
func first(ctx context.Context, faults []error, at []int) error {
	var out error
	best := -1
	for w, err := range faults {
		switch {
		case err == nil:
		case best < 0, stopped(faults[best]) && !stopped(err), stopped(faults[best]) == stopped(err) && at[w] < at[best]:
			out, best = err, w
		}
	}
	if best < 0 {
		return context.Cause(ctx)
	}
	return out
}

// caught keeps the first panic of goroutines that work for a caller, who raises it again: in theirs it would end the
// process, in the caller's the action runtime makes an answer of it.
type caught struct{ first atomic.Pointer[elsewhere] }

// elsewhere is what a goroutine panicked with, and where.
type elsewhere struct {
	value any
	stack []byte
}

// String is the value, as if it had been raised here.
func (e *elsewhere) String() string { return fmt.Sprint(e.value) }

// Stack is the goroutine's, as debug.Stack writes it.
func (e *elsewhere) Stack() []byte { return e.stack }

// capture is to be deferred by the goroutine. then is called after a panic, to let the others know.
func (c *caught) capture(then func()) {
	if r := recover(); r != nil {
		c.first.CompareAndSwap(nil, &elsewhere{r, debug.Stack()})
		then()
	}
}

// raise is to be called when all of them have ended.
func (c *caught) raise() {
	if e := c.first.Load(); e != nil {
		panic(e)
	}
}
