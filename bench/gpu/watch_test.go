package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// silence is what pieces of tests are allowed: far more than a shell takes to say a word, on any machine.
const silence = 3 * time.Second

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
		devices: "echo one device", "promises": "echo begun; sleep 1000", "steps": "echo done; echo gpu: too bad >&2; exit 3",
		"torch": "kill -SEGV $$", "bits": "echo the last one",
	}, "check")
	if !errors.Is(err, disdel.Timeout) {
		t.Errorf("%v, want Timeout", err)
	}
	for _, want := range []string{
		"one device\n", "begun\n\nFAILED: promises: it printed nothing for 3s, and was ended\n",
		"done\n\nFAILED: steps: too bad\n", "FAILED: torch: signal: segmentation fault", "the last one\n",
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
	cmd := exec.Command("sh", "-c", "for i in 1 2 3 4; do sleep 1; echo $i; done")
	if err := watched(t.Context(), &text, cmd, silence); err != nil || text.String() != "1\n2\n3\n4\n" {
		t.Errorf("%v: %q", err, text.String())
	}
}

// What a piece has started goes with it, whether it hangs, the program is told to end, or it goes down by itself.
func TestNothingOfAPieceStays(t *testing.T) {
	t.Parallel()
	const hangs = "sleep 1000 & sleep 1000"
	for name, c := range map[string]struct {
		script        string
		silence, told time.Duration
	}{
		"it hangs": {hangs, time.Second, time.Hour}, "it is told to end": {hangs, time.Hour, time.Second},
		"it goes down": {"sleep 1000 & kill -SEGV $$", time.Hour, time.Hour},
	} {
		ctx, stop := context.WithTimeout(t.Context(), c.told)
		defer stop()
		read, held, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", c.script)
		cmd.ExtraFiles = []*os.File{held} // open for as long as one of them is there
		if err := watched(ctx, io.Discard, cmd, c.silence); err == nil {
			t.Errorf("%s: no error", name)
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
