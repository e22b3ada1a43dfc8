package scheduler

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/model"
)

// PlanInput is what a plan is made from.
type PlanInput struct {
	ID       disdel.JobID
	Job      disdel.Job
	Graph    *model.Graph
	Data     disdel.DataInfo
	Platform disdel.PlatformLimits
	History  []disdel.Record        // of jobs of this kind, newest first
	Past     []disdel.Record        // of jobs of any kind, newest first; nil: History
	Rate     *estimator.Rate        // of a probe; nil: none was made
	Threads  func(parallel int) int // of a train action if so many run at once; nil: unknown

	Estimator         estimator.Estimator // of memory, with the figures of the program's backends
	Processors        int                 // that the job's actions share; 0: one for each action
	Siblings          int                 // other jobs submitted with this one, that want the processors too
	ProcessorsUnknown string              // why Processors are unknown, and what helps
	PlatformReasons   []string            // sources of the platform's figures, for the plan's reasons
	Bucket            bool                // checkpoints and models go to a bucket in the network, not to a folder
	// Decided: the job's setting was decided while it ran. Its policy decides nothing, and no reason quotes its file.
	Decided bool

	timing func(estimator.TimingInput) estimator.Timing // nil: estimator.TimingOf; others are for tests
	// least: the plan is to need as little memory as it can, as under a limit
	least bool
	// looking: the plan is only compared with others, and not checked against budgets and deadlines
	comparing bool

	// Suggest adds changes that fit to the error of a job that does not fit. Finding them takes dozens of plans, so only
	// a caller whose user reads the error sets it.
	Suggest bool
}

// NewPlan plans how a job runs: workers by DiSDeL's container rule, memory from the estimate, timeouts by
// estimator.TimingOf, the aggregation tree by what an action reads. It returns OverLimit with the figures for a job
// that cannot fit.
//
// A job that needs too much memory is planned again with each way to save some (see stepMemories), the cheapest first,
// unless training.fit is none.
func NewPlan(in PlanInput) (disdel.Plan, error) {
	b, err := buildPlan(in, false)
	if b.short && in.Job.Training.Fit != disdel.FitNone {
		if p, fits := fitted(in, b); fits {
			return p, nil
		}
	}
	if b.short && in.Suggest {
		_, err = buildPlan(in, true)
	}
	if err != nil {
		return disdel.Plan{}, err
	}
	return b.plan, nil
}

// buildPlan plans a job as it is. suggest looks for changes if it does not fit.
func buildPlan(in PlanInput, suggest bool) (*planBuilder, error) {
	b := &planBuilder{PlanInput: in.withStages(), microBatch: in.Job.Training.MicroBatch}
	b.Suggest = suggest
	return b, b.build()
}

func (b *planBuilder) build() error {
	if b.timing == nil {
		b.timing = estimator.TimingOf
	}
	if err := b.checkGiven(); err != nil {
		return err
	}
	if err := b.checkNetwork(); err != nil {
		return err
	}
	b.plan.StepMemory, b.plan.OnDisk = b.Job.Training.StepMemory, b.Job.Data.Keep == disdel.KeepDisk
	for _, why := range b.PlatformReasons {
		b.because("%s", why)
	}
	for _, step := range []func() error{
		b.workers, b.replicate, b.actions, b.tree, b.rounds, b.timeouts, b.bound, b.affordable,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// CheckNetwork returns Invalid for a network that no platform can train as the job says. in needs its job, its network
// and an estimator. It has the Path of a field where it is about one.
func CheckNetwork(in PlanInput) error {
	b := &planBuilder{PlanInput: in.withStages()}
	return b.checkNetwork()
}

func (b *planBuilder) checkNetwork() error {
	if err := b.checkStages(); err != nil {
		return err
	}
	return b.checkEngine()
}

// checkEngine refuses what the job's backend does not have for the network: a layer, frozen ones, a precision, or a way
// to save memory. The first action would fail by it. The default backend has all layers, as float32.
func (b *planBuilder) checkEngine() error {
	t := b.Job.Training
	plain := t.StepMemory == (disdel.StepMemory{})
	if plain && (b.Graph.Custom() != nil || t.Precision.Plain() && b.Estimator.Default(t.Backend)) {
		return nil
	}
	_, err := b.Estimator.TrainOrRefuse(b.input(0, 1))
	return err
}

// affordable refuses a plan beyond the job's budget or deadline.
func (b *planBuilder) affordable() error {
	switch f := b.plan.Forecast; {
	case b.comparing:
		return nil
	case f != nil && f.Goal != nil && !b.Decided:
		return b.goal()
	default:
		return CheckBudget(b.ID, b.Job, b.plan)
	}
}

// Package returns the OpenWhisk package of a job.
func Package(id disdel.JobID) string { return "disdel-" + string(id) }

type planBuilder struct {
	PlanInput
	plan  disdel.Plan
	train disdel.Estimate
	parts []disdel.PlannedStage // of the network; nil: it is trained whole, or not cut yet
	// microBatch is the job file's. The job's own may be that of withStages.
	microBatch int
	short      bool // some action needs more memory than it may have
	side       int  // jobs that share the processors, including this one; 0: not computed yet
}

// because adds a reason to the plan.
func (b *planBuilder) because(format string, args ...any) {
	b.plan.Reasons = append(b.plan.Reasons, fmt.Sprintf(format, args...))
}

func (b *planBuilder) input(rows, actions int) estimator.Input {
	t, a := b.Job.Training, b.Job.Distribution.Aggregation
	threads := b.Processors / (max(actions, 1) * max(b.side, 1))
	if n := b.Job.Resources.Threads; n > 0 {
		threads = n
	}
	return estimator.Input{
		Threads: threads, Members: b.plan.Workers,
		Graph: b.Graph, BatchSize: t.WorkerBatch(b.plan.Replicas()), Rows: rows, Part: b.part(rows), Drawn: b.Data.Drawn,
		SampleBytes: b.Data.SampleSize, Resizing: b.Data.ChangeBytes(),
		OnDisk: b.Job.Data.Keep == disdel.KeepDisk,
		Epochs: t.Epochs, Optimizer: t.Optimizer, ClipNorm: t.ClipNorm, Exact: t.Exact,
		Precision: t.Precision, StepMemory: t.StepMemory, Backend: t.Backend,
		Moments: a.OptimizerState, Wire: a.Wire, Checkpoints: b.Job.Reliability.CheckpointEvery > 0,
		Exchange: b.Job.Distribution.Exchange, Bucket: b.Bucket,
	}
}

// part returns how many rows of the data set an action reads through for some rows. It is all of them if rows are
// drawn at random; a test part of its own is read by itself.
func (b *planBuilder) part(rows int) int {
	if b.Data.Drawn {
		return b.Data.Train + b.Data.HeldOut
	}
	if rows == b.Data.HeldOut {
		return rows
	}
	return max(rows, b.Data.Train)
}

func (b *planBuilder) estimate(workers int) disdel.Estimate {
	rows := (b.Data.Train + workers - 1) / workers
	if b.Job.Distribution.Exchange.Queued() { // any worker may get any batch
		rows = b.Data.Train
	}
	in := b.input(rows, workers)
	in.BatchSize = b.Job.Training.WorkerBatch(workers)
	if b.stages() > 1 {
		return b.estimateStages(in)
	}
	return b.given(b.Estimator.Train(in))
}

// ceiling returns the most memory an action of this job may get, and what sets it.
func (b *planBuilder) ceiling() (disdel.Bytes, string) {
	m, who := b.Platform.MaxMemory, "the platform's maximum"
	if r := b.Job.Resources; r.MaxMemory > 0 && r.MaxMemory < m {
		m, who = r.MaxMemory, "resources.maxMemory"
	}
	if r := b.Job.Resources; r.Memory > 0 && r.Memory <= m {
		m, who = r.Memory, "resources.memory"
	}
	if p := b.Platform.Pool; p > 0 && p < m {
		m, who = p, "the pool's memory"
	}
	return m, who
}

// workers decides how many train actions run, and their memory.
func (b *planBuilder) workers() error {
	limit, who := b.ceiling()
	b.side = b.jobsAtOnce(1)
	known, paying := b.lastSuccess(), b.workersThatPay(limit)
	switch n := b.Job.Distribution.Workers; {
	case n > 0 && b.Decided:
		b.setWorkers(n)
		b.because("workers: %d, as decided while the job ran", n)
	case n > 0:
		b.setWorkers(n)
		b.because("workers: %d, as the job file says", n)
	case paying.workers > 0:
		b.setWorkers(paying.workers)
		b.because("workers: %s", paying.why)
	case known != nil:
		b.setWorkers(known.Plan.Replicas())
		b.because("workers: %d, as in %s, the last job of this kind that succeeded", b.plan.Workers, known.ID)
	default:
		rule := estimator.ContainerRule
		if b.Job.Training.Shared() {
			rule = estimator.SharedContainerRule
		}
		n, e, steps, err := rule(limit, b.maxWorkers(), b.estimate)
		if err != nil {
			b.train = e
			return b.overMemory(e.Total, limit, who, disdel.AsError(err).Msg)
		}
		b.plan.Workers, b.train = n, e
		b.plan.Reasons = append(b.plan.Reasons, steps...)
		b.fairShare(limit)
	}
	if err := b.policy(); err != nil {
		return err
	}
	if b.train.Total > limit {
		return b.tooBig(limit, who)
	}
	if t := b.Job.Training; t.Shared() {
		b.plan.BatchSize = t.WorkerBatch(b.plan.Workers)
		b.because("batch: the job's %d rows are %d for each of %d workers", t.JobBatch(), b.plan.BatchSize, b.plan.Workers)
	}
	b.plan.Shards = Shards(b.Data.Train, b.plan.Workers)
	b.plan.HeldOut = b.Data.HeldOut
	return nil
}

// setWorkers plans with so many workers.
func (b *planBuilder) setWorkers(workers int) {
	b.side = b.jobsAtOnce(workers)
	b.plan.Workers, b.train = workers, b.estimate(workers)
}

// policy lets a job's policy decide the first number of workers, unless the job file sets it.
func (b *planBuilder) policy() error {
	p, err := PolicyOf(b.Job)
	if err != nil || b.Decided || p.Name() == disdel.PolicyStatic {
		return err
	}
	in := Input{
		Boundary: disdel.BoundaryStart, Bounds: bounds(b.Job, b.Data.Train, b.Platform, b.train.Total), Seed: Seed(b.ID, 0),
		Past: PastObservations(b.History, b.Job, b.Data),
		Now: disdel.Setting{
			Workers: b.plan.Workers, Memory: b.Job.Resources.Memory,
			FanIn: b.Job.Distribution.Aggregation.FanIn,
		},
		Goal: Goal{
			EarlyStop: b.Job.Training.Stop(), Epochs: float64(b.Job.Training.Epochs),
		},
	}
	in.Goal.Cost, _ = b.Job.Budget()
	within, _ := b.Job.TimeLimit()
	in.Goal.Deadline = disdel.Millis(within)
	if b.Job.Distribution.Workers == 0 {
		d := DecideInBounds(p, in)
		if n := d.Next.Workers; n != b.plan.Workers {
			b.setWorkers(n)
		}
		if b.plan.Reasons = append(b.plan.Reasons, d.Reasons...); d.Why != "" {
			b.because("policy %s: %s", p.Name(), d.Why)
		}
	}
	b.because("policy %s: begins with %d workers, and chooses from %d to %d (%s) at the end of every epoch, as far as "+
		"the jobs beside it leave room",
		p.Name(), b.plan.Workers, in.Bounds.Least, in.Bounds.Most, in.Bounds.MostReason)
	return nil
}

// maxWorkers keeps at least one whole batch in every shard; a row if the workers share the batch.
func (b *planBuilder) maxWorkers() int {
	return b.Job.Training.MostWorkers(b.Data.Train)
}

// lastSuccess is Algorithm 1's use of the history: it returns the newest job of this kind that succeeded on a
// platform like this one.
func (b *planBuilder) lastSuccess() *disdel.Record {
	limit, _ := b.ceiling()
	i := slices.IndexFunc(b.History, func(r disdel.Record) bool {
		return r.Status == disdel.StatusSucceeded && r.Data.Same(b.Data) && siblingsOf(&r) == b.Siblings &&
			r.Job.Distribution.Workers == 0 && b.estimate(r.Plan.Workers).Total <= limit
	})
	if i < 0 {
		return nil
	}
	return &b.History[i]
}

func (b *planBuilder) tooBig(limit disdel.Bytes, who string) error {
	e := b.train
	return b.overMemory(e.Total, limit, who, b.largestStage()+fmt.Sprintf(
		"a train action needs %v, and %s is %v (fit %v, package %v, shard %v, model %v, margin %v)",
		e.Total.Beside(limit), who, limit.Beside(e.Total), e.Training, e.Package, e.Shard, e.Model, e.Margin)+
		b.tooBigToEvaluate(limit))
}

// overMemory is the error of an action that needs more than its limit. It names what makes the action fit: a higher
// limit if the platform allows one, or less work.
func (b *planBuilder) overMemory(needs, limit disdel.Bytes, who, msg string) error {
	b.short = true
	out := &disdel.Error{Kind: disdel.OverLimit, Op: "plan job", Job: b.ID, Msg: msg}
	maximum := b.Platform.MaxMemory
	if pool := b.Platform.Pool; pool > 0 {
		maximum = min(maximum, pool)
	}
	var ways []string
	if memory := b.limit(max(needs, b.leastOthers())); memory <= maximum && strings.HasPrefix(who, "resources.") {
		out.Changes = append(out.Changes, []string{fmt.Sprintf("%s=%dMB", who, memory.MB())})
		ways = append(ways, "--set "+out.Changes[0][0])
	}
	if way := b.roomForPython(needs, limit); way != "" {
		ways = append(ways, way)
	} else if b.Suggest {
		less, way := b.lessWork(needs, limit)
		if less != nil {
			out.Changes = append(out.Changes, less)
		}
		ways = append(ways, way)
	}
	out.Hint = strings.Join(ways, ", or ")
	return out
}

// actions gives every task an action with its limit.
func (b *planBuilder) actions() error {
	limit, who := b.ceiling()
	b.plan.Platform = b.Platform
	b.plan.Platform.Processors = b.Processors
	b.plan.Platform.Busy = max(b.Platform.Busy, b.processorsWanted(b.side-1, b.plan.Workers))
	estimates := []struct {
		task disdel.Task
		e    disdel.Estimate
	}{
		{disdel.TaskTrain, b.train},
		{disdel.TaskAggregate, b.Estimator.Aggregate(b.input(0, 1))},
		{disdel.TaskEvaluate, b.evaluation()},
	}
	for _, v := range estimates {
		if v.e.Total > limit {
			return b.overMemory(v.e.Total, limit, who, fmt.Sprintf("an %s action needs %v, and %s is %v", v.task,
				v.e.Total.Beside(limit), who, limit.Beside(v.e.Total)))
		}
		memory := b.limit(v.e.Total)
		if minimum := b.Platform.MinMemory; minimum > limit {
			return &disdel.Error{
				Kind: disdel.OverLimit, Op: "plan job", Job: b.ID,
				Msg:     fmt.Sprintf("the least limit of an action on this platform is %v, and %s is %v", minimum, who, limit),
				Hint:    fmt.Sprintf("--set resources.maxMemory=%dMB, or leave it out", minimum.MB()),
				Changes: [][]string{{fmt.Sprintf("resources.maxMemory=%dMB", minimum.MB())}},
			}
		}
		minimum, id := b.learned(v.task, memoryLimit())
		if minimum := min(disdel.Bytes(minimum), limit); minimum > memory && b.Job.Resources.Memory == 0 {
			memory = minimum
			b.because("%s memory: at least %v, since less was too little for %s", v.task, memory, id)
		}
		if times, id := b.underrated(v.task, v.e.Method); b.Job.Resources.Memory == 0 {
			if more := min(b.limit(disdel.Bytes(times*float64(v.e.Total))), limit); more > memory {
				memory = more
				b.because("%s memory: %.2f times the estimate with its margin, "+
					"since that was too low for %s, a job of the same network", v.task, times, id)
			}
		}
		if own := b.Job.Resources.Memory; own > 0 && (v.task == disdel.TaskTrain || v.e.Method == disdel.MemoryGiven) {
			memory = own
		}
		if v.e.Method == disdel.MemoryGiven {
			b.because("%s memory: limit %v, as resources.memory says; the program's memory is unknown", v.task, memory)
		} else {
			b.because("%s memory: estimate %v, with its margin %v, limit %v", v.task, v.e.Expected(), v.e.Total, memory)
		}
		if v.e.InBlocks {
			b.because("%s: the action reads the weights in blocks, since a copy of them does not fit beside the engine", v.task)
		}
		if v.e.ByLayers {
			b.because("%s: the action computes one part of the network after the other, since all weights do not fit", v.task)
		}
		if v.e.Rows > 0 && !v.e.ByLayers {
			b.because("%s: the action computes %s at a time, since a batch does not fit", v.task,
				disdel.Counted(v.e.Rows, "row"))
		}
		device, err := b.device(v.task, v.e)
		if err != nil {
			return err
		}
		b.plan.Actions = append(b.plan.Actions, disdel.ActionPlan{
			Task: v.task, Name: disdel.ActionName(Package(b.ID) + "/" + string(v.task)),
			Limits: b.limits(memory, device), Estimate: v.e,
		})
	}
	return nil
}

// limit returns the smallest limit that the platform accepts for an estimate: whole megabytes, not below its minimum.
func (b *planBuilder) limit(e disdel.Bytes) disdel.Bytes {
	return max(b.Platform.MinMemory, disdel.Bytes(e.MB())*disdel.MB)
}

// tree builds the aggregation levels.
func (b *planBuilder) tree() error {
	fanIn := b.Job.Distribution.Aggregation.FanIn
	if fanIn == 0 {
		update := b.plan.Update(disdel.WireFloat32)
		fanIn = FanIn(update)
		b.because("aggregation: up to %d updates of %v an action, which reads at most %v a round", fanIn, update, readBytes)
	}
	b.plan.Levels = Sharded(Tree(b.plan.Replicas(), fanIn), b.shards())
	if n := b.stages(); n > 1 {
		b.plan.Levels = joined(b.plan.Levels, b.plan.Replicas(), n)
	}
	return nil
}

// shards is into how many parts an aggregation cuts the weights.
func (b *planBuilder) shards() int {
	asked, update := b.Job.Distribution.Aggregation.Shards, b.plan.Update(disdel.WireFloat32)
	if asked <= 1 || b.stages() > 1 {
		return 1
	}
	most := int((update + columnBytes - 1) / columnBytes)
	n := max(1, min(asked, most))
	if n < asked {
		b.because("aggregation: %s instead of %d, because weights of %v have %s", disdel.Counted(n, "shard"), asked, update,
			disdel.Counted(most, "column"))
	} else {
		b.because("aggregation: the weights in %d shards, with actions side by side, and one that joins them", n)
	}
	return n
}

// columnBytes is the part of an update that an aggregation moves at once. Shards have whole columns.
const columnBytes = 1000 * disdel.KB

// rounds divides the epochs, and decides how many train actions run at once.
func (b *planBuilder) rounds() error {
	t := b.Job.Training
	b.plan.Rounds, b.plan.Epochs, b.plan.Legs = t.Epochs, 1, 1
	if b.Job.Distribution.Sync == disdel.SyncEnd {
		b.plan.Rounds, b.plan.Epochs = 1, t.Epochs
	}
	if k := b.Job.Distribution.Sync.Every(); k > 0 {
		b.every(k)
	}
	b.atOnce()
	return b.gang()
}

// atOnce computes how many train actions run at once: as many as the pool, the platform's concurrency and an
// accelerator's memory allow.
func (b *planBuilder) atOnce() {
	train, _ := b.plan.Action(disdel.TaskTrain)
	b.plan.Parallel = b.plan.Workers
	b.devicesAtOnce(train.Limits.Device)
	before := b.plan.Parallel
	if pool := b.Platform.Pool; pool > 0 {
		b.plan.Parallel = min(b.plan.Parallel, int(pool/train.Limits.Memory))
	}
	if n := b.Platform.Concurrent; n > 0 {
		b.plan.Parallel = min(b.plan.Parallel, n)
	}
	if b.plan.Parallel < before {
		b.because("%d of %d train actions run at once: %v each in a pool of %v, %d concurrent invocations",
			b.plan.Parallel, b.plan.Workers, train.Limits.Memory, b.Platform.Pool, b.Platform.Concurrent)
	}
}

// every divides each epoch into rounds of k batches. The last round of an epoch has the rest, so no round crosses the
// end of an epoch, and it has at least k batches, as all others.
func (b *planBuilder) every(k int) {
	minimum := b.plan.Shards[len(b.plan.Shards)-1].Len()
	for _, s := range b.plan.Shards {
		minimum = min(minimum, s.Len())
	}
	rows := b.plan.WorkerBatch(&b.Job)
	batches := max(1, (minimum+rows-1)/rows)
	per := max(1, batches/k)
	b.plan.Rounds, b.plan.Batches = b.Job.Training.Epochs*per, k
	b.because("rounds: %d of %d batches an epoch, %d batches in the last of each", per, k, batches-(per-1)*k)
}

// timeouts adds the timeouts and the forecast of estimator.TimingOf.
func (b *planBuilder) timeouts() error {
	past := b.Past
	if past == nil {
		past = b.History
	}
	if b.Threads != nil {
		b.plan.Threads = b.Threads(b.plan.Parallel * b.side)
	}
	if n := b.Job.Resources.Threads; n > 0 {
		b.plan.Threads = n
		b.because("threads: %d of a train action, as the job file says", n)
	} else if b.ProcessorsUnknown != "" {
		b.because("threads: 1 of a train action: %s", b.ProcessorsUnknown)
	}
	minimum := map[disdel.Task]estimator.LeastTimeout{}
	for _, a := range b.plan.Actions {
		timeout, id := b.learned(a.Task, timeLimit())
		minimum[a.Task] = estimator.LeastTimeout{Timeout: disdel.Millis(timeout), Job: id}
	}
	t := b.timing(estimator.TimingInput{
		Past: past, Plan: b.plan, Job: b.Job, Data: b.Data, Work: b.Graph.Count().MACs, Rate: b.Rate, Least: minimum,
	})
	for i := range b.plan.Actions {
		a := &b.plan.Actions[i]
		a.Limits.Timeout = t.Timeouts[a.Task]
	}
	b.plan.TimeoutSource, b.plan.Legs, b.plan.Forecast = t.Source, max(1, t.Legs), t.Forecast
	b.plan.Reasons = append(b.plan.Reasons, t.Reasons...)
	train, _ := b.plan.Action(disdel.TaskTrain)
	b.because("timeout: %v for a train action, from %s", train.Limits.Timeout, t.Source)
	return nil
}

// bound is Eq. 6 with every action at its limits, and every leg and wave of every round at its timeout, plus as many
// evaluations: the most the job can cost.
func (b *planBuilder) bound() error {
	var memory disdel.Bytes
	var seconds, evaluations float64
	for _, a := range b.plan.Actions {
		runs := b.plan.Rounds
		if a.Task == disdel.TaskTrain {
			runs *= max(1, b.plan.Legs) * b.plan.Waves()
		}
		if a.Task == disdel.TaskEvaluate && b.plan.HeldOut > 0 {
			evaluations = float64(runs) * disdel.GBSeconds(a.Limits.Memory, a.Limits.Timeout)
		}
		memory += disdel.Bytes(b.plan.ActionCount(a.Task)) * a.Limits.Memory
		seconds += a.Limits.Timeout.Seconds() * float64(runs)
	}
	b.plan.CostGBs = math.Round((seconds*memory.Gigabytes()+evaluations)*10) / 10
	return nil
}

// Shards divides rows among workers: contiguous, every row once, sizes differing by at most one.
func Shards(rows, workers int) []disdel.RowRange {
	out := make([]disdel.RowRange, workers)
	for w := range out {
		out[w] = disdel.RowRange{Start: w * rows / workers, End: (w + 1) * rows / workers}
	}
	return out
}

// SpanOf returns which part of a worker's training a round of a plan is.
func SpanOf(job disdel.Job, p disdel.Plan, round int) disdel.TrainRange {
	stage := p.AsStage(job)
	return stage.TrainRange(round)
}

// jobsAtOnce returns how many jobs share the processors, including this one: of those submitted together, as many as
// the pool holds at once if all are of this one's size, with so many workers.
func (b *planBuilder) jobsAtOnce(workers int) int {
	if b.Siblings <= 0 {
		return 1
	}
	at := b.Siblings + 1
	pool := b.Platform.Pool
	if pool <= 0 {
		return at
	}
	one := *b
	one.plan.Workers, one.side = workers, at
	train := b.limit(one.estimate(workers).Total)
	if own := b.Job.Resources.Memory; own > 0 {
		train = own
	}
	needed := disdel.Bytes(workers)*train + b.limit(b.Estimator.Aggregate(one.input(0, 1)).Total)
	if b.Data.HeldOut > 0 {
		needed += b.limit(one.evaluation().Total)
	}
	return min(at, max(1, int(pool/needed)))
}

// processorsWanted returns how many processors the train actions of so many jobs use, with so many workers each.
func (b *planBuilder) processorsWanted(jobs, workers int) float64 {
	each := 1.0
	if maximum := b.Platform.Millicores; maximum > 0 {
		each = min(1, float64(maximum)/1000)
	}
	return float64(jobs*workers) * each
}

// plenty is how much of the processors must remain wanted, in multiples, when jobs start with fewer workers.
// Otherwise the last jobs of a batch, or jobs of very different lengths, leave some idle.
const plenty = 1.5

// fairShare reduces the workers of a job of a batch while the processors remain wanted: workers that take turns are
// not faster, and each of them transfers all of the weights. The workers that its memory needs stay.
func (b *planBuilder) fairShare(limit disdel.Bytes) {
	rule := b.plan.Workers
	b.side = b.jobsAtOnce(rule)
	if b.Siblings <= 0 || b.Processors <= 0 {
		return
	}
	for n := rule - 1; n > 0; n-- {
		side, e := b.jobsAtOnce(n), b.estimate(n)
		if b.processorsWanted(side, n) < plenty*float64(b.Processors) || e.Total > limit {
			break
		}
		b.plan.Workers, b.train, b.side = n, e, side
	}
	if n := b.plan.Workers; n < rule {
		b.because("workers: %d of these %d, since %d jobs of a batch share %d processors", n, rule, b.side, b.Processors)
	}
}

// siblingsOf returns how many other jobs an earlier job was submitted with.
func siblingsOf(r *disdel.Record) int {
	if r.Planning == nil {
		return 0
	}
	return r.Planning.Siblings
}
