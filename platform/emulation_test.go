package platform

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/internal/test/wait"
)

// endOf runs an action and returns its record, and how long after the end that it tells the answer came.
func endOf(t *testing.T, p *Platform, main, args string, timeout int) (rec map[string]any, late time.Duration) {
	t.Helper()
	newTestAction(t, p, main, timeout, 128)
	_, rec = call(t, p, "POST", ns+"/actions/"+main+"?blocking=true", args)
	end, _ := rec["end"].(float64)
	return rec, time.Since(time.UnixMilli(int64(end)))
}

// The record of a crash or a timeout comes late, with its true times; that of any other end, and of a death for memory
// that left evidence, does not wait.
func TestLateRecordsAreThoseOfBrokenAnswers(t *testing.T) {
	const late = 1500 * time.Millisecond
	p := start(t, func(c *Config) { c.LateRecords = late })
	for main, c := range map[string]struct {
		timeout int
		texts   []string
	}{
		"killed":      {60000, []string{textAbnormalRun}},
		"init-killed": {60000, []string{textAbnormalInit}},
		"hang": {300, []string{ // on a busy machine its container does not even start in time
			"The action exceeded its time limits of 300 milliseconds.",
			"The action exceeded its time limits of 300 milliseconds during initialization.",
		}},
	} {
		rec, after := endOf(t, p, main, `{}`, c.timeout)
		status, result := responseOf(rec)
		if text, _ := result.(map[string]any); status != statusDeveloper ||
			!slices.Contains(c.texts, fmt.Sprint(text["error"])) {
			t.Errorf("%s: %s %v, want %q", main, status, result, c.texts)
		}
		if after < late {
			t.Errorf("%s: told after %v", main, after)
		}
	}
}

// Whatever else ends an activation is told at once: an hour is waited for nothing.
func TestOtherRecordsAreNotLate(t *testing.T) {
	p := start(t, func(c *Config) { c.LateRecords = time.Hour })
	for _, main := range []string{"echo", "app-error", "dev-error"} {
		if rec, _ := endOf(t, p, main, `{}`, 60000); rec["end"] == nil {
			t.Errorf("%s: %v", main, rec)
		}
	}
}

// A death for memory that left evidence is told at once.
func TestALateRecordIsNotOfADeathForMemory(t *testing.T) {
	race.SkipMemory(t)
	quick := start(t, func(c *Config) { c.LateRecords = time.Hour })
	rec, _ := endOf(t, quick, "allocate", `{"mb":200}`, 60000)
	checkRecord(t, rec, statusDeveloper, textMemoryExhausted)
}

// A platform whose records are late ends at once all the same.
func TestLateRecordsDoNotHoldTheEndUp(t *testing.T) {
	p := start(t, func(c *Config) { c.LateRecords = time.Hour; c.LateSlots = time.Hour })
	newTestAction(t, p, "killed", 60000, 128)
	call(t, p, "POST", ns+"/actions/killed", `{}`)
	wait.Until(t, "the container gone", func() bool { return p.Status().Running == 1 })
}

// A container that dies before or during /init is the action's full time limit, not a crash; a death for memory is
// still one.
func TestADeathBeforeItAcceptsReadsAsATimeout(t *testing.T) {
	const text = "The action exceeded its time limits of 700 milliseconds during initialization."
	t.Run("ends at once", func(t *testing.T) {
		p := start(t, func(c *Config) {
			c.RefusedInit = true
			c.Kinds = map[string]Kind{disdel.RuntimeKind: {Command: []string{"true"}}}
		})
		rec, _ := endOf(t, p, "echo", `{}`, 700)
		checkRecord(t, rec, statusDeveloper, text)
	})
	p := start(t, func(c *Config) { c.RefusedInit = true })
	for _, main := range []string{"init-killed", "init-exit"} {
		rec, _ := endOf(t, p, main, `{}`, 700)
		checkRecord(t, rec, statusDeveloper, text)
		if annotation(rec, "timeout") != true || rec["duration"].(float64) < 700 ||
			annotation(rec, "initTime").(float64) < 700 || annotation(rec, "memoryKill") != nil {
			t.Errorf("%s: %v", main, rec)
		}
	}
	rec, _ := endOf(t, p, "killed", `{}`, 60000)
	checkRecord(t, rec, statusDeveloper, textAbnormalRun)
}

// Refused invocations use up the minute, and a slot comes back late.
func TestRefusedInvocationsCount(t *testing.T) {
	p := start(t, nil)
	u := &user{Namespace: Namespace{InvocationsPerMinute: 5, ConcurrentInvocations: 2}}
	now := time.Unix(600, 0)
	for i, want := range []string{
		"", "", "Too many concurrent requests in flight (count: 2, allowed: 2).",
		"Too many concurrent requests in flight (count: 2, allowed: 2).",
		"Too many concurrent requests in flight (count: 2, allowed: 2).",
		"Too many requests in the last minute (count: 6, allowed: 5).",
		"Too many requests in the last minute (count: 7, allowed: 5).",
	} {
		got := ""
		if err := u.admit(now, true); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d: %q, want %q", i, got, want)
		}
	}
	if err := u.admit(now.Add(time.Minute), true); err == nil || !strings.HasPrefix(err.Error(), "Too many concurrent") {
		t.Errorf("in the next minute: %v", err)
	}
	p.releaseSlot(u)
	if err := u.admit(now.Add(time.Minute), true); err != nil {
		t.Errorf("with a slot free: %v", err)
	}
	p.cfg.LateSlots = time.Hour
	p.releaseSlot(u)
	if err := u.admit(now.Add(time.Minute), true); err == nil {
		t.Error("the slot came back at once")
	}
}

// Without evidence a death for memory reads as any other: the text, no annotation.
func TestWithoutEvidenceADeathForMemoryIsADeath(t *testing.T) {
	race.SkipMemory(t)
	p := start(t, func(c *Config) { c.NoEvidence = true })
	rec, _ := endOf(t, p, "allocate", `{"mb":200}`, 60000)
	checkRecord(t, rec, statusDeveloper, textAbnormalRun)
	if annotation(rec, "peakMemory") != nil || annotation(rec, "memoryKill") != nil {
		t.Errorf("%v", rec["annotations"])
	}
}

// counted dies in the first run of a warm container, and counts its runs in a file beside the containers' folders.
func counted(params map[string]any) (int, string) {
	f, _ := os.OpenFile(filepath.Join(params["dir"].(string), "runs"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	fmt.Fprintln(f, os.Getpid())
	f.Close()
	if marker := filepath.Join(params["dir"].(string), "die"); params["die"] == true && os.Remove(marker) == nil {
		os.Exit(1)
	}
	return 200, `{"done":true}`
}

// A warm container's death has the activation run again, under its own id, without a word; a cold one's is told.
func TestAWarmContainersDeathIsRepeatedInSilence(t *testing.T) {
	for _, retry := range []bool{true, false} {
		t.Run(fmt.Sprint(retry), func(t *testing.T) { warmDeath(t, retry) })
	}
}

func warmDeath(t *testing.T, retry bool) {
	dir, late, runs := t.TempDir(), time.Duration(0), 2
	if retry {
		late, runs = time.Hour, 3 // no record waits for what is not told
	}
	p := start(t, func(c *Config) { c.RetryWarm, c.LateRecords = retry, late })
	rec, _ := endOf(t, p, "counted", fmt.Sprintf(`{"dir":%q}`, dir), 60000)
	checkRecord(t, rec, statusSuccess, `{"done":true}`)
	if err := os.WriteFile(filepath.Join(dir, "die"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, rec = call(t, p, "POST", ns+"/actions/counted?blocking=true", fmt.Sprintf(`{"dir":%q,"die":true}`, dir))
	if retry {
		checkRecord(t, rec, statusSuccess, `{"done":true}`)
	} else {
		checkRecord(t, rec, statusDeveloper, textAbnormalRun)
	}
	marks, _ := os.ReadFile(filepath.Join(dir, "runs"))
	if got := strings.Count(string(marks), "\n"); got != runs {
		t.Errorf("it ran %d times, want %d", got, runs)
	}
}

// An action larger than the pool waits for ever, and so do all behind it, even when it was deleted.
func TestAnActionLargerThanThePoolHoldsTheQueueUp(t *testing.T) {
	p := start(t, func(c *Config) { c.PoolMemory = 256 * disdel.MB })
	newTestAction(t, p, "echo", 60000, 128)
	newTestAction(t, p, "sleep", 60000, 512)
	for i, main := range []string{"sleep", "echo"} {
		if status, got := call(t, p, "POST", ns+"/actions/"+main, `{"ms":1}`); status != 202 {
			t.Fatalf("%d %v", status, got)
		}
		wait.Until(t, main+" queued", func() bool { return p.Status().Queued == i+1 })
	}
	call(t, p, "DELETE", ns+"/actions/sleep", "")
	if s := p.Status(); s.Queued != 2 || s.Running != 0 {
		t.Errorf("%+v", s)
	}
}

func TestLikenessesHaveNames(t *testing.T) {
	for text, want := range map[string]Emulation{
		"embedded":  {},
		"openwhisk": {LateRecords: 12 * time.Second, RefusedInit: true, CountRefused: true, LateSlots: 20 * time.Millisecond},
		"openwhisk,late-records=0s,late-slots=0s": {RefusedInit: true, CountRefused: true},
		"kubernetes, retry-warm": {
			RefusedInit: true, CountRefused: true, LateSlots: 20 * time.Millisecond,
			NoEvidence: true, RetryWarm: true,
		},
		"late-records=3s,no-evidence": {LateRecords: 3 * time.Second, NoEvidence: true},
	} {
		if got, err := ParseEmulation(text); got != want || err != nil {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "whisk", "late-records=soon", "late-records=-1s", "refused-init=1", "openwhisk=1"} {
		if _, err := ParseEmulation(text); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What is like an OpenWhisk loses nothing under load either.
func TestALikenessLosesNothing(t *testing.T) {
	p := start(t, func(c *Config) {
		c.Emulation, _ = ParseEmulation("standalone,late-records=10ms,late-slots=1ms")
		c.PoolMemory, c.Limits.ConcurrentInvocations = 256*disdel.MB, 100
	})
	newTestAction(t, p, "sleep", 60000, 128)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if status, got := call(t, p, "POST", ns+"/actions/sleep?blocking=true", `{"ms":1}`); status != 200 {
				t.Errorf("%d %v", status, got)
			}
		})
	}
	all.Wait()
}
