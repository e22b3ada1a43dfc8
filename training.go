package disdel

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Training holds the hyper-parameters.
type Training struct {
	Epochs    int       `json:"epochs"`
	BatchSize int       `json:"batchSize"`       // rows of a step on every worker; with Batch, of Batch
	Batch     *Batch    `json:"batch,omitempty"` // nil: BatchSize is every worker's own
	Optimizer Optimizer `json:"optimizer"`
	Loss      string    `json:"loss"` // of classes, of numbers, or of sparse rows: see the constants
	// LabelSmoothing is the share of a label that crossEntropy spreads evenly over all classes, in training only.
	LabelSmoothing float64 `json:"labelSmoothing,omitempty"`
	// ClassWeights weighs the rows of each class in crossEntropy, in training only.
	ClassWeights  ClassWeights `json:"classWeights,omitempty"`
	Schedule      *Schedule    `json:"schedule,omitempty"`
	ClipNorm      float64      `json:"clipNorm,omitempty"` // longest gradient, all weights together; 0: any
	Exact         bool         `json:"exact,omitempty"`    // convolutions by their definition: no Winograd
	Precision     Precision    `json:"precision,omitempty"`
	EarlyStop     *EarlyStop   `json:"earlyStop,omitempty"`
	Goal          *Goal        `json:"goal,omitempty"`
	ValidateEvery int          `json:"validateEvery"` // rounds between evaluations of held-out rows; 0: only at the end
	Backend       string       `json:"backend,omitempty"`
	Fit           Fitting      `json:"fit,omitempty"`
	StepMemory
}

// StepMemory says how a training step saves memory. The zero value saves none. Only the native engine can.
type StepMemory struct {
	// MicroBatch is the most rows that are computed at once. A step adds the gradients of several micro-batches, and
	// updates the weights once. 0: the whole batch at once.
	MicroBatch int `json:"microBatch,omitempty"`
	// Recompute says whether activations are computed again on the way back instead of being kept.
	Recompute Recompute `json:"recompute,omitempty"`
	// StateFormat says how the optimiser's moments are kept between steps.
	StateFormat StateFormat `json:"optimizerState,omitempty"`
}

// Sets are the fields of a job file that say the same, in the form of --set.
func (m StepMemory) Sets() (out []string) {
	if m.MicroBatch > 0 {
		out = append(out, fmt.Sprintf("training.microBatch=%d", m.MicroBatch))
	}
	if m.Recompute.Some() {
		out = append(out, "training.recompute="+string(m.Recompute))
	}
	if m.StateFormat.Short() || m.StateFormat.Paged() {
		out = append(out, "training.optimizerState="+string(m.StateFormat))
	}
	return out
}

// String describes the ways in words, for example "micro-batches of 16 rows".
func (m StepMemory) String() string {
	var ways []string
	if m.MicroBatch > 0 {
		ways = append(ways, fmt.Sprintf("micro-batches of %s", Counted(m.MicroBatch, "row")))
	}
	if kept := m.Recompute.Layers(); len(kept) > 0 {
		ways = append(ways, "activations that are kept only at "+strings.Join(kept, ", "))
	} else if m.Recompute.Some() {
		ways = append(ways, "activations that are computed again")
	}
	if m.StateFormat.Short() {
		ways = append(ways, "moments of 8 bits")
	}
	if m.StateFormat.Paged() {
		ways = append(ways, "moments in a file")
	}
	if len(ways) == 0 {
		return "whole batches and all activations"
	}
	return strings.Join(ways, " and ")
}

// SavedBy describes how the plan saves memory, for example "2 stages and micro-batches of 16 rows".
func (p *Plan) SavedBy() string {
	var ways []string
	if n := len(p.Stages); n > 0 {
		ways = append(ways, fmt.Sprintf("%d stages", n))
	}
	if p.StepMemory != (StepMemory{}) {
		ways = append(ways, p.StepMemory.String())
	}
	if p.OnDisk {
		ways = append(ways, "rows on disk")
	}
	if len(ways) == 0 {
		return p.StepMemory.String()
	}
	return strings.Join(ways, " and ")
}

// Saves tells whether the plan saves memory in any way that SavedBy describes.
func (p *Plan) Saves() bool { return p.StepMemory != (StepMemory{}) || p.OnDisk || len(p.Stages) > 0 }

// Fitting says whether a plan may save memory where a job does not fit.
type Fitting string

// FitNone refuses a job that does not fit. The other value, "", is auto: the plan chooses StepMemory for such a job.
const FitNone Fitting = "none"

// Recompute says which activations a training step computes again: a constant, or the names of the layers or blocks
// whose outputs are kept, with commas between them. All other activations are then computed again.
type Recompute string

// The values of Recompute besides names of layers. "" is RecomputeNone.
const (
	RecomputeNone Recompute = "none" // all are kept
	RecomputeAuto Recompute = "auto" // those are kept with which a step takes least memory
)

// Some tells whether some activations are computed again.
func (r Recompute) Some() bool { return r != "" && r != RecomputeNone }

// Layers are the names of the layers and blocks whose outputs are kept. Without names, it returns nil.
func (r Recompute) Layers() []string {
	if !r.Some() || r == RecomputeAuto {
		return nil
	}
	return layerNames(string(r))
}

// StateFormat says how an engine keeps an optimiser's moments between steps.
type StateFormat string

// The values of StateFormat. "" is StateFloat32.
const (
	StateFloat32 StateFormat = "float32"
	// StateInt8 keeps 8 bits of each moment, and a scale for each block of 256 (Dettmers et al. 2022, arXiv 2110.02861).
	StateInt8 StateFormat = "int8"
	// StatePaged keeps moments as float32 in a file of the action's temporary folder. A step reads and writes them by
	// pieces, and comes to the same bits.
	StatePaged StateFormat = "paged"
)

// Short tells whether moments take a quarter of their memory.
func (f StateFormat) Short() bool { return f == StateInt8 }

// Paged tells whether moments are in a file.
func (f StateFormat) Paged() bool { return f == StatePaged }

// Optimizer is exactly one of its fields.
type Optimizer struct {
	SGD     *SGD     `json:"sgd,omitempty"`
	Adam    *Adam    `json:"adam,omitempty"`
	AdamW   *Adam    `json:"adamw,omitempty"`
	Lion    *Lion    `json:"lion,omitempty"`
	LAMB    *LAMB    `json:"lamb,omitempty"`
	RMSprop *RMSprop `json:"rmsprop,omitempty"`
	Adagrad *Adagrad `json:"adagrad,omitempty"`
	// Own is the optimiser of a user's Python program. No job file has it.
	Own *OwnOptimizer `json:"own,omitempty"`
}

// OwnOptimizer is what the planner and the aggregation need to know of the optimiser that a Python program makes.
type OwnOptimizer struct {
	LearningRate float64  `json:"learningRate"`
	Moments      []string `json:"moments,omitempty"` // values for every weight, as the optimiser calls them
	// Opaque tells that its state has values besides Moments and a count of steps. Then it starts anew in every round.
	Opaque bool `json:"opaque,omitempty"`
}

// optimizerRow is what all optimisers have.
type optimizerRow struct {
	name    string
	rate    *float64 // the learning rate that a schedule starts from
	decay   float64
	moments [2]string // what PyTorch calls the values that it keeps for every weight; "": none
	own     []string  // the same of a Python program's own
}

// row is the table of optimisers. Without an optimiser it is zero.
func (o Optimizer) row() (r optimizerRow) {
	switch {
	case o.SGD != nil:
		r = optimizerRow{name: "sgd", rate: &o.SGD.LearningRate, decay: o.SGD.WeightDecay}
		if o.SGD.Momentum != 0 {
			r.moments[0] = "momentum"
		}
	case o.Adam != nil:
		r = optimizerRow{"adam", &o.Adam.LearningRate, o.Adam.WeightDecay, [2]string{"exp_avg", "exp_avg_sq"}, nil}
	case o.AdamW != nil:
		r = optimizerRow{"adamw", &o.AdamW.LearningRate, o.AdamW.WeightDecay, [2]string{"exp_avg", "exp_avg_sq"}, nil}
	case o.Lion != nil:
		r = optimizerRow{"lion", &o.Lion.LearningRate, o.Lion.WeightDecay, [2]string{"exp_avg"}, nil}
	case o.LAMB != nil:
		r = optimizerRow{"lamb", &o.LAMB.LearningRate, o.LAMB.WeightDecay, [2]string{"exp_avg", "exp_avg_sq"}, nil}
	case o.RMSprop != nil:
		r = optimizerRow{"rmsprop", &o.RMSprop.LearningRate, o.RMSprop.WeightDecay, [2]string{"square_avg"}, nil}
		if o.RMSprop.Momentum != 0 {
			r.moments[1] = "momentum_buffer"
		}
	case o.Adagrad != nil:
		r = optimizerRow{"adagrad", &o.Adagrad.LearningRate, o.Adagrad.WeightDecay, [2]string{"sum"}, nil}
	case o.Own != nil:
		r = optimizerRow{name: "own", rate: &o.Own.LearningRate, own: o.Own.Moments}
	}
	return r
}

// Name returns the name of the field that is set, as a job file has it: "sgd", "adam", "adamw",
// "lion", "lamb", "rmsprop" or "adagrad"; "own" for that of a Python program, "" for none.
func (o Optimizer) Name() string { return o.row().name }

// Rate is the learning rate that a schedule starts from, 0 without an optimiser.
func (o Optimizer) Rate() float64 {
	if rate := o.row().rate; rate != nil {
		return *rate
	}
	return 0
}

// WithRate returns the optimiser with another learning rate.
func (o Optimizer) WithRate(rate float64) Optimizer {
	o.SGD, o.Adam, o.AdamW, o.Lion = copied(o.SGD), copied(o.Adam), copied(o.AdamW), copied(o.Lion)
	o.LAMB, o.RMSprop, o.Adagrad, o.Own = copied(o.LAMB), copied(o.RMSprop), copied(o.Adagrad), copied(o.Own)
	if r := o.row(); r.rate != nil {
		*r.rate = rate
	}
	return o
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// WeightDecay is how strongly weights are pulled towards zero; 0: not at all.
func (o Optimizer) WeightDecay() float64 { return o.row().decay }

// MomentNames are what PyTorch calls the values that an optimiser keeps for every weight.
func (o Optimizer) MomentNames() []string {
	if o.Own != nil {
		return o.Own.Moments
	}
	names := o.row().moments
	return names[:o.Moments()]
}

// Moments is how many values an optimiser keeps for every weight.
func (o Optimizer) Moments() int {
	r := o.row()
	n := len(r.own)
	for _, name := range r.moments {
		if name != "" {
			n++
		}
	}
	return n
}

// SGD is stochastic gradient descent, with momentum where Momentum is above 0 and Nesterov's form of it on request
// (Sutskever 2013).
type SGD struct {
	LearningRate float64 `json:"learningRate"`
	Momentum     float64 `json:"momentum,omitempty"`
	WeightDecay  float64 `json:"weightDecay,omitempty"` // L2: added to the gradient
	Nesterov     bool    `json:"nesterov,omitempty"`
}

// Adam is Kingma and Ba's optimiser, and Loshchilov and Hutter's where it stands as adamw; zero betas and epsilon mean
// 0.9, 0.999 and 1e-8.
type Adam struct {
	LearningRate float64 `json:"learningRate"`
	Beta1        float64 `json:"beta1,omitempty"`
	Beta2        float64 `json:"beta2,omitempty"`
	Epsilon      float64 `json:"epsilon,omitempty"`
	WeightDecay  float64 `json:"weightDecay,omitempty"` // adam: L2, added to the gradient; adamw: taken off the weights
}

// WithDefaults has the betas and the epsilon that zeros mean.
func (a Adam) WithDefaults() Adam {
	a.Beta1, a.Beta2, a.Epsilon = cmp.Or(a.Beta1, 0.9), cmp.Or(a.Beta2, 0.999), cmp.Or(a.Epsilon, 1e-8)
	return a
}

// Lion is the optimiser of Chen and others (2023): weights move by the sign of a mean of gradients. Zero betas mean 0.9
// and 0.99.
type Lion struct {
	LearningRate float64 `json:"learningRate"`
	Beta1        float64 `json:"beta1,omitempty"`
	Beta2        float64 `json:"beta2,omitempty"`
	WeightDecay  float64 `json:"weightDecay,omitempty"` // taken off the weights
}

// WithDefaults has the betas that zeros mean.
func (l Lion) WithDefaults() Lion {
	l.Beta1, l.Beta2 = cmp.Or(l.Beta1, 0.9), cmp.Or(l.Beta2, 0.99)
	return l
}

// LAMB is the optimiser of You and others (2019) for large batches: every array of weights moves by Adam's direction,
// as far as the norm of the array says. Zero betas and epsilon mean 0.9, 0.999 and 1e-6.
type LAMB struct {
	LearningRate float64 `json:"learningRate"`
	Beta1        float64 `json:"beta1,omitempty"`
	Beta2        float64 `json:"beta2,omitempty"`
	Epsilon      float64 `json:"epsilon,omitempty"`
	WeightDecay  float64 `json:"weightDecay,omitempty"` // share of the weights in the direction
}

// WithDefaults has the betas and the epsilon that zeros mean.
func (l LAMB) WithDefaults() LAMB {
	l.Beta1, l.Beta2, l.Epsilon = cmp.Or(l.Beta1, 0.9), cmp.Or(l.Beta2, 0.999), cmp.Or(l.Epsilon, 1e-6)
	return l
}

// RMSprop is Hinton's optimiser in PyTorch's form: a step is the gradient over the root of the mean of its squares.
// Zero Alpha and Epsilon mean 0.99 and 1e-8.
type RMSprop struct {
	LearningRate float64 `json:"learningRate"`
	Alpha        float64 `json:"alpha,omitempty"` // decay of the mean of squares
	Epsilon      float64 `json:"epsilon,omitempty"`
	Momentum     float64 `json:"momentum,omitempty"`
	WeightDecay  float64 `json:"weightDecay,omitempty"` // L2: added to the gradient
}

// WithDefaults has the decay and the epsilon that zeros mean.
func (r RMSprop) WithDefaults() RMSprop {
	r.Alpha, r.Epsilon = cmp.Or(r.Alpha, 0.99), cmp.Or(r.Epsilon, 1e-8)
	return r
}

// Adagrad is the optimiser of Duchi and others (2011): a step is the gradient over the root of the sum of its squares.
// A zero Epsilon means 1e-10.
type Adagrad struct {
	LearningRate float64 `json:"learningRate"`
	Epsilon      float64 `json:"epsilon,omitempty"`
	WeightDecay  float64 `json:"weightDecay,omitempty"` // L2: added to the gradient
}

// WithDefaults has the epsilon that zero means.
func (a Adagrad) WithDefaults() Adagrad {
	a.Epsilon = cmp.Or(a.Epsilon, 1e-10)
	return a
}

// EarlyStop ends training before its last epoch. With MetricLoss and a Target, every action stops at the end of an
// epoch whose mean loss is at most Target (DiSDeL III-B.3). With any other metric, the job stops when
// the held-out rows reach Target, or after Patience evaluations in a row without a better one.
type EarlyStop struct {
	Metric   string   `json:"metric"`
	Target   *float64 `json:"target,omitempty"` // nil: none. An R2 may be below 0.
	Patience int      `json:"patience,omitempty"`
	// Keep says whose weights the model gets: KeepBest those of the best evaluation by Metric, KeepLast those of the
	// last round. "" is KeepLast, as it was before there was a choice; a job file's default is KeepBest.
	Keep string `json:"keep,omitempty"`
	// Held is for how many evaluations in a row Target has to be reached; 0: one. A job file says it by its goal.
	Held int `json:"-"`
}

// Whose weights EarlyStop keeps.
const (
	KeepBest = "best"
	KeepLast = "last"
)

// Of returns the metric of the evaluations that are watched. Without an EarlyStop it is the loss.
func (e *EarlyStop) Of() Metric {
	name := MetricLoss
	if e != nil && e.Metric != "" {
		name = e.Metric
	}
	m, _ := FindMetric(name)
	return m
}

// Value is an evaluation as the metric sees it: lower is better.
func (e *EarlyStop) Value(f Figures) float64 {
	m := e.Of()
	return m.Rank(m.Value(f))
}

// Batch is a batch that the workers of a job share: DiSDeL's batch splitting (III-B), by which an action's memory falls
// with every worker that is added.
type Batch struct {
	Size int     `json:"size"` // rows of a step
	Of   BatchOf `json:"of"`   // whose rows they are
}

// BatchOf says whether a batch size is of each worker or of the job.
type BatchOf string

// The values of BatchOf. In a job file, a batch of a worker becomes batchSize.
const (
	BatchOfWorker BatchOf = "worker" // every worker takes so many a step
	BatchOfJob    BatchOf = "job"    // all workers together do, each its share of them
)

// Shared tells whether the workers share a batch.
func (t Training) Shared() bool { return t.Batch != nil && t.Batch.Of == BatchOfJob }

// JobBatch is the rows that a job file gives: of every worker, or of the job where its workers share a batch.
func (t Training) JobBatch() int {
	if t.Batch != nil {
		return t.Batch.Size
	}
	return t.BatchSize
}

// WorkerBatch is the rows of a step on each of so many workers: the share of the job's batch, rounded up so that all
// workers are equal and none has nothing, or BatchSize where it is their own.
func (t Training) WorkerBatch(workers int) int {
	if !t.Shared() {
		return t.JobBatch()
	}
	workers = max(1, workers)
	return max(1, (t.Batch.Size+workers-1)/workers)
}

// Resized returns the training with another batch size, of each worker or of the job.
func (t Training) Resized(rows int) Training {
	t.BatchSize = rows
	if t.Batch != nil {
		t.Batch = &Batch{Size: rows, Of: t.Batch.Of}
	}
	return t
}

// WithWorkerBatch returns the training with a batch size of each worker. A batch that the workers share becomes the
// sum.
func (t Training) WithWorkerBatch(rows, workers int) Training {
	if t.Shared() && t.WorkerBatch(workers) != rows {
		return t.Resized(rows * max(1, workers))
	}
	if !t.Shared() {
		return t.Resized(rows)
	}
	return t
}

// SameBatch tells whether two trainings have the same batch size, of each worker or of the job.
func (t Training) SameBatch(other Training) bool {
	return t.JobBatch() == other.JobBatch() && t.Shared() == other.Shared()
}

// MostWorkers is the largest number of workers for so many rows: each needs a batch of its own.
func (t Training) MostWorkers(rows int) int {
	if t.Shared() { // a worker's share is smaller the more there are, down to a row
		return max(1, min(t.Batch.Size, rows))
	}
	return max(1, rows/max(1, t.JobBatch()))
}

// BatchField is the field of the job file that has the batch size. Advice names it.
func (t Training) BatchField() string {
	if t.Batch != nil {
		return "training.batch.size"
	}
	return "training.batchSize"
}

// BatchText describes the rows of a step: "64", or "64 shared by 2 workers, 32 each".
func (p *Plan) BatchText(job *Job) string {
	if !job.Training.Shared() {
		return strconv.Itoa(job.Training.JobBatch())
	}
	return fmt.Sprintf("%d shared by %d workers, %d each", job.Training.JobBatch(), p.Workers, p.WorkerBatch(job))
}

// WorkerBatch is the rows of a step on each worker of the plan.
func (p *Plan) WorkerBatch(job *Job) int {
	if p.BatchSize > 0 {
		return p.BatchSize
	}
	return job.Training.WorkerBatch(p.Workers)
}

// Goal is a target on the held-out rows, with a time and a cost. The job ends once GoalHeld evaluations in a row have
// reached it. Exactly one of its metrics is above 0.
type Goal struct {
	Accuracy   float64  `json:"accuracy,omitempty"`   // at least
	Top5       float64  `json:"top5,omitempty"`       // at least, see Scores
	F1         float64  `json:"f1,omitempty"`         // at least, of several labels
	Loss       float64  `json:"loss,omitempty"`       // at most
	RMSE       float64  `json:"rmse,omitempty"`       // at most, of numbers, in their unit
	MAE        float64  `json:"mae,omitempty"`        // at most, of numbers, in their unit
	Perplexity float64  `json:"perplexity,omitempty"` // at most, of language models
	Within     Duration `json:"within,omitempty"`     // 0: any time
	Cost       float64  `json:"cost,omitempty"`       // GB-s by use; 0: any
}

// GoalHeld is the number of evaluations in a row that have to reach a goal: a single one may be luck.
const GoalHeld = 3

// Target returns the metric that the goal is about and its value.
func (g Goal) Target() (m Metric, value float64) {
	name, value := MetricLoss, g.Loss
	for _, t := range []struct {
		name  string
		value float64
	}{
		{MetricAccuracy, g.Accuracy},
		{MetricTop5, g.Top5},
		{MetricF1, g.F1},
		{MetricRMSE, g.RMSE},
		{MetricMAE, g.MAE},
		{MetricPerplexity, g.Perplexity},
	} {
		if t.value > 0 {
			name, value = t.name, t.value
		}
	}
	m, _ = FindMetric(name)
	return m, value
}

// String is "accuracy 0.95", "loss 0.3" or "rmse 0.9".
func (g Goal) String() string {
	m, value := g.Target()
	return m.Name + " " + strconv.FormatFloat(value, 'g', -1, 64)
}

// gap is the distance of a value from a perfect one: what an accuracy or an F1 lacks to 1, an error or a loss, and the
// logarithm of a perplexity, which is a loss.
func (m Metric) gap(value float64) float64 {
	switch {
	case m.Larger:
		return 1 - value
	case m.Name == MetricPerplexity:
		return math.Log(value)
	default:
		return value
	}
}

// Enough is the largest gap that reaches the goal, see GapOf.
func (g Goal) Enough() float64 {
	m, value := g.Target()
	return m.gap(value)
}

// GapOf is the distance of an evaluation from a perfect one; ok is false without an evaluation, or without the figure
// that the goal is about. Old records have no RMSE: it is then the root of the loss.
func (g Goal) GapOf(f Figures) (gap float64, ok bool) {
	if f.Loss == nil {
		return 0, false
	}
	m, _ := g.Target()
	if v := m.Value(f); v != nil {
		return m.gap(*v), true
	}
	return math.Sqrt(max(0, *f.Loss)), m.Name == MetricRMSE
}

// Text is a gap in the goal's unit: "accuracy 0.93", "loss 0.41", "rmse 0.91".
func (g Goal) Text(gap float64) string {
	switch m, _ := g.Target(); {
	case m.Larger:
		return fmt.Sprintf("%s %.4f", m.Name, 1-gap)
	case m.Name == MetricPerplexity:
		return fmt.Sprintf("%s %.4g", m.Name, math.Exp(gap))
	default:
		return fmt.Sprintf("%s %.4g", m.Name, gap)
	}
}

// Stop returns the rule that ends training early: EarlyStop, or that of Goal; nil for none.
func (t Training) Stop() *EarlyStop {
	if t.Goal == nil {
		return t.EarlyStop
	}
	m, value := t.Goal.Target()
	if m.Name == MetricLoss {
		m.Name = MetricValLoss
	}
	return &EarlyStop{Metric: m.Name, Target: &value, Keep: KeepBest, Held: GoalHeld}
}

// Budget is the most that a job may cost by use, in GB-s, and its field in the job file: the lower one of
// resources.maxCost and the goal's cost. 0: no budget.
func (j Job) Budget() (maximum float64, field string) {
	maximum, field = j.Resources.MaxCost, "resources.maxCost"
	if g := j.Training.Goal; g != nil && g.Cost > 0 && (maximum == 0 || g.Cost < maximum) {
		return g.Cost, "training.goal.cost"
	}
	return maximum, field
}

// TimeLimit is the longest time that a job may take, and its field in the job file: the shorter one of
// reliability.deadline and the goal's time. 0: no limit.
func (j Job) TimeLimit() (maximum Duration, field string) {
	maximum, field = j.Reliability.Deadline, "reliability.deadline"
	if g := j.Training.Goal; g != nil && g.Within > 0 && (maximum == 0 || g.Within < maximum) {
		return g.Within, "training.goal.within"
	}
	return maximum, field
}

// GoalForecast is when a job is expected to reach its goal. With MayNever it may never do so: High is then 0, and so is
// Likely if no similar job has reached it.
type GoalForecast struct {
	Goal     string            `json:"goal"`
	Epochs   Interval[float64] `json:"epochs"` // from the job's start on
	Duration Interval[Millis]  `json:"durationMs"`
	Cost     Interval[float64] `json:"costGBs"`
	Used     Interval[float64] `json:"usedGBs,omitzero"`  // by use; zero in records of earlier versions
	Jobs     int               `json:"jobs,omitempty"`    // earlier ones that it goes by; 0: the job's own evaluations
	Reached  int               `json:"reached,omitempty"` // of them, or would have
	MayNever bool              `json:"mayNever,omitempty"`
}

// MeteredCost is the cost by use. Forecasts of earlier versions have only Eq. 6, which is not lower.
func (f *GoalForecast) MeteredCost() Interval[float64] {
	if f.Used != (Interval[float64]{}) {
		return f.Used
	}
	return f.Cost
}

// String is "accuracy 0.95 after about 12 epochs (9 to 20)".
func (f GoalForecast) String() string {
	e := f.Epochs
	switch {
	case f.MayNever && e.Likely == 0:
		return fmt.Sprintf("%s is not expected: %.3g epochs were not enough", f.Goal, e.Low)
	case f.MayNever:
		return fmt.Sprintf("%s after about %.3g epochs (%.3g or more), or never", f.Goal, e.Likely, e.Low)
	default:
		return fmt.Sprintf("%s after about %.3g epochs (%.3g to %.3g)", f.Goal, e.Likely, e.Low, e.High)
	}
}

// Precision is the number format of a training step.
type Precision string

// The precisions. "" is float32.
const (
	PrecisionFloat32 Precision = "float32"
	// PrecisionBF16 rounds what products multiply to bfloat16 and, on the processor, keeps activations for the way back
	// as that, in half the memory. Sums, weights, gradients, moments, statistics and the loss are float32, and so is
	// evaluation.
	PrecisionBF16 Precision = "bf16"
	// PrecisionTF32 rounds what products multiply to ten bits of the fraction, as the matrix units of GPUs do. Other
	// engines have none.
	PrecisionTF32 Precision = "tf32"
)

// Precisions lists them, the default first.
func Precisions() []Precision { return []Precision{PrecisionFloat32, PrecisionBF16, PrecisionTF32} }

// Short tells whether activations may be kept as bfloat16.
func (p Precision) Short() bool { return p == PrecisionBF16 }

// Plain tells whether the precision is float32: nothing is rounded.
func (p Precision) Plain() bool { return p == "" || p == PrecisionFloat32 }

// Same tells whether two precisions are the same; "" is float32.
func (p Precision) Same(as Precision) bool {
	return cmp.Or(p, PrecisionFloat32) == cmp.Or(as, PrecisionFloat32)
}

// Meaning describes the effect of a precision on memory and time on the processor, "" for precisions of GPUs.
func (p Precision) Meaning() string {
	if !p.Short() {
		return ""
	}
	return "activations are kept as bfloat16, in half the memory; what products multiply is rounded to it, and sums are " +
		"float32: a step takes less time only where the processor has AVX512-BF16"
}

// The backends that a job may ask for: what computes its networks. Each is a package of runtime/engine, which says what
// it supports and takes; here are only the names, which job files, requests and records carry.
const (
	BackendNative   = "native"   // the engine with its static plan; also what "" means
	BackendGorgonia = "gorgonia" // gorgonia's expression graphs; also of an action's own networks
	BackendSparse   = "sparse"   // of models of sparse rows, which no other computes; also what "" means for them
)

// BackendPython is the backend of users' Python programs. A job with model.python has it, unless it asks for another.
const BackendPython = "python"

// BackendAuto trains a Python program by disdel's engine where that computes the same in less time, else by Python.
const BackendAuto = "auto"

// BackendCUDA is the backend of NVIDIA's GPUs, which programs have that are built for them. A job gets it by
// resources.device.
const BackendCUDA = "cuda"

// BackendChoices are the names that a job file may have.
func BackendChoices() []string { return append(Backends(), BackendPython, BackendAuto) }

// Backends are the names of engines that networks of a job file may have.
func Backends() []string { return []string{BackendNative, BackendGorgonia, BackendSparse} }
