package batch

import (
	"context"
	"sync"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/service"
)

// Job is a job of a batch.
type Job struct {
	Request service.Request
	Choices []jobfile.Choice // what a matrix gave it; none: it is of no matrix
}

// Config says what a batch is and how it is run.
type Config struct {
	Jobs    []Job // in the order in which they are submitted
	By      Measure
	Halving Halving

	// Observe is told whenever something has changed, one at a time. It must neither block nor keep what it is shown.
	// nil: nobody is told.
	Observe func(*View)
}

// View is a batch at one moment.
type View struct {
	Rows []Row // in the order of Config.Jobs
	Now  Sample
	Pool disdel.Bytes // of the platform; 0: not known
}

// Run submits all jobs, one after another, and waits until all have ended. What became of each is in the Summary, also
// where a job failed, which is no error. The error is Canceled where ctx ended the batch: every job is cancelled then,
// and the Summary is whole. It returns Unavailable and Denied for servers, before any job runs.
func Run(ctx context.Context, s *service.Service, cfg Config) (*Summary, error) {
	parts, err := s.Parts(ctx)
	if err != nil {
		return nil, err
	}
	b := newBoard(cfg, parts.Pool)
	var followers sync.WaitGroup
	for i := range cfg.Jobs {
		if ctx.Err() != nil {
			break
		}
		run, err := s.Submit(ctx, cfg.Jobs[i].Request)
		if err != nil {
			b.refused(i, err)
			continue
		}
		b.submitted(i, run.ID(), run.Cancel)
		followers.Go(func() { follow(ctx, b, i, run) })
	}
	followers.Wait()
	if ctx.Err() != nil {
		err = &disdel.Error{Kind: disdel.Canceled, Op: "run batch", Err: context.Cause(ctx)}
	}
	return b.summary(), err
}

// follow tells the board what happens to a job until it has ended.
func follow(ctx context.Context, b *board, i int, run *service.Run) {
	defer context.AfterFunc(ctx, func() { run.Cancel(context.Cause(ctx)) })()
	for e := range run.Events() {
		b.see(i, e.What)
	}
	if _, err := run.Wait(context.WithoutCancel(ctx)); err != nil {
		b.unsaved(i, err)
	}
}
