package controller

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// standing is how far a member of a level is in the current round.
type standing uint8

const (
	waiting standing = iota
	delivered
	missing // the mean is taken without it
)

// Manager is the event manager: DiSDeL's Algorithm 1, repeated for every round. All train actions run at once; a
// cluster's aggregation starts when its own members have ended; the top one publishes the reference of the next round.
// What fails is tried again as scheduler.Decide says. It is a pure state machine; use it from one goroutine.
type Manager struct {
	spec    Spec // as it is in the round's stage
	round   int
	course  course
	watch   watch
	ended   bool
	members [][]standing           // by level, then member
	efforts map[disdel.Slot]effort // of the current round
	results map[int]disdel.TrainResult
	partial bool // a worker's part of the round's checkpoint is missing: it would be no whole one
	last    bool // no round follows this one
	written bool // an aggregation has written what is to be the model, or will with its mean
	publish bool // the running aggregation only writes the weights
	again   int  // results of this round that changed nothing
	redone  int  // times this round was begun anew because updates were lost or damaged
	backs   int  // times the job went back because the store had lost weights
	alarms  int  // set so far
	alarmed bool // the newest alarm is of this round
	stopped string
	held    patience

	best       *disdel.Best  // whose weights are written; nil: nobody's, or the last round's
	bestValue  float64       // of it, or of better
	better     *disdel.Best  // whose weights are being written
	blind      *disdel.Error // why an evaluation could not be had
	unmeasured bool          // that of the last round
	resumed    *disdel.Round // which an earlier run of the job had trained

	highest int                           // attempt of any slot so far
	floor   int                           // attempts of rounds before revisit are above it
	revisit int                           // rounds that the job went back over end before this one
	limits  map[disdel.Task]disdel.Limits // raised after failures
	batch   int                           // rows of a batch of evaluations; 0: the job's
	retries int                           // that count against the job's limit
	budget  budget
	saved   *disdel.Checkpoint // newest
}

// NewManager starts the state machine of one job; one that is taken up again starts where its checkpoint says.
func NewManager(spec Spec) *Manager {
	m := &Manager{
		spec: spec, held: patience{best: math.Inf(1)}, bestValue: math.Inf(1),
		limits: map[disdel.Task]disdel.Limits{}, saved: spec.From,
	}
	m.course = newCourse(spec)
	m.remember()
	m.budget.most = spec.Job.Resources.MaxCost
	m.reset(0)
	return m
}

func (m *Manager) reset(round int) {
	m.round, m.efforts, m.again, m.redone = round, map[disdel.Slot]effort{}, 0, 0
	m.enter(round)
	m.watch.begin()
	m.clear()
}

// clear forgets what was delivered in this round, and waits for nothing any more. Efforts stay, so that a later attempt
// is always above an earlier one.
func (m *Manager) clear() {
	m.members = [][]standing{make([]standing, m.spec.Plan.Workers)}
	for _, l := range m.spec.Plan.Levels {
		m.members = append(m.members, make([]standing, len(l.Clusters)))
	}
	m.results, m.alarmed, m.partial, m.resumed = map[int]disdel.TrainResult{}, false, false, nil
	m.last, m.publish, m.stopped, m.better = m.round == m.spec.Plan.Rounds-1, false, "", nil
	m.written = m.best != nil
	for s := range m.efforts {
		m.close(s)
	}
}

// Step takes one event and returns what is to be done about it, in order. After a FinishOrder it returns nothing.
func (m *Manager) Step(e Event) []Order {
	if m.ended || e == nil {
		return nil
	}
	m.budget.tell(e.when())
	m.watch.now = max(m.watch.now, e.when().At)
	orders, of := m.step(e)
	return m.within(orders, of)
}

// step returns the activation too that an event is the end of, if it is.
func (m *Manager) step(e Event) (orders []Order, of disdel.Activation) {
	switch e := e.(type) {
	case StartedEvent:
		m.budget.resumed(len(m.spec.Done))
		return m.begin(), of
	case EndedEvent:
		return m.activationEnded(e.Activation), e.Activation
	case RefusedEvent:
		return m.activationEnded(e.Activation), e.Activation
	case AlarmEvent:
		return m.overdue(e.Number), of
	case CanceledEvent:
		return m.finish(disdel.StatusCanceled, e.Err), of
	case DeadlineEvent:
		return m.fail(e.Err), of
	}
	return nil, of
}

func (m *Manager) startRound(round int) []Order {
	m.reset(round)
	return m.invokeWorkers()
}

func (m *Manager) invokeWorkers() []Order {
	orders := make([]Order, m.spec.Plan.Workers)
	for w := range orders {
		orders[w] = m.invoke(disdel.Slot{Task: disdel.TaskTrain, Member: w})
	}
	return orders
}

func (m *Manager) activationEnded(a disdel.Activation) []Order {
	if a.Task == "" { // the package could not be made
		return m.fail(explained(a, ""))
	}
	if !m.awaited(a) {
		m.again++ // a late duplicate, or one that another attempt has taken the place of, changes nothing
		return nil
	}
	m.close(a.Slot())
	m.watch.ended(a)
	switch {
	case a.Outcome == disdel.OutcomePaused:
		return m.paused(a)
	case a.Outcome != disdel.OutcomeSuccess:
		return m.failed(a)
	}
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
		m.again++ // an earlier activation of this attempt's work had delivered
	}
	m.watch.trained(a.Member, r)
	m.results[a.Member], m.partial = r, m.partial || r.Unsaved != nil
	m.members[0][a.Member] = delivered
	m.lookAtTarget()
	return append(m.alarm(), m.advance(0, a.Member)...)
}

// lookAtTarget ends training once every worker that counts has reached the target loss.
func (m *Manager) lookAtTarget() {
	if m.last || slices.Contains(m.members[0], waiting) || !m.allReached() {
		return
	}
	m.last = true
	m.stopped = fmt.Sprintf("every action's loss is at most %g", m.spec.target())
}

func (m *Manager) allReached() bool {
	for _, r := range m.results {
		if !r.Reached {
			return false
		}
	}
	return m.spec.target() > 0
}

// advance starts the cluster above a member of level once no other member of it is waited for.
func (m *Manager) advance(level, member int) []Order {
	for c, members := range m.spec.Plan.Levels[level].Clusters {
		if !slices.Contains(members, member) {
			continue
		}
		there := 0
		for _, other := range members {
			switch m.members[level][other] {
			case waiting:
				return nil
			case delivered:
				there++
			}
		}
		if there == 0 {
			return m.without(level+1, c)
		}
		return []Order{m.invoke(disdel.Slot{Task: disdel.TaskAggregate, Level: level + 1, Member: c})}
	}
	return nil
}

func (m *Manager) aggregated(a disdel.Activation) []Order {
	var r disdel.AggregateResult
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return m.fail(badResult(a, err))
	}
	if a.Level == len(m.spec.Plan.Levels) && !m.publish {
		m.watch.done()
	}
	var orders []Order
	if r.Saved != nil {
		m.saved = r.Saved
		if m.last {
			m.saved.Round = m.spec.Plan.Rounds // nothing is left to train, wherever it stopped
		}
		orders = append(orders, CheckpointOrder{Checkpoint: *r.Saved, Round: m.roundSoFar()})
	}
	if m.publish {
		return append(orders, m.wrote(r)...)
	}
	m.members[a.Level][a.Member] = delivered
	if a.Level < len(m.spec.Plan.Levels) {
		return append(orders, m.advance(a.Level, a.Member)...)
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
	if s == disdel.StatusSucceeded && m.unmeasured && m.best == nil {
		o.Blind = m.blind
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
