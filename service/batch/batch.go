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
	Choices []jobfile.Choice // its values in a matrix; none: it is not of a matrix
}

// withSiblings returns the request of a job with the number of other jobs, unless it has one.
func (j *Job) withSiblings(others int) service.Request {
	req := j.Request
	req.Siblings = cmp.Or(req.Siblings, others)
	return req
}

// Config configures a batch.
type Config struct {
	Jobs    []Job // in the order of submission
	By      Measure
	Halving Halving

	// Observe is called after every change, one call at a time. It must not block, and must not keep the View. nil:
	// nothing is called.
	Observe func(*View)
}

// View is the state of a batch.
type View struct {
	Rows []Row // in the order of Config.Jobs
	Now  Sample
	Pool disdel.Bytes // of the platform; 0: unknown
}

// ParseConfig makes a Config of a measure's name and the two numbers of a Halving. It returns Invalid for wrong values.
func ParseConfig(by string, factor, from int) (cfg Config, err error) {
	if cfg.By, err = parseMeasure(by); err == nil {
		cfg.Halving, err = parseHalving(factor, from)
	}
	return cfg, err
}

// Place runs the jobs of a batch: a Service (see In), or a server.
type Place struct {
	Submit func(ctx context.Context, req service.Request) (Run, error)
	// Check returns all faults of a job, as *disdel.Faults.
	Check func(ctx context.Context, req service.Request) error
	// Estimate estimates a job, and returns the error that Submit would return.
	Estimate func(ctx context.Context, req service.Request, q service.Questions) (*service.Estimation, error)
}

// Run is an acknowledged job, such as a service.Run.
type Run interface {
	ID() disdel.JobID
	EventsAfter(ctx context.Context, number int) iter.Seq[service.Event]
	Cancel(cause error)
	Wait(ctx context.Context) (disdel.Record, error)
}

// In returns a Service as a Place.
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

// Start submits all jobs, one after another, and waits until all have ended. The Summary has the result of each, also
// of failed ones, which are no error. Start returns Canceled if ctx ended; all jobs are canceled then.
func Start(ctx context.Context, at Place, cfg Config) (*Summary, error) {
	b := newBoard(cfg)
	var followers sync.WaitGroup
	for i := range cfg.Jobs {
		if ctx.Err() != nil {
			break
		}
		run, err := at.Submit(ctx, cfg.Jobs[i].withSiblings(len(cfg.Jobs)-1))
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

// follow gives the events of a job to the board until it has ended.
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
