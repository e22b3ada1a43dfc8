package controller

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
)

// Invoker is the OpenWhisk side of a job.
type Invoker interface {
	// Prepare creates the job's package and its actions.
	Prepare(ctx context.Context, pkg string, actions []disdel.ActionPlan) error
	// Invoke starts an invocation without waiting for it. An action that is not there is NotFound.
	Invoke(ctx context.Context, inv disdel.Invocation) (disdel.ActivationID, error)
	// Wait returns the classified activation once it ended. The error is about the asking, not about the activation.
	Wait(ctx context.Context, inv disdel.Invocation, id disdel.ActivationID) (disdel.Activation, error)
	// Remove deletes the package with its actions.
	Remove(ctx context.Context, pkg string) error
	// Outage says since when the platform does not answer, why, and until when it is waited for; false where it answers.
	Outage() (disdel.Outage, bool)
	// Quota says what is left of this minute's invocations, and which of a job's wait for the next minute.
	Quota(job disdel.JobID) disdel.Quota
}

// Recorder keeps records.
type Recorder interface {
	Save(ctx context.Context, r *disdel.Record) error
}

// Board is the job's place in the store that its actions share.
type Board interface {
	// Check tells whether the store answers and takes writes.
	Check(ctx context.Context, job disdel.JobID) error
	// Progress is the last heartbeat of every action.
	Progress(ctx context.Context, job disdel.JobID) ([]disdel.Progress, error)
	// Cancel asks the job's actions to stop at their next heartbeat.
	Cancel(ctx context.Context, job disdel.JobID) error
	// Forget deletes what was delivered for a round, which is begun anew.
	Forget(ctx context.Context, job disdel.JobID, round int) error
	// EndMember has workers that exchange updates inside a round continue without one that will not come.
	EndMember(ctx context.Context, job disdel.JobID, round, member int) error
	// LetGo has a worker that takes batches from a queue send what it owes and leave the round.
	LetGo(ctx context.Context, job disdel.JobID, round, member int) error
	// Sweep deletes everything the job left.
	Sweep(ctx context.Context, job disdel.JobID) (int, error)
	// Delivered returns the result that an update in the store carries: a TrainResult or an AggregateResult. there is
	// false if the update is missing or incomplete.
	Delivered(ctx context.Context, id disdel.UpdateID) (result json.RawMessage, there bool, err error)
	// Keep marks what the job leaves as kept for a later run of it, which knows the mark.
	Keep(ctx context.Context, job disdel.JobID, mark string) error
	// TakeUp tells whether what was kept under a mark is there, and readies it for the job to continue with.
	TakeUp(ctx context.Context, job disdel.JobID, mark string) (bool, error)
}

// Shelf is where trained models stand.
type Shelf interface {
	// Commit gives the weights that the job's top aggregation action wrote to path a version of their own. A job that has
	// one already, of a model that could not be evaluated, gets that described anew.
	Commit(ctx context.Context, r *disdel.Record, n disdel.Network, weights disdel.ModelRef) (disdel.ModelRef, error)
	// Discard deletes everything below a folder.
	Discard(ctx context.Context, folder string) error
}

// Config is what a Controller works with.
type Config struct {
	Invoker  Invoker
	Recorder Recorder
	Board    Board
	Shelf    Shelf
	Log      logrus.FieldLogger

	Now   func() time.Time // nil: time.Now
	Tick  time.Duration    // between looks at the actions' progress; 0: 200 ms
	Grace time.Duration    // for running actions to end after a failure or a cancel; 0: 5 s
	// Observe is told what happens, of one job from one goroutine, and must not block. nil: nobody looks.
	Observe func(Notice)
	// Grant has a job granted the containers of a stage before that begins, and tells why the job does without; an error
	// is why it never will have them. It may wait where the order says so, until ctx ends. nil: nobody grants any.
	Grant func(ctx context.Context, o GrantOrder) (refused string, err error)
	// Keeps says that the Board outlives the job's process.
	Keeps bool
	// Show is given the record of a job that runs as it is by then, just before Observe is told of anything but progress.
	// Its lists only grow at their ends from then on, and nobody may change it. nil: nobody looks.
	Show func(disdel.Record)
}

// Notice is what an onlooker is told: Job and exactly one other field are set.
type Notice struct {
	Job      disdel.JobID
	Planned  *disdel.Record     // the plan is made, nothing runs yet
	Invoked  *disdel.Invocation // an invocation was accepted
	Ended    *disdel.Activation
	Progress []disdel.Progress
	Round    *disdel.Round
	Adjusted *disdel.Adjustment // a failure changed a limit
	Stage    *disdel.Stage      // a policy or a failure changed the setting
	Refused  *disdel.Refusal    // a policy wanted containers that the job was not granted
	Forecast *disdel.Forecast   // of what is left, just before the round that it was made after
	Outage   *Outage
	Waiting  *Waiting
	Quota    *QuotaWait
}

// Controller runs jobs. It is safe for concurrent use by several jobs.
type Controller struct{ cfg Config }

// New returns a Controller; Invoker, Recorder, Board, Shelf and Log are required.
func New(cfg Config) *Controller {
	if cfg.Now == nil {
		cfg.Now = time.Now
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
