package platform

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/race"
)

// An action below its limit lives, one above it dies for memory, and the record has the measured peak.
func TestMemoryLimitsAreEnforced(t *testing.T) {
	race.SkipMemory(t)
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
	race.SkipMemory(t)
	p := start(t, nil)
	p.limiter.close()
	p.limiter = rlimits{}
	newTestAction(t, p, "allocate", 60000, 128)
	_, got := call(t, p, "POST", ns+"/actions/allocate?blocking=true", `{"mb":300}`)
	if _, result := responseOf(got); fmt.Sprint(result) != "map[error:"+textMemoryExhausted+"]" {
		t.Errorf("got %v", result)
	}
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
	throttle.count, throttle.inFlight = 5, 0
	throttle.minute = time.Now().Unix() / 60
	throttle.mu.Unlock()
	if status, got := call(t, p, "POST", ns+"/actions/sleep", `{"ms":1}`); status != 429 && time.Now().Second() > 1 ||
		status == 429 && got["error"] != "Too many requests in the last minute (count: 6, allowed: 5)." {
		t.Errorf("sixth in a minute: %d %v", status, got)
	}
	throttle.mu.Lock()
	throttle.inFlight = 2
	throttle.mu.Unlock()
}
