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

// allowed finds the quota in OpenWhisk's "Too many requests in the last minute (count: 12, allowed: 10)."
var allowed = regexp.MustCompile(`\(count: \d+, allowed: (\d+)\)`)

// quotaIn returns the quota that a refusal of OpenWhisk names, 0 if it names none.
func quotaIn(text string) int {
	m := allowed.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // digits; a number too large to hold is no quota
	return n
}

// take keeps the quota that a refusal names.
func (r *quotasHeard) take(code disdel.Code, text string) {
	n := quotaIn(text)
	if n == 0 {
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
