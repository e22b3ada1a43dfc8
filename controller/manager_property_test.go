package controller

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// Whatever becomes of activations, in whatever order it is told, and however often: a job comes to an end, a round is
// made once and in its turn, a cluster is made of what was delivered, and an attempt is above every earlier one.
//
// Whatever its policy says: every row is trained once an epoch, and a replay of what was decided comes to the same
// orders.
func TestAJobAlwaysEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.obey(w.happens(StartedEvent{}))
		for steps := 0; !w.ended; steps++ {
			switch {
			case steps > 3000 && w.spec.Job.Distribution.Missing.Policy == disdel.MissingWait:
				w.obey(w.happens(DeadlineEvent{Err: &disdel.Error{Kind: disdel.Timeout, Msg: "deadline"}}))
			case steps > 3000:
				t.Fatal("it does not end")
			case len(w.open) == 0 && w.alarm == 0 && w.asks == nil:
				t.Fatalf("nothing runs, and nothing will: round %d, members %v", w.manager.round, w.manager.barrier.members)
			default:
				w.step()
			}
		}
		for _, e := range w.told {
			if o := w.manager.Step(e); o != nil {
				t.Fatalf("after its end: %v", o)
			}
		}
		w.replay()
	})
}

// moody is a policy without sense: it draws whatever it says from its seed.
type moody struct{ salt uint64 }

func (moody) Name() string    { return "moody" }
func (moody) Meaning() string { return "changes them as it likes" }

func (p moody) Decide(in scheduler.Input) disdel.Decision {
	draw := rand.New(rand.NewPCG(in.Seed, p.salt))
	d := disdel.Decision{Next: in.Now, Why: "it felt like it"}
	if draw.IntN(3) > 0 {
		d.Next.Workers = draw.IntN(12) - 2
	}
	if draw.IntN(3) == 0 {
		d.Next.AverageEvery = draw.IntN(5) - 1
	}
	if draw.IntN(3) == 0 {
		d.Next.FanIn = draw.IntN(5) - 1
	}
	if draw.IntN(3) == 0 {
		d.BatchSize = draw.IntN(10) - 1
	}
	if draw.IntN(20) == 0 {
		d.Stop = "it is tired"
	}
	return d
}

// happens tells the manager what happened, and keeps what it makes of it.
func (w *world) happens(e Event) []Order {
	orders := w.manager.Step(e)
	w.events = append(w.events, e)
	for _, o := range orders {
		if _, ok := o.(GrantOrder); !ok { // what is granted is in what is decided
			w.script = append(w.script, describe(o))
		}
		if d, ok := o.(DecisionOrder); ok {
			w.silent = w.silent || w.beganSilently(d.Decision)
			w.decisions = append(w.decisions, d.Decision)
		}
	}
	return orders
}

// beganSilently tells whether a decision is the first in the list about a round that began before: the policy had left
// all as it was, which is not always said. Then a failure changed the job, and the round began again.
func (w *world) beganSilently(d disdel.Decision) bool {
	return d.Boundary != disdel.BoundaryFailure &&
		slices.ContainsFunc(w.script, func(order string) bool {
			return strings.HasPrefix(order, fmt.Sprintf("invoke round %d/", d.Round))
		}) &&
		!slices.ContainsFunc(w.decisions, func(old disdel.Decision) bool {
			return old.Round == d.Round && old.Boundary != disdel.BoundaryFailure
		})
}

// replay plays the same events to a manager that knows what was decided and has no policy of its own. It skips jobs
// with a round that began silently: the list does not say for which of its beginnings the decision was.
func (w *world) replay() {
	if w.silent {
		return
	}
	spec := w.spec
	spec.Policy, spec.Decisions, spec.Gangs = nil, w.decisions, false
	m := NewManager(spec)
	var script []string
	for _, e := range w.events {
		if _, ok := e.(GrantedEvent); ok {
			continue
		}
		for _, o := range m.Step(e) {
			script = append(script, describe(o))
		}
	}
	if diff := gocmp.Diff(w.script, script); diff != "" {
		w.Fatalf("replay of %+v (-was +is):\n%s", w.decisions, diff)
	}
}

// place is one member of a round's tree.
type place struct {
	round int
	disdel.Slot
}

// world is what a manager's loop and its actions would be.
type world struct {
	*rapid.T
	spec    Spec
	plan    disdel.Plan
	manager *Manager
	ended   bool

	open      []disdel.Invocation
	told      []Event // may come again
	events    []Event // all, in their order
	script    []string
	decisions []disdel.Decision
	silent    bool                // a round began silently, and later with a decision
	plans     map[int]disdel.Plan // by the number of their stages
	reached   map[int]reached     // where each round ended
	alarm     int                 // that is set; 0: none
	asks      *GrantOrder         // that is not answered; nil: none
	granted   int                 // workers
	calm      int                 // of 100 activations pass
	delivered map[place]bool
	givenUp   map[place]bool
	newest    map[place][2]int // attempt and leg
	memory    disdel.Bytes     // of the newest train invocation
	next      int              // round
	behind    bool             // the job may have gone back
	written   bool             // the final weights
}

// reached is how far training is after a round, in rows of a shard, and what it came there with.
type reached struct {
	epoch, rows, workers int
}

func newWorld(t *rapid.T) *world {
	job := disdel.Job{}
	number := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
	job.Training.Epochs, job.Training.BatchSize, job.Training.ValidateEvery = number("rounds", 1, 4), 8,
		number("validateEvery", 0, 2)
	job.Training.EarlyStop = []*disdel.EarlyStop{
		nil,
		{Metric: "loss", Target: new(0.1)},
		{Metric: "valLoss", Patience: 1},
		{Metric: "accuracy", Patience: 2, Keep: "best"},
	}[number("earlyStop", 0, 3)]
	if number("goal", 0, 3) == 0 {
		job.Training.EarlyStop, job.Training.Goal = nil, &disdel.Goal{Accuracy: 0.5}
	}
	job.Distribution.Missing = disdel.Missing{
		Policy: []disdel.MissingPolicy{
			disdel.MissingRetry, disdel.MissingWait,
			disdel.MissingProceed,
		}[number("missing", 0, 2)], After: 1e9,
	}
	job.Reliability.Retries = disdel.Retries{
		Limit: number("retries", 0, 6), PerWorker: number("perWorker", 0, 3),
		MemoryFactor: 1.5,
	}
	job.Reliability.CheckpointEvery = number("checkpointEvery", 0, 2)
	heldOut, fanIn := number("heldOut", 0, 1)*10, number("fanIn", 2, 3)
	job.Distribution.Sync = disdel.SyncEpoch
	if k := number("every", 0, 3); k > 0 {
		job.Distribution.Sync = disdel.SyncEvery(k)
	}
	plan := func(job disdel.Job) (disdel.Plan, error) {
		n, k := job.Distribution.Workers, job.Distribution.Sync.Every()
		if n == 7 {
			return disdel.Plan{}, &disdel.Error{Kind: disdel.OverLimit, Msg: "seven do not fit"}
		}
		p := disdel.Plan{
			Workers: n, Rounds: job.Training.Epochs, Epochs: 1, Batches: k, HeldOut: heldOut, Parallel: n,
			Levels:   scheduler.Tree(n, cmp.Or(job.Distribution.Aggregation.FanIn, fanIn)),
			Platform: disdel.PlatformLimits{MaxMemory: 64 * disdel.MB, MaxTimeout: 4e9},
		}
		for i := range n {
			p.Shards = append(p.Shards, disdel.RowRange{Start: i * 120 / n, End: (i + 1) * 120 / n})
		}
		if k > 0 {
			p.Rounds *= max(1, (120/n+job.Training.BatchSize-1)/job.Training.BatchSize/k)
		}
		for _, task := range []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate} {
			p.Actions = append(p.Actions,
				disdel.ActionPlan{
					Task: task, Name: "p/" + disdel.ActionName(task),
					Limits: disdel.Limits{Memory: 32 * disdel.MB, Timeout: 2e9},
				})
		}
		return p, nil
	}
	planned := job
	planned.Distribution.Workers = number("workers", 1, 6)
	first, _ := plan(planned)
	w := &world{
		T: t, plan: first, calm: number("calm", 20, 98),
		delivered: map[place]bool{}, givenUp: map[place]bool{}, newest: map[place][2]int{},
		plans: map[int]disdel.Plan{0: first}, reached: map[int]reached{},
	}
	w.spec = Spec{
		ID: "job-1", Job: job, Plan: first, Replan: plan, Models: "mem://", Output: "weights/m/job-1",
		Threads: 1,
	}
	if number("policy", 0, 2) > 0 {
		w.spec.Policy = moody{salt: uint64(number("salt", 0, 1<<20))}
	}
	if from := number("from", 0, 2); from < first.Rounds && from > 0 {
		w.spec.From, w.spec.Resumes, w.next = &disdel.Checkpoint{Round: from, Path: "p"}, 1, from
	}
	w.spec.Gangs, w.granted = number("gangs", 0, 1) > 0, first.Workers
	w.manager = NewManager(w.spec)
	return w
}

// answer answers what was asked; what the job cannot do without it gets.
func (w *world) answer() {
	o, e := *w.asks, GrantedEvent{}
	w.asks = nil
	if !o.Waits && rapid.Bool().Draw(w.T, "refused") {
		e.Refused = "others are there"
	} else {
		w.granted = o.Plan.Workers
	}
	w.tell(e)
}

// step has something happen.
func (w *world) step() {
	switch what := rapid.IntRange(0, 99).Draw(w.T, "what"); {
	case w.asks != nil:
		w.answer()
	case what < 5 && len(w.told) > 0:
		w.obey(w.happens(rapid.SampledFrom(w.told).Draw(w.T, "again")))
	case w.alarm > 0 && (what < 10 || len(w.open) == 0):
		e := AlarmEvent{Number: w.alarm}
		w.alarm = 0
		for m := range 32 {
			w.givenUp[place{w.next, disdel.Slot{Task: disdel.TaskTrain, Member: m}}] = true
		}
		w.tell(e)
	case len(w.open) > 0:
		i := rapid.IntRange(0, len(w.open)-1).Draw(w.T, "which")
		inv := w.open[i]
		w.open = slices.Delete(w.open, i, i+1)
		w.tell(w.end(inv))
	}
}

func (w *world) tell(e Event) {
	w.told = append(w.told, e)
	w.obey(w.happens(e))
}

// failures are the ends of an activation that are none.
var failures = []disdel.Activation{
	{Outcome: disdel.OutcomeOutOfMemory, Failure: &disdel.Error{Kind: disdel.OOM}},
	{Outcome: disdel.OutcomeTimeout, Failure: &disdel.Error{Kind: disdel.Timeout}},
	{
		Outcome: disdel.OutcomeTimeout, Failure: &disdel.Error{Kind: disdel.Timeout},
		Beats: []disdel.Beat{{Epoch: 1, Batch: 1, Batches: 2}},
	},
	{Outcome: disdel.OutcomeDeveloperError, Failure: &disdel.Error{Kind: disdel.Crashed}},
	{Outcome: disdel.OutcomeDeveloperError, Failure: &disdel.Error{Kind: disdel.Crashed}, Peak: disdel.MB},
	{Outcome: disdel.OutcomeLost, Failure: &disdel.Error{Kind: disdel.Lost}},
	{Outcome: disdel.OutcomeInternalError, Failure: &disdel.Error{Kind: disdel.Unavailable}},
	{Outcome: disdel.OutcomeApplicationError, Failure: &disdel.Error{Kind: disdel.Conflict, Op: "hold claim"}},
	{Outcome: disdel.OutcomeApplicationError, Failure: lost["lostReference"]},
	{Outcome: disdel.OutcomeApplicationError, Failure: lost["lostUpdate"]},
	{Outcome: disdel.OutcomeCorrupt, Failure: &disdel.Error{Kind: disdel.Corrupt, Code: disdel.CodeLostUpdate}},
	{Outcome: disdel.OutcomePaused},
	{Outcome: disdel.OutcomePaused},
}

// end is how an invocation ends.
func (w *world) end(inv disdel.Invocation) Event {
	a := disdel.Activation{Invocation: inv, Outcome: disdel.OutcomeSuccess}
	at := place{inv.Round, inv.Slot()}
	result := any(disdel.EvaluateResult{Loss: rapid.Float64Range(0, 1).Draw(w.T, "loss")})
	switch {
	case rapid.IntRange(0, 99).Draw(w.T, "calm?") >= w.calm:
		a = rapid.SampledFrom(failures).Draw(w.T, "end")
		a.Invocation = inv
		if a.Outcome == disdel.OutcomePaused && inv.Task != disdel.TaskTrain {
			a.Outcome, a.Failure = disdel.OutcomeLost, &disdel.Error{Kind: disdel.Lost}
		}
		result = disdel.TrainResult{BatchesDone: rapid.IntRange(0, 3).Draw(w.T, "batch")}
		// two legs in a row may come no further
		w.givenUp[at] = w.givenUp[at] || a.Outcome != disdel.OutcomePaused || inv.Leg > 0
	case inv.Task == disdel.TaskTrain:
		result = disdel.TrainResult{Loss: 1, Samples: 10, Reached: rapid.Bool().Draw(w.T, "reached")}
	case inv.Task == disdel.TaskAggregate:
		var req disdel.AggregateRequest
		w.read(inv, &req)
		r := disdel.AggregateResult{}
		if req.NextCheckpoint != "" {
			r.Saved = &disdel.Checkpoint{Round: inv.Round + 1, Path: req.NextCheckpoint}
		}
		w.written = w.written || req.WeightsKey != ""
		result = r
	}
	if n := w.newest[at]; a.Outcome == disdel.OutcomeSuccess && n == [2]int{inv.Attempt, inv.Leg} {
		w.delivered[at] = true
	}
	a.Result, _ = json.Marshal(result)
	return EndedEvent{Activation: a}
}

func (w *world) read(inv disdel.Invocation, req any) {
	if err := json.Unmarshal(inv.Params, req); err != nil {
		w.Fatal(err)
	}
}

func (w *world) obey(orders []Order) {
	for i, o := range orders {
		switch o := o.(type) {
		case InvokeOrder:
			w.invoked(o.Invocation)
		case GrantOrder:
			w.asks = &o
		case AlarmOrder:
			w.alarm = o.Number
		case StageOrder:
			w.plan = o.Plan
			w.plans[o.Number] = o.Plan
		case ForgetOrder:
			w.forget(o.Round)
		case SweepOrder:
			w.forget(-1)
			w.behind = true
		case RoundOrder:
			if o.Round.Round != w.next {
				w.Fatalf("round %d is over, and %d was to be", o.Round.Round, w.next)
			}
			w.followed(o.Round)
			w.next++
		case AdjustOrder, DecisionOrder, CheckpointOrder, BestOrder, EndOrder, LetGoOrder:
		case FinishOrder:
			w.ended = true
			if i != len(orders)-1 {
				w.Fatal("something follows the end")
			}
			if o.Status == disdel.StatusSucceeded && (!w.written || w.next != w.plan.Rounds && o.Stopped == "") {
				w.Fatalf("succeeded at round %d of %d, weights written: %v", w.next, w.plan.Rounds, w.written)
			}
			if end := w.reached[w.next-1]; o.Status == disdel.StatusSucceeded && o.Stopped == "" &&
				end.epoch != w.spec.Job.Training.Epochs {
				w.Fatalf("it ended at %+v of %d epochs", end, w.spec.Job.Training.Epochs)
			}
		}
	}
}

// followed holds a round against the one before: it began where that one ended, on the same shards where that was in
// an epoch.
func (w *world) followed(r disdel.Round) {
	stage := &w.manager.state.at(r.Round).stage
	span := stage.TrainRange(r.Round)
	before, known := w.reached[r.Round-1]
	at := reached{span.Epoch, span.Batch * stage.BatchSize, stage.Workers}
	if known && (at.epoch != before.epoch || at.rows != before.rows || at.rows > 0 && at.workers != before.workers) {
		w.Fatalf("round %d begins at %+v, and the one before ended at %+v", r.Round, at, before)
	}
	end := reached{epoch: span.Epoch + span.Epochs, workers: stage.Workers}
	if span.Batches > 0 {
		end = reached{span.Epoch, (span.Batch + span.Batches) * stage.BatchSize, stage.Workers}
	}
	w.reached[r.Round] = end
}

// forget has the store know nothing of a round, or of any.
func (w *world) forget(round int) {
	for p := range w.delivered {
		if round < 0 || p.round == round {
			delete(w.delivered, p)
			delete(w.givenUp, p)
		}
	}
}

func (w *world) invoked(inv disdel.Invocation) {
	at := place{inv.Round, inv.Slot()}
	now, before := [2]int{inv.Attempt, inv.Leg}, w.newest[at]
	if slices.Compare(now[:], before[:]) <= 0 || now[0] == before[0] && now[1] != before[1]+1 {
		w.Fatalf("%s follows attempt and leg %v", inv.ID, before)
	}
	w.newest[at] = now
	w.open = append(w.open, inv)
	plan := w.plans[inv.Stage]
	if w.asks != nil || w.spec.Gangs && plan.Workers != w.granted {
		w.Fatalf("%s is one of %d workers, and %d were granted (asked: %v)", inv.ID, plan.Workers, w.granted, w.asks)
	}
	if inv.Level > len(plan.Levels) || inv.Task == disdel.TaskTrain && inv.Member >= plan.Workers {
		w.Fatalf("%s is not in the plan", inv.ID)
	}
	switch inv.Task {
	case disdel.TaskTrain:
		w.mayTrain(inv)
	case disdel.TaskAggregate:
		w.mayAggregate(inv)
	}
}

func (w *world) mayTrain(inv disdel.Invocation) {
	if w.behind && inv.Round <= w.next {
		w.next, w.behind = inv.Round, false
	}
	if inv.Round != w.next {
		w.Fatalf("%s while round %d runs", inv.ID, w.next)
	}
	if inv.Limits.Memory < w.memory {
		w.Fatalf("%s has %v, and %v was too little or enough", inv.ID, inv.Limits.Memory, w.memory)
	}
	w.memory = inv.Limits.Memory
	var req disdel.TrainRequest
	w.read(inv, &req)
	if req.Shard != w.plans[inv.Stage].Shards[inv.Member] {
		w.Fatalf("%s trains on %v of another plan", inv.ID, req.Shard)
	}
}

func (w *world) mayAggregate(inv disdel.Invocation) {
	var req disdel.AggregateRequest
	w.read(inv, &req)
	there := map[int]bool{}
	for _, m := range req.Members {
		there[m.Member] = true
	}
	if req.WeightsKey != "" && w.next > inv.Round {
		return // what is written was made before
	}
	if len(there) == 0 {
		w.Fatalf("%s is of nobody", inv.ID)
	}
	for _, m := range w.plans[inv.Stage].Levels[inv.Level-1].Clusters[inv.Member] {
		p := place{inv.Round, disdel.Slot{Task: disdel.TaskTrain, Member: m}}
		if inv.Level > 1 {
			p.Slot = disdel.Slot{Task: disdel.TaskAggregate, Level: inv.Level - 1, Member: m}
		}
		proceeds := w.spec.Job.Distribution.Missing.Policy == disdel.MissingProceed
		switch {
		case there[m] && !w.delivered[p]:
			w.Fatalf("%s takes %s, which did not deliver", inv.ID, fmt.Sprint(p))
		case !there[m] && (!proceeds || inv.Level == 1 && !w.givenUp[p]):
			w.Fatalf("%s goes without %s", inv.ID, fmt.Sprint(p))
		}
	}
}
