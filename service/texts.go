package service

import (
	"fmt"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

func (n Noted) String() string  { return n.Text }
func (p Probed) String() string { return fmt.Sprintf("probed: %.0f rows a second", p.RowsPerSecond) }

func (r Resumed) String() string {
	if r.Fresh && !r.Halfway {
		return "resumed from the start"
	}
	text := fmt.Sprintf("resumed at round %d of %d", r.Round+1, r.Rounds)
	if r.Halfway {
		text += ", with what was done of it"
	}
	return text
}

func (p Planned) String() string {
	return fmt.Sprintf("planned: %s, %d workers, %d rounds", p.Record.Job.Metadata.Name, p.Plan.Workers, p.Plan.Rounds)
}

func (q Queued) String() string {
	text := fmt.Sprintf("queued behind %d", q.Ahead)
	if q.Why != "" {
		text += ": " + q.Why
	}
	return text
}

func (a Admitted) String() string {
	return fmt.Sprintf("admitted after %v with %v", a.Waited.Round(time.Millisecond), a.Room.Memory)
}

func (i Invoked) String() string  { return "invoked " + i.Invocation.ID }
func (e Ended) String() string    { return fmt.Sprintf("%s ended: %v", e.Invocation.ID, e.Outcome) }
func (p Progress) String() string { return fmt.Sprintf("%d actions at work", len(p.Actions)) }

func (s StageBegan) String() string {
	return fmt.Sprintf("stage from round %d on: %d workers, %s", s.First+1, s.Workers, s.Decision.Why)
}

func (r RoundEnded) String() string {
	text := fmt.Sprintf("round %d: train loss %.4f", r.Round.Round+1, r.TrainLoss)
	if r.Accuracy != nil {
		text += fmt.Sprintf(", accuracy %.4f", *r.Accuracy)
	}
	if s := r.Scores.Text(); s != "" {
		text += ", " + s
	}
	return text
}

func (a Adjusted) String() string {
	return fmt.Sprintf("%s of %s: %s now, not %s", a.Field, a.Task, a.To, a.From)
}

func (f Forecast) String() string {
	return fmt.Sprintf("some %v left", time.Duration(f.Duration.Likely).Round(time.Second))
}

func (o Outage) String() string {
	if o.Over {
		return o.Name() + " answers again"
	}
	return o.Name() + " does not answer: " + o.Why
}

func (w Waiting) String() string {
	return fmt.Sprintf("no sign of %d actions for %v", len(w.Invocations), w.For.Round(time.Second))
}

func (t Throttled) String() string {
	if t.Crowded {
		return fmt.Sprintf("%d actions wait until one of the invocations in flight ends", len(t.Invocations))
	}
	return fmt.Sprintf("%d actions wait for the next minute's quota", len(t.Invocations))
}

func (p Pruned) String() string { return "removed " + strings.Join(p.Models, ", ") }

func (f Finished) String() string {
	text := "finished: " + f.Status.String()
	switch {
	case f.Status != disdel.StatusSucceeded:
	case f.Scores.Text() != "":
		text += ", " + f.Scores.Text()
	default:
		text += fmt.Sprintf(", accuracy %.4f", f.Accuracy)
	}
	return text
}
