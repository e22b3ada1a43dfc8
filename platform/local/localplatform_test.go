package local

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/process"
)

// Nothing is signalled but the process that told the state: not the caller's own group, not a process that has the
// number by chance, not the holder of a file that names another.
func TestOnlyThePlatformIsSignalled(t *testing.T) {
	bystander := exec.Command("sleep", "1000")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer bystander.Wait()
	defer bystander.Process.Kill()
	pid := bystander.Process.Pid
	for name, s := range map[string]State{
		"another namespace":       {PID: pid, Holder: 0},
		"a lock without an owner": {PID: pid, Holder: -1},
		"two numbers": {
			PID: pid, Holder: os.Getpid(), Boot: process.BootID(),
			StartTicks: process.StartTicks(pid),
		},
		"a number used again": {PID: pid, Holder: pid, Boot: process.BootID(), StartTicks: process.StartTicks(pid) + 1},
		"another machine":     {PID: pid, Holder: pid, Boot: "x", StartTicks: process.StartTicks(pid)},
		"no marks":            {PID: pid, Holder: pid},
	} {
		err := Signal(t.TempDir(), s, unix.SIGTERM)
		if disdel.KindOf(err) != disdel.Conflict || !strings.Contains(err.Error(), "nothing was signalled") {
			t.Errorf("%s: %v", name, err)
		}
		if bystander.Process.Signal(syscall.Signal(0)) != nil || process.StartTicks(pid) == 0 {
			t.Fatalf("%s: the bystander is gone", name)
		}
	}
}

// What a killed platform told is not taken for the next one's: neither by who waits for it in the background, nor by
// who looks while it starts.
func TestAKilledPlatformsAddressIsForgotten(t *testing.T) {
	dir := t.TempDir()
	old, _ := json.Marshal(State{PID: 12345, Address: "http://127.0.0.1:1", Started: time.Now()})
	if err := os.WriteFile(File(dir), old, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer Unclaim(f)
	if data, err := os.ReadFile(File(dir)); err != nil || len(data) > 0 {
		t.Errorf("the file has %s, %v", data, err)
	}
}

// Every name of this machine's loopback means the home's own platform, whose key goes to its own address.
func TestEveryNameOfTheOwnPlatformIsKnown(t *testing.T) {
	home := t.TempDir()
	if err := WriteProperties(PropertiesFile(home),
		[][2]string{{"APIHOST", "http://127.0.0.1:3233"}, {"AUTH", "own"}}); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"http://localhost:3233": "http://127.0.0.1:3233", "http://[::1]:3233": "http://127.0.0.1:3233",
		"http://127.0.0.1:3233/": "http://127.0.0.1:3233",
		"http://localhost:3234":  "http://localhost:3234", "https://localhost:3233": "https://localhost:3233",
		"http://localhost.example:3233": "http://localhost.example:3233",
		"":                              "", "http://10.0.0.1:3233": "http://10.0.0.1:3233",
	} {
		if got := OwnAddress(home, address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// Who claims a home while its owner goes away gets a file that keeps others out.
func TestAHomeHasOneOwnerAtATime(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		f, err := Claim(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !files.Named(f, File(dir)) {
			t.Error("what was claimed is not what the next one would find")
		}
		if err := Unclaim(f); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(File(dir)); err == nil {
			t.Error("the file stays")
		}
	}
}

// The key of the home's own platform is for that platform alone; another address gets the user's.
func TestTheKeyOfAnAddress(t *testing.T) {
	home, wsk := t.TempDir(), filepath.Join(t.TempDir(), "wsk")
	t.Setenv("WSK_CONFIG_FILE", wsk)
	t.Setenv("DISDEL_AUTH", "")
	for path, set := range map[string][][2]string{
		PropertiesFile(home): {{"APIHOST", "http://127.0.0.1:3233"}, {"AUTH", "own"}},
		wsk:                  {{"APIHOST", "https://cluster"}, {"AUTH", "cluster's"}},
	} {
		if err := WriteProperties(path, set); err != nil {
			t.Fatal(err)
		}
	}
	for address, want := range map[string]string{
		"http://127.0.0.1:3233": "own", "http://127.0.0.1:3233/": "own",
		"https://cluster": "cluster's",
	} {
		if got, err := Key(home, address); got != want || err != nil {
			t.Errorf("%s: %q, %v", address, got, err)
		}
	}
	t.Setenv("DISDEL_AUTH", "said")
	if got, _ := Key(home, "http://127.0.0.1:3233"); got != "said" {
		t.Errorf("DISDEL_AUTH: %q", got)
	}
}

// M7: a key of wsk's is sent to the server that it belongs to, by whatever name, and to no other.
func TestWsksKeyGoesToItsOwnServerAlone(t *testing.T) {
	home, wsk := t.TempDir(), filepath.Join(t.TempDir(), "wsk")
	t.Setenv("WSK_CONFIG_FILE", wsk)
	t.Setenv("DISDEL_AUTH", "")
	for host, c := range map[string]struct{ takes, refuses []string }{
		"https://cluster.example": {
			[]string{
				"https://cluster.example", "https://cluster.example/", "https://CLUSTER.example:443", "cluster.example",
				"https://cluster.example/api/v1",
			},
			[]string{
				"http://cluster.example", "https://cluster.example:8443", "https://cluster.example.evil",
				"http://127.0.0.1:1", "https://evil/cluster.example",
			},
		},
		"cluster.example": {
			[]string{"cluster.example", "https://cluster.example"},
			[]string{"http://cluster.example:8080", "other.example"},
		},
		"http://127.0.0.1:31001": {[]string{
			"http://localhost:31001", "http://127.0.0.1:31001", "127.0.0.1:31001",
			"http://[::1]:31001",
		}, []string{"http://localhost:31002", "http://127.0.0.2:31001", "https://localhost:31001"}},
		"": {nil, []string{"http://127.0.0.1:1", "https://cluster.example"}},
	} {
		if err := os.WriteFile(wsk, []byte("AUTH=secret:key\nAPIHOST="+host+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, address := range c.takes {
			if key, err := Key(home, address); key != "secret:key" || err != nil {
				t.Errorf("%s: %s does not get its key: %v", host, address, err)
			}
		}
		for _, address := range c.refuses {
			if key, err := Key(home, address); key != "" || err == nil {
				t.Errorf("%s: %s gets the key", host, address)
			}
		}
	}
}

// Actions of this machine compute as its user says: with the kernels and the blocks of the environment, and nothing
// else of it.
func TestActionsFindHowToCompute(t *testing.T) {
	t.Setenv("DISDEL_KERNELS", "portable")
	t.Setenv("DISDEL_BLOCKS", "rows=8")
	t.Setenv("DISDEL_OTHER", "secret")
	cfg, err := Config(Settings{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"DISDEL_KERNELS=portable", "DISDEL_BLOCKS=rows=8"}
	if env := cfg.Kinds[disdel.RuntimeKind].Env; !slices.Equal(env, want) {
		t.Error(env)
	}
}

// A platform that starts in the background has locked its file before it removes what a killed one told there.
func TestWhoWaitsDoesNotTakeAKilledPlatformsAddress(t *testing.T) {
	dir := t.TempDir()
	old, _ := json.Marshal(State{PID: 1, Address: "http://127.0.0.1:1"})
	if err := os.WriteFile(File(dir), old, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-c", `
import fcntl, json, os, sys, time
f = open(sys.argv[1], "r+")
fcntl.lockf(f, fcntl.LOCK_EX)
time.sleep(0.3)
f.truncate(0)
f.write(json.dumps({"pid": os.getpid(), "address": "http://127.0.0.1:2"}))
f.flush()
time.sleep(60)`, File(dir))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	s, err := await(t.Context(), dir, cmd, ended)
	if err != nil || s.Address != "http://127.0.0.1:2" {
		t.Errorf("%+v, %v", s, err)
	}
	if cmd.Process.Kill() == nil {
		<-ended
	}
}
