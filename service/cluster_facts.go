package service

import (
	"fmt"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/deploy/clusterfacts"
	"github.com/disdel/disdel/executor"
)

// facts are what the doctor measured on the platform of Config. Fields are 0 if it never ran.
func (s *core) facts() clusterfacts.Facts {
	f, _, err := clusterfacts.Read(s.cfg.Home, s.cfg.OpenWhisk.Host)
	if err != nil {
		s.unread.Do(func() { s.log.WithError(err).Warn("what is known of the cluster cannot be read") })
	}
	return f
}

// knownText says which facts a plan with these limits uses, how old they are, and which ones it leaves out.
func knownText(f clusterfacts.Facts, limits disdel.PlatformLimits, now time.Time) (out []string) {
	t := f.Trusted()
	if limits.PoolFrom == disdel.PoolFound {
		out = append(out, fmt.Sprintf("the pool has %v: doctor found it %s", limits.Pool, ageText(limits.PoolAt, now)))
	}
	if t.PerMinute > 0 {
		out = append(out, fmt.Sprintf("the namespace may invoke %d times a minute: doctor found it %s", t.PerMinute,
			ageText(f.At, now)))
	}
	if t.Concurrent > 0 {
		out = append(out, fmt.Sprintf("the namespace may have %d invocations at once: doctor found it %s", t.Concurrent,
			ageText(f.At, now)))
	}
	for _, d := range f.Doubts {
		if d.Fact == clusterfacts.Pool && (limits.Pool > 0 || f.AtLeast) {
			continue // the plan does not need it
		}
		out = append(out, doubtText(f, d))
	}
	return out
}

// doubtText says which fact plans leave out, and why.
func doubtText(f clusterfacts.Facts, d clusterfacts.Doubt) string {
	what, at := "", f.At
	switch d.Fact {
	case clusterfacts.Pool:
		what, at = fmt.Sprintf("pool of %v", f.Pool), f.PoolFoundAt()
	case clusterfacts.PerMinute:
		what = fmt.Sprintf("quota of %d invocations a minute", f.PerMinute)
	default:
		what = fmt.Sprintf("quota of %d invocations at once", f.Concurrent)
	}
	return fmt.Sprintf("the %s that doctor found on %s is left out: %s; disdel doctor measures it again", what,
		at.Local().Format(time.DateOnly), d.Why)
}

// ageText is a date and how long ago that was.
func ageText(at, now time.Time) string {
	days := int(now.Sub(at) / (24 * time.Hour))
	ago := fmt.Sprintf("%d days ago", days)
	switch {
	case days < 1:
		ago = "less than a day ago"
	case days == 1:
		ago = "a day ago"
	}
	return fmt.Sprintf("on %s (%s)", at.Local().Format(time.DateOnly), ago)
}

// runEvidence is what one run of a job shows about the cluster. A resume is another run.
type runEvidence struct {
	job   disdel.JobID
	began time.Time
	ended []disdel.Activation // of this run
}

// since returns the evidence without activations that began before a time. The doctor may have run in the middle of the
// job: older activations say nothing about its facts.
func (e runEvidence) since(t time.Time) runEvidence {
	e.ended = slices.DeleteFunc(slices.Clone(e.ended), func(a disdel.Activation) bool {
		began := a.Start
		if began.IsZero() { // OpenWhisk has no record of it
			began = e.began
		}
		return began.Before(t)
	})
	return e
}

// contradict notes the facts that a run contradicts, so that later plans leave them out. refused returns the quotas
// that OpenWhisk has named since a time.
func (s *core) contradict(e runEvidence, refused func(since time.Time) executor.RefusedQuotas) {
	if s.embedded() {
		return
	}
	f := s.facts()
	for _, d := range contradictions(f, e, refused(f.At)) {
		d.At = time.Now()
		if err := clusterfacts.Doubting(s.cfg.Home, s.cfg.OpenWhisk.Host, d); err != nil {
			s.log.WithError(err).Warn("a fact about the cluster that does not hold could not be noted")
		}
	}
}

// contradictions compares facts with a run after them, and with the quotas that OpenWhisk has named since.
func contradictions(f clusterfacts.Facts, e runEvidence, refused executor.RefusedQuotas) (out []clusterfacts.Doubt) {
	if f.Pool > 0 && !f.AtLeast {
		if d, ok := poolContradicted(f.Pool, e.since(f.PoolFoundAt())); ok {
			out = append(out, d)
		}
	}
	for _, q := range []struct {
		fact       string
		known, now int
	}{
		{clusterfacts.PerMinute, f.PerMinute, refused.PerMinute},
		{clusterfacts.Concurrent, f.Concurrent, refused.Concurrent},
	} {
		if q.known > 0 && q.now > 0 && q.known != q.now {
			out = append(out, clusterfacts.Doubt{Fact: q.fact, Why: fmt.Sprintf("OpenWhisk allows %d now", q.now)})
		}
	}
	return out
}

// poolContradicted looks for evidence against the size of the pool: an action that fits it and was never started, or
// parallel actions with more memory.
func poolContradicted(pool disdel.Bytes, e runEvidence) (clusterfacts.Doubt, bool) {
	for i := range e.ended {
		a := &e.ended[i]
		if a.FailureCode() == disdel.CodeNeverServed && a.Limits.Memory <= pool {
			return clusterfacts.Doubt{
				Fact: clusterfacts.Pool,
				Why:  fmt.Sprintf("an action of %v of %s waited in the queue and was never served", a.Limits.Memory, e.job),
			}, true
		}
	}
	if maximum := mostAtOnce(e.ended); maximum > pool {
		return clusterfacts.Doubt{
			Fact: clusterfacts.Pool, Why: fmt.Sprintf("%v of containers of %s ran at once", maximum, e.job),
		}, true
	}
	return clusterfacts.Doubt{}, false
}

// clocksDiffer bounds the difference between the clocks of a cluster's machines. Activations that overlap by less may
// have run one after the other.
const clocksDiffer = 100 * time.Millisecond

// mostAtOnce is the largest memory of parallel containers at any time.
func mostAtOnce(list []disdel.Activation) (maximum disdel.Bytes) {
	type change struct {
		at     time.Time
		memory disdel.Bytes
	}
	var changes []change
	for i := range list {
		a := &list[i]
		end := a.End.Add(-clocksDiffer)
		if a.Start.IsZero() || !end.After(a.Start) {
			continue
		}
		changes = append(changes, change{a.Start, a.Limits.Memory}, change{end, -a.Limits.Memory})
	}
	slices.SortFunc(changes, func(a, b change) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return int(a.memory - b.memory) // an end comes before a start at the same time
	})
	now := disdel.Bytes(0)
	for _, c := range changes {
		now += c.memory
		maximum = max(maximum, now)
	}
	return maximum
}
