package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/openwhisk-client-go/whisk"
	"go.uber.org/goleak"

	"github.com/disdel/disdel"
)

// The test binary is the container, too: with a first argument of "serve" it speaks /init and /run on the address of
// the second, and behaves as the action's main says.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "serve" {
		serve(os.Args[2])
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "hold" {
		hold(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

func serve(address string) {
	l, err := net.Listen("unix", strings.TrimPrefix(address, "unix:"))
	if err != nil {
		os.Exit(1)
	}
	var main string
	var held [][]byte
	reply := func(w http.ResponseWriter, status int, body string) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
	http.HandleFunc("/init", func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Value struct{ Main string } }
		json.NewDecoder(r.Body).Decode(&req)
		main = req.Value.Main
		switch main {
		case "init-exit":
			os.Exit(3)
		case "init-hang":
			time.Sleep(time.Hour)
		case "init-error":
			reply(w, 502, `{"error":"no such main"}`)
		default:
			if f := initBehaviours[main]; f != nil {
				status, answer := f()
				reply(w, status, answer)
				return
			}
			reply(w, 200, `{"ok":true}`)
		}
	})
	http.HandleFunc("/run", func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Value map[string]any `json:"value"`
			ID    string         `json:"activation_id"`
		}
		raw, _ := io.ReadAll(r.Body)
		json.Unmarshal(raw, &req)
		defer func() {
			if main == "no-sentinel" {
				return
			}
			fmt.Println(sentinel)
			fmt.Fprintln(os.Stderr, sentinel)
		}()
		switch main {
		case "exit":
			os.Exit(1)
		case "hang":
			time.Sleep(time.Hour)
		case "sleep":
			if url, ok := req.Value["tell"].(string); ok { // that it runs, and in which process
				http.Get(url + "?pid=" + fmt.Sprint(os.Getpid())) //nolint:errcheck // the test fails for want of it
			}
			time.Sleep(time.Duration(req.Value["ms"].(float64)) * time.Millisecond)
			reply(w, 200, `{"slept":true}`)
		case "allocate":
			for range int(req.Value["mb"].(float64)) {
				b := make([]byte, 1<<20)
				for i := range b {
					b[i] = 1
				}
				held = append(held, b)
				time.Sleep(500 * time.Microsecond)
			}
			reply(w, 200, fmt.Sprintf(`{"held":%d}`, len(held)))
		case "app-error":
			reply(w, 200, `{"error":{"kind":"diverged"},"other":1}`)
		case "dev-error":
			reply(w, 500, `{"error":"broken"}`)
		case "text":
			reply(w, 200, `hello`)
		case "mirror": // what it is given, be it an array
			var given struct{ Value json.RawMessage }
			json.Unmarshal(raw, &given)
			reply(w, 200, string(given.Value))
		case "chunked":
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			io.WriteString(w, `{}`)
		case "large":
			reply(w, 200, `{"x":"`+strings.Repeat("x", 2<<20)+`"}`)
		default:
			if f := behaviours[main]; f != nil {
				status, answer := f(req.Value)
				reply(w, status, answer)
				return
			}
			fmt.Println("hello from", os.Getpid())
			body, _ := json.Marshal(map[string]any{"pid": os.Getpid(), "got": req.Value, "env": os.Environ()})
			reply(w, 200, string(body))
		}
	})
	http.Serve(l, nil)
}

func start(t *testing.T, change func(*Config)) *Platform {
	t.Helper()
	cfg := DefaultConfig()
	cfg.TempDir = t.TempDir()
	cfg.Limits.InvocationsPerMinute = 10000
	cfg.Kinds = map[string]Kind{disdel.RuntimeKind: {Command: []string{os.Args[0], "serve", "{listen}"}}}
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	fences := p.fences
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
		if left, _ := os.ReadDir(cfg.TempDir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		for _, base := range fences.folders() {
			if _, err := os.Stat(base); err == nil {
				t.Errorf("a group left behind: %s", base)
			}
		}
	})
	return p
}

// call makes a request and returns status and body.
func call(t *testing.T, p *Platform, method, path, body string) (int, map[string]any) {
	t.Helper()
	req, _ := http.NewRequest(method, p.URL()+path, strings.NewReader(body))
	user, key, _ := strings.Cut(p.AuthKey(), ":")
	req.SetBasicAuth(user, key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, _ := io.ReadAll(res.Body)
	var out map[string]any
	json.Unmarshal(data, &out)
	if out == nil {
		out = map[string]any{"text": string(data)}
	}
	if len(res.Header.Get("X-Request-ID")) != 32 {
		t.Errorf("%s %s: X-Request-ID %q", method, path, res.Header.Get("X-Request-ID"))
	}
	return res.StatusCode, out
}

const ns = "/api/v1/namespaces/_"

// newTestAction creates an action whose container behaves as main.
func newTestAction(t *testing.T, p *Platform, main string, timeout, memory int) {
	t.Helper()
	body := fmt.Sprintf(`{"exec":{"kind":%q,"code":"x","main":%q},"limits":{"timeout":%d,"memory":%d}}`,
		disdel.RuntimeKind, main, timeout, memory)
	if status, got := call(t, p, "PUT", ns+"/actions/"+main+"?overwrite=true", body); status != 200 {
		t.Fatalf("create %s: %d %v", main, status, got)
	}
}

func responseOf(got map[string]any) (status string, result any) {
	r, _ := got["response"].(map[string]any)
	status, _ = r["status"].(string)
	return status, r["result"]
}

func annotation(got map[string]any, key string) any {
	list, _ := got["annotations"].([]any)
	for _, a := range list {
		if m, _ := a.(map[string]any); m["key"] == key {
			return m["value"]
		}
	}
	return nil
}

// skipUnderRace leaves out what measures memory: the race detector multiplies it.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("the race detector multiplies a container's memory")
	}
}

// How each end of an activation reads: OpenWhisk's status codes and texts.
func TestEndsReadAsOpenWhisksDo(t *testing.T) {
	p := start(t, nil)
	for _, c := range []struct {
		main, args string
		http       int
		status     string
		text       string
		timedOut   bool
	}{
		{"echo", `{"a":1}`, 200, statusSuccess, "", false},
		{"app-error", `{}`, 502, statusApplication, "map[kind:diverged]", false},
		{"dev-error", `{}`, 502, statusDeveloper, "broken", false},
		{"text", `{}`, 502, statusDeveloper, "The action did not produce a valid JSON or JSON Array response: hello", false},
		{
			"chunked", `{}`, 502, statusDeveloper, "The action did not produce a valid response and exited unexpectedly.",
			false,
		},
		{"exit", `{}`, 502, statusDeveloper, "The action did not produce a valid response and exited unexpectedly.", false},
		{"init-exit", `{}`, 502, statusDeveloper, "The action did not initialize and exited unexpectedly.", false},
		{"init-error", `{}`, 502, statusDeveloper, "no such main", false},
		{"hang", `{}`, 502, statusDeveloper, "The action exceeded its time limits of 3000 milliseconds.", true},
		{
			"init-hang", `{}`, 502, statusDeveloper,
			"The action exceeded its time limits of 3000 milliseconds during initialization.", true,
		},
		{
			"large", `{}`, 502, statusApplication,
			"The action produced a response that exceeded the allowed length: 2097160 > 1048576 bytes.", false,
		},
	} {
		timeout := 60000
		if c.timedOut {
			timeout = 3000 // a cold start on a busy machine is no part of what is tried
		}
		newTestAction(t, p, c.main, timeout, 128)
		code, got := call(t, p, "POST", ns+"/actions/"+c.main+"?blocking=true", c.args)
		status, result := responseOf(got)
		if code != c.http || status != c.status {
			t.Errorf("%s: %d %s %v, want %d %s", c.main, code, status, result, c.http, c.status)
			continue
		}
		m, _ := result.(map[string]any)
		if c.text != "" && !strings.HasPrefix(fmt.Sprint(m["error"]), c.text) {
			t.Errorf("%s: %v, want %s", c.main, m["error"], c.text)
		}
		if c.status == statusApplication && len(m) != 1 {
			t.Errorf("%s: an application error keeps %v beside the error", c.main, m)
		}
		if annotation(got, "timeout") != c.timedOut {
			t.Errorf("%s: annotation timeout is %v", c.main, annotation(got, "timeout"))
		}
	}
}

func TestWarmContainersAreReusedAndFailedOnesAreNot(t *testing.T) {
	p := start(t, nil)
	newTestAction(t, p, "echo", 60000, 128)
	pid := func() (any, bool) {
		_, got := call(t, p, "POST", ns+"/actions/echo?blocking=true", `{}`)
		_, result := responseOf(got)
		m, _ := result.(map[string]any)
		return m["pid"], annotation(got, "initTime") != nil
	}
	first, cold := pid()
	second, cold2 := pid()
	if !cold || cold2 || first != second {
		t.Errorf("pids %v (cold %v) and %v (cold %v)", first, cold, second, cold2)
	}
	newTestAction(t, p, "echo", 60000, 128) // a new version is another action
	if third, cold := pid(); third == first || !cold {
		t.Errorf("the old container served the new version")
	}
	newTestAction(t, p, "dev-error", 60000, 128)
	for range 2 {
		if _, got := call(t, p, "POST", ns+"/actions/dev-error?blocking=true", `{}`); annotation(got, "initTime") == nil {
			t.Error("a container was kept after a developer error")
		}
	}
}

func TestContainersSeeNothingOfThePlatform(t *testing.T) {
	t.Setenv("SECRET_OF_THE_CONTROLLER", "x")
	p := start(t, nil)
	newTestAction(t, p, "echo", 60000, 128)
	_, got := call(t, p, "POST", ns+"/actions/echo?blocking=true&result=true", `{}`)
	if text := fmt.Sprint(got["env"]); strings.Contains(text, "SECRET_OF") || !strings.Contains(text, "TMPDIR=") {
		t.Errorf("environment: %s", text)
	}
}

// An action below its limit lives, one above it dies for memory, and the record has the measured peak.
func TestMemoryLimitsAreEnforced(t *testing.T) {
	skipUnderRace(t)
	for _, style := range []OOMText{OOMAsDocker, OOMAsKubernetes} {
		t.Run(fmt.Sprint(style), func(t *testing.T) { memoryIsEnforced(t, style) })
	}
}

func memoryIsEnforced(t *testing.T, style OOMText) {
	p := start(t, func(c *Config) { c.OOM = style })
	newTestAction(t, p, "allocate", 60000, 128)
	_, got := call(t, p, "POST", ns+"/actions/allocate?blocking=true", `{"mb":80}`)
	if status, result := responseOf(got); status != statusSuccess {
		t.Errorf("80 of 128 MB (%s): %s %v", p.Enforcement(), status, result)
	}
	if peak, _ := annotation(got, "peakMemory").(float64); peak < 80<<20 || peak > 128<<20 {
		t.Errorf("peak %v of 80 MB held", peak)
	}
	_, got = call(t, p, "POST", ns+"/actions/allocate?blocking=true", `{"mb":200}`)
	status, result := responseOf(got)
	want := map[OOMText]string{OOMAsDocker: textMemoryExhausted, OOMAsKubernetes: textAbnormalRun}[style]
	if m, _ := result.(map[string]any); status != statusDeveloper || m["error"] != want {
		t.Errorf("280 of 128 MB (%s): %s %v, want %s", p.Enforcement(), status, result, want)
	}
}

// Without control groups the watch and RLIMIT_DATA do it.
func TestTheWatchAloneEnforcesMemory(t *testing.T) {
	skipUnderRace(t)
	p := start(t, nil)
	p.fences.close()
	p.fences = rlimits{}
	newTestAction(t, p, "allocate", 60000, 128)
	_, got := call(t, p, "POST", ns+"/actions/allocate?blocking=true", `{"mb":300}`)
	if _, result := responseOf(got); fmt.Sprint(result) != "map[error:"+textMemoryExhausted+"]" {
		t.Errorf("got %v", result)
	}
}

func TestAKilledContainerReadsAsWhatItWas(t *testing.T) {
	p := start(t, nil)
	newTestAction(t, p, "sleep", 60000, 512) // the race detector multiplies a container's memory
	running := make(chan int)
	told := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		pid, _ := strconv.Atoi(r.URL.Query().Get("pid"))
		running <- pid
	}))
	defer told.Close()
	_, accepted := call(t, p, "POST", ns+"/actions/sleep", `{"ms":60000,"tell":"`+told.URL+`"}`)
	id, _ := accepted["activationId"].(string)
	select {
	case pid := <-running:
		syscall.Kill(pid, syscall.SIGKILL)
	case <-time.After(time.Minute):
		t.Fatalf("it does not run: %v", await(t, p, id))
	}
	got := await(t, p, id)
	if status, result := responseOf(got); status != statusDeveloper || fmt.Sprint(result) != "map[error:"+textAbnormalRun+
		"]" {
		t.Errorf("%s %v", status, result)
	}
}

// childrenOf are a process's containers.
func childrenOf(t *testing.T, parent int) (out []int) {
	t.Helper()
	list, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range list {
		data, err := os.ReadFile(f)
		var pid, ppid int
		var name, state string
		if err != nil {
			continue
		}
		if _, err := fmt.Sscanf(string(data), "%d %s %s %d", &pid, &name, &state, &ppid); err == nil && ppid == parent &&
			state != "Z" && strings.Contains(name, "platform") {
			out = append(out, pid)
		}
	}
	return out
}

func await(t *testing.T, p *Platform, id string) map[string]any {
	t.Helper()
	for range 1000 {
		if status, got := call(t, p, "GET", ns+"/activations/"+id, ""); status == 200 {
			return got
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("no record of %s", id)
	return nil
}

// The pool counts memory, serves in order, and evicts idle containers for others.
func TestThePoolHoldsItsMemory(t *testing.T) {
	p := start(t, func(c *Config) { c.PoolMemory = 256 * disdel.MB })
	newTestAction(t, p, "sleep", 60000, 128)
	var ids []string
	for range 6 {
		_, got := call(t, p, "POST", ns+"/actions/sleep", `{"ms":60}`)
		ids = append(ids, got["activationId"].(string))
		time.Sleep(2 * time.Millisecond)
	}
	var starts []float64
	for _, id := range ids {
		got := await(t, p, id)
		starts = append(starts, got["start"].(float64))
	}
	for i := 2; i < len(starts); i++ { // there is room for two, which may overtake each other
		if starts[i] < starts[i-2] {
			t.Errorf("activation %d started before %d: %v", i, i-2, starts)
		}
	}
	p.pool.mu.Lock()
	used := p.pool.used
	p.pool.mu.Unlock()
	if used > 256*disdel.MB {
		t.Errorf("%v of 256 MB in use", used)
	}
	newTestAction(t, p, "echo", 60000, 256) // needs all of the pool: idle containers go
	if status, got := call(t, p, "POST", ns+"/actions/echo?blocking=true", `{}`); status != 200 {
		t.Errorf("after eviction: %d %v", status, got)
	}
}

func TestThrottlesAndLimitsSpeakAsOpenWhisk(t *testing.T) {
	p := start(t, func(c *Config) { c.Limits.InvocationsPerMinute = 5; c.Limits.ConcurrentInvocations = 2 })
	for _, c := range []struct{ path, body, want string }{
		{
			"/actions/a", `{"exec":{"kind":"disdel:1","code":"x"},"limits":{"memory":1024}}`,
			"requirement failed: memory size 1024 MB exceeds allowed threshold of 512 MB",
		},
		{
			"/actions/a", `{"exec":{"kind":"disdel:1","code":"x"},"limits":{"memory":64}}`,
			"requirement failed: memory size 64 MB below allowed threshold of 128 MB",
		},
		{
			"/actions/a", `{"exec":{"kind":"disdel:1","code":"x"},"limits":{"timeout":301000}}`,
			"requirement failed: duration 301000 milliseconds exceeds allowed threshold of 300000 milliseconds",
		},
		{
			"/actions/a", `{"exec":{"kind":"cobol","code":"x"}}`,
			"The request content was malformed:\nThe specified runtime 'cobol' is not supported by this platform. Valid " +
				"values are: 'disdel:1', 'blackbox', 'sequence'.",
		},
		{"/actions/a", `{`, "The request content was malformed:"},
	} {
		if status, got := call(t, p, "PUT", ns+c.path, c.body); status != 400 ||
			!strings.HasPrefix(fmt.Sprint(got["error"]), c.want) {
			t.Errorf("%s: %d %v, want %s", c.body, status, got["error"], c.want)
		}
	}
	newTestAction(t, p, "sleep", 60000, 128)
	if status, got := call(t, p, "PUT", ns+"/actions/sleep", `{"exec":{"kind":"disdel:1"}}`); status != 409 ||
		got["error"] != "resource already exists" {
		t.Errorf("create twice: %d %v", status, got)
	}
	if status, got := call(t, p, "POST", ns+"/actions/sleep", `{"x":"`+strings.Repeat("x", 1<<20)+`"}`); status != 413 ||
		!strings.HasPrefix(fmt.Sprint(got["error"]), "Request larger than allowed: 1048584 > 1048576 bytes.") {
		t.Errorf("large parameters: %d %v", status, got)
	}
	for range 2 {
		call(t, p, "POST", ns+"/actions/sleep", `{"ms":300}`)
	}
	if status, got := call(t, p, "POST", ns+"/actions/sleep", `{"ms":1}`); status != 429 ||
		got["error"] != "Too many concurrent requests in flight (count: 2, allowed: 2)." {
		t.Errorf("third at once: %d %v", status, got)
	}
	throttle := &p.users[0].invocations
	throttle.mu.Lock()
	throttle.count, throttle.flying = 5, 0
	throttle.minute = time.Now().Unix() / 60
	throttle.mu.Unlock()
	if status, got := call(t, p, "POST", ns+"/actions/sleep", `{"ms":1}`); status != 429 && time.Now().Second() > 1 ||
		status == 429 && got["error"] != "Too many requests in the last minute (count: 6, allowed: 5)." {
		t.Errorf("sixth in a minute: %d %v", status, got)
	}
	throttle.mu.Lock()
	throttle.flying = 2
	throttle.mu.Unlock()
}

func TestOnlyTheKeyOpensTheNamespace(t *testing.T) {
	p := start(t, nil)
	for name, c := range map[string]struct {
		auth string
		path string
		want int
		text string
	}{
		"no key": {"", ns + "/actions", 401, textNoAuth}, "wrong key": {"a:b", ns + "/actions", 401, textBadAuth},
		"another namespace": {p.AuthKey(), "/api/v1/namespaces/other/actions", 403, textForbidden("other")},
		"no route":          {p.AuthKey(), "/api/v1/nothing", 404, textNoRoute},
	} {
		req, _ := http.NewRequest("GET", p.URL()+c.path, nil)
		if user, key, ok := strings.Cut(c.auth, ":"); ok {
			req.SetBasicAuth(user, key)
		}
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != c.want || !bytes.Contains(data, []byte(c.text)) {
			t.Errorf("%s: %d %s", name, res.StatusCode, data)
		}
	}
}

// Another program's client: openwhisk-client-go over the verbs that jobs use.
func TestWithOpenWhisksOwnClient(t *testing.T) {
	p := start(t, nil)
	transport := &http.Transport{DisableKeepAlives: true}
	client, err := whisk.NewClient(&http.Client{Transport: transport},
		&whisk.Config{Host: p.URL(), AuthToken: p.AuthKey(), Namespace: "_"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := client.Packages.Insert(&whisk.Package{Name: "pkg"}, false); err != nil {
		t.Fatal(err)
	}
	code, memory, timeout := "x", 128, 5000
	a, _, err := client.Actions.Insert(&whisk.Action{
		Name:   "pkg/echo",
		Exec:   &whisk.Exec{Kind: disdel.RuntimeKind, Code: &code, Main: "echo"},
		Limits: &whisk.Limits{Memory: &memory, Timeout: &timeout},
	}, false)
	if err != nil || a.Version != "0.0.1" || a.Namespace != "guest/pkg" {
		t.Fatalf("%+v, %v", a, err)
	}
	if list, _, err := client.Actions.List("pkg", &whisk.ActionListOptions{Limit: 10}); err != nil || len(list) != 1 ||
		list[0].Name != "echo" {
		t.Errorf("list: %v, %v", list, err)
	}
	accepted, _, err := client.Actions.Invoke("pkg/echo", map[string]any{"n": 1}, false, false)
	if err != nil {
		t.Fatal(err)
	}
	id := accepted.(map[string]any)["activationId"].(string)
	await(t, p, id)
	got, _, err := client.Activations.Get(id)
	if err != nil || got.Response.Status != "success" || got.ActivationID != id {
		t.Errorf("%+v, %v", got, err)
	}
	if logs, _, err := client.Activations.Logs(id); err != nil || len(logs.Logs) != 1 ||
		!strings.Contains(logs.Logs[0], "stdout: hello from") {
		t.Errorf("logs %v, %v", logs, err)
	}
	if list, _, err := client.Activations.List(&whisk.ActivationListOptions{Limit: 5}); err != nil || len(list) != 1 {
		t.Errorf("%d activations, %v", len(list), err)
	}
	if res, err := client.Packages.Delete("pkg"); err == nil || res.StatusCode != 409 {
		t.Errorf("deleting a package that is not empty: %v", err)
	}
	if _, err := client.Actions.Delete("pkg/echo"); err != nil {
		t.Error(err)
	}
	if _, err := client.Packages.Delete("pkg"); err != nil {
		t.Error(err)
	}
	if _, res, err := client.Actions.Get("pkg/echo", false); err == nil || res.StatusCode != 404 {
		t.Errorf("after delete: %v", err)
	}
}

// Many at once, through a pool for two: no activation is lost.
func TestNoActivationIsLostUnderLoad(t *testing.T) {
	p := start(t, func(c *Config) { c.PoolMemory = 256 * disdel.MB; c.Limits.ConcurrentInvocations = 100 })
	newTestAction(t, p, "sleep", 60000, 128)
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			if status, got := call(t, p, "POST", ns+"/actions/sleep?blocking=true", `{"ms":1}`); status != 200 {
				t.Errorf("%d %v", status, got)
			}
		})
	}
	all.Wait()
	if _, got := call(t, p, "GET", ns+"/activations?count=true", ""); got["activations"] != 40.0 {
		t.Errorf("%v records, want 40", got["activations"])
	}
}

// Close with an activation under way: nothing hangs, nothing stays (start's clean-up looks).
func TestCloseEndsWhatRuns(t *testing.T) {
	p := start(t, nil)
	newTestAction(t, p, "sleep", 60000, 128)
	var ids []string
	for range 3 {
		_, got := call(t, p, "POST", ns+"/actions/sleep", `{"ms":60000}`)
		ids = append(ids, fmt.Sprint(got["activationId"]))
	}
	var pids []int
	until(t, "three containers at work", func() bool {
		pids = childrenOf(t, os.Getpid())
		return p.Status().Running == 3 && len(pids) >= 3
	})
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		if !gone(pid) {
			t.Errorf("process %d survives", pid)
		}
	}
	if len(ids) != 3 || p.Status().Running != 0 || p.Status().Used != 0 {
		t.Errorf("%v, %+v", ids, p.Status())
	}
}
