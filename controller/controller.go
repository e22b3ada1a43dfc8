package controller

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
)

// Invoker runs a job's actions on OpenWhisk.
type Invoker interface {
	// Prepare creates the job's package and its actions.
	Prepare(ctx context.Context, pkg string, actions []disdel.ActionPlan) error
	// Invoke starts an invocation without waiting for it. It returns NotFound if the action does not exist.
	Invoke(ctx context.Context, inv disdel.Invocation) (disdel.ActivationID, error)
	// Wait returns the classified activation once it ended. The error concerns the query, not the activation.
	Wait(ctx context.Context, inv disdel.Invocation, id disdel.ActivationID) (disdel.Activation, error)
	// Remove deletes the package with its actions.
	Remove(ctx context.Context, pkg string) error
	// Outage says since when the platform does not answer, why, and how long to wait for it; false: it answers.
	Outage() (disdel.Outage, bool)
	// Quota returns what is left of this minute's invocations, and which of a job's wait for the next minute.
	Quota(job disdel.JobID) disdel.Quota
}

// Recorder saves records.
type Recorder interface {
	Save(ctx context.Context, r *disdel.Record) error
}

// JobStore is a job's place in the store that its actions share.
type JobStore interface {
	// Check tells whether the store answers and accepts writes.
	Check(ctx context.Context, job disdel.JobID) error
	// Progress returns the last heartbeat of every action.
	Progress(ctx context.Context, job disdel.JobID) ([]disdel.Progress, error)
	// Cancel asks the job's actions to stop at their next heartbeat.
	Cancel(ctx context.Context, job disdel.JobID) error
	// Forget deletes what was delivered for a round, which starts again.
	Forget(ctx context.Context, job disdel.JobID, round int) error
	// EndMember lets workers that exchange updates inside a round continue without a missing one.
	EndMember(ctx context.Context, job disdel.JobID, round, member int) error
	// LetGo releases a worker that takes batches from a queue: it sends its last update and leaves the round.
	LetGo(ctx context.Context, job disdel.JobID, round, member int) error
	// Sweep deletes everything the job left.
	Sweep(ctx context.Context, job disdel.JobID) (int, error)
	// Delivered returns the result in an update in the store: a TrainResult or an AggregateResult. there is false if the
	// update is missing or incomplete.
	Delivered(ctx context.Context, id disdel.UpdateID) (result json.RawMessage, there bool, err error)
	// Keep marks the job's data for a later run of it, which knows the mark.
	Keep(ctx context.Context, job disdel.JobID, mark string) error
	// TakeUp tells whether the data kept under a mark is there, and prepares it for the job.
	TakeUp(ctx context.Context, job disdel.JobID, mark string) (bool, error)
}

// ModelSink stores trained models.
type ModelSink interface {
	// Commit makes the weights that the job's top aggregation wrote to path a new version. If the job has one already,
	// of a model that could not be evaluated, it updates its description.
	Commit(ctx context.Context, r *disdel.Record, n disdel.Network, weights disdel.ModelRef) (disdel.ModelRef, error)
	// Discard deletes everything below a folder.
	Discard(ctx context.Context, folder string) error
}

// Config is what a Controller needs.
type Config struct {
	Invoker  Invoker
	Recorder Recorder
	Store    JobStore
	Models   ModelSink
	Log      logrus.FieldLogger

	Now   func() time.Time // nil: time.Now in UTC
	Tick  time.Duration    // between reads of the actions' progress; 0: 200 ms
	Grace time.Duration    // for running actions to end after a failure or a cancel; 0: 5 s
	// Observe gets notices, of one job from one goroutine, and must not block. May be nil.
	Observe func(Notice)
	// Grant reserves the containers of a stage for a job before the stage starts. refused says why the job does without
	// them; an error means that it never gets them. It may wait, until ctx ends, if the order allows. nil: no grants.
	Grant func(ctx context.Context, o GrantOrder) (refused string, err error)
	// Keeps says that the store outlives the job's process.
	Keeps bool
	// Show gets the current record of a running job just before every notice except progress. Its lists only grow at
	// their ends, and it must not be changed. May be nil.
	Show func(disdel.Record)
}

// Notice is one thing that happened: Job and exactly one other field are set.
type Notice struct {
	Job      disdel.JobID
	Planned  *disdel.Record     // before anything runs
	Invoked  *disdel.Invocation // an invocation was accepted
	Ended    *disdel.Activation
	Progress []disdel.Progress
	Round    *disdel.Round
	Adjusted *disdel.Adjustment // a failure changed a limit
	Stage    *disdel.Stage      // a policy or a failure changed the setting
	Refused  *disdel.Refusal    // the job did not get the containers that a policy wanted
	Forecast *disdel.Forecast   // of what is left, just before the notice of its round
	Outage   *Outage
	Waiting  *Waiting
	Quota    *QuotaWait
}

// Controller runs jobs. It is safe for concurrent use by several jobs.
type Controller struct{ cfg Config }

// New returns a Controller. Invoker, Recorder, Store, Models and Log are required.
func New(cfg Config) *Controller {
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return time.Now().UTC() } // records read the same in every time zone
	}
	if cfg.Tick == 0 {
		cfg.Tick = 200 * time.Millisecond
	}
	if cfg.Grace == 0 {
		cfg.Grace = 5 * time.Second
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Notice) {}
	}
	if cfg.Show == nil {
		cfg.Show = func(disdel.Record) {}
	}
	return &Controller{cfg: cfg}
}
