package queue

import (
	"context"
	"sync"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/scheduler"
)

// GangInvoker invokes the actions of a job that has room for a gang. If the job has it for one round, the first
// invocation of the next round gives the room back and waits for it anew, and the round's other invocations wait with
// it.
type GangInvoker struct {
	controller.Invoker
	queue *Queue
	job   disdel.JobID
	life  context.Context // ends when the job is stopped: it waits no longer then
	stage func(ctx context.Context, o controller.GrantOrder) scheduler.Demand

	mu    sync.Mutex
	keep  scheduler.Keep // guarded by mu
	round *roundWait     // guarded by mu: the newest round's; nil: the job has its room since it began
}

// Gang returns the invoker of a job that has room, until life ends. stage is the demand of a stage of the job.
func (q *Queue) Gang(life context.Context, job disdel.JobID, keep scheduler.Keep, by controller.Invoker,
	stage func(ctx context.Context, o controller.GrantOrder) scheduler.Demand,
) *GangInvoker {
	return &GangInvoker{Invoker: by, queue: q, job: job, life: life, stage: stage, keep: keep}
}

// roundWait is the wait for the room of a round.
type roundWait struct {
	round int
	over  chan struct{}
	err   error // read after over is closed
}

// Invoke waits for the room of an invocation's round, and starts the invocation.
func (g *GangInvoker) Invoke(ctx context.Context, inv disdel.Invocation) (disdel.ActivationID, error) {
	if err := g.await(ctx, inv.Round); err != nil {
		return "", err
	}
	return g.Invoker.Invoke(ctx, inv)
}

func (g *GangInvoker) await(ctx context.Context, round int) error {
	g.mu.Lock()
	t := g.round
	switch {
	case g.keep == scheduler.KeepLife:
		g.mu.Unlock()
		return nil
	case t == nil: // it was granted when the job began
		t = granted(round)
		g.round = t
	case round > t.round:
		t = &roundWait{round: round, over: make(chan struct{})}
		g.round = t
		g.mu.Unlock()
		defer close(t.over)
		life, end := context.WithCancelCause(g.life)
		defer end(nil)
		defer context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })() // a job that fails stops waiting, too
		t.err = g.queue.again(life, g.job)
		return t.err
	}
	g.mu.Unlock()
	select {
	case <-t.over:
		return t.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// granted is a round that the job has room for.
func granted(round int) *roundWait {
	t := &roundWait{round: round, over: make(chan struct{})}
	close(t.over)
	return t
}

// Grant has the job hold the room of a stage; refused says why it does not. If the job has room for one round, and can
// do without the stage, Grant only checks that there is room: the round's first invocation asks for it again, so that
// waiting jobs come in between.
func (g *GangInvoker) Grant(ctx context.Context, o controller.GrantOrder) (refused string, err error) {
	d := g.stage(ctx, o)
	refused, err = g.queue.Change(ctx, g.job, d, o.Waits)
	if refused != "" || err != nil {
		return refused, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keep, g.round = d.Keep, granted(o.Round)
	if !o.Waits {
		g.round = granted(o.Round - 1)
	}
	return "", nil
}
