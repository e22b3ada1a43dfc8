package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/openwhisk-client-go/whisk"

	"github.com/disdel/disdel"
)

// longestJitter makes every pause as long as it can be, so that a test knows it.
func longestJitter(most time.Duration) time.Duration { return most }

// Pauses between tries double up to a bound. They start longer after a refusal for concurrency, and an outage has a
// lower bound. A call gives up with the first try at or after its patience.
func TestTheTimesOfTriesAreKnown(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	growing := []time.Duration{
		0, 50 * ms, 150 * ms, 350 * ms, 750 * ms, 1550 * ms, 3150 * ms, 6350 * ms, 12750 * ms,
		22750 * ms, 32750 * ms,
	}
	refused := []time.Duration{0, s, 3 * s, 7 * s, 15 * s, 25 * s, 35 * s}
	outage := []time.Duration{0, 50 * ms, 150 * ms, 350 * ms, 750 * ms, 1550 * ms, 2550 * ms, 3550 * ms}
	for _, c := range []struct {
		name           string
		code           disdel.Code
		patience, busy time.Duration
		want           []time.Duration
	}{
		{"busy", "", time.Hour, 32750 * ms, growing},
		{"busy, a little longer than a try", "", time.Hour, 22750*ms + 1, growing},
		{"busy, impatient", "", time.Hour, 1, growing[:2]},
		{"no place", disdel.CodeQuotaConcurrent, time.Hour, 35 * s, refused},
		{"no place, a little longer", disdel.CodeQuotaConcurrent, time.Hour, 25*s + 1, refused},
		{"the minute", disdel.CodeQuotaMinute, time.Hour, 150 * ms, []time.Duration{0, 50 * ms, 100 * ms, 150 * ms}},
		{"outage", disdel.CodeUnreachable, 3550 * ms, 0, outage},
		{"outage, a little longer", disdel.CodeUnreachable, 2550*ms + 1, 0, outage},
		{"outage, known only after its silence", disdel.CodeUnreachable, 1, 0, outage[:6]},
	} {
		onCluster(t, Config{Jitter: longestJitter}, func(t *testing.T, e *Executor, _ *cluster) {
			begun := time.Now()
			var tries []time.Duration
			_, err := repeat(t.Context(), e, c.patience, c.busy, func() (int, error) {
				tries = append(tries, time.Since(begun))
				if c.code == disdel.CodeUnreachable {
					e.health.requestFailed(context.DeadlineExceeded)
				}
				return 0, &disdel.Error{Kind: disdel.Unavailable, Code: c.code, Op: "call"}
			})
			if !slices.Equal(tries, c.want) || disdel.AsError(err).Code != c.code || disdel.AsError(err).Op != "call" {
				t.Errorf("%s: tries at %v, %v; want %v", c.name, tries, err, c.want)
			}
		})
	}
}

// An invocation of a busy OpenWhisk is tried for three minutes, and as long as its job has planned for the queue.
func TestAnInvocationIsTriedForItsQueueToo(t *testing.T) {
	for _, queue := range []time.Duration{0, 2 * time.Minute} {
		onCluster(t, Config{Jitter: longestJitter}, func(t *testing.T, e *Executor, c *cluster) {
			c.refuse = func() (int, string) { return 503, "busy" }
			queued, begun := inv, time.Now()
			queued.Queue = disdel.Millis(queue)
			_, err := e.Invoke(t.Context(), queued)
			took := time.Since(begun)
			if disdel.KindOf(err) != disdel.Unavailable || took < 3*time.Minute+queue || took > 190*time.Second+queue {
				t.Errorf("queue of %v: %v after %v", queue, err, took)
			}
			if e.quotas.inFlight != 0 {
				t.Errorf("%d places are still taken", e.quotas.inFlight)
			}
		})
	}
}

// OpenWhisk is down if it left a call unanswered for 1.5 s, counted from the first such call. The outage ends
// with an answer. A slow answer within this time ends none, and one after a failed call does.
func TestAnOutageStartsAndEndsOnTime(t *testing.T) {
	down := func(t *testing.T, h *health, want bool, cause string) {
		t.Helper()
		since, why, got := h.outage()
		if got != want || why != cause || since.IsZero() == want {
			t.Errorf("down %t since %v: %q; want %t: %q", got, since, why, want, cause)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var h health
		h.requestSent()
		time.Sleep(1500*time.Millisecond - 1)
		h.requestSent() // the first one counts
		down(t, &h, false, "")
		time.Sleep(time.Nanosecond)
		down(t, &h, true, "no answer")
		h.answerReceived()
		if down(t, &h, false, ""); !h.lastReturn().IsZero() {
			t.Error("an answer after exactly silence ends an outage")
		}
		h.requestSent()
		time.Sleep(1500*time.Millisecond + 1)
		if h.answerReceived(); !h.lastReturn().Equal(time.Now()) {
			t.Error("an answer after more than silence ends no outage")
		}
		time.Sleep(time.Minute)
		h.requestFailed(errors.New("x"))
		time.Sleep(time.Second)
		h.requestFailed(errors.New("y"))
		time.Sleep(1500*time.Millisecond - time.Second)
		down(t, &h, true, "the connection broke off")
		if h.answerReceived(); !h.lastReturn().Equal(time.Now()) {
			t.Error("an answer after a failed call ends no outage")
		}
		at := h.lastReturn()
		time.Sleep(time.Minute)
		if h.answerReceived(); !h.lastReturn().Equal(at) {
			t.Error("an answer without a question ends an outage")
		}
	})
}

// A record is asked for after 10 ms, then after pauses that grow by a tenth up to PollEvery.
func TestRecordsAreAskedForLessAndLessOften(t *testing.T) {
	const every = 15 * time.Millisecond
	onCluster(t, Config{PollEvery: every}, func(t *testing.T, e *Executor, c *cluster) {
		id, begun := invoked(t, e), time.Now()
		want, at, pause := []time.Duration{0}, time.Duration(0), 10*time.Millisecond
		for range 8 {
			at += pause
			want, pause = append(want, at), min(pause+pause/10, every)
		}
		c.ended[string(id)] = begun.Add(want[len(want)-1])
		asked := c.asked
		a, err := e.Wait(t.Context(), inv, id)
		if took := time.Since(begun); err != nil || a.ID != id || took != at || c.asked-asked != len(want) {
			t.Errorf("%v after %v and %d requests, %v; want %v and %d", a.ID, took, c.asked-asked, err, at, len(want))
		}
	})
}

// When an activation without a record is given up, and by which rule, to the nanosecond. The probe is known: it was
// served or not. The timeout is one minute, and so is the wait for the record.
func TestAnActivationIsGivenUpOnTime(t *testing.T) {
	const never = -1
	due := 2 * time.Minute
	for _, c := range []struct {
		name                 string
		returned, served, at time.Duration // after it was accepted
		gone                 bool
		why                  string // in the evidence; "": it is not given up
	}{
		{"too early", never, 0, due - 1, false, ""},
		{"overtaken, but it may still run", never, 0, due, false, ""},
		{"overtaken", never, 0, due + 1, false, "longer ago than this one may take"},
		{"overtaken late", never, due, 2 * due, false, ""},
		{"overtaken late, and ended", never, due, 2*due + 1, false, "longer ago than this one may take"},
		{"no action", never, never, due, true, "its action is gone"},
		{"no action, too early", never, never, due - 1, true, ""},
		{"soon after an outage", 1, 2, 5 * time.Second, false, ""},
		{"after an outage", 1, 2, 5*time.Second + 1, false, "did not answer for a while"},
		{"after an outage before it", 0, 2, 5*time.Second + 1, false, ""},
		{"after an outage that ended when it was due", due - 5*time.Second, due, due - 1, false, ""},
		{"an outage that counts for nothing", due - 5*time.Second, due + 1, 2*due + 1, false, ""},
	} {
		onCluster(t, Config{}, func(t *testing.T, e *Executor, _ *cluster) {
			time.Sleep(time.Hour)
			w := waiting{e: e, inv: inv, id: "x", begun: time.Now()}
			p := &probe{sent: w.begun.Add(max(0, c.returned)), id: "probe", gone: c.gone, again: w.begun.Add(time.Hour)}
			if p.looked = w.begun.Add(c.at); c.served != never {
				p.served = w.begun.Add(c.served)
			}
			e.probes.byAction[inv.Action] = p
			if c.returned != never {
				e.health.returned = w.begun.Add(c.returned)
			}
			time.Sleep(c.at)
			a, over := w.giveUp(t.Context())
			if over != (c.why != "") || !strings.Contains(strings.Join(a.Evidence, "; "), c.why) {
				t.Errorf("%s: given up %t by %q, want %q", c.name, over, a.Evidence, c.why)
			}
		})
	}
}

// A probe serves everybody who waits since before it was sent. One that was not accepted is sent again after more than
// 5 s, and one without a record after more than 5 minutes, then twice that, up to 20 minutes.
func TestProbesAreSentOnTime(t *testing.T) {
	onCluster(t, Config{}, func(t *testing.T, e *Executor, c *cluster) {
		begun := time.Now()
		c.gone = true
		if p := e.probe(t.Context(), inv, begun); !p.gone || p.id != "" || !p.sent.Equal(begun) {
			t.Errorf("an action that is gone: %+v", p)
		}
		c.gone, c.refuse = false, func() (int, string) { return 500, "no" }
		time.Sleep(time.Second)
		if p := e.probe(t.Context(), inv, time.Now()); p.gone || p.id != "" || !p.sent.Equal(begun.Add(time.Second)) {
			t.Errorf("one who waits since after the probe was sent: %+v", p)
		}
		c.refuse = nil
		time.Sleep(5 * time.Second)
		if e.probe(t.Context(), inv, begun); len(c.accepted) != 0 {
			t.Error("a refused probe is sent again too soon")
		}
		time.Sleep(time.Nanosecond)
		sent := time.Now()
		if p := e.probe(t.Context(), inv, begun); len(c.accepted) != 1 || !p.sent.Equal(sent) {
			t.Errorf("a refused probe is sent again: %+v", p)
		}
		for n, pause := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 20 * time.Minute} {
			time.Sleep(pause)
			if e.probe(t.Context(), inv, sent); len(c.accepted) != n+1 {
				t.Errorf("%d probes after exactly %v", len(c.accepted), pause)
			}
			time.Sleep(time.Nanosecond)
			if p := e.probe(t.Context(), inv, sent); len(c.accepted) != n+2 || len(p.older) != n+1 || !p.served.IsZero() {
				t.Errorf("%d probes after more than %v, %d older", len(c.accepted), pause, len(p.older))
			}
		}
		time.Sleep(e.cfg.PollEvery)
		c.ended[fmt.Sprintf("%032x", 0)] = time.Now() // the record of an older probe is as good
		asked := c.asked
		if p := e.probe(t.Context(), inv, sent); !p.served.Equal(time.Now()) {
			t.Errorf("an older probe was served: %+v", p)
		}
		if e.probe(t.Context(), inv, sent); c.asked-asked != 2 {
			t.Errorf("%d requests for the record of a probe, of which one has a record", c.asked-asked)
		}
	})
}

// A probe's record is looked for every PollEvery, or every second if that is longer.
func TestAProbesRecordIsLookedForNowAndThen(t *testing.T) {
	for _, every := range []time.Duration{100 * time.Millisecond, time.Minute} {
		onCluster(t, Config{PollEvery: every}, func(t *testing.T, e *Executor, c *cluster) {
			since, asked := time.Now(), 0
			for i, step := range []time.Duration{0, min(every, time.Second) - 1, 1} {
				time.Sleep(step)
				e.probe(t.Context(), inv, since)
				if want := []int{2, 0, 1}[i]; c.asked-asked != want { // the first sends it, too
					t.Errorf("poll every %v, step %d: %d requests, want %d", every, i, c.asked-asked, want)
				}
				asked = c.asked
			}
		})
	}
}

// The minute's quota opens with our next minute. A refusal late in a minute closes until the next one. A refusal near
// its start closes for a second, and a quarter more with each further refusal.
func TestTheMinutesQuotaOpensOnTime(t *testing.T) {
	turn := time.Unix(0, 0).UTC().Add(1000 * time.Minute)
	p := quotaGate{perMinute: 2}
	wait := func(after, want time.Duration) {
		t.Helper()
		if got := p.tryRequest(turn.Add(after)); got != want {
			t.Errorf("%v after the turn: %v to wait, want %v", after, got, want)
		}
	}
	wait(0, 0)
	wait(59*time.Second, 0)
	wait(59*time.Second, time.Second+time.Millisecond)
	wait(time.Minute, 0)
	early := turn.Add(time.Minute + 5*time.Second)
	p.refused(early)
	p.refused(early.Add(time.Second - 1)) // it shares the pause
	wait(time.Minute+5*time.Second, time.Second)
	wait(time.Minute+5*time.Second+time.Second, 0)
	wait(time.Minute+5*time.Second+time.Second, 0)
	wait(2*time.Minute-time.Second, time.Second+time.Millisecond)
	turn = turn.Add(2 * time.Minute)
	for n := range 3 {
		pause := time.Second + time.Duration(n)*250*time.Millisecond
		p.refused(turn)
		wait(0, pause)
		turn = turn.Add(pause)
		wait(0, 0)
	}
	turn = turn.Truncate(time.Minute).Add(time.Minute)
	p.refused(turn.Add(5*time.Second + 1))
	if closed := p.closedUntil.Sub(turn.Add(time.Minute)); closed < 0 || closed >= 250*time.Millisecond {
		t.Errorf("closed until %v after the next turn", closed)
	}
}

// A quota in a refusal counts from the time of the refusal. What is left of the minute is never below zero, and a gate
// that opens now has it all.
func TestWhatIsLeftOfAQuotaIsKnown(t *testing.T) {
	turn := time.Unix(0, 0).UTC().Add(1000 * time.Minute)
	p := quotaGate{perMinute: 3, minute: turn, count: 1, closedUntil: turn.Add(time.Second)}
	if q := p.quota("job", turn.Add(time.Second-1)); q.Left != 0 || !q.Until.Equal(p.closedUntil) {
		t.Errorf("a closed gate: %+v", q)
	}
	if q := p.quota("job", turn.Add(time.Second)); q.Left != 2 || !q.Until.Equal(turn.Add(time.Minute)) {
		t.Errorf("a gate that opens: %+v", q)
	}
	p.noteQuota(turn, disdel.CodeQuotaMinute, "Too many requests in the last minute (count: 3, allowed: 0).")
	p.noteQuota(turn, disdel.CodeQuotaMinute, "Too many requests in the last minute")
	if p.namedSince(turn) != (RefusedQuotas{}) || p.perMinute != 3 {
		t.Errorf("no quota was named: %+v, %d a minute", p.namedSince(turn), p.perMinute)
	}
	p.noteQuota(turn, disdel.CodeQuotaMinute, "Too many requests in the last minute (count: 3, allowed: 1).")
	if p.namedSince(turn) != (RefusedQuotas{PerMinute: 1}) || p.namedSince(turn.Add(1)) != (RefusedQuotas{}) {
		t.Errorf("named %+v, and later %+v", p.namedSince(turn), p.namedSince(turn.Add(1)))
	}
	if p.count = 2; p.quota("job", turn.Add(time.Second)).Left != 0 {
		t.Error("less than nothing is left")
	}
}

// What each status of an answer means, at the bounds between the classes of statuses.
func TestStatusesAreTold(t *testing.T) {
	e, err := New(Config{APIHost: "http://openwhisk.test", AuthKey: "user:key", Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status int
		text   string
		kind   disdel.Kind
		code   disdel.Code
	}{
		{299, "", disdel.Invalid, ""},
		{300, "", disdel.Invalid, ""},
		{399, "", disdel.Invalid, ""},
		{400, "", disdel.Invalid, ""},
		{401, "", disdel.Denied, ""},
		{403, "", disdel.Denied, ""},
		{404, "", disdel.NotFound, ""},
		{409, "", disdel.Conflict, ""},
		{409, "Concurrent modification to resource detected", disdel.Unavailable, ""},
		{413, "", disdel.OverLimit, ""},
		{429, "in flight", disdel.Unavailable, disdel.CodeQuotaConcurrent},
		{429, "requests in the last minute", disdel.Unavailable, disdel.CodeQuotaMinute},
		{400, "exceeds allowed threshold of 512 MB", disdel.OverLimit, ""},
		{400, "The specified runtime is not supported", disdel.Invalid, ""},
		{499, "", disdel.Invalid, ""},
		{500, "", disdel.Unavailable, ""},
		{503, "", disdel.Unavailable, ""},
	} {
		res := &http.Response{StatusCode: c.status, Body: io.NopCloser(strings.NewReader(`{"error":"` + c.text + `"}`))}
		got := disdel.AsError(e.wrap(t.Context(), errors.New("failed"), res, "call", "it"))
		redirected := errors.Is(got.Err, errRedirected)
		if got.Kind != c.kind || got.Code != c.code || redirected != (c.status >= 300 && c.status < 400) {
			t.Errorf("%d %q: %v with code %q, %v", c.status, c.text, got.Kind, got.Code, got)
		}
		if !redirected && c.text != "" && got.Err.Error() != c.text {
			t.Errorf("%d: the cause is %q, want %q", c.status, got.Err, c.text)
		}
	}
	if got := e.wrap(t.Context(), errors.New("x"), nil, "call", ""); disdel.AsError(got).Code != disdel.CodeUnreachable {
		t.Errorf("no answer: %v", got)
	}
}

// Memory is an unlikely cause of a silent death below six tenths of the limit. The higher of the measured peak and the
// estimate counts.
func TestMemoryIsSuspectedFromSixTenths(t *testing.T) {
	for _, c := range []struct {
		peak, likely disdel.Bytes
		suspected    bool
	}{
		{0, 0, true},
		{0, 10 * disdel.MB, true},
		{1, 0, false},
		{60*disdel.MB - 1, 0, false},
		{60 * disdel.MB, 0, true},
		{disdel.MB, 60*disdel.MB - 1, false},
		{disdel.MB, 60 * disdel.MB, true},
	} {
		of := inv
		of.Limits.Memory, of.Likely = 100*disdel.MB, c.likely
		a := Classify(of, Record{Status: statusDeveloper, Result: errText(runDied), Peak: c.peak}, nil)
		if a.Suspected != c.suspected || strings.Contains(a.Failure.Msg, "possibly") != c.suspected {
			t.Errorf("%+v: suspected %t, %v", c, a.Suspected, a.Failure)
		}
	}
}

// The failure of an action that has no share of an accelerator names none.
func TestNoShareOfAnAcceleratorIsNamed(t *testing.T) {
	for share, want := range map[disdel.Bytes]string{
		0: "an accelerator's memory was too little for it: full", 1: "its share of an accelerator's memory, 1 B, was too",
	} {
		c := &classifier{inv: disdel.Invocation{Limits: disdel.Limits{Device: share}}}
		if c.outOfDeviceMemory(&disdel.Error{Msg: "full"}); !strings.HasPrefix(c.a.Failure.Msg, want) {
			t.Errorf("share of %v: %q, want %q", share, c.a.Failure.Msg, want)
		}
	}
}

// A repeated log line has at most 80 characters. A longer one ends with dots. Blank lines are skipped.
func TestARepeatedLogLineIsBounded(t *testing.T) {
	for _, c := range []struct{ printed, want string }{
		{strings.Repeat("ü", 80), strings.Repeat("ü", 80)},
		{strings.Repeat("ü", 80+1), strings.Repeat("ü", 80) + "..."},
		{"x", "x"},
		{"", "first"},
	} {
		cl := classifier{rec: Record{Logs: []string{"t stderr: first", "t stdout:  " + c.printed + " "}}}
		if got := cl.lastLogLine(); got != c.want {
			t.Errorf("%q is repeated as %q", c.printed, got)
		}
	}
}

// As many heartbeats as are kept are kept unchanged. Of more, the first, the last and evenly spaced ones stay.
func TestHeartbeatsAreThinnedEvenly(t *testing.T) {
	for _, n := range []int{beatsKept - 1, beatsKept, beatsKept + 1, 2*beatsKept - 1, 1000} {
		beats := make([]disdel.Beat, n)
		for i := range beats {
			beats[i].Batch = i
		}
		got := thinHeartbeats(beats)
		if len(got) != min(n, beatsKept) || got[0].Batch != 0 || got[len(got)-1].Batch != n-1 {
			t.Errorf("%d of %d, from %d to %d", len(got), n, got[0].Batch, got[len(got)-1].Batch)
		}
		least, most := n, 0
		for i := range len(got) - 1 {
			gap := got[i+1].Batch - got[i].Batch
			least, most = min(least, gap), max(most, gap)
		}
		if most-least > 1 || least < 1 {
			t.Errorf("of %d: gaps from %d to %d", n, least, most)
		}
	}
}

// The heartbeats of an activation are those since it was invoked, to the millisecond.
func TestHeartbeatsCountFromTheInvocation(t *testing.T) {
	e := &Executor{cfg: Config{Heartbeats: func(context.Context, disdel.Invocation) []disdel.Progress {
		return []disdel.Progress{{UnixMs: 999}, {UnixMs: 1000}, {UnixMs: 1001}}
	}}}
	beats := e.heartbeats(t.Context(), inv, time.UnixMilli(1000))
	if len(beats) != 2 || beats[0].At != 0 || beats[1].At != disdel.Millis(time.Millisecond) {
		t.Errorf("%+v", beats)
	}
}

// A record's annotations are read in the form that OpenWhisk's client gives them. Only a platform that says that it
// did not kill for memory excludes memory. An annotation of another type says nothing.
func TestTheAnnotationsOfARecordAreRead(t *testing.T) {
	for _, c := range []struct {
		key   string
		value any
		want  Record
	}{
		{"timeout", true, Record{TimedOut: true}},
		{"timeout", "true", Record{}},
		{"initTime", json.Number("1500"), Record{Cold: true, Init: 1500 * time.Millisecond}},
		{"initTime", 20.0, Record{Cold: true, Init: 20 * time.Millisecond}},
		{"waitTime", 30.0, Record{Queued: 30 * time.Millisecond}},
		{"waitTime", "30", Record{}},
		{"memoryKill", false, Record{NotMemory: true}},
		{"memoryKill", true, Record{}},
		{"memoryKill", "false", Record{}},
		{"peakMemory", json.Number("1048576"), Record{Peak: disdel.MB}},
	} {
		a := &whisk.Activation{Start: 1000, End: 3000, Duration: 2000}
		a.Annotations = whisk.KeyValueArr{{Key: c.key, Value: c.value}}
		got, want := toRecord(a), c.want
		want.Start, want.End, want.Duration = time.UnixMilli(1000).UTC(), time.UnixMilli(3000).UTC(), 2*time.Second
		if want.Result = got.Result; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s %v: %+v, want %+v", c.key, c.value, got, want)
		}
	}
}

// The error of a result is its text, or its JSON where it is none. A result without an error, or that is no JSON, has
// an empty one.
func TestTheErrorOfAResultIsItsText(t *testing.T) {
	for result, want := range map[string]string{
		`{"error":"oh"}`: "oh", `{"error":[1,2]}`: "[1,2]", `{"error":null}`: "", `{}`: "", `7`: "", `{`: "", ``: "",
		`{"error":""}`: "",
	} {
		if got := errorText(json.RawMessage(result)); got != want {
			t.Errorf("%s: %q, want %q", result, got, want)
		}
	}
}

// The usual pause is spread by a random part from nothing up to the most, both included.
func TestTheUsualJitterIsWithinItsBounds(t *testing.T) {
	e, err := New(Config{APIHost: "http://openwhisk.test", AuthKey: "user:key", Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[time.Duration]bool{}
	for range 200 {
		drawn[e.cfg.Jitter(1)] = true
	}
	if e.cfg.Jitter(0) != 0 || len(drawn) != 2 || !drawn[0] || !drawn[1] {
		t.Errorf("up to 0: %v, up to 1 ns: %v", e.cfg.Jitter(0), drawn)
	}
}

// An action is read with all that the platform says of it. What it leaves out is empty.
func TestADeployedActionIsReadWhole(t *testing.T) {
	const start = `{"name":"train","version":"0.0.3","updated":2000,"annotations":[{"key":"a","value":"b"}]`
	bare := DeployedAction{
		Name: "train", Version: "0.0.3", Updated: time.UnixMilli(2000), Annotations: map[string]any{"a": "b"},
	}
	full := bare
	full.Kind, full.Image, full.Main, full.Code = "blackbox", "img", "train", "text"
	full.Memory, full.Timeout, full.Logs = 192*disdel.MB, 90*time.Second, 3*disdel.MB
	partly := bare
	partly.Kind = "disdel:1"
	for body, want := range map[string]DeployedAction{
		start + `}`: bare, start + `,"exec":{"kind":"disdel:1"},"limits":{}}`: partly,
		start + `,"exec":{"kind":"blackbox","image":"img","main":"train","code":"text"},` +
			`"limits":{"memory":192,"timeout":90000,"logs":3}}`: full,
	} {
		e, _ := scripted(t, answerOf{200, body})
		got, err := e.deployed(t.Context(), "pkg", "train")
		if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: %+v, %v, want %+v", body, got, err, want)
		}
	}
}

// Rounds of messages count from 1, as on the screen. Workers have their own numbers.
func TestActivationsAreNamedAsOnTheScreen(t *testing.T) {
	for task, want := range map[disdel.Task]string{
		disdel.TaskTrain: "train action of worker 2 in round 4", disdel.TaskInfer: "infer action 3",
		disdel.TaskAggregate: "aggregate action 2 of level 5 in round 4", disdel.TaskProbe: "a probe of p/a",
		disdel.TaskEvaluate: "evaluate action in round 4",
	} {
		if got := describe(&disdel.Invocation{Task: task, Round: 3, Member: 2, Level: 5, Action: "p/a"}); got != want {
			t.Errorf("%s: %q, want %q", task, got, want)
		}
	}
}
