package actions

import (
	"context"
	"encoding/json"
	"os"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/internal/modelstore"
)

// session is one activation's claim on its piece of work in the job's store, and the way there.
type session struct {
	pulse
	id        disdel.UpdateID
	committed bool // another activation delivered this before
}

func (h *Host) begin(ctx context.Context, c *call, at disdel.Store, id disdel.UpdateID, attempt int, redo bool) (*session, error) {
	store, err := aggregator.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	return &session{pulse: pulse{call: c, store: store, job: id.Job}, id: id}, nil
}

func (s *session) close() { s.store.Close() }

// owner names this activation.
func owner() string { return os.Getenv("__OW_ACTIVATION_ID") }

func delivered(ctx context.Context, s *session, req disdel.TrainRequest) (res disdel.TrainResult, err error) {
	return res, nil
}

// source is where the reference of a round is: in the store, or in a checkpoint where the store has lost it.
type source struct {
	job    disdel.JobID
	round  int
	models string // blob URL
	from   string // "": there is no checkpoint
}

func reference(ctx context.Context, store *aggregator.Store, at source, like disdel.Weights) (disdel.Weights, error) {
	w, err := store.Reference(ctx, at.job, at.round, like)
	if disdel.KindOf(err) != disdel.NotFound || at.from == "" {
		return w, err
	}
	models, err := modelstore.Open(ctx, at.models)
	if err != nil {
		return nil, err
	}
	defer models.Close()
	_, w, err = models.ReadCheckpoint(ctx, at.from)
	return w, err
}

func (s *session) reference(ctx context.Context, req disdel.TrainRequest, like disdel.Weights) (disdel.Weights, error) {
	return reference(ctx, s.store, source{req.Job, req.Round, req.Models, req.From}, like)
}

func (s *session) state(ctx context.Context, req disdel.TrainRequest) (string, disdel.Weights, error) {
	return "", nil, disdel.NotFound
}

func (s *session) saveState(ctx context.Context, id disdel.UpdateID, text string, w disdel.Weights) error {
	return nil
}

func (s *session) checkpointState(ctx context.Context, req disdel.TrainRequest, text string, w disdel.Weights) error {
	return nil
}

func (s *session) encode(wire disdel.Wire, u *disdel.Update, ref, residual disdel.Weights) (disdel.Weights, error) {
	return nil, nil
}

func (s *session) push(ctx context.Context, u disdel.Update, res disdel.TrainResult) error {
	_, err := json.Marshal(res)
	if err != nil {
		return err
	}
	return s.store.PushUpdate(ctx, u)
}
