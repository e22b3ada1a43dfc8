package simulate

import (
	"cmp"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// job is a job on its way.
type job struct {
	Outcome
	run     *run
	line    *sim.Job
	kind    *kind
	spec    controller.Spec
	manager *controller.Manager
	demand  scheduler.Demand
	round   int                     // that the job holds its gang for
	later   []disdel.Invocation     // of a round that it does not hold its gang for yet
	left    map[share]disdel.Millis // work of a round that an attempt of several legs has before it
	alarm   *sim.Alarm
	over    bool
	// it waits for the containers of a stage
	entering bool
	stages   map[int]disdel.Plan // of those that were begun while it ran, by their numbers
	course   course
}

func (j *job) refuse(err error) {
	j.Refused, j.over = disdel.AsError(err), true
	j.Started, j.Ended = j.run.clock.Now(), j.run.clock.Now()
}

// prepare makes the manager of a planned job.
func (j *job) prepare(plan disdel.Plan) {
	j.left = map[share]disdel.Millis{}
	j.spec = controller.Spec{
		ID: j.ID, Job: j.kind.input.Job, Plan: plan, Threads: plan.Threads,
		Network: disdel.Network{Name: j.line.Network, Input: j.line.Input, Classes: j.line.Classes},
		Gangs:   j.run.books != nil,
	}
	if j.line.Policy != "" {
		j.spec.Replan = func(job disdel.Job) (disdel.Plan, error) {
			in := j.kind.input
			in.ID, in.Job, in.Decided = j.ID, job, true
			return scheduler.NewPlan(in)
		}
	}
	if told := cmp.Or(j.run.cfg.Told, 1); told != 1 || j.run.cfg.ToldNoise > 0 {
		p, _ := scheduler.PolicyOf(j.spec.Job) // the planner has refused one that nobody has
		j.spec.Policy = misled{p, told, j.run.cfg.ToldNoise, j.ID}
	}
	j.manager = controller.NewManager(j.spec)
}

// planOf is the plan that an invocation was made by.
func (j *job) planOf(inv disdel.Invocation) disdel.Plan {
	if p, ok := j.stages[inv.Stage]; ok {
		return p
	}
	return j.spec.Plan
}

// granted begins a job, or the round that it asked for.
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

// invoke makes an invocation. One of a round that the job has no gang for gives back what it holds and asks anew.
func (j *job) invoke(inv disdel.Invocation) {
	switch {
	case j.run.books == nil || j.demand.Keep == scheduler.KeepLife || inv.Round <= j.round && j.later == nil:
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
	if j.run.books != nil {
		j.run.books.Return(j.ID, 0)
		j.run.decideSoon()
	}
}

// paced is how long an invocation that the platform refused for its rate waits before it is made again, where rates are
// kept to across jobs: that is no failure of the job.
const paced = disdel.Millis(time.Second)

func (j *job) call(inv disdel.Invocation) {
	if j.over {
		return
	}
	w := j.work(inv)
	j.run.cloud.Call(w.Call, func(r sim.Reply) {
		if r.Throttled && j.run.books != nil {
			j.run.clock.After(paced, func() { j.call(inv) })
			return
		}
		if a := j.activation(inv, w, r); !j.over {
			j.happens(ended(a, j.moment()))
		}
	})
}

// finish is the job's end.
func (j *job) finish(status disdel.Status, failure *disdel.Error) {
	now := j.run.clock.Now()
	j.Status, j.Failure, j.Ended, j.over = status, failure, now, true
	j.Course, j.Expected = j.course.crews, j.course.expected
	j.run.clock.Cancel(j.alarm)
	if status == disdel.StatusSucceeded {
		j.kind.ended(now - j.Started)
	}
	j.giveBack()
	j.manager, j.spec, j.left, j.stages = nil, controller.Spec{}, nil, nil
}

// What the manager is told, and what it asks for, is in this file alone.

func started() controller.Event { return controller.StartedEvent{} }

func ended(a disdel.Activation, at controller.Moment) controller.Event {
	if a.Outcome == disdel.OutcomeThrottled {
		return controller.RefusedEvent{Moment: at, Activation: a}
	}
	return controller.EndedEvent{Moment: at, Activation: a}
}

// happens tells the manager what happened, and does what it asks for. What it has recorded or stored is left out.
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
			j.course.decided(o.Decision)
		case controller.RoundOrder:
			j.course.round(o.Round, j.run.clock.Now()-j.Started)
			j.TrainLoss = o.Round.TrainLoss
		case controller.AdjustOrder, controller.CheckpointOrder, controller.ForgetOrder, controller.EndOrder,
			controller.LetGoOrder, controller.SweepOrder, controller.BestOrder:
		}
	}
}

// asks has the job granted the containers of a stage, or refused them. What it cannot do without it waits for, with
// nothing in hand.
func (j *job) asks(o controller.GrantOrder) {
	now, books := j.run.clock.Now(), j.run.books
	to, _ := scheduler.DemandOf(j.ID, o.Plan, books.Capacity())
	e := controller.GrantedEvent{Refused: books.Change(now, to)}
	switch {
	case e.Refused == "":
		j.demand.Gang, j.demand.Keep = to.Gang, to.Keep
		j.run.noteGranted()
	case o.Waits:
		j.demand.Gang, j.demand.Keep = to.Gang, to.Keep
		books.Return(j.ID, 0)
		err := books.Ask(j.demand)
		if err == nil {
			j.round, j.entering = o.Round, true
			j.run.decideSoon()
			return
		}
		e.Err = disdel.AsError(err)
	default:
		j.NotGranted++
	}
	j.run.decideSoon() // others may have what it gave back
	j.run.clock.At(now, func() { j.answered(e) })
}

// answered tells the manager what came of its asking.
func (j *job) answered(e controller.GrantedEvent) {
	if e.Moment = j.moment(); !j.over {
		j.happens(e)
	}
}

// rings tells the manager of an alarm whose time has come.
func (j *job) rings(number int) {
	if !j.over {
		j.happens(controller.AlarmEvent{Moment: j.moment(), Number: number})
	}
}

// moment is what the manager gets about time and cost.
func (j *job) moment() controller.Moment {
	return controller.Moment{At: j.run.clock.Now() - j.Started, Spent: j.CostGBs}
}

// Crew is how many workers a job had from a moment on.
type Crew struct {
	At      disdel.Millis `json:"atMs"` // since its start
	Epoch   float64       `json:"epoch"`
	Workers int           `json:"workers"`
}

// Expected is what a policy expected of an epoch, and what it came to.
type Expected struct {
	Workers     int           `json:"workers"`
	PerThousand disdel.Millis `json:"perThousandMs"` // of 1,000 rows
	Took        disdel.Millis `json:"tookMs"`        // the same
}

// course is how a job goes under its policy, as the simulator saw it.
type course struct {
	crews    []Crew
	expected []Expected

	expects  disdel.Millis // of the epoch that runs; 0: nothing
	rows     int           // of that epoch so far
	duration disdel.Millis
	epoch    float64       // trained so far
	began    disdel.Millis // when the round did
}

// decided takes a policy's answer about the epoch to come.
func (c *course) decided(d disdel.Decision) {
	if c.expects = 0; d.Expect != nil {
		c.expects = d.Expect.PerThousand
	}
}

// round takes a round that has ended at a moment since the job's start.
func (c *course) round(r disdel.Round, at disdel.Millis) {
	o := r.Observed
	if o == nil {
		return
	}
	if n := len(c.crews); n == 0 || c.crews[n-1].Workers != o.Setting.Workers {
		c.crews = append(c.crews, Crew{At: c.began, Epoch: c.epoch, Workers: o.Setting.Workers})
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
