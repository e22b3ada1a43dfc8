package robust

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// soak disturbs a platform and a server for half a minute each, or for half of DISDEL_ROBUST_SOAK.
func soak(c *trial) {
	long := time.Minute
	if text := os.Getenv("DISDEL_ROBUST_SOAK"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			c.t.Fatal(err)
		}
	}
	soakPlatform(c, long/2)
	soakServer(c, long/2)
}

// soakServer submits jobs one after another to one server. Now and then it kills an action or cancels the job.
// It checks that the server's process then holds no more descriptors, threads or memory than before.
func soakServer(c *trial, long time.Duration) {
	t, d := c.t, newHome(c.t)
	s := serve(t, d, "--pool-memory", "1GB")
	file := d.job(t, "soak", shortJob(3))
	s.ends(s.submit(file)) // what starts once is there now
	before := heldBy(t, s.cmd.Process.Pid)
	jobs := 0
	for end := time.Now().Add(long); time.Now().Before(end); jobs++ {
		job := s.submit(file)
		time.Sleep(time.Duration(c.rng.Int64N(int64(2 * time.Second)))) // somewhere in the job, or after it
		switch victims := children(s.cmd.Process.Pid); {
		case c.rng.IntN(4) == 0:
			s.call("POST", "/api/v1/jobs/"+job+"/cancel", nil) //nolint:errcheck // it may have ended
		case len(victims) > 0:
			syscall.Kill(victims[c.rng.IntN(len(victims))], syscall.SIGKILL) //nolint:errcheck // it may have ended
		}
		if rec := s.ends(job); rec.Status != disdel.StatusSucceeded && rec.Status != disdel.StatusCanceled {
			t.Errorf("job %d: %v: %v", jobs, rec.Status, rec.Failure)
		}
	}
	t.Logf("%d jobs in %v on a server", jobs, long)
	holdsNoMore(t, s.cmd.Process.Pid, before)
}

// perPool is the most descriptors and threads that the containers of a pool of 1 GB account for: at most eight
// containers with at most ten descriptors each.
const perPool = 80

// holdsNoMore compares what a process holds with what it held before, once containers that are about to go have gone.
func holdsNoMore(t *testing.T, pid int, before held) {
	t.Helper()
	after := heldBy(t, pid)
	await(t, fmt.Sprintf("a process that holds more than %+v to release it", before), func() bool {
		after = heldBy(t, pid)
		return after.files <= before.files+perPool && after.threads <= before.threads+perPool
	})
	t.Logf("%+v before, %+v after", before, after)
	if allowed := before.resident + 64<<20; after.resident > allowed {
		t.Errorf("the process grew from %d to %d MB", before.resident>>20, after.resident>>20)
	}
}

// soakPlatform runs jobs one after another on one platform, kills an action or a controller now and then, and looks at
// what the platform's process holds: descriptors, threads, memory, folders.
func soakPlatform(c *trial, long time.Duration) {
	t, d := c.t, newHome(c.t)
	temporary := t.TempDir()
	host := disdelIn{path: d.path, home: filepath.Join(t.TempDir(), "platform"), env: []string{"TMPDIR=" + temporary}}
	// As OpenWhisk does, the platform keeps idle containers of jobs that have ended: a small pool bounds how many.
	p := platformUp(t, host, "--per-minute", "100000", "--concurrent", "100", "--pool-memory", "1GB")
	d.env = append(d.env, "DISDEL_AUTH="+p.auth, "DISDEL_APIHOST="+p.url)
	file := d.job(t, "soak", shortJob(3))
	d.run(t, patience, "submit", file, "-q") // what starts once is there now
	before := heldBy(t, p.cmd.Process.Pid)
	jobs := 0
	for end := time.Now().Add(long); time.Now().Before(end); jobs++ {
		job := d.start(t, "submit", file, "-o", "json", "-q")
		select {
		case <-job.done:
		case <-time.After(time.Duration(c.rng.Int64N(int64(2 * time.Second)))):
			disturbed(c, p, job)
		}
		if r := job.wait(t, patience); r.code != 0 && !job.killed() {
			t.Errorf("job %d: %v", jobs, r)
		}
	}
	t.Logf("%d jobs in %v on a platform", jobs, long)
	holdsNoMore(t, p.cmd.Process.Pid, before)
	p.cmd.Process.Signal(os.Interrupt) //nolint:errcheck // it is waited for
	p.wait(t, patience)
	if left, _ := os.ReadDir(temporary); len(left) > 0 {
		t.Errorf("%d folders are left in the temporary folder: %v", len(left), left)
	}
}

// disturbed kills one action, the controller, or nothing.
func disturbed(c *trial, p *openWhisk, job *process) {
	switch c.rng.IntN(4) {
	case 0:
		job.kill()
	case 1, 2:
		if victims := children(p.cmd.Process.Pid); len(victims) > 0 {
			syscall.Kill(victims[c.rng.IntN(len(victims))], syscall.SIGKILL) //nolint:errcheck // it may have ended
		}
	}
}

func (p *process) killed() bool {
	s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == syscall.SIGKILL
}

// children are the action processes below a platform: its guards are let live, since they end what they guard.
func children(pid int) []int {
	var out []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range tasks {
		text, _ := os.ReadFile(file)
		for word := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				continue
			}
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
			if args := strings.Split(string(line), "\x00"); len(args) > 1 && args[1] == "runtime" {
				out = append(out, child)
			}
			out = append(out, children(child)...)
		}
	}
	return out
}

// held is what a process holds.
type held struct {
	files, threads int
	resident       int64
}

func heldBy(t *testing.T, pid int) held {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	out := held{files: len(files)}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 1 && fields[0] == "Threads:":
			out.threads, _ = strconv.Atoi(fields[1])
		case len(fields) > 1 && fields[0] == "VmRSS:":
			kb, _ := strconv.ParseInt(fields[1], 10, 64)
			out.resident = kb << 10
		}
	}
	return out
}
