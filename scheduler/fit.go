package scheduler

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
)

// Fit is how a job fits actions of at most Limit. A nil point does not exist.
type Fit struct {
	Limit       disdel.Bytes `json:"limitBytes"`
	Given       *FitPoint    `json:"given,omitempty"`       // the job's batch with the fewest workers
	SameWorkers *FitPoint    `json:"sameWorkers,omitempty"` // the largest batch with the job's number of workers
	// The largest batch that fits as it is, or a larger one of the job's that fits by saving memory; the fewest workers.
	Largest *FitPoint `json:"largest,omitempty"`
	// The least limit that every action of the job fits with any number of workers.
	LeastGiven disdel.Bytes `json:"leastGivenBytes"` // with the job's batch
	Least      disdel.Bytes `json:"leastBytes"`      // with one row a batch
	LeastTask  disdel.Task  `json:"leastTask"`       // the task that needs Least
}

// FitPoint is one batch and number of workers, and their plan.
type FitPoint struct {
	BatchSize int         `json:"batchSize"`
	Workers   int         `json:"workers"`
	Plan      disdel.Plan `json:"plan"`
	// How steps save memory, in the form of --set; empty if they need not.
	Set []string `json:"set,omitempty"`
}

// Fits tells whether the job fits the limit at all.
func (f Fit) Fits() bool { return f.Largest != nil }

// FitMemory finds the batches and numbers of workers with which the job's actions fit a limit, by bisection over
// NewPlan: an action's need never falls with a larger batch, and never grows with the number of workers. That number
// is at most the platform's concurrency, and every shard has a whole batch. A batch has at most a tenth of the training
// rows, or the job's own size if that is more. workers is the job's own; 0: it has none.
func FitMemory(in PlanInput, limit disdel.Bytes, workers int) Fit {
	s := newSearch(in, limit)
	f := Fit{Limit: limit}
	f.LeastGiven, _ = s.minimum(in.Job.Training.JobBatch())
	f.Least, f.LeastTask = s.minimum(1)
	f.Given = s.fewest(in.Job.Training.JobBatch())
	if f.Given == nil {
		f.Given = s.fittedFewest(in.Job.Training.JobBatch())
	}
	f.SameWorkers = s.point(s.largest(func(int) int { return workers }), workers)
	f.Largest = s.fewest(s.largest(s.maximum))
	switch {
	case f.Largest == nil:
		f.Largest = s.fittedLargest()
	case f.Given != nil && f.Given.BatchSize > f.Largest.BatchSize:
		f.Largest = f.Given
	}
	return f
}

// search plans a job repeatedly under a limit.
type search struct {
	in    PlanInput
	limit disdel.Bytes
	asked disdel.Job // changes are relative to it

	// What an action of a task needed in fact, in multiples of its estimate; 0: as estimated.
	task  disdel.Task
	times float64
}

func newSearch(in PlanInput, limit disdel.Bytes) search {
	asked := in.Job
	in.Job.Training.Fit = disdel.FitNone // the search compares each way by itself
	return search{in: in, limit: limit, asked: asked}
}

// corrected returns the search with a corrected estimate: the task's actions need so many bytes in the unchanged job.
func (s search) corrected(task disdel.Task, need disdel.Bytes, workers int) search {
	in := WithoutLimits(s.in)
	in.Job.Distribution.Workers = workers
	p, err := NewPlan(in)
	if a, ok := p.Action(task); err == nil && ok && a.Estimate.Total > 0 {
		s.task, s.times = task, max(1, float64(need)/float64(a.Estimate.Total))
	}
	return s
}

// needs returns the memory that an action needs: its estimate, corrected if it is known to be too low.
func (s search) needs(a disdel.ActionPlan) disdel.Bytes {
	if a.Task == s.task && s.times > 1 {
		return scaled(a.Estimate.Total, s.times)
	}
	return a.Estimate.Total
}

// maximum returns the largest number of workers for a batch.
func (s search) maximum(batch int) int {
	n := s.in.Job.Training.Resized(batch).MostWorkers(s.in.Data.Train)
	if s.in.stages() > 1 { // more replicas need more actions at once, and none of them needs less
		return min(n, max(1, s.asked.Distribution.Workers))
	}
	if c := s.in.Platform.Concurrent; c > 0 {
		n = min(n, c)
	}
	return n
}

// point plans a batch with a number of workers; nil if some action does not fit.
func (s search) point(batch, workers int) *FitPoint {
	in := s.in
	in.Job.Training, in.Job.Distribution.Workers = in.Job.Training.Resized(batch), workers
	if batch < 1 || workers < 1 || in.Job.Training.WorkerBatch(workers) > s.in.Data.Train/workers {
		return nil
	}
	in.Job.Resources.Memory, in.Job.Resources.MaxMemory, in.Suggest = 0, s.limit, false
	p, err := NewPlan(in)
	if err != nil {
		return nil
	}
	if maximum, _ := largestLimit(p); maximum > s.limit { // the platform's minimum may be larger
		return nil
	}
	if slices.ContainsFunc(p.Actions, func(a disdel.ActionPlan) bool { return s.needs(a) > s.limit }) {
		return nil
	}
	w := way{memory: in.Job.Training.StepMemory}
	if n := in.stages(); n != max(1, s.asked.Distribution.Stages) {
		w.stages = n
	}
	w.disk = p.OnDisk && s.asked.Data.Keep != disdel.KeepDisk
	return &FitPoint{BatchSize: batch, Workers: workers, Plan: p, Set: w.sets()}
}

// largestLimit returns the largest memory limit of a plan's actions, and that action's task.
func largestLimit(p disdel.Plan) (maximum disdel.Bytes, task disdel.Task) {
	for _, a := range p.Actions {
		if a.Limits.Memory > maximum {
			maximum, task = a.Limits.Memory, a.Task
		}
	}
	return maximum, task
}

// leastSteps is how many batches the training rows have at least, unless the job's own batch is larger. An epoch of
// one step trains badly: much memory alone is no reason for it.
const leastSteps = 10

// largest returns the largest batch that fits with the given number of workers; 0 if none does.
func (s search) largest(workers func(batch int) int) int {
	maximum := max(s.in.Data.Train/leastSteps, min(s.in.Job.Training.JobBatch(), s.in.Data.Train))
	return sort.Search(maximum, func(i int) bool { return s.point(i+1, workers(i+1)) == nil })
}

// fewest plans a batch with the fewest workers with which it fits; nil if it never fits.
func (s search) fewest(batch int) *FitPoint {
	maximum := s.maximum(batch)
	n := 1 + sort.Search(maximum, func(i int) bool { return s.point(batch, i+1) != nil })
	if n > maximum {
		return nil
	}
	return s.point(batch, n)
}

// minimum returns the largest limit of the actions that a batch needs with as many workers as it may have.
func (s search) minimum(batch int) (minimum disdel.Bytes, task disdel.Task) {
	in := WithoutLimits(s.in)
	in.least = true
	in.Job.Training, in.Job.Distribution.Workers = in.Job.Training.Resized(batch), s.maximum(batch)
	try := func() {
		p, err := NewPlan(in)
		if n, bottleneck := largestLimit(p); err == nil && (task == "" || n < minimum) {
			minimum, task = n, bottleneck
		}
	}
	try()
	whole := in
	for w := range s.ways(batch, 0) {
		in = whole
		w.apply(&in.Job)
		if w.stages > 0 {
			in.Job.Distribution.Workers = max(1, s.asked.Distribution.Workers)
		}
		try()
	}
	return minimum, task
}

// leastUnchanged is the least limit that saving memory makes the job fit with its own batch and workers, and by what;
// "" if nothing does.
func (s search) leastUnchanged() (least disdel.Bytes, by string) {
	batch, workers := s.in.Job.Training.JobBatch(), max(1, s.in.Job.Distribution.Workers)
	rows := s.in.Job.Training.WorkerBatch(workers)
	for w := range s.ways(batch, 0) {
		part := w.memory.MicroBatch
		if w.stages > 0 && part != 1 && part != rows && s.asked.Training.MicroBatch == 0 {
			continue // it needs as much as one row
		}
		in := WithoutMemoryLimits(s.in)
		in.least, in.Job.Distribution.Workers = true, workers
		w.apply(&in.Job)
		p, err := NewPlan(in)
		if n, _ := largestLimit(p); err == nil && (by == "" || n < least) {
			least, by = n, p.SavedBy()
		}
	}
	return least, by
}

// Smaller is a limit below a job's own, and what makes the job fit it.
type Smaller struct {
	Limit   disdel.Bytes `json:"limitBytes"`
	Whose   string       `json:"whose,omitempty"` // whose ceiling this is; "": a smaller size that saves money
	Changes []Change     `json:"changes"`         // each alone is enough
	// If there is no change: the least limit that one row a batch, plain gradient descent, bf16 and many workers reach,
	// and its task.
	Least     disdel.Bytes `json:"leastBytes,omitempty"`
	LeastTask disdel.Task  `json:"leastTask,omitempty"`
}

// Change is a change of the job file that was planned and fits.
type Change struct {
	Set      []string         `json:"set"` // in the form of --set
	Estimate disdel.Bytes     `json:"estimateBytes"`
	Limit    disdel.Bytes     `json:"limitBytes"` // of a train action
	Forecast *disdel.Forecast `json:"forecast,omitempty"`
}

// plainRate is the learning rate of a change to plain gradient descent. The user has to find one that suits the
// network: rates of Adam do not carry over.
const plainRate = 0.01

// SmallerLimits finds changes for the next smaller limits than those of the plan p of in: the job's ceiling if p is
// above it (p was made without it), then powers of two down to the platform's minimum, three at most. Every change is
// planned again under its limit.
func SmallerLimits(in PlanInput, p disdel.Plan) []Smaller {
	current, _ := largestLimit(p)
	ceiling, whose := MemoryCeiling(in)
	var out []Smaller
	if ceiling < current {
		out = append(out, Smaller{Limit: ceiling, Whose: whose})
		current = ceiling
	}
	power := disdel.MB
	for power*2 < current {
		power *= 2
	}
	for ; power >= max(in.Platform.MinMemory, disdel.MB) && len(out) < 3; power /= 2 {
		out = append(out, Smaller{Limit: power})
	}
	for i := range out {
		s := newSearch(WithoutMemoryLimits(in), out[i].Limit)
		out[i].Changes = s.changes(p.Workers)
		if len(out[i].Changes) == 0 {
			out[i].Least, out[i].LeastTask = s.leastOfAll()
		}
		if in.Job.Resources.Memory > 0 {
			out[i].pin()
		}
	}
	return out
}

// KilledAction is an action that was killed for memory, and what it would need.
type KilledAction struct {
	Task    disdel.Task
	Need    disdel.Bytes // likely to be enough with the same batch and workers
	Batch   int          // of one worker
	Workers int          // of the job
}

// search looks for changes of the job of in that keep such actions within a limit.
func (k KilledAction) search(in PlanInput, limit disdel.Bytes) search {
	s := newSearch(WithoutMemoryLimits(in), limit)
	s.in.Decided = true // the job has run: its policy decides nothing again
	if k.Batch > 0 {
		s.in.Job.Training = s.in.Job.Training.WithWorkerBatch(k.Batch, k.Workers)
	}
	return s.corrected(k.Task, k.Need, k.Workers)
}

// FitKilled finds changes of the job of in that keep an action like a killed one within a limit in bytes. Such an
// action needs more than its estimate. Every change is planned; the result is empty if nothing fits.
func FitKilled(in PlanInput, k KilledAction, limit disdel.Bytes) []Change {
	return k.search(in, limit).changes(max(1, k.Workers))
}

// pin adds the limit to every change of a job whose file gives one.
func (t Smaller) pin() {
	for i := range t.Changes {
		c := &t.Changes[i]
		c.Set, c.Limit = append(c.Set, fmt.Sprintf("resources.memory=%dMB", t.Limit.MB())), t.Limit
	}
}

// plain is the search of the same job with plain gradient descent, which stores nothing per weight.
func (s search) plain() search {
	s.in.Job.Training.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: plainRate}}
	s.in.Job.Training.StateFormat = "" // there are no moments
	return s
}

// shortens tells whether bf16 saves memory on the job's engine.
func (s search) shortens() bool {
	t := s.in.Job.Training
	return t.Precision.Plain() && s.in.Estimator.Saves(estimator.Input{
		Graph: s.in.Graph, BatchSize: t.JobBatch(), Optimizer: t.Optimizer, ClipNorm: t.ClipNorm, Exact: t.Exact,
		Backend: t.Backend,
	}, disdel.PrecisionBF16)
}

// short is the search of the same job in bf16.
func (s search) short() search {
	s.in.Job.Training.Precision = disdel.PrecisionBF16
	return s
}

// others returns the same job in bf16 and with plain gradient descent, if these need less memory; all adds both at
// once.
func (s search) others(all bool) (out []search) {
	shortens, keeps := s.shortens(), s.in.Job.Training.Optimizer.Moments() > 0
	if shortens {
		out = append(out, s.short())
	}
	if keeps {
		out = append(out, s.plain())
	}
	if all && shortens && keeps {
		out = append(out, s.plain().short())
	}
	return out
}

// leastOfAll returns the least limit that any change reaches, and its task.
func (s search) leastOfAll() (disdel.Bytes, disdel.Task) {
	minimum, task := s.plain().minimum(1)
	if s.shortens() {
		if n, whose := s.plain().short().minimum(1); n < minimum {
			return n, whose
		}
	}
	return minimum, task
}

// changes is empty if the job fits unchanged. Else it returns a smaller batch, more workers, bf16 and plain gradient
// descent, each alone; if none of them is enough, combinations.
func (s search) changes(workers int) []Change {
	batch := s.in.Job.Training.JobBatch()
	if p := s.point(batch, workers); p != nil {
		return s.described(p) // only the job file's own limit is above it
	}
	same := func(int) int { return workers }
	alone := s.described(s.fitted(batch, func(s search) *FitPoint { return s.point(batch, workers) }),
		s.smallerBatch(same, workers), s.fewest(batch))
	for _, o := range s.others(false) {
		alone = append(alone, o.described(o.point(batch, workers))...)
	}
	if len(alone) > 0 {
		return alone
	}
	if both := s.described(s.fewestRows()); len(both) > 0 {
		return both
	}
	for _, points := range []func(search) *FitPoint{
		func(o search) *FitPoint { return o.smallerBatch(same, workers) }, search.fewestRows,
	} {
		for _, o := range s.others(true) {
			if less := o.described(points(o)); len(less) > 0 {
				return less
			}
		}
	}
	return nil
}

// fewestRows is the largest batch, up to the job's, that fits with any number of workers, with the fewest of them.
func (s search) fewestRows() *FitPoint {
	return s.fewest(min(s.in.Job.Training.JobBatch(), s.largest(s.maximum)))
}

func (s search) smallerBatch(by func(int) int, workers int) *FitPoint {
	return s.point(min(s.in.Job.Training.JobBatch(), s.largest(by)), workers)
}

// described writes points as changes of the original job.
func (s search) described(points ...*FitPoint) []Change {
	var out []Change
	for _, p := range points {
		if p == nil {
			continue
		}
		train, _ := p.Plan.Action(disdel.TaskTrain)
		out = append(out, Change{
			Set: s.sets(s.asked, p), Estimate: train.Estimate.Expected(), Limit: train.Limits.Memory,
			Forecast: p.Plan.Forecast,
		})
	}
	return out
}

func (s search) sets(job disdel.Job, p *FitPoint) []string {
	var out []string
	if p.BatchSize != job.Training.JobBatch() {
		out = append(out, fmt.Sprintf("%s=%d", job.Training.BatchField(), p.BatchSize))
	}
	if p.Workers != job.Distribution.Workers {
		out = append(out, fmt.Sprintf("distribution.workers=%d", p.Workers))
	}
	if o := s.in.Job.Training.Optimizer; o.Name() != job.Training.Optimizer.Name() ||
		o.Moments() != job.Training.Optimizer.Moments() {
		out = append(out, fmt.Sprintf("training.optimizer={sgd: {learningRate: %g}}", o.SGD.LearningRate))
	}
	if p := s.in.Job.Training.Precision; !p.Same(job.Training.Precision) {
		out = append(out, fmt.Sprintf("training.precision=%s", p))
	}
	if p.Plan.StepMemory != job.Training.StepMemory || p.Plan.OnDisk != (job.Data.Keep == disdel.KeepDisk) {
		out = append(out, p.Set...)
	}
	if job.Training.StateFormat != "" && p.Plan.StepMemory.StateFormat == "" { // there are no moments any more
		out = append(out, "training.optimizerState=float32")
	}
	return out
}

// roomForPython is the hint for a limit that Python and a program's packages nearly fill alone; "" for other jobs.
func (b *planBuilder) roomForPython(needs, limit disdel.Bytes) string {
	c := b.Graph.Custom()
	if c == nil || c.Python == nil || c.Python.Floor < limit/2 {
		return ""
	}
	return fmt.Sprintf("more memory for actions, on the embedded platform --action-memory %dMB: Python with the "+
		"program's packages takes %v before it computes", b.limit(needs).MB(), c.Python.Floor)
}

// lessWork returns a change of the job that makes every action fit a limit, and the hint for it. needs is what the job
// needs as it is. Like disdel estimate --max-memory it plans the change, so that the hint never names one that does not
// help.
func (b *planBuilder) lessWork(needs, limit disdel.Bytes) (sets []string, hint string) {
	s := newSearch(WithoutMemoryLimits(b.PlanInput), limit)
	changes := s.changes(max(1, b.Job.Distribution.Workers))
	if len(changes) == 0 {
		if set := b.inStages(limit); set != "" {
			return []string{set}, fmt.Sprintf("layers on several actions: --set %s", set)
		}
		minimum, whose := s.leastOfAll()
		saved := ""
		if least, by := s.leastUnchanged(); by != "" && least < needs {
			saved = fmt.Sprintf(", %d MB by %s", least.MB(), by)
		}
		return nil, fmt.Sprintf("a smaller network: the job needs %d MB as it is%s, and its %s action %d MB even with one "+
			"row a batch and the optimiser and precision that need least", needs.MB(), saved, whose, minimum.MB())
	}
	sets = changes[0].Set
	return sets, fmt.Sprintf("less work: --set '%s'; disdel estimate FILE --max-memory %dMB shows more ways",
		strings.Join(sets, "' --set '"), limit/disdel.MB)
}
