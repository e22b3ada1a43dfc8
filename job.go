package disdel

import (
	"encoding/json"
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

// Model says which network to train: exactly one of Name (a network of the zoo) and Layers.
type Model struct {
	Name   string  `json:"name,omitempty"`
	Layers []Layer `json:"layers,omitempty"`
	Init   Init    `json:"init"`
}

// Init says how weights start.
type Init struct {
	Seed   int64  `json:"seed"`
	Scheme string `json:"scheme"` // glorot or he
}

// Layer is one entry of model.layers. In the file it is an object with one key, its kind: {dense: {units: 10}}.
// Which options a kind takes is the model folder's table; options not given are zero.
type Layer struct {
	Kind       string  `json:"-"`
	Units      int     `json:"units,omitempty"`      // dense: outputs
	Filters    int     `json:"filters,omitempty"`    // conv: output channels
	Kernel     int     `json:"kernel,omitempty"`     // conv, pools: side of the square window
	Stride     int     `json:"stride,omitempty"`     // conv, pools
	Padding    int     `json:"padding,omitempty"`    // conv, pools: zeros on every side
	Groups     int     `json:"groups,omitempty"`     // conv: groups of channels; equal to the channels is depthwise
	Rate       float64 `json:"rate,omitempty"`       // dropout: share of values dropped
	Activation string  `json:"activation,omitempty"` // conv, dense: relu or softmax
}

type layerOptions Layer

// MarshalJSON writes {kind: {options}}.
func (l Layer) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]layerOptions{l.Kind: layerOptions(l)})
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
		if options != nil {
			*l = Layer(*options)
		}
		l.Kind = kind
	}
	return nil
}

// Data says what to learn from.
type Data struct {
	Source   string `json:"source"` // dataset://NAME
	Checksum string `json:"checksum,omitempty"`
	Split    Split  `json:"split"`
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
	BatchSize     int        `json:"batchSize"`
	Optimizer     Optimizer  `json:"optimizer"`
	Loss          string     `json:"loss"` // crossEntropy or mse
	EarlyStop     *EarlyStop `json:"earlyStop,omitempty"`
	ValidateEvery int        `json:"validateEvery"` // rounds between evaluations of the held-out rows; 0: only at the end
	Backend       string     `json:"backend,omitempty"`
}

// Optimizer is exactly one of its fields.
type Optimizer struct {
	SGD  *SGD  `json:"sgd,omitempty"`
	Adam *Adam `json:"adam,omitempty"`
}

// Name returns "sgd", "adam" or "".
func (o Optimizer) Name() string {
	switch {
	case o.SGD != nil:
		return "sgd"
	case o.Adam != nil:
		return "adam"
	default:
		return ""
	}
}

// SGD is stochastic gradient descent, with momentum where Momentum is above 0.
type SGD struct {
	LearningRate float64 `json:"learningRate"`
	Momentum     float64 `json:"momentum,omitempty"`
	WeightDecay  float64 `json:"weightDecay,omitempty"`
}

// Adam is Kingma and Ba's optimiser; zero betas and epsilon mean 0.9, 0.999 and 1e-8.
type Adam struct {
	LearningRate float64 `json:"learningRate"`
	Beta1        float64 `json:"beta1,omitempty"`
	Beta2        float64 `json:"beta2,omitempty"`
	Epsilon      float64 `json:"epsilon,omitempty"`
}

// EarlyStop ends training before its last epoch. With Metric "loss" and a Target every action stops at the end of an
// epoch whose mean loss is at most Target (DiSDeL III-B.3); with "valLoss" the job stops after Patience rounds in a row
// without a better held-out loss.
type EarlyStop struct {
	Metric   string  `json:"metric"`
	Target   float64 `json:"target,omitempty"`
	Patience int     `json:"patience,omitempty"`
}

// Distribution says how the work is spread.
type Distribution struct {
	Workers     int         `json:"workers"` // 0: auto
	Sync        Sync        `json:"sync"`
	Aggregation Aggregation `json:"aggregation"`
}

// Sync says when the workers' weights are averaged.
type Sync string

// The modes of Sync.
const (
	SyncEpoch Sync = "epoch" // after every epoch
	SyncEnd   Sync = "end"   // once, after the last epoch (DiSDeL's one-shot averaging)
)

// Aggregation shapes the tree.
type Aggregation struct {
	FanIn int `json:"fanIn"` // workers per aggregation action; 0: auto, by memory
}

// Resources bounds what the job may use.
type Resources struct {
	Memory    Bytes    `json:"memory"`    // per train action; 0: auto
	MaxMemory Bytes    `json:"maxMemory"` // ceiling for auto; 0: the platform's maximum
	Timeout   Duration `json:"timeout"`   // per action; 0: auto
	MaxCost   float64  `json:"maxCost"`   // GB-s for the whole job; 0: none. DiSDeL's e_cost
}

// Reliability bounds the job as a whole.
type Reliability struct {
	Deadline Duration `json:"deadline"` // 0: none
}

// Output says where the trained model goes.
type Output struct {
	Model string `json:"model"`
	Keep  int    `json:"keep"` // versions kept
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
		return &Error{Kind: Invalid, Op: "parse duration", Msg: "\"" + string(text) + "\" is not a duration", Hint: "write 90s, 5m or 1h30m"}
	}
	*d = Duration(v)
	return nil
}

// Millis is a time.Duration that JSON carries as whole milliseconds, under names that end in Ms.
type Millis time.Duration

func (m Millis) String() string { return time.Duration(m).Round(time.Millisecond).String() }

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
