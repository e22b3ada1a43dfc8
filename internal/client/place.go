package client

import (
	"context"

	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/batch"
)

// Place is where the jobs of a batch run.
func (c Client) Place() batch.Place {
	return batch.Place{
		Submit: func(ctx context.Context, req service.Request) (batch.Run, error) {
			run, err := c.Jobs.Submit(ctx, req)
			if err != nil {
				return nil, err
			}
			return run, nil
		},
		Check: c.Jobs.Check, Estimate: c.Jobs.Estimate,
	}
}
