package disdel

import "time"

// Limits are what an OpenWhisk action is created with.
type Limits struct {
	Memory  Bytes  `json:"limitBytes"`
	Timeout Millis `json:"timeoutMs"`
	// of an accelerator, which Memory does not count; 0: no backend uses one
	Device Bytes `json:"limitDeviceBytes,omitempty"`
	// accelerators that the actions of its job lie on, at most; 0: any number
	Devices int `json:"limitDevices,omitempty"`
}

// PlatformLimits are the bounds that the OpenWhisk API reports, and the pool that no API reports (set by the user).
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
	Millicores int    `json:"millicores,omitempty"`      // most thousandths of one that an action may use; 0: no bound known
	Host       string `json:"host,omitempty"`            // address of an OpenWhisk that is not the embedded one
	Found      int    `json:"processorsFound,omitempty"` // most that a container of the job has found; 0: unknown
	// paths of kernels that the job's engines took, separated by commas: the same one gives the same bits everywhere
	Kernels  string     `json:"kernels,omitempty"`
	PoolFrom PoolSource `json:"poolFrom,omitempty"` // who says what Pool is; "": the embedded platform, or nobody
	PoolAt   time.Time  `json:"poolAt,omitzero"`    // when the doctor found Pool out; zero for other sources
	// Busy is how many threads of other programs wanted those processors when the job was planned; 0: none, or unknown.
	Busy float64 `json:"busyThreads,omitempty"`
}

// PoolSource is who says how much memory a pool has.
type PoolSource string

// Who says how much memory a pool has. What the doctor found may have changed since.
const (
	PoolGiven PoolSource = "flag"     // the user, by --pool-memory or Config.Pool
	PoolTold  PoolSource = "platform" // the platform itself
	PoolFound PoolSource = "doctor"   // the doctor, by containers that ran at once
)

// Accelerators is how many there are: 0 where there is no MaxDevice, and one where nobody counted.
func (p PlatformLimits) Accelerators() int {
	if p.MaxDevice <= 0 {
		return 0
	}
	return max(1, p.Devices)
}

// Estimate is the memory one action is expected to need at its peak, term by term.
type Estimate struct {
	Total  Bytes  `json:"totalBytes"` // m_a: what the limit is set from; the likely peak and the margin
	Method string `json:"method"`     // "paper", "planned", "learned", or "measured" for what no plan knows
	// The interval: the peak is Likely, and within Low and High in nine cases of ten; above Total in Risk of them.
	Low    Bytes   `json:"lowBytes"`
	Likely Bytes   `json:"likelyBytes"`
	High   Bytes   `json:"highBytes"`
	Risk   float64 `json:"risk"`
	// What measured peaks of earlier jobs made of it (learned).
	Ratio   float64 `json:"ratio,omitempty"`   // likely peak over that of the plan alone; 0: nothing learned
	Samples int     `json:"samples,omitempty"` // measured peaks behind Ratio
	// The terms of DiSDeL Eq. 1, m_a = fit + pkg + dta + mod + saf, whose names JSON has.
	Training Bytes `json:"fitBytes"` // Eq. 2: parameters, activations and the cached batch while training
	Package  Bytes `json:"pkgBytes"` // the runtime image in memory
	Shard    Bytes `json:"dtaBytes"` // the shard
	Model    Bytes `json:"modBytes"` // the compiled model's parameters
	Margin   Bytes `json:"safBytes"` // safety margin
	// The terms of fit.
	Parameters  Bytes `json:"parametersBytes"`        // Eq. 3
	Weights     Bytes `json:"weightsBytes,omitempty"` // of Parameters, without gradients and moments; 0: not told apart
	Activations Bytes `json:"activationsBytes"`       // Eq. 4
	Misc        Bytes `json:"miscBytes"`              // Eq. 5
	Workspace   Bytes `json:"workspaceBytes"`         // what the engine needs beyond the paper's terms (measured)

	// Device is what lies in an accelerator's memory, which none of the above counts.
	Device Bytes `json:"deviceBytes,omitempty"`
	// DeviceParts is what Device is made of, by the engine's categories.
	DeviceParts []MemoryPart `json:"deviceParts,omitempty"`

	Layers []LayerEstimate `json:"layers,omitempty"` // train actions only
	Notes  []string        `json:"notes,omitempty"`
}

// Peak is the interval of the estimate. Where it gives none, the total is the likely peak, and low and high are 0.
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

// Interval is a prediction: nine of ten cases are from Low to High.
type Interval[T any] struct {
	Low    T `json:"low"`
	Likely T `json:"likely"`
	High   T `json:"high"`
}

// Source is what timeouts and forecasts rest on.
type Source string

// The sources, from the nearest to the farthest, and those of timeouts that nothing was measured for.
const (
	SourceOwn      Source = "this job" // its own rounds so far
	SourceHistory  Source = "history"  // jobs of the same network, data and shape
	SourceSimilar  Source = "similar jobs"
	SourceProbe    Source = "probe"
	SourceCost     Source = "cost" // what the user expects to pay
	SourcePlatform Source = "platform maximum"
	SourceJobFile  Source = "job file"
)

// Forecast is what a job is expected to take, before it starts or of what is left of it.
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

// ByUse is the cost by use, and Eq. 6, which is not below it, in forecasts of earlier versions.
func (f *Forecast) ByUse() Interval[float64] {
	if f.Used.Likely > 0 {
		return f.Used
	}
	return f.Cost
}

// LeastCost is the cost by use in GB-s that a job has to be allowed to start. Other programs' load is not in it: that
// may end, and a job of the same plan may have cost no more. A job with a goal may come to it long before its end.
func (f *Forecast) LeastCost(goal bool) float64 {
	c := f.ByUse()
	least := c.Likely
	if f.Quiet > 0 {
		least = min(least, f.Quiet)
	}
	if goal {
		least = min(least, c.Low)
	}
	return least
}

// Plan is how a job will run: what each action gets and how updates flow up the tree.
type Plan struct {
	Workers  int            `json:"workers"`
	Rounds   int            `json:"rounds"`
	Epochs   int            `json:"epochsPerRound"`
	Platform PlatformLimits `json:"platform"`
	Actions  []ActionPlan   `json:"actions"`
	Shards   []RowRange     `json:"shards"`                    // by worker
	Batches  int            `json:"batchesPerRound,omitempty"` // of a round that is shorter than an epoch; 0: whole epochs
	Threads  int            `json:"threads,omitempty"`         // of a train action; 0: unknown
	// rows of a worker's step, where the workers share the job's batch; 0: as the job has it
	BatchSize int `json:"workerBatchSize,omitempty"`
	// activations that a worker's round is expected to take one after another
	Legs          int     `json:"legs"`
	HeldOut       int     `json:"heldOut"`  // rows evaluated
	Levels        []Level `json:"levels"`   // levels[0] is level 1 of the tree
	Parallel      int     `json:"parallel"` // train actions that the pool holds at once
	TimeoutSource Source  `json:"timeoutSource"`
	// GB-s, Eq. 6 and evaluations with every action at its limits
	CostGBs  float64   `json:"costBoundGBs"`
	Forecast *Forecast `json:"forecast,omitempty"` // nil where nothing is known
	Reasons  []string  `json:"reasons"`            // the arithmetic, a sentence each
}

// Update is the size of one worker's update on its way in a wire format: what an aggregation holds of it as float32,
// narrowed. Where the format's size depends on the values it is the most.
func (p *Plan) Update(w Wire) Bytes {
	a, _ := p.Action(TaskAggregate)
	return Bytes(float64(a.Estimate.Model) * w.Share())
}

// ActionPlan is one OpenWhisk action of the job: what it does, at which limits, on which estimate.
type ActionPlan struct {
	Task Task       `json:"task"`
	Name ActionName `json:"name"`
	Limits
	Estimate Estimate `json:"estimate"`
}

// Waves is how many times a round starts train actions, where the platform does not hold all of them at once.
func (p *Plan) Waves() int {
	atOnce := max(1, p.Parallel)
	return max(1, (p.Workers+atOnce-1)/atOnce)
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
}
