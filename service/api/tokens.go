package api

import (
	"context"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service/tenant"
)

// lookAtTokens is the time between look-ups of the token of a stream.
const lookAtTokens = time.Second

// tokens ends the streams of revoked tokens. It looks up each token once a second, however many streams the token has.
type tokens struct {
	identify func(ctx context.Context, token string) (string, tenant.Role, error)

	mu   sync.Mutex
	open map[string]*opened // guarded by mu: by token
}

// opened are the streams of one token.
type opened struct {
	next    int
	ends    map[int]func()
	stop    context.CancelFunc // ends the look-ups
	stopped <-chan struct{}
}

func newTokens(identify func(context.Context, string) (string, tenant.Role, error)) *tokens {
	return &tokens{identify: identify, open: map[string]*opened{}}
}

// join has end called once the token is revoked, unless leave is called before. After the last leave of a token nothing
// runs for it.
func (t *tokens) join(token string, end func()) (leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.open[token]
	if o == nil {
		ctx, stop := context.WithCancel(context.Background())
		stopped := make(chan struct{})
		o = &opened{ends: map[int]func(){}, stop: stop, stopped: stopped}
		t.open[token] = o
		go func() {
			defer close(stopped)
			t.watch(ctx, token, o)
		}()
	}
	n := o.next
	o.next++
	o.ends[n] = end
	return func() { t.leave(token, o, n) }
}

func (t *tokens) leave(token string, o *opened, n int) {
	t.mu.Lock()
	delete(o.ends, n)
	last := len(o.ends) == 0
	if last && t.open[token] == o {
		delete(t.open, token)
	}
	t.mu.Unlock()
	if last {
		o.stop()
		<-o.stopped
	}
}

// watch looks the token up until it is revoked, then ends its streams. It ends no stream if the history does not
// answer.
func (t *tokens) watch(ctx context.Context, token string, o *opened) {
	tick := time.NewTicker(lookAtTokens)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, _, err := t.identify(ctx, token); disdel.KindOf(err) != disdel.Denied {
			continue
		}
		t.mu.Lock()
		for _, end := range o.ends {
			end()
		}
		t.mu.Unlock()
	}
}
