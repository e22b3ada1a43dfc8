package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

// screen is a terminal of some columns that understands what a follower writes: lines, and taking rows back.
type screen struct {
	columns int
	rows    []string
}

func (s *screen) Write(data []byte) (int, error) {
	text := string(data)
	if up, rest, ok := strings.Cut(text, "A\x1b[J"); ok {
		var n int
		fmt.Sscanf(up, "\x1b[%d", &n)
		s.rows = s.rows[:max(0, len(s.rows)-n)]
		text = rest
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		for utf8.RuneCountInString(line) > s.columns {
			s.rows, line = append(s.rows, string([]rune(line)[:s.columns])), string([]rune(line)[s.columns:])
		}
		s.rows = append(s.rows, line)
	}
	return len(data), nil
}

func progressOf(workers, batch int) service.Event {
	var list []disdel.Progress
	for i := range workers {
		list = append(list, disdel.Progress{
			Task: disdel.TaskTrain, Member: i, Epoch: 1, Batch: batch, Batches: 100,
			Loss: 0.1234, Resident: 40 * disdel.MB,
		})
	}
	return service.Event{What: service.Progress{Actions: list}}
}

// However narrow or low the terminal is, progress takes its own lines back and leaves none behind.
func TestProgressLeavesNoStaleLines(t *testing.T) {
	for _, columns := range []int{20, 40, 60, 80, 200} {
		s := &screen{columns: columns}
		u := terminal.New(nil, nil, s)
		u.Live, u.Size = true, func() (int, int) { return columns, 10 }
		f := NewFollower(u)
		for batch := range 5 {
			f.Follow(progressOf(12, batch))
			if len(s.rows) > 9 {
				t.Errorf("%d columns: %d rows of 10", columns, len(s.rows))
			}
		}
		f.Done()
		if len(s.rows) > 0 {
			t.Errorf("%d columns: left behind:\n%s", columns, strings.Join(s.rows, "\n"))
		}
	}
}

// A terminal that is made narrower while a job runs has wrapped the lines that are taken back.
func TestProgressCountsTheRowsOfANarrowerTerminal(t *testing.T) {
	var out bytes.Buffer
	u := terminal.New(nil, nil, &out)
	columns := 200
	u.Live, u.Size = true, func() (int, int) { return columns, 50 }
	f := NewFollower(u)
	f.Follow(progressOf(2, 1))
	width := f.shown[0]
	columns = width/2 + 1
	out.Reset()
	f.erase()
	if got := out.String(); got != "\x1b[4A\x1b[J" {
		t.Errorf("%q", got)
	}
}

// Without a terminal an action that has nothing new to say is not repeated.
func TestFinishedWorkersAreNotRepeated(t *testing.T) {
	var out bytes.Buffer
	f := NewFollower(terminal.New(nil, nil, &out))
	for range 3 {
		f.last = time.Time{}
		f.Follow(progressOf(2, 100))
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}

// The text about silent actions names a pool that may be too small, and the date when doctor measured it.
func TestNoSignTellsWhatIsKnownOfThePool(t *testing.T) {
	wait := controller.Waiting{
		Invocations: []disdel.Invocation{{Task: disdel.TaskTrain}}, For: 10 * time.Second, Pool: 512 * disdel.MB,
	}
	found := wait
	found.Found, found.FoundAt = 4*disdel.GB, time.Date(2026, 11, 14, 12, 0, 0, 0, time.Local)
	certain := wait
	certain.Pool = 0
	for _, c := range []struct {
		wait        controller.Waiting
		want, wants string
	}{
		{wait, "with less than 512 MB in its container pool", "--pool-memory"},
		{found, "doctor found a container pool of 4.00 GB on 2026-11-14, which may have shrunk", "less than 512 MB"},
	} {
		if text := silence(service.Waiting{Waiting: c.wait}); !strings.Contains(text, c.want) ||
			!strings.Contains(text, c.wants) {
			t.Errorf("%s", text)
		}
	}
	if text := silence(service.Waiting{Waiting: certain}); strings.Contains(text, "pool") {
		t.Errorf("%s", text)
	}
}

// The texts about actions that give no sign are whole sentences.
func TestTheTextsOfSilence(t *testing.T) {
	two := []disdel.Invocation{{Task: disdel.TaskTrain}, {Task: disdel.TaskTrain, Member: 3}}
	until := time.Date(2026, 1, 1, 14, 6, 0, 0, time.Local)
	stopped := func(w controller.Waiting) service.Waiting {
		w.Invocations, w.For, w.Stopped = two, 2400*time.Millisecond, true
		return service.Waiting{Waiting: w}
	}
	throttled := func(q controller.QuotaWait) service.Throttled {
		q.Invocations, q.Until, q.For = two, until, 10*time.Second
		return service.Throttled{QuotaWait: q}
	}
	const died = "; the container may be frozen, killed or without processor time, " +
		"and OpenWhisk has no record of its end yet"
	const used = "invocations of this minute are used up; waiting until 14:06:00"
	for want, what := range map[string]service.EventData{
		"train 0, 3 stopped at 10 % of the work: no heartbeat for 2s" + died: stopped(controller.Waiting{Done: 5, All: 50}),
		"train 0, 3: no heartbeat for 2s" + died:                             stopped(controller.Waiting{}),
		"train 0, 3: heartbeats again after 2s":                              stopped(controller.Waiting{Over: true}),
		"train 0, 3 has done all batches and has not ended for 2s; the store may be slow, " +
			"or the container frozen or gone": stopped(controller.Waiting{Done: 50, All: 50}),
		"train 0, 3: no sign for 10s; behind other actions in OpenWhisk's queue, or still starting: OpenWhisk gives no " +
			"record of either; it tells that an image dies at start only after the action's timeout": service.Waiting{
			Waiting: controller.Waiting{Invocations: two, For: 10 * time.Second},
		},
		"train 0, 3: the namespace's 10 " + used: throttled(controller.QuotaWait{PerMinute: 10}),
		"train 0, 3: the namespace's " + used:    throttled(controller.QuotaWait{}),
		"train 0, 3: not sent for 10s; all 2 concurrent invocations of the namespace are in use; " +
			"waiting until one ends": throttled(controller.QuotaWait{Crowded: true, Concurrent: 2}),
		"train 0, 3: not sent for 10s; the namespace's concurrent invocations are all in use; " +
			"waiting until one ends": throttled(controller.QuotaWait{Crowded: true}),
	} {
		if got := silence(what); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// The text about a taken update says what OpenWhisk reports instead, or that it has no record of the end.
func TestTheTextOfATakenUpdate(t *testing.T) {
	for recovered, want := range map[string]string{
		"it did not end within its timeout of 10s": "train 1 delivered its update, which is taken, although OpenWhisk " +
			"reports: it did not end within its timeout of 10s",
		disdel.NoRecord: "train 1 delivered its update, which is taken; OpenWhisk has no record of its end yet",
	} {
		a := disdel.Activation{Recovered: recovered, Outcome: disdel.OutcomeSuccess}
		a.Task, a.Member = disdel.TaskTrain, 1
		var lines trouble
		lines.notice(service.Ended{Activation: a})
		if got := lines.rest(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
