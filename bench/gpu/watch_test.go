package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/disdel/disdel"
)

// silence is what pieces of tests are allowed: far more than a shell takes to say a word, on any machine.
const silence = 10 * time.Second

// reported is a report of pieces that are shell scripts, and what came of it.
func reported(t *testing.T, until time.Time, scripts map[string]string, parts ...string) (string, error) {
	t.Helper()
	var text strings.Builder
	r := reporter{out: &text, silence: silence, until: until, command: func(piece string) *exec.Cmd {
		return exec.Command("sh", "-c", scripts[piece])
	}}
	err := r.report(t.Context(), parts)
	return text.String(), err
}

// Pieces that hang, fail or go down end themselves, which the report says where it happened, and the others are done.
func TestAPieceThatHangsStopsNoOther(t *testing.T) {
	t.Parallel()
	text, err := reported(t, time.Time{}, map[string]string{
		devices: "echo one device", "promises": "echo begun; echo odd >&2; sleep 1000",
		"steps": "echo done; echo gpu: too bad >&2; exit 3",
		"torch": "kill -SEGV $$", "bits": "echo the last one",
	}, "check")
	if !errors.Is(err, disdel.Timeout) {
		t.Errorf("%v, want Timeout", err)
	}
	for _, want := range []string{
		"one device\n", "begun\n\nFAILED: promises: it printed nothing for 10s, and was ended; it had complained: odd\n",
		"odd\nhint: nvidia-smi and dmesg", "done\n\nFAILED: steps: too bad\n", "FAILED: torch: signal: segmentation fault",
		"the last one\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "FAILED: curves") || strings.Contains(text, "FAILED: bits") {
		t.Errorf("what was done has failed:\n%s", text)
	}
}

// Whoever prints something goes on, for longer than one may be silent.
func TestWhoeverPrintsGoesOn(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	cmd := exec.Command("sh", "-c", "for i in 1 2 3 4 5 6; do sleep 1; echo $i; done")
	if err := watched(t.Context(), &text, cmd, 5*time.Second); err != nil || text.String() != "1\n2\n3\n4\n5\n6\n" {
		t.Errorf("%v: %q", err, text.String())
	}
}

// What a piece has started goes with it, whether it hangs, the program is told to end, it goes down by itself, or it
// has done its work.
func TestNothingOfAPieceStays(t *testing.T) {
	t.Parallel()
	const hangs = "sleep 1000 & sleep 1000"
	for name, c := range map[string]struct {
		script        string
		silence, told time.Duration
		done          bool
	}{
		"it hangs":          {script: hangs, silence: time.Second, told: time.Hour},
		"it is told to end": {script: hangs, silence: time.Hour, told: time.Second},
		"it goes down":      {script: "sleep 1000 & kill -SEGV $$", silence: time.Hour, told: time.Hour},
		"it is done":        {script: "sleep 1000 &", silence: time.Hour, told: time.Hour, done: true},
	} {
		ctx, stop := context.WithTimeout(t.Context(), c.told)
		defer stop()
		read, held, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", c.script)
		cmd.ExtraFiles = []*os.File{held} // open for as long as one of them is there
		if err := watched(ctx, io.Discard, cmd, c.silence); (err == nil) != c.done {
			t.Errorf("%s: %v", name, err)
		}
		held.Close()
		if err := read.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(read); err != nil {
			t.Errorf("%s: something of it is there: %v", name, err)
		}
		read.Close()
	}
}

// A piece that does not end when it is killed, as one that waits in a driver, is left behind after a while, and what it
// prints then is in no report.
func TestWhatDoesNotEndIsLeftBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if end(cmd, nil) { // nobody tells that it has ended
			t.Error("it has ended")
		}
		if waited := time.Since(begun); waited != afterKill {
			t.Errorf("it was waited for for %v", waited)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("it was not killed")
		}
	})
	var report strings.Builder
	e := &ear{out: &report, sounds: make(chan struct{}, 1)}
	fmt.Fprint(e, "in time")
	e.close()
	if n, err := fmt.Fprint(e, ", late"); n != len(", late") || err != nil || report.String() != "in time" {
		t.Errorf("%d, %v: %q", n, err, report.String())
	}
}

// Nothing is begun any more once the program is told to end.
func TestWhoIsToldToEndBeginsNothing(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var begun []string
	r := reporter{out: io.Discard, silence: time.Hour, command: func(piece string) *exec.Cmd {
		if begun = append(begun, piece); piece == devices {
			return exec.Command("true")
		}
		stop()
		return exec.Command("sleep", "1000")
	}}
	if err := r.report(ctx, []string{"check", "figures"}); !errors.Is(err, context.Canceled) || len(begun) != 2 {
		t.Errorf("%v: %v were begun", err, begun)
	}
}

// A report goes by what the program was told.
func TestSettingsAreKept(t *testing.T) {
	t.Parallel()
	began := time.Unix(1e9, 0)
	s := settings{python: "python9", within: time.Hour, silence: time.Minute}
	r := s.reporter("/gpu", io.Discard, began)
	if !r.until.Equal(began.Add(time.Hour)) || r.silence != time.Minute {
		t.Errorf("until %v, silent for %v", r.until, r.silence)
	}
	if args := strings.Join(r.command("bits").Args, " "); args != "/gpu -piece bits -python python9" {
		t.Error(args)
	}
	s.within = 0
	if r := s.reporter("/gpu", io.Discard, began); !r.until.IsZero() {
		t.Errorf("until %v", r.until)
	}
}

// Of a long complaint the beginning is told, where a crash says why, and the end.
func TestWhyAPieceWentDownIsTold(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", "{ echo 'fatal error: why'; seq 9999; echo 'exit status 2'; } >&2; exit 2")
	err := watched(t.Context(), io.Discard, cmd, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "fatal error: why\n1\n") ||
		!strings.HasSuffix(err.Error(), "\n9999\nexit status 2") || len(err.Error()) > 3*mostOfComplaints {
		t.Error(err)
	}
}

// Without a GPU nothing else is begun; what has not begun when the time is over is left out, and the report says so.
func TestWhatIsNotBegunIsSaid(t *testing.T) {
	t.Parallel()
	text, err := reported(t, time.Time{}, map[string]string{devices: "echo none >&2; exit 1"}, "check")
	if err == nil || !strings.Contains(text, "FAILED: devices: none\n") || strings.Contains(text, "promises") {
		t.Errorf("%v:\n%s", err, text)
	}
	late := time.Now().Add(-time.Second)
	text, err = reported(t, late, map[string]string{devices: "echo one"}, "check", "figures")
	if n := strings.Count(text, "left out for want of time: "); err != nil || n != len(pieces("check"))+len(measured) {
		t.Errorf("%v: %d left out\n%s", err, n, text)
	}
}

// What is no part and no piece is said.
func TestUnknownPartsAreSaid(t *testing.T) {
	t.Parallel()
	if err := do("nothing", io.Discard, ""); !errors.Is(err, disdel.Invalid) {
		t.Errorf("%v, want Invalid", err)
	}
	if _, err := reported(t, time.Time{}, map[string]string{devices: "true"}, "chekc"); !errors.Is(err, disdel.Invalid) {
		t.Errorf("%v, want Invalid", err)
	}
}
