package report

import (
	"math"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
)

// Report is the explanation of one job, and the document of report -o json.
type Report struct {
	APIVersion    string          `json:"apiVersion"`
	ID            disdel.JobID    `json:"id"`
	Name          string          `json:"name"`
	Status        disdel.Status   `json:"status"`
	Headline      string          `json:"headline"`
	Created       time.Time       `json:"created"`
	Duration      disdel.Millis   `json:"durationMs"` // so far, of a job that runs
	CostGBs       float64         `json:"costGBs"`
	Accuracy      *float64        `json:"accuracy,omitempty"` // held out, last evaluation
	Loss          *float64        `json:"loss,omitempty"`     // held out, last evaluation
	disdel.Scores                 // the same, of numbers
	Best          *Best           `json:"best,omitempty"`
	Failure       *Failure        `json:"failure,omitempty"`
	Advice        *Advice         `json:"advice,omitempty"` // of a job that did not succeed
	Causes        []Cause         `json:"causes,omitempty"` // of a job that did not learn, the likeliest first
	Troubles      Troubles        `json:"troubles"`
	Forecast      *Compared       `json:"forecast,omitempty"`
	Savings       []string        `json:"savings,omitempty"` // what could be smaller next time
	Actions       []Action        `json:"actions"`
	Rounds        []disdel.Round  `json:"rounds,omitempty"`
	Data          disdel.DataInfo `json:"data"`
	Job           disdel.Job      `json:"job"`
	Reasons       []string        `json:"reasons,omitempty"` // the plan's arithmetic

	EvaluationGBs float64      `json:"evaluationGBs,omitempty"` // see disdel.Record, as the next ones
	Learned       *bool        `json:"learned,omitempty"`
	Warnings      []string     `json:"warnings,omitempty"`
	Kept          *disdel.Best `json:"kept,omitempty"` // whose weights the model has; nil: the last round's
	// the same evaluation as Accuracy, by class; nil: see disdel.Record
	ByClass *disdel.ByClass `json:"byClass,omitempty"`
	Use     *Costs          `json:"byUse,omitempty"` // nil: nothing ran
	// what training would have taken under the plan that the job began with; nil: it had no other
	Static *disdel.CostWithoutPolicy `json:"static,omitempty"`

	CurveOptions CurveOptions `json:"-"` // how the plots by round are drawn

	record *disdel.Record
	now    time.Time
	at     addresses.Place
}

// Best is the best evaluation of a job, which may not be the last.
type Best struct {
	Accuracy float64 `json:"accuracy"`
	Round    int     `json:"round"` // counted from 0
}

// Troubles are problems during a job and their cost.
type Troubles struct {
	disdel.Losses
	Adjustments []disdel.Adjustment `json:"adjustments,omitempty"`
	Missing     []disdel.Round      `json:"missing,omitempty"` // rounds whose mean was taken without some workers
	Duplicates  int                 `json:"duplicates"`        // results that came twice or too late, and changed nothing
	Resumes     int                 `json:"resumes"`
	Checkpoint  *disdel.Checkpoint  `json:"checkpoint,omitempty"`
	Outages     []disdel.Outage     `json:"outages,omitempty"` // times in which OpenWhisk did not answer
}

// Compared is a forecast and the result.
type Compared struct {
	disdel.Forecast
	DurationErrorPct *float64 `json:"durationErrorPct,omitempty"` // likely over actual, less one; nil while the job runs
	CostErrorPct     *float64 `json:"costErrorPct,omitempty"`
}

// New makes the report of a record. now is the time of the report, for a job that still runs. New does not change the
// record; the caller must not change it while the report is in use. at is the place that the report's commands need:
// nil means the one where the job ran, and an empty one that is not nil has no flags.
func New(r *disdel.Record, now time.Time, at ...disdel.Option) *Report {
	if at == nil {
		at = addresses.PlaceOfRecord(r)
	}
	out := &Report{
		APIVersion: disdel.APIVersion, ID: r.ID, Name: r.Job.Metadata.Name, Status: r.Status, Created: r.Created,
		CostGBs: r.CostGBs,
		Rounds:  r.Rounds, Data: r.Data, Job: r.Job, Reasons: r.Plan.Reasons, Actions: ActionsOf(r.Activations),
		Troubles: troubles(r), record: r, now: now, at: at,
		EvaluationGBs: r.EvaluationGBs, Learned: r.Learned, Warnings: r.Warnings, Kept: r.Best,
		ByClass: countedByClass(r.ByClass),
	}
	out.Duration = out.elapsed()
	out.Use, out.Static = costs(r, out.Duration), r.WithoutPolicy()
	out.evaluations()
	out.Forecast = out.compared()
	out.Failure = out.failure()
	out.Advice, out.Causes = out.advice(), out.causes()
	out.Savings = savings(r)
	out.Headline = out.headline()
	return out
}

// elapsed is the job's time by its phases, else by its clock times.
func (r *Report) elapsed() disdel.Millis {
	rec := r.record
	switch {
	case rec.Phases.Total > 0:
		return rec.Phases.Total
	case rec.Created.IsZero():
		return 0
	case !rec.Ended.IsZero():
		return disdel.Millis(max(0, rec.Ended.Sub(rec.Created)))
	case rec.Status == disdel.StatusRunning:
		return disdel.Millis(max(0, r.now.Sub(rec.Created)))
	default:
		return 0
	}
}

// evaluations finds the last and the best evaluation; a job that made none has neither.
func (r *Report) evaluations() {
	for _, round := range r.record.Rounds {
		if finite(round.Loss) {
			r.Loss = round.Loss
		}
		if !finite(round.Accuracy) {
			continue
		}
		r.Accuracy = round.Accuracy
		if r.Best == nil || *round.Accuracy > r.Best.Accuracy {
			r.Best = &Best{*round.Accuracy, round.Round}
		}
	}
	if b := r.record.Best; b != nil && r.Best != nil {
		r.Accuracy, r.Loss = &b.Accuracy, &b.Loss
	} else if b != nil && r.Data.Numbers() {
		r.Loss = &b.Loss
	}
	r.Scores = r.record.Scores
}

func finite(v *float64) bool { return v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0) }

func (r *Report) compared() *Compared {
	f := r.record.Plan.Forecast
	if f == nil {
		return nil
	}
	out := &Compared{Forecast: *f}
	if r.Status == disdel.StatusSucceeded {
		out.DurationErrorPct = errorPct(float64(f.Duration.Likely), float64(r.Duration))
		out.CostErrorPct = errorPct(f.Cost.Likely, r.CostGBs)
	}
	return out
}

// errorPct is how far a prediction is above the result, in percent of the result; nil if either is unknown.
func errorPct(predicted, actual float64) *float64 {
	if predicted <= 0 || actual <= 0 {
		return nil
	}
	return new(100 * (predicted/actual - 1))
}

// troubles counts the problems of a job. Old records have no counts, so they are counted here.
func troubles(r *disdel.Record) Troubles {
	t := Troubles{
		Losses: r.Losses, Adjustments: r.Adjustments, Resumes: r.Resumes, Checkpoint: r.Checkpoint,
		Outages: r.Outages,
	}
	if t.Attempts == 0 {
		for i := range r.Activations {
			if a := &r.Activations[i]; a.Outcome.Failed() {
				t.Attempts++
				t.Duration += a.Duration
				t.Cost += a.HeldGBs()
			}
		}
	}
	for _, round := range r.Rounds {
		t.Duplicates += round.Duplicates
		if len(round.Missing) > 0 {
			t.Missing = append(t.Missing, round)
		}
	}
	return t
}
