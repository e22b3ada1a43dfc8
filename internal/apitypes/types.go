// Package apitypes has the JSON types of the HTTP API that no other package has: requests, answers and lists.
//
// service/api answers with them and internal/client sends them. service/api/openapi.json describes them.
package apitypes

import (
	"encoding/json"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/infer"
	"github.com/disdel/disdel/service/tenant"
)

// Submission is a job file with the options of a submit; for a resume, the options that change.
type Submission struct {
	File string `json:"file,omitempty"` // the job file's text
	Name string `json:"name,omitempty"` // of the file, for what is wrong with it
	// Files are texts that the job file names, such as a network of Keras, by their names.
	Files map[string]string `json:"files,omitempty"`
	Sets  []string          `json:"sets,omitempty"` // PATH=VALUE
	// Program is model.python with its code and description. The archive is sent before it, to /api/v1/programs.
	Program *disdel.Python `json:"program,omitempty"`
	// Environment has the packages of the program's requirements. Their text is sent before it, to /api/v1/environments.
	Environment string `json:"environment,omitempty"`

	Priority  int            `json:"priority,omitempty"`
	Estimator string         `json:"estimator,omitempty"`
	Risk      *float64       `json:"risk,omitempty"`
	Probe     bool           `json:"probe,omitempty"`
	Siblings  int            `json:"beside,omitempty"` // jobs that are submitted with it, of a batch
	Origin    *disdel.Origin `json:"origin,omitempty"`
	FromStart bool           `json:"fromStart,omitempty"` // of a resume: begin anew if no checkpoint is found
	Move      bool           `json:"move,omitempty"`      // of a resume: go on at the server's place
	Explain   bool           `json:"explain,omitempty"`   // of an estimate: where the memory goes
	Admit     bool           `json:"admit,omitempty"`     // of an estimate: whether it would be taken
	Questions *Questions     `json:"questions,omitempty"` // of an estimate, beside Explain
}

// Options returns the options of the plan.
func (s *Submission) Options() service.Options {
	return service.Options{Estimator: s.Estimator, Risk: s.Risk, Probe: s.Probe, Siblings: s.Siblings}
}

// Questions are what an estimate answers besides the plan.
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

// Reset is the event before the events of a job if the client may have seen others.
const Reset = "reset"

// StopRequest is the body of a request to pause or cancel a job.
type StopRequest struct {
	Cause string `json:"cause,omitempty"`
}

// State is an answer of one word.
type State struct {
	Status string `json:"status"`
}

// JobList is a page of records, newest first. If Next is set there are older records: a request with before=NEXT lists
// them.
type JobList struct {
	Jobs []disdel.Record `json:"jobs"`
	Next disdel.JobID    `json:"next,omitempty"`
}

// ShareRequest names who may read an item besides its owner.
type ShareRequest struct {
	With []string `json:"with,omitempty"` // tenants
	All  bool     `json:"all,omitempty"`  // every tenant
}

// ShareList is what a tenant shares.
type ShareList struct {
	Shares []tenant.Share `json:"shares"`
}

// Runner says which process runs a job.
type Runner struct {
	Runs  bool   `json:"runs"`
	By    string `json:"by,omitempty"`
	Known bool   `json:"known"`
}

// RemarkList is remarks about jobs.
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

// DatasetList is a list of data sets.
type DatasetList struct {
	Datasets []render.Dataset `json:"datasets"`
}

// Weights are stored initial weights.
type Weights struct {
	Weights string       `json:"weights"` // their checksum, which model.init.weights names
	Bytes   disdel.Bytes `json:"bytes"`
	Arrays  int          `json:"arrays"`
}

// ModelList is a list of trained models.
type ModelList struct {
	Models []modelstore.Model `json:"models"`
}

// Environment names the virtual environment that a server has made.
type Environment struct {
	Environment string `json:"environment"`
}

// Program is the stored code of a Python program.
type Program struct {
	Code string `json:"code"` // its digest: "sha256:" and hex
}

// StoredList is what takes space.
type StoredList struct {
	Items []service.StoredItem `json:"items"`
}

// WeightsList is a list of files of initial weights.
type WeightsList struct {
	Weights []modelstore.StoredWeights `json:"weights"`
}

// AnswerLine is a line of the answers for a data set: first Head, then a Row each, and End, without which the answers
// are incomplete; or Error. Lines between them may be empty.
type AnswerLine struct {
	Head  *infer.DataHead    `json:"head,omitempty"`
	Row   *infer.DataRow     `json:"answer,omitempty"`
	End   *infer.DataAnswers `json:"end,omitempty"`
	Error *disdel.Error      `json:"error,omitempty"`
}

// AnswersType is the media type of such lines.
const AnswersType = "application/x-ndjson"
