package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/scheduler"
)

// Event is an event of a job. Numbers rise from 1.
type Event struct {
	Number int
	Job    disdel.JobID
	What   EventData
}

// EventData is the content of an Event: a value of one of the types below.
type EventData interface {
	fmt.Stringer // a few words for a person
	eventData()
}

// The events of a job. Progress replaces the Progress before it; the others are all kept.
type (
	// Noted is a note to the user, for example about a value that is unknown.
	Noted struct {
		Text string `json:"text"`
	}
	// Probed is the measured training speed.
	Probed struct{ estimator.Rate }
	// Resumed says where a resumed job continues.
	Resumed struct {
		Round  int  `json:"round"`  // the first one to train, from 0
		Rounds int  `json:"rounds"` // in all; equal to Round: all are trained
		Fresh  bool `json:"fresh"`  // there is no checkpoint, and the job begins anew

		Halfway bool `json:"halfway,omitempty"` // it continues within the round
	}
	// Planned is an acknowledged job: its record is durable, and nothing runs yet.
	Planned struct{ disdel.Record }
	// Queued is a job that waits for room in the pool.
	Queued struct {
		Ahead int    `json:"ahead"`         // waiting jobs that go first
		Why   string `json:"why,omitempty"` // what is lacking; "": only the jobs ahead go first
	}
	// Admitted is a job that has room in the pool.
	Admitted struct {
		Room   scheduler.Capacity `json:"room"` // that it has
		Waited time.Duration      `json:"waitedNs"`
	}
	// Invoked is a started invocation, without its parameters.
	Invoked struct{ disdel.Invocation }
	// Ended is an activation that ended, without its parameters, and without its result if it succeeded.
	Ended struct{ disdel.Activation }
	// Progress is the newest heartbeat of every running action. The list must not be changed.
	Progress struct {
		Actions []disdel.Progress `json:"actions"`
	}
	// StageBegan is a stage that a policy or a failure began.
	StageBegan struct{ disdel.Stage }
	// RoundEnded is a round that ended.
	RoundEnded struct{ disdel.Round }
	// Adjusted is a limit or a setting that was changed after a failure.
	Adjusted struct{ disdel.Adjustment }
	// Forecast is the remaining time and cost. It comes just before the RoundEnded of its round.
	Forecast struct{ disdel.Forecast }
	// Outage is the begin or the end of a time in which the platform does not answer.
	Outage struct{ controller.Outage }
	// Waiting is actions without a sign of life.
	Waiting struct{ controller.Waiting }
	// Throttled is actions that wait for the platform's quota.
	Throttled struct{ controller.QuotaWait }
	// Pruned is older versions of the job's model that output.keep removed.
	Pruned struct {
		Models []string `json:"models"`
		Keep   int      `json:"keep"`
	}
	// Finished is the last event of an acknowledged job, with its record.
	Finished struct{ disdel.Record }
)

func (Noted) eventData()      {}
func (Probed) eventData()     {}
func (Resumed) eventData()    {}
func (Planned) eventData()    {}
func (Queued) eventData()     {}
func (Admitted) eventData()   {}
func (Invoked) eventData()    {}
func (Ended) eventData()      {}
func (Progress) eventData()   {}
func (StageBegan) eventData() {}
func (RoundEnded) eventData() {}
func (Adjusted) eventData()   {}
func (Forecast) eventData()   {}
func (Outage) eventData()     {}
func (Waiting) eventData()    {}
func (Throttled) eventData()  {}
func (Pruned) eventData()     {}
func (Finished) eventData()   {}

// String is a line for a person or a log.
func (e Event) String() string { return fmt.Sprintf("%s %d: %s", e.Job, e.Number, e.What) }

// eventOf returns a notice of the controller as an event, without what the controller may still change, and without
// large parts that no reader needs.
func eventOf(n controller.Notice) EventData {
	switch {
	case n.Planned != nil:
		return Planned{*n.Planned}
	case n.Invoked != nil:
		inv := *n.Invoked
		inv.Params = nil
		return Invoked{inv}
	case n.Ended != nil:
		a := *n.Ended
		a.Params = nil
		if a.Outcome == disdel.OutcomeSuccess {
			a.Result = nil
		}
		return Ended{a}
	case n.Stage != nil:
		return StageBegan{*n.Stage}
	case n.Refused != nil:
		return Noted{n.Refused.Text()}
	case n.Round != nil:
		return RoundEnded{*n.Round}
	case n.Adjusted != nil:
		return Adjusted{*n.Adjusted}
	case n.Forecast != nil:
		return Forecast{*n.Forecast}
	case n.Outage != nil:
		return Outage{*n.Outage}
	case n.Waiting != nil:
		return Waiting{*n.Waiting}
	case n.Quota != nil:
		return Throttled{*n.Quota}
	default:
		return Progress{n.Progress}
	}
}

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
	return fmt.Sprintf("planned: %s, %s, %s", p.Record.Job.Metadata.Name, disdel.Counted(p.Plan.Workers, "worker"),
		disdel.Counted(p.Plan.Rounds, "round"))
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

func (i Invoked) String() string { return "invoked " + i.Invocation.ID }
func (e Ended) String() string   { return fmt.Sprintf("%s ended: %v", e.Invocation.ID, e.Outcome) }
func (p Progress) String() string {
	return fmt.Sprintf("%s at work", disdel.Counted(len(p.Actions), "action"))
}

func (s StageBegan) String() string {
	return fmt.Sprintf("stage from round %d on: %s, %s", s.First+1, disdel.Counted(s.Workers, "worker"), s.Decision.Why)
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
