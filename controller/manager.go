package controller

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// EventKind tells what happened.
type EventKind uint8

// What the loop tells the Manager.
const (
	EventUnknown  EventKind = iota
	EventStarted            // package and actions exist
	EventEnded              // an activation ended; Activation is set
	EventRefused            // an invocation could not be made; Activation.Invocation and Activation.Failure are set
	EventAlarm              // the time of an OrderAlarm for Round has passed
	EventCanceled           // somebody stopped the job; Err says why
	EventDeadline           // the job's own deadline passed
)

// Event is something that happened to a job.
type Event struct {
	Kind       EventKind
	Activation disdel.Activation
	Round      int
	Spent      float64 // GB-s so far
	Err        *disdel.Error
}

// OrderKind tells what the loop is to do.
type OrderKind uint8

// What the Manager asks of the loop. (The documents call these orders a manager's actions; an action in code is always
// OpenWhisk's.)
const (
	OrderUnknown    OrderKind = iota
	OrderInvoke               // make Invocation, after After
	OrderAlarm                // send EventAlarm for Round.Round after After
	OrderAdjust               // keep Adjustment: a limit, or the plan, has changed
	OrderPlan                 // Plan takes the place of the one before
	OrderCheckpoint           // Checkpoint is on the blob store
	OrderForget               // have the store forget what was delivered for Round.Round
	OrderSweep                // have the store delete all that it has of the job
	OrderRound                // Round is over: keep it and show it
	OrderFinish               // the job has come to Status; nothing follows
)

// Order is one thing to do.
type Order struct {
	Kind       OrderKind
	Invocation disdel.Invocation
	After      time.Duration
	Adjustment disdel.Adjustment
	Plan       disdel.Plan
	Checkpoint disdel.Checkpoint
	Round      disdel.Round
	Status     disdel.Status
	Failure    *disdel.Error
	Stopped    string // why training ended before its last epoch
}

// standing is how far a member of a level is in the current round.
type standing uint8

const (
	waiting standing = iota
	delivered
	missing // the mean is taken without it
)

// Manager is the event manager: DiSDeL's Algorithm 1, repeated for every round. All train actions run at once; a
// cluster's aggregation starts when its own members have ended; the top one publishes the reference of the next round.
// What fails is tried again as Decide says. It is a pure state machine; use it from one goroutine.
type Manager struct {
	spec     Spec
	round    int
	ended    bool
	members  [][]standing    // by level, then member
	efforts  map[slot]effort // of the current round
	results  map[int]disdel.TrainResult
	last     bool // no round follows this one
	publish  bool // the running aggregation only writes the final weights
	again    int  // results of this round that changed nothing
	redone   int  // times this round was begun anew because updates were lost or damaged
	backs    int  // times the job went back to an earlier round since it last got further than ever
	furthest int  // the newest round that was begun after another had ended
	alarmed  bool // the alarm of this round was set
	stopped  string
	best     float64
	noBetter int // evaluations in a row without a better held-out loss

	limits  map[disdel.Task]disdel.Limits // raised after failures
	retries int                           // that count against the job's limit
	spent   float64                       // GB-s
	saved   *disdel.Checkpoint            // newest
}

// NewManager starts the state machine of one job; one that is taken up again starts where its checkpoint says.
func NewManager(spec Spec) *Manager {
	m := &Manager{spec: spec, best: math.Inf(1), limits: map[disdel.Task]disdel.Limits{}, saved: spec.From}
	for _, r := range spec.Done {
		if r.Loss != nil {
			m.watch(*r.Loss)
		}
	}
	m.reset(0)
	return m
}

func (m *Manager) reset(round int) {
	m.round, m.efforts, m.again, m.redone = round, map[slot]effort{}, 0, 0
	m.last = round == m.spec.Plan.Rounds-1
	m.clear()
}

// clear forgets what was delivered in this round; efforts stay, so that a later attempt is always above an earlier one.
func (m *Manager) clear() {
	m.members = [][]standing{make([]standing, m.spec.Plan.Workers)}
	for _, l := range m.spec.Plan.Levels {
		m.members = append(m.members, make([]standing, len(l.Clusters)))
	}
	m.results, m.alarmed = map[int]disdel.TrainResult{}, false
}

// Step takes one event and returns what is to be done about it, in order. After OrderFinish it returns nothing.
func (m *Manager) Step(e Event) []Order {
	if m.ended {
		return nil
	}
	m.spent = max(m.spent, e.Spent)
	switch e.Kind {
	case EventStarted:
		return m.startRound(m.spec.firstRound())
	case EventEnded:
		return m.activationEnded(e.Activation)
	case EventRefused:
		return m.failed(e.Activation)
	case EventAlarm:
		return m.overdue(e.Round)
	case EventCanceled:
		return m.finish(disdel.StatusCanceled, e.Err)
	case EventDeadline:
		return m.fail(e.Err)
	default:
		return nil
	}
}

func (m *Manager) startRound(round int) []Order {
	m.reset(round)
	return m.invokeWorkers()
}

func (m *Manager) invokeWorkers() []Order {
	orders := make([]Order, m.spec.Plan.Workers)
	for w := range orders {
		orders[w] = m.invoke(slot{disdel.TaskTrain, 0, w})
	}
	return orders
}

func (m *Manager) activationEnded(a disdel.Activation) []Order {
	if a.Round != m.round || a.Invocation.ID != m.current(a) {
		m.again++ // a late duplicate, or one that another attempt has taken the place of, changes nothing
		return nil
	}
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
	if m.members[0][a.Member] != waiting {
		m.again++
		return nil
	}
	if r.Again {
		m.again++ // an earlier activation of this attempt's work had delivered
	}
	m.results[a.Member] = r
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
		return []Order{m.invoke(slot{disdel.TaskAggregate, level + 1, c})}
	}
	return nil
}

// present is the members of a cluster that delivered, in their order.
func (m *Manager) present(level, cluster int) []int {
	var out []int
	for _, member := range m.spec.Plan.Levels[level-1].Clusters[cluster] {
		if m.members[level-1][member] == delivered {
			out = append(out, member)
		}
	}
	return out
}

func (m *Manager) aggregated(a disdel.Activation) []Order {
	var r disdel.AggregateResult
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return m.fail(badResult(a, err))
	}
	var orders []Order
	if r.Saved != nil {
		m.saved = r.Saved
		orders = append(orders, Order{Kind: OrderCheckpoint, Checkpoint: *r.Saved})
	}
	if m.publish {
		return append(orders, m.finish(disdel.StatusSucceeded, nil)...)
	}
	if m.members[a.Level][a.Member] != waiting {
		m.again++
		return orders
	}
	m.members[a.Level][a.Member] = delivered
	if a.Level < len(m.spec.Plan.Levels) {
		return append(orders, m.advance(a.Level, a.Member)...)
	}
	if m.evaluationDue() {
		return append(orders, m.invoke(slot{disdel.TaskEvaluate, 0, 0}))
	}
	return append(orders, m.endRound(m.roundSoFar())...)
}

func (m *Manager) evaluationDue() bool {
	every := m.spec.Job.Training.ValidateEvery
	return m.spec.Plan.HeldOut > 0 && (m.last || every > 0 && (m.round+1)%every == 0)
}

// roundSoFar is this round with the loss of its train actions, weighted by their samples.
func (m *Manager) roundSoFar() disdel.Round {
	round := disdel.Round{Round: m.round, Again: m.again}
	var loss, samples float64
	for w := range m.spec.Plan.Workers { // in worker order: the same bits whatever ended first
		loss += m.results[w].Loss * float64(m.results[w].Samples)
		samples += float64(m.results[w].Samples)
		if m.members[0][w] == missing {
			round.Missing = append(round.Missing, w)
		}
	}
	round.TrainLoss = loss / math.Max(samples, 1)
	return round
}

func (m *Manager) evaluated(a disdel.Activation) []Order {
	var r disdel.EvaluateResult
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return m.fail(badResult(a, err))
	}
	round := m.roundSoFar()
	round.Loss, round.Accuracy = &r.Loss, &r.Accuracy
	m.watch(r.Loss)
	return m.endRound(round)
}

// watch counts evaluations without a better held-out loss.
func (m *Manager) watch(loss float64) {
	if loss < m.best {
		m.best, m.noBetter = loss, 0
		return
	}
	m.noBetter++
}

func (m *Manager) endRound(r disdel.Round) []Order {
	orders := []Order{{Kind: OrderRound, Round: r}}
	switch {
	case m.last:
		return append(orders, m.finish(disdel.StatusSucceeded, nil)...)
	case m.outOfPatience():
		m.stopped = fmt.Sprintf("no better held-out loss for %d evaluations", m.noBetter)
		m.publish = true
		top := slot{disdel.TaskAggregate, len(m.spec.Plan.Levels), 0}
		m.efforts[top] = effort{publish: true}
		return append(orders, m.invoke(top))
	default:
		if m.round+1 > m.furthest {
			m.furthest, m.backs = m.round+1, 0
		}
		return append(orders, m.startRound(m.round+1)...)
	}
}

func (m *Manager) outOfPatience() bool {
	e := m.spec.Job.Training.EarlyStop
	return e != nil && e.Metric == "valLoss" && m.noBetter >= e.Patience
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
	return []Order{{Kind: OrderFinish, Status: s, Failure: err, Stopped: m.stopped}}
}

func badResult(a disdel.Activation, err error) *disdel.Error {
	return &disdel.Error{
		Kind: disdel.Internal, Op: "read result of " + a.Invocation.ID, Activation: a.ID,
		Msg: "the action answered something else than its result", Err: err,
		Hint: "check that the action image and disdel are of the same version",
	}
}
