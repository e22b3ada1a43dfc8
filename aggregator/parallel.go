package aggregator

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// readDepth is how many reads or writes of a value run at once: one in the network, one in the server, one in use.
const readDepth = 3

// alike are the sizes of readers that have buffers of the same size.
func alike(size int) func(reader int) int { return func(int) int { return size } }

// fetchedItem is the result of one read.
type fetchedItem struct {
	data []byte
	err  error
}

// readAhead reads items 0 to n-1 on several connections and calls use in their order. Each reader has one buffer, which
// it reuses after use has returned, so memory is bounded. Reader k reads the items k, k+readDepth and so on, of at most
// size(k) bytes. If ctx ends, readAhead waits for the readers and returns the cause.
func readAhead(
	ctx context.Context, n int, size func(reader int) int, fetch fetchFunc, use func(i int, data []byte) error,
) error {
	return readAheadKeeping(ctx, n, size, 0, fetch, use)
}

// fetchFunc reads item i, into buf if it fits.
type fetchFunc func(ctx context.Context, i int, buf []byte) ([]byte, error)

// readAheadKeeping is readAhead for a use that may still look at the data of the kept items before i. kept must be less
// than readDepth.
func readAheadKeeping(
	ctx context.Context, n int, size func(reader int) int, kept int, fetch fetchFunc,
	use func(i int, data []byte) error,
) error {
	ctx, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	var panics panicCatcher
	defer panics.raise()
	defer readers.Wait()
	defer stop()
	width := min(readDepth, n)
	ready, free := make([]chan fetchedItem, width), make([]chan struct{}, width)
	for slot := range width {
		ready[slot], free[slot] = make(chan fetchedItem, 1), make(chan struct{}, 1)
		readers.Go(func() {
			defer panics.capture(stop)
			buf := make([]byte, size(slot))
			for i := slot; i < n; i += width {
				data, err := fetch(ctx, i, buf)
				ready[slot] <- fetchedItem{data, err} // never blocks: the previous item was taken
				select {
				case <-free[slot]:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for i := range n {
		var got fetchedItem
		select {
		case got = <-ready[i%width]:
		case <-ctx.Done(): // the reader may have ended
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

// forEach is forEachN with readDepth.
func forEach(ctx context.Context, n int, f func(ctx context.Context, worker, i int) error) error {
	return forEachN(ctx, n, readDepth, f)
}

// forEachN calls f for 0 to n-1, at most width at once, and returns the error of the smallest index that failed. worker
// numbers the goroutines, so that each can have its own buffer.
func forEachN(ctx context.Context, n, width int, f func(ctx context.Context, worker, i int) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	width = min(width, n)
	faults, at := make([]error, width), make([]int, width)
	var workers sync.WaitGroup
	var panics panicCatcher
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
	return firstFault(ctx, faults, at)
}

// firstFault returns the error that caused the others. Errors of goroutines that were only stopped come last.
func firstFault(ctx context.Context, faults []error, at []int) error {
	var out error
	best := -1
	for w, err := range faults {
		switch {
		case err == nil:
		case best < 0, isStopped(faults[best]) && !isStopped(err),
			isStopped(faults[best]) == isStopped(err) && at[w] < at[best]:
			out, best = err, w
		}
	}
	if best < 0 {
		return context.Cause(ctx)
	}
	return out
}

// panicCatcher keeps the first panic of the caller's goroutines, so that the caller can raise it. A panic in a
// goroutine would end the process; the action runtime turns the caller's panic into an answer.
type panicCatcher struct {
	first atomic.Pointer[goroutinePanic]
}

// goroutinePanic is a recovered panic with its stack.
type goroutinePanic struct {
	value any
	stack []byte
}

// String is the panic's value.
func (e *goroutinePanic) String() string { return fmt.Sprint(e.value) }

// Stack is the goroutine's stack, as from debug.Stack.
func (e *goroutinePanic) Stack() []byte { return e.stack }

// capture must be deferred by the goroutine. It calls then after a panic, to stop the others.
func (c *panicCatcher) capture(then func()) {
	if r := recover(); r != nil {
		c.first.CompareAndSwap(nil, &goroutinePanic{r, debug.Stack()})
		then()
	}
}

// raise must be called after all goroutines have ended.
func (c *panicCatcher) raise() {
	if e := c.first.Load(); e != nil {
		panic(e)
	}
}
