package disdel

import (
	"cmp"
	"fmt"
	"strconv"
	"time"
)

// Limits are what an OpenWhisk action is created with.
type Limits struct {
	Memory  Bytes  `json:"limitBytes"`
	Timeout Millis `json:"timeoutMs"`
	// GPU memory, which Memory does not include; 0: no GPU.
	Device Bytes `json:"limitDeviceBytes,omitempty"`
	// Most GPUs that the actions of its job use; 0: any number.
	Devices int `json:"limitDevices,omitempty"`
}

// PlatformLimits are the bounds that OpenWhisk's API reports, and the pool, which no API reports: the user sets it.
type PlatformLimits struct {
	MinMemory  Bytes  `json:"minMemoryBytes"`
	MaxMemory  Bytes  `json:"maxMemoryBytes"`
	MinTimeout Millis `json:"minTimeoutMs"`
	MaxTimeout Millis `json:"maxTimeoutMs"`
	PerMinute  int    `json:"perMinute"`                 // invocations a minute; 0: unknown
	Concurrent int    `json:"concurrent"`                // invocations in flight; 0: unknown
	MaxDevice  Bytes  `json:"maxDeviceBytes,omitempty"`  // of an accelerator, that an action can have; 0: there is none
	Devices    int    `json:"devices,omitempty"`         // accelerators; 0: one where MaxDevice tells of one
	Pool       Bytes  `json:"poolBytes"`                 // memory of all containers together; 0: unknown
	Processors int    `json:"processors,omitempty"`      // that all containers share; 0: unknown
	Millicores int    `json:"millicores,omitempty"`      // most thousandths of one processor for an action; 0: unknown
	Host       string `json:"host,omitempty"`            // address of an OpenWhisk that is not the embedded one
	Found      int    `json:"processorsFound,omitempty"` // most that a container of the job has found; 0: unknown
	// Names of the kernels that the job's engines used, separated by commas. The same kernels give the same bits.
	Kernels  string     `json:"kernels,omitempty"`
	PoolFrom PoolSource `json:"poolFrom,omitempty"` // source of Pool; "": the embedded platform, or unknown
	PoolAt   time.Time  `json:"poolAt,omitzero"`    // when the doctor found Pool out; zero for other sources
	// Busy is how many threads of other programs wanted those processors when the job was planned; 0: none, or unknown.
	Busy float64 `json:"busyThreads,omitempty"`
}

// PoolSource is where the size of a pool comes from.
type PoolSource string

// The sources of a pool's size. What the doctor measured may have changed since.
const (
	PoolGiven PoolSource = "flag"     // the user, by --pool-memory or Config.Pool
	PoolTold  PoolSource = "platform" // the platform itself
	PoolFound PoolSource = "doctor"   // the doctor, by containers that ran at once
)

// Accelerators is the number of GPUs: 0 without a MaxDevice, and 1 if nobody counted them.
func (p PlatformLimits) Accelerators() int {
	if p.MaxDevice <= 0 {
		return 0
	}
	return max(1, p.Devices)
}

// Estimate is the memory one action is expected to need at its peak, term by term.
type Estimate struct {
	Total  Bytes  `json:"totalBytes"` // m_a: what the limit is set from; the likely peak and the margin
	Method string `json:"method"`     // "paper", "planned", "learned", "measured" for what no plan knows, or "given"
	// The interval: the peak is Likely, and within Low and High in nine cases of ten; above Total in Risk of them.
	Low    Bytes   `json:"lowBytes"`
	Likely Bytes   `json:"likelyBytes"`
	High   Bytes   `json:"highBytes"`
	Risk   float64 `json:"risk"`
	// The correction by measured peaks of earlier jobs (method "learned").
	Ratio   float64 `json:"ratio,omitempty"`   // likely peak over that of the plan alone; 0: nothing learned
	Samples int     `json:"samples,omitempty"` // measured peaks behind Ratio
	// The terms of DiSDeL Eq. 1, m_a = fit + pkg + dta + mod + saf, whose names JSON has.
	Training Bytes `json:"fitBytes"` // Eq. 2: parameters, activations and the cached batch while training
	Package  Bytes `json:"pkgBytes"` // the runtime image in memory
	Shard    Bytes `json:"dtaBytes"` // the shard
	Model    Bytes `json:"modBytes"` // the compiled model's parameters
	Margin   Bytes `json:"safBytes"` // safety margin
	// The terms of fit.
	Parameters  Bytes   `json:"parametersBytes"`        // Eq. 3
	Weights     Bytes   `json:"weightsBytes,omitempty"` // of Parameters, without gradients and moments; 0: not told apart
	Activations Bytes   `json:"activationsBytes"`       // Eq. 4
	Misc        Bytes   `json:"miscBytes"`              // Eq. 5
	Workspace   Bytes   `json:"workspaceBytes"`         // what the engine needs beyond the paper's terms (measured)
	Extra       float64 `json:"extra,omitempty"`        // work that a step does to save memory, over that of one without

	InBlocks bool `json:"inBlocks,omitempty"` // an evaluate action reads the weights without a copy beside the engine
	ByLayers bool `json:"byLayers,omitempty"` // an evaluate action computes one slice of the network after the other
	Rows     int  `json:"rows,omitempty"`     // that an evaluate action computes at a time; 0: a batch of the training

	// Device is GPU memory, which none of the above includes.
	Device Bytes `json:"deviceBytes,omitempty"`
	// DeviceParts are the parts of Device, by the engine's categories.
	DeviceParts []MemoryPart `json:"deviceParts,omitempty"`

	// Update is the size of one update, of aggregate actions only. They read updates in blocks, so that it is in no term.
	Update Bytes `json:"updateBytes,omitempty"`

	Layers []LayerEstimate `json:"layers,omitempty"` // train actions only
	Notes  []string        `json:"notes,omitempty"`
}

// Peak is the interval of the estimate. Without one, the total is the likely peak, and low and high are 0.
func (e Estimate) Peak() Interval[Bytes] {
	if e.Likely == 0 {
		return Interval[Bytes]{Likely: e.Total}
	}
	return Interval[Bytes]{Low: e.Low, Likely: e.Likely, High: e.High}
}

// Expected is the likely peak: the figure that every screen calls the estimate of an action.
func (e Estimate) Expected() Bytes { return e.Peak().Likely }

// MemoryPart is bytes of a category.
type MemoryPart struct {
	Name  string `json:"name"`
	Bytes Bytes  `json:"bytes"`
}

// LayerEstimate is one layer's share of an Estimate.
type LayerEstimate struct {
	Name            string `json:"name"`
	Op              string `json:"op"`
	Output          []int  `json:"output"`          // per sample: [channels height width] or [units]
	Parameters      int64  `json:"parameters"`      // trainable numbers
	Activations     int64  `json:"activations"`     // outputs for one sample
	ParameterBytes  Bytes  `json:"parameterBytes"`  // with gradients and optimiser state
	ActivationBytes Bytes  `json:"activationBytes"` // for the batch, forward and backward
	MACs            int64  `json:"macs"`            // multiply-accumulates for one sample
}

// RowRange is a half-open range of rows of a data set's training or held-out part.
type RowRange struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Len is the number of rows.
func (r RowRange) Len() int { return r.End - r.Start }

// Interval is a prediction: nine of ten values lie between Low and High.
type Interval[T any] struct {
	Low    T `json:"low"`
	Likely T `json:"likely"`
	High   T `json:"high"`
}

// Source is the evidence for a timeout or a forecast.
type Source string

// The sources, from the most to the least specific. The last three are for timeouts without a measurement.
const (
	SourceOwn      Source = "this job" // its own rounds so far
	SourceHistory  Source = "history"  // jobs of the same network, data and shape
	SourceSimilar  Source = "similar jobs"
	SourceProbe    Source = "probe"
	SourceCost     Source = "cost" // what the user expects to pay
	SourcePlatform Source = "platform maximum"
	SourceJobFile  Source = "job file"
)

// Forecast is the expected time and cost of a job before it starts, or of its rest while it runs.
type Forecast struct {
	Duration Interval[Millis]  `json:"durationMs"`
	Cost     Interval[float64] `json:"costGBs"`          // DiSDeL's Eq. 6
	Used     Interval[float64] `json:"usedGBs,omitzero"` // by use; zero in records of earlier versions
	Source   Source            `json:"source"`           // SourceHistory, SourceSimilar, SourceProbe or SourceOwn
	Samples  int               `json:"samples"`          // measured activations behind it
	// Quiet is the cost by use in GB-s if no other program wanted the processors, or that of an earlier job of the same
	// plan, whichever is less; 0 in records of earlier versions.
	Quiet float64 `json:"quietGBs,omitempty"`
	// of the same network and data whose whole durations it was corrected by
	Jobs int `json:"jobs,omitempty"`
	// jobs of just this shape are among them; else it is extrapolated
	Measured bool   `json:"measured,omitempty"`
	Note     string `json:"note,omitempty"` // how much other programs slow the job down; "": they do not
	// when the job comes to its goal; nil where it has none, or nothing is known
	Goal *GoalForecast `json:"goal,omitempty"`
}

// MeteredCost is the cost by use. Forecasts of earlier versions have only Eq. 6, which is not lower.
func (f *Forecast) MeteredCost() Interval[float64] {
	if f.Used.Likely > 0 {
		return f.Used
	}
	return f.Cost
}

// LeastCost is the lowest budget with which a job may start, in GB-s by use. It leaves out the load of other programs,
// which may end. A job with a goal may reach it early, so that its lower bound counts.
func (f *Forecast) LeastCost(goal bool) float64 {
	c := f.MeteredCost()
	minimum := c.Likely
	if f.Quiet > 0 {
		minimum = min(minimum, f.Quiet)
	}
	if goal {
		minimum = min(minimum, c.Low)
	}
	return minimum
}

// Plan is how a job will run: what each action gets and how updates flow up the tree.
type Plan struct {
	Workers  int            `json:"workers"` // train actions; with stages: replicas times stages
	Rounds   int            `json:"rounds"`
	Epochs   int            `json:"epochsPerRound"`
	Platform PlatformLimits `json:"platform"`
	Actions  []ActionPlan   `json:"actions"`
	Shards   []RowRange     `json:"shards"`                    // by worker
	Batches  int            `json:"batchesPerRound,omitempty"` // of a round that is shorter than an epoch; 0: whole epochs
	Threads  int            `json:"threads,omitempty"`         // of a train action; 0: unknown
	// Rows of one worker's step if the workers share the job's batch; 0: the job's batch size.
	BatchSize int `json:"workerBatchSize,omitempty"`
	// How steps save memory: as the job file says, or as the plan chose to make the job fit.
	StepMemory StepMemory `json:"stepMemory,omitzero"`
	OnDisk     bool       `json:"onDisk,omitempty"` // the actions' rows are in files: as for StepMemory
	Legs       int        `json:"legs"`             // activations in a row that one worker's round is expected to take
	HeldOut    int        `json:"heldOut"`          // rows evaluated
	Levels     []Level    `json:"levels"`           // levels[0] is level 1 of the tree
	// Parts of the network that train on actions of their own; worker w has stage w modulo their number. Empty: each
	// worker has the whole network.
	Stages        []PlannedStage `json:"stages,omitempty"`
	Parallel      int            `json:"parallel"` // train actions that the pool holds at once
	TimeoutSource Source         `json:"timeoutSource"`
	// Highest cost in GB-s: Eq. 6 and evaluations, with every action at its limits.
	CostGBs  float64   `json:"costBoundGBs"`
	Forecast *Forecast `json:"forecast,omitempty"` // nil where nothing is known
	Reasons  []string  `json:"reasons"`            // the arithmetic, a sentence each
}

// PlannedStage is consecutive layers of a network that an action of its own trains.
type PlannedStage struct {
	First   string `json:"first"` // layer
	Last    string `json:"last"`  // layer
	From    int    `json:"from"`  // node of the network's graph
	To      int    `json:"to"`    // the node behind the last one
	Memory  Bytes  `json:"memoryBytes"`
	Weights Bytes  `json:"weightsBytes,omitempty"` // of its layers
	Passes  Bytes  `json:"passesBytes,omitempty"`  // to the next stage, a row
}

// Replicas is how many networks are trained side by side: the workers, unless several train one in stages.
func (p *Plan) Replicas() int { return p.Workers / max(1, len(p.Stages)) }

// KnowsLoss tells whether a worker computes the loss: it has the whole network, or its last stage.
func (p *Plan) KnowsLoss(worker int) bool {
	return len(p.Stages) == 0 || worker%len(p.Stages) == len(p.Stages)-1
}

// Update is the size of one worker's update in a wire format, or the most if the size depends on the values.
func (p *Plan) Update(w Wire) Bytes {
	a, _ := p.Action(TaskAggregate)
	size := cmp.Or(a.Estimate.Update, a.Estimate.Model) // earlier versions had room for an update, in Model
	return Bytes(float64(size) * w.Share())
}

// ActionPlan is one OpenWhisk action of the job: what it does, at which limits, on which estimate.
type ActionPlan struct {
	Task Task       `json:"task"`
	Name ActionName `json:"name"`
	Limits
	Estimate Estimate `json:"estimate"`
}

// Waves is how many times a round starts train actions, because the pool may not hold all of them at once.
func (p *Plan) Waves() int {
	atOnce := max(1, p.Parallel)
	return max(1, (p.Workers+atOnce-1)/atOnce)
}

// ActionCount is how many actions of a task a round has: the workers, or the aggregations of all levels. It is 0 for
// other tasks.
func (p *Plan) ActionCount(task Task) (n int) {
	switch task {
	case TaskTrain:
		return p.Workers
	case TaskAggregate:
		for _, l := range p.Levels {
			n += len(l.Clusters)
		}
	}
	return n
}

// Action returns the plan of the action for task; ok is false if there is none.
func (p *Plan) Action(task Task) (a ActionPlan, ok bool) {
	for _, a := range p.Actions {
		if a.Task == task {
			return a, true
		}
	}
	return ActionPlan{}, false
}

// Level is one height of the aggregation tree.
type Level struct {
	Height   int     `json:"height"`   // 1 and up
	Clusters [][]int `json:"clusters"` // members of each cluster: workers at height 1, clusters of the level below above
	// Join says that the members of a cluster are the stages of one network, whose updates are put together.
	Join bool `json:"join,omitempty"`
	// Parts of the weights, each of which has clusters of its own: those of the first part come first. 0: one.
	Shards     int  `json:"shards,omitempty"`
	JoinShards bool `json:"joinShards,omitempty"` // its cluster makes a reference of the shards of the level below
}

// Shard is the part of the weights that a cluster averages, from 0.
func (l Level) Shard(cluster int) int { return cluster * max(1, l.Shards) / max(1, len(l.Clusters)) }

// Updates is how many updates' bytes a cluster reads. A shard reads a part of each member, and a join of shards none.
func (l Level) Updates(cluster int) float64 {
	switch {
	case l.Join:
		return 1
	case l.JoinShards:
		return 0
	}
	return float64(len(l.Clusters[cluster])) / float64(max(1, l.Shards))
}

// Setting is what a policy may change while a job runs. The planner chooses what is zero.
type Setting struct {
	Workers      int   `json:"workers"`               // train actions side by side
	Memory       Bytes `json:"memoryBytes,omitempty"` // of a train action; 0: by the estimate
	FanIn        int   `json:"fanIn,omitempty"`       // workers of one aggregation action; 0: by the bytes that it reads
	AverageEvery int   `json:"every,omitempty"`       // batches from one average to the next; 0: whole epochs
	Stages       int   `json:"stages,omitempty"`      // actions that train one network together; 0: one has all of it
}

// Replicas is the number of networks that are trained side by side, as Plan.Replicas.
func (s Setting) Replicas() int { return s.Workers / max(1, s.Stages) }

// Position is the progress of a job's training: complete epochs, and batches of the next one on every worker.
type Position struct {
	Epoch int `json:"epoch"`
	Batch int `json:"batch,omitempty"`
}

// Stage is a part of a job with one setting: its plan and the decision that it comes from. A job begins with one stage
// that lasts to its end. A policy's change, a remedy and a resume each begin another one; earlier stages stay in the
// record.
type Stage struct {
	First  int      `json:"firstRound"` // its first round; it lasts until a later stage begins, or to the job's end
	Rounds int      `json:"rounds"`     // from First to the job's end, if nothing changes
	From   Position `json:"from"`
	To     Position `json:"to"` // the job's end
	Setting
	BatchSize     int            `json:"batchSize"`
	StepMemory    StepMemory     `json:"stepMemory,omitzero"` // how its steps save memory
	Parts         []PlannedStage `json:"parts,omitempty"`     // of the network, as Plan.Stages
	Epochs        int            `json:"epochsPerRound"`
	PerEpoch      int            `json:"roundsPerEpoch,omitempty"` // with K: rounds of a whole epoch
	Shards        []RowRange     `json:"shards"`                   // by worker
	Levels        []Level        `json:"levels"`
	Actions       []ActionPlan   `json:"actions"` // without the layers of their estimates, which the plan has
	Legs          int            `json:"legs"`
	Parallel      int            `json:"parallel"`
	Threads       int            `json:"threads,omitempty"`
	TimeoutSource Source         `json:"timeoutSource,omitempty"`
	CostGBs       float64        `json:"costBoundGBs,omitempty"` // of the whole job, by the plan that the stage began with
	Forecast      *Forecast      `json:"forecast,omitempty"`     // the same
	Reasons       []string       `json:"reasons,omitempty"`      // what a change costs, and the arithmetic
	// nil: the plan that the job began with.
	Decision *Decision `json:"decision,omitempty"`
}

// Boundary is a point at which a policy decides.
type Boundary string

// The boundaries. Workers may change only at the start, at the end of an epoch and after a failure.
const (
	BoundaryStart   Boundary = "start"
	BoundaryRound   Boundary = "round" // a round has ended in the middle of an epoch
	BoundaryEpoch   Boundary = "epoch"
	BoundaryFailure Boundary = "failure"
	BoundaryResume  Boundary = "resume" // the job was resumed; no policy decides
	BoundaryStep    Boundary = "step"   // workers that exchange updates were let go while a round ran
)

// Decision is what a policy decided at a boundary. The policy sets the fields from Next to Why, its caller the others.
type Decision struct {
	Next      Setting `json:"next"`
	BatchSize int     `json:"batchSize,omitempty"` // after a failure: rows of a batch from now on; 0: as they were
	// StepMemory says, after a failure, how steps save memory from now on. Zero: as before.
	StepMemory StepMemory   `json:"stepMemory,omitzero"`
	Stop       string       `json:"stop,omitempty"`   // why no more is to be trained; "": training goes on
	Expect     *Expectation `json:"expect,omitempty"` // nil: it expects nothing
	Why        string       `json:"why,omitempty"`

	Policy     string   `json:"policy,omitempty"`
	Boundary   Boundary `json:"boundary"`
	Round      int      `json:"round"`                // the next one, or the one that failed
	Invocation string   `json:"invocation,omitempty"` // that failed
	Reasons    []string `json:"reasons,omitempty"`    // what was changed of the answer because it was out of bounds
	Changed    bool     `json:"changed,omitempty"`    // a stage begins with it

	// NotGranted are the containers that the policy wanted before and the job did not get. The policy then chose fewer
	// workers, or the job continues unchanged.
	NotGranted []Refusal `json:"notGranted,omitempty"`
}

// Refusal is containers that a job did not get, because other jobs hold them or wait for them.
type Refusal struct {
	Workers int    `json:"workers"` // that it would have had
	Why     string `json:"why"`     // with what was missing
}

// Text is a sentence: "4 workers were not granted: it needs another ...".
func (r Refusal) Text() string {
	who := strconv.Itoa(r.Workers) + " workers were"
	if r.Workers == 1 {
		who = "1 worker was"
	}
	return who + " not granted: " + r.Why
}

// Expectation is what a policy predicts for the setting that it chose, to measure its error afterwards.
type Expectation struct {
	PerThousand Millis `json:"perThousandMs"` // of a whole round, for 1,000 rows
}

// Observation is the measurements of one round that policies use. Times of workers are those of the slowest worker.
type Observation struct {
	Round    int      `json:"round"`
	Epoch    float64  `json:"epoch"` // trained when it had ended
	Setting  Setting  `json:"setting"`
	Rows     int      `json:"rows"`       // trained by all workers, each epoch's counted
	Duration Millis   `json:"durationMs"` // from its start until the next reference stood: no evaluation
	Fetch    Millis   `json:"fetchMs,omitempty"`
	Compute  Millis   `json:"computeMs,omitempty"`
	Push     Millis   `json:"pushMs,omitempty"`
	Exchange Millis   `json:"exchangeMs,omitempty"` // part of Compute: updates of steps, sent, waited for and added
	Wait     Millis   `json:"waitMs,omitempty"`     // for a container
	Reduce   Millis   `json:"reduceMs,omitempty"`   // aggregation actions, the slowest of each level
	Cold     Millis   `json:"coldMs,omitempty"`     // the longest start of a container; 0: none started
	Loss     float64  `json:"trainLoss"`
	HeldOut  *float64 `json:"loss,omitempty"`
	Accuracy *float64 `json:"accuracy,omitempty"`
	Scores            // held-out, of numbers
	Peak     Bytes    `json:"peakBytes,omitempty"`
	Limit    Bytes    `json:"limitBytes,omitempty"` // memory of a train action; 0 in records of earlier versions
	Cost     float64  `json:"costGBs,omitempty"`
	Retried  int      `json:"retried,omitempty"` // activations that failed
	Missing  int      `json:"missing,omitempty"` // workers that the mean was taken without
	Left     int      `json:"left,omitempty"`    // workers that were let go while it ran
}

// PerThousand is the time for 1,000 rows, to compare rounds of different sizes.
func (o Observation) PerThousand() Millis {
	return Millis(float64(o.Duration) * 1000 / float64(max(1, o.Rows)))
}

// AsStage returns the plan as a single stage, from the first round of the job to the last.
func (p *Plan) AsStage(job Job) Stage {
	s := Stage{
		Rounds: p.Rounds, To: Position{Epoch: job.Training.Epochs},
		Setting: Setting{
			Workers: p.Workers, Memory: job.Resources.Memory, FanIn: job.Distribution.Aggregation.FanIn, AverageEvery: p.Batches,
			Stages: len(p.Stages),
		},
		Parts:     p.Stages,
		BatchSize: p.WorkerBatch(&job), StepMemory: p.StepMemory, Epochs: p.Epochs,
		Shards: p.Shards, Levels: p.Levels, Actions: withoutLayers(p.Actions),
		Legs: p.Legs, Parallel: p.Parallel, Threads: p.Threads,
		TimeoutSource: p.TimeoutSource, CostGBs: p.CostGBs, Forecast: p.Forecast, Reasons: p.Reasons,
	}
	if p.Batches > 0 {
		s.PerEpoch = max(1, p.Rounds/max(1, job.Training.Epochs))
	}
	return s
}

// withoutLayers drops the layers of the estimates, which every stage of a job would repeat.
func withoutLayers(actions []ActionPlan) []ActionPlan {
	out := make([]ActionPlan, len(actions))
	for i, a := range actions {
		a.Estimate.Layers = nil
		out[i] = a
	}
	return out
}

// End is the first round after the stage, if nothing changes.
func (s *Stage) End() int { return s.First + s.Rounds }

// TrainRange is what one worker trains in a round of the stage. The last round of an epoch trains the batches that are
// left.
func (s *Stage) TrainRange(round int) TrainRange {
	i := round - s.First
	if s.AverageEvery == 0 {
		return TrainRange{Epoch: s.From.Epoch + i*s.Epochs, Epochs: s.Epochs}
	}
	per, out := max(1, s.PerEpoch), TrainRange{Epochs: 1}
	if i < 0 && s.From.Batch == 0 { // of the stage before, it ended an epoch
		out.Epoch, out.Batch = s.From.Epoch-1, (per-1)*s.AverageEvery
		return out
	}
	last := false
	if begun := s.begun(); i < begun {
		out.Epoch, out.Batch, last = s.From.Epoch, s.From.Batch+i*s.AverageEvery, i == begun-1
	} else {
		i -= begun
		out.Epoch, out.Batch, last = s.From.Epoch+1+i/per, i%per*s.AverageEvery, i%per == per-1
	}
	if !last {
		out.Batches = s.AverageEvery
	}
	return out
}

// EpochsAfter is the number of epochs trained after a round of the stage. The last round of an epoch completes it.
func (s *Stage) EpochsAfter(round int) float64 {
	span := s.TrainRange(round)
	if span.Batches == 0 {
		return float64(span.Epoch + span.Epochs)
	}
	share := float64(span.Batch+span.Batches) / float64(max(1, s.Batches()))
	return float64(span.Epoch) + min(share, inEpoch)
}

// inEpoch is the largest share of an epoch that a round in the middle of it can reach.
const inEpoch = 0.999

// begun is how many rounds the epoch has left that the stage begins in.
func (s *Stage) begun() int {
	if s.From.Batch == 0 {
		return max(1, s.PerEpoch)
	}
	return max(1, (s.Batches()-s.From.Batch)/s.AverageEvery)
}

// Batches is how many batches an epoch is for the worker that has the fewest.
func (s *Stage) Batches() int {
	minimum := 0
	for i, r := range s.Shards {
		if n := (r.Len() + s.BatchSize - 1) / max(1, s.BatchSize); i == 0 || n < minimum {
			minimum = n
		}
	}
	return minimum
}

// Starting returns the stage as it begins at a round and a position of the training.
func (s Stage) Starting(round int, at Position) Stage {
	s.First, s.From = round, at
	remaining := s.To.Epoch - at.Epoch
	switch {
	case remaining <= 0:
		s.Rounds = 0
	case s.AverageEvery > 0:
		s.Rounds = s.begun() + (remaining-1)*max(1, s.PerEpoch)
	default:
		s.Rounds = (remaining + s.Epochs - 1) / max(1, s.Epochs)
	}
	return s
}

// ApplyTo returns a job's plan with the setting of this stage in place of the newest one's.
func (s *Stage) ApplyTo(p Plan) Plan {
	actions := make([]ActionPlan, len(s.Actions))
	for i, a := range s.Actions {
		newest, _ := p.Action(a.Task)
		a.Estimate.Layers = newest.Estimate.Layers
		actions[i] = a
	}
	p.Workers, p.Epochs, p.Batches, p.Shards, p.Levels = s.Workers, s.Epochs, s.AverageEvery, s.Shards, s.Levels
	p.Actions, p.Legs, p.Parallel, p.Threads = actions, s.Legs, s.Parallel, s.Threads
	p.StepMemory, p.Stages = s.StepMemory, s.Parts
	p.TimeoutSource, p.CostGBs, p.Forecast, p.Reasons = s.TimeoutSource, s.CostGBs, s.Forecast, s.Reasons
	if p.BatchSize > 0 {
		p.BatchSize = s.BatchSize
	}
	return p
}

// Text describes a stage and its reason: "round 5 on: 2 workers, batch 32; ...".
func (s *Stage) Text() string {
	workers := "1 worker"
	if s.Workers != 1 {
		workers = strconv.Itoa(s.Workers) + " workers"
	}
	if n := s.Setting.Stages; n > 0 {
		workers += fmt.Sprintf(" in %d stages", n)
	}
	text := fmt.Sprintf("round %d on: %s, batch %d", s.First+1, workers, s.BatchSize)
	if s.Decision != nil && s.Decision.Why != "" {
		text += "; " + s.Decision.Why
	}
	return text
}

// AllStages returns every stage of the job. Old records have no stages: their plan is the only one.
func (r *Record) AllStages() []Stage {
	if len(r.Stages) > 0 {
		return r.Stages
	}
	return []Stage{r.Plan.AsStage(r.Job)}
}

// StageOf is the stage that an invocation belongs to.
func (r *Record) StageOf(i *Invocation) Stage { return r.stage(i.Stage) }

// EpochsAfter is the number of epochs that the job had trained at the end of a round.
func (r *Record) EpochsAfter(round Round) float64 {
	s := r.stage(round.Stage)
	return s.EpochsAfter(round.Round)
}

func (r *Record) stage(number int) Stage {
	all := r.AllStages()
	return all[min(max(0, number), len(all)-1)]
}

// PlanOf is the plan of an invocation: the record's plan with the setting of its stage.
func (r *Record) PlanOf(i *Invocation) Plan {
	if len(r.Stages) < 2 {
		return r.Plan
	}
	s := r.StageOf(i)
	return s.ApplyTo(r.Plan)
}

// SplitByStage splits a record into one for each stage with activations, with the stage's plan and batch size.
// Estimates learn from these, since a measurement belongs to the plan that it was made with.
func (r *Record) SplitByStage() []*Record {
	if len(r.Stages) < 2 {
		return []*Record{r}
	}
	var out []*Record
	for n, s := range r.Stages {
		one := *r
		one.Activations = nil
		for i := range r.Activations {
			if r.Activations[i].Stage == n {
				one.Activations = append(one.Activations, r.Activations[i])
			}
		}
		if len(one.Activations) > 0 {
			one.Plan, one.Job.Training.BatchSize = s.ApplyTo(r.Plan), s.BatchSize
			out = append(out, &one)
		}
	}
	return out
}

// EffectiveStages returns the stages that rounds belong to, in the order of the rounds, and their numbers among all
// stages of the job. A remedy's stage replaces the later ones; a stage of a resume replaces the one that it continues.
func (r *Record) EffectiveStages() (stages []Stage, numbers []int) {
	for n, s := range r.AllStages() {
		var later []Stage
		var laterNumbers []int
		keep := 0
		for keep < len(stages) && stages[keep].First < s.First {
			keep++
		}
		if s.Decision != nil && s.Decision.Boundary == BoundaryResume && !s.Decision.Changed {
			for i := keep; i < len(stages); i++ {
				if stages[i].First > s.First {
					later, laterNumbers = append(later, stages[i]), append(laterNumbers, numbers[i])
				}
			}
		}
		stages = append(append(stages[:keep:keep], s), later...)
		numbers = append(append(numbers[:keep:keep], n), laterNumbers...)
	}
	return stages, numbers
}

// StageAt is the index of the stage that a round belongs to. Stages are in the order of their first rounds.
func StageAt(stages []Stage, round int) int {
	at := 0
	for i := range stages {
		if stages[i].First <= round {
			at = i
		}
	}
	return at
}

// Annotations of actions that compute on GPUs. OpenWhisk knows no GPUs, and passes over what it does not know: a
// platform of disdel's hands a device to the container by the first two, and an OpenWhisk with the new scheduler sends
// the action to invokers that have the tag of the third.
const (
	AnnotationGPUMemory = "gpu-memory"        // MB of one GPU that the action takes
	AnnotationGPUCount  = "gpu-count"         // the most GPUs that the actions of its package lie on
	AnnotationInvoker   = "invoker-resources" // tags of invokers, a list
	InvokerGPU          = "gpu"               // the tag of invokers whose machines have GPUs
)

// GPUAnnotations are those of an action that takes part of a GPU, by its limits; none of an action that takes none.
func GPUAnnotations(l Limits) map[string]any {
	if l.Device <= 0 {
		return nil
	}
	out := map[string]any{AnnotationGPUMemory: l.Device.MB(), AnnotationInvoker: []string{InvokerGPU}}
	if l.Devices > 0 {
		out[AnnotationGPUCount] = l.Devices
	}
	return out
}
