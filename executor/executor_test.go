package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/platform"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *logrus.Logger {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return l
}

// wire is a server that answers as a script says and keeps what it was asked.
type wire struct {
	mu      sync.Mutex
	answers []answerOf
	asked   []string
}

type answerOf struct {
	status int
	body   string
}

func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	w.asked = append(w.asked, strings.TrimSpace(r.Method+" "+r.URL.String()+" "+string(body)))
	a := w.answers[0]
	if len(w.answers) > 1 {
		w.answers = w.answers[1:]
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(a.status)
	io.WriteString(rw, a.body)
}

func scripted(t *testing.T, answers ...answerOf) (*Executor, *wire) {
	t.Helper()
	w := &wire{answers: answers}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	e, err := New(Config{APIHost: server.URL, AuthKey: "user:key", Logger: quiet(), PollEvery: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e, w
}

var inv = disdel.Invocation{
	ID: "round 1/train/1", Task: disdel.TaskTrain, Action: "pkg/train", Round: 1, Member: 1,
	Limits: disdel.Limits{Memory: 128 * disdel.MB, Timeout: disdel.Millis(time.Minute)}, Estimate: 90 * disdel.MB, Params: json.RawMessage(`{"round":1}`),
}

const id = "0123456789abcdef0123456789abcdef"

// What goes over the wire, to the letter.
func TestRequestsAreOpenWhisks(t *testing.T) {
	e, w := scripted(t, answerOf{200, `{}`})
	plan := []disdel.ActionPlan{{Task: disdel.TaskTrain, Name: "pkg/train", Limits: inv.Limits}}
	if err := e.Prepare(context.Background(), "pkg", plan); err != nil {
		t.Fatal(err)
	}
	w.answers = []answerOf{{202, `{"activationId":"` + id + `"}`}}
	if got, err := e.Invoke(context.Background(), inv); err != nil || got != id {
		t.Fatalf("%s, %v", got, err)
	}
	want := []string{
		`PUT /api/v1/namespaces/_/packages/pkg?overwrite=true {"name":"pkg"}`,
		`PUT /api/v1/namespaces/_/actions/pkg/train?overwrite=true {"name":"pkg/train","exec":{"kind":"disdel:1","code":"disdel","main":"train"},"limits":{"timeout":60000,"memory":128}}`,
		`POST /api/v1/namespaces/_/actions/pkg/train?blocking=false&result=false {"round":1}`,
	}
	if diff := cmp.Diff(want, w.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Throttling and outages are waited out; the rest is told as what it is.
func TestAnswersToInvoke(t *testing.T) {
	ok := answerOf{202, `{"activationId":"` + id + `"}`}
	for name, c := range map[string]struct {
		answers []answerOf
		want    disdel.Kind
	}{
		"at once":      {[]answerOf{ok}, disdel.UnknownKind},
		"throttled":    {[]answerOf{{429, `{"error":"Too many concurrent requests in flight (count: 30, allowed: 30).","code":"x"}`}, ok}, disdel.UnknownKind},
		"no invoker":   {[]answerOf{{503, `The server is currently unavailable`}, {503, `x`}, ok}, disdel.UnknownKind},
		"no key":       {[]answerOf{{401, `{"error":"The supplied authentication is invalid","code":"x"}`}}, disdel.Denied},
		"no action":    {[]answerOf{{404, `{"error":"The requested resource does not exist.","code":"x"}`}}, disdel.NotFound},
		"too large":    {[]answerOf{{413, `{"error":"Request larger than allowed: 1048577 > 1048576 bytes.","code":"x"}`}}, disdel.OverLimit},
		"over a limit": {[]answerOf{{400, `{"error":"requirement failed: memory size 1024 MB exceeds allowed threshold of 512 MB","code":"x"}`}}, disdel.OverLimit},
		"no id":        {[]answerOf{{202, `{}`}}, disdel.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := scripted(t, c.answers...)
			got, err := e.Invoke(context.Background(), inv)
			if c.want == disdel.UnknownKind && (err != nil || got != id) || !errors.Is(err, c.want) && c.want != disdel.UnknownKind {
				t.Errorf("%q, %v, want %v", got, err, c.want)
			}
		})
	}
}

func TestWaitPollsUntilThereIsARecord(t *testing.T) {
	missing := answerOf{404, `{"error":"The requested resource does not exist.","code":"x"}`}
	record := answerOf{200, `{"activationId":"` + id + `","start":1000,"end":3500,"duration":2500,"response":{"status":"success","success":true,"result":{"loss":0.5,"usage":{"peakBytes":1048576}}},
		"logs":[],"annotations":[{"key":"timeout","value":false},{"key":"initTime","value":12},{"key":"waitTime","value":34},{"key":"peakMemory","value":2097152}]}`}
	e, _ := scripted(t, missing, missing, missing, record)
	a, err := e.Wait(context.Background(), inv, id)
	if err != nil || a.Outcome != disdel.OutcomeSuccess || !a.Cold || a.Peak != 2*disdel.MB ||
		time.Duration(a.Duration) != 2500*time.Millisecond || time.Duration(a.InitTime) != 12*time.Millisecond || time.Duration(a.WaitTime) != 34*time.Millisecond {
		t.Errorf("%+v, %v", a, err)
	}
	if !strings.Contains(string(a.Result), `"loss":0.5`) {
		t.Errorf("result %s", a.Result)
	}
	e, _ = scripted(t, missing)
	ctx, stop := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer stop()
	if _, err := e.Wait(ctx, inv, id); !errors.Is(err, disdel.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The decision table of the Failure Manager: DiSDeL III-B.2c with OpenWhisk's texts.
func TestClassify(t *testing.T) {
	developer, application := "action developer error", "application error"
	errText := func(s string) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"error":%q}`, s)) }
	own := func(k disdel.Kind) json.RawMessage {
		data, _ := json.Marshal(map[string]any{"error": &disdel.Error{Kind: k, Op: "train", Msg: "why", Hint: "do this"}})
		return data
	}
	for _, c := range []struct {
		name string
		rec  Record
		want disdel.Outcome
		kind disdel.Kind
		says string
	}{
		{"success", Record{Status: "success", Result: json.RawMessage(`{}`)}, disdel.OutcomeSuccess, disdel.UnknownKind, ""},
		{"timeout by annotation", Record{Status: developer, TimedOut: true, Result: errText("x")}, disdel.OutcomeTimeout, disdel.Timeout, "timeout of 1m0s"},
		{"timeout by text", Record{Status: application, Result: errText("The action exceeded its time limits of 60000 milliseconds.")}, disdel.OutcomeTimeout, disdel.Timeout, "timeout of 1m0s"},
		{"memory, on Docker", Record{Status: developer, Result: errText("The action exhausted its memory and was aborted."), Peak: 127 * disdel.MB}, disdel.OutcomeOutOfMemory, disdel.OOM, "limit of 128 MB (estimate 90.0 MB, measured peak 127 MB)"},
		{"memory, on Kubernetes", Record{Status: developer, Result: errText("The action did not produce a valid response and exited unexpectedly."), Peak: 126 * disdel.MB}, disdel.OutcomeOutOfMemory, disdel.OOM, "memory limit of 128 MB"},
		{
			"killed",
			Record{Status: developer, Result: errText("The action did not produce a valid response and exited unexpectedly."), Peak: 60 * disdel.MB},
			disdel.OutcomeDeveloperError, disdel.Crashed,
			"train action of worker 1 in round 2: its process was killed or exited",
		},
		{"killed near its limit, the platform knows", Record{Status: developer, Result: errText("The action did not produce a valid response and exited unexpectedly."), Peak: 126 * disdel.MB, NotMemory: true}, disdel.OutcomeDeveloperError, disdel.Crashed, "not for memory"},
		{"killed, no peak known", Record{Status: developer, Result: errText("The action did not initialize and exited unexpectedly.")}, disdel.OutcomeDeveloperError, disdel.Crashed, "killed or exited"},
		{"own memory error", Record{Status: application, Result: own(disdel.OOM)}, disdel.OutcomeOutOfMemory, disdel.OOM, "why"},
		{"own divergence", Record{Status: application, Result: own(disdel.Diverged)}, disdel.OutcomeApplicationError, disdel.Diverged, "why"},
		{"own cancel", Record{Status: application, Result: own(disdel.Canceled)}, disdel.OutcomeCanceled, disdel.Canceled, "why"},
		{"a stranger's error", Record{Status: application, Result: errText("oh")}, disdel.OutcomeApplicationError, disdel.Internal, "oh"},
		{"an error that is no text", Record{Status: application, Result: json.RawMessage(`{"error":[1,2]}`)}, disdel.OutcomeApplicationError, disdel.Internal, "[1 2]"},
		{"internal", Record{Status: "whisk internal error", Result: errText("Failed to provision resources to run the action.")}, disdel.OutcomeInternalError, disdel.Internal, "Failed to provision"},
	} {
		a := Classify(inv, c.rec)
		if a.Outcome != c.want {
			t.Errorf("%s: %v, want %v", c.name, a.Outcome, c.want)
		}
		if c.want == disdel.OutcomeSuccess {
			continue
		}
		if a.Failure == nil || a.Failure.Kind != c.kind || !strings.Contains(a.Failure.Error(), c.says) || len(a.Evidence) == 0 {
			t.Errorf("%s: %v (%v), want %v with %q", c.name, a.Failure, a.Evidence, c.kind, c.says)
		}
		if c.kind != disdel.Internal && a.Failure.Hint == "" {
			t.Errorf("%s: no next step", c.name)
		}
	}
	if a := lost(inv, id); a.Outcome != disdel.OutcomeLost || !errors.Is(a.Failure, disdel.Lost) {
		t.Errorf("lost: %+v", a)
	}
}

// DiSDeL III-B.2b: history first, then the expected cost, then the platform's maximum.
func TestTimeouts(t *testing.T) {
	plan := disdel.Plan{
		Workers: 2, Epochs: 1, Platform: disdel.PlatformLimits{MinTimeout: disdel.Millis(100 * time.Millisecond), MaxTimeout: disdel.Millis(5 * time.Minute)},
		Actions: []disdel.ActionPlan{{Task: disdel.TaskTrain, Limits: disdel.Limits{Memory: 512 * disdel.MB}}, {Task: disdel.TaskAggregate}},
	}
	record := func(epochs int, o disdel.Outcome, seconds int) disdel.Record {
		return disdel.Record{Plan: disdel.Plan{Workers: 2, Epochs: epochs}, Activations: []disdel.Activation{
			{Invocation: disdel.Invocation{Task: disdel.TaskTrain}, Outcome: o, Duration: disdel.Millis(time.Duration(seconds) * time.Second)},
		}}
	}
	cost := disdel.Job{Resources: disdel.Resources{MaxCost: 60}}
	for _, c := range []struct {
		name    string
		history []disdel.Record
		job     disdel.Job
		want    time.Duration
		source  string
	}{
		{"nothing known", nil, disdel.Job{}, 5 * time.Minute, "platform maximum"},
		{"cost: (60 GB-s / 2) / 0.5 GB", nil, cost, time.Minute, "cost"},
		{"history before cost", []disdel.Record{record(1, disdel.OutcomeSuccess, 40), record(1, disdel.OutcomeSuccess, 30)}, cost, 80 * time.Second, "history"},
		{"other rounds do not count", []disdel.Record{record(5, disdel.OutcomeSuccess, 40)}, disdel.Job{}, 5 * time.Minute, "platform maximum"},
		{"failures do not count", []disdel.Record{record(1, disdel.OutcomeDeveloperError, 40)}, disdel.Job{}, 5 * time.Minute, "platform maximum"},
		{"a timeout raises it", []disdel.Record{record(1, disdel.OutcomeTimeout, 100)}, disdel.Job{}, 200 * time.Second, "history"},
		{"never above the platform's", []disdel.Record{record(1, disdel.OutcomeSuccess, 290)}, disdel.Job{}, 5 * time.Minute, "history"},
		{"never below a cold start's", []disdel.Record{record(1, disdel.OutcomeSuccess, 0)}, disdel.Job{}, 10 * time.Second, "history"},
	} {
		got, source := Timeouts(c.history, plan, c.job)
		if time.Duration(got[disdel.TaskTrain]) != c.want || source != c.source {
			t.Errorf("%s: %v from %s, want %v from %s", c.name, got[disdel.TaskTrain], source, c.want, c.source)
		}
		if got[disdel.TaskAggregate] == 0 {
			t.Errorf("%s: no timeout for aggregation", c.name)
		}
	}
}

// DiSDeL Fig. 2: retries at 300, 540, 780, ... seconds lose what the failed attempts took.
func TestPaperRetriesLoseTheirTime(t *testing.T) {
	for failed, want := range map[int]int{6: 5400, 4: 2640, 3: 1620} {
		lostSeconds := 0
		for i := range failed {
			lostSeconds += 300 + 240*i
		}
		if lostSeconds != want {
			t.Errorf("%d failed attempts lose %d s, want %d", failed, lostSeconds, want)
		}
	}
}

// Against the embedded platform, whose containers here never start: limits, creation, removal, and an internal error.
func TestAgainstTheEmbeddedPlatform(t *testing.T) {
	cfg := platform.DefaultConfig()
	cfg.TempDir = t.TempDir()
	cfg.Kinds = map[string]platform.Kind{disdel.RuntimeKind: {Command: []string{"/nonexistent/program"}}}
	p, err := platform.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer p.Close(context.Background())
	e, err := New(Config{APIHost: p.URL(), AuthKey: p.AuthKey(), Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx := context.Background()
	l, err := e.Limits(ctx)
	want := disdel.PlatformLimits{MinMemory: 128 * disdel.MB, MaxMemory: 512 * disdel.MB, MinTimeout: disdel.Millis(100 * time.Millisecond), MaxTimeout: disdel.Millis(5 * time.Minute), PerMinute: 60, Concurrent: 30}
	if diff := cmp.Diff(want, l); err != nil || diff != "" {
		t.Errorf("limits: %v (-want +got):\n%s", err, diff)
	}
	plan := []disdel.ActionPlan{{Task: disdel.TaskTrain, Name: "pkg/train", Limits: inv.Limits}}
	if err := e.Prepare(ctx, "pkg", plan); err != nil {
		t.Fatal(err)
	}
	plan[0].Limits.Memory = disdel.GB
	if err := e.Prepare(ctx, "pkg", plan); !errors.Is(err, disdel.OverLimit) {
		t.Errorf("1 GB: %v, want OverLimit", err)
	}
	aid, err := e.Invoke(ctx, inv)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := e.Wait(ctx, inv, aid); err != nil || a.Outcome != disdel.OutcomeInternalError {
		t.Errorf("%v, %v", a.Outcome, err)
	}
	if err := e.Remove(ctx, "pkg"); err != nil {
		t.Error(err)
	}
	if err := e.Remove(ctx, "pkg"); !errors.Is(err, disdel.NotFound) {
		t.Errorf("removing twice: %v, want NotFound", err)
	}
}
