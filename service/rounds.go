package service

import (
	"context"
	"sync"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
)

// byRound is the platform of a job that is granted its containers for a round: the first invocation of the next round
// gives back what the job holds and waits for its gang anew, and the others of that round wait with it.
type byRound struct {
	controller.Invoker
	queue *queue
	job   disdel.JobID
	life  context.Context // of the job: who stops it does not wait for its turn

	mu   sync.Mutex
	turn *roundTurn // guarded by mu: of the newest round; nil: the job holds its gang for its first
}

// roundTurn is the wait for a round's gang.
type roundTurn struct {
	round int
	over  chan struct{}
	err   error // read after over is closed
}

// Invoke waits for the gang of an invocation's round, and starts it.
func (g *byRound) Invoke(ctx context.Context, inv disdel.Invocation) (disdel.ActivationID, error) {
	if err := g.await(ctx, inv.Round); err != nil {
		return "", err
	}
	return g.Invoker.Invoke(ctx, inv)
}

func (g *byRound) await(ctx context.Context, round int) error {
	g.mu.Lock()
	t := g.turn
	switch {
	case t == nil: // it was granted when the job began
		t = &roundTurn{round: round, over: make(chan struct{})}
		close(t.over)
		g.turn = t
	case round > t.round:
		t = &roundTurn{round: round, over: make(chan struct{})}
		g.turn = t
		g.mu.Unlock()
		defer close(t.over)
		t.err = g.queue.again(g.life, g.job)
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
