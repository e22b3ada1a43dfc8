package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	"github.com/disdel/disdel/internal/secrets"
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

func serving(t *testing.T, f http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return server.URL
}

var inv = disdel.Invocation{
	ID: "round 1/train/1", Task: disdel.TaskTrain, Action: "pkg/train", Round: 1, Member: 1,
	Limits: disdel.Limits{Memory: 128 * disdel.MB, Timeout: disdel.Millis(time.Minute)}, Estimate: 90 * disdel.MB,
	Params: json.RawMessage(`{"round":1}`),
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
		`PUT /api/v1/namespaces/_/actions/pkg/train?overwrite=true ` +
			`{"name":"pkg/train","exec":{"kind":"disdel:1","code":"disdel","main":"train"},` +
			`"limits":{"timeout":60000,"memory":128}}`,
		`POST /api/v1/namespaces/_/actions/pkg/train?blocking=false&result=false {"round":1}`,
	}
	if diff := cmp.Diff(want, w.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// With Seal nothing that OpenWhisk is sent with an invocation has the password in clear; the action's code opens it.
func TestParametersAreSealed(t *testing.T) {
	e, w := scripted(t, answerOf{200, `{}`})
	e.cfg.Seal, e.key = true, secrets.NewKey()
	plan := []disdel.ActionPlan{{Task: disdel.TaskTrain, Name: "pkg/train", Limits: inv.Limits}}
	if err := e.Prepare(t.Context(), "pkg", plan); err != nil {
		t.Fatal(err)
	}
	w.answers = []answerOf{{202, `{"activationId":"` + id + `"}`}}
	with := inv
	with.Params = json.RawMessage(`{"round":1,"store":{"url":"redis://:CANARY@host:1/0"}}`)
	if _, err := e.Invoke(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(w.asked, "\n"); strings.Contains(all, "CANARY") {
		t.Fatal(all)
	}
	var created struct{ Exec struct{ Code string } }
	_, body, _ := strings.Cut(w.asked[1], "overwrite=true ")
	if err := json.Unmarshal([]byte(body), &created); err != nil {
		t.Fatal(err)
	}
	key, ok := secrets.FromCode(created.Exec.Code)
	_, sent, _ := strings.Cut(w.asked[2], "result=false ")
	if opened, err := key.Open(json.RawMessage(sent)); !ok || err != nil || !strings.Contains(string(opened), "CANARY") {
		t.Errorf("%s, %v", opened, err)
	}
}

// Throttling and outages are waited out; the rest is told as what it is.
func TestAnswersToInvoke(t *testing.T) {
	ok := answerOf{202, `{"activationId":"` + id + `"}`}
	for name, c := range map[string]struct {
		answers []answerOf
		want    disdel.Kind
	}{
		"at once": {[]answerOf{ok}, disdel.UnknownKind},
		"throttled": {[]answerOf{{
			429,
			`{"error":"Too many concurrent requests in flight (count: 30, allowed: 30).","code":"x"}`,
		}, ok}, disdel.UnknownKind},
		"no invoker": {[]answerOf{{503, `The server is currently unavailable`}, {503, `x`}, ok}, disdel.UnknownKind},
		"no key":     {[]answerOf{{401, `{"error":"The supplied authentication is invalid","code":"x"}`}}, disdel.Denied},
		"no action":  {[]answerOf{{404, `{"error":"The requested resource does not exist.","code":"x"}`}}, disdel.NotFound},
		"too large": {
			[]answerOf{{413, `{"error":"Request larger than allowed: 1048577 > 1048576 bytes.","code":"x"}`}},
			disdel.OverLimit,
		},
		"over a limit": {
			[]answerOf{{
				400,
				`{"error":"requirement failed: memory size 1024 MB exceeds allowed threshold of 512 MB","code":"x"}`,
			}},
			disdel.OverLimit,
		},
		"no id": {[]answerOf{{202, `{}`}}, disdel.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := scripted(t, c.answers...)
			got, err := e.Invoke(context.Background(), inv)
			if c.want == disdel.UnknownKind && (err != nil || got != id) || !errors.Is(err, c.want) &&
				c.want != disdel.UnknownKind {
				t.Errorf("%q, %v, want %v", got, err, c.want)
			}
		})
	}
}

func TestWaitPollsUntilThereIsARecord(t *testing.T) {
	missing := answerOf{404, `{"error":"The requested resource does not exist.","code":"x"}`}
	record := answerOf{200, `{"activationId":"` + id + `","start":1000,"end":3500,"duration":2500,
		"response":{"status":"success","success":true,"result":{"loss":0.5,"usage":{"peakBytes":1048576}}},
		"logs":[],"annotations":[{"key":"timeout","value":false},{"key":"initTime","value":12},
		{"key":"waitTime","value":34},{"key":"peakMemory","value":2097152}]}`}
	e, _ := scripted(t, missing, missing, missing, record)
	a, err := e.Wait(context.Background(), inv, id)
	if err != nil || a.Outcome != disdel.OutcomeSuccess || !a.Cold || a.Peak != 2*disdel.MB ||
		time.Duration(a.Duration) != 2500*time.Millisecond || time.Duration(a.InitTime) != 12*time.Millisecond ||
		time.Duration(a.WaitTime) != 34*time.Millisecond {
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
	want := disdel.PlatformLimits{
		MinMemory: 128 * disdel.MB, MaxMemory: 512 * disdel.MB,
		MinTimeout: disdel.Millis(100 * time.Millisecond), MaxTimeout: disdel.Millis(5 * time.Minute), PerMinute: 60,
		Concurrent: 30,
	}
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
	if a, err := e.Wait(ctx, inv, aid); err != nil || a.Outcome != disdel.OutcomeStartFailure {
		t.Errorf("%v, %v", a.Outcome, err)
	}
	if err := e.Remove(ctx, "pkg"); err != nil {
		t.Error(err)
	}
	if err := e.Remove(ctx, "pkg"); !errors.Is(err, disdel.NotFound) {
		t.Errorf("removing twice: %v, want NotFound", err)
	}
}

// An action that takes part of a GPU says so where a platform of disdel's and OpenWhisk's new scheduler look; no other
// says anything.
func TestActionsSayWhatTheyTakeOfGPUs(t *testing.T) {
	e := &Executor{}
	plan := disdel.ActionPlan{Task: disdel.TaskTrain, Name: "p/train", Limits: disdel.Limits{Memory: disdel.GB}}
	if got := e.action(plan).Annotations; len(got) != 0 {
		t.Errorf("without a GPU: %v", got)
	}
	plan.Limits.Device, plan.Limits.Devices = 700*disdel.MB, 2
	got := map[string]string{}
	for _, a := range e.action(plan).Annotations {
		got[a.Key] = fmt.Sprint(a.Value)
	}
	want := map[string]string{
		disdel.AnnotationGPUMemory: "700", disdel.AnnotationGPUCount: "2",
		disdel.AnnotationInvoker: "[" + disdel.InvokerGPU + "]",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
