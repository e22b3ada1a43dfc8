package platform

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// Likeness is what OpenWhisk as people run it does worse than this platform, so that clients can be held against it.
// Each was measured on an OpenWhisk built from source. The zero value has none of it. One thing needs no switch: an
// action larger than the pool waits at the head of the queue for ever, and all others behind it, here as there.
type Likeness struct {
	// LateRecords is for how long the record of an activation is missing whose container died or ran out of time: on
	// Docker the invoker looks 400 times whether it was for memory, which takes 11.5 to 12.4 s, and the container keeps
	// its memory until then. A death for memory that leaves evidence is told at once. Duration and end in the record are
	// the true ones.
	LateRecords time.Duration
	// RefusedInit has a container that dies before or during /init read as a timeout: OpenWhisk tries to connect again
	// until the action's own limit has passed, and then says "exceeded its time limits ... during initialization."
	RefusedInit bool
	// CountRefused counts the invocations against the minute that were refused for being too many at once, and those
	// refused for the minute itself.
	CountRefused bool
	// LateSlots is for how long an invocation still counts as in flight after its record can be read.
	LateSlots time.Duration
	// NoEvidence leaves out what tells a death for memory: the text, which then is that of any death, and the annotations
	// peakMemory and memoryKill, which no OpenWhisk has. So it is on Kubernetes and on a standalone server.
	NoEvidence bool
	// RetryWarm runs an activation again, under its own id and without a word, whose warm container died under it: the
	// standalone server's setting. What it had done by then is done twice.
	RetryWarm bool
}

// Times of LikenessOf, as measured.
const (
	measuredLateRecords = 12 * time.Second
	measuredLateSlots   = 20 * time.Millisecond
)

// whisks are the OpenWhisks that a name stands for.
var whisks = map[string]Likeness{
	"embedded":  {},
	"openwhisk": {LateRecords: measuredLateRecords, RefusedInit: true, CountRefused: true, LateSlots: measuredLateSlots},
	"standalone": {
		LateRecords: measuredLateRecords, RefusedInit: true, CountRefused: true, LateSlots: measuredLateSlots,
		NoEvidence: true, RetryWarm: true,
	},
	"kubernetes": {RefusedInit: true, CountRefused: true, LateSlots: measuredLateSlots, NoEvidence: true},
}

// single are the parts of a likeness by name; d is what stands behind the name, or what was measured.
var single = map[string]struct {
	measured time.Duration // 0: takes no value
	set      func(l *Likeness, d time.Duration)
}{
	"late-records":  {measuredLateRecords, func(l *Likeness, d time.Duration) { l.LateRecords = d }},
	"late-slots":    {measuredLateSlots, func(l *Likeness, d time.Duration) { l.LateSlots = d }},
	"refused-init":  {0, func(l *Likeness, _ time.Duration) { l.RefusedInit = true }},
	"count-refused": {0, func(l *Likeness, _ time.Duration) { l.CountRefused = true }},
	"no-evidence":   {0, func(l *Likeness, _ time.Duration) { l.NoEvidence = true }},
	"retry-warm":    {0, func(l *Likeness, _ time.Duration) { l.RetryWarm = true }},
}

// LikenessOf reads a list such as "openwhisk", "kubernetes,retry-warm" or "late-records=3s,no-evidence": names of
// OpenWhisks and of single parts. The names: embedded, openwhisk (on Docker), standalone, kubernetes; late-records,
// late-slots, refused-init, count-refused, no-evidence, retry-warm. It returns Invalid for any other.
func LikenessOf(list string) (Likeness, error) {
	var out Likeness
	for word := range strings.SplitSeq(list, ",") {
		name, value, valued := strings.Cut(strings.TrimSpace(word), "=")
		whole, known := whisks[name]
		part, partly := single[name]
		switch {
		case known && !valued:
			out = whole
		case partly && !valued:
			part.set(&out, part.measured)
		case partly && part.measured > 0:
			d, err := time.ParseDuration(value)
			if err != nil || d < 0 {
				return out, unlike(fmt.Sprintf("%s takes a duration such as 3s, not %q", name, value))
			}
			part.set(&out, d)
		default:
			return out, unlike(fmt.Sprintf("there is no likeness %q", word))
		}
	}
	return out, nil
}

func unlike(msg string) error {
	var names []string
	for name := range whisks {
		names = append(names, name)
	}
	for name := range single {
		names = append(names, name)
	}
	slices.Sort(names)
	return &disdel.Error{Kind: disdel.Invalid, Op: "configure platform", Msg: msg, Hint: "known are " +
		strings.Join(names, ", ")}
}

// dwell holds a record back after an answer that broke off or never came, unless the death left evidence of its reason.
func (p *Platform) dwell(end *ending) {
	broken := end.timedOut || end.died
	if p.cfg.LateRecords > 0 && broken && !end.reschedule && end.text != textMemoryExhausted {
		p.pause(p.cfg.LateRecords)
	}
}

// pause waits, but not beyond the platform's end.
func (p *Platform) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.work.Done():
	}
}

// refuseInit turns the death of a container before or during /init into what OpenWhisk makes of it, after the time that
// it takes there.
func (p *Platform) refuseInit(end *ending, limit time.Duration) {
	if !p.cfg.RefusedInit || end.text == textMemoryExhausted {
		return
	}
	p.pause(time.Until(end.start.Add(limit)))
	end.died, end.timedOut = false, true
	end.initTime = time.Since(end.start)
	end.developerError(textTimeout(limit, true))
}

// repeats tells whether an activation is run again, in another container, without anybody's being told.
func (p *Platform) repeats(end *ending) bool { return p.cfg.RetryWarm && end.died && !end.cold }

// saysMemory tells whether a death for memory can be told from another.
func (c *Config) saysMemory() bool { return c.OOM == OOMAsDocker && !c.NoEvidence }

// releaseSlot gives an invocation's place back, late if so configured.
func (p *Platform) releaseSlot(u *user) {
	if p.cfg.LateSlots == 0 {
		u.invocations.release()
		return
	}
	time.AfterFunc(p.cfg.LateSlots, u.invocations.release)
}
