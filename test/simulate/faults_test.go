package simulate

import (
	"fmt"
	"hash/fnv"
	"io"
	"sync"
	"time"
)

// fault is a kind of fault.
type fault int

const (
	storeLate      fault = iota // a message to or from Redis takes up to 8 s
	storeCut                    // a connection to Redis breaks before a command arrives
	storeMute                   // a command arrives, and the connection breaks before its answer does
	dialRefused                 // Redis refuses a connection
	callLate                    // a request to OpenWhisk takes up to 8 s
	callLost                    // a request to OpenWhisk does not arrive
	answerLost                  // a request to OpenWhisk arrives, and its answer does not
	callTwice                   // a request to OpenWhisk arrives twice
	callBusy                    // OpenWhisk answers 503
	containerDies               // a container is killed while an activation runs
	startFails                  // a container dies before its activation runs
	runsTwice                   // OpenWhisk runs an activation in two containers at once
	recordLate                  // the record of an activation takes up to 10 s
	recordLost                  // an activation runs and gets no record
	neverRuns                   // an activation is accepted and never runs
	slowStep                    // a training step takes up to 8 s
	controllerDies              // the controller dies, and a new one resumes the job
	saveFails                   // the history store does not save a record
	storeHalf                   // half of a message to Redis arrives before the connection breaks
	clockJumps                  // the clock of Redis goes forward by up to an hour
	blobFails                   // a call to the model store fails
	blobMute                    // a call to the model store has its effect, and its answer gets lost
	blobHalf                    // a write to the model store breaks in the middle
	blobKills                   // a container or a controller is killed at a call to the model store
	diesAtCall                  // a process dies just before a call, during it or just after it
	userStops                   // the user cancels the job, and resumes it
	faults
)

// weather is the faults of one run: how probable each kind is. All of it follows from the seed.
type weather struct {
	seed  uint64
	rates [faults]float64
	trace io.Writer // nil: none

	mu     sync.Mutex
	counts map[string]uint64
	hits   [faults]int
	began  time.Time
}

// newWeather draws the kinds of faults of a run, about a third of the kinds below limit, and their rates. Seed 0 has no
// faults.
func newWeather(seed uint64, trace io.Writer, limit fault) *weather {
	w := &weather{seed: seed, trace: trace, counts: map[string]uint64{}, began: time.Now()}
	if seed == 0 {
		return w
	}
	for f := range limit {
		if w.roll("kind", uint64(f)) < 0.35 {
			most := map[fault]float64{
				controllerDies: 1, recordLost: 0.1, neverRuns: 0.1, startFails: 0.2, runsTwice: 0.4,
				containerDies: 0.4, recordLate: 0.5, saveFails: 0.3, clockJumps: 0.2, diesAtCall: 2, userStops: 1,
			}[f]
			if most == 0 {
				most = 0.06
			}
			w.rates[f] = most * w.roll("rate", uint64(f))
		}
	}
	return w
}

// roll is a number from 0 to 1 that follows from the seed, a name and a count: not from the order of other rolls.
func (w *weather) roll(name string, n uint64) float64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %d", w.seed, name, n)
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// next is the next roll of a name.
func (w *weather) next(name string) float64 {
	w.mu.Lock()
	w.counts[name]++
	n := w.counts[name]
	w.mu.Unlock()
	return w.roll(name, n)
}

// mostStarts is how many containers of a run fail to start: after three in a row a job takes its image for broken.
const mostStarts = 2

// strikes tells whether a fault happens to what now.
func (w *weather) strikes(f fault, what string) bool {
	if w.rates[f] == 0 || w.next(fmt.Sprintf("%d %s", f, what)) >= w.rates[f] || !w.counted(f) {
		return false
	}
	w.note("%v: %s", f, what)
	return true
}

// counted counts a fault, unless there were enough of its kind.
func (w *weather) counted(f fault) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f == startFails && w.hits[f] == mostStarts {
		return false
	}
	w.hits[f]++
	return true
}

// shelfFailed tells whether a call to the model store has failed.
func (w *weather) shelfFailed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hits[blobFails]+w.hits[blobMute]+w.hits[blobHalf] > 0
}

// between is a duration from low to high. It has nanoseconds, so that two things hardly ever happen at once.
func (w *weather) between(low, high time.Duration, what string) time.Duration {
	return low + time.Duration(w.next("time "+what)*float64(high-low))
}

// note writes a line of the trace.
func (w *weather) note(format string, args ...any) {
	if w.trace == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.trace, "%14.6f %s\n", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...))
}

func (f fault) String() string {
	return [...]string{
		"message late", "connection cut", "answer cut off", "connection refused", "request late", "request lost",
		"answer lost", "request twice", "platform busy", "container dies", "start fails", "runs twice", "record late",
		"record lost", "never runs", "slow step", "controller dies", "save fails", "half a message", "clock jumps",
		"storage fails", "storage mute", "half a blob", "killed at a blob", "dies at a call", "user stops",
	}[f]
}
