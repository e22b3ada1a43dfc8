package runtime

import (
	"sync"
	"time"

	"github.com/disdel/disdel"
)

// watch looks at resident memory for as long as activations run, and for a moment after: where one follows the other,
// none is worth a timer of its own, which costs a short one more than its work.
type watch struct {
	every  time.Duration
	memory func() (resident, peak disdel.Bytes)

	mu     sync.Mutex
	runs   map[*watched]bool
	looks  bool // a goroutine does
	recent bool // an activation began since it last looked
}

// watched is an activation that runs.
type watched struct {
	limit disdel.Bytes      // 0: none
	was   chan disdel.Bytes // gets what was resident once that is too much
}

func newWatch(every time.Duration, memory func() (resident, peak disdel.Bytes)) *watch {
	return &watch{every: every, memory: memory, runs: map[*watched]bool{}}
}

// begin has memory looked at for an activation, until end.
func (w *watch) begin(limit disdel.Bytes) *watched {
	run := &watched{limit, make(chan disdel.Bytes, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[run], w.recent = true, true
	if !w.looks {
		w.looks = true
		go w.work()
	}
	return run
}

func (w *watch) end(run *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs, run)
}

// work looks until nothing has run from one look to the next.
func (w *watch) work() {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for range ticker.C {
		resident, _ := w.memory()
		if !w.compare(resident) {
			return
		}
	}
}

// compare tells those whose limit is near what is resident, and whether there is anything to go on looking for.
func (w *watch) compare(resident disdel.Bytes) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for run := range w.runs {
		if run.limit > 0 && resident > run.limit/100*97 {
			select {
			case run.was <- resident:
			default: // it is told already
			}
		}
	}
	w.looks = w.recent || len(w.runs) > 0
	w.recent = false
	return w.looks
}
