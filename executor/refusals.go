package executor

import (
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/disdel/disdel"
)

// Refusals is the quotas of the namespace that OpenWhisk named when it last refused a request because of them. 0: it
// has refused none, or named none.
type Refusals struct {
	PerMinute, Concurrent int
}

// Refused tells the quotas that OpenWhisk has named since a moment. The zero time means since the executor was made.
func (e *Executor) Refused(since time.Time) Refusals { return e.heard.get(since) }

// quotasHeard keeps the quotas of Refusals.
type quotasHeard struct {
	mu                    sync.Mutex
	perMinute, concurrent heardQuota // guarded by mu
}

// heardQuota is a quota that OpenWhisk named, and when it did so last.
type heardQuota struct {
	most int
	at   time.Time
}

// since is the quota where it was named after a moment, else 0.
func (q heardQuota) since(t time.Time) int {
	if q.at.Before(t) {
		return 0
	}
	return q.most
}

func (r *quotasHeard) get(since time.Time) Refusals {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Refusals{PerMinute: r.perMinute.since(since), Concurrent: r.concurrent.since(since)}
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
		r.perMinute = heardQuota{n, time.Now()}
	case disdel.CodeQuotaConcurrent:
		r.concurrent = heardQuota{n, time.Now()}
	}
}
