package runtime

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel"
)

// Memory reads from /proc the memory that the kernel cannot take back, and its peak. It counts this process and the
// processes that it has started. Both values are 0 if /proc has no such file. Pages of files are left out: the kernel
// shares them between containers and drops them when memory is short, and their number varies by 20 MB. Memory that
// processes share counts once. The peak is the high-water mark without the pages of files that are mapped now. That of
// other processes counts with what this one has now, so that peaks of different times are not added up. others are
// processes that it has not started itself, and that compute for it.
func Memory(others ...int) (resident, peak disdel.Bytes) {
	own := ownMemory()
	resident = own.anonymous + own.shared
	peak = max(resident, own.peak)
	if len(others) == 0 && !hasChildren() {
		return resident, peak
	}
	anonymous, peaks, shared := own.anonymous, own.anonymous, own.shared
	for _, pid := range descendants(others...) {
		m := memoryOf(strconv.Itoa(pid))
		anonymous += m.anonymous
		peaks += max(m.anonymous, m.peak-m.shared)
		shared = max(shared, m.shared)
	}
	return anonymous + shared, max(peak, anonymous+shared, peaks+shared)
}

// processMemory is the memory of one process: its own, what it shares with others, and the high-water mark of both.
type processMemory struct{ anonymous, shared, peak disdel.Bytes }

func memoryOf(process string) processMemory {
	status, _ := os.ReadFile("/proc/" + process + "/status") // empty: it has ended
	return parseStatus(status)
}

func parseStatus(status []byte) processMemory {
	return processMemory{
		anonymous: kilobytes(status, "\nRssAnon:"),
		shared:    kilobytes(status, "\nRssShmem:"),
		peak:      kilobytes(status, "\nVmHWM:") - kilobytes(status, "\nRssFile:"),
	}
}

// kilobytes is the number after a name in a status, 0 if it is not there.
func kilobytes(status []byte, name string) (n disdel.Bytes) {
	at := bytes.Index(status, []byte(name))
	if at < 0 {
		return 0
	}
	for _, c := range bytes.TrimLeft(status[at+len(name):], " \t") {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + disdel.Bytes(c-'0')
	}
	return n * disdel.KB
}

// descendants lists other processes, and those that they, this process and its children have started.
func descendants(others ...int) (out []int) {
	var next []string
	if hasChildren() { // the threads of this process are many
		next = append(next, "self")
	}
	for _, pid := range others {
		out, next = append(out, pid), append(next, strconv.Itoa(pid))
	}
	for ; len(next) > 0; next = next[1:] {
		tasks, _ := os.ReadDir("/proc/" + next[0] + "/task") // a process that has ended has none
		for _, task := range tasks {
			text, _ := os.ReadFile("/proc/" + next[0] + "/task/" + task.Name() + "/children")
			for word := range strings.FieldsSeq(string(text)) {
				if pid, err := strconv.Atoi(word); err == nil {
					out, next = append(out, pid), append(next, word)
				}
			}
		}
	}
	return out
}

// ContainerLimit reads the memory limit of this process's control group (version 2, then 1), 0 where there is none.
func ContainerLimit() disdel.Bytes {
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if err == nil && n < 1<<50 { // version 1 says "none" with a number near 2^63
			return disdel.Bytes(n)
		}
	}
	return 0
}

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
