package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// EventKind returns the name of an event's kind, as servers send it: its type with a small first letter.
func EventKind(what EventData) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", what), "service.")
	return strings.ToLower(name[:1]) + name[1:]
}

// kinds reads the data of each kind of event.
var kinds = map[string]func(data []byte) (EventData, error){
	"noted":      read[Noted],
	"probed":     read[Probed],
	"resumed":    read[Resumed],
	"planned":    read[Planned],
	"queued":     read[Queued],
	"admitted":   read[Admitted],
	"invoked":    read[Invoked],
	"ended":      read[Ended],
	"progress":   read[Progress],
	"stageBegan": read[StageBegan],
	"roundEnded": read[RoundEnded],
	"adjusted":   read[Adjusted],
	"forecast":   read[Forecast],
	"outage":     read[Outage],
	"waiting":    read[Waiting],
	"throttled":  read[Throttled],
	"pruned":     read[Pruned],
	"finished":   read[Finished],
}

func read[T EventData](data []byte) (EventData, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return v, err
}

// ReadEventData reads the data of an event from JSON. It returns Invalid for an unknown kind, such as one of a later
// version.
func ReadEventData(kind string, data []byte) (EventData, error) {
	r, known := kinds[kind]
	if !known {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read event", Msg: fmt.Sprintf("no event is known as %.40q", kind),
		}
	}
	what, err := r(data)
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Corrupt, Op: "read event", Msg: kind, Err: err}
	}
	return what, nil
}

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
