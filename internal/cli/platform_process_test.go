package cli

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel/platform/local"
)

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
	if err == nil || !strings.Contains(string(out), "in another container or on another machine; nothing was signalled") ||
		strings.Contains(string(out), "KILL") {
		t.Errorf("%v\n%s", err, out)
	}
	if s, running := local.Find(d.home); !running || s.PID != state.PID {
		t.Error("the platform is gone")
	}
	if _, errs, code := d.run("platform", "down"); code != 0 {
		t.Errorf("exit %d\n%s", code, errs)
	}
	cmd.Wait()
}

func TestTheBackgroundPrintsTheNewAddress(t *testing.T) {
	d := build(t)
	for range 2 {
		out, errs, code := d.run("platform", "up", "--detach", "--port", "0")
		s, running := local.Find(d.home)
		if code != 0 || !running || !strings.Contains(out, "export DISDEL_APIHOST="+s.Address+"\n") {
			t.Fatalf("exit %d, running %v at %s\n%s%s", code, running, s.Address, out, errs)
		}
		if err := local.Signal(d.home, s, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for running { // its lock lasts until its last thread has ended
			time.Sleep(time.Millisecond)
			_, running = local.Find(d.home)
		}
	}
}
