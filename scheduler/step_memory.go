package scheduler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// leastMicroBatch is the number of rows below which a micro-batch saves no memory: kernels compute so many at once.
const leastMicroBatch = 16

// way is a way to save memory in training steps, and what it costs.
type way struct {
	memory disdel.StepMemory
	extra  float64      // what a step computes more, as a share
	norms  bool         // batch norms see fewer rows
	rounds bool         // moments are rounded, which is worse
	least  disdel.Bytes // of an action without rows
}

// stepMemories are the ways to save memory that the job's backend has for the batch of a worker. What the job file gives
// stays. Those that change what batch norms see come behind the others, those that round moments come last. Else the
// cheapest is first.
func (b *planBuilder) stepMemories(rows int) []way {
	own := b.Job.Training.StepMemory
	parts, again := []int{own.MicroBatch}, []disdel.Recompute{own.Recompute}
	if own.MicroBatch == 0 {
		for part := rows; part > leastMicroBatch; {
			part = max(leastMicroBatch, (part/2+leastMicroBatch-1)/leastMicroBatch*leastMicroBatch)
			parts = append(parts, part)
		}
	}
	if own.Recompute == "" {
		again = append(again, disdel.RecomputeAuto)
	}
	states := []disdel.StateFormat{own.StateFormat}
	if own.StateFormat == "" && b.Job.Training.Optimizer.Moments() > 0 {
		states = append(states, disdel.StateInt8)
	}
	norms := slices.ContainsFunc(b.Graph.Nodes, func(n model.Node) bool { return n.Op == model.OpBatchNorm })
	var out []way
	for _, state := range states {
		for _, part := range parts {
			for _, r := range again {
				m := disdel.StepMemory{MicroBatch: part, Recompute: r, StateFormat: state}
				if m == own {
					continue
				}
				w := way{memory: m, norms: norms && part > 0, rounds: state != own.StateFormat}
				in := b.input(0, b.plan.Workers)
				in.BatchSize, in.StepMemory = rows, m
				if e, err := b.Estimator.TrainOrRefuse(in); err == nil {
					w.extra, w.least = e.Extra, e.Total
					out = append(out, w)
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b way) int {
		return cmp.Or(cmp.Compare(a.changes(), b.changes()), cmp.Compare(a.extra, b.extra))
	})
	return out
}

// changes says how much a way changes the results of training: 0 for their last digits.
func (w way) changes() (rank int) {
	if w.norms {
		rank++
	}
	if w.rounds {
		rank += 2
	}
	return rank
}

// fitted plans a job with each way to save memory. short is the plan without: it needs too much. The reasons name every
// way that was turned down.
func fitted(in PlanInput, short *planBuilder) (disdel.Plan, bool) {
	limit, who := short.ceiling()
	needs := func(what string, n disdel.Bytes) string {
		return fmt.Sprintf("fit: %s: a train action needs %v, and %s is %v", what, n.Beside(limit), who, limit.Beside(n))
	}
	why := []string{needs(in.Job.Training.StepMemory.String(), short.train.Total)}
	rows := in.Job.Training.WorkerBatch(max(1, in.Job.Distribution.Workers, short.plan.Workers))
	for _, w := range short.stepMemories(rows) {
		if w.least > limit {
			why = append(why, needs(w.memory.String(), w.least))
			continue
		}
		in.Job.Training.StepMemory = w.memory
		b, err := buildPlan(in, false)
		if err == nil {
			b.plan.Reasons = append(b.plan.Reasons, why...)
			b.because("fit: %s: a train action needs %v of %v; a step computes %.2g %% more", w.memory, b.train.Total, limit,
				100*w.extra)
			if w.norms {
				b.because("fit: batch norm sees the rows of a micro-batch, not those of the batch")
			}
			if w.rounds {
				b.because("fit: moments are rounded to 8 bits, which changes the results a little")
			}
			return b.plan, true
		}
		why = append(why, needs(w.memory.String(), b.train.Total))
	}
	return disdel.Plan{}, false
}

// ways are the ways to save memory with a batch, the cheapest first.
func (s search) ways(batch int) (out []disdel.StepMemory) {
	if s.asked.Training.Fit == disdel.FitNone {
		return nil
	}
	b := planBuilder{PlanInput: s.in}
	workers := max(1, s.in.Job.Distribution.Workers)
	for _, w := range b.stepMemories(s.in.Job.Training.Resized(batch).WorkerBatch(workers)) {
		out = append(out, w.memory)
	}
	return out
}

// fitted is the point of the cheapest way to save memory with which there is one.
func (s search) fitted(batch int, find func(search) *FitPoint) *FitPoint {
	for _, m := range s.ways(batch) {
		s.in.Job.Training.StepMemory = m
		if p := find(s); p != nil {
			return p
		}
	}
	return nil
}

// fittedLargest plans the largest batch that some way to save memory fits, with the fewest workers.
func (s search) fittedLargest() (best *FitPoint) {
	for _, m := range s.ways(s.in.Job.Training.JobBatch()) {
		s.in.Job.Training.StepMemory = m
		if p := s.fewest(s.largest(s.most)); p != nil && (best == nil || p.BatchSize > best.BatchSize) {
			best = p
		}
	}
	return best
}

// fittedFewest plans a batch with the fewest workers with which some way to save memory fits it.
func (s search) fittedFewest(batch int) *FitPoint {
	return s.fitted(batch, func(s search) *FitPoint { return s.fewest(batch) })
}
