package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/secrets"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Parameters that were sealed for an action reach its handler as they were, and those of another action none.
func TestSealedParametersAreOpened(t *testing.T) {
	key := secrets.NewKey().Of("pkg/train")
	c := start(t, Config{})
	if status, body, _ := c.post("/init", `{"value":{"main":"echo","code":"`+key.Code()+`"}}`); status != http.StatusOK {
		t.Fatal(status, body)
	}
	run := func(with secrets.Key) string {
		sealed, err := with.Seal(json.RawMessage(`{"round":1,"store":{"url":"redis://:CANARY@h/0"}}`))
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := c.post("/run", `{"value":`+string(sealed)+`}`)
		return body
	}
	if got := run(key); !strings.Contains(got, `"url":"redis://:CANARY@h/0"`) || !strings.Contains(got, `"round":1`) {
		t.Errorf("its own: %s", got)
	}
	got := run(secrets.NewKey())
	if !strings.Contains(got, "sealed for another action") || strings.Contains(got, "CANARY") {
		t.Errorf("another's: %s", got)
	}
	if said := c.out.String() + c.errors.String(); strings.Contains(said, "CANARY") {
		t.Errorf("the log: %s", said)
	}
}

type container struct {
	t           *testing.T
	client      *http.Client
	out, errors *buffer
}

// start serves on a unix socket, as the embedded platform has it.
func start(t *testing.T, cfg Config) *container {
	t.Helper()
	c := &container{t: t, out: &buffer{}, errors: &buffer{}}
	cfg.Stdout, cfg.Stderr = c.out, c.errors
	if cfg.Setenv == nil {
		cfg.Setenv = func(string, string) error { return nil }
	}
	address := "unix:" + filepath.Join(t.TempDir(), "s")
	l, err := Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	handlers := map[disdel.Task]Handler{
		"echo": func(_ context.Context, p json.RawMessage) (any, error) { return map[string]any{"got": p}, nil },
		"fail": func(context.Context, json.RawMessage) (any, error) {
			return nil, &disdel.Error{Kind: disdel.Diverged, Op: "train", Msg: "loss is NaN", Hint: "lower it"}
		},
		"panic": func(context.Context, json.RawMessage) (any, error) { panic("oh") },
		"wait": func(ctx context.Context, _ json.RawMessage) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- New(handlers, cfg).Serve(ctx, l) }()
	tr := &http.Transport{DialContext: dialer(address), DisableKeepAlives: true}
	c.client = &http.Client{Transport: tr}
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return c
}

func (c *container) post(path, body string) (int, string, http.Header) {
	c.t.Helper()
	res, err := c.client.Post("http://action"+path, "application/json", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if res.ContentLength != int64(len(data)) {
		c.t.Errorf("%s: Content-Length %d for %d bytes", path, res.ContentLength, len(data))
	}
	return res.StatusCode, string(data), res.Header
}

func initBody(main string) string {
	return fmt.Sprintf(`{"value":{"name":"a","main":%q,"binary":false,"code":"x","env":{"__OW_ACTION_NAME":"/guest/a"}}}`,
		main)
}

// A panic of a kernel's worker is answered like one of the action itself, and the log says where it was.
func TestAPanicInAKernelIsAnswered(t *testing.T) {
	var log bytes.Buffer
	set := kernel.Sets()[len(kernel.Sets())-1]
	s := New(map[disdel.Task]Handler{"train": func(context.Context, json.RawMessage) (any, error) {
		kernel.NewTeam(set, 3, 1).Run(func(w *kernel.Worker) {
			if w.ID == 2 {
				panic("index out of range")
			}
			w.Sync()
		})
		return nil, nil
	}}, Config{Stderr: &log})
	for _, c := range []struct{ path, body, want string }{
		{"/init", initBody("train"), "ok"},
		{"/run", `{"value":{}}`, "the action panicked: index out of range"},
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(c.body)))
		if !strings.Contains(w.Body.String(), c.want) || strings.Contains(w.Body.String(), "goroutine") {
			t.Errorf("%s: %s", c.path, w.Body)
		}
	}
	if !strings.Contains(log.String(), "TestAPanicInAKernelIsAnswered.func1.1") {
		t.Errorf("the log has no place:\n%s", &log)
	}
}

// A panic with an error of disdel is that error: a disk that fails is no defect, and the action is tried again.
func TestAPanicWithAnErrorIsThatError(t *testing.T) {
	s := New(map[disdel.Task]Handler{"train": func(context.Context, json.RawMessage) (any, error) {
		panic(&disdel.Error{Kind: disdel.Unavailable, Op: "read rows from disk", Msg: "input/output error"})
	}}, Config{Stderr: t.Output()})
	var text string
	for _, c := range [][2]string{{"/init", initBody("train")}, {"/run", `{"value":{}}`}} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, c[0], strings.NewReader(c[1])))
		text = w.Body.String()
	}
	var answer struct{ Error disdel.Error }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Error.Kind != disdel.Unavailable {
		t.Errorf("%v: %s", err, text)
	}
}

// The scenarios of OpenWhisk's documentation of action containers.
func TestTheContractOfInitAndRun(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name, main, run string
		status          int
		want            string
	}{
		{"echo", "echo", `{"value":{"a":1}}`, 200, `{"got":{"a":1}}`},
		{"unicode", "echo", `{"value":{"a":"ünï☃"}}`, 200, `ünï☃`},
		{"no value", "echo", `{}`, 200, `{"got":{}}`},
		{"one megabyte", "echo", `{"value":{"a":"` + big + `"}}`, 200, big},
		{
			"error", "fail", `{"value":{}}`, 200,
			`{"error":{"kind":"diverged","op":"train","message":"loss is NaN","hint":"lower it"}}`,
		},
		{"panic", "panic", `{"value":{}}`, 200, `the action panicked: oh`},
		{"no JSON", "echo", `{`, 400, `"error"`},
		{
			"deadline as a string", "wait", `{"value":{},"deadline":"` + strconv.FormatInt(time.Now().UnixMilli()-1, 10) + `"}`,
			200, `"kind":"timeout"`,
		},
		{"deadline as a number", "wait", `{"value":{},"deadline":1}`, 200, `"kind":"timeout"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := start(t, Config{})
			if status, body, _ := k.post("/init", initBody(c.main)); status != 200 {
				t.Fatalf("init: %d %s", status, body)
			}
			status, body, _ := k.post("/run", c.run)
			if status != c.status || !strings.Contains(body, c.want) {
				t.Errorf("run: %d %.300s, want %d with %.80s", status, body, c.status, c.want)
			}
			if c.status == 200 {
				for _, s := range []*buffer{k.out, k.errors} {
					if n := strings.Count(s.String(), Sentinel+"\n"); n != 1 {
						t.Errorf("%d sentinels on a stream, want 1", n)
					}
				}
			}
		})
	}
}

func TestWhatIsRefused(t *testing.T) {
	k := start(t, Config{})
	if status, body, _ := k.post("/run", `{"value":{}}`); status != 500 ||
		!strings.Contains(body, "no action defined yet") {
		t.Errorf("run before init: %d %s", status, body)
	}
	if status, body, _ := k.post("/init", initBody("nonsense")); status != 400 || !strings.Contains(body, "nonsense") {
		t.Errorf("unknown task: %d %s", status, body)
	}
	k.post("/init", initBody("echo"))
	status, body, _ := k.post("/init", initBody("echo"))
	if status != 403 || body != `{"error":"Cannot initialize the action more than once."}` {
		t.Errorf("second init: %d %s", status, body)
	}
	if !strings.Contains(k.errors.String(), "Cannot initialize the action more than once.") {
		t.Error("the second init is not in the log")
	}
	if status, _, _ := k.post("/other", `{}`); status != 404 {
		t.Errorf("another path: %d", status)
	}
}

// /init sets the action's own environment, each /run what belongs to the activation; a key that cannot be is refused.
func TestEnvironment(t *testing.T) {
	var mu sync.Mutex
	env := map[string]string{}
	set := func(k, v string) error {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(k, "=") {
			return fmt.Errorf("%q is no name", k)
		}
		env[k] = v
		return nil
	}
	k := start(t, Config{Setenv: set})
	if status, body, _ := k.post("/init", `{"value":{"name":"a","main":"echo","env":{"A=B":"x"}}}`); status != 400 ||
		!strings.Contains(body, "environment") {
		t.Errorf("a name with an equals sign: %d %s", status, body)
	}
	k.post("/init", `{"value":{"name":"a","main":"echo","env":{"MINE":"ünï","__OW_ACTION_NAME":"/guest/a"}}}`)
	k.post("/run", `{"value":{},"namespace":"guest","action_name":"/guest/a","activation_id":"0123","transaction_id":"t","deadline":"1999999999999","api_key":"u:k"}`)
	mu.Lock()
	defer mu.Unlock()
	for key, want := range map[string]string{
		"MINE": "ünï", "__OW_ACTION_NAME": "/guest/a", "__OW_NAMESPACE": "guest", "__OW_ACTIVATION_ID": "0123",
		"__OW_TRANSACTION_ID": "t",
		"__OW_DEADLINE":       "1999999999999", "__OW_API_KEY": "u:k",
	} {
		if env[key] != want {
			t.Errorf("%s is %q, want %q", key, env[key], want)
		}
	}
}

// With Concurrency 3, three activations run at once and the fourth is refused.
func TestConcurrencyIsBounded(t *testing.T) {
	k := start(t, Config{Concurrency: 3})
	k.post("/init", initBody("wait"))
	end := time.Now().Add(400 * time.Millisecond).UnixMilli()
	var all sync.WaitGroup
	var mu sync.Mutex
	answers := map[int]int{}
	for range 4 {
		all.Go(func() {
			status, _, _ := k.post("/run", fmt.Sprintf(`{"value":{},"deadline":"%d"}`, end))
			mu.Lock()
			answers[status]++
			mu.Unlock()
		})
	}
	all.Wait()
	if answers[http.StatusOK] < 3 || answers[http.StatusOK]+answers[http.StatusConflict] != 4 {
		t.Errorf("answers by status: %v", answers)
	}
}

// Of tasks that may be there together as many run at once as /init allows, of others one; what a panic of one of
// several prints says whose it is.
func TestInitAllowsSeveralAtOnce(t *testing.T) {
	for task, want := range map[string]int{"wait": 3, "fail": 1} {
		s := New(map[disdel.Task]Handler{"wait": nil, "fail": nil}, Config{Together: []disdel.Task{"wait"}})
		body := fmt.Sprintf(`{"value":{"main":%q,"concurrency":3}}`, task)
		asked := httptest.NewRequest(http.MethodPost, "/init", strings.NewReader(body))
		s.ServeHTTP(httptest.NewRecorder(), asked)
		if s.cfg.Concurrency != want {
			t.Errorf("%s: %d at once, want %d", task, s.cfg.Concurrency, want)
		}
	}
	k := start(t, Config{Concurrency: 2})
	k.post("/init", initBody("panic"))
	k.post("/run", `{"value":{},"activation_id":"mine"}`)
	for line := range strings.Lines(k.errors.String()) {
		if !strings.HasPrefix(line, "\x00mine\x00") && line != Sentinel+"\n" {
			t.Errorf("nobody's line: %q", line)
		}
	}
}

// Who asks for no sentinels is told that there will be none, and gets none.
func TestSentinelsAreLeftOutWhereNobodyNeedsThem(t *testing.T) {
	for asked, want := range map[string]bool{`,"sentinels":false`: false, `,"sentinels":true`: true, "": true} {
		k := start(t, Config{})
		_, said, _ := k.post("/init", `{"value":{"main":"echo"`+asked+`}}`)
		k.post("/run", `{"value":{}}`)
		printed := strings.Contains(k.out.String(), Sentinel) && strings.Contains(k.errors.String(), Sentinel)
		if printed != want || strings.Contains(said, `"sentinels":false`) == want {
			t.Errorf("%s: %s, printed %q and %q", asked, said, k.out.String(), k.errors.String())
		}
	}
}

// A runtime that is asked to end lets the activation that runs finish.
func TestShutdownLetsARunFinish(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	started := make(chan struct{})
	slow := func(context.Context, json.RawMessage) (any, error) {
		close(started)
		time.Sleep(150 * time.Millisecond)
		return map[string]any{"done": true}, nil
	}
	address := "unix:" + filepath.Join(t.TempDir(), "s")
	l, err := Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- New(map[disdel.Task]Handler{"slow": slow},
			Config{Stdout: io.Discard, Stderr: io.Discard, Setenv: func(string, string) error { return nil }}).Serve(ctx, l)
	}()
	k := &container{t: t, client: &http.Client{Transport: &http.Transport{
		DialContext:       dialer(address),
		DisableKeepAlives: true,
	}}}
	k.post("/init", initBody("slow"))
	go func() {
		<-started
		stop()
	}()
	if status, body, _ := k.post("/run", `{"value":{}}`); status != 200 || body != `{"done":true}` {
		t.Errorf("run: %d %s", status, body)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestRunsDoNotOverlap(t *testing.T) {
	k := start(t, Config{})
	k.post("/init", initBody("wait"))
	first := make(chan string)
	go func() {
		status, body := http.StatusConflict, ""
		for status == http.StatusConflict { // one of the runs below may come first, and that is over at once
			status, body, _ = k.post("/run",
				fmt.Sprintf(`{"value":{},"deadline":"%d"}`, time.Now().Add(300*time.Millisecond).UnixMilli()))
		}
		first <- body
	}()
	refused := false
	for !refused {
		select {
		case body := <-first:
			t.Fatalf("no second run was refused while the first ran: %s", body)
		default:
			status, _, _ := k.post("/run", `{"value":{},"deadline":"1"}`)
			refused = status == http.StatusConflict
		}
	}
	if body := <-first; !strings.Contains(body, `"kind":"timeout"`) {
		t.Errorf("first run: %s", body)
	}
}

// The watch answers before the kernel would: with a limit below what the process has, at once.
func TestTheWatchSpeaksBeforeTheKill(t *testing.T) {
	for _, where := range []string{"config", "request"} {
		cfg := Config{
			WatchEvery: time.Millisecond,
			Memory:     func() (disdel.Bytes, disdel.Bytes) { return 98 * disdel.MB, 99 * disdel.MB },
		}
		params := `{}`
		if where == "config" {
			cfg.Limit = 100 * disdel.MB
		} else {
			params = fmt.Sprintf(`{"limitBytes":%d}`, 100*disdel.MB)
		}
		k := start(t, cfg)
		k.post("/init", initBody("wait"))
		_, body, _ := k.post("/run", `{"value":`+params+`}`)
		var res struct{ Error disdel.Error }
		if err := json.Unmarshal([]byte(body), &res); err != nil || !errors.Is(&res.Error, disdel.OOM) {
			t.Errorf("limit by %s: %s, want outOfMemory (%v)", where, body, err)
		}
	}
}

func TestMemoryReadsTheKernelsNumbers(t *testing.T) {
	debug.FreeOSMemory() // pages that earlier tests left would be used again
	resident, peak := Memory()
	if resident == 0 {
		t.Skip("no /proc here")
	}
	hold := make([]byte, 64<<20)
	for i := range hold {
		hold[i] = 1
	}
	after, top := Memory() // pages of files that were mapped meanwhile are off both
	if after-resident < 60*disdel.MB || top < peak-disdel.MB || top < after-disdel.MB {
		t.Errorf("holding 64 MB: resident %v -> %v, peak %v -> %v", resident, after, peak, top)
	}
	_ = hold[len(hold)-1]
}

func FuzzBodies(f *testing.F) {
	f.Add([]byte(initBody("echo")))
	f.Add([]byte(`{"value":{"a":1},"deadline":"12"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s := New(map[disdel.Task]Handler{"echo": func(_ context.Context, p json.RawMessage) (any, error) { return p, nil }},
			Config{Stdout: io.Discard, Stderr: io.Discard})
		for _, path := range []string{"/init", "/run"} {
			w := &recorder{header: http.Header{}}
			r, _ := http.NewRequest(http.MethodPost, "http://x"+path, bytes.NewReader(body))
			s.ServeHTTP(w, r)
			if w.status == 0 {
				t.Fatal("no answer")
			}
		}
	})
}

type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }
