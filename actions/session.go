package actions

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/runtime/engine"
)

// session is an activation's claim on its work, and its connection to the job's store. Its context ends if another
// attempt takes over, since the store would refuse this one's result.
type session struct {
	pulse
	claim     aggregator.Claim
	committed bool // another activation delivered this before
	release   func()
}

// begin claims work. OpenWhisk may deliver an invocation twice: begin then waits for the result of the other
// activation.
func (h *Host) begin(ctx context.Context, c *call, at disdel.Store, id disdel.UpdateID, attempt int) (context.Context,
	*session, error,
) {
	store, err := h.store.open(ctx, at)
	if err != nil {
		return ctx, nil, err
	}
	s := &session{pulse: pulse{call: c, store: store, job: id.Job}, release: func() {}}
	if ctx, err = s.take(ctx, id, attempt); err != nil {
		return ctx, nil, err
	}
	return ctx, s, nil
}

// busyPause is the longest time between two checks of a claim that another activation holds.
const busyPause = 200 * time.Millisecond

func (s *session) take(ctx context.Context, id disdel.UpdateID, attempt int) (context.Context, error) {
	name := owner()
	for {
		c, state, err := s.store.Claim(ctx, id, name, attempt)
		switch {
		case err != nil:
			return ctx, err
		case state == aggregator.Claimed:
			s.claim = c
			ctx, s.release = s.store.Hold(ctx, c)
			return ctx, nil
		case state == aggregator.ClaimCommitted:
			s.committed = true
			return ctx, nil
		}
		select {
		case <-time.After(min(busyPause, max(c.Left, time.Millisecond))):
		case <-ctx.Done():
			return ctx, context.Cause(ctx)
		}
	}
}

// close releases the claim on unfinished work, so that the next leg need not wait for the lease to expire.
func (s *session) close(ctx context.Context) {
	s.release()
	if !s.committed {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		s.store.Release(ctx, s.claim) //nolint:errcheck // it ends by itself, only later
	}
}

// causeOf returns err, or the reason why its context ended: the claim was lost, or the job was stopped.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}

// owner identifies one execution of an activation: OpenWhisk may run an activation twice.
func owner() string {
	b := make([]byte, 8)
	rand.Read(b)
	return os.Getenv("__OW_ACTIVATION_ID") + "/" + hex.EncodeToString(b)
}

// delivered returns the result of work that another activation has delivered, if the store still has it.
func delivered(ctx context.Context, s *session, id disdel.UpdateID) (res disdel.TrainResult, err error) {
	u, err := s.store.UpdateMeta(ctx, id)
	if disdel.KindOf(err) == disdel.NotFound { // its round has ended, and nobody needs it any more
		return disdel.TrainResult{Duplicate: true, Usage: s.call.usage()}, nil
	}
	if err != nil {
		return res, err
	}
	if err := json.Unmarshal([]byte(u.Meta[aggregator.ResultKey]), &res); err != nil {
		return res, &disdel.Error{
			Kind: disdel.Corrupt, Code: disdel.CodeLostUpdate, Op: "read update " + id.String(), Job: id.Job, Subject: &id,
			Msg: "it does not say what it came of", Err: err,
		}
	}
	res.Duplicate, res.Usage = true, s.call.usage()
	return res, nil
}

// source is where a round's reference is: in the store, or in a checkpoint if the store has lost it.
type source struct {
	job    disdel.JobID
	round  int
	models string // blob URL
	from   string // "": there is no checkpoint
}

// reference reads the weights that a round starts from. Weights from a checkpoint go back into the store, since the
// other workers need them, too.
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
	if _, w, err = models.ReadCheckpoint(ctx, at.from); err != nil {
		return nil, err
	}
	return w, store.PutReference(ctx, at.job, at.round, w)
}

// frozen sets an engine's frozen arrays to those of a checkpoint of the weights that training began with; "": there are
// none.
func frozen(ctx context.Context, url, given string, e engine.Engine) error {
	if given == "" {
		return nil
	}
	return setFrom(ctx, url, given, engine.Of(e.State(), engine.Frozen))
}

// setFrom sets arrays to those of a checkpoint with the same names. Other arrays stay as they are.
func setFrom(ctx context.Context, url, key string, arrays []engine.Array) error {
	models, err := modelstore.Open(ctx, url)
	if err != nil {
		return err
	}
	defer models.Close()
	named := map[string]engine.Array{}
	for _, a := range arrays {
		named[a.Name] = a
	}
	set := func(v disdel.Tensor) error {
		if a, ok := named[v.Name]; ok {
			return a.Set(v)
		}
		return nil
	}
	return models.ReadCheckpointTo(ctx, key, func(string) (func(disdel.Tensor) error, error) { return set, nil })
}

// checkpointValues calls take with the values of a checkpoint of these shapes, in blocks.
func checkpointValues(ctx context.Context, url, key string, like disdel.Weights, take func([]float32) error) error {
	models, err := modelstore.Open(ctx, url)
	if err != nil {
		return err
	}
	defer models.Close()
	return models.ReadCheckpointValues(ctx, key, like, take)
}

func (s *session) reference(ctx context.Context, req disdel.TrainRequest, like disdel.Weights) (disdel.Weights, error) {
	from := req.ReferenceCheckpoint
	if req.Round == 0 { // it has weights alone, and perhaps not all: who has lost the reference begins anew
		from = ""
	}
	return reference(ctx, s.store, source{req.Job, req.Round, req.Models, from}, like)
}

// noteKey is the key of a state's note.
const noteKey = "note"

// state reads this worker's stored state: from the store, or from the checkpoint beside the reference's. begin gets its
// note, and returns the function that takes its tensors.
func (s *session) state(ctx context.Context, req disdel.TrainRequest, at disdel.UpdateID,
	begin func(text string) (func(disdel.Tensor) error, error),
) error {
	err := s.store.ReadState(ctx, at,
		func(meta map[string]string) (func(disdel.Tensor) error, error) { return begin(meta[noteKey]) })
	if disdel.KindOf(err) != disdel.NotFound || req.ReferenceCheckpoint == "" || at != req.ID() {
		return err
	}
	models, err := modelstore.Open(ctx, req.Models)
	if err != nil {
		return err
	}
	defer models.Close()
	return models.ReadCheckpointTo(ctx, path.Join(path.Dir(req.ReferenceCheckpoint), WorkerState(req.ID().Member)), begin)
}

func (s *session) saveState(ctx context.Context, id disdel.UpdateID, text string, shapes disdel.Weights,
	read func(i int) []float32,
) error {
	return s.store.WriteState(ctx, id, s.claim, map[string]string{noteKey: text},
		aggregator.StateSource{Tensors: shapes, Read: read})
}

// checkpointState writes a worker's state beside the checkpoint of the reference, array by array.
func (s *session) checkpointState(ctx context.Context, req disdel.TrainRequest, text string, shapes disdel.Weights,
	read func(i int) []float32,
) error {
	models, err := modelstore.Open(ctx, req.Models)
	if err != nil {
		return err
	}
	defer models.Close()
	_, _, err = models.WriteCheckpoint(ctx, req.StateCheckpoint, text, shapes, modelstore.ArrayValues(len(shapes), read))
	return err
}

// pushInBlocks delivers arrays as an update under the claim, without a copy of them.
func (s *session) pushInBlocks(ctx context.Context, u disdel.Update, arrays []engine.Array) error {
	u.Attempt, u.Fence = s.claim.Attempt, s.claim.Fence
	for _, a := range arrays {
		u.Weights = append(u.Weights, disdel.Tensor{Name: a.Name, Shape: a.Shape})
	}
	err := s.store.PushInBlocks(ctx, u, func(dst []float32, i, from int) {
		arrays[i].ReadAt(dst, from) //nolint:errcheck // the range is of the shape
	})
	s.committed = err == nil
	return err
}

// push delivers an update under the claim.
func (s *session) push(ctx context.Context, u disdel.Update, encoded *aggregator.Encoded) error {
	u.Attempt, u.Fence = s.claim.Attempt, s.claim.Fence
	var err error
	if encoded != nil {
		err = s.store.PushEncoded(ctx, u, encoded)
	} else {
		err = s.store.PushUpdate(ctx, u)
	}
	s.committed = err == nil
	return err
}
