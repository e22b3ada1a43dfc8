package controller

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

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
	EventCanceled           // somebody stopped the job; Err says why
	EventDeadline           // the job's own deadline passed
)

// Event is something that happened to a job.
type Event struct {
	Kind       EventKind
	Activation disdel.Activation
	Err        *disdel.Error
}

// OrderKind tells what the loop is to do.
type OrderKind uint8

// What the Manager asks of the loop. (The documents call these orders a manager's actions; an action in code is always
// OpenWhisk's.)
const (
	OrderUnknown OrderKind = iota
	OrderInvoke            // make Invocation
	OrderRound             // Round is over: keep it and show it
	OrderFinish            // the job has come to Status; nothing follows
)

// Order is one thing to do.
type Order struct {
	Kind       OrderKind
	Invocation disdel.Invocation
	Round      disdel.Round
	Status     disdel.Status
	Failure    *disdel.Error
	Stopped    string // why training ended before its last epoch
}

// Manager is the event manager: DiSDeL's Algorithm 1, repeated for every round. All train actions run at once; a
// cluster's aggregation starts when its own members have ended; the top one publishes the reference of the next round.
// It is a pure state machine; use it from one goroutine.
type Manager struct {
	spec     Spec
	round    int
	ended    bool
	done     []map[int]bool // by level: members that delivered in this round
	results  map[int]disdel.TrainResult
	last     bool // no round follows this one
	publish  bool // the running aggregation only writes the final weights
	stopped  string
	best     float64
	noBetter int // evaluations in a row without a better held-out loss
}

// NewManager starts the state machine of one job.
func NewManager(spec Spec) *Manager {
	m := &Manager{spec: spec, best: math.Inf(1)}
	m.reset(0)
	return m
}

func (m *Manager) reset(round int) {
	m.round = round
	m.done = make([]map[int]bool, len(m.spec.Plan.Levels)+1)
	for i := range m.done {
		m.done[i] = map[int]bool{}
	}
	m.results = map[int]disdel.TrainResult{}
	m.last = round == m.spec.Plan.Rounds-1
}

// Step takes one event and returns what is to be done about it, in order. After OrderFinish it returns nothing.
func (m *Manager) Step(e Event) []Order {
	if m.ended {
		return nil
	}
	switch e.Kind {
	case EventStarted:
		return m.startRound(0)
	case EventEnded:
		return m.activationEnded(e.Activation)
	case EventRefused:
		return m.fail(e.Activation.Failure)
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
	orders := make([]Order, m.spec.Plan.Workers)
	for w := range orders {
		orders[w] = Order{Kind: OrderInvoke, Invocation: m.spec.train(round, w)}
	}
	return orders
}

func (m *Manager) activationEnded(a disdel.Activation) []Order {
	if a.Outcome != disdel.OutcomeSuccess {
		return m.fail(a.Failure)
	}
	if a.Round != m.round {
		return nil // a late duplicate of an earlier round changes nothing
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
	if m.done[0][a.Member] {
		return nil
	}
	m.results[a.Member] = r
	if !m.last && len(m.results) == m.spec.Plan.Workers && m.allReached() {
		m.last = true
		m.stopped = fmt.Sprintf("every action's loss is at most %g", m.spec.target())
	}
	return m.delivered(0, a.Member)
}

func (m *Manager) allReached() bool {
	for _, r := range m.results {
		if !r.Reached {
			return false
		}
	}
	return m.spec.target() > 0
}

// delivered marks a member of a level and starts the cluster above it once that is complete.
func (m *Manager) delivered(level, member int) []Order {
	m.done[level][member] = true
	for c, members := range m.spec.Plan.Levels[level].Clusters {
		if !slices.Contains(members, member) {
			continue
		}
		for _, other := range members {
			if !m.done[level][other] {
				return nil
			}
		}
		top := level+1 == len(m.spec.Plan.Levels)
		return []Order{{Kind: OrderInvoke, Invocation: m.spec.aggregate(m.round, level+1, c, top && m.last)}}
	}
	return nil
}

func (m *Manager) aggregated(a disdel.Activation) []Order {
	if m.publish {
		return m.finish(disdel.StatusSucceeded, nil)
	}
	if m.done[a.Level][a.Member] {
		return nil
	}
	if a.Level < len(m.spec.Plan.Levels) {
		return m.delivered(a.Level, a.Member)
	}
	m.done[a.Level][a.Member] = true
	if m.evaluationDue() {
		return []Order{{Kind: OrderInvoke, Invocation: m.spec.evaluate(m.round)}}
	}
	return m.endRound(m.roundSoFar())
}

func (m *Manager) evaluationDue() bool {
	every := m.spec.Job.Training.ValidateEvery
	return m.spec.Plan.HeldOut > 0 && (m.last || every > 0 && (m.round+1)%every == 0)
}

// roundSoFar is this round with the loss of its train actions, weighted by their samples.
func (m *Manager) roundSoFar() disdel.Round {
	var loss, samples float64
	for w := range m.spec.Plan.Workers { // in worker order: the same bits whatever ended first
		loss += m.results[w].Loss * float64(m.results[w].Samples)
		samples += float64(m.results[w].Samples)
	}
	return disdel.Round{Round: m.round, TrainLoss: loss / math.Max(samples, 1)}
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
		top := len(m.spec.Plan.Levels)
		inv := m.spec.aggregate(m.round, top, 0, true)
		inv.ID += "/publish"
		return append(orders, Order{Kind: OrderInvoke, Invocation: inv})
	default:
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
