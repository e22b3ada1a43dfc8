package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/openwhisk-client-go/whisk"

	"github.com/disdel/disdel"
)

func errText(s string) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"error":%q}`, s)) }

func panicError(msg string) json.RawMessage {
	data, _ := json.Marshal(map[string]any{"error": &disdel.Error{
		Kind: disdel.Internal, Code: disdel.CodePanicked,
		Msg: msg,
	}})
	return data
}

func ownError(k disdel.Kind, msg string) json.RawMessage {
	data, _ := json.Marshal(map[string]any{"error": &disdel.Error{Kind: k, Op: "train", Msg: msg}})
	return data
}

const (
	runDied = "The action did not produce a valid response and exited unexpectedly."
	inner   = "whisk internal error"
)

// resident is heartbeats, a second apart, with so many megabytes.
func resident(mb ...int) []disdel.Beat {
	out := make([]disdel.Beat, len(mb))
	for i, m := range mb {
		out[i] = disdel.Beat{At: disdel.Millis(time.Duration(i+1) * time.Second), Resident: disdel.Bytes(m) * disdel.MB}
	}
	return out
}

// The decision table of the Failure Manager, steps 5 to 10: what a record, or its absence, says with OpenWhisk's own
// strings. The limit is 128 MB and 1 minute. Steps 1 to 4 are TestRefusedByTheServer's.
func TestClassify(t *testing.T) {
	for _, c := range []struct {
		name  string
		rec   Record
		beats []disdel.Beat
		want  disdel.Outcome
		kind  disdel.Kind
		says  string // in the failure
		next  string // in the hint
		rests string // in the evidence
	}{
		// 5: out of time, which a hard signal tells.
		{
			"timeout by annotation",
			Record{Status: statusDeveloper, TimedOut: true, Result: errText("x")},
			nil,
			disdel.OutcomeTimeout, disdel.Timeout, "timeout of 1m0s", "resources.timeout", "ended it after its timeout",
		},
		{
			"timeout by text",
			Record{
				Status: statusApplication,
				Result: errText("The action exceeded its time limits of 60000 milliseconds."),
			},
			nil, disdel.OutcomeTimeout,
			disdel.Timeout, "did not end within", "resources.timeout", "timeout of 1m0s",
		},
		{
			"timeout of /init",
			Record{
				Status: statusDeveloper, TimedOut: true,
				Result: errText("The action exceeded its time limits of 60000 milliseconds during initialization."),
			},
			nil,
			disdel.OutcomeStartFailure, disdel.Unavailable, "its process did not start: it took no request within 1m0s, or died",
			"port 8080", "during initialization",
		},
		{
			"timeout with progress",
			Record{Status: statusDeveloper, TimedOut: true, Result: errText("x")},
			[]disdel.Beat{{At: disdel.Millis(time.Minute), Epoch: 1, Batch: 10, Batches: 60}},
			disdel.OutcomeTimeout, disdel.Timeout, "did not end", "resources.timeout", "10 of 60 batches were trained",
		},
		{
			"timeout, the action's own",
			Record{Status: statusApplication, Result: ownError(disdel.Timeout, "the deadline")},
			nil, disdel.OutcomeTimeout, disdel.Timeout, "did not end", "resources.timeout", "the deadline",
		},
		// 6: memory, certain.
		{
			"memory, on Docker",
			Record{
				Status: statusDeveloper,
				Result: errText("The action exhausted its memory and was aborted."), Peak: 127 * disdel.MB,
			},
			nil,
			disdel.OutcomeOutOfMemory, disdel.OOM, "limit of 128 MB (estimate 90.0 MB, measured peak 127 MB)",
			"resources.memory", "exhausted its memory",
		},
		{
			"memory, the action's own watch",
			Record{Status: statusApplication, Result: ownError(disdel.OOM, "the action used 125 MB of its 128 MB")},
			resident(100, 140), disdel.OutcomeOutOfMemory, disdel.OOM, "measured peak 140 MB", "resources.memory",
			"used 125 MB of its 128 MB",
		},
		{
			"memory, the engine's refusal",
			Record{
				Status: statusApplication,
				Result: json.RawMessage(`{"error":{"kind":"overLimit","op":"make engine","message":"network n with a batch of 8 ` +
					`needs 174 MB, and the action has 128 MB"}}`),
			},
			nil, disdel.OutcomeOutOfMemory, disdel.OOM, "memory limit of 128 MB", "resources.memory", "needs 174 MB",
		},
		// 7: killed without words.
		{
			"memory, by the platform's peak",
			Record{Status: statusDeveloper, Result: errText(runDied), Peak: 126 * disdel.MB},
			nil, disdel.OutcomeOutOfMemory, disdel.OOM, "memory limit of 128 MB", "resources.memory", "98 % of its limit",
		},
		{
			"memory, on Kubernetes by the last heartbeat",
			Record{Status: statusDeveloper, Result: errText(runDied)},
			resident(60, 118), disdel.OutcomeOutOfMemory, disdel.OOM, "memory limit of 128 MB", "resources.memory",
			"at its last heartbeat it held 118 MB, 92 % of its limit: out of memory is probable",
		},
		{
			"memory, in /init",
			Record{
				Status: statusDeveloper,
				Result: errText("The action did not initialize and exited unexpectedly."),
			},
			resident(118), disdel.OutcomeOutOfMemory,
			disdel.OOM, "memory limit", "resources.memory", "92 %",
		},
		{
			"memory, a proxy's child",
			Record{Status: statusDeveloper, Result: errText("command exited")},
			resident(118),
			disdel.OutcomeOutOfMemory, disdel.OOM, "memory limit", "resources.memory", "92 %",
		},
		{
			"memory, a skeleton's child",
			Record{Status: statusDeveloper, Result: errText("The action did not return a dictionary or array.")},
			resident(118),
			disdel.OutcomeOutOfMemory, disdel.OOM, "memory limit", "resources.memory", "92 %",
		},
		{
			"memory, an allocation refused",
			Record{
				Status: statusDeveloper, Result: errText(runDied),
				Logs: []string{"2026-01-01T00:00:00.000000000Z    stderr: runtime: out of memory: cannot allocate 67108864-byte " +
					"block"},
			},
			resident(60), disdel.OutcomeOutOfMemory, disdel.OOM, "memory limit", "resources.memory",
			"cannot allocate 67108864-byte block",
		},
		{
			"killed below its limit",
			Record{Status: statusDeveloper, Result: errText(runDied), Peak: 60 * disdel.MB},
			nil,
			disdel.OutcomeDeveloperError, disdel.Crashed,
			"train action of worker 1 in round 2: its process was killed or exited, most likely not for memory: its peak was " +
				"60.0 MB of 128 MB", "submit", "memory was most likely not the cause",
		},
		{
			"killed below its limit, by the last heartbeat",
			Record{Status: statusDeveloper, Result: errText(runDied)},
			resident(60, 114), disdel.OutcomeDeveloperError, disdel.Crashed,
			"possibly out of memory: its peak was 114 MB of 128 MB", "submit", "114 MB of 128 MB resident, 2s after",
		},
		{
			"killed near its limit, the platform knows",
			Record{Status: statusDeveloper, Result: errText(runDied), Peak: 126 * disdel.MB, NotMemory: true},
			nil,
			disdel.OutcomeDeveloperError, disdel.Crashed, "not for memory", "submit", "not the cause",
		},
		{
			"killed, nothing known",
			Record{Status: statusDeveloper, Result: errText("The action did not initialize and exited unexpectedly.")},
			nil,
			disdel.OutcomeDeveloperError, disdel.Crashed, "killed or exited before it took a request, possibly out of memory",
			"submit", "did not initialize",
		},
		{
			"a panic in the log",
			Record{
				Status: statusDeveloper, Result: errText(runDied),
				Logs: []string{"2026-01-01T00:00:00.000000000Z    stderr: panic: index out of range"},
			},
			resident(60),
			disdel.OutcomeDeveloperError, disdel.Crashed, "ended itself: panic: index out of range", "log", "panic: index",
		},
		{
			"a panic that the runtime caught",
			Record{Status: statusApplication, Result: panicError("the action panicked: nil")},
			nil, disdel.OutcomeDeveloperError, disdel.Internal, "panicked: nil", "log", "panicked",
		},
		{
			"no JSON",
			Record{
				Status: statusDeveloper,
				Result: errText("The action did not produce a valid JSON or JSON Array response: hello"),
			},
			resident(126),
			disdel.OutcomeDeveloperError, disdel.Crashed, "hello", "submit", "hello",
		},
		// 8: the platform's own failures, and those of images and containers.
		{
			"no image",
			Record{Status: statusDeveloper, Result: errText("Failed to pull container image 'x'.")},
			nil,
			disdel.OutcomeStartFailure, disdel.Unavailable, "its image could not be pulled", "--image", "'x'",
		},
		{
			"no runtime in the image",
			Record{Status: statusDeveloper, Result: errText("executable file not found in image x")},
			nil, disdel.OutcomeStartFailure, disdel.Invalid, "no action runtime", "--image", "image x",
		},
		{
			"no resources",
			Record{Status: inner, Result: errText("Failed to provision resources to run the action.")},
			nil,
			disdel.OutcomeStartFailure, disdel.Unavailable, "could not be started", "submit", "provision",
		},
		{
			"pod not ready",
			Record{Status: inner, Result: errText("Failed to run container with image 'x'.")},
			nil,
			disdel.OutcomeStartFailure, disdel.Unavailable, "not ready in time", "timeouts.run", "'x'",
		},
		{
			"other limits on the invoker, 2022",
			Record{Status: inner, Result: errText("Action version is not compatible and cannot be invoked.")},
			nil,
			disdel.OutcomeStartFailure, disdel.OverLimit, "smaller than the controller's", "controller and invoker",
			"compatible",
		},
		{
			"other limits on the invoker",
			Record{Status: statusApplication, Result: errText("memory size 1024 MB exceeds allowed threshold of 512 MB")},
			nil,
			disdel.OutcomeStartFailure, disdel.OverLimit, "smaller than the controller's", "controller and invoker", "512 MB",
		},
		{
			"queued too long",
			Record{Status: inner, Result: errText("Activation processing is not initiated for 60000 ms")},
			nil, disdel.OutcomeInternalError, disdel.Unavailable, "queue", "later", "60000 ms",
		},
		{
			"too old",
			Record{
				Status: inner,
				Result: errText("The activation has not been processed: too old activation is arrived."),
			},
			nil,
			disdel.OutcomeInternalError, disdel.Unavailable, "queue", "later", "too old",
		},
		{
			"throttled in the queue",
			Record{Status: statusApplication, Result: errText("Too many concurrent requests in flight.")},
			nil,
			disdel.OutcomeThrottled, disdel.Unavailable, "quota", "fewer workers", "in flight",
		},
		{
			"internal",
			Record{Status: inner, Result: errText("oh")},
			nil, disdel.OutcomeInternalError, disdel.Unavailable, "oh",
			"admin", "whisk internal error: oh",
		},
		// 9: the action's own errors, and whatever else an image may answer.
		{
			"diverged",
			Record{Status: statusApplication, Result: ownError(disdel.Diverged, "the loss is NaN")},
			nil,
			disdel.OutcomeDiverged, disdel.Diverged, "the loss is NaN", "learningRate", "NaN",
		},
		{
			"damaged",
			Record{Status: statusApplication, Result: ownError(disdel.Corrupt, "checksum")},
			nil,
			disdel.OutcomeCorrupt, disdel.Corrupt, "checksum", "data set", "checksum",
		},
		{
			"cancelled",
			Record{Status: statusApplication, Result: ownError(disdel.Canceled, "why")},
			nil,
			disdel.OutcomeCanceled, disdel.Canceled, "why", "", "canceled",
		},
		{
			"store down",
			Record{Status: statusApplication, Result: ownError(disdel.Unavailable, "why")},
			nil,
			disdel.OutcomeApplicationError, disdel.Unavailable, "why", "reach the store", "why",
		},
		{"result too large", Record{
			Status: statusApplication,
			Result: errText("The action produced a response that exceeded the allowed length: 1048586 > 1048576 bytes. The " +
				"truncated response was: {"),
		}, nil, disdel.OutcomeTooLarge, disdel.OverLimit, "larger than OpenWhisk takes", "version", "1048586"},
		{
			"a stranger's error",
			Record{Status: statusApplication, Result: errText("oh")},
			nil, disdel.OutcomeApplicationError,
			disdel.Internal, "oh", "log", "oh",
		},
		{
			"an error that is a list",
			Record{Status: statusApplication, Result: json.RawMessage(`{"error":[1,2]}`)},
			nil,
			disdel.OutcomeApplicationError, disdel.Internal, "[1,2]", "log", "[1,2]",
		},
		{
			"an error that is a number",
			Record{Status: statusApplication, Result: json.RawMessage(`{"error":7}`)},
			nil,
			disdel.OutcomeApplicationError, disdel.Internal, "7", "log", "7",
		},
		{
			"an error that is another object",
			Record{Status: statusDeveloper, Result: json.RawMessage(`{"error":{"kind":5}}`)},
			nil, disdel.OutcomeDeveloperError, disdel.Crashed, `{"kind":5}`, "submit", "5",
		},
		{"no result", Record{Status: statusDeveloper}, nil, disdel.OutcomeDeveloperError, disdel.Crashed, "", "submit", ""},
	} {
		a := Classify(inv, c.rec, c.beats)
		if a.Outcome != c.want || a.Failure == nil {
			t.Errorf("%s: %v (%v), want %v", c.name, a.Outcome, a.Failure, c.want)
			continue
		}
		evidence := strings.Join(a.Evidence, "; ")
		if a.Failure.Kind != c.kind || !strings.Contains(a.Failure.Error(), c.says) ||
			!strings.Contains(a.Failure.Hint, c.next) || !strings.Contains(evidence, c.rests) || evidence == "" {
			t.Errorf("%s: %v: %v\n next %q\n evidence %q\n want %v: %q, %q, %q", c.name, a.Failure.Kind, a.Failure,
				a.Failure.Hint, evidence, c.kind, c.says, c.next, c.rests)
		}
	}
}

// A death without words is suspected to be for memory, unless something speaks against it.
func TestMemoryIsSuspectedWhereNothingSpeaksAgainstIt(t *testing.T) {
	for name, c := range map[string]struct {
		rec   Record
		beats []disdel.Beat
		want  bool
	}{
		"near the limit": {
			Record{Status: statusDeveloper, Result: errText(runDied), Peak: 110 * disdel.MB},
			nil,
			true,
		},
		"nothing known": {Record{Status: statusDeveloper, Result: errText(runDied)}, nil, true},
		"far below":     {Record{Status: statusDeveloper, Result: errText(runDied)}, resident(60), false},
		"the platform clears it": {Record{
			Status: statusDeveloper, Result: errText(runDied), Peak: 110 * disdel.MB,
			NotMemory: true,
		}, nil, false},
		"it answered": {Record{
			Status: statusDeveloper,
			Result: errText("The action did not produce a valid JSON"),
		}, resident(110), false},
	} {
		if a := Classify(inv, c.rec, c.beats); a.Suspected != c.want || a.Outcome != disdel.OutcomeDeveloperError {
			t.Errorf("%s: %v, suspected %v", name, a.Outcome, a.Suspected)
		}
	}
}

// What helps a train action is advised to no other: no field of a job sets an aggregation's memory, and infer has none.
func TestHintsAreOfTheTask(t *testing.T) {
	for task, want := range map[disdel.Task]string{
		disdel.TaskTrain:     "resources.memory",
		disdel.TaskAggregate: "no field of a job", disdel.TaskEvaluate: "no field of a job",
		disdel.TaskInfer: "fewer inputs",
	} {
		of := inv
		of.Task = task
		a := Classify(of, Record{
			Status: statusDeveloper,
			Result: errText("The action exhausted its memory and was aborted."),
		}, nil)
		if !strings.Contains(a.Failure.Hint, want) || task != disdel.TaskTrain &&
			strings.Contains(a.Failure.Hint, "resources.") {
			t.Errorf("%s: %q", task, a.Failure.Hint)
		}
	}
}

// A pause is no failure, and what an activation measured of itself is kept for the timeouts of later jobs.
func TestSuccessKeepsWhatItMeasured(t *testing.T) {
	for result, want := range map[string]struct {
		outcome disdel.Outcome
		rows    int
	}{
		`{"samples":100,"epochs":2,"usage":{"peakBytes":7,"phasesMs":{"compute":1500}}}`: {
			disdel.OutcomeSuccess,
			200,
		},
		`{"samples":100,"epochs":2,"rows":50,"usage":{"peakBytes":7,"phasesMs":{"compute":1500}}}`: {
			disdel.OutcomeSuccess,
			50,
		},
		`{"paused":true,"rows":30,"batch":3,"usage":{"peakBytes":7,"phasesMs":{"compute":1500}}}`: {
			disdel.OutcomePaused,
			30,
		},
		`{"samples":100,"epochs":2,"again":true,"usage":{"peakBytes":7,"phasesMs":{"compute":1500}}}`: {
			disdel.OutcomeSuccess,
			0,
		},
	} {
		a := Classify(inv, Record{Status: statusSuccess, Result: json.RawMessage(result)}, nil)
		if a.Outcome != want.outcome || a.Rows != want.rows || a.Failure != nil || a.Peak != 7 ||
			a.Phases["compute"].Seconds() != 1.5 || string(a.Result) != result {
			t.Errorf("%s: %+v", result, a)
		}
	}
}

func TestHeartbeatsAreThinnedOut(t *testing.T) {
	mb := make([]int, 500)
	for i := range mb {
		mb[i] = i + 1
	}
	a := Classify(inv, Record{Status: statusSuccess, Result: json.RawMessage(`{}`)}, resident(mb...))
	if n := len(a.Beats); n != beatsKept || a.Beats[0].Resident != disdel.MB || a.Beats[n-1].Resident != 500*disdel.MB ||
		a.Peak != 500*disdel.MB {
		t.Errorf("%d heartbeats, the last %v, peak %v", n, a.Beats[n-1], a.Peak)
	}
}

// The table's steps 1 to 4: what the API answers to a request, with OpenWhisk's own strings.
func TestRefusedByTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   disdel.Kind
		hint   string
	}{
		"memory, HEAD": {
			400,
			`{"error":"requirement failed: memory size 1024 MB exceeds allowed threshold of 512 MB","code":"x"}`,
			disdel.OverLimit, "whisk.memory.max",
		},
		"memory, 2022": {
			400,
			`{"error":"The request content was malformed:\nrequirement failed: memory 1024 MB exceeds allowed threshold of ` +
				`512 MB","code":"x"}`, disdel.OverLimit, "whisk.memory.max",
		},
		"timeout": {
			400,
			`{"error":"requirement failed: duration 301000 milliseconds exceeds allowed threshold of 300000 ` +
				`milliseconds","code":"x"}`, disdel.OverLimit, "whisk.time-limit.max",
		},
		"malformed": {400, `{"error":"The request content was malformed:\nno","code":"x"}`, disdel.Invalid, ""},
		"per minute": {
			429,
			`{"error":"Too many requests in the last minute (count: 61, allowed: 60).","code":"x"}`, disdel.Unavailable,
			"invocationsPerMinute",
		},
		"concurrent": {
			429,
			`{"error":"Too many concurrent requests in flight (count: 30, allowed: 30).","code":"x"}`, disdel.Unavailable,
			"concurrentInvocations",
		},
		"scheduler": {429, `{"error":"Too many requests","code":"x"}`, disdel.Unavailable, "fewer workers"},
		"no healthy invoker": {
			503,
			`The server is currently unavailable (because it is overloaded or down for maintenance).`, disdel.Unavailable,
			"invoker is healthy",
		},
		"internal": {
			500, `{"error":"There was an internal server error.","code":"x"}`, disdel.Unavailable,
			"invoker is healthy",
		},
		"gateway": {502, `<html>Bad Gateway</html>`, disdel.Unavailable, "invoker is healthy"},
		"payload": {
			413, `{"error":"Request larger than allowed: 1048577 > 1048576 bytes.","code":"x"}`,
			disdel.OverLimit, "1 MB of parameters",
		},
		"code": {
			413, `{"error":"exec larger than allowed: 50331649 > 50331648 bytes.","code":"x"}`,
			disdel.OverLimit, "48 MB of code",
		},
		"no key": {
			401, `{"error":"The supplied authentication is invalid","code":"x"}`, disdel.Denied,
			"DISDEL_AUTH",
		},
		"missing": {404, `{"error":"The requested resource does not exist.","code":"x"}`, disdel.NotFound, ""},
		"exists":  {409, `{"error":"resource already exists","code":"x"}`, disdel.Conflict, ""},
		"written at the moment": {
			409, `{"error":"Concurrent modification to resource detected.","code":"x"}`,
			disdel.Unavailable, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := scripted(t, answerOf{c.status, c.body})
			if err := once(e); !errors.Is(err, c.want) || !strings.Contains(disdel.AsError(err).Hint, c.hint) {
				t.Errorf("%v (%s), want %v with %q", err, disdel.AsError(err).Hint, c.want, c.hint)
			}
		})
	}
	e, err := New(Config{APIHost: "http://127.0.0.1:1", AuthKey: "user:key", Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := once(e); !errors.Is(err, disdel.Unavailable) || !strings.Contains(disdel.AsError(err).Hint, "127.0.0.1:1") {
		t.Errorf("nobody listens: %v", err)
	}
}

// The quotas that OpenWhisk names when it refuses are remembered, the newest of each kind.
func TestTheQuotasOfRefusalsAreRemembered(t *testing.T) {
	minute, atOnce := "Too many requests in the last minute (count: 11, allowed: %d).",
		"Too many concurrent requests in flight (count: 9, allowed: %d)."
	refuse := func(format string, n int) answerOf {
		return answerOf{429, fmt.Sprintf(`{"error":"`+format+`","code":"x"}`, n)}
	}
	e, _ := scripted(t, refuse(minute, 60), refuse(atOnce, 30), refuse(minute, 10),
		answerOf{429, `{"error":"Too many requests"}`},
		answerOf{413, `{"error":"Request larger than allowed: 1048577 > 1048576 bytes."}`})
	for i, want := range []RefusedQuotas{{60, 0}, {60, 30}, {10, 30}, {10, 30}, {10, 30}} {
		if once(e) == nil || e.QuotasRefused(time.Time{}) != want {
			t.Errorf("after %d refusals: %+v, want %+v", i+1, e.QuotasRefused(time.Time{}), want)
		}
	}
	if got := e.QuotasRefused(time.Now()); got != (RefusedQuotas{}) {
		t.Errorf("after the last refusal: %+v", got)
	}
}

// once creates an action without trying again.
func once(e *Executor) error {
	ctx := context.Background()
	c := e.client(ctx)
	_, res, err := c.Actions.Insert(&whisk.Action{Name: "x"}, true)
	return e.wrap(ctx, err, res, "create action", "x")
}

// The heartbeats are asked for once, when the record of a failure is there; those of the attempt before it are not its
// own.
func TestWaitAsksForTheHeartbeats(t *testing.T) {
	missing := answerOf{404, `{"error":"The requested resource does not exist.","code":"x"}`}
	record := answerOf{200, `{"activationId":"` + id +
		`","start":1000,"end":3500,"duration":2500,"response":{"status":"action developer ` +
		`error","success":false,"result":{"error":"` + runDied + `"}},"logs":[],"annotations":[]}`}
	e, _ := scripted(t, missing, record)
	asked := 0
	e.cfg.Heartbeats = func(_ context.Context, of disdel.Invocation) []disdel.Progress {
		if asked++; of.ID != inv.ID {
			t.Errorf("asked for %s", of.ID)
		}
		return []disdel.Progress{
			{UnixMs: 900, Resident: 127 * disdel.MB},
			{UnixMs: 2000, Resident: 100 * disdel.MB},
			{UnixMs: 3000, Resident: 120 * disdel.MB},
		}
	}
	a, err := e.Wait(context.Background(), inv, id)
	if err != nil || a.Outcome != disdel.OutcomeOutOfMemory || asked != 1 || len(a.Beats) != 2 {
		t.Fatalf("%v after %d questions, %v, %v", a.Outcome, asked, a.Beats, err)
	}
	if last := a.Beats[1]; last.At != disdel.Millis(2*time.Second) || last.Resident != 120*disdel.MB {
		t.Errorf("%+v, want the heartbeat of 2 s after the start", last)
	}
}

// What is decided by crosses the action border: an action's own code and subject are its activation's failure's.
func TestAnActionsCodeAndSubjectAreKept(t *testing.T) {
	subject := disdel.UpdateID{Job: "job-1", Round: 2}
	result, err := json.Marshal(map[string]any{"error": &disdel.Error{
		Kind: disdel.NotFound, Code: disdel.CodeLostReference, Subject: &subject, Op: "zzz", Msg: "zzz",
	}})
	if err != nil {
		t.Fatal(err)
	}
	a := Classify(disdel.Invocation{Task: disdel.TaskTrain}, Record{Status: statusApplication, Result: result}, nil)
	if f := a.Failure; f == nil || f.Code != disdel.CodeLostReference || f.Subject == nil || *f.Subject != subject {
		t.Errorf("%+v", a.Failure)
	}
}

// A device's memory is not the action's: who lacked it is told apart, with what the action said, whatever it held.
func TestADevicesMemoryIsToldApart(t *testing.T) {
	own, _ := json.Marshal(map[string]any{"error": &disdel.Error{
		Kind: disdel.OOM, Code: disdel.CodeDeviceMemory, Op: "make engine", Msg: "3 GB wanted, 2 GB free",
	}})
	inv := disdel.Invocation{Task: disdel.TaskTrain, Limits: disdel.Limits{Memory: 128 * disdel.MB, Device: 2 * disdel.GB}}
	beats := []disdel.Beat{{Resident: disdel.MB, Device: disdel.GB}}
	a := Classify(inv, Record{Status: statusApplication, Result: own}, beats)
	if !a.LackedDevice() || a.LackedMemory() || a.DevicePeak != disdel.GB ||
		!strings.Contains(a.Failure.Error(), "share of an accelerator's memory, 2.00 GB") ||
		!strings.Contains(a.Failure.Error(), "3 GB wanted") || !strings.Contains(a.Failure.Hint, "resources.gpu.memory") {
		t.Errorf("%+v, %v, hint %q", a.Outcome, a.Failure, a.Failure.Hint)
	}
	result := json.RawMessage(`{"usage": {"peakBytes": 5, "deviceBytes": 7}}`)
	if a := Classify(inv, Record{Status: statusSuccess, Result: result}, nil); a.DevicePeak != 7 || a.Peak != 5 {
		t.Errorf("%v of the device, %v of the host", a.DevicePeak, a.Peak)
	}
}

// A hold by the job's budget says so: no timeout has passed.
func TestAHoldByTheBudgetKeepsItsCode(t *testing.T) {
	for _, code := range []disdel.Code{disdel.CodeOverBudget, ""} {
		own, _ := json.Marshal(map[string]any{"error": &disdel.Error{Kind: disdel.Timeout, Code: code, Op: "train"}})
		a := Classify(inv, Record{Status: statusApplication, Result: own}, nil)
		if a.Outcome != disdel.OutcomeTimeout || a.FailureCode() != code {
			t.Errorf("%v with code %q, want code %q", a.Outcome, a.FailureCode(), code)
		}
	}
}

// Of a long log the last lines are kept, and how many there were. A short one is kept whole.
func TestALongLogsEndIsKept(t *testing.T) {
	for _, n := range []int{0, 1, logTail, logTail + 1, 3 * logTail} {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprint("line ", i))
		}
		a := Classify(inv, Record{Status: statusDeveloper, Result: errText(runDied), Logs: all}, nil)
		lines := 0
		if n > logTail {
			lines = n
		}
		if want := all[max(0, n-logTail):]; !slices.Equal(a.Logs, want) || a.LogLines != lines {
			t.Errorf("%d lines: %q of %d", n, a.Logs, a.LogLines)
		}
	}
}

// Memory is near its limit from nine tenths on: at the last heartbeat, or by the peak. No peak is none.
func TestMemoryIsNearItsLimitFromNineTenths(t *testing.T) {
	at := inv
	at.Limits.Memory = 100 * disdel.MB
	for _, c := range []struct {
		beats []disdel.Beat
		peak  disdel.Bytes
		near  bool
	}{
		{nil, 90 * disdel.MB, true},
		{nil, 90*disdel.MB - 1, false},
		{resident(95, 90), 0, true},
		{resident(95, 89), 0, false},
		{nil, 0, false},
	} {
		cl := classifier{inv: at, text: runDied}
		cl.a.Beats, cl.a.Peak = c.beats, c.peak
		if got := cl.isNearLimit(); got != c.near || got != (len(cl.a.Evidence) == 1) {
			t.Errorf("%+v: %v by %q", c, got, cl.a.Evidence)
		}
	}
	none := classifier{text: runDied}
	if none.isNearLimit() {
		t.Errorf("without a limit and a peak: %q", none.a.Evidence)
	}
}
