package disdel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Status is where a job stands. Zero is unknown; a later state is never smaller than an earlier one.
type Status uint8

// The states of a job, DiSDeL's Succeeded, Failed and Error (here Invalid requests never become a job) among them.
const (
	StatusUnknown  Status = iota
	StatusQueued          // acknowledged: it waits for its gang
	StatusAdmitted        // it has its gang, and is about to run
	StatusRunning
	StatusPaused // somebody stopped it for a while: it goes on when it is resumed
	StatusSucceeded
	StatusFailed
	StatusCanceled
)

var statusNames = [...]string{
	StatusUnknown: "unknown", StatusQueued: "queued", StatusAdmitted: "admitted", StatusRunning: "running",
	StatusPaused: "paused", StatusSucceeded: "succeeded", StatusFailed: "failed", StatusCanceled: "canceled",
}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return statusNames[0]
}

// MarshalText writes the state's name.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a state's name; an unknown one becomes StatusUnknown.
func (s *Status) UnmarshalText(text []byte) error {
	*s = StatusUnknown
	for i, name := range statusNames {
		if name == string(text) {
			*s = Status(i)
		}
	}
	return nil
}

// Round is what one round came to.
type Round struct {
	Round     int      `json:"round"`
	TrainLoss float64  `json:"trainLoss"`          // mean over the workers, weighted by samples
	Loss      *float64 `json:"loss,omitempty"`     // held-out; nil where this round was not evaluated
	Accuracy  *float64 `json:"accuracy,omitempty"` // held-out; nil also where targets are numbers
	Scores             // held-out, of models of sparse rows
	// share of training rows that were right as they were seen in its last epoch; nil where it is not known
	TrainAccuracy *float64 `json:"trainAccuracy,omitempty"`
	Duration      Millis   `json:"durationMs"`
	Missing       []int    `json:"missing,omitempty"`    // workers that the mean was taken without
	Left          []int    `json:"left,omitempty"`       // workers that were let go while it ran
	Duplicates    int      `json:"duplicates,omitempty"` // results that came twice or too late, and changed nothing

	// TrainLoss of its first epoch; nil where a round has one epoch
	FirstLoss *float64 `json:"firstTrainLoss,omitempty"`
	// what its epochs gave, where it has several
	Trained      []TrainedEpoch `json:"trained,omitempty"`
	NotEvaluated string         `json:"notEvaluated,omitempty"` // why an evaluation that was due was not made

	// what its steps came to, where workers exchange after each
	Steps *StepCourse `json:"steps,omitempty"`

	Stage    int          `json:"stage,omitempty"`    // number of its stage among the record's
	Observed *Observation `json:"observed,omitempty"` // what the job's policy goes by; nil where it looks at nothing
}

// TrainedEpoch is what the training rows gave in an epoch as they were seen: the mean over the workers that trained it,
// weighted by their samples, each row under the weights of its own step.
type TrainedEpoch struct {
	Epoch    int      `json:"epoch"` // of the job, from 1
	Loss     float64  `json:"loss"`
	Accuracy *float64 `json:"accuracy,omitempty"` // share of right rows; nil where it is not known
}

// Checkpoint is a job's state on the blob store after a round: what a resume starts from.
type Checkpoint struct {
	Round    int    `json:"round"` // the next one to run
	Path     string `json:"path"`  // key on the models' blob URL
	Checksum string `json:"checksum"`
	Size     Bytes  `json:"sizeBytes"`
}

// Losses is what failed attempts cost.
type Losses struct {
	Attempts int     `json:"attempts"`
	Duration Millis  `json:"durationMs"` // that failed activations ran
	Cost     float64 `json:"costGBs"`    // GB-s they held
}

// Best is the evaluation whose weights a model has, where the job keeps the best and not the last.
type Best struct {
	Round    int     `json:"round"`
	Loss     float64 `json:"loss"`
	Accuracy float64 `json:"accuracy"`
	Checksum string  `json:"checksum"` // of the weights' file
	Size     Bytes   `json:"sizeBytes"`
	Scores
	ByClass *ByClass `json:"byClass,omitempty"` // as the record's
}

// ModelRef names a stored model.
type ModelRef struct {
	Name     string `json:"name"`
	Version  int    `json:"version"`
	Checksum string `json:"checksum"` // sha256 of the weights' file
	Size     Bytes  `json:"sizeBytes"`
	Path     string `json:"path"` // key on the models' blob URL
}

// DataInfo is what a record keeps of the data set.
type DataInfo struct {
	Name       string `json:"name"`
	Checksum   string `json:"checksum"` // sha256 of the manifest
	Train      int    `json:"train"`    // rows
	HeldOut    int    `json:"heldOut"`
	Drawn      bool   `json:"drawn,omitempty"` // rows of both are drawn by lot from all
	Sample     []int  `json:"sample"`          // [channels height width]; of sparse rows [columns]
	Classes    int    `json:"classes"`         // 1: targets are numbers
	SampleSize Bytes  `json:"sampleBytes"`     // of one sample as stored
	// of a data set of sparse rows; nil: every row has all values
	Sparse *SparseData `json:"sparse,omitempty"`
	// sides that samples are resized to as batches are made; 0: they are as stored
	Resize int `json:"resize,omitempty"`
	// how training sees images; zero: as they are
	Augment Augment `json:"augment,omitzero"`
}

// Resized is the data set with images of so many rows and columns of pixels; 0 leaves it as it is.
func (d DataInfo) Resized(side int) DataInfo {
	if side > 0 && len(d.Sample) == 3 {
		d.Resize, d.Sample = side, []int{d.Sample[0], side, side}
	}
	return d
}

// Same tells whether two jobs learn from the same rows: the same data set, at the same size, changed in the same way.
func (d DataInfo) Same(other DataInfo) bool {
	return d.Checksum == other.Checksum && d.Resize == other.Resize && d.Augment == other.Augment
}

// ChangeBytes is what each goroutine that resizes holds beside the rows: a row as numbers, and, where it is augmented,
// too, another of the size that it is trained on.
func (d DataInfo) ChangeBytes() (n Bytes) {
	if d.Resize == 0 {
		return 0
	}
	n = 4 * d.SampleSize
	if d.Augment != (Augment{}) {
		values := Bytes(4)
		for _, side := range d.Sample {
			values *= Bytes(side)
		}
		n += values
	}
	return n
}

// Record is everything about one job: one document explains a run. It is kept in the history store and printed by -o
// json.
type Record struct {
	APIVersion  string       `json:"apiVersion"`
	ID          JobID        `json:"id"`
	Status      Status       `json:"status"`
	Created     time.Time    `json:"created"`
	Ended       time.Time    `json:"ended,omitzero"`
	Job         Job          `json:"job"`
	Data        DataInfo     `json:"data"`
	Plan        Plan         `json:"plan"` // the newest
	Rounds      []Round      `json:"rounds"`
	Activations []Activation `json:"actions"`
	// activations that passed and are not among them: a long job's record stays small
	Omitted  int     `json:"omitted,omitempty"`
	Phases   Phases  `json:"phases"`
	Accuracy float64 `json:"accuracy"` // held-out, last evaluation, or the model's where the best is kept
	Loss     float64 `json:"loss"`     // the same
	Scores           // the same
	// ByClass is the same evaluation by class; nil: none was made, its targets are numbers, or the record is of an earlier
	// version.
	ByClass *ByClass `json:"byClass,omitempty"`
	CostGBs float64  `json:"costGBs"` // GB-s, DiSDeL Eq. 6 with mu = 1: train and aggregate actions
	// EvaluationGBs is what evaluations held, limits times durations, GB-s. Records from before it have evaluations in
	// CostGBs.
	EvaluationGBs float64 `json:"evaluationGBs,omitempty"`
	// UsedGBs is the cost by use: what all activations held, limits times durations, failed ones included, GB-s. It
	// is what a platform bills, and what budgets go by. 0 in records of earlier versions.
	UsedGBs     float64      `json:"usedGBs,omitempty"`
	Stopped     string       `json:"stopped,omitempty"` // why training ended before its last epoch
	Adjustments []Adjustment `json:"adjustments,omitempty"`
	Losses      Losses       `json:"losses"`
	Checkpoint  *Checkpoint  `json:"checkpoint,omitempty"` // the newest
	Halfway     *Halfway     `json:"halfway,omitempty"`    // a round that its budget stopped the job in; nil: none
	Resumes     int          `json:"resumes,omitempty"`    // times that the job was resumed
	Model       *ModelRef    `json:"model,omitempty"`
	Failure     *Error       `json:"failure,omitempty"`
	Origin      *Origin      `json:"origin,omitempty"` // nil in records of earlier versions
	// Place is where the job runs: the flags of the command line that lead there, whoever gave them, without passwords.
	// nil: not known, as in records of earlier versions and of tenants. Empty: all of it is embedded.
	Place   []Option `json:"place,omitzero"`
	Outages []Outage `json:"outages,omitempty"`

	// every one that was begun, oldest first; none in records of earlier versions
	Stages []Stage `json:"stages,omitempty"`
	// every one of the job's policy, oldest first; static has none but for failures
	Decisions []Decision `json:"decisions,omitempty"`

	Best *Best `json:"best,omitempty"` // nil: the model has the weights of the last round
	// why the model was not evaluated, of a job that succeeded; a resume does only that
	Unevaluated *Error   `json:"unevaluated,omitempty"`
	Learned     *bool    `json:"learned,omitempty"`  // nil: not known
	Warnings    []string `json:"warnings,omitempty"` // what there is to say against the result of a job that succeeded

	Tenant      string       `json:"tenant,omitempty"`      // whose job it is; "": the home's own
	Priority    int          `json:"priority,omitempty"`    // in the queue: a higher one goes first
	Key         string       `json:"key,omitempty"`         // that it was submitted with, so that a repeat means this job
	Planning    *Planning    `json:"planning,omitempty"`    // nil: as every job is planned
	Transitions []Transition `json:"transitions,omitempty"` // oldest first; none in records of earlier versions
}

// Halfway is a round that a job's budget stopped it in, and what is kept of it beside the job's newest checkpoint:
// states and updates of its workers, in the store.
type Halfway struct {
	Round int       `json:"round"`
	Spent float64   `json:"spentGBs"`       // on it, GB-s by use
	Work  string    `json:"work,omitempty"` // digest of what its workers had to do
	Mark  string    `json:"mark,omitempty"` // of what is kept; "": nothing is, and a resume trains the round anew
	Until time.Time `json:"until,omitzero"` // it is kept
}

// ByUse is the cost by use of a job so far, GB-s. Of records of earlier versions, which do not say it, it is what their
// activations held, those that a long job's record leaves out taken for as costly as the others, and, where there are
// none, Eq. 6 with the evaluations, which it is not above.
func (r *Record) ByUse() float64 {
	n := len(r.Activations)
	switch {
	case r.UsedGBs > 0:
		return r.UsedGBs
	case n == 0:
		return r.CostGBs + r.EvaluationGBs
	}
	held := 0.0
	for i := range r.Activations {
		held += r.Activations[i].HeldGBs()
	}
	return held * float64(n+r.Omitted) / float64(n)
}

// Quota is what is left of a namespace's invocations of this minute, and which invocations its quotas hold up.
type Quota struct {
	PerMinute  int       `json:"perMinute"`  // 0: unknown
	Concurrent int       `json:"concurrent"` // invocations in flight; 0: unknown
	Left       int       `json:"left"`
	Until      time.Time `json:"until"`             // when there are more
	Waiting    []string  `json:"waiting,omitempty"` // ids of invocations that wait until then
	Crowded    []string  `json:"crowded,omitempty"` // ids of invocations that wait until one in flight ends
}

// Outage is a time in which OpenWhisk, or the store, did not answer.
type Outage struct {
	Service string    `json:"service,omitempty"` // "Redis at 127.0.0.1:6379"; "": OpenWhisk at Host
	Host    string    `json:"host,omitempty"`
	Since   time.Time `json:"since"`
	// when it answered again, or when it was waited for no longer; zero: it still does not answer
	Until time.Time `json:"until,omitzero"`
	Why   string    `json:"why"` // "connection refused"
}

// Name is who did not answer: "OpenWhisk at HOST", "Redis at HOST".
func (o Outage) Name() string { return cmp.Or(o.Service, "OpenWhisk at "+o.Host) }

// Origin is how a job was submitted, so that what is to be done next can be said as a whole command.
type Origin struct {
	Command string   `json:"command"`           // "submit" or "quickstart"
	File    string   `json:"file,omitempty"`    // the job file's whole path; "": there is none to read again
	Sets    []string `json:"sets,omitempty"`    // PATH=VALUE, in the order they were given, those of resumes behind
	Options []Option `json:"options,omitempty"` // the other flags that were given, without passwords
}

// Option is a flag of the command line with its value.
type Option struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Phases is where the job's time went, in wall time of the controller.
type Phases struct {
	Prepare   Millis `json:"prepareMs"` // validation, plan, creation of package and actions
	Train     Millis `json:"trainMs"`
	Aggregate Millis `json:"aggregateMs"`
	Evaluate  Millis `json:"evaluateMs"`
	Total     Millis `json:"totalMs"`
}

// Transition is a job that became something else.
type Transition struct {
	To    Status    `json:"to"`
	At    time.Time `json:"at"`
	Cause string    `json:"cause"`
}

// Planning is what was asked of a job's plan beside the job itself, so that another process plans it the same way.
type Planning struct {
	Estimator string   `json:"estimator,omitempty"` // method that estimates memory
	Risk      *float64 `json:"risk,omitempty"`      // accepted chance that an action runs out of memory
	Probe     bool     `json:"probe,omitempty"`
	Beside    int      `json:"beside,omitempty"` // jobs that were submitted with it, of a batch
}

// becomes lists, for each status, the statuses that may follow it. docs/reference/job-states.md says when. A job that
// has ended or is paused is resumed by being queued.
var becomes = [...][]Status{
	StatusUnknown:   {StatusQueued, StatusRunning},
	StatusQueued:    {StatusAdmitted, StatusPaused, StatusFailed, StatusCanceled},
	StatusAdmitted:  {StatusRunning, StatusQueued, StatusPaused, StatusFailed, StatusCanceled},
	StatusRunning:   {StatusSucceeded, StatusFailed, StatusCanceled, StatusPaused, StatusQueued},
	StatusPaused:    {StatusQueued, StatusCanceled},
	StatusSucceeded: {StatusQueued}, // of a job whose model was not evaluated
	StatusFailed:    {StatusQueued},
	StatusCanceled:  {StatusQueued},
}

// MayBecome tells whether a job in a state may become another.
func (s Status) MayBecome(next Status) bool {
	if int(s) >= len(becomes) {
		return false
	}
	return slices.Contains(becomes[s], next)
}

// Unfinished tells whether a job in this state is somebody's to continue with: one that is queued, admitted or running.
func (s Status) Unfinished() bool {
	return s == StatusQueued || s == StatusAdmitted || s == StatusRunning
}

// Adjustment is a limit that was changed because of a failure, or a part of the plan where no limit could be.
type Adjustment struct {
	Invocation string   `json:"invocation"`     // that failed
	Task       Task     `json:"task,omitempty"` // whose it was
	Cause      Outcome  `json:"cause"`
	Field      Field    `json:"field"`
	From       Quantity `json:"from"` // in JSON, as a job file would say it
	To         Quantity `json:"to"`
	Why        string   `json:"why"` // the arithmetic
}

// UnmarshalJSON reads an adjustment. Records of the first version name no task: it is the one of the invocation.
func (a *Adjustment) UnmarshalJSON(data []byte) error {
	type plain Adjustment
	var in plain
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if _, place, _ := strings.Cut(in.Invocation, "/"); in.Task == "" {
		for _, task := range []Task{TaskTrain, TaskAggregate, TaskEvaluate} {
			if strings.HasPrefix(place, string(task)) {
				in.Task = task
			}
		}
	}
	*a = Adjustment(in)
	return nil
}

// Field is what an adjustment changes.
type Field string

// The fields of adjustments.
const (
	FieldMemory    Field = "memory"       // of an action, in bytes
	FieldDevice    Field = "deviceMemory" // of an action's share of an accelerator, in bytes
	FieldTimeout   Field = "timeout"      // of an action, in time
	FieldBatchSize Field = "batchSize"    // a count of rows
	FieldWorkers   Field = "workers"      // a count of workers
)

// Quantity is an amount of memory, of time, or a count: one of the three. Its text is as a job file says it: "512MB",
// "1m30s", "32".
type Quantity struct {
	Memory Bytes
	Time   Millis
	Count  int
}

// String is "512MB", "1m30s" or "32".
func (q Quantity) String() string {
	switch {
	case q.Memory != 0:
		return fmt.Sprintf("%dMB", q.Memory.MB())
	case q.Time != 0:
		return q.Time.String()
	default:
		return strconv.Itoa(q.Count)
	}
}

// MarshalText writes what String prints.
func (q Quantity) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalText reads a number, a size with its unit, or a duration. It returns an Invalid error otherwise.
func (q *Quantity) UnmarshalText(text []byte) error {
	s := string(text)
	if n, err := strconv.Atoi(s); err == nil {
		*q = Quantity{Count: n}
		return nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		*q = Quantity{Time: Millis(d)}
		return nil
	}
	b, err := ParseBytes(s)
	if err != nil {
		return &Error{Kind: Invalid, Op: "parse quantity", Msg: fmt.Sprintf("%q is no number, size or duration", s)}
	}
	*q = Quantity{Memory: b}
	return nil
}

// Counterfactual is what training would have taken had nothing changed.
type Counterfactual struct {
	Workers int     `json:"workers"` // that the job began with
	Epochs  int     `json:"epochs"`  // that this goes by: those that they trained
	Took    Millis  `json:"durationMs"`
	UsedGBs float64 `json:"usedGBs"` // by use, without evaluations of the last round
}

// Unchanged is what the epochs that a job trained would have taken with the workers that it began with: each as the
// mean of those that they did train, without the first where there are others, since containers start cold in it. It
// is nil for a job whose workers never changed, and where its policy observed nothing.
func (r *Record) Unchanged() *Counterfactual {
	var own, all []Observation
	for i := range r.Rounds {
		o := r.Rounds[i].Observed
		if o == nil || o.Rows == 0 {
			continue
		}
		all = append(all, *o)
		if o.Setting.Workers == all[0].Setting.Workers {
			own = append(own, *o)
		}
	}
	if len(all) == 0 || len(own) == len(all) {
		return nil
	}
	if len(own) > 1 {
		own = own[1:]
	}
	out := Counterfactual{Workers: all[0].Setting.Workers}
	rows, of, before := 0, 0, 0
	for _, o := range all {
		rows += o.Rows
	}
	for _, o := range own {
		of, out.Took, out.UsedGBs = of+o.Rows, out.Took+o.Duration, out.UsedGBs+o.Cost
		if e := int(o.Epoch); e != before {
			out.Epochs, before = out.Epochs+1, e
		}
	}
	by := float64(rows) / float64(of)
	out.Took, out.UsedGBs = Millis(by*float64(out.Took)), by*out.UsedGBs
	return &out
}

// MostConfused is up to how many classes it is counted which was taken for which.
const MostConfused = 100

// ByClass counts the rows of an evaluation by their label and by the class that the model gave them, all of them by
// class from 0.
type ByClass struct {
	Rows  []int `json:"rows"`  // by label
	Given []int `json:"given"` // by the class that they were given
	Right []int `json:"right"` // of those whose label it is
	// Confusion is by both, [labels classes]; nil of more than MostConfused classes.
	Confusion [][]int  `json:"confusion,omitempty"`
	Names     []string `json:"names,omitempty"` // where the data set has them
}

// NewByClass has counted no rows yet.
func NewByClass(classes int) *ByClass {
	b := &ByClass{Rows: make([]int, classes), Given: make([]int, classes), Right: make([]int, classes)}
	if classes <= MostConfused {
		b.Confusion = make([][]int, classes)
		for i := range b.Confusion {
			b.Confusion[i] = make([]int, classes)
		}
	}
	return b
}

// Add counts rows. A row whose label or class is none of those that are counted by is left out.
func (b *ByClass) Add(labels, given []int32) {
	for i, label := range labels[:min(len(labels), len(given))] {
		label, class := int(label), int(given[i])
		if label < 0 || label >= len(b.Rows) || class < 0 || class >= len(b.Given) {
			continue
		}
		b.Rows[label]++
		b.Given[class]++
		if label == class {
			b.Right[class]++
		}
		if b.Confusion != nil {
			b.Confusion[label][class]++
		}
	}
}

// Figures are those of a class.
func (b *ByClass) Figures(class int) ClassFigures {
	return NewClassFigures(b.Rows[class], b.Given[class], b.Right[class])
}

// Name is the class' name, "" where it has none.
func (b *ByClass) Name(class int) string {
	if class < len(b.Names) {
		return b.Names[class]
	}
	return ""
}

// ClassFigures is how well a model tells a class. A share of no rows is 0.
type ClassFigures struct {
	Rows      int     `json:"rows"`
	Precision float64 `json:"precision"` // of the rows that were given the class, those that have it
	Recall    float64 `json:"recall"`    // of the rows that have the class, those that were given it
	F1        float64 `json:"f1"`        // the harmonic mean of both
}

// NewClassFigures works them out of the rows that have a class, those that were given it, and those that are both.
func NewClassFigures(rows, given, both int) ClassFigures {
	share := func(a, b int) float64 { return float64(a) / float64(max(1, b)) }
	return ClassFigures{rows, share(both, given), share(both, rows), share(2*both, given+rows)}
}
