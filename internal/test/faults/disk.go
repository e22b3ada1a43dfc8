package faults

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// diskCalls are the calls to the disk that FailEveryDiskCall has fail, and how, in the words of strace. Where retval is
// 0, nothing is written and the call says so: a short write.
var diskCalls = []struct{ name, how string }{
	{"fsync", "error=EIO"},
	{"fdatasync", "error=EIO"},
	{"write", "error=ENOSPC"},
	{"write", "retval=0"},
	{"pwrite64", "error=ENOSPC"},
	{"pwrite64", "retval=0"},
	{"pread64", "error=EIO"},
	{"ftruncate", "error=ENOSPC"},
	{"renameat", "error=EIO"},
	{"linkat", "error=EIO"},
	{"unlinkat", "error=EIO"},
	{"mkdirat", "error=ENOSPC"},
	{"openat", "error=EMFILE"},
	{"getdents64", "error=EIO"},
}

const (
	diskVariable  = "DISDEL_TEST_DISK_FOLDER"
	limitVariable = "DISDEL_TEST_DISK_LIMIT" // bytes that a file can have
)

// EveryCall tells whether tests of failing calls try all calls, and not a few of each kind.
func EveryCall() bool { return os.Getenv("DISDEL_TEST_EVERY_CALL") != "" }

// FailEveryDiskCall runs work again and again in a process of its own, with an empty folder. In each run one call to
// the disk fails: every k-th of every kind, or about three of each kind unless DISDEL_TEST_EVERY_CALL is set. In other
// runs files cannot grow above a limit: the write that reaches it is cut within, and the next one fails.
//
// work says by done what was acknowledged to it, and by failed what was not. check looks at the folder afterwards, in
// an undisturbed process. Each run with a failure is a subtest. A test calls FailEveryDiskCall and nothing else. It
// skips without strace.
func FailEveryDiskCall(t *testing.T, work func(dir string, done func(what string), failed func(error)),
	check func(t *testing.T, dir string, done []string),
) {
	t.Helper()
	if dir := os.Getenv(diskVariable); dir != "" {
		disturbed(t, dir, work)
		return
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed; scripts/test-deps.sh installs it")
	}
	r := diskRun{strace: strace, name: "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$", check: check}
	for _, c := range diskCalls {
		first := r.run(t, "trace="+c.name+","+marker, 0)
		for k := first.before + 1; k <= first.calls; k += stride(first.calls - first.before) {
			t.Run(fmt.Sprintf("%s_%s_%d", c.name, c.how, k), func(t *testing.T) {
				if r.run(t, fmt.Sprintf("inject=%s:%s:when=%d", c.name, c.how, k), 0).failed {
					t.Logf("kth disk: call %d of %s fails", k, c.name)
				}
			})
		}
	}
	largest := r.run(t, "trace=none", 0).largest
	const limits = 40
	for i := 0; i < limits; i += stride(limits) {
		limit := max(1, largest*int64(i)/limits+7) // within a write, since few end there
		t.Run(fmt.Sprintf("cut_%d", limit), func(t *testing.T) {
			r.run(t, "trace=none", limit)
			t.Logf("kth disk: files have %d bytes at most", limit)
		})
	}
}

// stride is the distance of the calls that fail.
func stride(calls int) int {
	if EveryCall() {
		return 1
	}
	return max(1, calls/3)
}

// disturbed does the work on one thread, since strace counts the calls of each thread by themselves.
func disturbed(t *testing.T, dir string, work func(dir string, done func(what string), failed func(error))) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if r, w, err := os.Pipe(); err == nil { // the marker; and Go's runtime opens two files of its own with the first one
		r.Close()
		w.Close()
	}
	if limit, err := strconv.ParseUint(os.Getenv(limitVariable), 10, 64); err == nil {
		signal.Ignore(unix.SIGXFSZ)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: unix.RLIM_INFINITY}); err != nil {
			t.Fatal(err)
		}
	}
	before := openFiles()
	work(dir, func(what string) { fmt.Println("done " + what) }, func(err error) {
		if err.Error() == "" {
			t.Error("an error that says nothing")
		}
	})
	if after := openFiles(); after > before && before > 0 { // 0: the call that lists them failed
		t.Errorf("%d files are open, %d before", after, before)
	}
}

func openFiles() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

type diskRun struct {
	strace string
	name   string // the test, for -test.run
	check  func(t *testing.T, dir string, done []string)
}

// marker is the call with which the work begins. The loader's and the runtime's come before.
const marker = "pipe2"

// diskCount is what happened in a run.
type diskCount struct {
	calls   int  // that the busiest thread made
	before  int  // that the thread of the work made before the marker
	failed  bool // one of them
	largest int64
}

// run does the work once under strace with an expression, and with files of at most limit bytes unless it is 0.
func (r diskRun) run(t *testing.T, expression string, limit int64) diskCount {
	t.Helper()
	dir := t.TempDir()
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(r.strace, "-f", "-qq", "-o", trace, "-e", expression, os.Args[0], "-test.run", r.name)
	cmd.Env = append(os.Environ(), diskVariable+"="+dir)
	if limit > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", limitVariable, limit))
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	list, err2 := os.ReadFile(trace)
	if err2 != nil {
		t.Skipf("strace cannot trace here: %s", out)
	}
	if err != nil && !bytes.Contains(out, []byte("netpollBreak")) && // Go's runtime also writes, and ends where it cannot
		!bytes.Contains(out, []byte("loading shared libraries")) { // nor do the loader's calls belong to the work
		t.Errorf("%s: %v\n%s", expression, err, out)
	}
	var done []string
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		if what, ok := strings.CutPrefix(s.Text(), "done "); ok {
			done = append(done, what)
		}
	}
	largest, failed := largestFile(dir), t.Failed() // check may write; a run before may have failed
	r.check(t, dir, done)
	if t.Failed() && !failed {
		t.Fatalf("with %s; acknowledged: %q", expression, done)
	}
	n := countCalls(list)
	n.largest = largest
	return n
}

// countCalls counts the calls of a trace by thread.
func countCalls(trace []byte) (n diskCount) {
	byThread, marked := map[int]int{}, false
	for line := range strings.Lines(string(trace)) {
		thread, call, _ := strings.Cut(line, " ")
		id, err := strconv.Atoi(thread)
		switch {
		case err != nil || !strings.Contains(call, "("):
		case strings.HasPrefix(strings.TrimSpace(call), marker):
			if !marked {
				n.before, marked = byThread[id], true
			}
		default:
			byThread[id]++
			n.calls = max(n.calls, byThread[id])
		}
	}
	n.failed = bytes.Contains(trace, []byte("(INJECTED)"))
	return n
}

func largestFile(dir string) (size int64) {
	filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error { //nolint:errcheck // it returns no error
		if err != nil {
			return nil //nolint:nilerr // a smaller file will do
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size = max(size, info.Size())
		}
		return nil
	})
	return size
}
