package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/disdel/disdel"
)

// damaged says whether err refuses a value.
func damaged(err error) bool {
	return errors.Is(err, disdel.Corrupt) || errors.Is(err, disdel.Diverged)
}

// PushUpdate stores an update as float32 under its id and commits it under its fence. Pushing the same content again
// changes nothing. Fence 0 is for an update that nobody claims: of those the last one stands. It returns Invalid for
// samples that are not above 0, Diverged for values that are not finite, OverLimit when Redis is out of memory,
// Conflict when another attempt has the claim or something else was committed. It holds a few columns beside the
// weights.
func (s *Store) PushUpdate(ctx context.Context, u disdel.Update) error {
	h, err := s.headOf(kindUpdate, u.ID, u.Weights)
	if err != nil {
		return err
	}
	h.attempt, h.fence, h.samples, h.meta = u.Attempt, u.Fence, u.Samples, u.Meta
	return s.publish(ctx, h, fromWeights(h, u.Weights), u.ID, u.Fence)
}

// PushEncoded stores what Feedback made of an update, whose Weights are not looked at. Errors are PushUpdate's.
func (s *Store) PushEncoded(ctx context.Context, u disdel.Update, e *Encoded) error {
	h := &head{
		kind: kindUpdate, id: u.ID, attempt: u.Attempt, fence: u.Fence, samples: u.Samples,
		wire: e.wire, codec: codecOf(e.wire), difference: true, layout: e.layout, meta: u.Meta,
	}
	return s.publish(ctx, h, func(_ []byte, _ []float32, k int) []byte { return e.columns[k] }, u.ID, u.Fence)
}

// publish stages a value and commits it.
func (s *Store) publish(ctx context.Context, h *head, columns source, work disdel.UpdateID, fence uint64) error {
	t, err := s.stage(ctx, h, columns)
	if err != nil {
		return wrap(err, "push "+h.kind.String(), h.id.String())
	}
	return s.commit(ctx, t, work, fence)
}

// FetchUpdate reads an update and checks it against the names and shapes of like. One that was sent as a difference
// comes back added to its round's reference. It returns NotFound if it was not pushed, Corrupt or Diverged if it is not
// to be used, which is counted.
func (s *Store) FetchUpdate(ctx context.Context, id disdel.UpdateID, like disdel.Weights) (disdel.Update, error) {
	h, inline, err := s.open(ctx, kindUpdate, id, like)
	if err != nil {
		return disdel.Update{}, s.countDamage(ctx, id.Job, err)
	}
	u := disdel.Update{ID: id, Attempt: h.attempt, Fence: h.fence, Samples: h.samples, Meta: h.meta}
	if u.Weights, err = s.load(ctx, h, inline); err != nil {
		return disdel.Update{}, s.countDamage(ctx, id.Job, err)
	}
	if !h.difference {
		return u, nil
	}
	reference, err := s.Reference(ctx, id.Job, id.Round, like)
	if err != nil {
		return disdel.Update{}, err
	}
	for i, t := range u.Weights {
		for k := range t.Data {
			t.Data[k] += reference[i].Data[k]
		}
		if k := notFinite(t.Data); k >= 0 {
			return disdel.Update{}, s.countDamage(ctx, id.Job,
				nonFinite(kindUpdate, id, fmt.Sprintf("value %d of %s", k, t.Name)))
		}
	}
	return u, nil
}

// UpdateMeta returns what the producer of an update says of it, without its values: Samples and Meta. Errors are
// FetchUpdate's.
func (s *Store) UpdateMeta(ctx context.Context, id disdel.UpdateID) (disdel.Update, error) {
	h, _, err := s.open(ctx, kindUpdate, id, nil)
	if err != nil {
		return disdel.Update{}, s.countDamage(ctx, id.Job, err)
	}
	return disdel.Update{ID: id, Attempt: h.attempt, Fence: h.fence, Samples: h.samples, Meta: h.meta}, nil
}

// ResultKey is where an update carries the result of the train action that made it.
const ResultKey = "result"

// Delivered returns what an update says that it came of, a TrainResult, or of a mean an AggregateResult, without having
// any action run. It returns false where no update is committed.
func (s *Store) Delivered(ctx context.Context, id disdel.UpdateID) (result json.RawMessage, there bool, err error) {
	u, err := s.UpdateMeta(ctx, id)
	if errors.Is(err, disdel.NotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if id.Level == 0 {
		text := u.Meta[ResultKey]
		return json.RawMessage(text), json.Valid([]byte(text)), nil
	}
	result, err = json.Marshal(disdel.AggregateResult{Weight: u.Samples, Duplicate: true})
	return result, err == nil, wrap(err, "read update", id.String())
}

// referenceID gives references the envelope of updates, at a level that no tree reaches.
func referenceID(job disdel.JobID, round int) disdel.UpdateID {
	return disdel.UpdateID{Job: job, Round: round, Level: 1<<31 - 1}
}

// PutReference publishes the weights that round starts from, without a claim: a job's first ones, or a checkpoint's. A
// round's reference is published once: the same weights again change nothing, others are a Conflict, as is a round that
// does not follow the newest one. It starts anywhere where no reference stands.
func (s *Store) PutReference(ctx context.Context, job disdel.JobID, round int, w disdel.Weights) error {
	return s.putReference(ctx, job, round, w, referenceID(job, round), 0)
}

// CommitReference is PutReference under the claim of the aggregation that made the weights: a Conflict too if the claim
// is lost. Afterwards the claim's update counts as committed.
func (s *Store) CommitReference(ctx context.Context, c Claim, round int, w disdel.Weights) error {
	return s.putReference(ctx, c.ID.Job, round, w, c.ID, c.Fence)
}

func (s *Store) putReference(ctx context.Context, job disdel.JobID, round int, w disdel.Weights, work disdel.UpdateID,
	fence uint64,
) error {
	h, err := s.headOf(kindReference, referenceID(job, round), w)
	if err != nil {
		return err
	}
	h.fence = fence
	return s.publish(ctx, h, fromWeights(h, w), work, fence)
}

// Reference reads the weights that round starts from and checks them against like. It returns NotFound before they are
// published, Corrupt or Diverged if they are not to be used.
func (s *Store) Reference(ctx context.Context, job disdel.JobID, round int, like disdel.Weights) (disdel.Weights,
	error,
) {
	h, inline, err := s.open(ctx, kindReference, referenceID(job, round), like)
	if err != nil {
		return nil, s.countDamage(ctx, job, notYet(err, job, round))
	}
	w, err := s.load(ctx, h, inline)
	if err != nil {
		return nil, s.countDamage(ctx, job, err)
	}
	return w, nil
}

func notYet(err error, job disdel.JobID, round int) error {
	if errors.Is(err, disdel.NotFound) {
		return &disdel.Error{
			Kind: disdel.NotFound, Code: disdel.CodeLostReference, Op: "fetch reference", Job: job,
			Subject: kindReference.subject(referenceID(job, round)),
			Msg:     fmt.Sprintf("%s round %d", job, round),
		}
	}
	return err
}
