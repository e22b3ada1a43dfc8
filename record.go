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

// Status is the state of a job. Zero is unknown; a later state is never smaller than an earlier one.
type Status uint8

// The states of a job. DiSDeL's Succeeded and Failed are among them; its Error is a request that never becomes a job.
const (
	StatusUnknown  Status = iota
	StatusQueued          // accepted: it waits for memory of the pool
	StatusAdmitted        // it has its memory, and is about to run
	StatusRunning
	StatusPaused // stopped until it is resumed
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

// Round is the result of one round.
type Round struct {
	Round     int      `json:"round"`
	TrainLoss float64  `json:"trainLoss"`          // mean over the workers, weighted by samples
	Loss      *float64 `json:"loss,omitempty"`     // held-out; nil where this round was not evaluated
	Accuracy  *float64 `json:"accuracy,omitempty"` // held-out; nil also where targets are numbers
	Scores             // held-out, of models of sparse rows
	// Share of training rows that were right during the last epoch; nil: unknown.
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

// TrainedEpoch is the mean loss and accuracy of the training rows in an epoch, each row with the weights of its own
// step. Workers are weighted by their samples.
type TrainedEpoch struct {
	Epoch    int      `json:"epoch"` // of the job, from 1
	Loss     float64  `json:"loss"`
	Accuracy *float64 `json:"accuracy,omitempty"` // share of right rows; nil where it is not known
}

// Checkpoint is a job's state in the blob store after a round. A resume starts from it.
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

// Best is the evaluation whose weights the model has, if the job keeps the best weights instead of the last.
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

// DataInfo describes the data set of a job.
type DataInfo struct {
	Name       string `json:"name"`
	Checksum   string `json:"checksum"` // sha256 of the manifest
	Train      int    `json:"train"`    // rows
	HeldOut    int    `json:"heldOut"`
	Drawn      bool   `json:"drawn,omitempty"` // rows of both are drawn by lot from all
	Sample     []int  `json:"sample"`          // [channels height width]; of sparse rows [columns]
	Classes    int    `json:"classes"`         // with Targets so many; of sparse rows 1: targets are numbers
	SampleSize Bytes  `json:"sampleBytes"`     // of one sample as stored
	// numbers to predict, in the order of the outputs; nil: rows have classes, or are sparse
	Targets []Target `json:"targets,omitempty"`
	// of a data set of sparse rows; nil: every row has all values
	Sparse *SparseData `json:"sparse,omitempty"`
	// checksum of the tokenizer.json that made the rows; "": they are no tokens of text
	Tokenizer string `json:"tokenizer,omitempty"`
	// Tokens is one more than the largest token of a row of text; 0: not known.
	Tokens int `json:"tokens,omitempty"`
	// checksum of the description of the columns of a table; "": the rows are of no table, or of an earlier version
	Table string `json:"table,omitempty"`
	// rows are texts, and each position's target is the next token; Classes is the number of tokens
	NextToken bool `json:"nextToken,omitempty"`
	// sides that samples are resized to as batches are made; 0: they are as stored
	Resize int `json:"resize,omitempty"`
	// how training sees images; zero: as they are
	Augment Augment `json:"augment,omitzero"`
}

// Resized is the data set with images of side x side pixels; 0 leaves them as they are.
func (d DataInfo) Resized(side int) DataInfo {
	if side > 0 && len(d.Sample) == 3 {
		d.Resize, d.Sample = side, []int{d.Sample[0], side, side}
	}
	return d
}

// Same tells whether two jobs learn from the same rows: the same data set, image size and augmentation.
func (d DataInfo) Same(other DataInfo) bool {
	return d.Checksum == other.Checksum && d.Resize == other.Resize && d.Augment == other.Augment
}

// ChangeBytes is the memory that each resizing goroutine needs: a row as numbers and, with augmentation, another one of
// the trained size.
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

// Record has everything about one job. The history store keeps it, and -o json prints it.
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
	// Number of successful activations that a long job's record leaves out.
	Omitted  int     `json:"omitted,omitempty"`
	Phases   Phases  `json:"phases"`
	Accuracy float64 `json:"accuracy"` // held-out, last evaluation, or the model's where the best is kept
	Loss     float64 `json:"loss"`     // the same
	Scores           // the same
	// ByClass is the same evaluation by class; nil: none was made, its targets are numbers, or the record is of an
	// earlier version.
	ByClass *ByClass `json:"byClass,omitempty"`
	CostGBs float64  `json:"costGBs"` // GB-s, DiSDeL Eq. 6 with mu = 1: train and aggregate actions
	// EvaluationGBs is what evaluations held, limits times durations, GB-s. Records from before it have evaluations in
	// CostGBs.
	EvaluationGBs float64 `json:"evaluationGBs,omitempty"`
	// UsedGBs is the cost by use in GB-s: limit times duration of all activations, also failed ones. Platforms bill it,
	// and budgets count it. 0 in records of earlier versions.
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
	// Place has the command line's flags that say where the job runs, without passwords. nil: unknown, as in records of
	// earlier versions and of tenants. Empty: everything is embedded.
	Place   []Option `json:"place,omitzero"`
	Outages []Outage `json:"outages,omitempty"`

	// All stages that began, oldest first; none in records of earlier versions.
	Stages []Stage `json:"stages,omitempty"`
	// All decisions of the job's policy, oldest first. The policy static decides only after failures.
	Decisions []Decision `json:"decisions,omitempty"`

	Best *Best `json:"best,omitempty"` // nil: the model has the weights of the last round
	// Why the model of a job that succeeded was not evaluated. A resume only evaluates it.
	Unevaluated *Error   `json:"unevaluated,omitempty"`
	Learned     *bool    `json:"learned,omitempty"`  // nil: not known
	Warnings    []string `json:"warnings,omitempty"` // doubts about the result of a job that succeeded

	Continued *Continued `json:"continued,omitempty"` // the job whose model this one trains further; nil: none

	Tenant      string       `json:"tenant,omitempty"`      // owner of the job; "": the home itself
	Priority    int          `json:"priority,omitempty"`    // in the queue: a higher one goes first
	Key         string       `json:"key,omitempty"`         // idempotency key: a repeated submit with it returns this job
	Planning    *Planning    `json:"planning,omitempty"`    // nil: the defaults
	Transitions []Transition `json:"transitions,omitempty"` // oldest first; none in records of earlier versions
}

// Verdict says what is wrong with the result of a job that succeeded: "not evaluated" or "did not learn". It is empty if
// nothing is wrong.
func (r *Record) Verdict() string {
	switch {
	case r.Status != StatusSucceeded:
		return ""
	case r.Unevaluated != nil:
		return "not evaluated"
	case r.Learned != nil && !*r.Learned:
		return "did not learn"
	default:
		return ""
	}
}

// ModelRounds returns the rounds up to the one whose weights the model has: the best one if the job keeps the best
// weights, else the last.
func (r *Record) ModelRounds() []Round {
	if r.Best != nil {
		for i := range r.Rounds {
			if r.Rounds[i].Round == r.Best.Round {
				return r.Rounds[:i+1]
			}
		}
	}
	return r.Rounds
}

// Continued is a job that succeeded and that a later job trains for more epochs.
type Continued struct {
	Job    JobID  `json:"job"`
	Model  string `json:"model"`  // NAME:vN, with whose weights the later job starts
	Epochs int    `json:"epochs"` // that the model has trained
}

// Text says where a job continues that trains so many epochs more.
func (c *Continued) Text(more int) string {
	return fmt.Sprintf("continues job %s from its model %s: %d epochs were trained, %d follow", c.Job, c.Model, c.Epochs,
		more)
}

// Halfway is a round that the job's budget stopped. The store keeps the states and updates of its workers.
type Halfway struct {
	Round int       `json:"round"`
	Spent float64   `json:"spentGBs"`       // on it, GB-s by use
	Work  string    `json:"work,omitempty"` // digest of what its workers had to do
	Mark  string    `json:"mark,omitempty"` // of what is kept; "": nothing is, and a resume trains the round anew
	Until time.Time `json:"until,omitzero"` // it is kept
}

// MeteredCost is the cost of a job by use so far, in GB-s. Records of earlier versions do not have it: there it is the
// sum over their activations, scaled up for those that the record leaves out, or Eq. 6 with the evaluations.
func (r *Record) MeteredCost() float64 {
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

// Quota is how many invocations a namespace has left in this minute, and which invocations wait for it.
type Quota struct {
	PerMinute  int       `json:"perMinute"`  // 0: unknown
	Concurrent int       `json:"concurrent"` // invocations in flight; 0: unknown
	Left       int       `json:"left"`
	Until      time.Time `json:"until"`             // when there are more
	Waiting    []string  `json:"waiting,omitempty"` // ids of invocations that wait until then
	Crowded    []string  `json:"crowded,omitempty"` // ids of invocations that wait until one in flight ends
}

// Outage is a period in which OpenWhisk or the store did not answer.
type Outage struct {
	Service string    `json:"service,omitempty"` // "Redis at 127.0.0.1:6379"; "": OpenWhisk at Host
	Host    string    `json:"host,omitempty"`
	Since   time.Time `json:"since"`
	// When it answered again, or when the job stopped waiting; zero: it still does not answer.
	Until time.Time `json:"until,omitzero"`
	Why   string    `json:"why"` // "connection refused"
}

// Name is the service that did not answer: "OpenWhisk at HOST", "Redis at HOST".
func (o Outage) Name() string { return cmp.Or(o.Service, "OpenWhisk at "+o.Host) }

// Origin is how a job was submitted. Advice prints complete commands with it.
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

// Transition is a change of a job's status.
type Transition struct {
	To    Status    `json:"to"`
	At    time.Time `json:"at"`
	Cause string    `json:"cause"`
}

// Planning has options of a job's plan that are not in the job file, so that another process plans it the same way.
type Planning struct {
	Estimator string   `json:"estimator,omitempty"` // method that estimates memory
	Risk      *float64 `json:"risk,omitempty"`      // accepted chance that an action runs out of memory
	Probe     bool     `json:"probe,omitempty"`
	Siblings  int      `json:"beside,omitempty"` // other jobs of the same batch
}

// transitions lists, for each status, the statuses that may follow it; docs/reference/job-states.md says when. A resume
// queues a job again.
var transitions = [...][]Status{
	StatusUnknown:   {StatusQueued, StatusRunning},
	StatusQueued:    {StatusAdmitted, StatusPaused, StatusFailed, StatusCanceled},
	StatusAdmitted:  {StatusRunning, StatusQueued, StatusPaused, StatusFailed, StatusCanceled},
	StatusRunning:   {StatusSucceeded, StatusFailed, StatusCanceled, StatusPaused, StatusQueued},
	StatusPaused:    {StatusQueued, StatusCanceled},
	StatusSucceeded: {StatusQueued}, // of a job whose model was not evaluated
	StatusFailed:    {StatusQueued},
	StatusCanceled:  {StatusQueued},
}

// CanTransitionTo tells whether a job may change from one status to another.
func (s Status) CanTransitionTo(next Status) bool {
	if int(s) >= len(transitions) {
		return false
	}
	return slices.Contains(transitions[s], next)
}

// Unfinished tells whether a job in this state is queued, admitted or running.
func (s Status) Unfinished() bool {
	return s == StatusQueued || s == StatusAdmitted || s == StatusRunning
}

// Adjustment is a change of a limit after a failure, or of another part of the plan if no limit could be changed.
type Adjustment struct {
	Invocation string   `json:"invocation"` // that failed
	Task       Task     `json:"task,omitempty"`
	Cause      Outcome  `json:"cause"`
	Field      Field    `json:"field"`
	From       Quantity `json:"from"` // in JSON, as in a job file
	To         Quantity `json:"to"`
	Why        string   `json:"why"` // the arithmetic
}

// UnmarshalJSON reads an adjustment. Records of the first version have no task: the invocation's id tells it.
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
	// FieldStepMemory changes how a step saves memory. From and To are what an action needs, in bytes.
	FieldStepMemory Field = "stepMemory"
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

// CostWithoutPolicy is what training would have taken without the policy's changes.
type CostWithoutPolicy struct {
	Workers int     `json:"workers"` // that the job began with
	Epochs  int     `json:"epochs"`  // measured with that number of workers
	Took    Millis  `json:"durationMs"`
	UsedGBs float64 `json:"usedGBs"` // by use, without evaluations of the last round
}

// WithoutPolicy estimates what the job's epochs would have taken with its first number of workers: every epoch as the
// mean of those measured with that number. The first one is left out if there are others, since its containers start
// cold. It is nil if the workers never changed, or the policy observed nothing.
func (r *Record) WithoutPolicy() *CostWithoutPolicy {
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
	out := CostWithoutPolicy{Workers: all[0].Setting.Workers}
	rows, total, before := 0, 0, 0
	for _, o := range all {
		rows += o.Rows
	}
	for _, o := range own {
		total, out.Took, out.UsedGBs = total+o.Rows, out.Took+o.Duration, out.UsedGBs+o.Cost
		if e := int(o.Epoch); e != before {
			out.Epochs, before = out.Epochs+1, e
		}
	}
	by := float64(rows) / float64(total)
	out.Took, out.UsedGBs = Millis(by*float64(out.Took)), by*out.UsedGBs
	return &out
}

// MostConfused is the largest number of classes with a confusion matrix.
const MostConfused = 100

// ByClass counts the rows of an evaluation by label and by predicted class. All lists are by class, from 0.
type ByClass struct {
	Rows  []int `json:"rows"`  // by label
	Given []int `json:"given"` // by predicted class
	Right []int `json:"right"` // by class: rows whose label and prediction it is
	// Confusion counts rows by label and prediction, [labels classes]; nil for more than MostConfused classes.
	Confusion [][]int  `json:"confusion,omitempty"`
	Names     []string `json:"names,omitempty"` // where the data set has them
}

// NewByClass makes a ByClass without rows.
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

// Add counts rows. It leaves out rows with a label or prediction that is not a class.
func (b *ByClass) Add(labels, predicted []int32) {
	for i, label := range labels[:min(len(labels), len(predicted))] {
		label, class := int(label), int(predicted[i])
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

// MostLabels returns the label that the most rows have, their number, and the number of all rows. Without rows, all
// is 0.
func (b *ByClass) MostLabels() (class, rows, all int) {
	if b == nil {
		return 0, 0, 0
	}
	for label, n := range b.Rows {
		if all += n; n > rows {
			class, rows = label, n
		}
	}
	return class, rows, all
}

// OnlyGiven returns the class that was predicted for every row; ok is false if several were, or if there are no rows.
func (b *ByClass) OnlyGiven() (class int, ok bool) {
	if b == nil {
		return 0, false
	}
	for predicted, n := range b.Given {
		switch {
		case n > 0 && ok:
			return 0, false
		case n > 0:
			class, ok = predicted, true
		}
	}
	return class, ok
}

// Title is the number of a class, with its name if it has one: "3 (coat)".
func (b *ByClass) Title(class int) string {
	if name := b.Name(class); name != "" {
		return fmt.Sprintf("%d (%s)", class, name)
	}
	return fmt.Sprint(class)
}

// Figures are precision, recall and F1 of a class.
func (b *ByClass) Figures(class int) ClassFigures {
	return NewClassFigures(b.Rows[class], b.Given[class], b.Right[class])
}

// Name is the name of a class, "" if it has none.
func (b *ByClass) Name(class int) string {
	if class < len(b.Names) {
		return b.Names[class]
	}
	return ""
}

// ClassFigures is how well a model recognises a class. A share of no rows is 0.
type ClassFigures struct {
	Rows      int     `json:"rows"`
	Precision float64 `json:"precision"` // share of rows with this prediction that have the label
	Recall    float64 `json:"recall"`    // share of rows with this label that have the prediction
	F1        float64 `json:"f1"`        // the harmonic mean of both
}

// NewClassFigures computes them from the rows with the label, with the prediction, and with both.
func NewClassFigures(rows, predicted, both int) ClassFigures {
	share := func(a, b int) float64 { return float64(a) / float64(max(1, b)) }
	return ClassFigures{rows, share(both, predicted), share(both, rows), share(2*both, predicted+rows)}
}
