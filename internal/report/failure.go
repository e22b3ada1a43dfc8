package report

import (
	"fmt"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/advice"
)

// Failure is why a job did not succeed, and what says so.
type Failure struct {
	Kind       disdel.Kind         `json:"kind"`
	Cause      string              `json:"cause"`                // one sentence
	Hint       string              `json:"hint,omitempty"`       // of who noticed it
	Invocation string              `json:"invocation,omitempty"` // "": no single activation is to blame
	Activation disdel.ActivationID `json:"activation,omitempty"`
	Attempt    int                 `json:"attempt,omitempty"`
	Outcome    disdel.Outcome      `json:"outcome"`
	Evidence   []string            `json:"evidence,omitempty"`
	Estimate   disdel.Bytes        `json:"estimateBytes,omitempty"` // expected peak
	Peak       disdel.Bytes        `json:"peakBytes,omitempty"`
	Limit      disdel.Bytes        `json:"limitBytes,omitempty"`
	Timeout    disdel.Millis       `json:"timeoutMs,omitempty"`
	Duration   disdel.Millis       `json:"durationMs,omitempty"`
	LastBeat   *disdel.Beat        `json:"lastBeat,omitempty"`
	BeatAge    disdel.Millis       `json:"lastBeatAgeMs,omitempty"` // from the last heartbeat to the end
	Beats      []disdel.Beat       `json:"beats,omitempty"`
	Log        []string            `json:"log,omitempty"`

	activation *disdel.Activation
}

func (r *Report) failure() *Failure {
	rec := r.record
	if rec.Status != disdel.StatusFailed && rec.Status != disdel.StatusCanceled && rec.Failure == nil {
		return nil
	}
	f := &Failure{activation: advice.Decisive(rec)}
	if a := f.activation; a != nil {
		f.take(a)
	}
	if rec.Failure != nil {
		f.Kind, f.Hint = rec.Failure.Kind, rec.Failure.Hint
		f.Evidence = append(slices.Clip(f.Evidence), notAgain(rec.Failure)...)
	}
	f.Cause = r.cause(f)
	return f
}

// notAgain is why the last attempt was the last, as the controller says it.
func notAgain(err *disdel.Error) []string {
	if err.NotRetried == "" {
		return nil
	}
	return []string{disdel.NotTriedAgain + err.NotRetried}
}

func newest(r *disdel.Record, is func(*disdel.Activation) bool) *disdel.Activation {
	for i := len(r.Activations) - 1; i >= 0; i-- {
		if is(&r.Activations[i]) {
			return &r.Activations[i]
		}
	}
	return nil
}

func (f *Failure) take(a *disdel.Activation) {
	f.Invocation, f.Activation, f.Attempt, f.Outcome = a.Invocation.ID, a.ID, a.Attempt, a.Outcome
	f.Evidence, f.Log, f.Beats = a.Evidence, a.Logs, a.Beats
	f.Estimate, f.Peak, f.Limit = a.Expected(), a.Peak, a.Limits.Memory
	f.Timeout, f.Duration = a.Limits.Timeout, a.Duration
	for i := range a.Beats {
		f.LastBeat = &a.Beats[i]
		f.Peak = max(f.Peak, f.LastBeat.Peak)
	}
	if f.LastBeat != nil {
		f.BeatAge = max(0, ended(a)-f.LastBeat.At)
	}
}

// ended is when an activation ended, from its invocation on: heartbeats count from there.
func ended(a *disdel.Activation) disdel.Millis {
	ran := a.Duration
	if d := disdel.Millis(a.End.Sub(a.Start)); !a.Start.IsZero() && d > ran {
		ran = d
	}
	return a.WaitTime + ran
}

// cause says in one sentence why the job ended.
func (r *Report) cause(f *Failure) string {
	a := f.activation
	if a == nil {
		return r.causeAtLarge()
	}
	who := "the " + place(&a.Invocation)
	switch a.Outcome {
	case disdel.OutcomeOutOfMemory:
		if a.LackedDevice() {
			return fmt.Sprintf("%s ran out of a GPU's memory at its share of %v", who, a.Limits.Device)
		}
		most, whose := advice.Ceiling(r.record)
		text := fmt.Sprintf("%s ran out of memory at its limit of %v", who, a.Limits.Memory)
		if most > 0 && a.Limits.Memory >= most {
			text += ", which is " + whose
		}
		return text
	case disdel.OutcomeTimeout:
		return fmt.Sprintf("%s did not end within its timeout of %v", who, span(a.Limits.Timeout))
	case disdel.OutcomeDiverged:
		return who + " diverged: its loss or its weights are no longer finite"
	case disdel.OutcomeDeveloperError:
		if a.Suspected {
			return who + " crashed: its process was killed or exited, possibly out of memory"
		}
		return who + " crashed: its process was killed or exited, and most likely not for memory"
	case disdel.OutcomeLost:
		return who + " was lost: OpenWhisk accepted it and has no record of its end"
	case disdel.OutcomeStartFailure:
		return who + " never started: its image or its container could not be had"
	case disdel.OutcomeThrottled:
		return who + " was refused: the platform's quota of invocations is used up"
	case disdel.OutcomeTooLarge:
		return who + " was refused: its payload, result or code is above the platform's bound"
	case disdel.OutcomeCorrupt:
		return who + " met damaged data or a damaged update"
	default:
		return who + " failed: " + message(a.Failure, r.record.Failure)
	}
}

// causeAtLarge is the cause of an end that no activation is to blame for.
func (r *Report) causeAtLarge() string {
	switch {
	case r.record.Failure != nil:
		return message(r.record.Failure)
	case r.Status == disdel.StatusCanceled:
		return "somebody stopped the job"
	default:
		return "the record does not say why"
	}
}

// message is what the first error that there is says, without what was being done.
func message(list ...*disdel.Error) string {
	for _, e := range list {
		if e != nil {
			plain := *e
			plain.Op = ""
			return plain.Error()
		}
	}
	return "the record does not say why"
}

func span(m disdel.Millis) string { return m.Text() }
