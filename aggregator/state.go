package aggregator

import (
	"context"

	"github.com/disdel/disdel"
)

// PutState stores a worker's own state under a claim: what it continues from in its next leg, after a failure, or,
// stored under the next round's id, in the next round. There is one for every worker, round and level; a new one takes
// the place of the one before at once. meta says what is no tensor, such as the position in the data; tensors may be
// any. It returns Conflict when the claim, which may be of another round than id, is lost; the rest is PushUpdate's.
func (s *Store) PutState(ctx context.Context, id disdel.UpdateID, c Claim, meta map[string]string,
	tensors disdel.Weights,
) error {
	h, err := s.headOf(kindState, id, tensors)
	if err != nil {
		return err
	}
	h.attempt, h.fence, h.meta = c.Attempt, c.Fence, meta
	return s.publish(ctx, h, fromWeights(h, tensors), c.ID, c.Fence)
}

// State reads what PutState stored for a round and worker. Names and shapes must be those of like, unless like is nil.
// It returns NotFound where there is none, Corrupt or Diverged if it is not to be used.
func (s *Store) State(ctx context.Context, id disdel.UpdateID, like disdel.Weights) (map[string]string, disdel.Weights,
	error,
) {
	h, inline, err := s.open(ctx, kindState, id, like)
	if err != nil {
		return nil, nil, s.countDamage(ctx, id.Job, err)
	}
	w, err := s.load(ctx, h, inline)
	if err != nil {
		return nil, nil, s.countDamage(ctx, id.Job, err)
	}
	return h.meta, w, nil
}
