package platform

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// withoutResource says that a process of this test lacks CAP_SYS_RESOURCE.
const withoutResource = "DISDEL_TEST_WITHOUT_RESOURCE"

// Root bounds the processes of containers with users of their own also where it lacks CAP_SYS_RESOURCE.
func TestLimitsAreSetWithoutCapSysResource(t *testing.T) {
	if os.Getenv(withoutResource) == "" {
		runWithoutResource(t)
		return
	}
	if hasCapabilities(unix.CAP_SYS_RESOURCE) {
		t.Fatal("this process has the capability")
	}
	child := exec.Command("cat") // it ends with its input
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: firstUser, Gid: firstUser}}
	in, err := child.StdinPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer child.Wait() //nolint:errcheck // nobody asks how it ended
	defer in.Close()
	err = setLimit(child.Process.Pid, unix.RLIMIT_NOFILE, 17)
	limits, unread := os.ReadFile(fmt.Sprintf("/proc/%d/limits", child.Process.Pid))
	_, line, _ := strings.Cut(string(limits), "Max open files")
	if fields := strings.Fields(line); err != nil || unread != nil || fields[0] != "17" || fields[1] != "17" {
		t.Errorf("%v, %v\n%s", err, unread, limits)
	}
	if os.Getuid() != 0 || os.Geteuid() != 0 {
		t.Errorf("this process is now of %d, %d", os.Getuid(), os.Geteuid())
	}
}

// runWithoutResource runs the calling test in a process without CAP_SYS_RESOURCE.
func runWithoutResource(t *testing.T) {
	t.Helper()
	if !canSwitch() || !hasCapabilities(unix.CAP_SETPCAP) {
		t.Skip("this process cannot start others as other users, or with fewer capabilities")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), withoutResource+"=1")
	type ended struct {
		out []byte
		err error
	}
	end := make(chan ended)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine: it stays without the capability
		err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_RESOURCE, 0, 0, 0)
		if err != nil {
			end <- ended{err: err}
			return
		}
		out, err := cmd.CombinedOutput()
		end <- ended{out, err}
	}()
	if e := <-end; e.err != nil || !strings.Contains(string(e.out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", e.err, e.out)
	}
}
