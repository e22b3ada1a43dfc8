package controller

import (
	"fmt"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// course is how a job goes on: its stages so far, its policy, and what that has seen and decided.
type course struct {
	policy  scheduler.Policy
	stages  []begun // that rounds belong to, in their order
	number  int     // of the newest in the record
	seen    []disdel.Observation
	decided map[int]bool                 // rounds that the policy was asked about, or that a stage was begun for
	replay  map[string][]disdel.Decision // made before, by what they were about, oldest first
}

// begun is a stage with what it runs by.
type begun struct {
	stage   disdel.Stage
	number  int
	plan    disdel.Plan
	threads int
	// the job's, with the batch that the stage was planned with
	training disdel.Training
}

func newCourse(spec Spec) course {
	c := course{policy: spec.Policy, number: spec.Before, decided: map[int]bool{}, replay: map[string][]disdel.Decision{}}
	if c.policy == nil {
		c.policy, _ = scheduler.PolicyOf(spec.Job) // one that nobody has changes nothing; the planner has refused it
	}
	stage := spec.begins()
	c.stages = []begun{{
		stage: stage, number: spec.Before, plan: spec.Plan, threads: spec.Threads, training: spec.Job.Training,
	}}
	for _, r := range spec.Done {
		c.saw(r)
	}
	for _, d := range spec.Decisions {
		c.replay[about(d)] = append(c.replay[about(d)], d)
	}
	return c
}

// begins is the stage that a run of a job begins with.
func (s *Spec) begins() disdel.Stage {
	if s.Stage != nil {
		return *s.Stage
	}
	return s.Plan.Whole(s.Job)
}

// still tells whether nothing but a failure changes the job.
func (c *course) still() bool { return c.policy.Name() == disdel.PolicyStatic && len(c.replay) == 0 }

// about is what a decision was about: a failure, or the rounds from one on.
func about(d disdel.Decision) string {
	switch d.Boundary {
	case disdel.BoundaryFailure:
		return d.Invocation
	case disdel.BoundaryStep: // of which nobody asks again: a round that is made anew is another run
		return fmt.Sprintf("steps of round %d", d.Round)
	}
	return fmt.Sprintf("round %d", d.Round)
}

// saw adds what was observed of a round, in place of any from that one on.
func (c *course) saw(r disdel.Round) {
	c.forget(r.Round)
	if r.Observed != nil {
		c.seen = append(c.seen, *r.Observed)
	}
}

// forget takes back the observations of a round and those after it. What was decided stays: the job goes the same way
// again.
func (c *course) forget(round int) {
	c.seen = slices.DeleteFunc(slices.Clone(c.seen), func(o disdel.Observation) bool { return o.Round >= round })
}

// rounds is how many the job has, if nothing changes.
func (c *course) rounds() int { return c.stages[len(c.stages)-1].stage.End() }

// at is the stage of a round.
func (c *course) at(round int) *begun {
	now := &c.stages[0]
	for i := range c.stages {
		if c.stages[i].stage.First <= round {
			now = &c.stages[i]
		}
	}
	return now
}

// begin adds a stage, which ends those that were to begin with its first round or later.
func (c *course) begin(b begun) {
	c.stages = slices.DeleteFunc(c.stages, func(old begun) bool { return old.stage.First >= b.stage.First })
	c.stages = append(c.stages, b)
	c.number = b.number
}

// enter has the requests made as the stage of a round says.
func (m *Manager) enter(round int) {
	now := m.course.at(round)
	m.spec.Plan, m.spec.Threads, m.spec.Before = now.plan, now.threads, now.number
	m.spec.Plan.Rounds = m.course.rounds()
	m.spec.Stage, m.spec.Job.Training = &now.stage, now.training
}

// boundary asks the policy how the job goes on after this round, once: a job that goes back goes the same way again.
// stop is why it does not go on.
func (m *Manager) boundary() (orders []Order, stop string) {
	next, span := m.round+1, m.spec.span(m.round)
	if m.course.still() || m.course.decided[next] {
		return nil, ""
	}
	m.course.decided[next] = true
	at, b := disdel.Position{Epoch: span.Epoch + span.Epochs}, disdel.BoundaryEpoch
	if span.Batches > 0 {
		at, b = disdel.Position{Epoch: span.Epoch, Batch: span.Batch + span.Batches}, disdel.BoundaryRound
	}
	m.gang.refused = nil
	return m.decided(m.ask(b, next, nil), at)
}

// decided does what a policy's answer about the round that is next says, from a position on. Where that needs a gang
// which the job has to be granted first, it asks for it, and granted goes on.
func (m *Manager) decided(d disdel.Decision, at disdel.Position) (orders []Order, stop string) {
	if len(m.gang.refused) > 0 {
		d.NotGranted = m.gang.refused
	}
	switch {
	case d.Stop != "":
	case m.changes(d) && (d.BatchSize == 0 || at.Batch == 0):
		c, err := m.candidate(d, d.Round, at)
		switch {
		case err == nil && m.spec.Gangs && !d.Changed:
			return m.wants(c), ""
		case err == nil:
			return m.change(c), ""
		}
		d.Next, d.BatchSize, d.Expect = m.setting(), 0, nil
		d.Reasons = append(d.Reasons, "it stays as it was: "+err.Error())
	case len(d.NotGranted) > 0:
	case d.Policy == disdel.PolicyStatic, at.Batch > 0 && len(d.Reasons) == 0:
		return nil, "" // a record of many short rounds would be full of them
	}
	return []Order{DecisionOrder{d}}, d.Stop
}

// setting is that of the round's stage.
func (m *Manager) setting() disdel.Setting { return m.spec.Stage.Setting }

// changes tells whether a decision begins a stage.
func (m *Manager) changes(d disdel.Decision) bool {
	return d.Next != m.setting() || d.BatchSize > 0 && d.BatchSize != m.spec.Stage.BatchSize
}

// ask has the policy decide about the rounds from one on, or takes what was decided before.
func (m *Manager) ask(b disdel.Boundary, round int, f *scheduler.Failure) disdel.Decision {
	d := disdel.Decision{Boundary: b, Round: round}
	if f != nil {
		d.Invocation = f.Activation.Invocation.ID
	}
	if old := m.course.replay[about(d)]; len(old) > 0 {
		m.course.replay[about(d)] = old[1:]
		return old[0]
	}
	said := m.consult(b, round, m.course.policy, f)
	if f != nil && m.changes(said) {
		clear(m.course.replay) // what was decided before was about another course
	}
	return said
}

// consult has one policy decide.
func (m *Manager) consult(b disdel.Boundary, round int, p scheduler.Policy, f *scheduler.Failure) disdel.Decision {
	said := scheduler.Ask(p, m.sight(b, round, f))
	said.Round = round
	if f != nil {
		said.Invocation = f.Activation.Invocation.ID
	}
	return said
}

// sight is what a policy sees.
func (m *Manager) sight(b disdel.Boundary, round int, f *scheduler.Failure) scheduler.Input {
	in := scheduler.Input{
		Boundary: b, Seen: m.course.seen, Past: m.spec.Past, Now: m.setting(),
		Bounds: scheduler.BoundsOf(m.spec.Job, m.spec.Plan), Goal: m.goal(), Seed: scheduler.Seed(m.spec.ID, round),
		Failure: f,
	}
	if most := m.gang.most(); b != disdel.BoundaryFailure && most > 0 {
		in.Bounds = in.Bounds.AtMost(most, "what other jobs leave of the pool")
	}
	return in
}

// goal is what is left for the job to come to.
func (m *Manager) goal() scheduler.Goal {
	g := scheduler.Goal{
		EarlyStop: m.spec.Job.Training.Stop(), Epochs: float64(m.spec.Job.Training.Epochs - m.spec.span(m.round+1).Epoch),
	}
	if d, _ := m.spec.Job.TimeLimit(); d > 0 {
		g.Deadline = max(0, disdel.Millis(d)-m.watch.now)
	}
	if m.budget.most > 0 {
		g.Cost = max(0, m.budget.most-m.budget.spent)
	}
	return g
}

// candidate is a stage that a decision would begin, from a round and a position on.
type candidate struct {
	decision disdel.Decision
	round    int
	at       disdel.Position
	job      disdel.Job
	plan     disdel.Plan
}

// candidate plans what was decided, and holds it against what no policy may do.
func (m *Manager) candidate(d disdel.Decision, round int, at disdel.Position) (c candidate, err error) {
	if m.spec.Replan == nil {
		return c, &disdel.Error{
			Kind: disdel.Invalid, Op: "change setting", Job: m.spec.ID, Msg: "this job's plan cannot be made anew",
		}
	}
	c = candidate{decision: d, round: round, at: at, job: scheduler.Apply(m.spec.Job, d.Next, d.BatchSize)}
	c.plan, err = m.spec.Replan(c.job)
	if err == nil && !d.Changed {
		err = scheduler.Shield(m.sight(d.Boundary, round, nil), m.spec.Plan, c.plan)
	}
	return c, err
}

// change begins the stage of a candidate.
func (m *Manager) change(c candidate) []Order {
	d, plan, wanted, round := c.decision, c.plan, c.job, c.round
	d.Changed = true
	plan.Actions = m.ownNames(plan.Actions)
	stage := plan.Whole(wanted).Starting(round, c.at)
	stage.Decision = &d
	leaving := scheduler.Leaving(m.spec.Job, m.spec.Plan.Workers, plan.Workers)
	stage.Reasons = slices.Concat(d.Reasons, leaving, plan.Reasons)
	b := begun{
		stage: stage, number: m.course.number + 1, plan: scheduler.From(plan, stage), threads: m.spec.Threads,
		training: wanted.Training,
	}
	if m.spec.Threads == m.spec.Plan.Threads && plan.Threads > 0 {
		b.threads = plan.Threads
	}
	m.course.begin(b)
	if d.Boundary == disdel.BoundaryFailure {
		for r := range m.course.decided {
			if r > round {
				delete(m.course.decided, r)
			}
		}
	}
	for task, l := range m.attempts.limits { // raised ones stay no lower than the plan's
		if action, ok := plan.Action(task); ok && l != (disdel.Limits{}) {
			m.attempts.raise(task, action.Limits)
		}
	}
	m.budget.stageBegins()
	m.enter(m.round)
	return []Order{
		DecisionOrder{d},
		StageOrder{Stage: stage, Number: b.number, Plan: b.plan},
	}
}

// ownNames gives actions with other limits than those of the first plan names of their own: one that came back to
// earlier limits finds its containers warm.
func (m *Manager) ownNames(actions []disdel.ActionPlan) []disdel.ActionPlan {
	out := slices.Clone(actions)
	for i, a := range out {
		if first, ok := m.course.stages[0].plan.Action(a.Task); ok {
			out[i].Name = actionName(first, a.Limits)
		}
	}
	return out
}
