package platform

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/openwhisk-client-go/whisk"
	"go.uber.org/goleak"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
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

func TestAKilledContainerReadsAsWhatItWas(t *testing.T) {
	p := start(t, nil)
	newTestAction(t, p, "sleep", 60000, 512) // the race detector multiplies a container's memory
	running := make(chan int)
	refusal := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		pid, _ := strconv.Atoi(r.URL.Query().Get("pid"))
		running <- pid
	}))
	defer refusal.Close()
	_, accepted := call(t, p, "POST", ns+"/actions/sleep", `{"ms":60000,"tell":"`+refusal.URL+`"}`)
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

func TestOnlyTheKeyOpensTheNamespace(t *testing.T) {
	p := start(t, nil)
	for name, c := range map[string]struct {
		auth string
		path string
		want int
		text string
	}{
		"no key": {"", ns + "/actions", 401, errNoKey.text}, "wrong key": {"a:b", ns + "/actions", 401, errWrongKey.text},
		"another namespace": {p.AuthKey(), "/api/v1/namespaces/other/actions", 403, errForbidden("other").text},
		"no route":          {p.AuthKey(), "/api/v1/nothing", 404, errNoRoute.text},
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
	wait.Until(t, "three containers at work", func() bool {
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
