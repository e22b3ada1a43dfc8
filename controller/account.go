package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
)

// account adds what has ended to the record, and returns the event with the time and the bill that the Manager goes by.
func (r *run) account(e Event) Event {
	switch e := e.(type) {
	case EndedEvent:
		r.served = r.served || e.Activation.Outcome != disdel.OutcomeLost
		e.Activation, e.Moment = r.ended(e.Activation)
		return e
	case RefusedEvent:
		e.Activation, e.Moment = r.ended(e.Activation)
		return e
	case AlarmEvent:
		e.Moment = r.now()
		return e
	case GrantedEvent:
		e.Moment = r.now()
		return e
	case StartedEvent, StepsEvent, CanceledEvent, DeadlineEvent, StoreGoneEvent: // the loop makes these itself
	}
	return e
}

// now is the time and the bill.
func (r *run) now() Moment {
	return Moment{At: disdel.Millis(r.c.cfg.Now().Sub(r.began)), Spent: r.cost.Used}
}

// ended adds an ended invocation to the record, and returns it with its heartbeats.
func (r *run) ended(a disdel.Activation) (disdel.Activation, Moment) {
	now := r.now()
	a.Beats = r.beats(a)
	explainStall(&a)
	out := a
	r.pending--
	r.closed(a.Invocation)
	if r.phaseOpen[a.Task]--; r.phaseOpen[a.Task] == 0 {
		r.addPhase(a.Task, r.c.cfg.Now().Sub(r.phaseStart[a.Task]))
	}
	r.wrote(a)
	r.learned(&a)
	if a.Task == disdel.TaskAggregate && a.Outcome == disdel.OutcomeSuccess {
		r.aggregated = max(r.aggregated, time.Duration(a.Duration))
	}
	r.cost.Add(a)
	now.Spent = r.cost.Used
	r.billed()
	r.ledger.add(r.rec, a)
	r.observe(Notice{Ended: &a})
	return out, now
}

// explainStall changes the failure of an activation that stopped answering: it says so. The executor cannot say that,
// because it sees only the newest heartbeat.
func explainStall(a *disdel.Activation) {
	stall, stalled := a.Stalled()
	if !stalled || a.Failure == nil {
		return
	}
	failure := *a.Failure
	failure.Msg = fmt.Sprintf("it stopped answering: %s, and OpenWhisk ended it after its timeout of %v", stall.Text(),
		a.Limits.Timeout)
	failure.Hint = "look at the machine that it ran on, then submit the job as it is; a longer timeout is of no use"
	a.Failure = &failure
}

// billed has the record say what the job has cost.
func (r *run) billed() {
	r.rec.CostGBs, r.rec.EvaluationGBs, r.rec.UsedGBs = r.cost.Total(), r.cost.Evaluations, r.cost.Used
}

// learned keeps the loss that a train action came to, what is left of a round whose controller dies before it is kept,
// how many processors its container found, which the next job there goes by, and what its engine computed with.
func (r *run) learned(a *disdel.Activation) {
	var res disdel.TrainResult
	if a.Task == disdel.TaskTrain && a.Outcome == disdel.OutcomeSuccess && json.Unmarshal(a.Result, &res) == nil {
		a.Loss = &res.Loss
		platform := &r.rec.Plan.Platform
		platform.Found = max(platform.Found, res.Usage.Found)
		platform.Kernels = also(platform.Kernels, res.Usage.Kernels)
	}
}

// also adds a name to a list of names with commas between them, where it is not there yet.
func also(list, name string) string {
	switch {
	case name == "" || slices.Contains(strings.Split(list, ","), name):
		return list
	case list == "":
		return name
	default:
		return list + "," + name
	}
}

// wrote keeps what an aggregate action said of the final weights, and logs the checkpoints that it could not remove.
func (r *run) wrote(a disdel.Activation) {
	var res disdel.AggregateResult
	if a.Task != disdel.TaskAggregate || json.Unmarshal(a.Result, &res) != nil {
		return
	}
	if res.Checksum != "" {
		r.final.Checksum, r.final.Size = res.Checksum, res.Size
	}
	if res.Unpruned != nil {
		r.log.WithError(res.Unpruned).WithField("round", a.Round).Warn("older checkpoints stay on the blob store")
	}
}

func (r *run) addPhase(task disdel.Task, d time.Duration) {
	p := map[disdel.Task]*disdel.Millis{
		disdel.TaskTrain: &r.rec.Phases.Train, disdel.TaskAggregate: &r.rec.Phases.Aggregate,
		disdel.TaskEvaluate: &r.rec.Phases.Evaluate,
	}[task]
	*p += disdel.Millis(d)
}

func (r *run) roundOver(round disdel.Round, byClass *disdel.ByClass) {
	now := r.c.cfg.Now()
	round.Duration = disdel.Millis(now.Sub(r.roundStart))
	r.roundStart = now
	r.keepRound(round)
	if round.Loss != nil {
		r.rec.Loss, r.rec.Scores, r.rec.ByClass = *round.Loss, round.Scores, r.named(byClass)
	}
	if round.Accuracy != nil {
		r.rec.Accuracy = *round.Accuracy
	}
	if f := estimator.Remaining(r.rec.Plan, r.rec.Rounds, r.rec.Activations, r.sinceFirst()); f != nil {
		f.Used = estimator.UsedAhead(r.rec, f) // a wait for the quota costs nothing
		r.withinQuota(f)
		f.Goal = estimator.GoalAhead(r.rec, f, r.spec.Past)
		r.observe(Notice{Forecast: f})
	}
	r.observe(Notice{Round: &round})
}

// named is what an evaluation counted by class with the classes' names, of no more than a record has room for.
func (r *run) named(b *disdel.ByClass) *disdel.ByClass {
	if b == nil || len(b.Rows) != len(r.spec.ClassNames) || len(b.Rows) > disdel.MostConfused {
		return b
	}
	out := *b
	out.Names = r.spec.ClassNames
	return &out
}

// keepRound puts a round in place of any from that one on: the job may have gone back.
func (r *run) keepRound(round disdel.Round) {
	for n := len(r.rec.Rounds); n > 0 && r.rec.Rounds[n-1].Round >= round.Round; n-- {
		r.rec.Rounds = slices.Clone(r.rec.Rounds[:n-1])
	}
	r.rec.Rounds = append(r.rec.Rounds, round)
}

// sinceFirst is the time that the rounds have taken so far, the one that is under way too. What lay between two runs of
// the job does not count.
func (r *run) sinceFirst() disdel.Millis {
	d := disdel.Millis(r.c.cfg.Now().Sub(r.roundStart))
	for _, round := range r.rec.Rounds {
		d += round.Duration
	}
	return d
}
