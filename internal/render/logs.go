package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

// ActivationLog is the last lines that an activation printed.
type ActivationLog struct {
	Invocation string   `json:"invocation"`
	Outcome    string   `json:"outcome"`
	Lines      []string `json:"lines"`
	Printed    int      `json:"printed,omitempty"` // lines in all, where Lines has not all of them
}

// ActivationLogs are the printed lines in a record. disdel's own actions print only when something is wrong.
func ActivationLogs(r *disdel.Record) []ActivationLog {
	out := []ActivationLog{}
	for _, a := range r.Activations {
		if len(a.Logs) > 0 {
			out = append(out, ActivationLog{a.Invocation.ID, a.Outcome.String(), a.Logs, a.LogLines})
		}
	}
	return out
}

// LogFilter selects lines of a job's log. Zero values select all.
type LogFilter struct {
	Task   disdel.Task
	Worker *int // of train actions
	Round  int  // from 1
	Tail   int  // that many of the last lines
}

func (w *LogFilter) has(s disdel.Slot, round int) bool {
	return (w.Task == "" || w.Task == s.Task) && (w.Round == 0 || w.Round == round+1) &&
		(w.Worker == nil || s.Task == disdel.TaskTrain && *w.Worker == s.Member)
}

// LogLine is a line of a job's log.
type LogLine struct {
	At     time.Time `json:"at"`
	Action string    `json:"action"` // "train 0"
	Round  int       `json:"round"`  // from 1
	Text   string    `json:"text"`
}

// String is the line as it is shown.
func (l LogLine) String() string {
	return fmt.Sprintf("%s  %-9s round %d  %s", l.At.Local().Format("15:04:05.000"), l.Action, l.Round, l.Text)
}

// LogLines is the log of a job from its record, in the order of time: start, heartbeats, output and end of each
// activation.
func LogLines(r *disdel.Record, w LogFilter) []LogLine {
	out := []LogLine{}
	for i := range r.Activations {
		if a := &r.Activations[i]; w.has(a.Slot(), a.Round) {
			out = append(out, activationLines(a, position{})...)
		}
	}
	slices.SortStableFunc(out, func(a, b LogLine) int { return a.At.Compare(b.At) })
	if w.Tail > 0 && len(out) > w.Tail {
		out = out[len(out)-w.Tail:]
	}
	return out
}

// PrintLogLines prints lines, and says what is missing from the log.
func PrintLogLines(w io.Writer, r *disdel.Record, lines []LogLine) {
	if len(lines) == 0 {
		fmt.Fprintln(w, "no activation of the job has ended that is like that")
	}
	for _, l := range lines {
		fmt.Fprintln(w, terminal.Clean(l.String()))
	}
	if r.Omitted > 0 {
		fmt.Fprintf(w, "the record of this long job left out %s that passed\n", disdel.Counted(r.Omitted, "activation"))
	}
}

// position is how far an action is.
type position struct{ epoch, batch int }

func (p position) before(other position) bool {
	return cmp.Or(cmp.Compare(p.epoch, other.epoch), cmp.Compare(p.batch, other.batch)) < 0
}

// activationLines are those of an activation that has ended, without heartbeats that somebody has seen already.
func activationLines(a *disdel.Activation, seen position) (out []LogLine) {
	add := func(at time.Time, format string, args ...any) {
		out = append(out, LogLine{at, a.Slot().Name(), a.Round + 1, fmt.Sprintf(format, args...)})
	}
	if a.Start.IsZero() {
		add(a.End, "%s", ending(a))
		return out
	}
	if (seen == position{}) {
		add(a.Start, "begins%s: %s", attemptText(&a.Invocation), startText(a))
	}
	invoked := a.Start.Add(-time.Duration(a.WaitTime))
	for _, b := range a.Beats {
		if seen.before(position{b.Epoch, b.Batch}) {
			add(invoked.Add(time.Duration(b.At)), "%s",
				beatText(a.Task, disdel.Progress{
					Epoch: b.Epoch, Batch: b.Batch, Batches: b.Batches, Loss: b.Loss, Resident: b.Resident,
				}))
		}
	}
	if remaining := a.LogLines - len(a.Logs); a.LogLines > 0 && remaining > 0 {
		add(a.Start, "printed %s before these", disdel.Counted(remaining, "line"))
	}
	for _, line := range a.Logs {
		at, text := printed(line)
		if at.IsZero() {
			at = a.End
		}
		add(at, "%s", text)
	}
	add(a.End, "%s", endText(a))
	return out
}

// printed takes a line of OpenWhisk's log apart: its time, and what was printed where.
func printed(line string) (time.Time, string) {
	at, rest, ok := strings.Cut(line, " ")
	t, err := time.Parse(time.RFC3339Nano, at)
	if !ok || err != nil {
		return time.Time{}, line
	}
	return t, strings.TrimSpace(rest)
}

func attemptText(i *disdel.Invocation) (out string) {
	if i.Attempt > 1 {
		out = fmt.Sprintf(", attempt %d", i.Attempt)
	}
	if i.Leg > 0 {
		out += fmt.Sprintf(", leg %d", i.Leg+1)
	}
	return out
}

func startText(a *disdel.Activation) string {
	text := fmt.Sprintf("limit %d MB and %s", a.Limits.Memory.MB(), a.Limits.Timeout)
	if a.WaitTime > 0 {
		text += fmt.Sprintf(", waited %s", seconds(time.Duration(a.WaitTime)))
	}
	if a.Cold {
		text += fmt.Sprintf(", cold start %s", seconds(time.Duration(a.InitTime)))
	}
	return text
}

// beatText is a heartbeat of an action.
func beatText(task disdel.Task, p disdel.Progress) string {
	text := fmt.Sprintf("memory %d MB", p.Resident.MB())
	if p.Batches > 0 {
		text = fmt.Sprintf("batch %d of %d  ", p.Batch, p.Batches) + text
	}
	if task == disdel.TaskTrain {
		text = fmt.Sprintf("epoch %d  loss %s  ", p.Epoch, p.LossText()) + text
	}
	return text
}

func endText(a *disdel.Activation) string {
	text := ending(a)
	if a.Outcome == disdel.OutcomeSuccess {
		text = "done in " + seconds(time.Duration(a.Duration))
	}
	if a.Peak > 0 {
		text += fmt.Sprintf(", peak %d MB", a.Peak.MB())
	}
	if a.Failure != nil && a.Failure.Msg != "" {
		text += ": " + terminal.OneLine(a.Failure.Msg)
	}
	return text
}

// LogFollower makes log lines from events.
type LogFollower struct {
	LogFilter
	seen map[string]position // by action and round
	now  func() time.Time
}

// NewLogFollower is a follower without events.
func NewLogFollower(w LogFilter) *LogFollower {
	return &LogFollower{LogFilter: w, seen: map[string]position{}, now: time.Now}
}

// Follow is the lines of the next event. A heartbeat appears once, though the end of its activation repeats it.
func (f *LogFollower) Follow(e service.Event) (out []LogLine) {
	switch what := e.What.(type) {
	case service.Progress:
		for _, p := range what.Actions {
			slot, at := disdel.Slot{Task: p.Task, Level: p.Level, Member: p.Member}, position{p.Epoch, p.Batch}
			key := fmt.Sprint(slot, p.Round)
			if !f.has(slot, p.Round) || !f.seen[key].before(at) {
				continue
			}
			f.seen[key] = at
			out = append(out, LogLine{time.UnixMilli(p.UnixMs), slot.Name(), p.Round + 1, beatText(p.Task, p)})
		}
	case service.Ended:
		a := &what.Activation
		key := fmt.Sprint(a.Slot(), a.Round)
		if f.has(a.Slot(), a.Round) {
			out = activationLines(a, f.seen[key])
		}
		if a.Outcome.Failed() { // the next attempt tells the same again
			delete(f.seen, key)
		}
	case service.RoundEnded:
		if f.Task == "" && f.Worker == nil && (f.Round == 0 || f.Round == what.Round.Round+1) {
			out = append(out, LogLine{f.now(), "", what.Round.Round + 1, "over: " + overText(what.Round)})
		}
	}
	return out
}

// overText is what a round came to.
func overText(r disdel.Round) string {
	line := RoundLine(r, r.Round+1)
	_, text, _ := strings.Cut(line, "  ")
	return text
}
