package scheduler

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
)

// stages is the number of actions that train one network together.
func (in *PlanInput) stages() int { return max(1, in.Job.Distribution.Stages) }

// withStages fills in what a job with stages does not say: one replica, and micro-batches, without which the stages
// would wait for each other.
func (in PlanInput) withStages() PlanInput {
	d, t := &in.Job.Distribution, &in.Job.Training
	if in.stages() == 1 {
		return in
	}
	d.Workers = max(1, d.Workers)
	if batch := t.WorkerBatch(d.Workers); t.MicroBatch == 0 && batch > 1 {
		t.MicroBatch = microBatch(batch, in.stages())
	}
	return in
}

// Without training.microBatch a stage waits for at most about a fifth of a step: GPipe's bubble is
// (stages-1)/(parts+stages-1). Kernels compute vectors of rows.
const (
	partsPerStage = 4
	vectorRows    = 16
)

func microBatch(batch, stages int) int {
	rows := (batch + partsPerStage*stages - 1) / (partsPerStage * stages)
	return min(batch, (rows+vectorRows-1)/vectorRows*vectorRows)
}

// checkStages refuses what stages cannot train, with all faults at once.
func (b *planBuilder) checkStages() error {
	n := b.stages()
	if n == 1 {
		return nil
	}
	cuts := b.Graph.Cuts()
	if n-1 <= len(cuts) {
		return nil
	}
	e := &disdel.Error{Kind: disdel.Invalid, Op: "plan job", Job: b.ID, Path: "distribution.stages"}
	switch {
	case len(cuts) == 0 && b.Graph.HasFrozen():
		e.Msg = fmt.Sprintf("distribution.stages: %s cannot be cut. Each stage needs layers that are trained", b.Graph.Name)
		e.Hint = "freeze fewer layers (model.init.freeze), use adapters (model.lora), or leave distribution.stages out"
	case len(cuts) == 0:
		e.Msg = fmt.Sprintf("distribution.stages: %s cannot be cut. Stages train chains of layers and residual blocks of "+
			"images or of tokens; networks of sparse rows or of a program are one piece", b.Graph.Name)
		e.Hint = "leave distribution.stages out"
	default:
		e.Msg = fmt.Sprintf("distribution.stages: %s has at most %d stages, %d were asked for. Residual blocks are not cut",
			b.Graph.Name, len(cuts)+1, n)
		e.Hint = fmt.Sprintf("--set distribution.stages=%d", len(cuts)+1)
		e.Changes = [][]string{{fmt.Sprintf("distribution.stages=%d", len(cuts)+1)}}
	}
	return e
}

// estimateStages estimates the action of the largest stage.
func (b *planBuilder) estimateStages(in estimator.Input) (largest disdel.Estimate) {
	for i, s := range b.cut(in) {
		part, err := b.Graph.Sliced(s.From, s.To)
		if err != nil { // cut takes only what can be cut
			return b.Estimator.Train(in)
		}
		in := in
		in.Graph = part
		e := b.Estimator.Train(in)
		b.parts[i].Memory = e.Total
		if e.Total > largest.Total {
			largest = e
		}
	}
	largest.Extra += secondForward
	return largest
}

// cut chooses the stages, once a plan: those with the least memory of the largest one, by what the whole network's
// plan says of each layer.
func (b *planBuilder) cut(in estimator.Input) []disdel.PlannedStage {
	if b.parts != nil {
		return b.parts
	}
	need := make([]float64, len(b.Graph.Nodes))
	for i, l := range b.Estimator.Train(in).Layers {
		if i+1 < len(need) {
			need[i+1] = float64(l.ParameterBytes + l.ActivationBytes)
		}
	}
	ends := cutEvenly(b.Graph.Cuts(), need, b.stages())
	for i := range len(ends) - 1 {
		s := disdel.PlannedStage{From: ends[i], To: ends[i+1]}
		s.First, s.Last = b.Graph.Nodes[s.From].Name, b.Graph.Nodes[s.To-1].Name
		if part, err := b.Graph.Sliced(s.From, s.To); err == nil {
			count := part.Count()
			s.Weights = 4 * disdel.Bytes(count.Trainable+count.NonTrainable)
			if s.To < len(b.Graph.Nodes) {
				s.Passes = 4 * disdel.Bytes(part.Output().Len())
			}
		}
		b.parts = append(b.parts, s)
	}
	return b.parts
}

// cutEvenly returns the ends of n parts of nodes 1 and up, 1 and the number of nodes among them, so that the largest
// sum of need is the least. Dynamic programming over the cuts.
func cutEvenly(cuts []int, need []float64, n int) []int {
	at := append([]int{1}, append(cuts[:len(cuts):len(cuts)], len(need))...)
	sums := make([]float64, len(need)+1)
	for i, v := range need {
		sums[i+1] = sums[i] + v
	}
	last := len(at) - 1
	best := make([][]float64, n+1) // by parts and end: the largest part
	from := make([][]int, n+1)
	for k := range best {
		best[k], from[k] = make([]float64, len(at)), make([]int, len(at))
		for e := range best[k] {
			best[k][e] = math.Inf(1)
		}
	}
	best[0][0] = 0
	for k := 1; k <= n; k++ {
		for end := k; end <= last; end++ {
			for begin := k - 1; begin < end; begin++ {
				v := max(best[k-1][begin], sums[at[end]]-sums[at[begin]])
				if v < best[k][end] {
					best[k][end], from[k][end] = v, begin
				}
			}
		}
	}
	out := make([]int, n+1)
	for k, end := n, last; k >= 0; k-- {
		out[k] = at[end]
		end = from[k][end]
	}
	return out
}

// replicate gives each stage of each replica an action, with the rows of its replica.
func (b *planBuilder) replicate() error {
	n := b.stages()
	if n == 1 {
		return nil
	}
	b.plan.Stages = b.parts
	b.plan.Workers *= n
	rows := b.plan.Shards
	b.plan.Shards = nil
	for _, r := range rows {
		for range n {
			b.plan.Shards = append(b.plan.Shards, r)
		}
	}
	var parts []string
	for _, s := range b.parts {
		parts = append(parts, fmt.Sprintf("%s to %s (%v)", s.First, s.Last, s.Memory))
	}
	b.because("stages: %d actions train one network, in micro-batches of %d rows: %s", n, b.plan.StepMemory.MicroBatch,
		strings.Join(parts, ", "))
	return nil
}

// joined puts the updates of each replica's stages together before the tree averages the replicas.
func joined(tree []disdel.Level, replicas, stages int) []disdel.Level {
	first := disdel.Level{Height: 1, Join: true}
	for r := range replicas {
		var members []int
		for s := range stages {
			members = append(members, r*stages+s)
		}
		first.Clusters = append(first.Clusters, members)
	}
	out := []disdel.Level{first}
	if replicas == 1 {
		return out
	}
	for _, l := range tree {
		l.Height++
		out = append(out, l)
	}
	return out
}

// mostStages bounds the search for stages that fit, and fineStages the numbers that are tried one by one.
const mostStages, fineStages = 32, 8

// numbersOfStages are the numbers of stages to try, ascending: each small one, then every fourth.
func numbersOfStages(fewest, most int) (out []int) {
	for n := fewest; n <= most; n++ {
		if n <= fineStages || n%4 == 0 || n == most {
			out = append(out, n)
		}
	}
	return out
}

// inStages is the change that spreads the layers over the fewest actions that fit a limit; "" if none does, or if the
// job has what stages do not have.
func (b *planBuilder) inStages(limit disdel.Bytes) string {
	if b.Job.Distribution.Stages > 1 || !b.trainsInStages() {
		return ""
	}
	in := WithoutMemoryLimits(b.PlanInput)
	in.Platform.Pool, in.Job.Resources.MaxMemory = b.Platform.Pool, limit
	for _, n := range numbersOfStages(2, min(mostStages, len(b.Graph.Cuts())+1)) {
		in.Job.Distribution.Stages = n
		if _, err := NewPlan(in); err == nil {
			return fmt.Sprintf("distribution.stages=%d", n)
		}
	}
	return ""
}

// trainsInStages tells whether a job file may say stages beside what it says; see the rules of job files.
func (b *planBuilder) trainsInStages() bool {
	d, t := b.Job.Distribution, b.Job.Training
	return b.Estimator.Default(t.Backend) && t.Precision.Plain() &&
		(t.EarlyStop == nil || t.EarlyStop.Metric != disdel.MetricLoss) && d.Exchange == nil &&
		(d.Policy == "" || d.Policy == disdel.PolicyStatic) && d.Missing.Policy != disdel.MissingProceed &&
		(d.Aggregation.Wire == "" || d.Aggregation.Wire == disdel.WireFloat32) &&
		d.Aggregation.OptimizerState != disdel.StateAverage && d.Aggregation.Shards <= 1
}

// secondForward is what a step in stages computes more: each stage computes forward twice, a third of a step.
const secondForward = 1.0 / 3

// mayFitInStages tells whether stages could fit a limit; 0: there is none. Each stage has the program and its rows.
// An evaluation must fit, too. That costs few estimates, stages cost dozens.
func (b *planBuilder) mayFitInStages(limit disdel.Bytes) bool {
	return limit == 0 || (b.train.Package+b.train.Shard <= limit || b.mayKeepOnDisk() && b.train.Package <= limit) &&
		b.evaluation().Total <= limit
}

// stageWays yields the ways to train the network in stages, with each format of moments. A job file that gives their
// number keeps it. Ways are estimated only if a plan is made. Fewer stages come first, since all actions run at once.
// For each number the plan's own micro-batches come first, then smaller ones. The whole batch comes last: it needs no
// sum of gradients, but the stages wait for each other.
func (b *planBuilder) stageWays(states []disdel.StateFormat, rows int, limit disdel.Bytes, yield func(way) bool) {
	given := b.Job.Distribution.Stages
	if given == 1 || !b.trainsInStages() {
		return
	}
	fewest, most := 2, min(mostStages, len(b.Graph.Cuts())+1)
	if given > 1 {
		fewest, most = given, given
	}
	for _, state := range states {
		ways := slices.DeleteFunc(b.waysOfStages(state, limit), func(w way) bool {
			return !b.stagesMayReach(w, most, rows, limit)
		})
		for _, n := range numbersOfStages(fewest, most) {
			for _, w := range ways {
				if !b.waysOfNumber(w, n, rows, yield) {
					return
				}
			}
		}
	}
}

// waysOfNumber yields a way with a number of stages and each size of micro-batches. It tells whether to go on.
func (b *planBuilder) waysOfNumber(w way, n, rows int, yield func(way) bool) bool {
	state := b.Job.Training.StateFormat
	for _, part := range stageParts(b.microBatch, rows) {
		if b.microBatch == 0 && part < rows && part >= microBatch(rows, n) {
			continue // the plan's own have as few rows
		}
		w.stages, w.memory.MicroBatch = n, part
		w.norms, w.rounds = b.hasNorms(), w.memory.StateFormat != state && w.memory.StateFormat.Short()
		if !yield(w) {
			return false
		}
	}
	return true
}

// waysOfStages are what each stage may do beside micro-batches, with a format of moments: rows in memory or on disk,
// and activations kept or computed again. Without a limit only those that need least count.
func (b *planBuilder) waysOfStages(state disdel.StateFormat, limit disdel.Bytes) (out []way) {
	again, disk := []disdel.Recompute{b.Job.Training.Recompute}, []bool{false}
	if again[0] == "" {
		again = append(again, disdel.RecomputeAuto)
	}
	if b.mayKeepOnDisk() {
		if disk = append(disk, true); limit == 0 {
			disk = disk[1:]
		}
	}
	for _, d := range disk {
		for _, r := range again {
			out = append(out, way{disk: d, memory: disdel.StepMemory{Recompute: r, StateFormat: state}})
		}
	}
	return out
}

// stagesMayReach tells whether the most stages could fit a limit in a way, with micro-batches of one row or with whole
// batches. Two estimates save dozens of plans.
func (b *planBuilder) stagesMayReach(w way, most, rows int, limit disdel.Bytes) bool {
	if limit == 0 {
		return true
	}
	for _, part := range []int{1, rows} {
		if b.microBatch > 0 {
			part = b.microBatch
		}
		w.stages, w.memory.MicroBatch = most, part
		at := planBuilder{PlanInput: b.PlanInput}
		w.apply(&at.Job)
		workers := max(1, at.Job.Distribution.Workers)
		at.plan.Workers = workers
		if n := at.estimate(workers).Total; scaled(n, uneven) <= limit {
			return true
		}
	}
	return false
}

// uneven makes up for cuts with which fewer stages need a little less than more of them.
const uneven = 0.9

// stageParts are the rows of micro-batches that stages are tried with; 0 are those of withStages.
func stageParts(own, rows int) []int {
	if own > 0 {
		return []int{own}
	}
	out := []int{0}
	for part := rows / 2; part >= 1; part /= 2 {
		out = append(out, part)
	}
	return append(out, rows)
}

// apply makes a job save memory in this way.
func (w way) apply(job *disdel.Job) {
	job.Training.StepMemory = w.memory
	if w.stages > 0 {
		job.Distribution.Stages = w.stages
	}
	if w.disk {
		job.Data.Keep = disdel.KeepDisk
	}
}

// sets are the fields of a job file that say the same, in the form of --set.
func (w way) sets() []string {
	out := w.memory.Sets()
	if w.disk {
		out = append(out, "data.keep="+disdel.KeepDisk)
	}
	if w.stages > 0 {
		out = append(out, fmt.Sprintf("distribution.stages=%d", w.stages))
	}
	return out
}

// String describes the way in words, for example "2 stages and moments of 8 bits".
func (w way) String() string {
	p := disdel.Plan{StepMemory: w.memory, OnDisk: w.disk, Stages: make([]disdel.PlannedStage, w.stages)}
	return p.SavedBy()
}

// largestStage names the stage that needs the most memory; "" without stages.
func (b *planBuilder) largestStage() string {
	var largest disdel.PlannedStage
	number := 0
	for i, s := range b.parts {
		if s.Memory > largest.Memory {
			largest, number = s, i+1
		}
	}
	if number == 0 {
		return ""
	}
	return fmt.Sprintf("stage %d of %d, layers %s to %s, is the largest: ", number, len(b.parts), largest.First,
		largest.Last)
}
