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
