package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// Nothing is signalled but the process that told the state: not the caller's own group, not a process that has the number by
// chance, not the holder of a file that names another.
func TestOnlyThePlatformIsSignalled(t *testing.T) {
	bystander := exec.Command("sleep", "1000")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer bystander.Wait()
	defer bystander.Process.Kill()
	pid := bystander.Process.Pid
	for name, s := range map[string]platformState{
		"another namespace":       {PID: pid, holder: 0},
		"a lock without an owner": {PID: pid, holder: -1},
		"two numbers":             {PID: pid, holder: os.Getpid(), Boot: bootID(), StartTicks: startTicks(pid)},
		"a number used again":     {PID: pid, holder: pid, Boot: bootID(), StartTicks: startTicks(pid) + 1},
		"another machine":         {PID: pid, holder: pid, Boot: "x", StartTicks: startTicks(pid)},
		"no marks":                {PID: pid, holder: pid},
	} {
		err := signalPlatform(t.TempDir(), s, unix.SIGTERM)
		if disdel.KindOf(err) != disdel.Conflict || !strings.Contains(err.Error(), "nothing was signalled") {
			t.Errorf("%s: %v", name, err)
		}
		if bystander.Process.Signal(syscall.Signal(0)) != nil || startTicks(pid) == 0 {
			t.Fatalf("%s: the bystander is gone", name)
		}
	}
}

// `platform down` in a container that has the home of a platform outside, or the other way round, ends nobody.
func TestDownInAnotherNamespaceEndsNobody(t *testing.T) {
	d := build(t)
	cmd, state := d.up()
	down := exec.Command("unshare", "--pid", "--fork", "--mount-proc", d.path, "platform", "down")
	down.Env = append(os.Environ(), "DISDEL_HOME="+d.home)
	down.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := down.CombinedOutput()
	if strings.Contains(string(out), "unshare") {
		t.Skipf("no namespace of processes can be made here: %s", out)
	}
	if err == nil || !strings.Contains(string(out), "in another container or on another machine; nothing was signalled") || strings.Contains(string(out), "KILL") {
		t.Errorf("%v\n%s", err, out)
	}
	if s, running := findPlatform(d.home); !running || s.PID != state.PID {
		t.Error("the platform is gone")
	}
	if _, errs, code := d.run("platform", "down"); code != 0 {
		t.Errorf("exit %d\n%s", code, errs)
	}
	cmd.Wait()
}

// What a killed platform told is not taken for the next one's: neither by who waits for it in the background, nor by who
// looks while it starts.
func TestAKilledPlatformsAddressIsForgotten(t *testing.T) {
	dir := t.TempDir()
	old, _ := json.Marshal(platformState{PID: 12345, Address: "http://127.0.0.1:1", Started: time.Now()})
	if err := os.WriteFile(platformFile(dir), old, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unclaim(f)
	if data, err := os.ReadFile(platformFile(dir)); err != nil || len(data) > 0 {
		t.Errorf("the file has %s, %v", data, err)
	}
}

func TestTheBackgroundPrintsTheNewAddress(t *testing.T) {
	d := build(t)
	for range 2 {
		out, errs, code := d.run("platform", "up", "--detach", "--port", "0")
		s, running := findPlatform(d.home)
		if code != 0 || !running || !strings.Contains(out, "export DISDEL_APIHOST="+s.Address+"\n") {
			t.Fatalf("exit %d, running %v at %s\n%s%s", code, running, s.Address, out, errs)
		}
		if err := signalPlatform(d.home, s, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for startTicks(s.PID) == s.StartTicks && !ended(s.PID) {
			time.Sleep(time.Millisecond)
		}
	}
}

// ended tells whether a process is gone but for its parent's waiting.
func ended(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(data), ") Z ")
}

// Every name of this machine's loopback means the home's own platform, whose key goes to its own address.
func TestEveryNameOfTheOwnPlatformIsKnown(t *testing.T) {
	home := t.TempDir()
	if err := writeProperties(propertiesFile(home), [][2]string{{"APIHOST", "http://127.0.0.1:3233"}, {"AUTH", "own"}}); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"http://localhost:3233": "http://127.0.0.1:3233", "http://[::1]:3233": "http://127.0.0.1:3233", "http://127.0.0.1:3233/": "http://127.0.0.1:3233",
		"http://localhost:3234": "http://localhost:3234", "https://localhost:3233": "https://localhost:3233", "http://localhost.example:3233": "http://localhost.example:3233",
		"": "", "http://10.0.0.1:3233": "http://10.0.0.1:3233",
	} {
		if got := ownPlatform(home, address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
