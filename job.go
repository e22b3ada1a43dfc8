package disdel

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// APIVersion and JobKind open every job file.
const (
	APIVersion = "disdel/v1"
	JobKind    = "TrainingJob"
)

// Job is what a user submits: a job file of version disdel/v1 after validation, with every default filled in.
// Field names in YAML, JSON and in messages are the JSON names.
type Job struct {
	APIVersion   string       `json:"apiVersion"`
	Kind         string       `json:"kind"`
	Metadata     Metadata     `json:"metadata"`
	Model        Model        `json:"model"`
	Data         Data         `json:"data"`
	Training     Training     `json:"training"`
	Distribution Distribution `json:"distribution"`
	Resources    Resources    `json:"resources"`
	Reliability  Reliability  `json:"reliability"`
	Output       Output       `json:"output"`
}

// Metadata names the job and carries the user's filter labels.
type Metadata struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
}

// BatchLabel is the label by which lists group the jobs of a batch.
const BatchLabel = "batch"

// Model is the network to train: exactly one of Name (a network of the zoo), Layers, Custom and Python. A job file may also
// name a Keras file; its network is then in Layers, so that a Job needs no other file.
type Model struct {
	Name   string  `json:"name,omitempty"`
	Keras  string  `json:"keras,omitempty"`
	Layers []Layer `json:"layers,omitempty"`
	Custom string  `json:"custom,omitempty"` // a network of the action's own binary
	Python *Python `json:"python,omitempty"` // a program of the user's
	Rank   int     `json:"rank,omitempty"`   // of pmf: factors of each user and item
	Init   Init    `json:"init"`
	LoRA   *LoRA   `json:"lora,omitempty"` // nil: no adapters

	Description *CustomNetwork `json:"-"` // of Custom, as the binary gave it
}

// NetworkName is how tables call the network: the name of the zoo's, of the binary's own or of the Python program; ""
// for a list of layers.
func (m *Model) NetworkName() string {
	if m.Python != nil {
		return m.Python.Name()
	}
	return cmp.Or(m.Name, m.Custom, m.Keras)
}

// SameNetwork tells whether two models have the same network, however its weights start.
func (m *Model) SameNetwork(other *Model) bool {
	return m.Name == other.Name && m.Custom == other.Custom && m.Python.Same(other.Python) &&
		len(m.Layers) == len(other.Layers) && (len(m.Layers) == 0 || reflect.DeepEqual(m.Layers, other.Layers))
}

// NeedsProgram tells whether only a program of the user's computes the network.
func (m *Model) NeedsProgram() bool { return m.Custom != "" || m.Python != nil && !m.Translated() }

// Translated tells whether disdel's own engine trains the network of a Python program, by Layers.
func (m *Model) Translated() bool { return m.Python != nil && m.Python.Translation != nil }

// Init says how weights start.
type Init struct {
	Seed   int64  `json:"seed"`
	Scheme string `json:"scheme"` // glorot or he
	// Weights are what training begins with: NAME, NAME:vN or NAME:TAG of a trained model, or the checksum ("sha256:" and
	// hex) of a file that was put beside the models; "": all are drawn
	Weights string `json:"weights,omitempty"`
	Except  string `json:"except,omitempty"` // layers that are drawn all the same, with commas between them
	// ReplaceHead draws the last layer with weights, too, and gives it the outputs that the data set needs.
	ReplaceHead bool `json:"replaceHead,omitempty"`
	// Freeze names the layers that keep the given weights, with commas between them: names of layers or of blocks around
	// them, where * stands for any text. Once the job is resolved, these are the layers' own names.
	Freeze string `json:"freeze,omitempty"`
}

// Given tells whether training begins with weights that are given.
func (i Init) Given() bool { return i.Weights != "" }

// Excepted are the names in Except.
func (i Init) Excepted() []string { return layerNames(i.Except) }

// Frozen are the names in Freeze.
func (i Init) Frozen() []string { return layerNames(i.Freeze) }

func layerNames(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// Excepts tells whether an array of weights is drawn although other weights are given: its layer, or one around it, is
// in Except.
func (i Init) Excepts(array string) bool {
	return slices.ContainsFunc(i.Excepted(), func(layer string) bool { return strings.HasPrefix(array, layer+".") })
}

// LoRA has a training learn adapters of low rank beside the given weights of dense layers (Hu 2021). All other layers
// with given weights are frozen. The trained model has the sums W + Alpha/Rank B A under the names of W.
type LoRA struct {
	Rank  int     `json:"rank"`  // of the product B A
	Alpha float64 `json:"alpha"` // the adapter's output is multiplied by Alpha/Rank
	// Layers names the dense layers that get an adapter, with commas between them: names of layers or of blocks around
	// them, where * stands for any text. Once the job is resolved, these are the layers' own names.
	Layers string `json:"layers"`
	// Whole names layers that are trained whole, in the same way. Layers that Init draws are trained whole in any case.
	Whole string `json:"whole,omitempty"`
}

// Names are the names in Layers.
func (l LoRA) Names() []string { return layerNames(l.Layers) }

// Factor is what the product B A is multiplied by.
func (l LoRA) Factor() float64 { return l.Alpha / float64(l.Rank) }

// WholeNames are the names in Whole.
func (l LoRA) WholeNames() []string { return layerNames(l.Whole) }

// Same tells whether two jobs train the same adapters; nil is none.
func (l *LoRA) Same(other *LoRA) bool {
	return l == other || l != nil && other != nil && *l == *other
}

// Data says what to learn from.
type Data struct {
	Source   string `json:"source"` // dataset://NAME
	Checksum string `json:"checksum,omitempty"`
	Split    Split  `json:"split"`
	Resize   int    `json:"resize,omitempty"` // height and width that images are resized to, bilinear; 0: as they are
	// How training changes images in every epoch; zero: not at all.
	Augment Augment `json:"augment,omitzero"`
	// Keep says where an action keeps its rows: KeepMemory or KeepDisk; "": in memory.
	Keep string `json:"keep,omitempty"`
}

// Values of Data.Keep.
const (
	KeepMemory = "memory"
	KeepDisk   = "disk" // in a file of the action's machine: memory does not grow with the rows
)

// Augment is random changes of training images, drawn for every row and epoch.
type Augment struct {
	Crop int  `json:"crop,omitempty"` // pixels that they are moved by at most, up or down and left or right, over zeros
	Flip bool `json:"flip,omitempty"` // mirrored, left to right, every other time
}

// DefaultSeed is the seed of the first weights and of the split of a job that names none.
const DefaultSeed = 42

// Split divides the training rows of a data set that brings no held-out rows of its own.
type Split struct {
	Train      float64 `json:"train"`
	Validation float64 `json:"validation"`
	Seed       int64   `json:"seed"`
}

// Distribution says how the work is spread.
type Distribution struct {
	Workers     int         `json:"workers"`              // 0: auto; what the job begins with
	Policy      string      `json:"policy,omitempty"`     // that changes them while the job runs; "": static
	MinWorkers  int         `json:"minWorkers,omitempty"` // that a policy may choose; 0: 1
	MaxWorkers  int         `json:"maxWorkers,omitempty"` // the same; 0: as many as the data and the platform allow
	Sync        Sync        `json:"sync"`
	Aggregation Aggregation `json:"aggregation"`
	Missing     Missing     `json:"missing"`
	Exchange    *Exchange   `json:"exchange,omitempty"` // inside a round; nil: updates are averaged when it ends
	// Stages is the number of actions that train one network together, each consecutive layers of it. Each worker has so
	// many actions. 0 and 1: an action has the whole network.
	Stages int `json:"stages,omitempty"`
}

// The policies of a job file.
const (
	PolicyStatic  = "static"  // what was planned stays
	PolicyKubeML  = "kubeml"  // KubeML's published rule
	PolicyElastic = "elastic" // more workers while that pays
)

// Aggregation shapes the tree and says what of the workers' state is averaged.
type Aggregation struct {
	FanIn int `json:"fanIn"` // workers per aggregation action; 0: auto, by bytes read
	// Shards is into how many parts the weights are cut, each of which has aggregation actions of its own. 0: one.
	Shards int  `json:"shards,omitempty"`
	Wire   Wire `json:"wire"`
	// Threshold is v of the wire significant, of MLLess' filter; other wires do not use it. See package aggregator.
	Threshold      float64     `json:"threshold"`
	OptimizerState StatePolicy `json:"optimizer"`  // of the optimiser's moments from round to round
	Statistics     StatePolicy `json:"statistics"` // of batch norms' running statistics
}

// StatePolicy is what happens to a worker's own state when a round ends.
type StatePolicy string

// The state policies.
const (
	StateAverage StatePolicy = "average" // averaged over the workers, as weights are
	StateReset   StatePolicy = "reset"   // set back to its start
	StateKeep    StatePolicy = "keep"    // every worker continues with its own
)

// Missing is what to do if the update of a worker does not come.
type Missing struct {
	Policy MissingPolicy `json:"policy"`
	After  Duration      `json:"after"` // proceed: time that the others wait, from the first update of the round on
}

// MissingPolicy is a way to treat missing updates.
type MissingPolicy string

// The ways to treat missing updates. MissingProceed averages the updates that came, weighted by their samples.
const (
	MissingRetry   MissingPolicy = "retry"   // invoke it again, as often as reliability.retries allows, then fail
	MissingWait    MissingPolicy = "wait"    // invoke it again until it comes or the job's deadline passes
	MissingProceed MissingPolicy = "proceed" // continue without it
)

// Resources bounds what the job may use.
type Resources struct {
	Risk      float64  `json:"risk"`              // accepted chance that an action is killed for memory
	Memory    Bytes    `json:"memory"`            // per train action; 0: auto
	MaxMemory Bytes    `json:"maxMemory"`         // ceiling for auto; 0: the platform's maximum
	Timeout   Duration `json:"timeout"`           // per action; 0: auto
	Threads   int      `json:"threads,omitempty"` // of a train action; 0: auto
	// GB-s by use for the whole job, kept to while it runs; 0: none. DiSDeL's e_cost
	MaxCost float64 `json:"maxCost"`
	Price   float64 `json:"price,omitempty"` // money for a GB-s; 0: unknown
	// What trains: DeviceCPU, DeviceGPU, or "" for auto, which is a GPU where the platform has one
	Device string `json:"device,omitempty"`
	GPU    GPUs   `json:"gpu,omitzero"` // where Device is DeviceGPU
}

// GPUs bounds what a job takes of GPUs.
type GPUs struct {
	Count  int   `json:"count,omitempty"`  // that its train actions are divided among; 0: all that there are
	Memory Bytes `json:"memory,omitempty"` // of a GPU, for each train action; 0: by the estimate
}

// The devices that a job may ask for.
const (
	DeviceCPU = "cpu"
	DeviceGPU = "gpu" // of NVIDIA, one for each train action, which may share it with others
)

// Money is the price of GB-s by use, in the currency of Price; ok is false without a price.
func (r Resources) Money(gbs float64) (money float64, ok bool) { return gbs * r.Price, r.Price > 0 }

// Reliability bounds the job as a whole.
type Reliability struct {
	Deadline        Duration `json:"deadline"`        // 0: none
	CheckpointEvery int      `json:"checkpointEvery"` // rounds between checkpoints
	Retries         Retries  `json:"retries"`
}

// Retries bounds how failed work is tried again.
type Retries struct {
	Limit         int     `json:"limit"`         // of the whole job; failures of the platform do not count
	PerWorker     int     `json:"perWorker"`     // of one worker in one round
	Backoff       Backoff `json:"backoff"`       // pause before an unchanged retry
	MemoryFactor  float64 `json:"memoryFactor"`  // least growth of the memory limit after out of memory
	TimeoutFactor float64 `json:"timeoutFactor"` // least growth of the timeout after out of time
}

// Backoff is the pause before a retry: Initial, then twice the last one, at most Max.
type Backoff struct {
	Initial Duration `json:"initial"`
	Max     Duration `json:"max"`
}

// Output says where the trained model goes.
type Output struct {
	Model string `json:"model"`
	Keep  int    `json:"keep"` // newest versions kept; the best one is kept besides
}

// Sync says when the workers' weights are averaged: "epoch", "end" or "every K" batches. In JSON and YAML the last one
// is an object, {every: K}.
type Sync string

// The modes of Sync without a number; Every makes the other.
const (
	SyncEpoch Sync = "epoch" // after every epoch
	SyncEnd   Sync = "end"   // once, after the last epoch (DiSDeL's one-shot averaging)
)

const everyPrefix = "every "

// SyncEvery is the mode that averages after every k batches and at the end of every epoch (KubeML's K-AVG).
func SyncEvery(k int) Sync { return Sync(everyPrefix + strconv.Itoa(k)) }

// Every is K of "every K", 0 for the other modes.
func (s Sync) Every() int {
	text, ok := strings.CutPrefix(string(s), everyPrefix)
	k, err := strconv.Atoi(text)
	if !ok || err != nil || k < 1 {
		return 0
	}
	return k
}

// MarshalJSON writes a word, or {"every": K}.
func (s Sync) MarshalJSON() ([]byte, error) {
	if k := s.Every(); k > 0 {
		return json.Marshal(map[string]int{"every": k})
	}
	return json.Marshal(string(s))
}

// UnmarshalJSON reads what MarshalJSON wrote. It returns an Invalid error otherwise.
func (s *Sync) UnmarshalJSON(data []byte) error {
	var word string
	if json.Unmarshal(data, &word) == nil {
		*s = Sync(word)
		return nil
	}
	var object map[string]int
	if err := json.Unmarshal(data, &object); err != nil || len(object) != 1 || object["every"] < 1 {
		return &Error{
			Kind: Invalid, Op: "parse sync", Msg: fmt.Sprintf("%s is no sync", data),
			Hint: "write epoch, end or {every: K}",
		}
	}
	*s = SyncEvery(object["every"])
	return nil
}

// The losses of networks. Of several outputs each is the mean.
const (
	LossCrossEntropy       = "crossEntropy"       // of classes: of the softmax of the outputs
	LossBinaryCrossEntropy = "binaryCrossEntropy" // of classes: every output is a probability of its own
	LossMSE                = "mse"                // mean squared error, of numbers or of classes as 0 and 1
	LossMAE                = "mae"                // mean absolute error, of numbers
	LossHuber              = "huber"              // of numbers: squared up to an error of one deviation, linear beyond
)

// The losses of models of sparse rows, whose targets are numbers.
const (
	LossSquared  = "squared"  // of a prediction less its target; the mean over rows is the mean squared error
	LossLogistic = "logistic" // the negative logarithm of the probability that a target of 0 or 1 was given
)

// SparseNetwork has the sizes of a model of sparse rows: a linear or logistic regression over many columns, or a
// factorisation of a matrix of ratings. They come from the data set and from model.rank.
type SparseNetwork struct {
	Users int `json:"users,omitempty"` // of ratings: a row has column u, of its user, and Users+i, of its item
	Items int `json:"items,omitempty"`
	Rank  int `json:"rank,omitempty"` // factors of each user and item
	// Offset is what a prediction of ratings starts from: the mean of the training targets.
	Offset float64 `json:"offset,omitempty"`
	Mean   int     `json:"meanEntries"` // entries of a row in the mean, rounded up
	Most   int     `json:"mostEntries"` // of any row
}

// SparseData describes a data set of sparse rows: each row has entries in few of many columns, and a number as its
// target.
type SparseData struct {
	Entries int64 `json:"entries"`        // of all rows, held-out ones too
	Most    int   `json:"mostEntries"`    // of a row
	Ones    bool  `json:"ones,omitempty"` // every entry is 1, and none is stored
	Users   int   `json:"users,omitempty"`
	Items   int   `json:"items,omitempty"`
	// FromZero says that the columns of the LIBSVM file count from 0, and not from 1.
	FromZero bool `json:"fromZero,omitempty"`
	// Of the targets of the rows to learn from; Deviation is the standard deviation.
	Mean      float64 `json:"targetMean"`
	Deviation float64 `json:"targetDeviation"`
	Low       float32 `json:"targetLow"`
	High      float32 `json:"targetHigh"`
	Bayes     float64 `json:"bayesLoss,omitempty"` // of a generated data set: the lowest loss that any model can have
}

// Guess is the loss of the best constant prediction: the variance of the targets with LossSquared, their entropy with
// LossLogistic. A model that has learned anything has a lower loss.
func (d *SparseData) Guess(loss string) float64 {
	if loss != LossLogistic {
		return d.Deviation * d.Deviation
	}
	if !(d.Mean > 0 && d.Mean < 1) {
		return 0
	}
	return -d.Mean*math.Log(d.Mean) - (1-d.Mean)*math.Log1p(-d.Mean)
}

// Ratings tells whether a row is a user's rating of an item.
func (d *SparseData) Ratings() bool { return d.Users > 0 }

// Scores are the figures of predicted numbers on held-out rows, besides the loss. Of classes of networks there is Top5.
// Errors are in the unit of the targets; of several targets they are the mean.
type Scores struct {
	RMSE float64 `json:"rmse,omitempty"` // root of the mean squared error, of targets that are numbers
	AUC  float64 `json:"auc,omitempty"`  // chance that a row of 1 gets a higher score than one of 0
	MAE  float64 `json:"mae,omitempty"`  // mean absolute error, of networks
	// Perplexity is exp(loss) of a language model: among how many tokens it is undecided.
	Perplexity float64 `json:"perplexity,omitempty"`
	// R2 is the share of the targets' variance that a network explains, at most 1. nil: sparse rows, or all targets are
	// the same.
	R2 *float64 `json:"r2,omitempty"`
	// F1 is the mean over several labels of the harmonic mean of precision and recall (macro). nil: there are no several
	// labels. MicroF1 is that of all labels together.
	F1      *float64 `json:"f1,omitempty"`
	MicroF1 float64  `json:"microF1,omitempty"`
	// Top5 is the share of rows whose class is among the five most probable. nil: there are fewer than six classes, or
	// the engine does not count it.
	Top5 *float64 `json:"top5,omitempty"`
}

// Text returns "RMSE 0.9412", "RMSE 41.27, MAE 30.1, R2 0.8123", "F1 0.8123, micro F1 0.8410" or "AUC 0.7310", or ""
// without scores. Top5 stands beside the accuracy, and not here.
func (s Scores) Text() string {
	switch {
	case s.F1 != nil:
		return fmt.Sprintf("F1 %.4f, micro F1 %.4f", *s.F1, s.MicroF1)
	case s.Perplexity > 0:
		return fmt.Sprintf("perplexity %.4g", s.Perplexity)
	case s.R2 != nil:
		return fmt.Sprintf("RMSE %.5g, MAE %.5g, R2 %.4f", s.RMSE, s.MAE, *s.R2)
	case s.RMSE != 0:
		return fmt.Sprintf("RMSE %.4f", s.RMSE)
	case s.AUC != 0:
		return fmt.Sprintf("AUC %.4f", s.AUC)
	default:
		return ""
	}
}

// SparseAsk is a request to a model of sparse rows: a prediction for each row, or the best items for users.
type SparseAsk struct {
	Rows  []SparseRow `json:"rows,omitempty"`
	Users []int       `json:"users,omitempty"` // numbers of users, of a model of ratings
	Top   int         `json:"top,omitempty"`   // items for each of them
}

// SparseRow is one row: the columns that it has entries in, each once, and the entries.
type SparseRow struct {
	Index []int32   `json:"index"`
	Value []float32 `json:"value,omitempty"` // nil: 1 each
}

// Recommended is the items that a model expects a user to rate highest, best first.
type Recommended struct {
	User   int       `json:"user"`
	Items  []int     `json:"items"`
	Scores []float32 `json:"scores"`
}

// Exchange is how the workers of a job exchange updates after every step of a round. With OrderFixed the same job gives
// the same bits in every run, even if actions are killed.
type Exchange struct {
	// Threshold is v of MLLess' filter: a weight's change is sent once it is more than v / sqrt(t) of the weight, t being
	// the step of the round. 0 sends every change: bulk synchronous.
	Threshold float64 `json:"threshold"`
	Slack     int     `json:"slack"`   // steps that workers may be apart
	Order     string  `json:"order"`   // of updates: OrderFixed or OrderEager
	Combine   string  `json:"combine"` // CombineMean or CombineSum
	Batches   string  `json:"batches"` // whose rows a worker takes: BatchesShard or BatchesQueue
	// Values is the number format of the updates that workers send: WireFloat32 (the default), WireBfloat16 or WireInt8.
	// A worker adds the rounding error of an update to a later one.
	Values Wire `json:"values,omitempty"`
}

// The words of an Exchange.
const (
	OrderFixed   = "fixed" // by step, then by member
	OrderEager   = "eager" // as they come
	CombineMean  = "mean"  // a step is the mean of the workers' updates
	CombineSum   = "sum"   // or their sum, as MLLess has it
	BatchesShard = "shard" // its own
	BatchesQueue = "queue" // any: each takes the next batch of the round when it has ended one
)

// ExchangeGarbage is the extra garbage that exchanged updates may leave on the heap between two collections; a worker's
// estimate includes it. Collecting after every step would take longer than many steps.
const ExchangeGarbage = 4 * MB

// Queued tells whether workers take batches from a queue; false for nil.
func (x *Exchange) Queued() bool { return x != nil && x.Batches == BatchesQueue }

// StepTimes is where the time of a step with exchange went, ms each.
type StepTimes struct {
	Fetch   float64 `json:"fetchMs"`   // putting the batch together
	Compute float64 `json:"computeMs"` // the engine's step
	Select  float64 `json:"selectMs"`  // finding what is significant
	Write   float64 `json:"writeMs"`   // sending it to the store
	Wait    float64 `json:"waitMs"`    // for other workers
	Read    float64 `json:"readMs"`    // reading what they sent
	Apply   float64 `json:"applyMs"`   // adding it to the weights
}

// StepsSoFar sums up the steps of a worker since its activation began.
type StepsSoFar struct {
	Made   int     `json:"made"`
	Rows   int     `json:"rows"`
	Loss   float64 `json:"lossSum"`  // over the rows
	Own    float64 `json:"ownMs"`    // fetching, computing, selecting and applying
	Others float64 `json:"othersMs"` // sending, waiting and reading
}

// Minus returns the steps since an earlier sum; ok is false if that belongs to another activation with more steps.
func (s StepsSoFar) Minus(o StepsSoFar) (d StepsSoFar, ok bool) {
	d = StepsSoFar{s.Made - o.Made, s.Rows - o.Rows, s.Loss - o.Loss, s.Own - o.Own, s.Others - o.Others}
	return d, d.Made >= 0 && d.Rows >= 0 && d.Own >= 0 && d.Others >= 0
}

// Add adds another worker's steps.
func (s *StepsSoFar) Add(o StepsSoFar) {
	s.Made, s.Rows, s.Loss, s.Own, s.Others = s.Made+o.Made, s.Rows+o.Rows, s.Loss+o.Loss, s.Own+o.Own, s.Others+o.Others
}

// StepParts are the names of the parts of a step, in the order of Parts.
var StepParts = [...]string{"fetch", "compute", "select", "write", "wait", "read", "apply"}

// Parts are the parts of a step, ms each.
func (t StepTimes) Parts() [len(StepParts)]float64 {
	return [...]float64{t.Fetch, t.Compute, t.Select, t.Write, t.Wait, t.Read, t.Apply}
}

// Total is the time of a step, in ms.
func (t StepTimes) Total() (sum float64) {
	for _, part := range t.Parts() {
		sum += part
	}
	return sum
}

// Add adds a share of other times.
func (t *StepTimes) Add(o StepTimes, share float64) {
	t.Fetch += share * o.Fetch
	t.Compute += share * o.Compute
	t.Select += share * o.Select
	t.Write += share * o.Write
	t.Wait += share * o.Wait
	t.Read += share * o.Read
	t.Apply += share * o.Apply
}

// StepStretch is a run of consecutive steps of a round. Times, values and bytes are means of one step.
type StepStretch struct {
	Last   int       `json:"lastStep"` // of the round, from 1; the last of all sends what is still owed
	Steps  int       `json:"steps"`
	End    time.Time `json:"end"`
	Rows   int       `json:"rows"` // trained, by all workers that are in it
	Loss   float64   `json:"loss"` // mean over those rows, each under the weights of its own step
	Values float64   `json:"values"`
	Bytes  float64   `json:"bytes"` // that a worker sent
	StepTimes
}

// StepCourse is the course of the steps of a round, of one worker or as the mean of all.
type StepCourse struct {
	Median    float64       `json:"medianMs"` // time of a step
	High      float64       `json:"p95Ms"`    // the time that 19 of 20 steps stay below
	Stretches []StepStretch `json:"stretches"`
}

// Mean is the mean step of the course: its times, and the bytes that a worker sent.
func (c *StepCourse) Mean() (times StepTimes, bytes float64) {
	steps := 0
	for _, s := range c.Stretches {
		steps += s.Steps
	}
	for _, s := range c.Stretches {
		share := float64(s.Steps) / float64(max(1, steps))
		times.Add(s.StepTimes, share)
		bytes += share * s.Bytes
	}
	return times, bytes
}

// Wire is the number format of an update on its way.
type Wire string

// The formats of Wire. What the others than float32 do not send is added to the next round's update (error feedback).
const (
	WireFloat32     Wire = "float32"
	WireBfloat16    Wire = "bfloat16"
	WireInt8        Wire = "int8"
	WireSignificant Wire = "significant" // only what has changed enough: see Aggregation.Threshold
)

// wireForm is what is known of a format by those who do not encode it.
type wireForm struct {
	wire        Wire
	differences bool    // to the round's reference, with what is not sent kept for the next round
	share       float64 // bytes of a large update over those of float32; the most, where that depends on the values
	small       float64 // the same for one of many small arrays
}

// wireForms has a row for every format; aggregator has the codec.
var wireForms = [...]wireForm{
	{WireFloat32, false, 1, 1},
	{WireBfloat16, true, 1. / 2, 1. / 2},
	{WireInt8, true, 1./4 + 1./256, 0.27},       // and a scale of four bytes for every 256 values
	{WireSignificant, true, 1 + 1./4, 1 + 3./8}, // every value and the byte that says where it belongs
}

// Wires are all formats, in the order of their numbers in an update.
func Wires() []Wire {
	out := make([]Wire, len(wireForms))
	for i, f := range wireForms {
		out[i] = f.wire
	}
	return out
}

// form is that of float32 where there is none of this name: "" is float32.
func (w Wire) form() wireForm {
	for _, f := range wireForms {
		if f.wire == w {
			return f
		}
	}
	return wireForms[0]
}

// Differences says whether updates are sent as differences to their round's reference, while workers keep what was not
// sent.
func (w Wire) Differences() bool { return w.form().differences }

// Share is the most that a large update takes on the wire, over what it takes as float32.
func (w Wire) Share() float64 { return w.form().share }

// SmallShare is Share for an update of many small arrays.
func (w Wire) SmallShare() float64 { return w.form().small }

// Tree is the job as its JSON has it: maps by the names of fields, lists, and values. Numbers are json.Number, so that
// integers above 2^53 stay what they are. It returns nil for a job that JSON cannot hold.
func (j *Job) Tree() any {
	var tree any
	text, err := json.Marshal(j)
	if err != nil {
		return nil
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	if in.Decode(&tree) != nil {
		return nil
	}
	return tree
}

// Fields are all fields of the job by their paths, as --set has them: training.batchSize. Values are JSON, without the
// quotation marks of texts.
func (j *Job) Fields() map[string]string {
	out := map[string]string{}
	flatten("", j.Tree(), out)
	return out
}

func flatten(path string, v any, out map[string]string) {
	fields, ok := v.(map[string]any)
	if !ok {
		var text strings.Builder
		to := json.NewEncoder(&text)
		to.SetEscapeHTML(false) // a person reads "a->b", and who shows it on a page escapes it
		if to.Encode(v) == nil && v != nil {
			out[path] = strings.Trim(strings.TrimSpace(text.String()), `"`)
		}
		return
	}
	for name, value := range fields {
		flatten(strings.TrimPrefix(path+"."+name, "."), value, out)
	}
}

// SaveMemoryIn makes a job say how its actions save memory: by steps, and by rows in files where the plan has them
// there. Steps of a zero value leave those of the job.
func (p *Plan) SaveMemoryIn(job *Job, steps StepMemory) {
	if steps != (StepMemory{}) {
		job.Training.StepMemory = steps
	}
	if p.OnDisk {
		job.Data.Keep = KeepDisk
	}
}
