package executor

import (
	"regexp"
	"strconv"
	"sync"

	"github.com/disdel/disdel"
)

// Refusals is the quotas of the namespace that OpenWhisk named when it last refused a request because of them. 0: it
// has refused none, or named none.
type Refusals struct {
	PerMinute, Concurrent int
}

// Refused tells the quotas that OpenWhisk named since the executor was made.
func (e *Executor) Refused() Refusals { return e.heard.get() }

// quotasHeard keeps Refusals.
type quotasHeard struct {
	mu   sync.Mutex
	seen Refusals // guarded by mu
}

func (r *quotasHeard) get() Refusals {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

var allowed = regexp.MustCompile(`allowed: (\d+)`)

// take reads the quota out of OpenWhisk's words of a refusal.
func (r *quotasHeard) take(code disdel.Code, text string) {
	m := allowed.FindStringSubmatch(text)
	if m == nil {
		return
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch code {
	case disdel.CodeQuotaMinute:
		r.seen.PerMinute = n
	case disdel.CodeQuotaConcurrent:
		r.seen.Concurrent = n
	}
}
