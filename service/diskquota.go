package service

import (
	"context"
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/model"
)

// diskClaims is what a tenant's running uploads and unfinished jobs will still write.
type diskClaims struct {
	next int
	all  map[int]disdel.Bytes
}

// ClaimDisk reserves room for more bytes in the tenant's disk quota. The caller calls release once the bytes are
// written, or will not be. ClaimDisk returns OverLimit, with the figures, if the quota has no room. It counts nothing
// for a tenant without a disk quota.
func (s *Service) ClaimDisk(ctx context.Context, more disdel.Bytes) (release func(), err error) {
	q, err := s.quota(ctx)
	if err != nil || q.Disk == 0 {
		return func() {}, err
	}
	before, release := s.claim(more)
	// The claim comes first, then the look at what is stored: so no bytes of others are missed. Later claimants count
	// this claim, and before has earlier ones, even if their bytes are written meanwhile.
	stored, err := s.stored(ctx)
	if err == nil && stored+before+more > q.Disk {
		err = &disdel.Error{
			Kind: disdel.OverLimit, Op: "use disk",
			Msg: fmt.Sprintf("it needs %v, and the tenant has %v stored and %v claimed by jobs and uploads of its quota of %v",
				more, stored, before, q.Disk),
			Hint: "remove models, data sets or weights, which takes a token of the role admin; or ask whoever runs the " +
				"server for a larger --disk",
		}
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// claim enters a claim of this Service's tenant. It returns what was claimed before.
func (s *Service) claim(more disdel.Bytes) (before disdel.Bytes, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.claims[s.whose()]
	if c == nil {
		c = &diskClaims{all: map[int]disdel.Bytes{}}
		s.claims[s.whose()] = c
	}
	for _, n := range c.all {
		before += n
	}
	n := c.next
	c.next++
	c.all[n] = more
	return before, func() { // a second time changes nothing
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(c.all, n)
	}
}

// stored is how many bytes a tenant's data sets, models, weights and checkpoints have.
func (s *Service) stored(ctx context.Context) (all disdel.Bytes, err error) {
	for _, folder := range []string{"datasets", "models"} {
		bucket, err := blobs.Open(ctx, s.storage(folder))
		if err != nil {
			return 0, err
		}
		for o, err := range bucket.List(ctx, "") {
			if err != nil {
				return 0, blobs.Wrap(err, "count bytes", folder)
			}
			all += disdel.Bytes(o.Size)
		}
	}
	return all, nil
}

// claimDisk claims what a job will write, until release is called.
func (p *preparation) claimDisk(ctx context.Context, spec controller.Spec, g *model.Graph) (release func(), err error) {
	return p.ClaimDisk(ctx, diskNeed(spec, g))
}

// diskNeed is the most that a job's model and checkpoints take at any moment.
func diskNeed(spec controller.Spec, g *model.Graph) disdel.Bytes {
	n := storeNeed(spec.Job, spec.Plan, g)
	need := n.Reference
	if spec.Job.Reliability.CheckpointEvery > 0 {
		need += checkpointsAtOnce * (n.Reference + disdel.Bytes(n.Workers)*n.State)
	}
	return need
}

// InputBytes is how many bytes the rows of a data set that was read from files have.
func InputBytes(in *dataset.Input) disdel.Bytes {
	size := func(s *dataset.Samples) int {
		return len(s.U8) + 4*len(s.F32) + 4*len(s.Labels)
	}
	all := size(&in.Train)
	if in.Test != nil {
		all += size(in.Test)
	}
	return disdel.Bytes(all)
}
