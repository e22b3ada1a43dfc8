package controller

import (
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// memberStatus is the state of a member of a level in the current round.
type memberStatus uint8

const (
	memberWaiting memberStatus = iota
	memberDelivered
	memberMissing  // the mean is computed without it
	memberReleased // released: the others have all its updates
)

// barrier combines the workers of one round into the next reference. All train actions run at once. A cluster's
// aggregation starts when none of its members is still awaited. The round is complete when the top aggregation has
// delivered. The barrier is told which slots have delivered and which are given up, and returns the next slots.
//
// The Manager knows nothing else about the course of a round. attempts handle invocations of a slot, and the Manager
// handles what follows a round.
type barrier struct {
	levels  []disdel.Level
	members [][]memberStatus           // by level, then member
	results map[int]disdel.TrainResult // of workers
}

func newBarrier(plan disdel.Plan) *barrier {
	b := &barrier{
		levels: plan.Levels, members: [][]memberStatus{make([]memberStatus, plan.Workers)},
		results: map[int]disdel.TrainResult{},
	}
	for _, l := range plan.Levels {
		b.members = append(b.members, make([]memberStatus, len(l.Clusters)))
	}
	return b
}

// start returns the slots that a round starts with.
func (b *barrier) start() []disdel.Slot {
	out := make([]disdel.Slot, len(b.members[0]))
	for w := range out {
		out[w] = disdel.Slot{Task: disdel.TaskTrain, Member: w}
	}
	return out
}

// top is the slot that makes the next reference.
func (b *barrier) top() disdel.Slot {
	return disdel.Slot{Task: disdel.TaskAggregate, Level: len(b.levels)}
}

// trained adds a worker's result.
func (b *barrier) trained(worker int, r disdel.TrainResult) (next []disdel.Slot) {
	b.results[worker] = r
	if r.Left > 0 {
		b.members[0][worker] = memberReleased
		return b.advance(0, worker)
	}
	return b.delivered(disdel.Slot{Task: disdel.TaskTrain, Member: worker})
}

// delivered continues after a slot has delivered. Nothing follows the top one.
func (b *barrier) delivered(s disdel.Slot) (next []disdel.Slot) {
	b.members[s.Level][s.Member] = memberDelivered
	return b.advance(s.Level, s.Member)
}

// without continues without a member of a level.
func (b *barrier) without(level, member int) (next []disdel.Slot) {
	b.members[level][member] = memberMissing
	return b.advance(level, member)
}

// advance starts the clusters above a member of level of which no other member is awaited.
func (b *barrier) advance(level, member int) (next []disdel.Slot) {
	if level == len(b.levels) {
		return nil
	}
	for i, c := range b.levels[level].Clusters {
		if slices.Contains(c, member) { // of each shard of the weights one
			next = append(next, b.started(level, i)...)
		}
	}
	return next
}

// started starts a cluster above a level once no member of it is awaited.
func (b *barrier) started(level, i int) []disdel.Slot {
	there := 0
	for _, other := range b.levels[level].Clusters[i] {
		switch b.members[level][other] {
		case memberWaiting:
			return nil
		case memberDelivered:
			there++
		}
	}
	if there == 0 {
		return b.without(level+1, i)
	}
	return []disdel.Slot{{Task: disdel.TaskAggregate, Level: level + 1, Member: i}}
}

// outstanding returns the workers that have neither delivered nor are given up.
func (b *barrier) outstanding() (workers []int) {
	for w, s := range b.members[0] {
		if s == memberWaiting {
			workers = append(workers, w)
		}
	}
	return workers
}

// canSpare tells whether the round can do without one more of its workers.
func (b *barrier) canSpare() bool {
	there := 0
	for _, s := range b.members[0] {
		if s == memberWaiting || s == memberDelivered {
			there++
		}
	}
	return there > 1
}

// present returns the members of a cluster that delivered, in order.
func (b *barrier) present(s disdel.Slot) (members []int) {
	for _, member := range b.levels[s.Level-1].Clusters[s.Member] {
		if b.members[s.Level-1][member] == memberDelivered {
			members = append(members, member)
		}
	}
	return members
}

// reached tells whether every worker has finished, and has reached the target loss.
func (b *barrier) reached() bool {
	for _, r := range b.results {
		if !r.Reached {
			return false
		}
	}
	return len(b.outstanding()) == 0
}

// sum adds the workers' results to their round: the means, weighted by their samples, and the missing workers. It
// adds them in the order of the workers, so that the bits do not depend on which ended first.
func (b *barrier) sum(round *disdel.Round) {
	loss, first, right := mean{}, mean{}, mean{known: true}
	several, steps := false, []*disdel.StepCourse(nil)
	for w, s := range b.members[0] {
		r := b.results[w]
		steps = append(steps, r.Usage.Steps)
		loss.add(r.Loss, r.Samples)
		if n := len(r.Losses); n > 0 {
			first.add(r.Losses[0], r.Samples)
			several = several || n > 1
			right.addLast(r.Accuracies, n, r.Samples)
		}
		switch s {
		case memberMissing:
			round.Missing = append(round.Missing, w)
		case memberReleased:
			round.Left = append(round.Left, w)
		}
	}
	round.TrainLoss, round.TrainAccuracy, round.Steps = loss.value(), right.orNil(), stepsOf(steps)
	if several {
		round.FirstLoss = new(first.sum / math.Max(loss.weight, 1))
		round.Trained = b.epochs()
	}
}

// epochs returns the epochs of a round, each over the workers that trained it. The round's first epoch is 1.
func (b *barrier) epochs() (out []disdel.TrainedEpoch) {
	for e := 0; ; e++ {
		loss, right := mean{}, mean{known: true}
		for w := range b.members[0] {
			r := b.results[w]
			if e >= len(r.Losses) {
				continue
			}
			loss.add(r.Losses[e], r.Samples)
			right.addAt(r.Accuracies, e, len(r.Losses), r.Samples)
		}
		if loss.weight == 0 {
			return out
		}
		out = append(out, disdel.TrainedEpoch{Epoch: e + 1, Loss: loss.value(), Accuracy: right.orNil()})
	}
}

// mean is a weighted mean.
type mean struct {
	sum, weight float64
	known       bool // every addition had a value
}

func (m *mean) add(v float64, samples int) {
	m.sum += v * float64(samples)
	m.weight += float64(samples)
}

// addLast adds the newest of a worker's values by epoch, of which there must be n.
func (m *mean) addLast(values []float64, n, samples int) { m.addAt(values, n-1, n, samples) }

// addAt adds one of a worker's values by epoch, of which there must be n.
func (m *mean) addAt(values []float64, at, n, samples int) {
	if len(values) != n {
		m.known = false
		return
	}
	m.add(values[at], samples)
}

func (m *mean) value() float64 { return m.sum / math.Max(m.weight, 1) }

// orNil returns the mean, nil if a worker had no value.
func (m *mean) orNil() *float64 {
	if !m.known || m.weight == 0 {
		return nil
	}
	return new(m.value())
}

// stepsOf averages the steps of a round over the workers that report them; nil if none does. Stretches are combined
// by their last steps; a worker that was retried reports only the steps since then.
func stepsOf(workers []*disdel.StepCourse) *disdel.StepCourse {
	var out disdel.StepCourse
	known := 0
	for _, c := range workers {
		if c == nil {
			continue
		}
		known++
		out.Median += c.Median
		out.High += c.High
		for _, s := range c.Stretches {
			out.Stretches = addStretch(out.Stretches, s)
		}
	}
	if known == 0 {
		return nil
	}
	out.Median, out.High = out.Median/float64(known), out.High/float64(known)
	before := 0
	for i := range out.Stretches {
		s := &out.Stretches[i]
		meanOf(s)
		s.Steps, before = s.Last-before, s.Last
	}
	return &out
}

// addStretch adds a worker's stretch to that of the others up to the same step, as a sum weighted by its steps and
// rows.
func addStretch(all []disdel.StepStretch, s disdel.StepStretch) []disdel.StepStretch {
	at := 0
	for at < len(all) && all[at].Last < s.Last {
		at++
	}
	if at == len(all) || all[at].Last != s.Last {
		all = append(all, disdel.StepStretch{})
		copy(all[at+1:], all[at:])
		all[at] = disdel.StepStretch{Last: s.Last}
	}
	into, steps := &all[at], float64(s.Steps)
	into.Steps += s.Steps
	into.Rows += s.Rows
	into.Loss += s.Loss * float64(s.Rows)
	into.Values += s.Values * steps
	into.Bytes += s.Bytes * steps
	into.Add(s.StepTimes, steps)
	if s.End.After(into.End) {
		into.End = s.End
	}
	return all
}

// meanOf turns the sums of addStretch into means.
func meanOf(s *disdel.StepStretch) {
	n := float64(max(1, s.Steps))
	times := disdel.StepTimes{}
	times.Add(s.StepTimes, 1/n)
	for _, part := range []*float64{
		&times.Fetch, &times.Compute, &times.Select, &times.Write, &times.Wait, &times.Read, &times.Apply,
	} {
		*part = math.Round(*part*perMs) / perMs
	}
	s.StepTimes, s.Values, s.Bytes = times, math.Round(s.Values/n), math.Round(s.Bytes/n)
	s.Loss /= float64(max(1, s.Rows))
}

// perMs is the precision of times, in parts of a ms: insignificant digits take room in a record.
const perMs = 1e4
