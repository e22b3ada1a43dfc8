package controller

import (
	"context"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/internal/advice"
	"github.com/disdel/disdel/scheduler"
)

// close removes what the job put on the platform and into the store, and saves its record, even if ctx has ended. Each
// step has its own time: a platform that does not answer is no reason to lose the record.
func (r *run) close(ctx context.Context) error {
	r.bestEffort(ctx, "the job's package stays on the platform", func(ctx context.Context) error {
		err := r.c.cfg.Invoker.Remove(ctx, scheduler.Package(r.spec.ID))
		if disdel.KindOf(err) == disdel.NotFound {
			return nil
		}
		return err
	})
	if !r.keep(ctx) && !r.storeIsGone() {
		r.bestEffort(ctx, "the job's updates stay in the store until they expire", func(ctx context.Context) error {
			_, err := r.c.cfg.Board.Sweep(ctx, r.spec.ID)
			return err
		})
	}
	r.rec.Ended = r.c.cfg.Now()
	r.billed()
	r.rec.Losses = estimator.LossesOf(r.rec.Activations)
	r.commitModel(ctx)
	r.advise()
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer stop()
	return r.c.cfg.Recorder.Save(ctx, r.rec)
}

// advise puts what will let the job pass into its failure, as its report will say it.
func (r *run) advise() {
	f := r.rec.Failure
	if f == nil || f.Code == disdel.CodeOverBudget || f.Code == disdel.CodeUnkept || f.Code == disdel.CodeStoreGone {
		// the failure itself says what to do
		return
	}
	found := advice.ForPlanned(r.rec, r.spec.Planned)
	hint := found.Hint()
	if r.rec.Failure.Code == disdel.CodeUnreachable {
		hint = "once OpenWhisk answers again: disdel resume " + string(r.rec.ID)
	}
	if hint != "" {
		told := *r.rec.Failure
		told.Hint = hint
		if len(found.Sets) > 0 {
			told.Changes = [][]string{found.Sets}
		}
		r.rec.Failure = &told
	}
}

// bestEffort does what is worth a try, and warns where it fails.
func (r *run) bestEffort(ctx context.Context, warning string, do func(context.Context) error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer stop()
	if err := do(ctx); err != nil {
		r.log.WithError(err).Warn(warning)
	}
}

// commitTimeout bounds the copying of a model on the blob store.
const commitTimeout = 10 * saveTimeout

// commitModel makes the weights of a job that succeeded a version of its model. A job whose model cannot be kept has
// failed, whatever it learned.
func (r *run) commitModel(ctx context.Context) {
	if r.rec.Status != disdel.StatusSucceeded {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer stop()
	weights := r.final
	if b := r.rec.Best; b != nil {
		weights.Checksum, weights.Size = b.Checksum, b.Size
		r.rec.Accuracy, r.rec.Loss, r.rec.Scores, r.rec.ByClass = b.Accuracy, b.Loss, b.Scores, b.ByClass
	}
	r.rec.Learned, r.rec.Warnings = verdict(r.rec)
	weights.Name, weights.Path = r.spec.Job.Output.Model, r.spec.Output
	ref, err := r.c.cfg.Shelf.Commit(ctx, r.rec, r.spec.Network, weights)
	if err != nil {
		r.rec.Status, r.rec.Failure = disdel.StatusFailed, disdel.AsError(err)
		return
	}
	r.rec.Model = &ref
	if r.rec.Unevaluated != nil {
		return // the evaluation goes by the last checkpoint
	}
	if err := r.c.cfg.Shelf.Discard(ctx, CheckpointFolder(r.rec.ID)); err != nil {
		r.log.WithError(err).Warn("the job's checkpoints stay on the blob store")
	}
	r.rec.Checkpoint = nil
}
