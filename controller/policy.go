package controller

import (
	"fmt"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// policyState is the job's stages so far and its policy, with what the policy has seen and decided.
type policyState struct {
	policy  scheduler.Policy
	stages  []startedStage // in order
	number  int            // of the newest stage in the record
	seen    []disdel.Observation
	decided map[int]bool                 // rounds that the policy decided about, or that started a stage
	replay  map[string][]disdel.Decision // earlier decisions by their subject, oldest first
}

// startedStage is a stage with its plan.
type startedStage struct {
	stage   disdel.Stage
	number  int
	plan    disdel.Plan
	threads int
	// the job's, with the stage's batch
	training disdel.Training
}

func newPolicyState(spec Spec) policyState {
	c := policyState{
		policy: spec.Policy, number: spec.Before, decided: map[int]bool{}, replay: map[string][]disdel.Decision{},
	}
	if c.policy == nil {
		c.policy, _ = scheduler.PolicyOf(spec.Job) // the planner has refused an unknown one
	}
	stage := spec.begins()
	c.stages = []startedStage{{
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

// begins is the stage that a run of a job starts with.
func (s *Spec) begins() disdel.Stage {
	if s.Stage != nil {
		return *s.Stage
	}
	return s.Plan.AsStage(s.Job)
}

// still tells whether only a failure changes the job.
func (c *policyState) still() bool {
	return c.policy.Name() == disdel.PolicyStatic && len(c.replay) == 0
}

// about is the subject of a decision: a failure, or the rounds from one on.
func about(d disdel.Decision) string {
	switch d.Boundary {
	case disdel.BoundaryFailure:
		return d.Invocation
	case disdel.BoundaryStep: // never asked again: a round that starts again is another run
		return fmt.Sprintf("steps of round %d", d.Round)
	}
	return fmt.Sprintf("round %d", d.Round)
}

// saw adds the observation of a round, and replaces this round and all later ones.
func (c *policyState) saw(r disdel.Round) {
	c.forget(r.Round)
	if r.Observed != nil {
		c.seen = append(c.seen, *r.Observed)
	}
}

// forget removes the observations from a round on. Decisions remain: the job goes the same way again.
func (c *policyState) forget(round int) {
	c.seen = slices.DeleteFunc(slices.Clone(c.seen), func(o disdel.Observation) bool { return o.Round >= round })
}

// rounds is the job's number of rounds if nothing changes.
func (c *policyState) rounds() int { return c.stages[len(c.stages)-1].stage.End() }

// at returns the stage of a round.
func (c *policyState) at(round int) *startedStage {
	now := &c.stages[0]
	for i := range c.stages {
		if c.stages[i].stage.First <= round {
			now = &c.stages[i]
		}
	}
	return now
}

// begin adds a stage, and removes those that were to start with its first round or later.
func (c *policyState) begin(b startedStage) {
	c.stages = slices.DeleteFunc(c.stages, func(old startedStage) bool { return old.stage.First >= b.stage.First })
	c.stages = append(c.stages, b)
	c.number = b.number
}

// enter applies the stage of a round to the requests.
func (m *Manager) enter(round int) {
	now := m.state.at(round)
	m.spec.Plan, m.spec.Threads, m.spec.Before = now.plan, now.threads, now.number
	m.spec.Plan.Rounds = m.state.rounds()
	m.spec.Stage, m.spec.Job.Training = &now.stage, now.training
}

// boundary lets the policy decide, once, how the job continues after this round: a job that goes back goes the same
// way again. stop is why it ends.
func (m *Manager) boundary() (orders []Order, stop string) {
	next, span := m.round+1, m.spec.span(m.round)
	if m.state.still() || m.state.decided[next] {
		return nil, ""
	}
	m.state.decided[next] = true
	at, b := disdel.Position{Epoch: span.Epoch + span.Epochs}, disdel.BoundaryEpoch
	if span.Batches > 0 {
		at, b = disdel.Position{Epoch: span.Epoch, Batch: span.Batch + span.Batches}, disdel.BoundaryRound
	}
	m.gang.refused = nil
	return m.decided(m.ask(b, next, nil), at)
}

// decided applies a policy's decision about the next round, from a position on. If that needs containers which must
// be granted first, it requests them, and gangGranted continues.
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
			return m.requestGang(c), ""
		case err == nil:
			return m.change(c), ""
		}
		d.Next, d.BatchSize, d.Expect = m.setting(), 0, nil
		d.Reasons = append(d.Reasons, "it stays as it was: "+err.Error())
	case len(d.NotGranted) > 0:
	case d.Policy == disdel.PolicyStatic, at.Batch > 0 && len(d.Reasons) == 0:
		return nil, "" // many short rounds would fill the record with them
	}
	return []Order{DecisionOrder{d}}, d.Stop
}

// setting is that of the round's stage.
func (m *Manager) setting() disdel.Setting { return m.spec.Stage.Setting }

// changes tells whether a decision starts a stage.
func (m *Manager) changes(d disdel.Decision) bool {
	return d.Next != m.setting() || d.BatchSize > 0 && d.BatchSize != m.spec.Stage.BatchSize ||
		d.StepMemory != (disdel.StepMemory{}) && d.StepMemory != m.spec.Stage.StepMemory
}

// ask lets the policy decide about the rounds from one on, or returns the earlier decision.
func (m *Manager) ask(b disdel.Boundary, round int, f *scheduler.Failure) disdel.Decision {
	d := disdel.Decision{Boundary: b, Round: round}
	if f != nil {
		d.Invocation = f.Activation.Invocation.ID
	}
	if old := m.state.replay[about(d)]; len(old) > 0 {
		m.state.replay[about(d)] = old[1:]
		return old[0]
	}
	decision := m.consult(b, round, m.state.policy, f)
	if f != nil && m.changes(decision) {
		clear(m.state.replay) // earlier decisions assumed another setting
	}
	return decision
}

// consult lets one policy decide.
func (m *Manager) consult(b disdel.Boundary, round int, p scheduler.Policy, f *scheduler.Failure) disdel.Decision {
	decision := scheduler.DecideInBounds(p, m.policyInput(b, round, f))
	decision.Round = round
	if f != nil {
		decision.Invocation = f.Activation.Invocation.ID
	}
	return decision
}

// policyInput is what a policy sees.
func (m *Manager) policyInput(b disdel.Boundary, round int, f *scheduler.Failure) scheduler.Input {
	in := scheduler.Input{
		Boundary: b, Seen: m.state.seen, Past: m.spec.Past, Now: m.setting(),
		Bounds: scheduler.BoundsOf(m.spec.Job, m.spec.Plan), Goal: m.goal(), Seed: scheduler.Seed(m.spec.ID, round),
		Failure: f,
	}
	if maximum := m.gang.maximum(); b != disdel.BoundaryFailure && maximum > 0 {
		in.Bounds = in.Bounds.AtMost(maximum, "what other jobs leave of the pool")
	}
	return in
}

// goal is what is left for the job to reach.
func (m *Manager) goal() scheduler.Goal {
	g := scheduler.Goal{
		EarlyStop: m.spec.Job.Training.Stop(), Epochs: float64(m.spec.Job.Training.Epochs - m.spec.span(m.round+1).Epoch),
		Cost: max(0, m.budget.maximum-m.budget.spent),
	}
	if d, _ := m.spec.Job.TimeLimit(); d > 0 {
		g.Deadline = max(0, disdel.Millis(d)-m.stats.now)
	}
	return g
}

// stageCandidate is a stage that a decision would start, from a round and a position on.
type stageCandidate struct {
	decision disdel.Decision
	round    int
	at       disdel.Position
	job      disdel.Job
	plan     disdel.Plan
}

// candidate plans a decision, and checks what no policy may do.
func (m *Manager) candidate(d disdel.Decision, round int, at disdel.Position) (c stageCandidate, err error) {
	if m.spec.Replan == nil {
		return c, &disdel.Error{
			Kind: disdel.Invalid, Op: "change setting", Job: m.spec.ID, Msg: "this job's plan cannot be made anew",
		}
	}
	c = stageCandidate{decision: d, round: round, at: at, job: scheduler.ApplySetting(m.spec.Job, d.Next, d.BatchSize)}
	m.spec.Plan.SaveMemoryIn(&c.job, d.StepMemory)
	c.plan, err = m.spec.Replan(c.job)
	if err == nil && !d.Changed {
		err = scheduler.ValidateReplan(m.policyInput(d.Boundary, round, nil), m.spec.Plan, c.plan)
	}
	return c, err
}

// change starts the stage of a candidate.
func (m *Manager) change(c stageCandidate) []Order {
	d, plan, wanted, round := c.decision, c.plan, c.job, c.round
	d.Changed = true
	plan.Actions = m.ownNames(plan.Actions)
	stage := plan.AsStage(wanted).Starting(round, c.at)
	stage.Decision = &d
	leaving := scheduler.LeavingReasons(m.spec.Job, m.spec.Plan.Workers, plan.Workers)
	stage.Reasons = slices.Concat(d.Reasons, leaving, plan.Reasons)
	b := startedStage{
		stage: stage, number: m.state.number + 1, plan: scheduler.ContinuePlan(plan, stage), threads: m.spec.Threads,
		training: wanted.Training,
	}
	if m.spec.Threads == m.spec.Plan.Threads && plan.Threads > 0 {
		b.threads = plan.Threads
	}
	m.state.begin(b)
	if d.Boundary == disdel.BoundaryFailure {
		for r := range m.state.decided {
			if r > round {
				delete(m.state.decided, r)
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

// ownNames gives actions with other limits than those of the first plan names of their own: one that returns to
// earlier limits finds its containers warm.
func (m *Manager) ownNames(actions []disdel.ActionPlan) []disdel.ActionPlan {
	out := slices.Clone(actions)
	for i, a := range out {
		if first, ok := m.state.stages[0].plan.Action(a.Task); ok {
			out[i].Name = actionName(first, a.Limits)
		}
	}
	return out
}

// roundStats measures the running round for its policy.
type roundStats struct {
	now     disdel.Millis // since the controller started the job
	since   disdel.Millis // the round's start
	took    disdel.Millis // until the next reference was complete; 0: not yet
	failed  int
	cold    disdel.Millis
	peak    disdel.Bytes
	workers map[int]*workerTimes  // by worker, all its legs
	reduce  map[int]disdel.Millis // the slowest aggregation of each level
}

// workerTimes is what one worker's round took.
type workerTimes struct {
	fetch, compute, push, wait disdel.Millis
	exchange                   disdel.Millis // part of compute
	rows                       int
}

func (w *roundStats) begin() {
	*w = roundStats{now: w.now, since: w.now, workers: map[int]*workerTimes{}, reduce: map[int]disdel.Millis{}}
}

func (w *roundStats) done() { w.took = w.now - w.since }

// ended adds an activation of the round.
func (w *roundStats) ended(a disdel.Activation) {
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
func (w *roundStats) trained(worker int, r disdel.TrainResult) {
	rows := r.Rows
	if rows == 0 && !r.Paused {
		rows = r.Samples * max(1, r.Epochs) // an earlier activation of the same work had trained them
	}
	w.of(worker).rows += rows
}

func (w *roundStats) of(worker int) *workerTimes {
	p, ok := w.workers[worker]
	if !ok {
		p = &workerTimes{}
		w.workers[worker] = p
	}
	return p
}

// observed returns the round's observation for a policy.
func (m *Manager) observed(r disdel.Round) *disdel.Observation {
	w := &m.stats
	o := disdel.Observation{
		Round: m.round, Setting: m.setting(), Duration: w.took, Loss: r.TrainLoss, Peak: w.peak, Cold: w.cold,
		Cost: max(0, m.budget.spent-m.budget.began), Retried: w.failed, Missing: len(r.Missing),
		Left:  len(r.Left),
		Epoch: m.spec.Stage.EpochsAfter(m.round),
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

// gangState is what a job with granted containers (Spec.Gangs) holds and requests. The containers of a stage are
// requested before it starts. A stage that a policy wants is requested while the job keeps its containers, and
// refused if there is no room at once; then the policy decides again, for fewer workers. For a stage that the job
// cannot do without, because of an earlier decision or a remedy, it returns its containers and waits.
type gangState struct {
	stage   int              // number of the stage whose containers the job holds
	asked   *grantRequest    // not answered yet; nil: none
	refused []disdel.Refusal // at this boundary
	bound   int              // workers that may be requested at this boundary, after a refusal; 0: no bound
}

// grantRequest is an open GrantOrder.
type grantRequest struct {
	wants *stageCandidate // wanted by the policy; nil: the current round cannot do without
	since disdel.Millis   // time of the request
}

// maximum limits a policy that decides again; 0: no limit.
func (g *gangState) maximum() int {
	if len(g.refused) == 0 {
		return 0
	}
	return g.bound
}

// requestGang requests the containers of a stage that a policy wants.
func (m *Manager) requestGang(c stageCandidate) []Order {
	m.gang.asked = &grantRequest{wants: &c, since: m.stats.now}
	return []Order{GrantOrder{Round: c.round, Plan: c.plan}}
}

// startWorkers starts a round's workers once the job has the containers of the round's stage: it may have gone back
// to an earlier stage, or started one by an earlier decision or a failure.
func (m *Manager) startWorkers() []Order {
	if !m.spec.Gangs || m.gang.stage == m.spec.Before {
		return m.invokeAll(m.barrier.start())
	}
	m.gang.asked = &grantRequest{since: m.stats.now}
	return []Order{GrantOrder{Round: m.round, Plan: m.spec.Plan, Waits: true}}
}

// gangGranted continues with the answer of the admission.
func (m *Manager) gangGranted(e GrantedEvent) []Order {
	a := m.gang.asked
	if a == nil {
		return nil // no longer awaited
	}
	m.gang.asked = nil
	switch {
	case a.wants == nil && e.Err != nil:
		return m.fail(e.Err)
	case a.wants == nil:
		m.gang.stage = m.spec.Before
		m.stats.since += m.stats.now - a.since // the wait is not part of the round
		return m.invokeAll(m.barrier.start())
	case e.Err != nil:
		return m.gangRefused(*a.wants, e.Err.Error())
	case e.Refused != "":
		return m.gangRefused(*a.wants, e.Refused)
	}
	orders := m.change(*a.wants)
	m.gang.stage = m.state.number
	return m.goesOn(orders, "")
}

// gangRefused lets the policy decide again, with half as many additional workers; if that is none, the job keeps its
// setting. At the next boundary it may request any number again: another job may have ended.
func (m *Manager) gangRefused(c stageCandidate, why string) []Order {
	now := m.setting().Workers
	m.gang.refused = append(m.gang.refused, disdel.Refusal{Workers: c.plan.Workers, Why: why})
	m.gang.bound = (now + c.plan.Workers) / 2
	d := c.decision
	d.Next, d.BatchSize, d.Expect = m.setting(), 0, nil
	if m.gang.bound > now {
		d = m.consult(d.Boundary, c.round, m.state.policy, nil)
	}
	orders, stop := m.decided(d, c.at)
	if m.gang.asked != nil {
		return orders
	}
	return m.goesOn(orders, stop)
}

// workerRelease releases workers of a job while a round runs, by the results of their steps (scheduler.ScaleInFor).
// Others take the released worker's batches from the queue, so that the round stays whole. At the round's end the
// policy decides as usual.
type workerRelease struct {
	rule  *scheduler.ScaleIn // of all the job's rounds; nil: no worker is released
	seen  map[int]disdel.StepsSoFar
	owed  disdel.StepsSoFar // steps that the rule has not considered yet
	there int               // workers that stay in the round
}

// begin starts a round of so many workers.
func (l *workerRelease) begin(p scheduler.Policy, job disdel.Job, workers int) {
	l.seen, l.owed, l.there = map[int]disdel.StepsSoFar{}, disdel.StepsSoFar{}, workers
	if l.rule == nil {
		l.rule = scheduler.ScaleInFor(p, job, workers)
		return
	}
	l.rule.Now(workers)
}

// take considers the newest heartbeats of a round's workers, and returns the mean number of new steps, and a mean
// step. A worker that is retried counts from then on.
func (l *workerRelease) take(round int, list []disdel.Progress) (steps int, mean scheduler.StepSeen) {
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

// stepsMade releases workers if the rule says so after the newest steps: those with the highest numbers, so that a
// later stage has the others.
func (m *Manager) stepsMade(list []disdel.Progress) (orders []Order) {
	l := &m.release
	if l.rule == nil || l.there < 2 {
		return nil
	}
	steps, mean := l.take(m.round, list)
	stay := l.there
	l.rule.Holds = scheduler.LossRises(m.state.seen) != ""
	for i := 0; i < steps && stay == l.there; i++ { // the steps after a change were made by as many workers as before
		stay = min(stay, l.rule.Step(mean))
	}
	if stay == l.there {
		return nil
	}
	for w := stay; w < l.there; w++ {
		orders = append(orders, LetGoOrder{m.round, w})
	}
	d := disdel.Decision{
		Policy: m.state.policy.Name(), Boundary: disdel.BoundaryStep, Round: m.round, Next: m.setting(),
		Why: fmt.Sprintf("past the knee, and %.0f %% of a step is exchange: %d of %d workers leave while the round runs",
			100*mean.Others/max(mean.Own+mean.Others, 1e-9), l.there-stay, l.there),
	}
	d.Next.Workers, l.there = stay, stay
	return append(orders, DecisionOrder{d})
}
