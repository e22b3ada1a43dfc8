package kernel

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"unsafe"
)

// Team is a number of workers that compute together.
type Team struct {
	workers   []*Worker
	starts    []func() // one a worker but the first: go statements of these allocate nothing
	job       func(*Worker)
	arrived   atomic.Int32
	turn      atomic.Uint32
	remaining atomic.Int32
	pile      atomic.Uint64         // what is left of the things that workers take, see take
	fault     atomic.Pointer[Panic] // the first worker's that panicked
}

// Worker is one member of a team, with the argument blocks that its kernels take.
type Worker struct {
	Set
	ID, N   int // its number, and how many there are
	team    *Team
	piles   uint32 // that it has taken from in this run
	prod    productArgs
	tr      transposeArgs
	elem    elementArgs
	expo    exponentArgs
	recur   recurrentArgs
	lane    laneSums
	chn     channelArgs
	grads   [lanes][2][lanes]float32 // sums of 16 channels of a layer norm
	tap     tapArgs
	offs    []int64
	woffs   []int64
	part    [16]float32
	soft    [2][lanes]float32          // the largest of 16 rows, and sums of their exponentials
	moments [2][momentPiece]float32    // a piece of those that are kept elsewhere
	edge    [2 * lanes * lanes]float32 // a tile at the edge of a matrix; pixels of 16 filters

	halves halvesArgs
	wide   []float32 // a block of halves as values; nil until there is one
	shift  int       // values of weights that are not there before those that are, see ForwardPart
	rounds bool      // products round their operands, see Rounding

	parts  []patch // of the product at work
	pieces []piece // of the line at work
	after  *After  // what the product at work does to its outputs
	wino   winogradArgs
	flow   flow
	task   attentionTask
	taps   [tilePixels]int64           // of a tile
	half   [tilePixels * lanes]float32 // transformed
}

// NewTeam makes a team of n workers; taps is the most pixels of a pool's or a depthwise convolution's window.
func NewTeam(s Set, n, taps int) *Team {
	t := &Team{}
	for i := range max(n, 1) {
		w := &Worker{
			Set: s, ID: i, N: max(n, 1), team: t, offs: make([]int64, max(taps, 1)),
			woffs: make([]int64, max(taps, 1)),
		}
		t.workers = append(t.workers, w)
		if i > 0 {
			t.starts = append(t.starts, func() {
				defer t.remaining.Add(-1)
				t.work(w)
			})
		}
	}
	return t
}

// Size is the number of workers.
func (t *Team) Size() int { return len(t.workers) }

// Kernels names the set that the team computes with, rounding to bfloat16 or not: the path whose bits these are.
func (t *Team) Kernels(rounds bool) string {
	s := &t.workers[0].Set
	if !rounds && s.plain != "" {
		return s.plain
	}
	return s.Name
}

// Run has every worker do job and returns when all have; the caller is the first worker. No goroutine is left behind.
// When a worker panics the others stop where they would wait for it, and Run panics with the first one's *Panic: in a
// goroutine of its own it would end the process, whoever the caller is.
func (t *Team) Run(job func(*Worker)) {
	if len(t.starts) == 0 {
		job(t.workers[0])
		return
	}
	t.job = job
	t.pile.Store(0)
	for _, w := range t.workers {
		w.piles = 0
	}
	t.remaining.Store(int32(len(t.starts)))
	for _, start := range t.starts {
		go start()
	}
	t.work(t.workers[0])
	for spins := 0; t.remaining.Load() > 0; spins++ {
		pause(spins)
	}
	if p := t.fault.Load(); p != nil {
		t.fault.Store(nil)
		t.arrived.Store(0)
		panic(p)
	}
}

// Panic is what a worker panicked with, and where.
type Panic struct {
	Value any
	stack []byte
}

// String is the value, as if it had been raised here.
func (p *Panic) String() string { return fmt.Sprint(p.Value) }

// Stack is the worker's, as debug.Stack writes it.
func (p *Panic) Stack() []byte { return p.stack }

// deserted is what a worker stops with that would wait for one that has panicked.
type deserted struct{}

// work does the job as one worker, and keeps what it panics with.
func (t *Team) work(w *Worker) {
	defer func() {
		switch r := recover(); r.(type) {
		case nil, deserted:
		default:
			t.fault.CompareAndSwap(nil, &Panic{r, debug.Stack()})
		}
	}()
	t.job(w)
}

// Sync waits until every worker of the team has called it. It does not return when one of them has panicked.
func (w *Worker) Sync() {
	if w.N == 1 {
		return
	}
	t := w.team
	turn := t.turn.Load()
	if int(t.arrived.Add(1)) == w.N {
		t.arrived.Store(0)
		t.turn.Add(1)
		return
	}
	for spins := 0; t.turn.Load() == turn; spins++ {
		if t.fault.Load() != nil {
			panic(deserted{})
		}
		pause(spins)
	}
}

// pause spins for some microseconds, the usual wait, and then lets others run: goroutines of this process first, since
// a worker may not have a thread yet, then other threads.
func pause(spins int) {
	const patience = 2000
	switch {
	case spins > patience && spins%2 == 0:
		runtime.Gosched()
	case spins > patience:
		yield()
	}
}

// take calls f with parts of n things until all are taken: a worker that has less to do, or more of a processor, takes
// more of them. Parts are large at first and small at the end, where workers wait for the last of them. All workers
// call it with the same n, one after the other or at once, and nobody waits. Which worker computes a thing is nothing
// that its value may depend on.
func (w *Worker) take(n int, f func(from, to int)) {
	if w.N == 1 {
		f(0, n)
		return
	}
	w.piles++
	for {
		from, to := w.team.draw(w.piles, n)
		if from == to {
			return
		}
		f(from, to)
	}
}

// draw takes things from a pile, none where all are gone: half of what each worker had if the rest were shared now, and
// no less than a thirty-second of what each would have had of all. The word has the pile's number, and how many are
// gone. A worker is at the next pile once all of this one are gone, so that a later number says just that.
func (t *Team) draw(pile uint32, n int) (from, to int) {
	const halves, minimum = 2, 32
	workers := len(t.workers)
	for {
		word := t.pile.Load()
		at, gone := uint32(word>>32), int(uint32(word))
		if at < pile {
			gone = 0
		}
		if at > pile || gone >= n {
			return 0, 0
		}
		to = min(n, gone+max(1, n/(minimum*workers), (n-gone)/(halves*workers)))
		if t.pile.CompareAndSwap(word, uint64(pile)<<32|uint64(to)) {
			return gone, to
		}
	}
}

// share is this worker's part of n things, from and to.
func (w *Worker) share(n int) (from, to int) { return n * w.ID / w.N, n * (w.ID + 1) / w.N }

// chunk is this worker's part of n values, in whole cache lines.
func (w *Worker) chunk(n int) (from, to int) {
	from, to = w.share(n / lanes)
	return from * lanes, to * lanes
}

func p(s []float32, i int) unsafe.Pointer { return unsafe.Pointer(&s[i]) }
