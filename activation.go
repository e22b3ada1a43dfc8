package disdel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Invocation is a request to run one action once.
type Invocation struct {
	ID      string     `json:"id"` // unique in the job, derived from round, task, level and member: "round 0/train/1"
	Task    Task       `json:"task"`
	Action  ActionName `json:"action"`
	Round   int        `json:"round"`
	Level   int        `json:"level"`
	Member  int        `json:"member"`          // worker of a train action, cluster of an aggregate action
	Attempt int        `json:"attempt"`         // 1 and up
	Leg     int        `json:"leg,omitempty"`   // activations before this one that the same work was divided into
	Stage   int        `json:"stage,omitempty"` // number of its stage among the record's
	Limits
	Estimate Bytes `json:"estimateBytes"` // what the limit was set from
	Likely   Bytes `json:"likelyBytes"`   // expected peak
	Job      JobID `json:"-"`
	// The action ends by itself after this time, so that the job keeps its budget; 0: only the timeout ends it.
	Hold Millis `json:"holdMs,omitempty"`
	// What a train action trains. Records have it only for failures.
	TrainRange *TrainRange     `json:"stretch,omitempty"`
	Params     json.RawMessage `json:"-"` // the request below that goes with Task
	// Longest wait for the job's own earlier activations, if the pool cannot hold all at once.
	Queue Millis `json:"-"`
}

// Expected is the likely peak memory that the action was planned with. Old records have only the estimate that its
// limit was set from.
func (i *Invocation) Expected() Bytes {
	if i.Likely > 0 {
		return i.Likely
	}
	return i.Estimate
}

// NoRecord is the value of Activation.Recovered if OpenWhisk had no record of the activation's end yet.
const NoRecord = "no record yet"

// Activation is the result of an Invocation: OpenWhisk's record of it, read and classified.
type Activation struct {
	ID ActivationID `json:"activation"`
	Invocation
	Outcome  Outcome           `json:"outcome"`
	Start    time.Time         `json:"start"`
	End      time.Time         `json:"end"`
	Duration Millis            `json:"durationMs"` // what OpenWhisk limits and bills: init and run, without the wait
	InitTime Millis            `json:"initMs"`     // cold starts only
	WaitTime Millis            `json:"waitMs"`
	Cold     bool              `json:"cold"`
	Peak     Bytes             `json:"peakBytes"`          // measured peak of resident memory; 0: unknown
	Phases   map[string]Millis `json:"phasesMs,omitempty"` // of the result's usage: load, fetch, compute, push
	Rows     int               `json:"rows,omitempty"`     // trained or evaluated by this activation, each epoch's counted
	// the task's result below; nil unless Outcome is Success or Paused
	Result   json.RawMessage `json:"-"`
	Failure  *Error          `json:"failure,omitempty"`
	Evidence []string        `json:"evidence,omitempty"` // what the classification rests on
	Beats    []Beat          `json:"beats,omitempty"`    // heartbeats, thinned out; the last one is always there
	Logs     []string        `json:"logs,omitempty"`     // the last lines that the action printed
	LogLines int             `json:"logLines,omitempty"` // lines printed in all, if Logs does not have them all
	// Loss is the training loss of the last epoch. Only successful train actions have one.
	Loss *float64 `json:"trainLoss,omitempty"`
	// Suspected: the process died without a message, and it may have run out of memory.
	Suspected bool `json:"memorySuspected,omitempty"`
	// Recovered is set if the action's update was complete in the store and was used, although OpenWhisk reported this
	// failure, or NoRecord.
	Recovered string `json:"recovered,omitempty"`
	// DevicePeak is its peak of GPU memory, with the driver's context if that is known; 0: none, or unknown.
	DevicePeak Bytes `json:"devicePeakBytes,omitempty"`
	// Slowdown is how many times as long its threads took because they waited for processors; 0: unknown.
	Slowdown float64 `json:"slowdown,omitempty"`
}

// Beat is one heartbeat of a running action.
type Beat struct {
	At       Millis  `json:"atMs"` // after the invocation
	Resident Bytes   `json:"residentBytes"`
	Peak     Bytes   `json:"peakBytes"`
	Device   Bytes   `json:"deviceBytes,omitempty"` // of an accelerator's memory
	Epoch    int     `json:"epoch,omitempty"`
	Batch    int     `json:"batch,omitempty"`
	Batches  int     `json:"batches,omitempty"`
	Loss     float64 `json:"loss,omitempty"`
}

// FailureKind is the kind of an activation's failure, UnknownKind where it has none.
func (a *Activation) FailureKind() Kind {
	if a.Failure == nil {
		return UnknownKind
	}
	return a.Failure.Kind
}

// FailureCode is the code of an activation's failure, "" where it has none.
func (a *Activation) FailureCode() Code {
	if a.Failure == nil {
		return ""
	}
	return a.Failure.Code
}

// LackedDevice tells whether an activation ran out of GPU memory.
func (a *Activation) LackedDevice() bool {
	return a.Outcome == OutcomeOutOfMemory && a.FailureCode() == CodeDeviceMemory
}

// LackedMemory tells whether an activation ran out of its container's memory.
func (a *Activation) LackedMemory() bool {
	return a.Outcome == OutcomeOutOfMemory && a.FailureCode() != CodeDeviceMemory
}

// HeldGBs is the cost of an activation by use: its memory limit times its duration, in GB-s.
func (a *Activation) HeldGBs() float64 { return GBSeconds(a.Limits.Memory, max(0, a.Duration)) }

// GBSeconds is memory times a duration, in GB-s.
func GBSeconds(memory Bytes, over Millis) float64 { return memory.Gigabytes() * over.Seconds() }

// Outcome tells how an activation ended.
type Outcome uint8

// The outcomes. Zero: not ended.
const (
	OutcomeUnknown Outcome = iota
	OutcomeSuccess
	OutcomeApplicationError // the action's own structured error
	OutcomeDeveloperError   // the action's process died or answered nonsense
	OutcomeOutOfMemory
	OutcomeTimeout
	OutcomeInternalError // OpenWhisk's
	OutcomeLost          // no record after the deadline
	OutcomeCanceled
	OutcomePaused       // stopped before its deadline with its state stored; the next leg continues from there
	OutcomeStartFailure // the image could not be pulled or the container not be started
	OutcomeThrottled    // the platform's quota of invocations is used up
	OutcomeTooLarge     // payload, result or code above the platform's bound
	OutcomeDiverged     // a loss or weights that are not finite
	OutcomeCorrupt      // data or an update damaged
)

var outcomeNames = [...]string{
	"unknown", "success", "applicationError", "developerError", "outOfMemory", "timeout", "internalError", "lost",
	"canceled",
	"paused", "startFailure", "throttled", "tooLarge", "diverged", "corrupt",
}

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return outcomeNames[0]
}

// Failed tells whether an outcome is a failure. A pause and a cancel are not: somebody asked for them.
func (o Outcome) Failed() bool {
	switch o {
	case OutcomeUnknown, OutcomeSuccess, OutcomePaused, OutcomeCanceled:
		return false
	default:
		return true
	}
}

// MarshalText writes the outcome's name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads an outcome's name; an unknown one becomes OutcomeUnknown.
func (o *Outcome) UnmarshalText(text []byte) error {
	*o = OutcomeUnknown
	for i, name := range outcomeNames {
		if name == string(text) {
			*o = Outcome(i)
		}
	}
	return nil
}

// Network is a network as an action needs it to build the same graph as the controller did.
type Network struct {
	Name    string         `json:"name,omitempty"` // of the zoo
	Layers  []Layer        `json:"layers,omitempty"`
	Custom  *CustomNetwork `json:"custom,omitempty"`  // computed by the action's own binary
	Sparse  *SparseNetwork `json:"sparse,omitempty"`  // of a model of sparse rows, which Name names
	Input   []int          `json:"input"`             // [channels height width]; of sparse rows [columns]
	Classes int            `json:"classes"`           // outputs
	Targets []Target       `json:"targets,omitempty"` // that the outputs predict; nil: classes, or sparse rows
	Init    Init           `json:"init"`
	LoRA    *LoRA          `json:"lora,omitempty"` // adapters that are trained; a trained model has none
	// NextToken has the network learn the next token at each position of a row. Classes is the number of tokens.
	NextToken bool `json:"nextToken,omitempty"`
}

// HasFrozen tells whether a training freezes layers.
func (n *Network) HasFrozen() bool { return n.LoRA != nil || n.Init.Freeze != "" }

// Store is where updates go: the addresses of Redis servers and a prefix for all keys. An address is a URL as go-redis'
// ParseURL reads it, or that of a Sentinel: redis-sentinel://HOST:PORT/MASTER. Sentinels with the same master are one
// server. A node of a Redis Cluster stands for the whole cluster, which is one server too.
type Store struct {
	URLs   []string // at least one; the first has heads and small values, large values are spread over all
	Prefix string
	CA     string // PEM text of the authority that rediss:// servers are checked against; "": the system's
}

// storeFields is a Store as JSON has it: the first address apart from the others.
type storeFields struct {
	URL    string   `json:"url"`
	More   []string `json:"more,omitempty"`
	Prefix string   `json:"prefix"`
	CA     string   `json:"ca,omitempty"`
}

// MarshalJSON writes the first address as url and the others as more.
func (s Store) MarshalJSON() ([]byte, error) {
	out := storeFields{Prefix: s.Prefix, CA: s.CA}
	if len(s.URLs) > 0 {
		out.URL, out.More = s.URLs[0], s.URLs[1:]
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Store) UnmarshalJSON(data []byte) error {
	var in storeFields
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*s = Store{Prefix: in.Prefix, CA: in.CA}
	if in.URL != "" || len(in.More) > 0 {
		s.URLs = append([]string{in.URL}, in.More...)
	}
	return nil
}

// TrainRequest is the parameter of a train action.
type TrainRequest struct {
	Job            JobID       `json:"job"`
	Round          int         `json:"round"`
	Worker         int         `json:"worker"`
	Attempt        int         `json:"attempt"`
	Network        Network     `json:"network"`
	Data           DataRef     `json:"data"`
	Shard          RowRange    `json:"shard"`
	Leg            int         `json:"leg,omitempty"`   // above 0: continue from the state that the previous leg stored
	Probe          bool        `json:"probe,omitempty"` // only measure: push nothing
	TrainRange                 // of this round
	JobEpochs      int         `json:"jobEpochs"` // of the whole job, which a schedule goes by
	BatchSize      int         `json:"batchSize"`
	Optimizer      Optimizer   `json:"optimizer"`
	Schedule       *Schedule   `json:"schedule,omitempty"`
	ClipNorm       float64     `json:"clipNorm,omitempty"` // 0: any
	Exact          bool        `json:"exact,omitempty"`    // no Winograd
	Precision      Precision   `json:"precision,omitempty"`
	StepMemory                 // of every step
	Loss           string      `json:"loss"`
	LabelSmoothing float64     `json:"labelSmoothing,omitempty"`
	ClassWeights   []float32   `json:"classWeights,omitempty"` // by class; nil: all are 1
	Target         float64     `json:"target,omitempty"`       // mean loss of an epoch to stop at; 0: never
	Threads        int         `json:"threads"`
	Backend        string      `json:"backend,omitempty"`
	Wire           Wire        `json:"wire,omitempty"`        // "": float32
	Threshold      float64     `json:"threshold,omitempty"`   // of the wire significant
	OptimizerState StatePolicy `json:"upkeep,omitempty"`      // of the optimiser's moments; "": reset
	Statistics     StatePolicy `json:"statistics,omitempty"`  // of batch norms' running statistics; "": average
	SaveEvery      Millis      `json:"saveEveryMs,omitempty"` // between states stored inside a round; 0: none
	// The action stores its state and pauses before this time, where the job's budget ends; 0: no budget.
	Hold   Millis `json:"holdMs,omitempty"`
	Models string `json:"models,omitempty"` // blob URL of the two below
	// Checkpoint of the weights that the round starts from, if the store lost them.
	ReferenceCheckpoint string `json:"from,omitempty"`
	StateCheckpoint     string `json:"checkpoint,omitempty"` // where the worker's own state goes; "": nowhere
	Given               string `json:"given,omitempty"`      // checkpoint with frozen weights; "": there are none
	Store               Store  `json:"store"`
	Memory              Bytes  `json:"limitBytes"`
	Estimate            Bytes  `json:"estimateBytes"` // the garbage collector keeps the process within it
	// GPU memory that it may take; 0: as much as it needs.
	Device Bytes `json:"limitDeviceBytes,omitempty"`

	Pipeline *PipelineStage `json:"pipeline,omitempty"` // nil: the action has the whole network

	Exchange *Exchange `json:"exchange,omitempty"` // nil: nothing is exchanged inside the round
	Members  int       `json:"gang,omitempty"`     // workers that exchange
	Steps    int       `json:"steps,omitempty"`    // of the round, on the worker that has most
}

// ID names the update that the request asks for.
func (r *TrainRequest) ID() UpdateID {
	id := UpdateID{Job: r.Job, Round: r.Round, Member: r.Worker}
	if p := r.Pipeline; p != nil {
		id.Member = r.Worker*p.Stages + p.Stage
	}
	return id
}

// PipelineStage is one of several actions that train a network together: each has consecutive layers.
type PipelineStage struct {
	Stage  int `json:"stage"`  // 0 and up
	Stages int `json:"stages"` // of the network
	From   int `json:"from"`   // first node of the network's graph, see model.Graph.Sliced
	To     int `json:"to"`     // the node behind the last one
}

// DataRef tells an action which data set it reads, and how.
type DataRef struct {
	URL      string `json:"url"`      // blob URL of the bucket
	Name     string `json:"name"`     // the data set
	Checksum string `json:"checksum"` // sha256 of its manifest
	Split    Split  `json:"split"`
	Resize   int    `json:"resize,omitempty"` // sides that images are resized to; 0: as stored
	// How training rows are changed; zero: not at all.
	Augment Augment `json:"augment,omitzero"`
	// OnDisk keeps the rows in a file of the action's machine; labels and targets stay in memory.
	OnDisk bool `json:"onDisk,omitempty"`
}

// TrainResult is the result of a train action.
type TrainResult struct {
	Loss   float64   `json:"loss"`   // mean over the last epoch's samples
	Losses []float64 `json:"losses"` // by epoch of this round
	// share of right rows as they were seen, by epoch of this round; nil: not known
	Accuracies  []float64 `json:"accuracies,omitempty"`
	Samples     int       `json:"samples"`
	Epochs      int       `json:"epochs"`
	Reached     bool      `json:"reached"`          // the target loss
	Paused      bool      `json:"paused,omitempty"` // before its deadline: the next leg continues from the stored state
	Waited      bool      `json:"waited,omitempty"` // paused because other workers had not sent their updates
	BatchesDone int       `json:"batch,omitempty"`  // of the round, trained so far; a paused leg's only
	Duplicate   bool      `json:"again,omitempty"`  // another activation had already delivered this update
	// Last step of a worker that was removed during the round. It has sent its changes and delivers no update. 0: it
	// stayed.
	Left  int   `json:"left,omitempty"`
	Rows  int   `json:"rows"` // trained by this activation, each epoch's counted
	Usage Usage `json:"usage"`
}

// Usage is what an action measured about itself.
type Usage struct {
	Peak   Bytes `json:"peakBytes"`             // high-water mark of resident memory
	Device Bytes `json:"deviceBytes,omitempty"` // of an accelerator, as long as the engine stands
	// load, fetch, compute, push; wait is the part of compute in which a stage waited for others
	Phases map[string]Millis `json:"phasesMs"`
	Warm   bool              `json:"warm"` // the process had run before
	// Name of the kernels that computed, such as avx512; "": nothing was computed, or by an older runtime.
	Kernels string `json:"kernels,omitempty"`
	Found   int    `json:"processors,omitempty"` // that the container may use; 0: an older runtime
	// Slowdown is how many times as long its threads took because they waited for processors; 0: unknown.
	Slowdown float64     `json:"slowdown,omitempty"`
	Steps    *StepCourse `json:"steps,omitempty"` // of a worker that exchanges after each
}

// AggregateRequest is the parameter of an aggregate action: reduce Members to their mean. Without any, what an earlier
// one made of the round is only written.
type AggregateRequest struct {
	Job        JobID      `json:"job"`
	Round      int        `json:"round"`
	Level      int        `json:"level"`
	Cluster    int        `json:"cluster"`
	Attempt    int        `json:"attempt"`
	Members    []UpdateID `json:"members"`
	Top        bool       `json:"top"`                  // publish the result as the next round's reference
	Shard      int        `json:"shard,omitempty"`      // part of the weights to average, from 0
	Shards     int        `json:"shards,omitempty"`     // parts of the weights; 0: one
	Next       bool       `json:"next,omitempty"`       // the result is a shard of the next round's reference
	JoinShards bool       `json:"joinShards,omitempty"` // top only: Members are the shards of the next round's reference
	Store      Store      `json:"store"`
	Memory     Bytes      `json:"limitBytes"`
	Estimate   Bytes      `json:"estimateBytes"`    // the garbage collector keeps the process within it
	Models     string     `json:"models,omitempty"` // blob URL; top only: where final weights and checkpoints go
	WeightsKey string     `json:"path,omitempty"`   // key of the final weights below Models
	// checkpoint of the reference that was published, for a store that lost it
	ReferenceCheckpoint string `json:"from,omitempty"`
	// key below Models; top only: where the new reference goes, with the optimiser's state if that is averaged
	NextCheckpoint string     `json:"checkpoint,omitempty"`
	Given          string     `json:"given,omitempty"`    // below Models: checkpoint of frozen weights; "": there are none
	Wire           Wire       `json:"wire,omitempty"`     // "": float32
	Averaged       *Optimizer `json:"averaged,omitempty"` // whose moments are averaged too; nil: none
	Network        Network    `json:"network"`
	Hold           Millis     `json:"holdMs,omitempty"` // after which the budget holds no more, and it fails; 0: no bound
	// Join says that the members are the stages of one network: they are put together instead of averaged.
	Join bool `json:"join,omitempty"`
}

// AggregateResult is the result of an aggregate action.
type AggregateResult struct {
	Weight    float64     `json:"weight"`             // samples behind the average
	Checksum  string      `json:"checksum,omitempty"` // sha256 of the final weights' file
	Size      Bytes       `json:"sizeBytes,omitempty"`
	Saved     *Checkpoint `json:"saved,omitempty"`
	Unsaved   *Error      `json:"unsaved,omitempty"`  // why the checkpoint that was asked for could not be written
	Unpruned  *Error      `json:"unpruned,omitempty"` // why older checkpoints could not be removed
	Duplicate bool        `json:"again,omitempty"`    // another activation had already delivered this
	Usage     Usage       `json:"usage"`
}

// EvaluateRequest is the parameter of an evaluate action: held-out rows under the reference of Round.
type EvaluateRequest struct {
	Job       JobID      `json:"job"`
	Round     int        `json:"round"`
	Network   Network    `json:"network"`
	Data      DataRef    `json:"data"`
	Rows      RowRange   `json:"rows"`
	BatchSize int        `json:"batchSize"`
	Loss      string     `json:"loss"`
	Threads   int        `json:"threads"`
	Backend   string     `json:"backend,omitempty"`
	Exact     bool       `json:"exact,omitempty"`    // as the training
	Averaged  *Optimizer `json:"averaged,omitempty"` // whose moments stand in the reference too; nil: none
	Hold      Millis     `json:"holdMs,omitempty"`   // after which the budget holds no more, and it fails; 0: no bound
	Models    string     `json:"models,omitempty"`   // blob URL of the next
	// checkpoint of the same weights, for a store that lost them
	ReferenceCheckpoint string `json:"from,omitempty"`
	Given               string `json:"given,omitempty"` // checkpoint of frozen weights; "": there are none
	Store               Store  `json:"store"`
	Memory              Bytes  `json:"limitBytes"`
	Estimate            Bytes  `json:"estimateBytes"`              // what the collector is to keep the process within
	Device              Bytes  `json:"limitDeviceBytes,omitempty"` // of an accelerator's memory, at most; 0: what it needs
	InBlocks            bool   `json:"inBlocks,omitempty"`         // read the weights without a copy beside the engine
	ByLayers            bool   `json:"byLayers,omitempty"`         // compute one slice of the network after the other
}

// EvaluateResult is the result of an evaluate action.
type EvaluateResult struct {
	Loss     float64 `json:"loss"`
	Accuracy float64 `json:"accuracy"` // share of rows whose largest output is the label
	Samples  int     `json:"samples"`
	Scores
	ByClass *ByClass `json:"byClass,omitempty"` // nil: of targets that are numbers, or of an older runtime
	Usage   Usage    `json:"usage"`
}

// InferRequest is the parameter of an infer action.
type InferRequest struct {
	Models     string      `json:"models"`            // blob URL
	WeightsURL string      `json:"weights,omitempty"` // blob URL of the model, if it is another one than Models
	WeightsKey string      `json:"path"`
	Checksum   string      `json:"checksum"`
	Network    Network     `json:"network"`
	Inputs     [][]float32 `json:"inputs"`            // rows of channels x height x width values
	Rows       *RowsRef    `json:"rows,omitempty"`    // in the place of Inputs, where those are more than a request may be
	Sparse     *SparseAsk  `json:"sparse,omitempty"`  // what is asked of a model of sparse rows, in the place of both
	Dataset    *DataAsk    `json:"dataset,omitempty"` // rows of a data set of either sort, in the place of all three
	Texts      [][]int32   `json:"texts,omitempty"`   // tokens of texts that a language model continues, likewise
	Backend    string      `json:"backend,omitempty"`
	Memory     Bytes       `json:"limitBytes"`
	Estimate   Bytes       `json:"estimateBytes"`      // what the collector is to keep the process within
	ByLayers   int         `json:"byLayers,omitempty"` // rows that go through slice after slice; 0: one engine has all

	Continuation Continuation `json:"continuation,omitzero"` // of Texts
}

// Continuation says how a language model continues a text. Each token is drawn from the probabilities of the model.
type Continuation struct {
	Tokens      int     `json:"tokens"`                // the most that are added
	Temperature float64 `json:"temperature,omitempty"` // probabilities to the power of 1/Temperature; 0: the most probable
	TopK        int     `json:"topK,omitempty"`        // only this many of the most probable tokens; 0: all
	// TopP keeps the most probable tokens, after Temperature and TopK, until they have this probability together
	// (Holtzman 2020, "The Curious Case of Neural Text Degeneration"); 0: all.
	TopP float64 `json:"topP,omitempty"`
	Seed int64   `json:"seed,omitempty"` // of the draws
	End  *int32  `json:"end,omitempty"`  // the token that ends a text; nil: none
}

// RowsRef is rows of inputs beside the models: float32, little-endian, one after another.
type RowsRef struct {
	Key      string `json:"path"`
	Checksum string `json:"checksum"`
}

// InferResult is the result of an infer action.
type InferResult struct {
	Classes       []int       `json:"classes"`
	Probabilities [][]float32 `json:"probabilities"`
	Usage         Usage       `json:"usage"`

	Predictions     []float32     `json:"predictions,omitempty"`     // by row, of a model of sparse rows
	Recommendations []Recommended `json:"recommendations,omitempty"` // by user who was asked for

	Answers *AnswersRef `json:"answers,omitempty"` // for rows of a data set, instead of all others

	Continued [][]int32 `json:"continued,omitempty"` // the tokens that were added to each text, instead of all others
}

// Progress is a heartbeat that a running action writes to the store.
type Progress struct {
	Task     Task    `json:"task"`
	Round    int     `json:"round"`
	Level    int     `json:"level,omitempty"`
	Member   int     `json:"member"`
	Epoch    int     `json:"epoch"` // 1-based, of the job
	Batch    int     `json:"batch"`
	Batches  int     `json:"batches"` // in the epoch
	Loss     float64 `json:"loss"`
	Resident Bytes   `json:"residentBytes"`
	Peak     Bytes   `json:"peakBytes"`
	Device   Bytes   `json:"deviceBytes,omitempty"` // of an accelerator's memory
	UnixMs   int64   `json:"at"`                    // of the action's clock
	// of a worker that exchanges after each; nil: it does not
	Steps *StepsSoFar `json:"steps,omitempty"`
}

// LossText returns the loss with four decimals, and "-" before the first batch of the epoch, which has no loss yet.
func (p Progress) LossText() string {
	if p.Batch < 1 || p.Loss == 0 { // of a network's stages only the last one knows it
		return "-"
	}
	return strconv.FormatFloat(p.Loss, 'f', 4, 64)
}

// Beat converts a heartbeat for the record; after is the time since the invocation.
func (p Progress) Beat(at Millis) Beat {
	return Beat{
		At: at, Resident: p.Resident, Peak: p.Peak, Device: p.Device, Epoch: p.Epoch, Batch: p.Batch, Batches: p.Batches,
		Loss: p.Loss,
	}
}

// Slot is the place of an action in a job, the same in every round: for example, worker 3 of the train action.
type Slot struct {
	Task          Task
	Level, Member int
}

// Slot is the slot of an invocation.
func (i *Invocation) Slot() Slot { return Slot{i.Task, i.Level, i.Member} }

// Name is a slot's name for people: "train 0", "aggregate 1.2", "evaluate".
func (s Slot) Name() string {
	switch s.Task {
	case TaskAggregate:
		return fmt.Sprintf("aggregate %d.%d", s.Level, s.Member)
	case TaskTrain:
		return fmt.Sprintf("train %d", s.Member)
	default:
		return string(s.Task)
	}
}

// taskOrder is the order of a round.
var taskOrder = []Task{TaskTrain, TaskAggregate, TaskEvaluate, TaskInfer}

// BySlot groups activations by slot: in the order of a round, then by level and member. Activations of one slot keep
// their order.
func BySlot(list []Activation) [][]*Activation {
	var out [][]*Activation
	at := map[string]int{}
	for i := range list {
		name := list[i].Slot().Name()
		k, ok := at[name]
		if !ok {
			k, at[name] = len(out), len(out)
			out = append(out, nil)
		}
		out[k] = append(out[k], &list[i])
	}
	slices.SortStableFunc(out, func(a, b []*Activation) int {
		s, t := a[0].Slot(), b[0].Slot()
		return cmp.Or(slices.Index(taskOrder, s.Task)-slices.Index(taskOrder, t.Task), s.Level-t.Level, s.Member-t.Member)
	})
	return out
}

// TrainRange is the part of a job's training that one worker does in a round.
type TrainRange struct {
	Epochs  int `json:"epochs"`            // to train, the first and the last maybe in part
	Epoch   int `json:"epoch"`             // trained before
	Batch   int `json:"batch,omitempty"`   // trained before, of the first epoch
	Batches int `json:"batches,omitempty"` // to train, of the one epoch that they are in; 0: to the epochs' end
}

// Done is the number of batches that an activation had done at its last heartbeat, and of all batches of its work.
func (a *Activation) Done() (done, all int) {
	if len(a.Beats) == 0 {
		return 0, 0
	}
	return a.ProgressAt(a.Beats[len(a.Beats)-1])
}

// DoneText returns "20 of 50 batches were trained".
func (a *Activation) DoneText() string {
	done, all := a.Done()
	verb := "trained"
	if a.Task == TaskEvaluate {
		verb = "evaluated"
	}
	return fmt.Sprintf("%d of %d batches were %s", done, all, verb)
}

// ProgressAt is the number of batches that an action had done at a heartbeat. Heartbeats count from the start of the
// epoch. If the part of the epoch is unknown, the round counts as the whole epoch.
func (a *Activation) ProgressAt(b Beat) (done, all int) {
	s := a.TrainRange
	switch {
	case s == nil || s.Epochs == 0:
		return b.Batch, b.Batches
	case s.Batches > 0:
		return min(max(0, b.Batch-s.Batch), s.Batches), s.Batches
	}
	all = max(0, s.Epochs*b.Batches-s.Batch)
	done = max(0, b.Epoch-s.Epoch-1)*b.Batches + b.Batch - s.Batch
	return min(max(0, done), all), all
}

// Bounds that tell a stall from slow work. Heartbeats come several times a second, unless a batch takes longer.
const (
	leastSilence   = Millis(1500 * time.Millisecond)
	silenceInBeats = 3 // longest times between two heartbeats
)

// Stall is the point at which an activation stopped answering, long before its timeout.
type Stall struct {
	At        Millis // time of the last heartbeat, since the activation's start
	Silence   Millis // from then to its end
	Done, All int    // batches at the last heartbeat; 0: its heartbeats tell none
}

// Text returns "its heartbeats stopped after 0.2 s, at 10 % of its work".
func (s Stall) Text() string {
	text := fmt.Sprintf("its heartbeats stopped after %.1f s", s.At.Seconds())
	if s.All > 0 {
		text += fmt.Sprintf(", at %d %% of its work", 100*s.Done/s.All)
	}
	return text
}

// Stalled tells whether a timed out activation had stopped answering long before. Its heartbeats ended early, and their
// pace shows that the timeout was long enough. Such an activation was frozen or cut off: it needs no longer timeout.
func (a *Activation) Stalled() (Stall, bool) {
	n := len(a.Beats)
	if a.Outcome != OutcomeTimeout || n == 0 {
		return Stall{}, false
	}
	last, ran := a.Beats[n-1], a.Duration
	if ran <= 0 {
		ran = a.Limits.Timeout
	}
	s := Stall{At: max(0, last.At-a.WaitTime)}
	s.Silence = ran - s.At
	s.Done, s.All = a.ProgressAt(last)
	if a.Task != TaskAggregate && (s.Done == 0 || s.Done >= s.All) { // what comes before and after batches has no beats
		return s, false
	}
	if s.Silence < max(leastSilence, silenceInBeats*a.beatGap()) {
		return s, false
	}
	pace, measured := a.Pace()
	return s, !measured || pace.Ends <= a.Limits.Timeout
}

// beatGap is the longest time between two heartbeats, and between two batches.
func (a *Activation) beatGap() Millis {
	var gap Millis
	for i := 1; i < len(a.Beats); i++ {
		gap = max(gap, a.Beats[i].At-a.Beats[i-1].At)
	}
	last := a.Beats[len(a.Beats)-1]
	if done, _ := a.ProgressAt(last); done > 0 {
		gap = max(gap, (last.At-a.WaitTime)/Millis(done))
	}
	return gap
}

// ProbeRequest is the parameter of a probe action, which checks of a cluster run. It reports on its container, and can
// provoke the platform into ending it.
type ProbeRequest struct {
	Probes  JobID  `json:"probes,omitempty"`  // names those that run for one check: they meet under it on Store
	Member  int    `json:"member,omitempty"`  // which of them this is, counted from 0
	Store   *Store `json:"store,omitempty"`   // Redis to reach; nil: none
	Models  string `json:"models,omitempty"`  // blob URL to reach; "": none
	CouchDB string `json:"couchdb,omitempty"` // address to reach, without a password; "": none
	Hold    Millis `json:"holdMs,omitempty"`  // stay for so long, or until Probes is cancelled on Store
	Touch   Bytes  `json:"touch,omitempty"`   // memory to take
	Exit    bool   `json:"exit,omitempty"`    // end the process without an answer
	Deaf    bool   `json:"deaf,omitempty"`    // stay beyond the deadline
	Memory  Bytes  `json:"limitBytes,omitempty"`
}

// ProbeResult is the result of a probe action.
type ProbeResult struct {
	Processors int       `json:"processors"`
	Limit      Bytes     `json:"limitBytes"` // of the container's control group; 0: none is set
	Node       string    `json:"node"`       // the same for containers of one machine, "" where it is not known
	UnixMs     int64     `json:"at"`         // of the container's clock, when it began
	Left       Millis    `json:"leftMs"`     // to its deadline, when it began; 0: it was given none
	Reached    []Reached `json:"reached,omitempty"`
	Warm       bool      `json:"warm"`
}

// Reached is a store that a probe was to reach.
type Reached struct {
	What    string `json:"what"` // redis, storage or couchdb
	Took    Millis `json:"tookMs"`
	Failure *Error `json:"failure,omitempty"` // nil: it answered
}
