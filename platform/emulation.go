package platform

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// Emulation selects weaknesses of real OpenWhisks that this platform does not have, to test clients with them. Each was
// measured on an OpenWhisk built from source. The zero value has none.
type Emulation struct {
	// LateRecords delays the record of an activation whose container died or timed out. On Docker the invoker looks 400
	// times for an out-of-memory kill, which takes 11.5 to 12.4 s, and the container keeps its memory until then. A death
	// with evidence of its cause is not delayed. The record's duration and end stay true.
	LateRecords time.Duration
	// RefusedInit reports a container that dies before or during /init as a timeout. OpenWhisk retries until the action's
	// limit and then says "exceeded its time limits ... during initialization."
	RefusedInit bool
	// CountRefused counts refused invocations against the minute's quota.
	CountRefused bool
	// LateSlots is how long an invocation counts as in flight after its record can be read.
	LateSlots time.Duration
	// NoEvidence hides the cause of an out-of-memory kill: the text is that of any death, and the annotations peakMemory
	// and memoryKill are missing, as on Kubernetes and on a standalone server.
	NoEvidence bool
	// RetryWarm silently repeats an activation whose warm container died, under the same id, as the standalone server
	// does. Its side effects happen twice.
	RetryWarm bool
}

// Measured times.
const (
	measuredLateRecords = 12 * time.Second
	measuredLateSlots   = 20 * time.Millisecond
)

// emulations are the Emulations with a name.
var emulations = map[string]Emulation{
	"embedded":  {},
	"openwhisk": {LateRecords: measuredLateRecords, RefusedInit: true, CountRefused: true, LateSlots: measuredLateSlots},
	"standalone": {
		LateRecords: measuredLateRecords, RefusedInit: true, CountRefused: true, LateSlots: measuredLateSlots,
		NoEvidence: true, RetryWarm: true,
	},
	"kubernetes": {RefusedInit: true, CountRefused: true, LateSlots: measuredLateSlots, NoEvidence: true},
}

// emulationParts are the fields of an Emulation by name.
var emulationParts = map[string]struct {
	measured time.Duration // default value; 0: takes none
	set      func(l *Emulation, d time.Duration)
}{
	"late-records":  {measuredLateRecords, func(l *Emulation, d time.Duration) { l.LateRecords = d }},
	"late-slots":    {measuredLateSlots, func(l *Emulation, d time.Duration) { l.LateSlots = d }},
	"refused-init":  {0, func(l *Emulation, _ time.Duration) { l.RefusedInit = true }},
	"count-refused": {0, func(l *Emulation, _ time.Duration) { l.CountRefused = true }},
	"no-evidence":   {0, func(l *Emulation, _ time.Duration) { l.NoEvidence = true }},
	"retry-warm":    {0, func(l *Emulation, _ time.Duration) { l.RetryWarm = true }},
}

// ParseEmulation reads a list such as "openwhisk", "kubernetes,retry-warm" or "late-records=3s,no-evidence". Names of
// OpenWhisks are embedded, openwhisk (on Docker), standalone and kubernetes; names of parts are late-records,
// late-slots, refused-init, count-refused, no-evidence and retry-warm. It returns Invalid for other names.
func ParseEmulation(list string) (Emulation, error) {
	var out Emulation
	for word := range strings.SplitSeq(list, ",") {
		name, value, valued := strings.Cut(strings.TrimSpace(word), "=")
		emulation, known := emulations[name]
		part, partly := emulationParts[name]
		switch {
		case known && !valued:
			out = emulation
		case partly && !valued:
			part.set(&out, part.measured)
		case partly && part.measured > 0:
			d, err := time.ParseDuration(value)
			if err != nil || d < 0 {
				return out, emulationError(fmt.Sprintf("%s takes a duration such as 3s, not %q", name, value))
			}
			part.set(&out, d)
		default:
			return out, emulationError(fmt.Sprintf("there is no emulation %q", word))
		}
	}
	return out, nil
}

func emulationError(msg string) error {
	names := slices.AppendSeq(slices.Collect(maps.Keys(emulations)), maps.Keys(emulationParts))
	slices.Sort(names)
	return &disdel.Error{Kind: disdel.Invalid, Op: "configure platform", Msg: msg, Hint: "known are " +
		strings.Join(names, ", ")}
}

// delayRecord waits before the record of a broken activation is saved, unless its cause is known.
func (p *Platform) delayRecord(end *activationEnd) {
	broken := end.timedOut || end.died
	if p.cfg.LateRecords > 0 && broken && !end.reschedule && end.text != textMemoryExhausted {
		p.sleep(p.cfg.LateRecords)
	}
}

// sleep waits, at most until the platform ends.
func (p *Platform) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.work.Done():
	}
}

// emulateRefusedInit turns a death before or during /init into a timeout, after the action's limit.
func (p *Platform) emulateRefusedInit(end *activationEnd, limit time.Duration) {
	if !p.cfg.RefusedInit || end.text == textMemoryExhausted {
		return
	}
	p.sleep(time.Until(end.start.Add(limit)))
	end.died, end.timedOut = false, true
	end.initTime = time.Since(end.start)
	end.developerError(textTimeout(limit, true))
}

// retriesWarm tells whether an activation is repeated silently.
func (p *Platform) retriesWarm(end *activationEnd) bool {
	return p.cfg.RetryWarm && end.died && !end.cold
}

// tellsOutOfMemory tells whether records distinguish out-of-memory kills from other deaths.
func (c *Config) tellsOutOfMemory() bool { return c.OOM == OOMAsDocker && !c.NoEvidence }

// releaseSlot ends an invocation's time in flight, after LateSlots.
func (p *Platform) releaseSlot(u *user) {
	if p.cfg.LateSlots == 0 {
		u.invocations.release()
		return
	}
	time.AfterFunc(p.cfg.LateSlots, u.invocations.release)
}
