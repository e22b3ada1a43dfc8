package simulate

import (
	"cmp"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// job is a running job.
type job struct {
	Outcome
	run       *run
	line      *sim.Job
	kind      *kind
	spec      controller.Spec
	manager   *controller.Manager
	demand    scheduler.Demand
	round     int                     // for which the job holds its gang
	later     []disdel.Invocation     // of a round for which it does not hold its gang yet
	remaining map[share]disdel.Millis // remaining work of an attempt of several legs
	alarm     *sim.Alarm
	over      bool
	// entering: it waits for the containers of a stage
	entering bool
	stages   map[int]disdel.Plan // of stages started while it ran, by their numbers
	trace    policyTrace
}

func (j *job) refuse(err error) {
	j.Refused, j.over = disdel.AsError(err), true
	j.Started, j.Ended = j.run.clock.Now(), j.run.clock.Now()
}

// prepare creates the manager of a planned job.
func (j *job) prepare(plan disdel.Plan) {
	j.remaining = map[share]disdel.Millis{}
	j.spec = controller.Spec{
		ID: j.ID, Job: j.kind.input.Job, Plan: plan, Threads: plan.Threads,
		Network: disdel.Network{Name: j.line.Network, Input: j.line.Input, Classes: j.line.Classes},
		Gangs:   j.run.admission != nil,
	}
	if j.line.Policy != "" {
		j.spec.Replan = func(job disdel.Job) (disdel.Plan, error) {
			in := j.kind.input
			in.ID, in.Job, in.Decided = j.ID, job, true
			return scheduler.NewPlan(in)
		}
	}
	if bias := cmp.Or(j.run.cfg.Bias, 1); bias != 1 || j.run.cfg.BiasNoise > 0 {
		p, _ := scheduler.PolicyOf(j.spec.Job) // the planner has refused an unknown one
		j.spec.Policy = biasedPolicy{p, bias, j.run.cfg.BiasNoise, j.ID}
	}
	j.manager = controller.NewManager(j.spec)
}

// planOf is the plan of an invocation.
func (j *job) planOf(inv disdel.Invocation) disdel.Plan {
	if p, ok := j.stages[inv.Stage]; ok {
		return p
	}
	return j.spec.Plan
}

// granted starts a job, or the round that it requested.
func (j *job) granted() {
	if j.Status == disdel.StatusUnknown {
		j.begin()
		return
	}
	if j.entering {
		j.entering = false
		j.answered(controller.GrantedEvent{})
		return
	}
	later := j.later
	j.later = nil
	for _, inv := range later {
		j.call(inv)
	}
}

func (j *job) begin() {
	j.Started, j.Status = j.run.clock.Now(), disdel.StatusRunning
	j.happens(started())
}

// invoke makes an invocation. If it starts a round for which the job has no gang, the job returns what it holds and
// requests a new gang.
func (j *job) invoke(inv disdel.Invocation) {
	switch {
	case j.run.admission == nil || j.demand.Keep == scheduler.KeepLife || inv.Round <= j.round && j.later == nil:
		j.call(inv)
	case j.later != nil:
		j.later = append(j.later, inv)
	default:
		j.round, j.later = inv.Round, []disdel.Invocation{inv}
		j.giveBack()
		j.run.ask(j)
	}
}

// giveBack returns what a job holds.
func (j *job) giveBack() {
	if j.run.admission != nil {
		j.run.admission.Return(j.ID, 0)
		j.run.decideSoon()
	}
}

// paced is how long an invocation that the platform throttled waits before it is repeated, if admission limits rates:
// that is no failure of the job.
const paced = disdel.Millis(time.Second)

func (j *job) call(inv disdel.Invocation) {
	if j.over {
		return
	}
	w := j.work(inv)
	j.run.cloud.Call(w.Call, func(r sim.Reply) {
		if r.Throttled && j.run.admission != nil {
			j.run.clock.After(paced, func() { j.call(inv) })
			return
		}
		if a := j.activation(inv, w, r); !j.over {
			j.happens(ended(a, j.moment()))
		}
	})
}

// finish ends the job.
func (j *job) finish(status disdel.Status, failure *disdel.Error) {
	now := j.run.clock.Now()
	j.Status, j.Failure, j.Ended, j.over = status, failure, now, true
	j.Course, j.Expected = j.trace.changes, j.trace.expected
	j.run.clock.Cancel(j.alarm)
	if status == disdel.StatusSucceeded {
		j.kind.ended(now - j.Started)
	}
	j.giveBack()
	j.manager, j.spec, j.remaining, j.stages = nil, controller.Spec{}, nil, nil
}

func started() controller.Event { return controller.StartedEvent{} }

func ended(a disdel.Activation, at controller.Moment) controller.Event {
	if a.Outcome == disdel.OutcomeThrottled {
		return controller.RefusedEvent{Moment: at, Activation: a}
	}
	return controller.EndedEvent{Moment: at, Activation: a}
}

// happens passes an event to the manager, and carries out its orders. It ignores those about records and the store.
func (j *job) happens(e controller.Event) {
	for _, o := range j.manager.Step(e) {
		switch o := o.(type) {
		case controller.InvokeOrder:
			inv := o.Invocation
			if after := disdel.Millis(o.After); after > 0 {
				j.run.clock.After(after, func() { j.invoke(inv) })
			} else {
				j.invoke(inv)
			}
		case controller.AlarmOrder:
			j.run.clock.Cancel(j.alarm)
			j.alarm = j.run.clock.After(disdel.Millis(o.After), func() { j.rings(o.Number) })
		case controller.FinishOrder:
			j.finish(o.Status, o.Failure)
			return
		case controller.GrantOrder:
			j.asks(o)
		case controller.StageOrder:
			if j.stages == nil {
				j.stages = map[int]disdel.Plan{}
			}
			j.stages[o.Number] = o.Plan
		case controller.DecisionOrder:
			j.trace.decided(o.Decision)
		case controller.RoundOrder:
			j.trace.round(o.Round, j.run.clock.Now()-j.Started)
			j.TrainLoss = o.Round.TrainLoss
		case controller.AdjustOrder, controller.CheckpointOrder, controller.ForgetOrder, controller.EndOrder,
			controller.LetGoOrder, controller.SweepOrder, controller.BestOrder:
		}
	}
}

// asks requests the containers of a stage. If the job cannot do without them, it returns what it holds and waits.
func (j *job) asks(o controller.GrantOrder) {
	now, books := j.run.clock.Now(), j.run.admission
	to, _ := scheduler.DemandOf(j.ID, o.Plan, books.Capacity())
	e := controller.GrantedEvent{Refused: books.Change(now, to)}
	switch {
	case e.Refused == "":
		j.demand.Gang, j.demand.Keep = to.Gang, to.Keep
		j.run.noteGranted()
	case o.Waits:
		j.demand.Gang, j.demand.Keep = to.Gang, to.Keep
		books.Return(j.ID, 0)
		err := books.Enqueue(j.demand)
		if err == nil {
			j.round, j.entering = o.Round, true
			j.run.decideSoon()
			return
		}
		e.Err = disdel.AsError(err)
	default:
		j.NotGranted++
	}
	j.run.decideSoon() // others may get what it returned
	j.run.clock.At(now, func() { j.answered(e) })
}

// answered tells the manager the answer to its request.
func (j *job) answered(e controller.GrantedEvent) {
	if e.Moment = j.moment(); !j.over {
		j.happens(e)
	}
}

// rings tells the manager of an alarm.
func (j *job) rings(number int) {
	if !j.over {
		j.happens(controller.AlarmEvent{Moment: j.moment(), Number: number})
	}
}

// moment is the time and cost for the manager.
func (j *job) moment() controller.Moment {
	return controller.Moment{At: j.run.clock.Now() - j.Started, Spent: j.CostGBs}
}

// WorkerChange is a job's number of workers from some time on.
type WorkerChange struct {
	At      disdel.Millis `json:"atMs"` // since its start
	Epoch   float64       `json:"epoch"`
	Workers int           `json:"workers"`
}

// Expected is what a policy expected of an epoch, and its result.
type Expected struct {
	Workers     int           `json:"workers"`
	PerThousand disdel.Millis `json:"perThousandMs"` // expected, of 1,000 rows
	Took        disdel.Millis `json:"tookMs"`        // in fact, of 1,000 rows
}

// policyTrace records a job's course under its policy.
type policyTrace struct {
	changes  []WorkerChange
	expected []Expected

	expects  disdel.Millis // of the current epoch; 0: nothing
	rows     int           // of that epoch so far
	duration disdel.Millis
	epoch    float64       // trained so far
	began    disdel.Millis // start of the round
}

// decided considers a policy's decision about the next epoch.
func (c *policyTrace) decided(d disdel.Decision) {
	if c.expects = 0; d.Expect != nil {
		c.expects = d.Expect.PerThousand
	}
}

// round considers a round that ended at a time since the job's start.
func (c *policyTrace) round(r disdel.Round, at disdel.Millis) {
	o := r.Observed
	if o == nil {
		return
	}
	if n := len(c.changes); n == 0 || c.changes[n-1].Workers != o.Setting.Workers {
		c.changes = append(c.changes, WorkerChange{At: c.began, Epoch: c.epoch, Workers: o.Setting.Workers})
	}
	c.began, c.epoch = at, o.Epoch
	c.rows, c.duration = c.rows+o.Rows, c.duration+o.Duration
	if o.Epoch != float64(int(o.Epoch)) {
		return
	}
	took := disdel.Observation{Duration: c.duration, Rows: c.rows}.PerThousand()
	if c.expects > 0 && o.Cold == 0 {
		c.expected = append(c.expected, Expected{Workers: o.Setting.Workers, PerThousand: c.expects, Took: took})
	}
	c.rows, c.duration, c.expects = 0, 0, 0
}
