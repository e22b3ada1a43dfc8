package service

import (
	"context"
	"sync"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/scheduler"
)

// gangKeeper is the platform of a job that holds a gang. Where the job is granted it for a round, the first invocation
// of the next round gives back what the job holds and waits for its gang anew, and the others of that round wait with
// it. Where another stage begins, it asks for that one's gang.
type gangKeeper struct {
	controller.Invoker
	queue *queue
	job   disdel.JobID
	life  context.Context // of the job: who stops it does not wait for its turn
	stage func(ctx context.Context, o controller.GrantOrder) scheduler.Demand

	mu   sync.Mutex
	keep scheduler.Keep // guarded by mu
	turn *roundTurn     // guarded by mu: of the newest round; nil: the job holds its gang for its first
}

// roundTurn is the wait for a round's gang.
type roundTurn struct {
	round int
	over  chan struct{}
	err   error // read after over is closed
}

// Invoke waits for the gang of an invocation's round, and starts it.
func (g *gangKeeper) Invoke(ctx context.Context, inv disdel.Invocation) (disdel.ActivationID, error) {
	if err := g.await(ctx, inv.Round); err != nil {
		return "", err
	}
	return g.Invoker.Invoke(ctx, inv)
}

func (g *gangKeeper) await(ctx context.Context, round int) error {
	g.mu.Lock()
	t := g.turn
	switch {
	case g.keep == scheduler.KeepLife:
		g.mu.Unlock()
		return nil
	case t == nil: // it was granted when the job began
		t = granted(round)
		g.turn = t
	case round > t.round:
		t = &roundTurn{round: round, over: make(chan struct{})}
		g.turn = t
		g.mu.Unlock()
		defer close(t.over)
		life, end := context.WithCancelCause(g.life)
		defer end(nil)
		defer context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })() // a job that fails stops nothing else of its life
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

// granted is the turn of a round that the job holds its gang for.
func granted(round int) *roundTurn {
	t := &roundTurn{round: round, over: make(chan struct{})}
	close(t.over)
	return t
}

// grant has the job hold the gang of a stage, and tells why it does not. A gang that is given for a round and that the
// job can do without is only looked for: the round's first invocation asks for it again, in the job's place of the
// queue, and those that wait have their turn.
func (g *gangKeeper) grant(ctx context.Context, o controller.GrantOrder) (refused string, err error) {
	d := g.stage(ctx, o)
	refused, err = g.queue.change(ctx, g.job, d, o.Waits)
	if refused != "" || err != nil {
		return refused, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keep, g.turn = d.Keep, granted(o.Round)
	if !o.Waits {
		g.turn = granted(o.Round - 1)
	}
	return "", nil
}
