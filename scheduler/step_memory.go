package scheduler

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// leastMicroBatch is the number of rows below which most kernels save no memory: they compute so many at once. Those of
// attention do.
const leastMicroBatch = 16

// way is a way to save memory in training steps, and what it costs.
type way struct {
	memory  disdel.StepMemory
	disk    bool         // the rows are in a file
	stages  int          // actions that train one network together; 0: as the job file says
	extra   float64      // what a step computes more, as a share
	norms   bool         // batch norms see fewer rows
	rounds  bool         // moments are rounded, which is worse
	minimum disdel.Bytes // of an action without rows
	bound   disdel.Bytes // less than this way needs with any format of moments
}

// stepMemories yields the ways to save memory that the job's backend has for the batch of a worker. What the job file
// gives stays. Ways that keep moments in another form come last. They are estimated only if nothing before them was
// enough, and they may reach the limit; 0: there is no limit. Moments in a file come behind those of 8 bits: nobody
// knows how much disk an action has, nor how fast it is. Those that change what batch norms see come behind the others
// of their kind. Else the cheapest is first. Rows on disk come behind all of these with the same format of moments.
// Stages come last.
func (b *planBuilder) stepMemories(rows int, limit disdel.Bytes) iter.Seq[way] {
	own := b.Job.Training.StepMemory.StateFormat
	states := []disdel.StateFormat{own}
	if own == "" && b.Job.Training.Optimizer.Moments() > 0 {
		states = append(states, disdel.StateInt8, disdel.StatePaged)
	}
	return func(yield func(way) bool) {
		for _, state := range states {
			if b.stages() > 1 { // what follows estimates whole networks
				break
			}
			ways := b.stepsWith(state, rows)
			for _, w := range ways {
				w.rounds = state != own && state.Short()
				if !yield(w) {
					return
				}
			}
			own := way{memory: b.Job.Training.StepMemory, minimum: b.train.Training + b.train.Package + b.train.Model}
			for _, w := range b.onDisk(own, ways, limit) {
				if !yield(w) {
					return
				}
			}
			if limit > 0 && len(ways) > 0 && !slices.ContainsFunc(ways, func(w way) bool { return w.bound <= limit }) {
				break
			}
		}
		if b.mayFitInStages(limit) {
			b.stageWays(states, rows, limit, yield)
		}
	}
}

// onDisk are ways to save memory with the rows in a file, for those that fit a limit without rows; none where the rows
// stay in memory.
func (b *planBuilder) onDisk(own way, ways []way, limit disdel.Bytes) (out []way) {
	if !b.mayKeepOnDisk() {
		return nil
	}
	for _, w := range append([]way{own}, ways...) {
		if limit == 0 || w.minimum <= limit {
			w.disk = true
			out = append(out, w)
		}
	}
	return out
}

// leastOnDisk is how many bytes of rows are worth a file. Limits are whole megabytes, so fewer bytes seldom matter.
const leastOnDisk = 32 * disdel.KB

// mayKeepOnDisk tells whether the plan may keep the rows in files: the job file does not say where they are kept, and
// they take memory that files save.
func (b *planBuilder) mayKeepOnDisk() bool {
	rows := b.Data.Train / max(1, b.plan.Replicas(), b.Job.Distribution.Workers)
	return b.Job.Data.Keep == "" && b.Data.Sparse == nil && disdel.Bytes(rows)*b.Data.SampleSize >= leastOnDisk
}

// stepsWith are the ways to save memory with one format of moments, the best first.
func (b *planBuilder) stepsWith(state disdel.StateFormat, rows int) (out []way) {
	own := b.Job.Training.StepMemory
	parts, again := []int{own.MicroBatch}, []disdel.Recompute{own.Recompute}
	if own.MicroBatch == 0 {
		for part := rows; part > leastMicroBatch; {
			part = max(leastMicroBatch, (part/2+leastMicroBatch-1)/leastMicroBatch*leastMicroBatch)
			parts = append(parts, part)
		}
		parts = append(parts, b.smallParts(rows)...)
	}
	if own.Recompute == "" {
		again = append(again, disdel.RecomputeAuto)
	}
	for _, part := range parts {
		for _, r := range again {
			m := disdel.StepMemory{MicroBatch: part, Recompute: r, StateFormat: state}
			if m == own {
				continue
			}
			w := way{memory: m, norms: part > 0 && b.hasNorms()}
			in := b.input(0, b.plan.Workers)
			in.BatchSize, in.StepMemory = rows, m
			if e, err := b.Estimator.TrainOrRefuse(in); err == nil {
				w.extra, w.minimum, w.bound = e.Extra, e.Total, withoutMoments(e)
				out = append(out, w)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b way) int {
		if a.norms != b.norms {
			return map[bool]int{true: 1, false: -1}[a.norms]
		}
		return cmp.Compare(a.extra, b.extra)
	})
	return out
}

// smallParts are micro-batches of less than leastMicroBatch rows, none where they save no memory.
func (b *planBuilder) smallParts(rows int) (out []int) {
	if !slices.ContainsFunc(b.Graph.Nodes, func(n model.Node) bool { return n.Op == model.OpAttention }) {
		return nil
	}
	for part := leastMicroBatch / 2; part >= 1; part /= 2 {
		if part < rows {
			out = append(out, part)
		}
	}
	return out
}

// hasNorms tells whether the network has batch norms, which see the rows of a micro-batch.
func (b *planBuilder) hasNorms() bool {
	return slices.ContainsFunc(b.Graph.Nodes, func(n model.Node) bool { return n.Op == model.OpBatchNorm })
}

// withoutMoments is less than an action needs with moments of any format: those of no bytes. Corrections of the
// estimate count in proportion.
func withoutMoments(e disdel.Estimate) disdel.Bytes {
	moments := float64(e.Parameters - e.Weights) // and gradients
	return scaled(e.Total, 1-min(1, moments/float64(max(1, e.Training+e.Package+e.Shard+e.Model))))
}

// fitted plans a job with each way to save memory. short is the plan without: it needs too much. The reasons name every
// way that was turned down.
func fitted(in PlanInput, short *planBuilder) (disdel.Plan, bool) {
	limit, who := short.ceiling()
	needs := func(what string, n disdel.Bytes) string {
		return fmt.Sprintf("fit: %s: a train action needs %v, and %s is %v", what, n.Beside(limit), who, limit.Beside(n))
	}
	why := []string{needs(way{memory: in.Job.Training.StepMemory}.String(), short.train.Total)}
	rows := in.Job.Training.WorkerBatch(max(1, in.Job.Distribution.Workers, short.plan.Workers))
	for w := range short.stepMemories(rows, limit) {
		if w.minimum > limit {
			why = append(why, needs(w.String(), w.minimum))
			continue
		}
		try := in
		w.apply(&try.Job)
		b, err := buildPlan(try, false)
		if err == nil {
			b.plan.Reasons = append(b.plan.Reasons, why...)
			b.because("fit: %s: a train action needs %v of %v; a step computes %.2g %% more", w, b.train.Total, limit,
				100*b.train.Extra)
			if w.norms {
				b.because("fit: batch norm sees the rows of a micro-batch, not those of the batch")
			}
			if w.disk {
				b.because("fit: the action needs a disk with room for its rows, and reads those of each batch from it")
			}
			if w.memory.StateFormat.Paged() {
				b.because("fit: the action needs a disk with room for the moments, which every step reads and writes")
			}
			if w.rounds {
				b.because("fit: moments are rounded to 8 bits, which changes the results a little")
			}
			return b.plan, true
		}
		if b.train.Total <= limit { // something else does not fit, for example the pool
			why = append(why, fmt.Sprintf("fit: %s: %s", w, disdel.AsError(err).Msg))
			continue
		}
		why = append(why, needs(w.String(), b.train.Total))
	}
	return disdel.Plan{}, false
}

// ways yields the ways to save memory with a batch, the best first, that may reach a limit; 0: there is none.
func (s search) ways(batch int, limit disdel.Bytes) iter.Seq[way] {
	if s.asked.Training.Fit == disdel.FitNone {
		return func(func(way) bool) {}
	}
	b := planBuilder{PlanInput: s.in, microBatch: s.in.Job.Training.MicroBatch}
	workers := max(1, s.in.Job.Distribution.Workers)
	return b.stepMemories(s.in.Job.Training.Resized(batch).WorkerBatch(workers), limit)
}

// fitted is the point of the best way to save memory with which there is one.
func (s search) fitted(batch int, find func(search) *FitPoint) *FitPoint {
	for w := range s.ways(batch, s.limit) {
		try := s
		w.apply(&try.in.Job)
		if p := find(try); p != nil {
			return p
		}
	}
	return nil
}

// fittedLargest plans the largest batch that some way to save memory fits, with the fewest workers. Moments are rounded
// only if nothing else fits.
func (s search) fittedLargest() (best *FitPoint) {
	for w := range s.ways(s.in.Job.Training.JobBatch(), s.limit) {
		if w.rounds && best != nil {
			break
		}
		try := s
		w.apply(&try.in.Job)
		if p := try.fewest(try.largest(try.maximum)); p != nil && (best == nil || p.BatchSize > best.BatchSize) {
			best = p
		}
	}
	return best
}

// fittedFewest plans a batch with the fewest workers with which some way to save memory fits it.
func (s search) fittedFewest(batch int) *FitPoint {
	return s.fitted(batch, func(s search) *FitPoint { return s.fewest(batch) })
}

// evaluation estimates an evaluate action. Where a copy of the weights does not fit beside the engine, the action reads
// them in blocks. Where that does not suffice, it computes fewer rows at a time than the training, and then one slice
// of the network after the other.
func (b *planBuilder) evaluation() disdel.Estimate {
	in := b.input(b.Data.HeldOut, 1)
	e := b.given(b.Estimator.Evaluate(in))
	limit, _ := b.ceiling()
	if !b.least && e.Total <= limit || !b.Estimator.Default(b.Job.Training.Backend) {
		return e
	}
	in.InBlocks = true
	rows := max(1, min(in.BatchSize, b.Data.HeldOut))
	whole := func(n int) disdel.Estimate {
		in.BatchSize = n
		return b.given(b.Estimator.Evaluate(in))
	}
	least := whole(1)
	if b.least || least.Total > limit {
		return b.evaluationByLayers(least, limit)
	}
	return fillLimit(rows, limit, least, whole)
}

// evaluationByLayers estimates an evaluate action that computes one slice of the network after the other, with as many
// rows as fit. It returns whole, the estimate of an action with all weights, if slices do not need less.
func (b *planBuilder) evaluationByLayers(whole disdel.Estimate, limit disdel.Bytes) disdel.Estimate {
	whole.Rows = 1
	if whole.Method == disdel.MemoryGiven {
		return whole
	}
	byLayers := func(n int) disdel.Estimate {
		in := b.input(b.Data.HeldOut, 1)
		in.BatchSize = n
		e, err := b.Estimator.EvaluateByLayers(in)
		if err != nil { // the network is one piece
			return whole
		}
		return b.given(e)
	}
	least := byLayers(1)
	if least.Rows = 1; least.Total >= whole.Total {
		return whole
	}
	if b.least || least.Total > limit {
		return least
	}
	rows := max(1, b.Data.HeldOut) // more than a batch of the training: the action reads all weights for each batch
	e := fillLimit(rows, limit, least, byLayers)
	e.Rows = cmp.Or(e.Rows, rows)
	return e
}

// fillLimit is the estimate of an evaluation with the most rows at a time that fit a limit, given that of one row.
func fillLimit(rows int, limit disdel.Bytes, one disdel.Estimate, of func(rows int) disdel.Estimate) disdel.Estimate {
	one.Rows = 1
	for n := rows; n > 1; n /= 2 {
		if e := of(n); e.Total <= limit {
			if n < rows {
				e.Rows = n
			}
			return e
		}
	}
	return one
}

// tooBigToEvaluate says that no way to train helps, since an evaluation does not fit; "" if it fits.
func (b *planBuilder) tooBigToEvaluate(limit disdel.Bytes) string {
	if !b.Suggest || b.Data.HeldOut == 0 {
		return ""
	}
	e := b.evaluation()
	switch {
	case e.Total <= limit:
		return ""
	case e.ByLayers:
		return fmt.Sprintf(". An evaluation needs %v, although it computes one part of the network after the other", e.Total)
	}
	return fmt.Sprintf(". An evaluation needs %v, since it has all weights of the network in one action", e.Total)
}

// leastOthers is what the largest action needs that does not train, so that a raised limit holds for all actions.
func (b *planBuilder) leastOthers() disdel.Bytes {
	return max(b.Estimator.Aggregate(b.input(0, 1)).Total, b.evaluation().Total)
}
