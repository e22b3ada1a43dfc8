package executor

import (
	"regexp"
	"strconv"
	"time"

	"github.com/disdel/disdel"
)

// Refusals is the quotas of the namespace that OpenWhisk named when it last refused a request because of them. 0: it
// has refused none, or named none.
type Refusals struct {
	PerMinute, Concurrent int
}

// Refused tells the quotas that OpenWhisk has named since a moment. The zero time means since the executor was made.
func (e *Executor) Refused(since time.Time) Refusals { return e.pace.namedSince(since) }

// namedQuota is a quota that OpenWhisk named, and when it did so last.
type namedQuota struct {
	most int
	at   time.Time
}

// since is the quota where it was named after a moment, else 0.
func (q namedQuota) since(t time.Time) int {
	if q.at.Before(t) {
		return 0
	}
	return q.most
}

// name notes the quota that a refusal names, if it names one: a namespace may have quotas of its own.
func (p *pace) name(now time.Time, code disdel.Code, text string) {
	n := quotaIn(text)
	if n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch code {
	case disdel.CodeQuotaMinute:
		p.perMinute, p.namedPerMinute = n, namedQuota{n, now}
	case disdel.CodeQuotaConcurrent:
		p.concurrent, p.namedConcurrent = n, namedQuota{n, now}
	}
}

func (p *pace) namedSince(t time.Time) Refusals {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Refusals{PerMinute: p.namedPerMinute.since(t), Concurrent: p.namedConcurrent.since(t)}
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
