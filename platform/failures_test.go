package platform

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/internal/test/wait"
)

const (
	killed    = "The action did not produce a valid response and exited unexpectedly."
	notJSON   = "The action did not produce a valid JSON or JSON Array response"
	truncated = "Logs were truncated because the total bytes size exceeds the limit of 1048576 bytes."
	noEnd     = "There was an issue while collecting your logs. Data might be missing."
	noRun     = "The action did not initialize or run as expected. Log data might be missing."
)

// Each documented record of an ended activation: its status, its result or the beginning of its error, its last log
// line.
func TestEveryFailureHasOpenWhisksRecord(t *testing.T) {
	for _, c := range []struct {
		main, status, text, last string
		timedOut                 bool
	}{
		{"array", statusSuccess, `[1,2]`, "", false},
		{"killed", statusDeveloper, killed, noRun, false},
		{"init-killed", statusDeveloper, "The action did not initialize and exited unexpectedly.", noRun, false},
		{"hang", statusDeveloper, "The action exceeded its time limits of 3000 milliseconds.", noRun, true},
		{
			"init-hang", statusDeveloper, "The action exceeded its time limits of 3000 milliseconds during initialization.",
			noRun, true,
		},
		{"plain-error", statusDeveloper, notJSON + ": oops", noRun, false},
		{"deep-error", statusDeveloper, `{"error":{"kind":"diverged"}}`, noRun, false},
		{"not-object", statusDeveloper, notJSON + ": 17", noRun, false},
		{"empty", statusDeveloper, notJSON + ".", noRun, false},
		{"chunked", statusDeveloper, killed, noRun, false},
		{"init-plain", statusDeveloper, "The action failed during initialization: oops", noRun, false},
		{"init-deep", statusDeveloper, `{"error":["a","b"]}`, noRun, false},
		{"init-error", statusDeveloper, "no such main", noRun, false},
		{"app-error", statusApplication, `{"error":{"kind":"diverged"}}`, "", false},
		{"allowed", statusSuccess, `{"x":"xxx`, "", false},
		{
			"one-more", statusApplication,
			"The action produced a response that exceeded the allowed length: 1048577 > 1048576 bytes. The truncated response " +
				"was: {", "", false,
		},
		{"busy", statusDeveloper, notJSON, noRun, false},
		{"busy-once", statusSuccess, `{}`, "", false},
		{"init-busy-once", statusSuccess, `{"env"`, "hello from", false},
		{"chatty", statusSuccess, `{}`, truncated, false},
		{"no-sentinel", statusSuccess, `{}`, noEnd, false},
	} {
		t.Run(c.main, func(t *testing.T) {
			p := start(t, nil)
			timeout := 60000
			if c.timedOut {
				timeout = 3000 // a cold start on a busy machine is no part of what is tried
			}
			body := fmt.Sprintf(`{"exec":{"kind":%q,"code":"x","main":%q},"limits":{"timeout":%d,"memory":128,"logs":1}}`,
				disdel.RuntimeKind, c.main, timeout)
			call(t, p, "PUT", ns+"/actions/a", body)
			_, accepted := call(t, p, "POST", ns+"/actions/a", `{}`)
			got := await(t, p, fmt.Sprint(accepted["activationId"]))
			checkRecord(t, got, c.status, c.text)
			if lines, _ := got["logs"].([]any); !strings.Contains(fmt.Sprint(append([]any{""}, lines...)[len(lines)]), c.last) ||
				c.last == "" && len(lines) > 0 {
				t.Errorf("the log is %.300v, want the end %q", lines, c.last)
			}
			if annotation(got, "timeout") != c.timedOut {
				t.Errorf("the annotation timeout is %v", annotation(got, "timeout"))
			}
			kept := c.status == statusSuccess || c.status == statusApplication
			wait.Until(t, "the container kept or destroyed",
				func() bool { return (p.Status().Ready == 1) == kept && p.Status().Running == 0 })
		})
	}
}

// checkRecord compares status and result, of which text is either the JSON or the error's beginning.
func checkRecord(t *testing.T, got map[string]any, status, text string) {
	t.Helper()
	is, result := responseOf(got)
	data, _ := json.Marshal(result)
	m, _ := result.(map[string]any)
	reply := string(data)
	if e, ok := m["error"].(string); ok {
		reply = e
	}
	if is != status || !strings.HasPrefix(reply, text) {
		t.Errorf("%s %.300s, want %s %s", is, reply, status, text)
	}
}

// What ends in a way that depends on the platform's configuration.
func TestOtherFailuresHaveOpenWhisksRecord(t *testing.T) {
	for name, c := range map[string]struct {
		command      []string
		oom          OOMText
		main         string
		status, text string
		memory       bool
	}{
		"never listens": {
			[]string{"sleep", "1000"},
			OOMAsDocker, "echo", statusDeveloper,
			"The action exceeded its time limits of 1500 milliseconds during initialization.", false,
		},
		"no such program": {
			[]string{"/no/such/program"},
			OOMAsDocker, "echo", statusInternal,
			"Failed to provision resources to run the action.", false,
		},
		"ends at once": {
			[]string{"true"},
			OOMAsDocker, "echo", statusDeveloper,
			"The action did not initialize and exited unexpectedly.", false,
		},
		"memory on Docker": {
			nil, OOMAsDocker, "allocate", statusDeveloper,
			"The action exhausted its memory and was aborted.", true,
		},
		"memory on Kubernetes": {nil, OOMAsKubernetes, "allocate", statusDeveloper, killed, true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.memory {
				race.SkipMemory(t)
			}
			p := start(t, func(cfg *Config) {
				cfg.OOM = c.oom
				if c.command != nil {
					cfg.Kinds = map[string]Kind{disdel.RuntimeKind: {Command: c.command}}
				}
			})
			timeout := 60000
			if name == "never listens" {
				timeout = 1500
			}
			newTestAction(t, p, c.main, timeout, 128)
			_, got := call(t, p, "POST", ns+"/actions/"+c.main+"?blocking=true", `{"mb":200}`)
			checkRecord(t, got, c.status, c.text)
			if s := p.Status(); s.Used != 0 {
				t.Errorf("the pool still counts %v", s.Used)
			}
		})
	}
}

func TestALogLimitOfZeroCollectsNothing(t *testing.T) {
	p := start(t, nil)
	call(t, p, "PUT", ns+"/actions/a",
		fmt.Sprintf(`{"exec":{"kind":%q,"code":"x","main":"exit"},"limits":{"logs":0}}`, disdel.RuntimeKind))
	_, accepted := call(t, p, "POST", ns+"/actions/a", `{}`)
	if got := await(t, p, fmt.Sprint(accepted["activationId"])); len(got["logs"].([]any)) != 0 {
		t.Errorf("logs: %v", got["logs"])
	}
}

// The memory of a container's children is its own, whoever counts.
func TestTheWatchCountsChildren(t *testing.T) {
	race.SkipMemory(t)
	kinds := DefaultKinds(os.Args[0])
	if _, ok := kinds["python:3"]; !ok {
		t.Skip("no Python for the child")
	}
	p := start(t, func(c *Config) { c.Kinds = kinds })
	p.limiter.close()
	p.limiter = rlimits{}
	for name, group := range map[string]string{"same": "False", "own": "True"} {
		code := "import subprocess, sys\ndef main(a):\n return {'code': subprocess.run([sys.executable, '-c', 'b = b\"x\" * " +
			"(150 << 20); import time; time.sleep(1000)'], start_new_session=" + group + ").returncode}"
		body, _ := json.Marshal(map[string]any{
			"exec":   map[string]any{"kind": "python:3", "code": code},
			"limits": map[string]any{"memory": 128},
		})
		call(t, p, "PUT", ns+"/actions/"+name, string(body))
		_, got := call(t, p, "POST", ns+"/actions/"+name+"?blocking=true", `{}`)
		checkRecord(t, got, statusDeveloper, textMemoryExhausted)
	}
}
