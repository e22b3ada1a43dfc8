package disdel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
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

// Model says which network to train: exactly one of Name (a network of the zoo), Layers and Custom. A job file may also
// name a file of Keras; its network is in Layers by the time that anybody has a Job, so that a job needs no other file.
type Model struct {
	Name   string  `json:"name,omitempty"`
	Keras  string  `json:"keras,omitempty"`
	Layers []Layer `json:"layers,omitempty"`
	Custom string  `json:"custom,omitempty"` // a network of the action's own binary
	Rank   int     `json:"rank,omitempty"`   // of pmf: factors of each user and item
	Init   Init    `json:"init"`

	Description *CustomNetwork `json:"-"` // of Custom, as the binary gave it
}

// Init says how weights start.
type Init struct {
	Seed   int64  `json:"seed"`
	Scheme string `json:"scheme"` // glorot or he
	// Weights are what training begins with: NAME, NAME:vN or NAME:TAG of a trained model, or the checksum ("sha256:" and
	// hex) of a file that was put beside the models; "": all are drawn
	Weights string `json:"weights,omitempty"`
	Except  string `json:"except,omitempty"` // layers that are drawn all the same, with commas between them
}

// Given tells whether training begins with weights that are given.
func (i Init) Given() bool { return i.Weights != "" }

// Excepted are the names in Except.
func (i Init) Excepted() []string {
	return strings.FieldsFunc(i.Except, func(r rune) bool { return r == ',' || r == ' ' })
}

// Excepts tells whether an array of weights, of such a name, is drawn although others are given: it belongs to a layer
// that Except names, or to one inside of it.
func (i Init) Excepts(array string) bool {
	return slices.ContainsFunc(i.Excepted(), func(layer string) bool { return strings.HasPrefix(array, layer+".") })
}

// Layer is one entry of model.layers. In the file it is an object with one key, its kind: {dense: {units: 10}}.
// Which options a kind takes is the model folder's table; options not given are zero.
type Layer struct {
	Kind       string   `json:"-"`
	Name       string   `json:"name,omitempty"`       // "": its place in the list
	From       []string `json:"from,omitempty"`       // names of the layers it takes; none: the one before it
	Shape      []int    `json:"shape,omitempty"`      // input: what the network is made for
	Units      int      `json:"units,omitempty"`      // dense: outputs
	Filters    int      `json:"filters,omitempty"`    // conv: output channels
	Kernel     int      `json:"kernel,omitempty"`     // conv, pools: side of the square window
	Stride     int      `json:"stride,omitempty"`     // conv, pools
	Padding    int      `json:"padding,omitempty"`    // conv, pools: zeros on every side
	Dilation   int      `json:"dilation,omitempty"`   // conv: pixels from one of the kernel to the next
	Groups     int      `json:"groups,omitempty"`     // conv: groups of channels; equal to the channels is depthwise
	Bias       *bool    `json:"bias,omitempty"`       // conv, dense: nil is true
	Eps        float64  `json:"eps,omitempty"`        // batchNorm: 0 is 1e-5
	Momentum   float64  `json:"momentum,omitempty"`   // batchNorm: share of the newest batch; 0 is 0.1
	Scale      *bool    `json:"scale,omitempty"`      // batchNorm: nil is true
	Center     *bool    `json:"center,omitempty"`     // batchNorm: nil is true
	Rate       float64  `json:"rate,omitempty"`       // dropout: share of values dropped
	Activation string   `json:"activation,omitempty"` // conv, dense: relu or softmax

	// Windows that differ by side, which the file gives as lists under the names above. One that is not zero takes the
	// place of its number; one of equal sides is never read from a file.
	KernelHW   [2]int `json:"-"` // height, width
	StrideHW   [2]int `json:"-"`
	DilationHW [2]int `json:"-"`
	PaddingAt  [4]int `json:"-"` // top, bottom, left, right
	SamePad    bool   `json:"-"` // padding: same, as TensorFlow pads
}

// layerOptions is a Layer's options as JSON has them: windows are a number or a list.
type layerOptions struct {
	Name       string     `json:"name,omitempty"`
	From       oneOrMore  `json:"from,omitempty"`
	Shape      []int      `json:"shape,omitempty"`
	Units      int        `json:"units,omitempty"`
	Filters    int        `json:"filters,omitempty"`
	Kernel     windowSide `json:"kernel,omitzero"`
	Stride     windowSide `json:"stride,omitzero"`
	Padding    padding    `json:"padding,omitzero"`
	Dilation   windowSide `json:"dilation,omitzero"`
	Groups     int        `json:"groups,omitempty"`
	Bias       *bool      `json:"bias,omitempty"`
	Eps        float64    `json:"eps,omitempty"`
	Momentum   float64    `json:"momentum,omitempty"`
	Scale      *bool      `json:"scale,omitempty"`
	Center     *bool      `json:"center,omitempty"`
	Rate       float64    `json:"rate,omitempty"`
	Activation string     `json:"activation,omitempty"`
}

func (o layerOptions) layer(kind string) Layer {
	return Layer{
		Kind: kind, Name: o.Name, From: o.From, Shape: o.Shape, Units: o.Units, Filters: o.Filters, Groups: o.Groups,
		Bias: o.Bias,
		Eps:  o.Eps, Momentum: o.Momentum, Scale: o.Scale, Center: o.Center, Rate: o.Rate, Activation: o.Activation,
		Kernel: o.Kernel.one, Stride: o.Stride.one, Dilation: o.Dilation.one, Padding: o.Padding.one,
		KernelHW: o.Kernel.two, StrideHW: o.Stride.two, DilationHW: o.Dilation.two, PaddingAt: o.Padding.four,
		SamePad: o.Padding.same,
	}
}

// MarshalJSON writes {kind: {options}}.
func (l Layer) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]layerOptions{l.Kind: {
		Name: l.Name, From: l.From, Shape: l.Shape, Units: l.Units, Filters: l.Filters, Groups: l.Groups, Bias: l.Bias,
		Eps: l.Eps, Momentum: l.Momentum, Scale: l.Scale, Center: l.Center, Rate: l.Rate, Activation: l.Activation,
		Kernel: windowSide{l.Kernel, l.KernelHW}, Stride: windowSide{l.Stride, l.StrideHW},
		Dilation: windowSide{l.Dilation, l.DilationHW},
		Padding:  padding{l.Padding, l.PaddingAt, l.SamePad},
	}})
}

// UnmarshalJSON reads {kind: {options}}; null options are empty ones.
func (l *Layer) UnmarshalJSON(data []byte) error {
	var entry map[string]*layerOptions
	if err := json.Unmarshal(data, &entry); err != nil {
		return err
	}
	if len(entry) != 1 {
		return &Error{Kind: Invalid, Op: "parse layer", Msg: "a layer is an object with one key, its kind"}
	}
	for kind, options := range entry {
		if options == nil {
			options = &layerOptions{}
		}
		*l = options.layer(kind)
	}
	return nil
}

// oneOrMore is a name or a list of names.
type oneOrMore []string

func (n *oneOrMore) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil && !isNull(data) {
		*n = oneOrMore{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(n))
}

func isNull(data []byte) bool { return bytes.Equal(bytes.TrimSpace(data), []byte("null")) }

// windowSide is a number for both sides, or [height width].
type windowSide struct {
	one int
	two [2]int
}

func (s windowSide) MarshalJSON() ([]byte, error) {
	if s.two != [2]int{} {
		return json.Marshal(s.two)
	}
	return json.Marshal(s.one)
}

func (s *windowSide) UnmarshalJSON(data []byte) error {
	v, err := numbers(data, 2)
	if err != nil {
		return err
	}
	s.one, s.two = EqualSides(v), [2]int{}
	if s.one == 0 {
		copy(s.two[:], v)
	}
	return nil
}

// padding is a number for all sides, "same", or [top bottom left right].
type padding struct {
	one  int
	four [4]int
	same bool
}

func (p padding) MarshalJSON() ([]byte, error) {
	switch {
	case p.same:
		return json.Marshal("same")
	case p.four != [4]int{}:
		return json.Marshal(p.four)
	default:
		return json.Marshal(p.one)
	}
}

func (p *padding) UnmarshalJSON(data []byte) error {
	if *p = (padding{}); string(data) == `"same"` {
		p.same = true
		return nil
	}
	v, err := numbers(data, 4)
	if err != nil {
		return err
	}
	if p.one = EqualSides(v); p.one == 0 {
		copy(p.four[:], v)
	}
	return nil
}

// numbers reads one number, or a list of count.
func numbers(data []byte, count int) ([]int, error) {
	var one int
	if json.Unmarshal(data, &one) == nil {
		return []int{one}, nil
	}
	var all []int
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	if len(all) != count {
		return nil, &Error{Kind: Invalid, Op: "parse layer", Msg: "a window is one number, or a list with one for every side"}
	}
	return all, nil
}

// EqualSides is the number that all sides of a window have, or 0 where they differ: a window has one spelling in a
// Layer.
func EqualSides(sides []int) int {
	if len(sides) == 0 || slices.Min(sides) != slices.Max(sides) {
		return 0
	}
	return sides[0]
}

// Data says what to learn from.
type Data struct {
	Source   string `json:"source"` // dataset://NAME
	Checksum string `json:"checksum,omitempty"`
	Split    Split  `json:"split"`
	Resize   int    `json:"resize,omitempty"` // height and width that images are resized to, bilinear; 0: as they are
	// how training sees images otherwise in every epoch; zero: as they are
	Augment Augment `json:"augment,omitzero"`
}

// Augment is how images are changed as training sees them, drawn anew for every row and epoch.
type Augment struct {
	Crop int  `json:"crop,omitempty"` // pixels that they are moved by at most, up or down and left or right, over zeros
	Flip bool `json:"flip,omitempty"` // mirrored, left to right, every other time
}

// Split divides the training rows of a data set that brings no held-out rows of its own.
type Split struct {
	Train      float64 `json:"train"`
	Validation float64 `json:"validation"`
	Seed       int64   `json:"seed"`
}

// Training holds the hyper-parameters.
type Training struct {
	Epochs        int        `json:"epochs"`
	BatchSize     int        `json:"batchSize"`       // rows of a step on every worker; with Batch, of Batch
	Batch         *Batch     `json:"batch,omitempty"` // nil: BatchSize is every worker's own
	Optimizer     Optimizer  `json:"optimizer"`
	Loss          string     `json:"loss"` // crossEntropy, binaryCrossEntropy or mse; of sparse rows squared or logistic
	Schedule      *Schedule  `json:"schedule,omitempty"`
	ClipNorm      float64    `json:"clipNorm,omitempty"` // longest gradient, all weights together; 0: any
	Exact         bool       `json:"exact,omitempty"`    // convolutions by their definition: no Winograd
	Precision     Precision  `json:"precision,omitempty"`
	EarlyStop     *EarlyStop `json:"earlyStop,omitempty"`
	Goal          *Goal      `json:"goal,omitempty"`
	ValidateEvery int        `json:"validateEvery"` // rounds between evaluations of the held-out rows; 0: only at the end
	Backend       string     `json:"backend,omitempty"`
}

// Optimizer is exactly one of its fields.
type Optimizer struct {
	SGD   *SGD  `json:"sgd,omitempty"`
	Adam  *Adam `json:"adam,omitempty"`
	AdamW *Adam `json:"adamw,omitempty"`
}

// Name returns "sgd", "adam", "adamw" or "".
func (o Optimizer) Name() string {
	switch {
	case o.SGD != nil:
		return "sgd"
	case o.Adam != nil:
		return "adam"
	case o.AdamW != nil:
		return "adamw"
	default:
		return ""
	}
}

// Rate is the learning rate that a schedule starts from, 0 without an optimiser.
func (o Optimizer) Rate() float64 {
	switch {
	case o.SGD != nil:
		return o.SGD.LearningRate
	case o.Adam != nil:
		return o.Adam.LearningRate
	case o.AdamW != nil:
		return o.AdamW.LearningRate
	default:
		return 0
	}
}

// WithRate is the same optimiser with another learning rate.
func (o Optimizer) WithRate(rate float64) Optimizer {
	switch {
	case o.SGD != nil:
		sgd := *o.SGD
		sgd.LearningRate, o.SGD = rate, &sgd
	case o.Adam != nil:
		adam := *o.Adam
		adam.LearningRate, o.Adam = rate, &adam
	case o.AdamW != nil:
		adam := *o.AdamW
		adam.LearningRate, o.AdamW = rate, &adam
	}
	return o
}

// Moments is how many values an optimiser keeps for every weight.
func (o Optimizer) Moments() int {
	switch {
	case o.Adam != nil, o.AdamW != nil:
		return 2
	case o.SGD != nil && o.SGD.Momentum != 0:
		return 1
	default:
		return 0
	}
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

// Schedule changes the learning rate with the epochs. It is exactly one of its fields; none is a constant rate.
type Schedule struct {
	Step   *StepSchedule   `json:"step,omitempty"`
	Cosine *CosineSchedule `json:"cosine,omitempty"`
}

// StepSchedule multiplies the rate by Factor after every Every epochs.
type StepSchedule struct {
	Every  int     `json:"every"`
	Factor float64 `json:"factor"`
}

// CosineSchedule lets the rate fall to Floor times itself along half a cosine (Loshchilov and Hutter 2017, without
// restarts).
type CosineSchedule struct {
	Floor float64 `json:"floor,omitempty"`
}

// Factor is what the learning rate is multiplied with in an epoch, counted from 0, of so many.
func (s *Schedule) Factor(epoch, epochs int) float64 {
	switch {
	case s == nil:
		return 1
	case s.Step != nil && s.Step.Every > 0:
		return math.Pow(s.Step.Factor, float64(epoch/s.Step.Every))
	case s.Cosine != nil && epochs > 1:
		return s.Cosine.Floor + (1-s.Cosine.Floor)*(1+math.Cos(math.Pi*float64(epoch)/float64(epochs)))/2
	default:
		return 1
	}
}

// EarlyStop ends training before its last epoch. With MetricLoss and a Target every action stops at the end of an epoch
// whose mean loss is at most Target (DiSDeL III-B.3); with MetricValLoss and MetricAccuracy the job stops once the
// held-out rows reach Target, or after Patience evaluations in a row without a better one.
type EarlyStop struct {
	Metric   string  `json:"metric"`
	Target   float64 `json:"target,omitempty"`
	Patience int     `json:"patience,omitempty"`
	// Keep says whose weights the model gets: KeepBest those of the best evaluation by Metric, KeepLast those of the
	// last round. "" is KeepLast, as it was before there was a choice; a job file's default is KeepBest.
	Keep string `json:"keep,omitempty"`
	// Held is for how many evaluations in a row Target has to be reached; 0: one. A job file says it by its goal.
	Held int `json:"-"`
}

// The metrics of EarlyStop, and whose weights it keeps.
const (
	MetricLoss     = "loss"
	MetricValLoss  = "valLoss"
	MetricAccuracy = "accuracy"
	KeepBest       = "best"
	KeepLast       = "last"
)

// Value is an evaluation as the metric sees it: lower is better. Without an EarlyStop it is the loss.
func (e *EarlyStop) Value(loss, accuracy float64) float64 {
	if e != nil && e.Metric == MetricAccuracy {
		return -accuracy
	}
	return loss
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
}

// The policies of a job file.
const (
	PolicyStatic  = "static"  // what was planned stays
	PolicyKubeML  = "kubeml"  // KubeML's published rule
	PolicyElastic = "elastic" // more workers while that pays
)

// Aggregation shapes the tree and says what of the workers' state is averaged.
type Aggregation struct {
	FanIn int  `json:"fanIn"` // workers per aggregation action; 0: auto, by bytes read
	Wire  Wire `json:"wire"`
	// Threshold is v of the wire significant, of MLLess' filter; other wires do not use it. See package aggregator.
	Threshold  float64     `json:"threshold"`
	Moments    StatePolicy `json:"optimizer"`  // of the optimiser's moments from round to round
	Statistics StatePolicy `json:"statistics"` // of batch norms' running statistics
}

// StatePolicy says what becomes of a worker's own state when a round ends.
type StatePolicy string

// The state policies.
const (
	StateAverage StatePolicy = "average" // over the workers, as weights are
	StateReset   StatePolicy = "reset"   // as it was before the first step
	StateKeep    StatePolicy = "keep"    // every worker goes on with its own
)

// Missing says what is done about a worker whose update does not come.
type Missing struct {
	Policy MissingPolicy `json:"policy"`
	After  Duration      `json:"after"` // proceed: time that the others wait, from the first update of the round on
}

// MissingPolicy names what is done.
type MissingPolicy string

// The policies. With proceed the mean is taken over those that came, weighted by their samples.
const (
	MissingRetry   MissingPolicy = "retry"   // invoke it again, as often as reliability.retries allows, then fail
	MissingWait    MissingPolicy = "wait"    // invoke it again until it comes or the job's deadline passes
	MissingProceed MissingPolicy = "proceed" // go on without it
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

// Money is what GB-s by use cost, in the money that Price is in; ok is false where there is no price.
func (r Resources) Money(gbs float64) (money float64, ok bool) { return gbs * r.Price, r.Price > 0 }

// Reliability bounds the job as a whole.
type Reliability struct {
	Deadline        Duration `json:"deadline"`        // 0: none
	CheckpointEvery int      `json:"checkpointEvery"` // rounds between checkpoints
	Retries         Retries  `json:"retries"`
}

// Retries bounds how failed work is tried again.
type Retries struct {
	Limit         int     `json:"limit"`         // of the whole job; what the platform is to blame for does not count
	PerWorker     int     `json:"perWorker"`     // of one worker in one round
	Backoff       Backoff `json:"backoff"`       // before work is tried again that may pass unchanged
	MemoryFactor  float64 `json:"memoryFactor"`  // least growth of the memory limit after out of memory
	TimeoutFactor float64 `json:"timeoutFactor"` // least growth of the timeout after out of time
}

// Backoff is the pause before another try: Initial, then twice the last, at most Max.
type Backoff struct {
	Initial Duration `json:"initial"`
	Max     Duration `json:"max"`
}

// Output says where the trained model goes.
type Output struct {
	Model string `json:"model"`
	Keep  int    `json:"keep"` // newest versions kept; the best one is kept besides
}

// Duration is a time.Duration that reads and writes Go's syntax: "90s", "5m".
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes Go's duration syntax.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads Go's duration syntax. It returns an Invalid error otherwise.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return &Error{
			Kind: Invalid, Op: "parse duration", Msg: "\"" + string(text) + "\" is not a duration",
			Hint: "write 90s, 5m or 1h30m",
		}
	}
	*d = Duration(v)
	return nil
}

// Millis is a time.Duration that JSON carries as whole milliseconds, under names that end in Ms.
type Millis time.Duration

func (m Millis) String() string { return time.Duration(m).Round(time.Millisecond).String() }

// Readable makes a time that is easy to read, never a shorter one.
func (m Millis) Readable() Millis {
	step := time.Minute
	for _, s := range []struct{ below, step time.Duration }{
		{20 * time.Second, time.Second}, {2 * time.Minute, 5 * time.Second}, {10 * time.Minute, 30 * time.Second},
	} {
		if time.Duration(m) <= s.below {
			step = s.step
			break
		}
	}
	return Millis((time.Duration(m) + step - 1) / step * step)
}

// Text prints a duration for reading: "44.0 s", "12m5s".
func (m Millis) Text() string {
	d := time.Duration(m)
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

// Seconds is the duration in seconds.
func (m Millis) Seconds() float64 { return time.Duration(m).Seconds() }

// MarshalJSON writes milliseconds, rounded to the nearest.
func (m Millis) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(m).Round(time.Millisecond).Milliseconds())
}

// UnmarshalJSON reads milliseconds.
func (m *Millis) UnmarshalJSON(data []byte) error {
	var ms int64
	if err := json.Unmarshal(data, &ms); err != nil {
		return err
	}
	*m = Millis(time.Duration(ms) * time.Millisecond)
	return nil
}
