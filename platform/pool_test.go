package platform

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/internal/test/wait"
)

// pidOf runs the echo action and returns the container's process, and whether it had been initialised before.
func pidOf(t *testing.T, p *Platform, name string) (pid int, warm bool) {
	t.Helper()
	_, got := call(t, p, "POST", ns+"/actions/"+name+"?blocking=true", `{}`)
	_, result := responseOf(got)
	m, _ := result.(map[string]any)
	n, ok := m["pid"].(float64)
	if !ok {
		t.Errorf("%s: %v", name, got)
	}
	return int(n), annotation(got, "initTime") == nil
}

func TestPrewarmedContainersServeExactlyTheirKindAndMemory(t *testing.T) {
	p := start(t, func(c *Config) {
		c.PoolMemory = disdel.GB
		c.Prewarm = []Prewarm{{disdel.RuntimeKind, 128 * disdel.MB, 2}}
	})
	stocked := func() bool { return p.Status().Prewarmed == 2 }
	wait.Until(t, "two prewarmed containers", stocked)
	if s := p.Status(); s.Used != 256*disdel.MB || s.Running+s.Ready+s.Paused+s.Queued != 0 {
		t.Errorf("prewarmed containers count against memory: %+v", s)
	}
	waiting := map[int]bool{}
	for _, c := range p.pool.prewarmed {
		waiting[c.cmd.Process.Pid] = true
	}
	newTestAction(t, p, "echo", 60000, 129)
	if pid, _ := pidOf(t, p, "echo"); waiting[pid] {
		t.Error("an action of 129 MB got a prewarmed container of 128 MB")
	}
	newTestAction(t, p, "echo", 60000, 128)
	if pid, warm := pidOf(t, p, "echo"); !waiting[pid] || warm {
		t.Errorf("an action of 128 MB got process %d (initialised %v), not one of %v", pid, warm, waiting)
	}
	wait.Until(t, "the taken one replaced", stocked)
	newTestAction(t, p, "sleep", 60000, 512) // 1 GB - 512 MB is less than what idles beside the prewarmed ones
	newTestAction(t, p, "exit", 60000, 512)
	call(t, p, "POST", ns+"/actions/sleep?blocking=true", `{"ms":1}`)
	call(t, p, "POST", ns+"/actions/exit?blocking=true", `{}`)
	if s := p.Status(); s.Prewarmed != 2 {
		t.Errorf("prewarmed containers were evicted: %+v", s)
	}
}

func TestPrewarmsThatCannotBeAreRefused(t *testing.T) {
	for want, list := range map[string][]Prewarm{
		"not configured":             {{"cobol", 128 * disdel.MB, 1}},
		"twice":                      {{disdel.RuntimeKind, 128 * disdel.MB, 1}, {disdel.RuntimeKind, 128 * disdel.MB, 1}},
		"an action cannot have that": {{disdel.RuntimeKind, disdel.GB, 1}},
		"do not fit":                 {{disdel.RuntimeKind, 512 * disdel.MB, 5}},
	} {
		cfg := DefaultConfig()
		cfg.Kinds, cfg.Prewarm = map[string]Kind{disdel.RuntimeKind: {}}, list
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", list, err, want)
		}
	}
}

// stateOf is the kernel's letter for what a process does: T is stopped.
func stateOf(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(data), ") ")
	return rest[:min(1, len(rest))]
}

func TestIdleContainersPauseAndGoOn(t *testing.T) {
	p := start(t, func(c *Config) { c.PauseGrace = 20 * time.Millisecond })
	newTestAction(t, p, "echo", 60000, 128)
	pid, _ := pidOf(t, p, "echo")
	wait.Until(t, "paused", func() bool { return p.Status().Paused == 1 && stateOf(pid) == "T" })
	if again, warm := pidOf(t, p, "echo"); again != pid || !warm {
		t.Errorf("process %d (warm %v) after the pause, want %d", again, warm, pid)
	}
}

func TestIdleContainersGo(t *testing.T) {
	p := start(t, func(c *Config) { c.Idle = 100 * time.Millisecond })
	newTestAction(t, p, "echo", 60000, 128)
	pidOf(t, p, "echo")
	wait.Until(t, "removed", func() bool { return p.Status().Used == 0 })
}

func TestContainersThatDieIdleHoldNoMemory(t *testing.T) {
	p := start(t, func(c *Config) { c.PoolMemory = 128 * disdel.MB })
	newTestAction(t, p, "echo", 60000, 128)
	first, _ := pidOf(t, p, "echo")
	proc, _ := os.FindProcess(first)
	proc.Kill()
	wait.Until(t, "buried", func() bool { return p.Status().Used == 0 })
	if second, warm := pidOf(t, p, "echo"); second == 0 || second == first || warm {
		t.Errorf("process %d after %d was killed while idle", second, first)
	}
}

// As in OpenWhisk, nothing tells the client; the platform's end alone ends the wait.
func TestAnActionLargerThanThePoolWaitsSilently(t *testing.T) {
	p := start(t, func(c *Config) { c.PoolMemory = 256 * disdel.MB })
	newTestAction(t, p, "sleep", 60000, 512)
	newTestAction(t, p, "echo", 60000, 128)
	_, large := call(t, p, "POST", ns+"/actions/sleep", `{"ms":1}`)
	wait.Until(t, "queued", func() bool { return p.Status().Queued == 1 })
	_, behind := call(t, p, "POST", ns+"/actions/echo", `{}`)
	wait.Until(t, "the next one waits behind it", func() bool { return p.Status().Queued == 2 })
	if s := p.Status(); s.Running != 0 || s.Used != 0 {
		t.Errorf("%+v", s)
	}
	for _, got := range []map[string]any{large, behind} {
		if status, _ := call(t, p, "GET", fmt.Sprint(ns, "/activations/", got["activationId"]), ""); status != 404 {
			t.Errorf("a record while it waits: %d", status)
		}
	}
}

// The watch of a container that is stopped sleeps, and wakes when it goes on.
func TestTheWatchOfAStoppedContainerSleeps(t *testing.T) {
	race.SkipMemory(t)
	p := start(t, func(c *Config) { c.PauseGrace = 20 * time.Millisecond })
	newTestAction(t, p, "allocate", 60000, 128)
	for range 2 { // cold, and out of its sleep
		if _, got := call(t, p, "POST", ns+"/actions/allocate?blocking=true&result=true", `{"mb":1}`); got["held"] == nil {
			t.Fatalf("%v", got)
		}
		wait.Until(t, "a pause", func() bool { return p.Status().Paused == 1 })
		p.pool.mu.Lock()
		c := p.pool.free[0]
		p.pool.mu.Unlock()
		if !c.isStopped.Load() {
			t.Error("its watch is not told")
		}
	}
	_, got := call(t, p, "POST", ns+"/actions/allocate?blocking=true&result=true", `{"mb":300}`)
	if text := fmt.Sprint(got["error"]); text != textMemoryExhausted {
		t.Errorf("once it goes on, its memory is not looked at: %v", got)
	}
}

// An action that is deleted leaves no container behind: its memory is free for those that are asked for.
func TestADeletedActionsContainersGo(t *testing.T) {
	p := start(t, func(c *Config) { c.PoolMemory = 256 * disdel.MB })
	body := fmt.Sprintf(`{"exec":{"kind":%q,"code":"x","main":"echo"},"limits":{"memory":128}}`, disdel.RuntimeKind)
	for _, name := range []string{"kept", "deleted", "later"} {
		if status, got := call(t, p, "PUT", ns+"/actions/"+name, body); status != 200 {
			t.Fatal(got)
		}
	}
	kept, _ := pidOf(t, p, "kept")
	pidOf(t, p, "deleted")
	if s := p.Status(); s.Ready != 2 {
		t.Fatalf("%+v", s)
	}
	call(t, p, "DELETE", ns+"/actions/deleted", "")
	if s := p.Status(); s.Ready != 1 || s.Used != 128*disdel.MB {
		t.Errorf("%+v", s)
	}
	pidOf(t, p, "later")
	if pid, warm := pidOf(t, p, "kept"); pid != kept || !warm {
		t.Error("the container of the other action is gone")
	}
}
