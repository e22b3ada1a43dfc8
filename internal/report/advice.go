package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/advice"
)

// Failure is why a job did not succeed, with the evidence.
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

// notAgain says why there was no further attempt.
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

// ended is the time from the invocation to the end of an activation, as heartbeats count.
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
		maximum, whose := advice.Ceiling(r.record)
		text := fmt.Sprintf("%s ran out of memory at its limit of %v", who, a.Limits.Memory)
		if maximum > 0 && a.Limits.Memory >= maximum {
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

// causeAtLarge is the cause of a failure that no activation caused.
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

// message is the text of the first error, without its operation.
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

// Advice is the change that lets a failed job pass, computed from measurements.
type Advice struct {
	Why      string    `json:"why"`                // the arithmetic
	Sets     []string  `json:"sets,omitempty"`     // PATH=VALUE as --set takes it; none: submit the job as it is
	Commands []Command `json:"commands,omitempty"` // none: no change of the job file would do
}

// Command is one way to follow an advice: lines for a POSIX shell.
type Command struct {
	When  string   `json:"when"`
	Lines []string `json:"lines"`
}

func (r *Report) advice() *Advice {
	if r.Status.Unfinished() && r.Failure == nil {
		return r.orphaned()
	}
	if r.Failure == nil {
		return nil
	}
	found := advice.For(r.record)
	out := &Advice{Why: r.at.Complete(found.Why), Sets: found.Sets}
	if found.Pass {
		out.Commands = r.commands(found.Sets)
	}
	return out
}

// Cause is a likely cause why a job did not learn.
type Cause struct {
	What     string   `json:"what"`
	Evidence string   `json:"evidence"`       // figures of the record
	Sets     []string `json:"sets,omitempty"` // PATH=VALUE as --set takes it
	Command  string   `json:"command"`        // to try, a line for a POSIX shell
}

// causes are the likely causes of a job that did not learn.
func (r *Report) causes() (out []Cause) {
	for _, c := range advice.NotLearned(r.record) {
		out = append(out, Cause{What: c.What, Evidence: c.Evidence, Sets: c.Sets, Command: r.tryCommand(c)})
	}
	return out
}

// tryCommand is a command line that shows whether a cause is the right one.
func (r *Report) tryCommand(c advice.Cause) string {
	if len(c.Sets) == 0 {
		return r.command(c.Look...)
	}
	if line := r.asSubmitted(c.Sets); line != "" {
		return line
	}
	spec := r.command("report", string(r.ID), "--spec")
	submit := slices.Concat([]string{"submit", "job.yaml"}, r.own("submit"), settings(c.Sets))
	return spec + " > job.yaml && " + r.command(submit...)
}

// orphaned is the advice for a job that runs by its record. Its controller may have died; then the job can be resumed.
func (r *Report) orphaned() *Advice {
	if !r.resumable(nil) {
		return nil
	}
	return &Advice{Why: "by its record the job runs; if the disdel that ran it is gone, it goes on from its newest " +
		"checkpoint", Commands: r.commands(nil)[:1]}
}

// hints is the hint of the failure, if there is no better advice.
func (r *Report) hints() []string {
	if r.Failure == nil || r.Failure.Hint == "" || len(r.Advice.Commands) > 0 {
		return nil
	}
	return []string{r.at.Complete(r.Failure.Hint)}
}

// commands are the ways to run the job with changes: resumed, submitted again, and from its record. Each has the
// options of the first command line.
func (r *Report) commands(sets []string) []Command {
	id := string(r.ID)
	var out []Command
	if r.resumable(sets) {
		out = append(out, Command{
			When:  r.whence(),
			Lines: []string{r.command(slices.Concat([]string{"resume", id}, r.own("resume"), settings(sets))...)},
		})
	}
	if line := r.asSubmitted(sets); line != "" {
		when := "with the job's file"
		if r.record.Origin.File == "" {
			when = "as it was"
		}
		out = append(out, Command{When: when, Lines: []string{line}})
	}
	return append(out, Command{When: "from its record", Lines: []string{
		r.command("report", id, "--spec") + " > job.yaml",
		r.command(append([]string{"submit", "job.yaml"}, r.own("submit")...)...),
	}})
}

// command is a command line that works at the report's place.
func (r *Report) command(words ...string) string { return r.at.Command("disdel", words...) }

// asSubmitted is the job's first command line with changes. It is empty if it is unknown or the file came from a pipe.
func (r *Report) asSubmitted(sets []string) string {
	o := r.record.Origin
	if o == nil || (o.Command == "submit" || o.Command == "resume") && o.File == "" ||
		!slices.Contains(Submitting, o.Command) {
		return ""
	}
	words := []string{o.Command}
	if o.File != "" {
		words = append(words, o.File)
		if strings.HasPrefix(o.File, "-") {
			return ""
		}
	}
	return r.command(slices.Concat(words, r.own(o.Command), settings(overriding(o.Sets, sets)))...)
}

// Submitting are the commands that a record may say its job was submitted with.
var Submitting = []string{"submit", "quickstart", "batch", "resume", "verify", "lab"}

// overriding joins settings. Later ones replace earlier ones of the same field.
func overriding(before, after []string) []string {
	out := slices.Concat(before, after)
	for i := 0; i < len(out); {
		again := slices.ContainsFunc(out[i+1:], func(s string) bool { return fieldOf(s) == fieldOf(out[i]) })
		if !again {
			i++
			continue
		}
		out = slices.Delete(out, i, i+1)
	}
	return out
}

// fieldOf is the path that a setting sets. The short path of the learning rate is that of each optimiser's.
func fieldOf(set string) string {
	path, _, _ := strings.Cut(set, "=")
	if parts := strings.Split(path, "."); len(parts) == 4 && parts[1] == "optimizer" && parts[3] == "learningRate" {
		return parts[0] + ".optimizer.learningRate"
	}
	return path
}

func settings(sets []string) []string {
	var out []string
	for _, s := range sets {
		out = append(out, "--set", s)
	}
	return out
}

// OwnOptions are the flags besides the place's that a record keeps of the command line.
var OwnOptions = []string{"action", "estimator", "risk", "python"}

// own is the OwnOptions of the job's command line for another command. For records without them it is the options that
// the job itself shows. A job that is resumed has its interpreter in its record.
func (r *Report) own(command string) []string {
	o := r.record.Origin
	if o == nil {
		o = &disdel.Origin{}
	}
	var out []string
	for _, v := range o.Options {
		stranger := v.Name == "action" && r.record.Tenant != "" // whose program nobody is to run
		switch {
		case !slices.Contains(OwnOptions, v.Name) || stranger || v.Name == "python" && command == "resume":
		case v.Name == "python" && v.Value == "true": // the switch of quickstart
			out = append(out, "--python")
		default:
			out = append(out, "--"+v.Name, v.Value)
		}
	}
	if r.Job.Model.Custom != "" && !addresses.HasFlag(out, "action") {
		out = append(out, "--action", "ACTION")
	}
	return out
}

// resumable says whether the job can be resumed with these changes. Changes that divide the work differently do not fit
// the finished rounds, and a job without a checkpoint would start over.
func (r *Report) resumable(sets []string) bool {
	return r.Status != disdel.StatusSucceeded && r.record.Checkpoint != nil &&
		!slices.ContainsFunc(sets, func(s string) bool {
			return strings.HasPrefix(s, "distribution.workers=") || strings.HasPrefix(s, "distribution.sync=") ||
				strings.HasPrefix(s, "training.batchSize=") && r.record.Plan.Batches > 0
		})
}

// whence says where a resumed job continues.
func (r *Report) whence() string {
	return fmt.Sprintf("from round %d of %d", r.record.Checkpoint.Round+1, r.record.Plan.Rounds)
}
