package service

import (
	"context"
	"fmt"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/service/infer"
)

// modelSink saves the models of jobs that succeeded.
type modelSink struct {
	log     logrus.FieldLogger
	journal *journal
	store   *modelstore.Store
	find    func(ctx context.Context, name string) (infer.Dataset, error)
}

// Commit saves a model with the class names and the input range of its data set, and removes versions beyond
// output.keep. Removed versions are an event of the job. A failure to remove them is only logged.
func (s *modelSink) Commit(ctx context.Context, r *disdel.Record, n disdel.Network,
	weights disdel.ModelRef,
) (disdel.ModelRef, error) {
	if r.Model != nil {
		return *r.Model, s.revise(ctx, r)
	}
	before := 0
	if r.Continued != nil {
		before = r.Continued.Epochs
	}
	adapter := n.LoRA
	n.LoRA = nil // the weights have the adapters' products in them
	m := modelstore.Model{
		ModelRef: weights, Job: r.ID, Created: r.Ended, Network: n, Data: r.Data, Accuracy: r.Accuracy, Loss: r.Loss,
		Scores: r.Scores, Adapter: adapter,
		Epochs: before + epochs(r), Workers: r.Plan.Workers, Learned: r.Learned, Warnings: r.Warnings,
		Evaluated: new(r.Unevaluated == nil && r.Plan.HeldOut > 0),
	}
	if ranked := r.Metric(); ranked.Name != m.Metric().Name {
		m.RankedBy = ranked.Name
	}
	m.Labels, m.Inputs = s.seen(ctx, r.Data)
	if r.Resumes > 0 { // a process may have ended after it had saved the model, and before it saved the record
		made, err := s.store.VersionOf(ctx, m.Name, r.ID)
		if err != nil {
			return m.ModelRef, err
		}
		if made > 0 {
			m.APIVersion, m.Version = disdel.APIVersion, made
			return m.ModelRef, s.store.UpdateDescription(ctx, m)
		}
	}
	m, err := s.store.Commit(ctx, m)
	if err != nil {
		return m.ModelRef, err
	}
	removed, err := s.store.Prune(ctx, m.Name, r.Job.Output.Keep)
	if err != nil {
		s.log.WithError(err).Warn("older versions of the model stay")
	}
	if len(removed) > 0 {
		refs := make([]string, len(removed))
		for i := range removed {
			refs[i] = removed[i].Ref()
		}
		s.journal.add(Pruned{refs, r.Job.Output.Keep})
	}
	return m.ModelRef, nil
}

// revise adds the results of a later evaluation to a version. Its weights were written again with the same bits.
func (s *modelSink) revise(ctx context.Context, r *disdel.Record) error {
	m, err := s.store.Get(ctx, fmt.Sprintf("%s:v%d", r.Model.Name, r.Model.Version))
	if err != nil {
		return err
	}
	m.Scores = r.Scores
	m.Accuracy, m.Loss, m.Learned, m.Warnings, m.Evaluated = r.Accuracy, r.Loss, r.Learned, r.Warnings,
		new(r.Unevaluated == nil)
	return s.store.UpdateDescription(ctx, m)
}

// seen returns the class names and the range of the inputs that a network was trained on. It returns nothing if the
// data set has been replaced since.
func (s *modelSink) seen(ctx context.Context, data disdel.DataInfo) ([]string, *modelstore.Range) {
	set, err := s.find(ctx, data.Name)
	if err != nil || set.Checksum() != data.Checksum {
		return nil, nil
	}
	low, high, err := set.Store.Range(ctx, set.Manifest)
	if err != nil {
		return set.ClassNames, nil
	}
	return set.ClassNames, &modelstore.Range{Low: low, High: high}
}

// Discard deletes everything below a folder of the model store.
func (s *modelSink) Discard(ctx context.Context, folder string) error {
	return s.store.Discard(ctx, folder)
}

// epochs is the number of epochs that a job has trained, with a begun one. The record may lack rounds before a resume.
func epochs(r *disdel.Record) int {
	if len(r.Rounds) == 0 {
		return 0
	}
	rounds := r.Rounds[len(r.Rounds)-1].Round + 1
	if r.Best != nil {
		rounds = r.Best.Round + 1
	}
	if stages, _ := r.EffectiveStages(); len(stages) > 1 {
		span := stages[disdel.StageAt(stages, rounds-1)].TrainRange(rounds - 1)
		return span.Epoch + span.Epochs
	}
	if r.Plan.Batches == 0 {
		return r.Plan.Epochs * rounds
	}
	all := max(1, r.Plan.Rounds)
	return (r.Job.Training.Epochs*rounds + all - 1) / all
}
