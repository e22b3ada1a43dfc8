package service

import (
	"context"

	"github.com/disdel/disdel"
)

// Plan is how a job would run: it does all that Submit does before it acknowledges a job, but for a look at how fast the
// job trains, and returns what Submit would refuse the job with. Nothing of it stays.
func (s *Service) Plan(ctx context.Context, req Request) (disdel.Plan, error) {
	req.Probe = false
	p, err := s.preparing(ctx, newJobID(), req.Options, req.Preparing)
	if err != nil {
		return disdel.Plan{}, err
	}
	r, err := p.resolve(ctx, req.Job, req.Source)
	if err != nil {
		return disdel.Plan{}, err
	}
	spec, err := p.fitting(ctx, r)
	return spec.Plan, err
}
