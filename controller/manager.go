package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// Manager is the event manager: DiSDeL's Algorithm 1, repeated for every round. It is a state machine without I/O;
// use it from one goroutine.
//
// Three independent parts have a task each. The barrier combines a round's workers into the next reference: it says
// which slots are next. attempts does the work of a slot: legs, later attempts, remedies of scheduler.FindRemedy,
// raised limits. policyState decides where the job goes: its stages, its policy. The Manager connects them and does
// what every round has in common: it invokes slots, starts a round again or goes back to a checkpoint if the store
// has lost something, keeps to the budget, evaluates a finished round, writes the weights, and starts the next round.
type Manager struct {
	spec        Spec // of the round's stage
	state       policyState
	attempts    attempts
	barrier     *barrier // of the round
	stats       roundStats
	evaluations evaluations
	budget      budget
	release     workerRelease
	gang        gangState
	saved       *disdel.Checkpoint // newest

	round      int
	last       bool // no round follows this one
	written    bool // an aggregation has written the model's weights, or will with its mean
	publish    bool // the running aggregation only writes the weights
	duplicates int  // results of this round that changed nothing
	restarts   int  // times this round started again because updates were lost or damaged
	alarms     int  // set so far
	alarmed    bool // the newest alarm is of this round
	stopped    string
	resumed    *disdel.Round              // trained by an earlier run of the job
	earlier    map[int]disdel.TrainResult // of this round's workers, from before it started again

	rollbacks int // times the job went back because the store had lost weights
	ended     bool
}

// NewManager creates the state machine of a job; a resumed one starts at its checkpoint.
func NewManager(spec Spec) *Manager {
	if spec.Began == 0 {
		spec.Began = spec.Plan.Workers
	}
	m := &Manager{
		spec: spec, state: newPolicyState(spec), attempts: newAttempts(), evaluations: newEvaluations(spec), saved: spec.From,
		budget: newBudget(spec.Job), gang: gangState{stage: spec.Before},
	}
	m.reset(0)
	return m
}

func (m *Manager) reset(round int) {
	m.round, m.duplicates, m.restarts = round, 0, 0
	m.earlier = map[int]disdel.TrainResult{}
	m.attempts.begin()
	m.enter(round)
	m.stats.begin()
	m.clear()
}

// clear forgets what was delivered in this round, and stops waiting.
func (m *Manager) clear() {
	m.barrier = newBarrier(m.spec.Plan)
	m.release.begin(m.state.policy, m.spec.Job, m.spec.Plan.Workers)
	m.alarmed, m.resumed = false, nil
	m.last, m.publish, m.stopped = m.round == m.spec.Plan.Rounds-1, false, ""
	m.evaluations.better = nil
	m.written = m.evaluations.best != nil
	m.attempts.closeAll()
}

// Step handles an event and returns the resulting orders, in order. After a FinishOrder it returns nothing.
func (m *Manager) Step(e Event) []Order {
	if m.ended || e == nil {
		return nil
	}
	m.budget.tell(e.when())
	m.stats.now = max(m.stats.now, e.when().At)
	return m.payFor(m.step(e))
}

// step is Step without the budget.
func (m *Manager) step(e Event) []Order {
	switch e := e.(type) {
	case StartedEvent:
		done := 0
		for _, r := range m.spec.Done {
			done += m.stepsOf(r.Round)
		}
		m.budget.resumed(done, m.spec.Kept, e.Halfway)
		return m.begin()
	case EndedEvent:
		return m.activationEnded(e.Activation)
	case RefusedEvent:
		return m.activationEnded(e.Activation)
	case GrantedEvent:
		return m.gangGranted(e)
	case AlarmEvent:
		return m.overdue(e.Number)
	case StepsEvent:
		return m.stepsMade(e.Progress)
	case CanceledEvent:
		return m.finish(disdel.StatusCanceled, e.Err)
	case DeadlineEvent:
		return m.fail(e.Err)
	case StoreGoneEvent:
		return m.fail(e.Err)
	}
	return nil
}

func (m *Manager) activationEnded(a disdel.Activation) []Order {
	if a.Task == "" { // the package could not be made
		return m.fail(explained(a, ""))
	}
	m.budget.over(a, m.spec.Plan.WorkerBatch(&m.spec.Job))
	if !m.attempts.awaits(a) {
		m.duplicates++ // a late duplicate, or one that another attempt has replaced, changes nothing
		return nil
	}
	m.attempts.close(a.Slot())
	m.stats.ended(a)
	switch {
	case a.Outcome == disdel.OutcomePaused:
		return m.paused(a)
	case a.Outcome != disdel.OutcomeSuccess:
		return m.failed(a)
	}
	m.attempts.succeeded(a)
	switch a.Task {
	case disdel.TaskTrain:
		return m.trained(a)
	case disdel.TaskAggregate:
		return m.aggregated(a)
	case disdel.TaskEvaluate:
		return m.evaluated(a)
	default:
		return nil
	}
}

func (m *Manager) trained(a disdel.Activation) []Order {
	var r disdel.TrainResult
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return m.fail(badResult(a, err))
	}
	if r.Duplicate {
		m.duplicates++ // an earlier activation of this attempt's work had delivered
		if first, ok := m.earlier[a.Member]; ok && r.Samples == 0 {
			// The round had its mean, so the store no longer says what the update came of.
			first.Duplicate, first.Usage = true, r.Usage
			r = first
		}
	}
	m.stats.trained(a.Member, r)
	next := m.barrier.trained(a.Member, r)
	m.checkTarget()
	if r.Left > 0 { // the others are not near their end
		return m.invokeAll(next)
	}
	return append(m.alarm(), m.invokeAll(next)...)
}

func (m *Manager) aggregated(a disdel.Activation) []Order {
	var r disdel.AggregateResult
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return m.fail(badResult(a, err))
	}
	top := a.Slot() == m.barrier.top()
	if top && !m.publish {
		m.stats.done()
	}
	var orders []Order
	if r.Saved != nil {
		m.saved = r.Saved
		if m.last {
			m.saved.Round = m.spec.Plan.Rounds // nothing is left to train, even if it stopped early
		}
		orders = append(orders, CheckpointOrder{Checkpoint: *r.Saved, Round: m.roundSoFar()})
	}
	if r.Unsaved != nil && !m.final(a.Slot()) { // after the final aggregation the model itself exists
		return append(orders, m.unsaved(a, r.Unsaved)...)
	}
	if m.publish {
		return append(orders, m.wrote(r)...)
	}
	next := m.barrier.delivered(a.Slot())
	if !top {
		return append(orders, m.invokeAll(next)...)
	}
	m.written = m.written || m.final(a.Slot())
	return append(orders, m.measure()...)
}

func (m *Manager) fail(err *disdel.Error) []Order {
	if err == nil {
		err = &disdel.Error{Kind: disdel.Internal, Op: "run job", Msg: "an activation failed without a cause"}
	}
	if err.Kind == disdel.Canceled {
		return m.finish(disdel.StatusCanceled, err)
	}
	return m.finish(disdel.StatusFailed, err)
}

func (m *Manager) finish(s disdel.Status, err *disdel.Error) []Order {
	m.ended = true
	o := FinishOrder{Status: s, Failure: err, Stopped: m.stopped}
	if s == disdel.StatusSucceeded && m.evaluations.unmeasured && m.evaluations.best == nil {
		o.Blind = m.evaluations.blind
	}
	return []Order{o}
}

func badResult(a disdel.Activation, err error) *disdel.Error {
	return &disdel.Error{
		Kind: disdel.Internal, Op: "read result of " + a.Invocation.ID, Activation: a.ID,
		Msg: "the action answered something else than its result", Err: err,
		Hint: "check that the action image and disdel are of the same version",
	}
}

// begin starts the first round, or continues a job: with the round after its checkpoint, or with what the round
// before it still lacks.
func (m *Manager) begin() []Order {
	first := m.spec.firstRound()
	if first == 0 { // with given weights, if it has a checkpoint
		return m.startRound(first)
	}
	i := slices.IndexFunc(m.spec.Done, func(r disdel.Round) bool { return r.Round == first-1 })
	over := first >= m.spec.Plan.Rounds // only the end is left
	lacks := over && i < 0              // it stopped early, or the record lacks its last round
	if lacks {
		i = len(m.spec.Done) - 1
	}
	round := disdel.Round{Round: first - 1}
	if i >= 0 {
		round = m.spec.Done[i]
	}
	m.reset(round.Round)
	m.last, m.resumed, m.stopped = over, &round, m.spec.Stopped
	switch {
	case lacks && m.spec.keepsBest(), // the weights may be better than those of the round in the record
		m.evaluations.isBetter(m.spec, round): // its weights may not be written yet, or the record not say so
		m.evaluations.forget(round.Round)
		return m.measure()
	case over && round.Loss != nil:
		return m.next()
	case over, i >= 0 && round.Loss == nil && round.NotEvaluated == "" && m.evaluationDue():
		return m.measure()
	default:
		return m.next()
	}
}

func (m *Manager) startRound(round int) []Order {
	m.reset(round)
	return m.startWorkers()
}

// roundSoFar is the current round with the loss of its train actions, weighted by their samples.
func (m *Manager) roundSoFar() disdel.Round {
	if m.resumed != nil {
		return *m.resumed
	}
	round := disdel.Round{Round: m.round, Duplicates: m.duplicates, Stage: m.spec.Before}
	m.barrier.sum(&round)
	for i := range round.Trained {
		round.Trained[i].Epoch += m.spec.span(m.round).Epoch
	}
	if !m.state.still() {
		round.Observed = m.observed(round)
	}
	return round
}

func (m *Manager) roundOrder(r disdel.Round, byClass *disdel.ByClass) []Order {
	m.budget.roundOver(m.stepsOf(m.round))
	m.state.saw(r)
	return []Order{RoundOrder{r, byClass}}
}

func (m *Manager) endRound(r disdel.Round, byClass *disdel.ByClass) []Order {
	return append(m.roundOrder(r, byClass), m.next()...)
}

// next starts the next round, or ends the job. Before the end it writes the weights, unless an aggregation has
// written them with its mean.
func (m *Manager) next() []Order {
	if why := m.enough(); why != "" && !m.last {
		m.last, m.stopped, m.written = true, why, m.spec.keepsBest() && m.evaluations.best != nil
	}
	switch {
	case m.last && !m.written:
		return m.write()
	case m.last:
		return m.finish(disdel.StatusSucceeded, nil)
	}
	if m.round+1 >= m.attempts.replayUntil {
		m.rollbacks = 0 // it has passed the round where it went back
	}
	orders, stop := m.boundary()
	if m.gang.asked != nil {
		return orders
	}
	return m.goesOn(orders, stop)
}

// goesOn follows a boundary: it starts the next round, or ends the job with the reason stop.
func (m *Manager) goesOn(orders []Order, stop string) []Order {
	if stop == "" {
		return append(orders, m.startRound(m.round+1)...)
	}
	m.last, m.stopped, m.written = true, stop, m.spec.keepsBest() && m.evaluations.best != nil
	return append(orders, m.next()...)
}

// forget removes everything known of the rounds from this one on.
func (m *Manager) forget(round int) {
	m.evaluations.forget(round)
	m.state.forget(round)
}

// invoke starts the next attempt of a slot.
func (m *Manager) invoke(s disdel.Slot) InvokeOrder { return m.order(s, m.attempts.next(s, m.round)) }

func (m *Manager) invokeAll(slots []disdel.Slot) []Order {
	out := make([]Order, len(slots))
	for i, s := range slots {
		out[i] = m.invoke(s)
	}
	return out
}

// order makes s wait for the end of an invocation.
func (m *Manager) order(s disdel.Slot, e slotAttempts) InvokeOrder {
	inv := m.built(s, e, 0)
	m.attempts.await(s, e, inv.ID)
	return InvokeOrder{Invocation: inv}
}

// built is the next invocation of a slot. hold is how long the budget lets it run; 0: until its timeout.
func (m *Manager) built(s disdel.Slot, e slotAttempts, hold disdel.Millis) disdel.Invocation {
	w := work{round: m.round, attempt: e.attempt, leg: e.leg, limits: m.attempts.limits[s.Task], hold: hold}
	inv := m.invocation(s, w)
	inv.ID = invocationID(w, s)
	if m.publish {
		inv.ID += PublishSuffix
	}
	return inv
}

// invocation makes the request for a slot's action.
func (m *Manager) invocation(s disdel.Slot, w work) disdel.Invocation {
	switch s.Task {
	case disdel.TaskTrain:
		return m.spec.train(w, s.Member, m.from(m.round))
	case disdel.TaskAggregate:
		var members []int
		if !m.publish { // none are needed to write an existing reference
			members = m.barrier.present(s)
		}
		return m.spec.aggregate(w, s.Level, s.Member, members,
			outputs{m.final(s), m.from(m.round + 1), m.checkpoint(s)})
	default:
		return m.spec.evaluate(w, m.attempts.evaluationBatch(&m.spec.Job, &m.spec.Plan), m.from(m.round+1))
	}
}

// PublishSuffix ends the id of an invocation that only writes what another has made.
const PublishSuffix = "/publish"

// from is the checkpoint of the reference that a round starts from, "" if there is none.
func (m *Manager) from(round int) string {
	if m.saved == nil || m.saved.Round != round && !(m.last && round == m.round+1 && m.saved.Round == m.spec.Plan.Rounds) {
		return ""
	}
	return m.saved.Path
}

// checkpoint is the key to which an aggregation writes the next round's reference, "" for none. That of the last
// round exists until the model is evaluated.
func (m *Manager) checkpoint(s disdel.Slot) string {
	switch {
	case s != m.barrier.top() || m.publish:
		return ""
	case m.last && m.spec.Plan.HeldOut > 0 && m.spec.Job.Reliability.CheckpointEvery > 0:
		return m.spec.checkpoint(m.spec.Plan.Rounds, "reference")
	case m.spec.checkpointDue(m.round):
		return m.spec.checkpoint(m.round+1, "reference")
	default:
		return ""
	}
}

// final tells whether the aggregation of a slot writes the final weights. If the best weights are kept, the
// evaluation first says whether those of the last round are.
func (m *Manager) final(s disdel.Slot) bool {
	return s == m.barrier.top() && (m.publish || m.last && !m.spec.keepsBest())
}

// paused starts the next leg of a worker that stored its state before its deadline. Legs without progress count as a
// timeout.
func (m *Manager) paused(a disdel.Activation) []Order {
	var r disdel.TrainResult
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return m.fail(badResult(a, err))
	}
	m.stats.trained(a.Member, r)
	e, stalled := m.attempts.nextLeg(a.Slot(), r.BatchesDone, r.Waited)
	if !stalled {
		return []Order{m.order(a.Slot(), e)}
	}
	a.Outcome = disdel.OutcomeTimeout
	a.Failure = &disdel.Error{
		Kind: disdel.Timeout, Op: "train", Activation: a.ID,
		Msg: fmt.Sprintf("%d activations in a row came no further than batch %d within their timeout of %v",
			e.legsStalled+e.legsWaited, e.batchesDone, a.Limits.Timeout),
		Hint: "a longer resources.timeout, or more workers (distribution.workers)",
	}
	return m.failed(a)
}

// checkTarget ends training once every worker has reached the target loss.
func (m *Manager) checkTarget() {
	if m.last || m.spec.target() <= 0 || !m.barrier.reached() {
		return
	}
	m.last = true
	m.stopped = fmt.Sprintf("every action's loss is at most %g", m.spec.target())
}

// canProceed tells whether the job may do without one more of the round's workers.
func (m *Manager) canProceed() bool {
	return m.spec.Job.Distribution.Missing.Policy == disdel.MissingProceed && m.barrier.canSpare()
}

// without continues without a worker.
func (m *Manager) without(worker int) []Order {
	next := m.barrier.without(0, worker)
	m.attempts.close(disdel.Slot{Task: disdel.TaskTrain, Member: worker}) // a later result is too late
	m.checkTarget()
	var orders []Order
	if m.spec.Job.Distribution.Exchange != nil { // the others wait for its updates
		orders = append(orders, EndOrder{m.round, worker})
	}
	return append(orders, m.invokeAll(next)...)
}

// alarm limits, once per round, how long the workers that delivered wait for the others.
func (m *Manager) alarm() []Order {
	p := m.spec.Job.Distribution.Missing
	if m.alarmed || p.Policy != disdel.MissingProceed || p.After <= 0 {
		return nil
	}
	m.alarmed = true
	m.alarms++
	return []Order{AlarmOrder{Number: m.alarms, Round: m.round, After: time.Duration(p.After)}}
}

// overdue continues without the workers of a round that have not delivered by now.
func (m *Manager) overdue(alarm int) []Order {
	if alarm != m.alarms || !m.alarmed {
		return nil
	}
	var orders []Order
	for _, w := range m.barrier.outstanding() {
		if m.canProceed() {
			orders = append(orders, m.without(w)...)
		}
	}
	return orders
}
