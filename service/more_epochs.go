package service

import (
	"context"
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
)

// trainOn trains a job that has succeeded for more epochs: a new job starts from its model and trains the epochs that
// are missing. The optimiser starts anew. trainOn returns Conflict if the request sets no more epochs than were
// trained, or if the model is gone.
func (p *planner) trainOn(ctx context.Context, rec disdel.Record, req ResumeRequest) (*Run, error) {
	job, before, err := p.moreEpochs(rec, req)
	if err != nil {
		return nil, err
	}
	if rec.Model == nil {
		return nil, trainOnError(rec.ID, "it has no model to start from", "submit the job anew")
	}
	model := fmt.Sprintf("%s:v%d", rec.Model.Name, rec.Model.Version)
	from := disdel.Continued{Job: rec.ID, Model: model, Epochs: before}
	if m, err := p.parts.Models.Get(ctx, from.Model); err != nil {
		if disdel.KindOf(err) != disdel.NotFound {
			return nil, err
		}
		return nil, trainOnError(rec.ID, fmt.Sprintf("its model %s is gone (%s)", from.Model, disdel.AsError(err).Msg),
			"submit the job anew; output.keep says how many models of a name are kept")
	} else if m.Job != rec.ID {
		return nil, trainOnError(rec.ID, fmt.Sprintf("its model %s is gone, and job %s made the one of this name", from.Model,
			m.Job), "submit the job anew")
	}
	job.Model.Description = req.Description
	init := &job.Model.Init
	init.Weights, init.Except, init.ReplaceHead = from.Model, "", false
	return p.Submit(ctx, Request{
		Job: job, Source: Source{Name: string(rec.ID)}, Origin: originOfMore(rec.Origin, req.Origin), Options: req.Options,
		Priority: rec.Priority, Preparing: req.Preparing, continued: &from,
	})
}

// moreEpochs returns the job with the epochs that are still to be trained, and the number of those that were trained
// before.
func (p *planner) moreEpochs(rec disdel.Record, req ResumeRequest) (job disdel.Job, before int, err error) {
	was := controller.AdjustedJob(rec)
	if job, err = withSets(was, req); err != nil {
		return job, 0, err
	}
	earlier := 0
	if rec.Continued != nil {
		earlier = rec.Continued.Epochs
	}
	planned := earlier + was.Training.Epochs
	if len(req.Sets) == 0 {
		err := &disdel.Error{
			Kind: disdel.Conflict, Code: disdel.CodeSucceeded, Op: "resume job", Job: rec.ID,
			Msg: string(rec.ID) + " has succeeded: there is nothing left to do",
			Hint: fmt.Sprintf("to train its model further: disdel resume %s --set training.epochs=%d; to see its result: "+
				"disdel jobs show %s", rec.ID, 2*planned, rec.ID),
		}
		return job, 0, err
	}
	before = earlier + epochs(&rec)
	minimum := before
	if rec.Stopped == "" {
		minimum = max(minimum, planned)
	}
	if job.Training.Epochs <= minimum {
		return job, 0, trainOnError(rec.ID,
			fmt.Sprintf("it has trained %s, and %d are no more", disdel.Counted(minimum, "epoch"), job.Training.Epochs),
			fmt.Sprintf("give more epochs: --set training.epochs=%d", 2*planned))
	}
	job.Training.Epochs -= before
	if job.Distribution.Workers == was.Distribution.Workers {
		job.Distribution.Workers = rec.Plan.Replicas()
	}
	return job, before, nil
}

func trainOnError(id disdel.JobID, why, hint string) error {
	return &disdel.Error{
		Kind: disdel.Conflict, Op: "train further", Job: id, Hint: hint,
		Msg: fmt.Sprintf("%s cannot train for more epochs: %s", id, why),
	}
}

// originOfMore is the origin of a job that trains another one further. Its command line cannot be repeated from a file.
func originOfMore(was, now *disdel.Origin) *disdel.Origin {
	out := mergeOrigin(was, now)
	if out == nil {
		return now
	}
	more := *out
	more.Command, more.File = "resume", ""
	return &more
}
