package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// smallDisk mounts a file system of so many megabytes as a home, or skips.
func (d *tool) smallDisk(megabytes int) {
	d.t.Helper()
	if err := os.MkdirAll(d.home, 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", d.home, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0700", megabytes)); err != nil {
		d.t.Skipf("a disk of its own takes the right to mount one: %v", err)
	}
	d.t.Cleanup(func() { unix.Unmount(d.home, unix.MNT_DETACH) }) //nolint:errcheck // the test is over
}

// fill leaves so many bytes of the home's disk free.
func (d *tool) fill(leave int64) {
	d.t.Helper()
	d.free()
	var st unix.Statfs_t
	if err := unix.Statfs(d.home, &st); err != nil {
		d.t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(d.home, "ballast"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if n := int64(st.Bavail)*st.Bsize - leave; n > 0 {
		if err := unix.Fallocate(int(f.Fd()), 0, 0, n); err != nil && !errors.Is(err, unix.ENOSPC) {
			d.t.Fatal(err)
		}
	}
	if leave == 0 {
		for { // what a running job frees and takes meanwhile
			if _, err := f.Write(make([]byte, 4096)); err != nil {
				return
			}
		}
	}
}

func (d *tool) free() { os.Remove(filepath.Join(d.home, "ballast")) }

// told checks that commands work, and complain of nothing that is over.
func (d *tool) told(status string) {
	d.t.Helper()
	for range 2 {
		list, errs, code := d.run("history")
		if code != 0 || errs != "" || !strings.Contains(list, status) {
			d.t.Errorf("exit %d, want %q\n%s\n%s", code, status, list, errs)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(d.home, "unsaved", "*")); len(left) > 0 {
		d.t.Errorf("left: %v", left)
	}
	d.nothingStays()
}

// A disk that is full before a job refuses it at once; one that is full while it runs ends the job at the first
// checkpoint that cannot be written: no round is lost that was told of. One that has room again has the job go on.
func TestAFullDiskLosesNoRecord(t *testing.T) {
	t.Parallel()
	d := build(t)
	d.smallDisk(24)
	if _, errs, code := d.run("dataset", "add", "digits"); code != 0 {
		t.Fatal(errs)
	}
	for _, leave := range []int64{0, 40 << 10, 200 << 10} {
		d.fill(leave)
		_, errs, code := d.run("quickstart", "-q", "--set", "training.epochs=2")
		if code != terminal.ExitRefused || !strings.Contains(errs, d.home) || !strings.Contains(errs, "free some space") {
			t.Errorf("with %d bytes left: exit %d\n%s", leave, code, errs)
		}
	}
	d.free()
	d.told("no jobs yet")

	cmd, out, errs := d.command("quickstart", "-q", "--set", "training.epochs=30")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.until("a checkpoint", func() bool { return len(d.checkpoints()) > 0 })
	d.fill(0)
	err := cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	if err == nil || code != terminal.ExitRefused {
		t.Errorf("exit %d, want %d\n%s\n%s", code, terminal.ExitRefused, out, errs)
	}
	for _, want := range []string{
		"could not be written", "no space left", "the job stops before it loses more", "free some space",
	} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("not told: %q\n%s", want, errs)
		}
	}
	d.free()
	d.run("history") // delivers
	d.told("failed")
	if r := d.record(); r.Status != disdel.StatusFailed || r.Failure == nil || r.Failure.Kind != disdel.NoSpace ||
		r.Failure.Code != disdel.CodeUnkept || r.Checkpoint == nil || len(r.Rounds) > r.Checkpoint.Round {
		t.Errorf("%v after %d rounds: %v", r.Status, len(r.Rounds), r.Failure)
	}
	if _, errs, code := d.run("resume", "@last", "-q"); code != 0 {
		t.Errorf("resume: exit %d\n%s", code, errs)
	}
	d.told("succeeded")
}

// What is left of an end that could not be written is told of once.
func TestAnUnsavedFileThatIsNoRecordIsPutAside(t *testing.T) {
	d := build(t)
	dir := filepath.Join(d.home, "unsaved")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	names := []string{"job-01m80104rj3cabn3tetc26z8w3.json", "other.json"}
	for i, text := range []string{"", `{"record":{"id":"../../x"}}`} {
		if err := os.WriteFile(filepath.Join(dir, names[i]), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, errs, code := d.run("history")
	for _, name := range names {
		if code != 0 || !strings.Contains(errs, name+".damaged is no record") {
			t.Errorf("exit %d\n%s", code, errs)
		}
	}
	if _, errs, code := d.run("history"); code != 0 || errs != "" {
		t.Errorf("again: exit %d\n%s", code, errs)
	}
}

// A home that cannot be written to can be read; a damaged history is named, and repaired.
func TestHistoriesThatCannotBeWrittenOrRead(t *testing.T) {
	t.Parallel()
	d := build(t)
	d.smallDisk(64)
	if _, errs, code := d.run("quickstart", "-q", "--set", "training.epochs=1"); code != 0 {
		t.Fatal(errs)
	}
	if err := unix.Mount("", d.home, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"history"}, {"history", "show", "@last"}, {"report", "@last"}} {
		if out, errs, code := d.run(args...); code != 0 || errs != "" || !strings.Contains(out, "digits-cnn") {
			t.Errorf("%v: exit %d\n%s\n%s", args, code, out, errs)
		}
	}
	if err := unix.Mount("", d.home, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(d.home, "history.db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, damaged := range map[string][]byte{"cut": data[:3*os.Getpagesize()], "flipped": flipped(data), "empty": {}} {
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		_, errs, code := d.run("history")
		if code != terminal.ExitFailed || !strings.Contains(errs, path+" is damaged") ||
			!strings.Contains(errs, "jobs repair") || strings.Contains(errs, "goroutine") {
			t.Errorf("%s: exit %d\n%s", what, code, errs)
		}
	}
	if err := os.WriteFile(path, flipped(data), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := d.run("history", "repair"); code != 0 || !strings.Contains(out, "kept; the file as it was is") {
		t.Errorf("repair: exit %d\n%s", code, errs)
	}
	if out, errs, code := d.run("history"); code != 0 || errs != "" {
		t.Errorf("after it: exit %d\n%s\n%s", code, out, errs)
	}
}

// flipped has a bit of every record changed.
func flipped(data []byte) []byte {
	return bytes.ReplaceAll(bytes.Clone(data), []byte(`"succeeded"`), []byte(`"suCceeded"`))
}

// Data that did not get where it should is no success.
func TestOutputThatCannotBeWrittenIsNoSuccess(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"history"}, {"history", "-o", "json"}, {"model", "list"}, {"dataset", "list"}} {
		var errs bytes.Buffer
		if code := run(append([]string{"disdel", "--home", t.TempDir()}, args...), nil, full, &errs); code == 0 {
			t.Errorf("%v: exit 0\n%s", args, &errs)
		}
	}
}
