package batch

import (
	"cmp"
	"context"
	"iter"
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

// beside is the request of one that is submitted with others, unless it says itself how many these are.
func (j *Job) beside(others int) service.Request {
	req := j.Request
	req.Siblings = cmp.Or(req.Siblings, others)
	return req
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

// ParseConfig is how jobs are compared and stopped early, as people give it: a measure, and a Halving of two numbers.
// It returns Invalid for what is none.
func ParseConfig(by string, factor, from int) (cfg Config, err error) {
	if cfg.By, err = parseMeasure(by); err == nil {
		cfg.Halving, err = parseHalving(factor, from)
	}
	return cfg, err
}

// Place is where the jobs of a batch run: a Service (In), or a server that speaks for one.
type Place struct {
	Submit func(ctx context.Context, req service.Request) (Run, error)
	// Check returns everything that is wrong with a job, as *disdel.Faults.
	Check func(ctx context.Context, req service.Request) error
	// Estimate works out what a job will need, and returns what it would be refused with.
	Estimate func(ctx context.Context, req service.Request, q service.Questions) (*service.Estimation, error)
}

// Run is a job that was acknowledged, as a service.Run is one.
type Run interface {
	ID() disdel.JobID
	EventsAfter(ctx context.Context, number int) iter.Seq[service.Event]
	Cancel(cause error)
	Wait(ctx context.Context) (disdel.Record, error)
}

// In is a Service as a place.
func In(s *service.Service) Place {
	return Place{
		Submit: func(ctx context.Context, req service.Request) (Run, error) {
			run, err := s.Submit(ctx, req)
			if err != nil {
				return nil, err
			}
			return run, nil
		},
		Check: func(ctx context.Context, req service.Request) error {
			_, err := s.Check(ctx, req)
			return err
		},
		Estimate: s.Estimate,
	}
}

// Start submits all jobs, one after another, and waits until all have ended. What became of each is in the Summary,
// also where a job failed, which is no error. The error is Canceled where ctx ended the batch: every job is cancelled
// then.
func Start(ctx context.Context, at Place, cfg Config) (*Summary, error) {
	b := newBoard(cfg)
	var followers sync.WaitGroup
	for i := range cfg.Jobs {
		if ctx.Err() != nil {
			break
		}
		run, err := at.Submit(ctx, cfg.Jobs[i].beside(len(cfg.Jobs)-1))
		if err != nil {
			b.refused(i, err)
			continue
		}
		b.submitted(i, run.ID(), run.Cancel)
		followers.Go(func() { follow(ctx, b, i, run) })
	}
	followers.Wait()
	if ctx.Err() != nil {
		return b.summary(), &disdel.Error{Kind: disdel.Canceled, Op: "run batch", Err: context.Cause(ctx)}
	}
	return b.summary(), nil
}

// follow tells the board what happens to a job until it has ended.
func follow(ctx context.Context, b *board, i int, run Run) {
	defer context.AfterFunc(ctx, func() { run.Cancel(context.Cause(ctx)) })()
	ctx = context.WithoutCancel(ctx)
	for e := range run.EventsAfter(ctx, 0) {
		b.see(i, e.What)
	}
	if _, err := run.Wait(ctx); err != nil {
		b.unsaved(i, err)
	}
}
