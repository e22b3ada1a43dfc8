package platform

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
)

// behaviours are what the test container does beside those of serve, by the action's main.
var behaviours = map[string]func(params map[string]any) (status int, answer string){
	"list":             says(`[1,{"x":"y"}]`),
	"not-utf8":         says("{\"a\":\"\xff\"}"),
	"nested":           nested,
	"conduct-two":      conduct,
	"conduct-for-ever": says(`{"action":"/_/conduct-for-ever"}`),
	"conduct-value":    says(`{"params":7}`),
	"conduct-error":    says(`{"error":"no"}`),
	"told":             toldOf,
	"descriptors": func(map[string]any) (int, string) {
		list := map[string]string{}
		entries, _ := os.ReadDir("/proc/self/fd")
		for _, e := range entries {
			list[e.Name()], _ = os.Readlink("/proc/self/fd/" + e.Name())
		}
		data, _ := json.Marshal(list)
		return 200, string(data)
	},
	"fill": func(params map[string]any) (int, string) {
		os.WriteFile("filled", make([]byte, int(params["mb"].(float64))<<20), 0o600)
		if wait, _ := params["wait"].(bool); wait {
			time.Sleep(time.Hour)
		}
		return 200, `{}`
	},
	"parent": func(params map[string]any) (int, string) {
		child := exec.Command("sleep", "1000")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: params["session"] == true}
		if err := child.Start(); err != nil {
			return 500, `{}`
		}
		return 200, fmt.Sprintf(`{"pid":%d,"child":%d}`, os.Getpid(), child.Process.Pid)
	},
	"touch": touch,
	"waits": func(params map[string]any) (int, string) {
		for _, err := os.Stat(params["for"].(string)); err != nil; _, err = os.Stat(params["for"].(string)) {
			time.Sleep(time.Millisecond)
		}
		return 200, `{"text":"` + strings.Repeat("x", 500_000) + `"}`
	},
	"counted":     counted,
	"reach":       reach,
	"no-sentinel": func(map[string]any) (int, string) { return 200, `{}` },
	"killed": func(map[string]any) (int, string) {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	},
	"chatty": func(map[string]any) (int, string) {
		for range 20 {
			fmt.Println(strings.Repeat("x", 60_000))
		}
		return 200, `{}`
	},
	"busy":        func(map[string]any) (int, string) { return 503, `` },
	"busy-once":   func(map[string]any) (int, string) { return once503("run") },
	"not-object":  func(map[string]any) (int, string) { return 200, `17` },
	"empty":       func(map[string]any) (int, string) { return 200, `` },
	"plain-error": func(map[string]any) (int, string) { return 500, `oops` },
	"deep-error":  func(map[string]any) (int, string) { return 400, `{"error":{"kind":"diverged"},"x":1}` },
	"array":       func(map[string]any) (int, string) { return 200, `[1,2]` },
	"allowed":     func(map[string]any) (int, string) { return 200, `{"x":"` + strings.Repeat("x", 1<<20-8) + `"}` },
	"one-more":    func(map[string]any) (int, string) { return 200, `{"x":"` + strings.Repeat("x", 1<<20-7) + `"}` },
}

// initBehaviours are the same for /init.
var initBehaviours = map[string]func() (status int, answer string){
	"init-busy-once": func() (int, string) { return once503("init") },
	"init-plain":     func() (int, string) { return 500, `oops` },
	"init-deep":      func() (int, string) { return 502, `{"error":["a","b"]}` },
	"init-killed": func() (int, string) {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	},
}

// once503 answers 503 in the first container of a platform that asks, and 200 after.
func once503(name string) (int, string) {
	if os.Mkdir(filepath.Join("..", "asked-"+name), 0o700) == nil {
		return 503, ``
	}
	return 200, `{}`
}

// parentOf runs the action parent and returns its process and the one it started.
func parentOf(t *testing.T, p *Platform, args string) (pid, child int) {
	t.Helper()
	newTestAction(t, p, "parent", 60000, 128)
	_, got := call(t, p, "POST", ns+"/actions/parent?blocking=true&result=true", args)
	one, _ := got["pid"].(float64)
	two, ok := got["child"].(float64)
	if !ok {
		t.Fatalf("parent: %v", got)
	}
	return int(one), int(two)
}

// gone tells whether a process ended; one that nobody waited for yet did.
func gone(pid int) bool {
	state := stateOf(pid)
	return state == "" || state == "Z" || state == "X"
}

// hold is a program with a platform: it prints the processes of a container and of its child, and waits to be killed.
func hold(dir string) {
	cfg := DefaultConfig()
	cfg.TempDir, cfg.Kinds = dir, map[string]Kind{disdel.RuntimeKind: {Command: []string{os.Args[0], "serve", "{listen}"}}}
	p, err := New(cfg)
	if err != nil {
		os.Exit(1)
	}
	c, err := p.startContainer(size{disdel.RuntimeKind, 128 * disdel.MB})
	if err != nil {
		os.Exit(1)
	}
	c.postJSON(context.Background(), "/init", map[string]any{"value": map[string]any{"main": "parent"}}, time.Minute)
	got, _ := c.postJSON(context.Background(), "/run", map[string]any{"value": map[string]any{}}, time.Minute)
	fmt.Println(string(got.body))
	select {}
}

func TestNothingSurvivesAKilledPlatform(t *testing.T) {
	cmd := exec.Command(os.Args[0], "hold", t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	var got struct{ Pid, Child int }
	if err := json.Unmarshal([]byte(line), &got); err != nil || got.Child == 0 {
		t.Fatalf("the platform says %q, %v", line, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	wait.Until(t, "container and child gone", func() bool { return gone(got.Pid) && gone(got.Child) })
	left := fmt.Sprintf("disdel-%d-*", cmd.Process.Pid)
	wait.Until(t, "groups removed by platforms that come after", func() bool { // the kernel empties them in its own time
		start(t, nil)
		dirs, _ := filepath.Glob("/sys/fs/cgroup/*/" + left)
		return len(dirs) == 0
	})
}

func TestAContainersChildrenGoWithIt(t *testing.T) {
	p := start(t, func(c *Config) { c.Idle = 10 * time.Millisecond })
	_, child := parentOf(t, p, `{}`)
	wait.Until(t, "child gone", func() bool { return gone(child) })
	_, child = parentOf(t, p, `{"session":true}`)
	wait.Until(t, "child of its own session gone", func() bool { return gone(child) })
}

func TestContainersInheritNoDescriptors(t *testing.T) {
	p := start(t, nil)
	secret := filepath.Join(t.TempDir(), "secret")
	fd, err := syscall.Open(secret, syscall.O_CREAT|syscall.O_RDWR, 0o600) // without O_CLOEXEC, as a shell hands one on
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	newTestAction(t, p, "descriptors", 60000, 128)
	_, got := call(t, p, "POST", ns+"/actions/descriptors?blocking=true&result=true", `{}`)
	for n, target := range got {
		if target == secret {
			t.Errorf("descriptor %s is %v", n, target)
		}
	}
	if got["1"] == nil {
		t.Errorf("no list of descriptors: %v", got)
	}
}

func TestAFolderHasABound(t *testing.T) {
	p := start(t, func(c *Config) { c.FolderMB = 8 })
	newTestAction(t, p, "fill", 60000, 128)
	if code, got := call(t, p, "POST", ns+"/actions/fill?blocking=true", `{"mb":4}`); code != 200 {
		t.Errorf("4 of 8 MB: %d %v", code, got)
	}
	_, got := call(t, p, "POST", ns+"/actions/fill?blocking=true", `{"mb":16,"wait":true}`)
	if status, result := responseOf(got); status != statusDeveloper ||
		fmt.Sprint(result) != "map[error:The action wrote more than 8 MB to its folder and was aborted.]" {
		t.Errorf("16 of 8 MB: %s %v", status, result)
	}
}

func TestProcessorsAreDividedByMemory(t *testing.T) {
	p := start(t, func(c *Config) { c.PoolMemory = disdel.GB })
	g, ok := p.limiter.(cgroups)
	if !ok {
		t.Skip(p.Enforcement())
	}
	c, err := p.startContainer(size{disdel.RuntimeKind, 256 * disdel.MB})
	if err != nil {
		t.Fatal(err)
	}
	defer c.kill()
	file := filepath.Join(g.bases[len(g.bases)-1], filepath.Base(c.dir), g.share)
	if n := numbersIn(file); len(n) != 1 || n[0] != 256 {
		t.Errorf("%s of a quarter of the pool is %v, want 256 (%s)", file, n, p.Enforcement())
	}
	next := exec.Command("true") // once it was started, the spawner's thread has left the container's group
	next.SysProcAttr = &syscall.SysProcAttr{}
	if next, err = p.spawner.start(next, rlimit{disdel.GB}, false); err != nil || next.Wait() != nil {
		t.Fatal(next, err)
	}
	members := numbersIn(filepath.Join(filepath.Dir(file), "cgroup.procs"))
	if len(members) != 1 || members[0] != c.cmd.Process.Pid {
		t.Errorf("in the group are %v, want %d", members, c.cmd.Process.Pid)
	}
	for pool, want := range map[disdel.Bytes]int{128 * disdel.MB: 1024, disdel.GB: 128, 1024 * disdel.GB: 2} {
		if got := cpuShares(128*disdel.MB, pool); got != want {
			t.Errorf("128 MB of %v get %d, want %d", pool, got, want)
		}
	}
}

func TestTheKeyIsGivenToActionsThatAskForIt(t *testing.T) {
	p := start(t, nil)
	for value, want := range map[string]bool{
		"true": true, "1": true, `"yes"`: true, "false": false, "0": false,
		`""`: false, "null": false,
	} {
		run := &running{
			id:     newID(),
			action: &action{header: header{Annotations: []keyValue{{Key: "provide-api-key", Value: json.RawMessage(value)}}}},
			user:   p.users[0], params: json.RawMessage(`{}`),
		}
		_, got := p.initEnv(run)["__OW_API_KEY"]
		var body map[string]any
		if err := json.Unmarshal(p.runBody(run, time.Second), &body); err != nil {
			t.Fatal(err)
		}
		_, too := body["api_key"]
		if got != want || too != want {
			t.Errorf("%s: the key is given %v and %v, want %v", value, got, too, want)
		}
	}
}

// Parameters marked init are environment of the container, not arguments of a run.
func TestInitParametersAreEnvironment(t *testing.T) {
	p := start(t, nil)
	a := &action{header: header{Namespace: "guest", Name: "a"}, Parameters: []keyValue{
		{Key: "TEXT", Value: json.RawMessage(`"x y"`), Init: true},
		{Key: "LIST", Value: json.RawMessage(`[1,2]`), Init: true},
		{Key: "run", Value: json.RawMessage(`1`)},
	}}
	env := p.initEnv(&running{id: newID(), action: a, user: p.users[0]})
	if env["TEXT"] != "x y" || env["LIST"] != "[1,2]" {
		t.Errorf("the environment has TEXT %q and LIST %q", env["TEXT"], env["LIST"])
	}
	if _, too := env["run"]; too {
		t.Error("an argument is in the environment")
	}
	args := map[string]json.RawMessage{}
	if addParameters(args, a.Parameters); len(args) != 1 {
		t.Errorf("arguments are %v", args)
	}
}
