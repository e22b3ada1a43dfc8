package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/disdel/disdel"
)

// cluster is an OpenWhisk without a network, in a test's own time. Activations are ended by the test.
type cluster struct {
	mu       sync.Mutex
	down     bool
	gone     bool                 // it has no actions
	hold     bool                 // it answers nothing, and keeps the connection
	accepted map[string]time.Time // activations by id
	ended    map[string]time.Time // records
	serve    func(n int, probe bool) bool
	asked    int
	refuse   func() (status int, text string)
	perMin   map[int64]int
}

func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	hold := c.hold
	c.mu.Unlock()
	if hold {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	c.asked++
	status, body := c.answer(r)
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader([]byte(body))), Request: r,
	}, nil
}

const missing = `{"error":"The requested resource does not exist.","code":"x"}`

func (c *cluster) answer(r *http.Request) (int, string) {
	if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/activations/") {
		id := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		if at, ok := c.ended[id]; ok && !at.After(time.Now()) {
			return 200, fmt.Sprintf(`{"activationId":%q,"start":%d,"end":%d,"duration":1,"logs":[],"annotations":[],`+
				`"response":{"status":"success","success":true,"result":{}}}`,
				id, at.UnixMilli(), at.UnixMilli())
		}
		return 404, missing
	}
	if r.Method == http.MethodPost {
		if c.perMin != nil {
			c.perMin[time.Now().Unix()/60]++
		}
		if c.refuse != nil {
			if status, text := c.refuse(); status != 0 {
				return status, fmt.Sprintf(`{"error":%q}`, text)
			}
		}
		if c.gone {
			return 404, missing
		}
		body, _ := io.ReadAll(r.Body)
		n := len(c.accepted)
		id := fmt.Sprintf("%032x", n)
		c.accepted[id] = time.Now()
		if c.serve != nil && c.serve(n, strings.Contains(string(body), `"probe":true`)) {
			c.ended[id] = time.Now().Add(time.Second)
		}
		return 202, fmt.Sprintf(`{"activationId":%q}`, id)
	}
	return 200, "{}"
}

func (c *cluster) set(change func(c *cluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

// onCluster runs a test in a time of its own.
func onCluster(t *testing.T, cfg Config, f func(t *testing.T, e *Executor, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{accepted: map[string]time.Time{}, ended: map[string]time.Time{}}
		cfg.APIHost, cfg.AuthKey, cfg.Logger = "http://openwhisk.test:3233", "user:key", quiet()
		e, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		e.transport = c
		f(t, e, c)
		time.Sleep(time.Second) // places are given back a little later
		synctest.Wait()
	})
}

func invoked(t *testing.T, e *Executor) disdel.ActivationID {
	t.Helper()
	id, err := e.Invoke(t.Context(), inv)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// An activation is given up after its longest wait, not at its end, and its probe is sent when it is due.
func TestTheLongestWaitBelongsToTheWait(t *testing.T) {
	onCluster(t, Config{MaxQueue: time.Hour}, func(t *testing.T, e *Executor, c *cluster) {
		queued := inv
		queued.Queue = disdel.Millis(30 * time.Minute)
		w := waiting{e: e, inv: queued, id: "lost", begun: time.Now()}
		due := time.Duration(queued.Queue) + time.Duration(queued.Limits.Timeout) + recordWait
		for _, step := range []struct {
			at     time.Duration
			probed bool
			given  bool
		}{{due - 1, false, false}, {due, true, false}, {90 * time.Minute, true, false}, {90*time.Minute + 1, true, true}} {
			time.Sleep(time.Until(w.begun.Add(step.at)))
			if _, given := w.giveUp(t.Context()); given != step.given || (len(c.accepted) > 0) != step.probed {
				t.Errorf("after %v: given up %t, %d probes", step.at, given, len(c.accepted))
			}
		}
	})
}

// An activation that waits behind others', whoever they are, is waited for, and is not lost.
func TestAnActivationBehindOthersIsNotLost(t *testing.T) {
	onCluster(t, Config{}, func(t *testing.T, e *Executor, c *cluster) {
		id := invoked(t, e)
		time.AfterFunc(time.Hour, func() { // the pool is free again: both are served
			c.set(func(c *cluster) {
				for id := range c.accepted {
					c.ended[id] = time.Now()
				}
			})
		})
		begun := time.Now()
		a, err := e.Wait(t.Context(), inv, id)
		if err != nil || a.Outcome != disdel.OutcomeSuccess || time.Since(begun) > time.Hour+time.Second {
			t.Fatalf("%v after %v, %v", a.Outcome, time.Since(begun), err)
		}
		if n := len(c.accepted); n != 6 { // after 0, 5, 15, 35 and 55 minutes
			t.Errorf("%d activations: it and five probes are due", n)
		}
	})
}

// One that a later request to the same action has overtaken is lost, soon after it must have ended.
func TestAnActivationThatIsOvertakenIsLost(t *testing.T) {
	onCluster(t, Config{}, func(t *testing.T, e *Executor, c *cluster) {
		c.serve = func(_ int, probe bool) bool { return probe }
		begun := time.Now()
		a, err := e.Wait(t.Context(), inv, invoked(t, e))
		if err != nil || a.Outcome != disdel.OutcomeLost || a.Failure.Kind != disdel.Lost {
			t.Fatalf("%+v, %v", a, err)
		}
		if took := time.Since(begun); took < 2*time.Minute || took > 5*time.Minute {
			t.Errorf("lost after %v, with a timeout of %v", took, inv.Limits.Timeout)
		}
	})
}

// OpenWhisk may lose the request that finds out about a lost activation, too: another one follows.
func TestAProbeThatIsLostIsSentAgain(t *testing.T) {
	onCluster(t, Config{}, func(t *testing.T, e *Executor, c *cluster) {
		c.serve = func(n int, probe bool) bool { return probe && n > 1 }
		begun := time.Now()
		a, err := e.Wait(t.Context(), inv, invoked(t, e))
		if err != nil || a.Outcome != disdel.OutcomeLost || a.Failure.Code == disdel.CodeNeverServed {
			t.Fatalf("%+v, %v", a, err)
		}
		if took := time.Since(begun); took > 15*time.Minute {
			t.Errorf("lost after %v", took)
		}
	})
}

// One of which nothing is ever served ends, and the hint names the pool.
func TestAnActivationThatIsNeverServedEnds(t *testing.T) {
	onCluster(t, Config{MaxQueue: time.Hour}, func(t *testing.T, e *Executor, _ *cluster) {
		a, err := e.Wait(t.Context(), inv, invoked(t, e))
		if err != nil || a.Outcome != disdel.OutcomeLost || a.Failure.Code != disdel.CodeNeverServed ||
			!strings.Contains(a.Failure.Hint, "--pool-memory") {
			t.Fatalf("%+v, %v", a, err)
		}
	})
}

// The time that an activation may queue before it is given up adds to the time that the job has planned for its queue.
func TestAPlannedQueueIsWaitedForToo(t *testing.T) {
	queued := inv
	queued.Queue = disdel.Millis(30 * time.Minute)
	onCluster(t, Config{MaxQueue: time.Hour}, func(t *testing.T, e *Executor, _ *cluster) {
		id := invoked(t, e)
		begun := time.Now()
		a, err := e.Wait(t.Context(), queued, id)
		if err != nil || a.Outcome != disdel.OutcomeLost || a.Failure.Code != disdel.CodeNeverServed {
			t.Fatalf("%+v, %v", a, err)
		}
		if took := time.Since(begun); took < 90*time.Minute || took > 2*time.Hour {
			t.Errorf("given up after %v, not after 90 minutes or a little more", took)
		}
	})
}

// One that sends heartbeats is at work, whatever the record's delay.
func TestAnActivationWithHeartbeatsIsAtWork(t *testing.T) {
	beats := func(context.Context, disdel.Invocation) []disdel.Progress {
		return []disdel.Progress{{Task: disdel.TaskTrain, UnixMs: time.Now().UnixMilli()}}
	}
	onCluster(t, Config{Heartbeats: beats}, func(t *testing.T, e *Executor, c *cluster) {
		c.serve = func(_ int, probe bool) bool { return probe }
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		if a, err := e.Wait(ctx, inv, invoked(t, e)); disdel.KindOf(err) != disdel.Canceled {
			t.Fatalf("%v, %v", a.Outcome, err)
		}
		if n := len(c.accepted); n != 1 {
			t.Errorf("%d activations", n)
		}
	})
}

// Only a new heartbeat of this activation shows that it runs: not one of an earlier attempt, nor one that was seen
// before. Heartbeats are read now and then.
func TestOnlyNewHeartbeatsCount(t *testing.T) {
	begun, reads := time.Unix(1000, 0), 0
	var sent []int64 // seconds after begun
	e := &Executor{}
	e.cfg.Heartbeats = func(context.Context, disdel.Invocation) (out []disdel.Progress) {
		reads++
		for _, s := range sent {
			out = append(out, disdel.Progress{UnixMs: begun.Add(time.Duration(s) * time.Second).UnixMilli()})
		}
		return out
	}
	w := &waiting{e: e, inv: inv, begun: begun}
	now := begun
	for _, c := range []struct {
		after time.Duration
		sent  []int64
		runs  bool
		reads int
	}{
		{beatsEvery, []int64{-5}, false, 1},
		{beatsEvery, []int64{-5, 3}, true, 2},
		{beatsEvery / 2, []int64{-5, 4}, true, 2},
		{freshBeat, []int64{-5, 3}, false, 3},
		{beatsEvery, []int64{3, 5}, true, 4},
	} {
		now, sent = now.Add(c.after), c.sent
		if got := w.sendsHeartbeats(t.Context(), now); got != c.runs || reads != c.reads {
			t.Errorf("%v after it began, with %v: runs %v, read %d times; want %v, %d", now.Sub(begun), sent, got, reads,
				c.runs, c.reads)
		}
	}
}

// What was under way when the platform was started again without it is lost within seconds: with the actions that it
// has, and without.
func TestWhatARestartLostIsLostWithinSeconds(t *testing.T) {
	for _, gone := range []bool{false, true} {
		onCluster(t, Config{}, func(t *testing.T, e *Executor, c *cluster) {
			c.serve = func(_ int, probe bool) bool { return probe }
			id := invoked(t, e)
			time.AfterFunc(10*time.Second, func() { c.set(func(c *cluster) { c.down = true }) })
			time.AfterFunc(14*time.Second, func() {
				c.set(func(c *cluster) { c.down, c.gone = false, gone; clear(c.ended) })
			})
			begun := time.Now()
			a, err := e.Wait(t.Context(), inv, id)
			if took := time.Since(begun); err != nil || a.Outcome != disdel.OutcomeLost || took > 25*time.Second {
				t.Fatalf("gone %v: %v after %v, %v", gone, a.Outcome, took, err)
			}
		})
	}
}

// A platform that does not answer is known within two seconds, whether it refuses or is silent, and given up after the
// executor's patience, by all calls at the same time.
func TestAnOutageIsKnownAndBounded(t *testing.T) {
	for why, change := range map[string]func(c *cluster){
		"connection refused": func(c *cluster) { c.down = true },
		"no answer":          func(c *cluster) { c.hold = true },
	} {
		onCluster(t, Config{Patience: 2 * time.Minute}, func(t *testing.T, e *Executor, c *cluster) {
			id := invoked(t, e)
			c.set(change)
			begun := time.Now()
			time.AfterFunc(2500*time.Millisecond, func() {
				if o, down := e.Outage(); !down || o.Why != why || o.Until.Sub(o.Since) != 2*time.Minute ||
					o.Host != "http://openwhisk.test:3233" {
					t.Errorf("%s: %+v, %v", why, o, down)
				}
			})
			_, err := e.Wait(t.Context(), inv, id)
			took := time.Since(begun)
			if disdel.KindOf(err) != disdel.Unavailable || disdel.AsError(err).Code != disdel.CodeUnreachable ||
				!strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v", why, err)
			}
			if took < 2*time.Minute || took > 2*time.Minute+callTimeout+5*time.Second {
				t.Errorf("%s: given up after %v", why, took)
			}
		})
	}
}

// The first call of a command does not wait long for an address that may be wrong.
func TestTheFirstCallIsImpatient(t *testing.T) {
	onCluster(t, Config{}, func(t *testing.T, e *Executor, c *cluster) {
		c.down = true
		begun := time.Now()
		_, err := e.Limits(t.Context())
		if took := time.Since(begun); disdel.KindOf(err) != disdel.Unavailable || took < 3*time.Second ||
			took > 5*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// With as many places as the namespace has, and a platform that counts what it refuses, a plan that fills them all is
// not refused once, and does not use up the minute.
func TestInvocationsKeepWithinTheQuotas(t *testing.T) {
	onCluster(t, Config{}, func(t *testing.T, e *Executor, c *cluster) {
		const concurrent, perMinute, all = 30, 60, 58
		c.perMin = map[int64]int{}
		c.serve = func(int, bool) bool { return true }
		refused := 0
		c.refuse = func() (int, string) {
			flying := 0
			for id := range c.accepted { // a place is free only a little after the record is there
				if end, ok := c.ended[id]; !ok || end.Add(200*time.Millisecond).After(time.Now()) {
					flying++
				}
			}
			switch {
			case c.perMin[time.Now().Unix()/60] > perMinute:
				refused++
				return 429, "Too many requests in the last minute (count: 61, allowed: 60)."
			case flying >= concurrent:
				refused++
				return 429, "Too many concurrent requests in flight (count: 30, allowed: 30)."
			}
			return 0, ""
		}
		e.quotas.setQuotas(disdel.PlatformLimits{PerMinute: perMinute, Concurrent: concurrent})
		begun := time.Now()
		var done sync.WaitGroup
		for range all {
			done.Go(func() {
				id, err := e.Invoke(t.Context(), inv)
				if err != nil {
					t.Error(err)
					return
				}
				if a, err := e.Wait(t.Context(), inv, id); err != nil || a.Outcome != disdel.OutcomeSuccess {
					t.Errorf("%v, %v", a.Outcome, err)
				}
			})
		}
		done.Wait()
		if took := time.Since(begun); refused > 0 || took > 5*time.Second {
			t.Errorf("%d refusals, %v", refused, took)
		}
		for range 4 { // the minute has room for two
			if _, err := e.Invoke(t.Context(), inv); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begun); refused > 0 || took < 30*time.Second || took > 62*time.Second {
			t.Errorf("%d refusals, %v", refused, took)
		}
	})
}

// Neither a key nor a password is in any error, whatever goes wrong, and the key goes nowhere but to the address that
// was named.
func TestNoSecretIsToldOrSentElsewhere(t *testing.T) {
	const canary = "CANARY"
	for _, host := range []string{"http://u:" + canary + "@127.0.0.1:1", "http://" + canary + "@h", "http://u:" + canary +
		"%zz@h", "u:" + canary + "@h"} {
		_, err := New(Config{APIHost: host, AuthKey: "user:" + canary, Logger: quiet()})
		text, _ := json.Marshal(err)
		if disdel.KindOf(err) != disdel.Invalid || strings.Contains(err.Error()+string(text), canary) {
			t.Errorf("%s: %v", host, err)
		}
	}
	var sent []string
	elsewhere := serving(t, func(w http.ResponseWriter,
		r *http.Request,
	) {
		sent = append(sent, r.Header.Get("Authorization"))
	})
	for _, path := range []string{"", "/api/v1/x"} {
		here := serving(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere+path, http.StatusTemporaryRedirect)
		})
		e, err := New(Config{APIHost: here, AuthKey: "user:" + canary, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		_, limits := e.Limits(t.Context())
		_, invoke := e.Invoke(t.Context(), inv)
		for _, err := range []error{limits, invoke, e.Remove(t.Context(), "p")} {
			if disdel.KindOf(err) != disdel.Invalid || strings.Contains(err.Error(), canary) ||
				!strings.Contains(err.Error(), "redirects") {
				t.Errorf("%v", err)
			}
		}
		e.Close()
	}
	if len(sent) > 0 {
		t.Errorf("another host was asked: %q", sent)
	}
	e, err := New(Config{APIHost: "http://127.0.0.1:1", AuthKey: "user:" + canary, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Limits(t.Context()); err == nil || strings.Contains(err.Error()+disdel.AsError(err).Hint, canary) {
		t.Errorf("%v", err)
	}
}
