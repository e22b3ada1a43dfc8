package platform

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/internal/test/wait"
)

// reach tells what a container can do that it should not: which of the given files it reads anything of, which groups
// it can move to, and whether its programs may gain privileges.
func reach(params map[string]any) (int, string) {
	var readable, joined []string
	list, _ := params["files"].([]any)
	for _, file := range list {
		if data, err := os.ReadFile(file.(string)); err == nil && len(data) > 0 {
			readable = append(readable, file.(string))
		} else if entries, err := os.ReadDir(file.(string)); err == nil && len(entries) > 0 {
			readable = append(readable, file.(string))
		}
	}
	for _, group := range []string{
		"/sys/fs/cgroup/memory/tasks", "/sys/fs/cgroup/memory/cgroup.procs",
		"/sys/fs/cgroup/pids/tasks", "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs",
	} {
		if writeTo(group, fmt.Sprint(os.Getpid())) {
			joined = append(joined, group)
		}
	}
	status, _ := os.ReadFile("/proc/self/status")
	groups, _ := os.Getgroups()
	folder, _ := os.Getwd()
	answer, _ := json.Marshal(map[string]any{
		"readable": readable, "joined": joined, "noNewPrivs": strings.Contains(string(status), "NoNewPrivs:\t1"),
		"limit": limitFile(),
		"uid":   os.Getuid(), "groups": groups, "signals": syscall.Kill(os.Getppid(), 0) == nil,
		"writes": os.WriteFile("mine", nil, 0o600) == nil, "folder": folder,
	})
	return 200, string(answer)
}

// limitFile tells whether a container still sees its own limit, by which programs size themselves.
func limitFile() bool { return len(numbersIn("/sys/fs/cgroup/memory/memory.limit_in_bytes")) == 1 }

func TestActionsGainNoPrivileges(t *testing.T) {
	p := start(t, nil)
	newTestAction(t, p, "reach", 60000, 128)
	if _, got := call(t, p, "POST", ns+"/actions/reach?blocking=true&result=true", `{}`); got["noNewPrivs"] != true {
		t.Errorf("%v", got)
	}
}

// needMounts skips where the thread that starts containers cannot have mounts of its own.
func needMounts(t *testing.T, p *Platform) {
	t.Helper()
	if !p.spawner.confined.mounts {
		t.Skip("this user cannot have mounts of his own: " + p.Confinement())
	}
}

// No container can move to another group, where its limit would not hold.
func TestAMemoryLimitCannotBeLeft(t *testing.T) {
	p := start(t, nil)
	needMounts(t, p)
	if _, ok := p.limiter.(cgroups); !ok {
		t.Skip(p.Enforcement())
	}
	newTestAction(t, p, "reach", 60000, 128)
	_, got := call(t, p, "POST", ns+"/actions/reach?blocking=true&result=true", `{}`)
	if got["joined"] != nil {
		t.Errorf("it joined %v", got["joined"])
	}
	if _, err := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes"); err == nil && got["limit"] != true {
		t.Error("it no longer sees its own limit")
	}
}

// What is hidden is not seen, even when it was written anew after the platform's start, and is seen outside all the
// time.
func TestWhatIsHiddenIsNotSeen(t *testing.T) {
	for name, own := range map[string]bool{"by the platform's user": false, "by users of their own": true} {
		t.Run(name, func(t *testing.T) { hiddenFrom(t, own) })
	}
}

func hiddenFrom(t *testing.T, own bool) {
	t.Helper()
	if own && !canSwitch() {
		t.Skip("this process cannot start others as other users")
	}
	dir := closedFolder(t)
	if err := os.Chmod(dir, 0o755); err != nil { // every user may pass it, and sees what is not hidden
		t.Fatal(err)
	}
	file, data := filepath.Join(dir, "key"), filepath.Join(dir, "data")
	write := func(text string) {
		if err := os.WriteFile(file+"-new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+"-new", file); err != nil {
			t.Fatal(err)
		}
	}
	write("secret")
	open := filepath.Join(dir, "open")
	if err := os.WriteFile(open, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := start(t, func(c *Config) {
		c.Hidden, c.DataDir = []string{file, filepath.Join(dir, "absent")}, data
		if own {
			program := programIn(t, closedFolder(t), 0o755)
			c.Kinds = map[string]Kind{disdel.RuntimeKind: {Command: []string{program, "serve", "{listen}"}, OwnUser: true}}
		}
	})
	needMounts(t, p)
	newTestAction(t, p, "reach", 60000, 128)
	for range 3 {
		args, _ := json.Marshal(map[string]any{"files": []string{file, data, filepath.Join(data, "platform.db"), open}})
		_, got := call(t, p, "POST", ns+"/actions/reach?blocking=true&result=true", string(args))
		if uid, _ := got["uid"].(float64); fmt.Sprint(got["readable"]) != "["+open+"]" || (uid >= firstUser) != own {
			t.Errorf("%v", got)
		}
		write("another secret")
		newTestAction(t, p, "reach", 60000, 128) // another version: another container
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "another secret" {
		t.Errorf("outside: %s, %v", text, err)
	}
}

// startOpen is a platform whose folder and program every user may reach, as that for temporary files and an interpreter
// that the system has. Its containers run as users of their own.
func startOpen(t *testing.T) *Platform {
	t.Helper()
	if !canSwitch() {
		t.Skip("this process cannot start others as other users")
	}
	dir, err := os.MkdirTemp("", "open-")
	if err != nil {
		t.Fatal(err)
	}
	program, folder := filepath.Join(dir, "program"), filepath.Join(dir, "folder")
	t.Cleanup(func() { os.RemoveAll(dir) })
	data, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(program, data, 0o755), os.Mkdir(folder, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, func(c *Config) {
		c.TempDir, c.Kinds = folder,
			map[string]Kind{disdel.RuntimeKind: {Command: []string{program, "serve", "{listen}"}, OwnUser: true}}
	})
	if !p.hasOwnUsers(p.cfg.Kinds[disdel.RuntimeKind]) {
		t.Skip("the folder for temporary files is not open to every user")
	}
	return p
}

// What others wrote runs as users who own nothing: it reads nothing of the platform or of another container.
func TestContainersHaveUsersOfTheirOwn(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startOpen(t)
	seen, other := map[any]bool{}, "/nothing"
	for _, name := range []string{"a", "b"} {
		must(t, p, "PUT", "_/actions/"+name, code("reach", ""))
		parent := fmt.Sprintf("/proc/%d/", os.Getpid())
		args, _ := json.Marshal(map[string]any{"files": []string{
			secret, parent + "environ", parent + "maps", p.temp.dir,
			other, filepath.Join(p.temp.dir, "platform.db"),
		}})
		_, got := call(t, p, "POST", ns+"/actions/"+name+"?blocking=true&result=true", string(args))
		uid, _ := got["uid"].(float64)
		if uid < firstUser || got["readable"] != nil || got["joined"] != nil || got["signals"] != false ||
			got["writes"] != true || got["groups"] != nil {
			t.Errorf("%v", got)
		}
		seen[uid], other = true, fmt.Sprint(got["folder"])
	}
	if len(seen) != 2 {
		t.Errorf("two containers have the users %v", seen)
	}
}

// A container of a user of its own dies for memory and with its platform as any other does.
func TestLimitsHoldForUsersOfTheirOwn(t *testing.T) {
	race.SkipMemory(t)
	p := startOpen(t)
	newTestAction(t, p, "allocate", 60000, 128)
	_, got := call(t, p, "POST", ns+"/actions/allocate?blocking=true", `{"mb":200}`)
	checkRecord(t, got, statusDeveloper, textMemoryExhausted)
	_, child := parentOf(t, p, `{}`)
	newTestAction(t, p, "fill", 60000, 128)
	if status, got := call(t, p, "POST", ns+"/actions/fill?blocking=true", `{"mb":1}`); status != 200 {
		t.Errorf("%d %v", status, got)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if !gone(child) {
		t.Error("a child survived")
	}
}

// What multiplies is stopped, and the machine goes on.
func TestProcessesAreBounded(t *testing.T) {
	p, kind := startScripts(t, "python:")
	_, counted := p.limiter.(cgroups)
	if !p.hasOwnUsers(p.cfg.Kinds[kind]) && !counted {
		t.Skip("nothing bounds processes here: " + p.Confinement())
	}
	createScript(t, p, kind, "a", "", `
import os, signal
def main(a):
    children = []
    try:
        while len(children) < 3000:
            pid = os.fork()
            if pid == 0:
                signal.pause()
            children.append(pid)
        stopped = False
    except OSError:
        stopped = True
    for pid in children:
        os.kill(pid, 9)
    for pid in children:
        os.waitpid(pid, 0)
    return {'children': len(children), 'stopped': stopped}
`)
	must(t, p, "PUT", "_/actions/a?overwrite=true", `{"limits":{"memory":512}}`)
	_, got := call(t, p, "POST", ns+"/actions/a?blocking=true", `{}`)
	status, result := responseOf(got)
	m, _ := result.(map[string]any)
	if n, _ := m["children"].(float64); (status != statusSuccess || m["stopped"] != true || n > maxProcesses) &&
		result.(map[string]any)["error"] != textMemoryExhausted {
		t.Errorf("%s %v", status, result)
	}
}

// Where no group knows what a container started, its environment tells.
func TestDaemonsGoWithoutGroups(t *testing.T) {
	race.SkipMemory(t)
	p := start(t, nil)
	p.limiter.close()
	p.limiter = rlimits{}
	_, child := parentOf(t, p, `{"session":true}`)
	p.pool.mu.Lock()
	free := p.pool.free
	p.pool.mu.Unlock()
	if len(free) != 1 {
		t.Fatalf("%d containers", len(free))
	}
	if pids := processesOfFolder(free[0].dir); len(pids) == 0 {
		t.Error("nobody is known by the folder")
	}
	newTestAction(t, p, "echo", 60000, 128)
	p.pool.mu.Lock()
	for _, c := range p.pool.free {
		p.pool.remove(c)
	}
	p.pool.free = nil
	p.pool.mu.Unlock()
	wait.Until(t, "the daemon gone", func() bool { return gone(child) })
}

func TestConfinementIsTold(t *testing.T) {
	p := start(t, func(c *Config) {
		c.Kinds = map[string]Kind{disdel.RuntimeKind: {Command: []string{os.Args[0], "serve", "{listen}"}}}
	})
	if text := p.Confinement(); !strings.Contains(text, "no new privileges") && !strings.Contains(text, "nothing") {
		t.Error(text)
	}
	t.Log(p.Confinement())
}
