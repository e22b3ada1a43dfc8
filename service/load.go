package service

import (
	"context"
	"sync"
	"time"

	"github.com/disdel/disdel/platform"
)

// load is what other programs want of this machine's processors. To look at it takes a moment, which many submits that
// come together need not each wait for.
type load struct {
	mu    sync.Mutex
	at    time.Time // guarded by mu: of the newest look; zero: there was none
	value float64   // guarded by mu
}

// loadFor is for how long a look at the load is good.
const loadFor = 2 * time.Second

func (l *load) now(ctx context.Context) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.IsZero() || time.Since(l.at) > loadFor {
		if l.value = platform.MachineLoad(ctx); ctx.Err() == nil {
			l.at = time.Now()
		}
	}
	return l.value
}
