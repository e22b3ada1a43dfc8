package python

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
	"github.com/disdel/disdel/platform"
)

// inContainer are the tests that TestForkedWorkersKeepThePromises runs in a container.
const inContainer = "^(TestAWorkerIsForked|TestKillsLeaveTheSameBits|TestFailuresHaveTheirClassAndTheUsersLine|" +
	"TestAHangEndsAtTheDeadline|TestAProgramIsConfinedAndLeavesNothing|TestAWorkerStaysBehind)$"

// TestForkedWorkersKeepThePromises runs other tests in a container of the embedded platform, where workers are forked
// from a template. When the platform ends, nothing of them is left.
func TestForkedWorkersKeepThePromises(t *testing.T) {
	if os.Getenv(forksVariable) != "" {
		t.Skip("this is the container")
	}
	if torch() == "" {
		t.Skip("no Python on this machine has torch; Debian's package is python3-torch")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	code := filepath.Join(out, "code")
	if err := unix.Mkfifo(code, 0o600); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`"$0" -test.v -test.run '%s' >%s/said 2>&1; echo $? >%[2]s/code; exec sleep 1000`,
		inContainer, out)
	cfg := platform.DefaultConfig()
	cfg.Limits.Memory.Max = 4 * disdel.GB
	cfg.PoolMemory, cfg.PauseGrace = 4*disdel.GB, 0
	cfg.Kinds = map[string]platform.Kind{"test": {
		Command: []string{"/bin/sh", "-c", script, self, "{listen}"}, Forks: true,
		Env: []string{"DISDEL_TEST_TORCH=" + torch()},
	}}
	cfg.Prewarm = []platform.Prewarm{{Kind: "test", Memory: 4 * disdel.GB, Count: 1}}
	p, err := platform.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context()) //nolint:errcheck // it is closed below
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	failed, err := os.ReadFile(code) // waits until the container's tests have ended
	if err != nil {
		t.Fatal(err)
	}
	said, _ := os.ReadFile(filepath.Join(out, "said"))
	if strings.TrimSpace(string(failed)) != "0" || strings.Contains(string(said), "SKIP") {
		t.Errorf("the tests in the container failed:\n%s", said)
	}
	templates := childrenOf(os.Getpid(), "disdel.forks\x00")
	var forks []int
	for _, pid := range templates {
		forks = append(forks, childrenOf(pid, "")...)
	}
	if len(forks) == 0 {
		t.Error("the worker that hangs has ended before its container")
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pid := range append(templates, forks...) {
		wait.Until(t, fmt.Sprintf("end of process %d", pid), func() bool { return !alive(pid) })
	}
}

// childrenOf lists the children of a process whose command line has these words.
func childrenOf(of int, words string) (out []int) {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range list {
		line, _ := os.ReadFile(file)
		dir := filepath.Dir(file)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && parent(dir) == of && strings.Contains(string(line), words) {
			out = append(out, pid)
		}
	}
	return out
}

// parent is the parent of a process, by its folder in /proc.
func parent(process string) (pid int) {
	stat, _ := os.ReadFile(filepath.Join(process, "stat"))
	_, rest, _ := strings.Cut(string(stat), ") ")
	fmt.Sscanf(rest, "%1s %d", new(string), &pid) //nolint:errcheck // of a process that has ended
	return pid
}

// TestAWorkerIsForked holds a forked worker against one that is a new process: the same bits. Workers of one
// environment have one template, and those of another one have another.
func TestAWorkerIsForked(t *testing.T) {
	if os.Getenv(forksVariable) == "" {
		t.Skip("it runs in a container of TestForkedWorkersKeepThePromises")
	}
	d := describe(t, small, adam)
	first, second := start(t, d.spec(adam)), start(t, d.spec(adam))
	steps(t, first, 0, 4)
	d.graph.Custom().Python.Interpreter = filepath.Join(t.TempDir(), "python3")
	if err := os.Symlink(torch(), d.graph.Custom().Python.Interpreter); err != nil {
		t.Fatal(err)
	}
	other := start(t, d.spec(adam))
	d.graph.Custom().Python.Interpreter = torch()
	var templates []int
	for _, e := range []*Engine{first, second, other} {
		if e.Process() == 0 {
			t.Fatal("a worker is no fork")
		}
		templates = append(templates, parent(fmt.Sprintf("/proc/%d", e.Process())))
	}
	if templates[0] != templates[1] || templates[0] == templates[2] {
		t.Errorf("the templates are %v; two workers have the same environment, and one has another", templates)
	}
	t.Setenv(forksVariable, "")
	alone := start(t, d.spec(adam))
	if alone.Process() != 0 {
		t.Fatal("a worker without a port is a fork")
	}
	steps(t, alone, 0, 4)
	same(t, "a forked worker", everything(alone), everything(first))
}

// TestAWorkerStaysBehind leaves a forked worker that hangs when this program ends.
func TestAWorkerStaysBehind(t *testing.T) {
	if os.Getenv(forksVariable) == "" {
		t.Skip("it runs in a container of TestForkedWorkersKeepThePromises")
	}
	d := misbehaving(t, "", `open(os.environ["TMPDIR"] + "/hangs", "w").close()
while True: pass`)
	s := d.spec(adam)
	c, err := Backend{}.check(&s)
	if err != nil {
		t.Fatal(err)
	}
	e, err := newEngine(s, c, Backend{Stdout: new(log), Stderr: new(log)})
	if err != nil {
		t.Fatal(err)
	}
	go e.Step(batch(0)) //nolint:errcheck // it does not return
	wait.Until(t, "step that hangs", func() bool {
		_, err := os.Stat(filepath.Join(os.TempDir(), "hangs"))
		return err == nil
	})
}
