package disdel

import (
	"cmp"
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
	// UsedGBs is the cost by use: what all activations held, limits times durations, whatever became of them, GB-s. It
	// is what a platform bills, and what budgets go by. 0 in records of earlier versions.
	UsedGBs     float64      `json:"usedGBs,omitempty"`
	Stopped     string       `json:"stopped,omitempty"` // why training ended before its last epoch
	Adjustments []Adjustment `json:"adjustments,omitempty"`
	Losses      Losses       `json:"losses"`
	Checkpoint  *Checkpoint  `json:"checkpoint,omitempty"` // the newest
	Halfway     *Halfway     `json:"halfway,omitempty"`    // a round that its budget stopped the job in; nil: none
	Resumes     int          `json:"resumes,omitempty"`    // times that the job was taken up again
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
