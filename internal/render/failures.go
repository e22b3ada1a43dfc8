package render

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/batch"
)

// trouble reports activations that did not succeed, one line each. A line waits for what the controller does next: a
// changed limit, and the next attempt.
type trouble struct {
	ended    *disdel.Activation
	adjusted *disdel.Adjustment
	legs     bool // it was told that rounds go on in legs; which one it is the progress says
}

// notice takes an event and returns a line that is now complete, or an empty text.
func (t *trouble) notice(what service.EventData) string {
	if ended, ok := what.(service.Ended); ok {
		line := t.rest()
		switch o := ended.Outcome; {
		case ended.Recovered != "":
			t.ended = &ended.Activation
		case o == disdel.OutcomeSuccess, o == disdel.OutcomeCanceled, o == disdel.OutcomePaused && t.legs:
		default:
			t.ended, t.legs = &ended.Activation, t.legs || o == disdel.OutcomePaused
		}
		return line
	}
	if t.ended == nil {
		return ""
	}
	switch what := what.(type) {
	case service.Adjusted:
		t.adjusted = &what.Adjustment
		return ""
	case service.Invoked:
		line := t.line() + next(t.ended, &what.Invocation)
		t.ended, t.adjusted = nil, nil
		return line
	default:
		return t.rest()
	}
}

// rest is the line of an activation without a reaction.
func (t *trouble) rest() string {
	if t.ended == nil {
		return ""
	}
	line := t.line()
	t.ended, t.adjusted = nil, nil
	return line
}

// next says how the work of an activation goes on.
func next(ended *disdel.Activation, i *disdel.Invocation) string {
	same := i.Task == ended.Task && i.Level == ended.Level && i.Member == ended.Member && i.Round == ended.Round
	switch {
	case same && i.Attempt == ended.Attempt && i.Leg > ended.Leg:
		return fmt.Sprintf(", goes on in leg %d", i.Leg+1)
	case same && i.Attempt > ended.Attempt:
		return fmt.Sprintf(", attempt %d", i.Attempt)
	default:
		return ""
	}
}

func (t *trouble) line() string {
	who := t.ended.Slot().Name()
	if t.adjusted == nil {
		return who + " " + ending(t.ended)
	}
	switch a := t.adjusted; a.Field {
	case disdel.FieldMemory:
		if t.ended.Suspected {
			return fmt.Sprintf("%s %s: %s now", who, ending(t.ended), sizeText(a.To))
		}
		return fmt.Sprintf("%s needed more than %d MB: %s now", who, t.ended.Limits.Memory.MB(), sizeText(a.To))
	case disdel.FieldDevice:
		return fmt.Sprintf("%s %s: %s now", who, ending(t.ended), sizeText(a.To))
	case disdel.FieldTimeout:
		return fmt.Sprintf("%s needed more than %s: %s now", who, t.ended.Limits.Timeout, a.To)
	case disdel.FieldBatchSize:
		return fmt.Sprintf("%s %s: batches of %s now, not %s", who, ending(t.ended), a.To, a.From)
	case disdel.FieldStepMemory:
		return fmt.Sprintf("%s %s: its steps save memory now, %s instead of %s", who, ending(t.ended), sizeText(a.To),
			sizeText(a.From))
	default:
		return fmt.Sprintf("%s %s: %s %s now, not %s", who, ending(t.ended), a.To, a.Field, a.From)
	}
}

// sizeText is a size of the job file as it is read: "73MB" is 73 MB.
func sizeText(q disdel.Quantity) string { return fmt.Sprintf("%d MB", q.Memory.MB()) }

// heldByBudget says whether the job's budget ended an activation before its timeout.
func heldByBudget(a *disdel.Activation) bool { return a.Hold > 0 && a.Duration < a.Limits.Timeout }

// ending says how an activation ended.
func ending(a *disdel.Activation) string {
	if a.Recovered == disdel.NoRecord {
		return "delivered its update, which is taken; OpenWhisk has no record of its end yet"
	}
	if a.Recovered != "" {
		return fmt.Sprintf("delivered its update, which is taken, although OpenWhisk reports: %s", short(a.Recovered))
	}
	switch a.Outcome {
	case disdel.OutcomePaused:
		if heldByBudget(a) {
			return "paused: its part of the budget was used up"
		}
		return fmt.Sprintf("paused before its timeout of %s", a.Limits.Timeout)
	case disdel.OutcomeOutOfMemory:
		if a.LackedDevice() {
			return deviceEnding(a)
		}
		return fmt.Sprintf("needed more than %d MB", a.Limits.Memory.MB())
	case disdel.OutcomeTimeout:
		if stall, stalled := a.Stalled(); stalled {
			return "stopped answering: " + stall.Text()
		}
		if heldByBudget(a) {
			return "did not end within its part of the budget"
		}
		return fmt.Sprintf("needed more than %s", a.Limits.Timeout)
	case disdel.OutcomeDeveloperError:
		text := "crashed after " + seconds(time.Duration(a.Duration))
		if a.Suspected {
			text += ", possibly out of memory"
		}
		return text
	case disdel.OutcomeStartFailure:
		return "did not start" + reason(a)
	case disdel.OutcomeInternalError:
		return "was not run by the platform" + reason(a)
	case disdel.OutcomeLost:
		return "was lost by the platform"
	case disdel.OutcomeThrottled:
		return "was refused for now: the platform's quota is used up"
	default:
		return "ended as " + a.Outcome.String()
	}
}

// deviceEnding is for an end for want of a GPU's memory.
func deviceEnding(a *disdel.Activation) string {
	if a.Limits.Device == 0 {
		return "needed more of the GPU's memory than there was"
	}
	return fmt.Sprintf("needed more than %d MB of the GPU", a.Limits.Device.MB())
}

// reason is why the platform did not run an activation, short enough for a line.
func reason(a *disdel.Activation) string {
	if a.Failure == nil || a.Failure.Msg == "" {
		return ""
	}
	return ": " + short(a.Failure.Msg)
}

// short shortens text from outside for one line.
func short(text string) string {
	const maximum = 120
	line := []rune(terminal.Clean(strings.Join(strings.Fields(text), " ")))
	if len(line) > maximum {
		line = append(line[:maximum], []rune("...")...)
	}
	return string(line)
}

// FailAll prints the problems of several files with the lines of their texts, and returns the error for the exit code,
// nil without problems. With -o json and yaml the problems are a list on standard output.
func FailAll(u *terminal.UI, op string, wrong []error, files []batch.File) error {
	if len(wrong) == 0 {
		return nil
	}
	var list []Problem
	texts := map[string][]byte{}
	for _, f := range files {
		texts[f.Name] = f.Text
	}
	for _, err := range wrong {
		var faults *disdel.Faults
		name := ""
		if errors.As(err, &faults) {
			name = faults.File
		}
		switch {
		case u.Format != "table":
			list = append(list, Problems(name, err)...)
		case faults != nil:
			u.Faults(faults, texts[name])
		default:
			u.Fail(err)
		}
	}
	kind := disdel.KindOf(wrong[0])
	if u.Format != "table" {
		return errors.Join(u.Show(list, func(io.Writer) {}),
			&disdel.Error{Kind: kind, Op: op, Msg: disdel.Counted(len(list), "problem")})
	}
	return terminal.Reported(&disdel.Error{Kind: kind, Op: op, Msg: "nothing was run"})
}

// Problem is one fault of one file, or of the file "--set". It has no line and column if it has no place in the file.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Problems lists the faults of a file.
func Problems(name string, err error) []Problem {
	var faults *disdel.Faults
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &faults):
		e := disdel.AsError(err)
		message := terminal.Headline(e)
		if e.Err != nil {
			message = fmt.Sprintf("%s: %v", message, e.Err)
		}
		return []Problem{{File: name, Message: terminal.Clean(message), Hint: terminal.Clean(e.Hint)}}
	}
	out := make([]Problem, len(faults.Faults))
	for i, f := range faults.Faults {
		out[i] = Problem{name, f.Line, f.Column, f.Path, f.Msg, f.Hint}
		if f.Line == 0 && f.Path != "" {
			out[i].File = "--set"
		}
	}
	return out
}
