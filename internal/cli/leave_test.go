package cli

import (
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/disdel/disdel"
)

// untilStatus waits for a status of a job.
func (d *tool) untilStatus(id, status string) {
	d.t.Helper()
	d.until(id+" "+status, func() bool {
		out, _, _ := d.run("history", "show", id, "-o", "json")
		var doc struct{ Status string }
		return json.Unmarshal([]byte(out), &doc) == nil && doc.Status == status
	})
}

// runnerOf waits until another process than this one runs the job, and returns its number.
func (d *tool) runnerOf(id string) (pid int) {
	d.t.Helper()
	d.until("process that runs "+id, func() bool {
		out, _, _ := d.run("history", "show", id)
		for line := range strings.Lines(out) {
			if text, ok := strings.CutPrefix(line, "runs      in process "); ok {
				pid, _ = strconv.Atoi(strings.TrimSpace(text))
			}
		}
		return pid > 0
	})
	return pid
}

// jobFileOf writes a job of digits that takes so many epochs.
func (d *tool) jobFileOf(name string, epochs int) string {
	d.t.Helper()
	if _, errs, code := d.run("dataset", "add", "digits", "--overwrite"); code != 0 {
		d.t.Fatal(errs)
	}
	text := strings.NewReplacer("name: long", "name: "+name, "epochs: 500", "epochs: "+strconv.Itoa(epochs)).
		Replace(longJob)
	file := filepath.Join(d.t.TempDir(), name+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return file
}

// backgroundLogs are the files of background processes.
func (d *tool) backgroundLogs() []string {
	list, _ := filepath.Glob(filepath.Join(d.home, "background", "*"))
	return list
}

// A closed terminal does not end a local job: it goes on in the background, from its newest checkpoint.
func TestAClosedTerminalLetsALocalJobGoOn(t *testing.T) {
	t.Parallel()
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored here, and what is started ignores it too")
	}
	d := build(t)
	cmd, _, errs := d.start()
	cmd.Process.Signal(syscall.SIGHUP)
	cmd.Process.Signal(syscall.SIGHUP) // a shell sends another one to its jobs
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(errs.String(), " goes on in the background") {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	d.untilStatus("@last", "running")
	if pid := d.runnerOf("@last"); pid == cmd.Process.Pid {
		t.Errorf("process %d runs it still", pid)
	}
	if _, errs, code := d.run("jobs", "cancel", "@last"); code != 0 {
		t.Error(errs)
	}
	d.untilStatus("@last", "canceled")
	d.until("end of the background process", func() bool { return len(d.backgroundLogs()) == 0 })
	d.until("end of its containers", func() bool { return len(d.children()) == 0 })
}

// A local job that no background process can take over is paused: the command says so, why, and how to resume it.
func TestAFailedHandoverSaysHowToResume(t *testing.T) {
	t.Parallel()
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored here, and what is started ignores it too")
	}
	d := build(t)
	cmd, _, errs := d.start()
	manifests, _ := filepath.Glob(filepath.Join(d.home, "datasets", "*", "manifest.json*"))
	for _, file := range manifests {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Process.Signal(syscall.SIGHUP)
	cmd.Wait()
	d.untilStatus("@last", "paused")
	for _, want := range []string{"is paused, because no process could take it over", "digits", "resume job-"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("exit %d, no %q\n%s", cmd.ProcessState.ExitCode(), want, errs)
		}
	}
}

// Two jobs of one home run in the background: their ids are printed at once, the home's commands reach them, and each
// process ends with its job.
func TestDetachedJobsGoOnWithoutTheirTerminal(t *testing.T) {
	t.Parallel()
	d := build(t)
	file := d.jobFileOf("long", 500)
	short := d.jobFileOf("short", 3)
	first, errs, code := d.run("submit", file, "--detach")
	id := strings.TrimSpace(first)
	if code != 0 || !disdel.JobID(id).Valid() {
		t.Fatalf("exit %d, %q\n%s", code, first, errs)
	}
	for _, want := range []string{"watch  ", " jobs watch " + id, " jobs logs " + id + " --follow", " jobs cancel " + id} {
		if !strings.Contains(errs, want) {
			t.Errorf("it does not say %q:\n%s", want, errs)
		}
	}
	second, errs, code := d.run("submit", short, "-d", "-o", "json")
	var doc detachedDocument
	if err := json.Unmarshal([]byte(second), &doc); err != nil || code != 0 {
		t.Fatalf("exit %d, %v\n%s", code, err, errs)
	}
	if out, errs, code := d.run("jobs", "wait", string(doc.Job)); code != 0 || !strings.Contains(out, "succeeded") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if _, errs, code := d.run("jobs", "wait", id, "--timeout", "1ms"); code != 124 || !strings.Contains(errs, "it goes on") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	if _, errs, code := d.run("jobs", "pause", id); code != 0 {
		t.Error(errs)
	}
	if _, errs, code := d.run("jobs", "wait", id); code != 9 {
		t.Errorf("exit %d\n%s", code, errs)
	}
	if out, errs, code := d.run("resume", id, "--detach"); code != 0 || strings.TrimSpace(out) != id {
		t.Errorf("exit %d, %q\n%s", code, out, errs)
	}
	process, err := os.FindProcess(d.runnerOf(id))
	if err != nil {
		t.Fatal(err)
	}
	process.Kill()
	d.until("state of a job without a process", func() bool {
		out, _, _ := d.run("history", "show", id)
		return strings.Contains(out, "no process of this home runs it")
	})
	if logs := d.backgroundLogs(); len(logs) != 1 || !strings.Contains(logs[0], id) {
		t.Errorf("logs of killed processes: %v", logs)
	}
	if _, errs, code := d.run("jobs", "cancel", id); code != 0 {
		t.Error(errs)
	}
	d.until("end of all containers", func() bool { return len(d.children()) == 0 })
}

// A job that is refused is refused by the command that detaches, with the same words and the same exit code.
func TestADetachedJobIsRefusedInTheForeground(t *testing.T) {
	t.Parallel()
	d := build(t)
	file := d.jobFileOf("wrong", 3)
	for _, args := range [][]string{{"--set", "training.epochs=none"}, {"--set", "data.source=dataset://nothing"}} {
		_, want, code := d.run(append([]string{"submit", file}, args...)...)
		out, errs, detached := d.run(append([]string{"submit", file, "--detach"}, args...)...)
		if code == 0 || detached != code || errs != want || out != "" {
			t.Errorf("%v: exit %d and %d, %q\n%s\n%s", args, code, detached, out, want, errs)
		}
	}
	if logs := d.backgroundLogs(); len(logs) > 0 {
		t.Errorf("logs left: %v", logs)
	}
	d.nothingStays()
}

// The job of a server belongs to the server: neither Ctrl-C nor a closed terminal ends it, only job cancel does.
func TestAServersJobOutlivesItsView(t *testing.T) {
	t.Parallel()
	d := build(t)
	file := d.jobFileOf("long", 500)
	serve, text := d.background("serve", "--listen", "127.0.0.1:0")
	url := d.said(text, `serves (http://\S+)`)
	for _, sent := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if sent == syscall.SIGHUP && signal.Ignored(syscall.SIGHUP) {
			continue
		}
		cmd, said := d.background("--server", url, "submit", file)
		id := d.said(said, `jobs logs (\S+) --follow`)
		d.said(said, `(round +1/500)`)
		cmd.Process.Signal(sent)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 130 {
			t.Errorf("%v: exit %d", sent, code)
		}
		d.said(said, `job (\S+) goes on at the server`)
		if out, _, _ := d.run("--server", url, "history", "show", id, "-o", "json"); !strings.Contains(out,
			`"status": "running"`) {
			t.Errorf("%v: %.300s", sent, out)
		}
		if _, errs, code := d.run("--server", url, "jobs", "cancel", id); code != 0 {
			t.Error(errs)
		}
		if _, _, code := d.run("--server", url, "jobs", "wait", id); code != 8 {
			t.Errorf("%v: job wait exits with %d", sent, code)
		}
	}
	cmd, said := d.background("--server", url, "submit", file, "--cancel-on-interrupt")
	id := d.said(said, `jobs logs (\S+) --follow`)
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	if _, _, code := d.run("--server", url, "jobs", "wait", id); code != 8 {
		t.Errorf("job wait exits with %d", code)
	}
	out, errs, code := d.run("--server", url, "submit", file, "-d")
	if code != 0 || !disdel.JobID(strings.TrimSpace(out)).Valid() || !strings.Contains(errs, "watch  ") {
		t.Errorf("exit %d, %q\n%s", code, out, errs)
	}
	short := d.jobFileOf("short", 2)
	if out, errs, code := d.run("--server", url, "submit", short, "--fail-if", "rounds > 1"); code != 10 {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	out, errs, code = d.run("--server", url, "resume", "short", "--set", "training.epochs=3")
	if code != 0 || !strings.Contains(out, ": 2 epochs were trained, 1 follow") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	serve.Process.Signal(os.Interrupt)
	serve.Wait()
}

// At a terminal, Ctrl-C asks what becomes of a local job: Enter lets it go on in the background, and a second Ctrl-C
// cancels it.
func TestCtrlCAtATerminalAsks(t *testing.T) {
	t.Parallel()
	d := build(t)
	file := d.jobFileOf("long", 500)
	p := openPane(t, d)
	p.types("clear; " + d.path + " submit " + file + "; echo left with $?")
	p.press("Enter")
	p.shows("round   1/500")
	p.press("C-c")
	p.shows("press Enter to let the job go on")
	p.press("Enter")
	p.shows("goes on in the background", "left with 130")
	d.runnerOf("@last")
	if _, errs, code := d.run("jobs", "cancel", "@last"); code != 0 {
		t.Error(errs)
	}
	d.untilStatus("@last", "canceled")

	p.types("clear; echo the old screen is go''ne") // it has the same words
	p.press("Enter")
	p.shows("the old screen is gone")
	p.types("clear; " + d.path + " submit " + file + "; echo left with $?")
	p.press("Enter")
	p.shows("round   1/500")
	p.press("C-c")
	p.shows("press Enter to let the job go on")
	p.press("C-c")
	p.shows("left with 130")
	d.untilStatus("@last", "canceled")
	d.until("end of all containers", func() bool { return len(d.children()) == 0 })
}
