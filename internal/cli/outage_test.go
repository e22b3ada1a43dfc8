package cli

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// follows starts a command whose messages can be read while it runs.
func (d *tool) follows(args ...string) (said func() string, wait func() int, stop func()) {
	d.t.Helper()
	cmd, _, _ := d.command(args...)
	f, err := os.Create(filepath.Join(d.t.TempDir(), "stderr"))
	if err != nil {
		d.t.Fatal(err)
	}
	cmd.Stderr = f
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { cmd.Process.Kill() })
	said = func() string {
		text, _ := os.ReadFile(f.Name())
		return string(text)
	}
	return said, func() int { cmd.Wait(); f.Close(); return cmd.ProcessState.ExitCode() }, func() { cmd.Process.Kill() }
}

var silentSince = regexp.MustCompile(`OpenWhisk at (\S+) does not answer \(connection refused\) since (\d+)s; ` +
	`waiting until`)

// A platform that goes away under a job is named within seconds; once it is back, without what was under way, the job
// goes on and ends well. Where it stays away, the job's deadline ends it as unreachable, and resume takes it up again.
func TestAJobOutlivesItsPlatform(t *testing.T) {
	t.Parallel()
	d := build(t)
	job := d.file(strings.Replace(steadyJob, "epochs: 16", "epochs: 200", 1))
	cmd, state := d.up()
	address, err := url.Parse(state.Address)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address.Host)

	said, wait, _ := d.follows("submit", job, "--apihost", state.Address, "--set", "training.epochs=12")
	d.until("two rounds", func() bool { return len(d.checkpoints()) > 1 })
	cmd.Process.Kill()
	cmd.Wait()
	d.until("a word of it", func() bool { return silentSince.MatchString(said()) })
	m := silentSince.FindStringSubmatch(said())
	if n, _ := strconv.Atoi(m[2]); n > 5 || m[1] != state.Address {
		t.Errorf("%s, said after %s s", m[1], m[2])
	}
	cmd, _ = d.up("--port", port)
	if code := wait(); code != 0 || !strings.Contains(said(), "OpenWhisk at "+state.Address+" answers again after ") {
		t.Fatalf("exit %d\n%s", code, said())
	}
	r := d.record()
	if r.Status != disdel.StatusSucceeded || len(r.Outages) != 1 || r.Outages[0].Until.IsZero() ||
		r.Outages[0].Why != "connection refused" {
		t.Errorf("%v, outages %+v", r.Status, r.Outages)
	}
	if told, _, _ := d.run("report", "@last"); !strings.Contains(told, "OpenWhisk did not answer 1 time") {
		t.Errorf("the report:\n%s", told)
	}

	said, wait, _ = d.follows("submit", job, "--apihost", state.Address, "--set", "reliability.deadline=20s", "--set",
		"resources.timeout=15s")
	id := r.ID
	d.until("two rounds", func() bool { return len(d.checkpoints()) > 1 })
	cmd.Process.Kill()
	cmd.Wait()
	code := wait()
	if r = d.record(); code != terminal.ExitUnreachable || r.ID == id || r.Failure == nil ||
		r.Failure.Code != disdel.CodeUnreachable {
		t.Fatalf("exit %d, %v\n%s", code, r.Failure, said())
	}
	if text := said(); !strings.Contains(text, "next:") || !strings.Contains(text, "resume "+string(r.ID)) {
		t.Errorf("no word of resume:\n%s", text)
	}
	d.up("--port", port)
	if _, errs, code := d.run("resume", "@last", "--apihost", state.Address, "--set", "training.epochs="+
		strconv.Itoa(r.Checkpoint.Round+2), "--set", "reliability.deadline=5m"); code != 0 {
		t.Errorf("exit %d\n%s", code, errs)
	}
}

// An address where nothing listens is an error within seconds.
func TestAnAddressWithoutAPlatformIsToldSoon(t *testing.T) {
	d := build(t)
	job := d.file(steadyJob)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	t.Setenv("DISDEL_AUTH", "user:key")
	_, errs, code := d.run("submit", job, "--apihost", "http://"+l.Addr().String())
	if code != terminal.ExitUnreachable || !strings.Contains(errs, "does not answer (connection refused), for") ||
		!strings.Contains(errs, "hint: check that OpenWhisk runs at") {
		t.Errorf("exit %d\n%s", code, errs)
	}
}
