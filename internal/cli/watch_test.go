package cli

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pane is a terminal that others wrote: tmux, with a server and a shell of its own.
type pane struct {
	t            *testing.T
	tmux, socket string
}

// openPane opens a terminal of 100 columns and 24 rows, in which d's jobs are.
func openPane(t *testing.T, d *tool) *pane {
	t.Helper()
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("tmux is not installed; scripts/test-deps.sh installs it")
	}
	p := &pane{t, tmux, filepath.Join(t.TempDir(), "tmux")}
	p.do("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "24", "-e", "DISDEL_HOME="+d.home, "-e",
		"TMPDIR="+d.temp, "sh")
	t.Cleanup(func() { p.do("kill-server") })
	p.types("PS1='re''ady> '") // what is typed is not what is waited for
	p.press("Enter")
	p.await("the shell", func(s string) bool { return strings.Contains(s, "ready>") })
	return p
}

func (p *pane) do(args ...string) string {
	p.t.Helper()
	out, err := exec.Command(p.tmux, append([]string{"-S", p.socket}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// screen is what somebody sees.
func (p *pane) screen() string { return p.do("capture-pane", "-p") }

// press presses keys, by the names that tmux has for them.
func (p *pane) press(keys ...string) { p.do(append([]string{"send-keys"}, keys...)...) }

// types types a text.
func (p *pane) types(text string) { p.do("send-keys", "-l", text) }

// await waits until the screen is as it is to become. However slow the machine is, it becomes so.
func (p *pane) await(what string, is func(screen string) bool) {
	p.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		screen := p.screen()
		if is(screen) {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("no %s:\n%s", what, screen)
		}
	}
}

func (p *pane) shows(parts ...string) {
	p.t.Helper()
	p.await(fmt.Sprintf("%q", parts), func(screen string) bool {
		for _, part := range parts {
			if !strings.Contains(screen, part) {
				return false
			}
		}
		return true
	})
}

// isShell waits until the terminal is the shell's as it was: what stood on it is there again, and what is typed shows.
func (p *pane) isShell() {
	p.t.Helper()
	p.await("shell", func(screen string) bool {
		modes := p.do("display-message", "-p", "#{alternate_on} #{cursor_flag}")
		return modes == "0 1\n" && !strings.Contains(screen, "JOB ")
	})
	p.types("echo $((6*7))is the sum")
	p.press("Enter")
	p.shows("echo $((6*7))is", "42is the sum")
}

// Jobs on a whole terminal: the list, its filter, one job with its curves and its log, another size of the terminal, a
// job of another process that is canceled from here, and the shell as it was afterwards.
func TestJobsOnARealTerminal(t *testing.T) {
	t.Parallel()
	d := build(t)
	if _, errs, code := d.run("quickstart", "--set", "metadata.name=first", "--set", "training.epochs=3"); code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	p := openPane(t, d)
	p.types(d.path + " job watch; echo left with $?")
	p.press("Enter")
	p.shows("disdel  1 job", "> first", "succeeded", "3/3", "q: quit")
	if strings.Contains(p.screen(), "ready>") {
		t.Error("the shell shines through")
	}

	running, _, _ := d.command("quickstart", "--set", "metadata.name=second", "--set", "training.epochs=5000")
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	defer running.Process.Kill() //nolint:errcheck // it has ended
	p.shows("disdel  2 jobs", "second", "running")
	p.types("/first")
	p.shows("disdel  1 job  with first", "/first_")
	p.press("Escape")
	p.shows("disdel  2 jobs")

	p.press("Up", "Up", "Enter")
	p.shows("second  job-", "train loss", "accuracy", "/5000 [", "held-out loss")
	p.press("l")
	p.await("log", func(screen string) bool {
		return strings.Contains(screen, "l: log or picture") && strings.Contains(screen, "begins: limit") &&
			!strings.Contains(screen, "accuracy    ")
	})
	p.do("resize-window", "-x", "60", "-y", "12")
	p.await("smaller screen", func(screen string) bool {
		lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
		return len(lines) == 12 && strings.HasPrefix(lines[0], "second  job-") && strings.HasPrefix(lines[11], "l: log")
	})
	p.press("c")
	p.shows("cancel this job? y: yes")
	p.press("y")
	p.await("end of the job", func(screen string) bool {
		first, _, _ := strings.Cut(screen, "\n")
		return strings.Contains(first, "canceled")
	})
	running.Wait() //nolint:errcheck // it says that it was canceled

	p.press("q")
	p.shows("disdel  2 jobs", "canceled")
	p.press("q")
	p.shows("left with 0")
	p.isShell()

	p.types("clear; " + d.path + " job watch first; echo left with $?")
	p.press("Enter")
	p.shows("first  job-", "round 3/3")
	p.press("C-c")
	p.shows("left with 0")
	p.isShell()
	d.nothingStays()
}
