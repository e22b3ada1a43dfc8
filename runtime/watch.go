package runtime

import (
	"sync"
	"time"

	"github.com/disdel/disdel"
)

// watch checks resident memory while activations run, and for a moment after: a timer for each short activation would
// cost more than its work.
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

// begin starts checking memory for an activation, until end.
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

// work checks until no activation has run between two checks.
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

// compare notifies the activations whose limit is near, and tells whether to continue checking.
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
