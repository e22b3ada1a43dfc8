package faults

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
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
	{"ftruncate", "error=ENOSPC"},
	{"renameat", "error=EIO"},
	{"linkat", "error=EIO"},
}

const diskVariable = "DISDEL_TEST_DISK_FOLDER"

// FailEveryDiskCall runs work again and again in a process of its own, with an empty folder. In each run one call to
// the disk fails: every k-th of every kind, or about three of each kind unless DISDEL_TEST_EVERY_CALL is set.
//
// work says by done what was acknowledged to it, and by failed what was not. check looks at the folder afterwards, in
// an undisturbed process. A test calls FailEveryDiskCall and nothing else. It skips without strace.
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
	r := diskRun{t: t, strace: strace}
	for _, c := range diskCalls {
		calls, _ := r.run("trace="+c.name, check)
		step := 1
		if os.Getenv("DISDEL_TEST_EVERY_CALL") == "" {
			step = max(1, calls/3)
		}
		failed := 0
		for k := 1; k <= calls; k += step {
			if _, injected := r.run(fmt.Sprintf("inject=%s:%s:when=%d", c.name, c.how, k), check); injected {
				failed++
			}
		}
		t.Logf("%s %s: %d calls, %d failed", c.name, c.how, calls, failed)
	}
}

// disturbed does the work on one thread, since strace counts the calls of each thread by themselves.
func disturbed(t *testing.T, dir string, work func(dir string, done func(what string), failed func(error))) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if r, w, err := os.Pipe(); err == nil { // Go's runtime opens two files of its own with the first one
		r.Close()
		w.Close()
	}
	before := openFiles()
	work(dir, func(what string) { fmt.Println("done " + what) }, func(err error) {
		if err.Error() == "" {
			t.Error("an error that says nothing")
		}
	})
	if after := openFiles(); after > before {
		t.Errorf("%d files are open, %d before", after, before)
	}
}

func openFiles() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

type diskRun struct {
	t      *testing.T
	strace string
}

// run does the work once under strace with an expression. It returns how many such calls the busiest thread made, and
// whether one failed.
func (r diskRun) run(expression string, check func(t *testing.T, dir string, done []string)) (calls int, failed bool) {
	r.t.Helper()
	dir := r.t.TempDir()
	trace := filepath.Join(r.t.TempDir(), "trace")
	name := "^" + strings.ReplaceAll(r.t.Name(), "/", "$/^") + "$"
	cmd := exec.Command(r.strace, "-f", "-qq", "-o", trace, "-e", expression, os.Args[0], "-test.run", name)
	cmd.Env = append(os.Environ(), diskVariable+"="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	list, err2 := os.ReadFile(trace)
	if err2 != nil {
		r.t.Skipf("strace cannot trace here: %s", out)
	}
	if err != nil && !bytes.Contains(out, []byte("netpollBreak")) { // Go's runtime also writes, and ends where it cannot
		r.t.Errorf("%s: %v\n%s", expression, err, out)
	}
	var done []string
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		if what, ok := strings.CutPrefix(s.Text(), "done "); ok {
			done = append(done, what)
		}
	}
	check(r.t, dir, done)
	if r.t.Failed() {
		r.t.Fatalf("with %s; acknowledged: %q", expression, done)
	}
	byThread := map[int]int{}
	for line := range strings.Lines(string(list)) {
		thread, _, _ := strings.Cut(line, " ")
		if id, err := strconv.Atoi(thread); err == nil && strings.Contains(line, "(") {
			byThread[id]++
			calls = max(calls, byThread[id])
		}
	}
	return calls, bytes.Contains(list, []byte("(INJECTED)"))
}
