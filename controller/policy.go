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

// watch is what the manager sees of the round that runs, for its policy.
type watch struct {
	now     disdel.Millis // since the controller took the job up
	since   disdel.Millis // the round's start
	took    disdel.Millis // until the next reference stood; 0: it does not yet
	failed  int
	cold    disdel.Millis
	peak    disdel.Bytes
	workers map[int]*part         // of each worker, its legs together
	reduce  map[int]disdel.Millis // the slowest aggregation of each level
}

// part is what one worker's round took.
type part struct {
	fetch, compute, push, wait disdel.Millis
	exchange                   disdel.Millis // part of compute
	rows                       int
}

func (w *watch) begin() {
	*w = watch{now: w.now, since: w.now, workers: map[int]*part{}, reduce: map[int]disdel.Millis{}}
}

func (w *watch) done() { w.took = w.now - w.since }

// ended takes an activation that the round waited for.
func (w *watch) ended(a disdel.Activation) {
	if a.Task == disdel.TaskEvaluate {
		return
	}
	if a.Cold {
		w.cold = max(w.cold, a.InitTime, 1)
	}
	w.peak = max(w.peak, a.Peak)
	if a.Task == disdel.TaskAggregate {
		w.reduce[a.Level] = max(w.reduce[a.Level], a.Duration)
		return
	}
	p := w.of(a.Member)
	p.fetch += a.Phases["load"] + a.Phases["fetch"]
	p.compute += a.Phases["compute"]
	p.push += a.Phases["push"]
	p.exchange += a.Phases["exchange"]
	p.wait += a.WaitTime
}

// trained adds the rows of an activation.
func (w *watch) trained(worker int, r disdel.TrainResult) {
	rows := r.Rows
	if rows == 0 && !r.Paused {
		rows = r.Samples * max(1, r.Epochs) // an earlier activation of the same work had trained them
	}
	w.of(worker).rows += rows
}

func (w *watch) of(worker int) *part {
	p, ok := w.workers[worker]
	if !ok {
		p = &part{}
		w.workers[worker] = p
	}
	return p
}

// observed is the round as a policy sees it.
func (m *Manager) observed(r disdel.Round) *disdel.Observation {
	w := &m.watch
	o := disdel.Observation{
		Round: m.round, Setting: m.setting(), Duration: w.took, Loss: r.TrainLoss, Peak: w.peak, Cold: w.cold,
		Cost: max(0, m.budget.spent-m.budget.began), Retried: w.failed, Missing: len(r.Missing),
		Left:  len(r.Left),
		Epoch: m.spec.Stage.Until(m.round),
	}
	if train, ok := m.spec.Plan.Action(disdel.TaskTrain); ok {
		o.Limit = train.Limits.Memory
	}
	var slowest disdel.Millis
	for worker := range m.spec.Plan.Workers {
		p := w.of(worker)
		o.Rows += p.rows
		if all := p.fetch + p.compute + p.push + p.wait; all >= slowest {
			slowest = all
			o.Fetch, o.Compute, o.Push, o.Wait = p.fetch, p.compute, p.push, p.wait
			o.Exchange = p.exchange
		}
	}
	for _, d := range w.reduce {
		o.Reduce += d
	}
	return &o
}

// gang is what a job that was granted its containers (Spec.Gangs) holds, and what it asks for: the containers of a
// stage are asked for before it begins. A stage that a policy wants is asked for while the job keeps what it has, and
// refused where there is no room at once: then the policy is asked again, for fewer workers. A stage that the job
// cannot do without, because it was decided before or because it is a remedy, is waited for with nothing in hand.
type gang struct {
	stage   int              // whose containers the job holds, by its number
	asked   *asked           // that no answer has come to yet; nil: none
	refused []disdel.Refusal // at this boundary
	bound   int              // workers that may be asked for at this boundary, after a refusal; 0: no bound
}

// asked is a GrantOrder.
type asked struct {
	wants *candidate    // that the policy wants; nil: the round that the manager is in cannot do without
	since disdel.Millis // when it was asked
}

// most is what bounds a policy that is asked again; 0: nothing does.
func (g *gang) most() int {
	if len(g.refused) == 0 {
		return 0
	}
	return g.bound
}

// wants asks for the containers of a stage that a policy wants.
func (m *Manager) wants(c candidate) []Order {
	m.gang.asked = &asked{wants: &c, since: m.watch.now}
	return []Order{GrantOrder{Round: c.round, Plan: c.plan}}
}

// startWorkers begins what a round's workers do, once the job has the containers of the round's stage: it may have gone
// back to an earlier one, begun one that was decided before, or one that a failure led to.
func (m *Manager) startWorkers() []Order {
	if !m.spec.Gangs || m.gang.stage == m.spec.Before {
		return m.invokeAll(m.barrier.start())
	}
	m.gang.asked = &asked{since: m.watch.now}
	return []Order{GrantOrder{Round: m.round, Plan: m.spec.Plan, Waits: true}}
}

// granted continues with the answer of the admission.
func (m *Manager) granted(e GrantedEvent) []Order {
	a := m.gang.asked
	if a == nil {
		return nil // nobody waits for it any more
	}
	m.gang.asked = nil
	switch {
	case a.wants == nil && e.Err != nil:
		return m.fail(e.Err)
	case a.wants == nil:
		m.gang.stage = m.spec.Before
		m.watch.since += m.watch.now - a.since // it is nothing that the round took
		return m.invokeAll(m.barrier.start())
	case e.Err != nil:
		return m.refused(*a.wants, e.Err.Error())
	case e.Refused != "":
		return m.refused(*a.wants, e.Refused)
	}
	orders := m.change(*a.wants)
	m.gang.stage = m.course.number
	return m.goesOn(orders, "")
}

// refused asks the policy again, with half as many workers more than there are; where that is none, the job stays as it
// is. At the next boundary it may ask for any number again: somebody may have ended.
func (m *Manager) refused(c candidate, why string) []Order {
	now := m.setting().Workers
	m.gang.refused = append(m.gang.refused, disdel.Refusal{Workers: c.plan.Workers, Why: why})
	m.gang.bound = (now + c.plan.Workers) / 2
	d := c.decision
	d.Next, d.BatchSize, d.Expect = m.setting(), 0, nil
	if m.gang.bound > now {
		d = m.consult(d.Boundary, c.round, m.course.policy, nil)
	}
	orders, stop := m.decided(d, c.at)
	if m.gang.asked != nil {
		return orders
	}
	return m.goesOn(orders, stop)
}

// letting is how workers of a job are let go while a round runs, by what their steps come to (scheduler.LetsGo). What
// one of them leaves in the queue is another's, so that the round stays whole. At the round's end the policy is asked
// as ever, which takes it from there.
type letting struct {
	rule  *scheduler.ScaleIn // of all the job's rounds; nil: nobody is let go
	seen  map[int]disdel.StepsSoFar
	owed  disdel.StepsSoFar // of steps that the rule was not told of yet
	there int               // workers that are in the round, and are to stay
}

// begin begins a round of so many workers.
func (l *letting) begin(p scheduler.Policy, job disdel.Job, workers int) {
	l.seen, l.owed, l.there = map[int]disdel.StepsSoFar{}, disdel.StepsSoFar{}, workers
	if l.rule == nil {
		l.rule = scheduler.LetsGo(p, job, workers)
		return
	}
	l.rule.Now(workers)
}

// take takes the newest heartbeats of a round's workers, and returns how many steps each has made since, in the mean,
// and what one of them was. A worker that is tried again counts from then on.
func (l *letting) take(round int, list []disdel.Progress) (steps int, mean scheduler.StepSeen) {
	for _, p := range list {
		if p.Task != disdel.TaskTrain || p.Round != round || p.Steps == nil || p.Member >= l.there {
			continue
		}
		if d, ok := p.Steps.Minus(l.seen[p.Member]); ok {
			l.owed.Add(d)
		}
		l.seen[p.Member] = *p.Steps
	}
	steps = l.owed.Made / l.there
	if steps == 0 || l.owed.Rows == 0 {
		return 0, mean
	}
	made := float64(l.owed.Made)
	mean = scheduler.StepSeen{
		Loss: l.owed.Loss / float64(l.owed.Rows), Own: l.owed.Own / made, Others: l.owed.Others / made,
	}
	l.owed = disdel.StepsSoFar{}
	return steps, mean
}

// stepsMade lets workers go where the rule says so after the steps that were made since it was asked last: those with
// the highest numbers, so that a later stage has the others.
func (m *Manager) stepsMade(list []disdel.Progress) (orders []Order) {
	l := &m.letting
	if l.rule == nil || l.there < 2 {
		return nil
	}
	steps, mean := l.take(m.round, list)
	stay := l.there
	l.rule.Holds = scheduler.Worsens(m.course.seen) != ""
	for i := 0; i < steps && stay == l.there; i++ { // those after a change would be of as many as before
		stay = min(stay, l.rule.Step(mean))
	}
	if stay == l.there {
		return nil
	}
	for w := stay; w < l.there; w++ {
		orders = append(orders, LetGoOrder{m.round, w})
	}
	d := disdel.Decision{
		Policy: m.course.policy.Name(), Boundary: disdel.BoundaryStep, Round: m.round, Next: m.setting(),
		Why: fmt.Sprintf("past the knee, and %.0f %% of a step is exchange: %d of %d workers leave while the round runs",
			100*mean.Others/max(mean.Own+mean.Others, 1e-9), l.there-stay, l.there),
	}
	d.Next.Workers, l.there = stay, stay
	return append(orders, DecisionOrder{d})
}
