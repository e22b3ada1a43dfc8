package wire

import (
	"encoding/json"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
)

// Submission is a job file and what a submit says beside it; of a resumed job, what is said anew.
type Submission struct {
	File string `json:"file,omitempty"` // the job file's text
	Name string `json:"name,omitempty"` // of the file, for what is wrong with it
	// Files are texts that the job file names, such as a network of Keras, by their names
	Files     map[string]string `json:"files,omitempty"`
	Sets      []string          `json:"sets,omitempty"` // PATH=VALUE
	Priority  int               `json:"priority,omitempty"`
	Estimator string            `json:"estimator,omitempty"`
	Risk      *float64          `json:"risk,omitempty"`
	Probe     bool              `json:"probe,omitempty"`
	Beside    int               `json:"beside,omitempty"` // jobs that are submitted with it, of a batch
	Origin    *disdel.Origin    `json:"origin,omitempty"`
	FromStart bool              `json:"fromStart,omitempty"` // of a resume: begin anew where no checkpoint is found
	Move      bool              `json:"move,omitempty"`      // of a resume: go on at the server's place
	Explain   bool              `json:"explain,omitempty"`   // of an estimate: where the memory goes
	Admit     bool              `json:"admit,omitempty"`     // of an estimate: whether it would be taken
	Questions *Questions        `json:"questions,omitempty"` // of an estimate, beside Explain
}

// Options is how the job is planned.
func (s *Submission) Options() service.Options {
	return service.Options{Estimator: s.Estimator, Risk: s.Risk, Probe: s.Probe, Beside: s.Beside}
}

// Questions is what an estimate is asked beyond the plan.
type Questions struct {
	MaxMemory disdel.Bytes        `json:"maxMemoryBytes,omitempty"`
	Grid      *scheduler.Grid     `json:"grid,omitempty"`
	Against   scheduler.Objective `json:"against,omitempty"`
	Policies  []string            `json:"policies,omitempty"`
}

// Failure is the answer of a request that failed.
type Failure struct {
	Error  *disdel.Error  `json:"error"`
	File   string         `json:"file,omitempty"`   // that Faults are of
	Faults []disdel.Fault `json:"faults,omitempty"` // everything that is wrong with a job file
}

// Event is an event of a job as server-sent events have it.
type Event struct {
	Number int             `json:"number"`
	Job    disdel.JobID    `json:"job"`
	Kind   string          `json:"kind"` // planned, queued, roundEnded, ...
	Text   string          `json:"text"` // a few words for a person
	What   json.RawMessage `json:"what"`
}

// Reset comes before the events of a job that a client has not followed so far, whatever he has seen.
const Reset = "reset"

// Ask is what somebody wants to become of a job.
type Ask struct {
	Cause string `json:"cause,omitempty"`
}

// State is an answer of one word.
type State struct {
	Status string `json:"status"`
}

// JobList is a page of records, newest first. If Next is set, older records are missing: a request with before=NEXT
// lists them.
type JobList struct {
	Jobs []disdel.Record `json:"jobs"`
	Next disdel.JobID    `json:"next,omitempty"`
}

// Runner is who has a job, as far as that is known.
type Runner struct {
	Runs  bool   `json:"runs"`
	By    string `json:"by,omitempty"`
	Known bool   `json:"known"`
}

// RemarkList is what people have said of jobs.
type RemarkList struct {
	Remarks map[disdel.JobID]history.Remark `json:"remarks"`
}

// LogList is the logs of a job's activations that failed.
type LogList struct {
	Logs []render.ActivationLog `json:"logs"`
}

// Source is a public data set to add.
type Source struct {
	Source    string `json:"source"`
	Overwrite bool   `json:"overwrite,omitempty"`
}

// DatasetList is the data sets there are.
type DatasetList struct {
	Datasets []render.Dataset `json:"datasets"`
}

// Weights are what jobs may begin with, once they were sent.
type Weights struct {
	Weights string       `json:"weights"` // their checksum, which model.init.weights names
	Bytes   disdel.Bytes `json:"bytes"`
	Arrays  int          `json:"arrays"`
}

// ModelList is the models trained so far.
type ModelList struct {
	Models []modelstore.Model `json:"models"`
}

// WeightsList is files of weights that jobs may begin with.
type WeightsList struct {
	Weights []modelstore.StoredWeights `json:"weights"`
}

// AnswerLine is a line of the answers for a data set: first what is known of all, then a row each, and what became of
// them at the end, without which they are not whole; or what went wrong. Lines between them may be empty.
type AnswerLine struct {
	Head  *service.DataHead    `json:"head,omitempty"`
	Row   *service.Answered    `json:"answer,omitempty"`
	End   *service.DataAnswers `json:"end,omitempty"`
	Error *disdel.Error        `json:"error,omitempty"`
}

// AnswersType is the media type of such lines.
const AnswersType = "application/x-ndjson"
