package batch

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/service"
)

// Row is the state of a job of a batch. Times are since the batch began.
type Row struct {
	Job     disdel.JobID     `json:"job,omitempty"` // "": it was never acknowledged
	Name    string           `json:"name"`
	File    string           `json:"file,omitempty"`
	Choices []jobfile.Choice `json:"choices,omitempty"` // what a matrix gave it
	Tenant  string           `json:"tenant,omitempty"`
	Status  disdel.Status    `json:"status"`            // unknown: it is about to be submitted
	Verdict string           `json:"verdict,omitempty"` // see disdel.Record
	Refused bool             `json:"refused,omitempty"` // failed before it was acknowledged
	Behind  string           `json:"behind,omitempty"`  // why Halving stopped it
	Failure *disdel.Error    `json:"failure,omitempty"`

	Submitted disdel.Millis `json:"submittedMs"`
	Started   disdel.Millis `json:"startedMs"` // when it had its gang; 0: it never had
	Ended     disdel.Millis `json:"endedMs"`   // 0: it has not

	Workers int          `json:"workers,omitempty"`
	Rounds  int          `json:"rounds"`         // that have ended
	Of      int          `json:"of"`             // as it is planned now
	Curve   []Point      `json:"curve"`          // at the end of each round
	Kept    *disdel.Best `json:"kept,omitempty"` // the evaluation whose weights the model has; nil: the last one
	Model   string       `json:"model,omitempty"`

	Room        disdel.Bytes `json:"roomBytes,omitempty"` // of its gang
	Peak        disdel.Bytes `json:"peakBytes,omitempty"` // the highest of an activation
	Activations int          `json:"activations"`         // that ended
	Cold        int          `json:"cold"`                // of them, began in a new container
	Failed      int          `json:"failed"`              // of them
	CostGBs     float64      `json:"costGBs"`
	Evaluations float64      `json:"evaluationGBs"`

	Ahead int    `json:"-"` // jobs that wait before it
	Why   string `json:"-"` // it waits
}

// Waited is how long a job waited for room, or has waited until now.
func (r *Row) Waited(now disdel.Millis) disdel.Millis {
	switch {
	case r.Started > 0:
		return r.Started - r.Submitted
	case r.Ended > 0:
		return r.Ended - r.Submitted
	case r.Job == "":
		return 0
	default:
		return now - r.Submitted
	}
}

// Ran is how long a job ran, or has run until now.
func (r *Row) Ran(now disdel.Millis) disdel.Millis {
	switch {
	case r.Started == 0:
		return 0
	case r.Ended > 0:
		return r.Ended - r.Started
	default:
		return now - r.Started
	}
}

// Result is the point of the round whose weights the model has, or of the last round. ok is false if no round has
// ended.
func (r *Row) Result() (Point, bool) {
	if len(r.Curve) == 0 {
		return Point{}, false
	}
	p := r.Curve[len(r.Curve)-1]
	if r.Kept != nil {
		if p.Loss, p.Scores = &r.Kept.Loss, r.Kept.Scores; p.Accuracy != nil {
			p.Accuracy = &r.Kept.Accuracy
		}
		if i := r.Kept.Round; i >= 0 && i < len(r.Curve) {
			p.Epochs, p.TrainLoss = r.Curve[i].Epochs, r.Curve[i].TrainLoss
		}
	}
	return p, true
}

// entry is a Row with what is needed to keep it.
type entry struct {
	Row
	epochs   int // of its job
	cancel   func(error)
	stages   []disdel.Stage
	flying   map[string]disdel.Bytes // limits of invocations that have not ended
	resident disdel.Bytes
}

// see takes an event of the job.
func (e *entry) see(what service.EventData, now disdel.Millis) {
	switch what := what.(type) {
	case service.Planned:
		e.Tenant, e.Workers, e.Of = what.Tenant, what.Plan.Workers, what.Plan.Rounds
		e.stages = []disdel.Stage{what.Plan.AsStage(what.Record.Job)}
	case service.Queued:
		e.Ahead, e.Why = what.Ahead, what.Why
	case service.Admitted:
		e.Status, e.Started, e.Room = disdel.StatusAdmitted, max(now, 1), what.Room.Memory
	case service.Invoked:
		e.Status, e.flying[what.Invocation.ID] = disdel.StatusRunning, what.Limits.Memory
	case service.Ended:
		e.ended(&what.Activation)
	case service.Progress:
		e.resident = 0
		for _, p := range what.Actions {
			e.resident += p.Resident
		}
	case service.StageBegan:
		e.begins(what.Stage)
	case service.RoundEnded:
		e.Rounds = what.Round.Round + 1
		e.Curve = append(e.Curve, Point{
			Epochs: e.trained(what.Round.Round), TrainLoss: what.TrainLoss, Loss: what.Loss, Accuracy: what.Accuracy,
			Scores: what.Scores,
		})
	case service.Finished:
		e.finish(&what.Record, now)
	}
}

// takeTimes takes the times of an ended job from its record: events come a little later, and the admission of one job
// may come before the end of the job that made room for it.
func (e *entry) takeTimes(rec *disdel.Record, began time.Time) {
	for _, t := range rec.Transitions {
		at := max(1, disdel.Millis(t.At.Sub(began)))
		switch {
		case t.To == disdel.StatusAdmitted:
			e.Started = at
		case t.To == rec.Status && !rec.Status.Unfinished():
			e.Ended = at
		}
	}
}

func (e *entry) ended(a *disdel.Activation) {
	delete(e.flying, a.Invocation.ID)
	if len(e.flying) == 0 {
		e.resident = 0
	}
	e.Activations++
	e.Peak = max(e.Peak, a.Peak)
	if a.Cold {
		e.Cold++
	}
	if a.Outcome.Failed() {
		e.Failed++
	}
}

// begins notes a stage. It replaces the stages of before that would have begun later.
func (e *entry) begins(s disdel.Stage) {
	keep := slices.IndexFunc(e.stages, func(was disdel.Stage) bool { return was.First >= s.First })
	if keep >= 0 {
		e.stages = e.stages[:keep]
	}
	e.stages = append(e.stages, s)
	e.Workers, e.Of = s.Workers, s.End()
}

// trained is the number of complete epochs after a round.
func (e *entry) trained(round int) int {
	if len(e.stages) == 0 {
		return 0
	}
	s := e.stages[disdel.StageAt(e.stages, round)].TrainRange(round)
	if s.Batches > 0 { // it ends within an epoch
		return s.Epoch
	}
	return min(s.Epoch+s.Epochs, e.epochs)
}

func (e *entry) finish(rec *disdel.Record, now disdel.Millis) {
	e.Status, e.Verdict, e.Ended, e.resident = rec.Status, rec.Verdict(), max(now, 1), 0
	clear(e.flying)
	e.CostGBs, e.Evaluations, e.Failure, e.Kept = rec.CostGBs, rec.EvaluationGBs, rec.Failure, rec.Best
	if rec.Status != disdel.StatusCanceled {
		e.Behind = "" // it had ended before it could be stopped
	}
	if rec.Model != nil {
		e.Model = fmt.Sprintf("%s:v%d", rec.Model.Name, rec.Model.Version)
	}
}

// Measure is what jobs are compared by.
type Measure string

// The measures. The held-out loss, and then the training loss, decides between jobs that are equal or were not
// evaluated.
const (
	ByAccuracy Measure = "accuracy" // held out, the higher the better
	ByLoss     Measure = "loss"     // held out, the lower the better
)

// Metric is the metric that a measure names. The names of all metrics are measures.
func (m Measure) Metric() disdel.Metric {
	metric, _ := disdel.FindMetric(string(m))
	return metric
}

// parseMeasure reads the name of a measure; "" is accuracy. It returns Invalid for an unknown one.
func parseMeasure(name string) (Measure, error) {
	name = cmp.Or(name, string(ByAccuracy))
	if _, ok := disdel.FindMetric(name); ok {
		return Measure(name), nil
	}
	return "", &disdel.Error{
		Kind: disdel.Invalid, Msg: fmt.Sprintf("jobs are not compared by %q", name),
		Hint: "compare by accuracy, top5, loss, rmse, mae, r2, perplexity, f1 or microF1",
	}
}

// Point is the quality of a job after some epochs.
type Point struct {
	Epochs        int      `json:"epochs"` // whole ones
	TrainLoss     float64  `json:"trainLoss"`
	Loss          *float64 `json:"loss,omitempty"`     // held out; nil: it was not evaluated
	Accuracy      *float64 `json:"accuracy,omitempty"` // the same
	disdel.Scores          // the same, of numbers
}

// Figures returns the evaluation after those epochs.
func (p Point) Figures() disdel.Figures {
	return disdel.Figures{Loss: p.Loss, Accuracy: p.Accuracy, Scores: p.Scores}
}

// compare is below zero if a is better. Unknown values and NaN are worse than any number.
func (m Measure) compare(a, b Point) int {
	order := cmp.Or(cmp.Compare(low(a.Loss), low(b.Loss)), cmp.Compare(low(&a.TrainLoss), low(&b.TrainLoss)))
	metric := m.Metric()
	rank := func(p Point) float64 { return metric.Rank(metric.Value(p.Figures())) }
	return cmp.Or(cmp.Compare(rank(a), rank(b)), order)
}

func low(v *float64) float64 {
	if v == nil || math.IsNaN(*v) {
		return math.Inf(1)
	}
	return *v
}
