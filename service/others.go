package service

import (
	"context"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/platform/local"
	"github.com/disdel/disdel/scheduler"
)

// crowd is how much of the platform's pool is at work, whoever's work it is, as a platform of disdel tells it that
// others use too. An embedded one is this Service's alone, and OpenWhisk's own API does not tell.
type crowd struct {
	mu   sync.Mutex
	at   time.Time    // guarded by mu: of the newest look
	busy disdel.Bytes // guarded by mu
}

// atWork looks, unless somebody has just done so. A platform that does not answer is as it was.
func (s *core) atWork(ctx context.Context) disdel.Bytes {
	if s.embedded() || s.told(ctx) == nil {
		return 0
	}
	c := &s.crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) >= lookEvery {
		c.at = time.Now()
		state := local.State{Address: addresses.WithScheme(s.cfg.OpenWhisk.Host)}
		if live, err := local.Ask(ctx, state); err == nil {
			c.busy = live.Pool.BusyBytes
		}
	}
	return c.busy
}

// beyond is what is at work beyond all that the jobs in the books hold: it is certainly others'. They may have more,
// where these jobs have containers that do nothing at the moment; what waits for that waits in the platform's queue.
func beyond(busy disdel.Bytes, books *scheduler.Admission) disdel.Bytes {
	for _, d := range books.Demands() {
		if d.Held != nil {
			busy -= d.Held.Room.Memory
		}
	}
	return max(0, busy)
}
