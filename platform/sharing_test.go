package platform

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
)

// meeting is where actions of a test wait until the test lets them go: each tells its name and is answered when it may.
type meeting struct {
	url  string
	came chan string
	mu   sync.Mutex
	gone map[string]chan struct{}
}

func newMeeting(t *testing.T) *meeting {
	m := &meeting{came: make(chan string, 100), gone: map[string]chan struct{}{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("name")
		m.came <- name
		select {
		case <-m.door(name):
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

func (m *meeting) door(name string) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone[name] == nil {
		m.gone[name] = make(chan struct{})
	}
	return m.gone[name]
}

func (m *meeting) letGo(names ...string) {
	for _, name := range names {
		close(m.door(name))
	}
}

// await waits until so many are there and returns their names in order.
func (m *meeting) await(n int) []string {
	var out []string
	for range n {
		out = append(out, <-m.came)
	}
	slices.Sort(out)
	return out
}

// shared is a platform whose containers may be shared by up to four, and a meeting for their activations.
func shared(t *testing.T, change func(*Config)) (*Platform, *meeting) {
	t.Helper()
	kinds := DefaultKinds(os.Args[0])
	if _, ok := kinds["nodejs:20"]; !ok {
		t.Skip("this machine has no Node.js")
	}
	p := start(t, func(c *Config) {
		c.Kinds = kinds
		c.Limits.Concurrency.Max = 4
		if change != nil {
			change(c)
		}
	})
	return p, newMeeting(t)
}

// meets is an action that prints, meets the test, and prints again. It returns its process, or does what it is asked
// to.
const meets = `const http = require('http')
async function main (args) {
  process.stdout.write('before ' + args.name + ', not ended')
  await new Promise((resolve, reject) => {
    http.get(args.url + '?name=' + args.name, res => res.resume().on('end', resolve)).on('error', reject)
  })
  if (args.exit) process.exit(1)
  if (args.hang) await new Promise(() => {})
  if (args.fail) return 'no object'
  console.log(' but now')
  console.error('after ' + args.name)
  return { pid: process.pid }
}`

func createShared(t *testing.T, p *Platform, name, kind, code string, concurrency, timeout int) {
	t.Helper()
	body, _ := json.Marshal(map[string]any{
		"exec":   map[string]any{"kind": kind, "code": code},
		"limits": map[string]any{"concurrency": concurrency, "timeout": timeout, "memory": 256},
	})
	if status, got := call(t, p, "PUT", ns+"/actions/"+name+"?overwrite=true", string(body)); status != 200 {
		t.Fatalf("create: %d %v", status, got)
	}
}

// begin starts an activation of the action and returns its id.
func (m *meeting) begin(t *testing.T, p *Platform, action, name, more string) string {
	t.Helper()
	_, got := call(t, p, "POST", ns+"/actions/"+action, fmt.Sprintf(`{"url":%q,"name":%q%s}`, m.url, name, more))
	id, ok := got["activationId"].(string)
	if !ok {
		t.Fatalf("%s: %v", name, got)
	}
	return id
}

// Up to as many as the action allows share a container, from its /init on; more get another one. Each has its own log,
// and a record that lays no claim to the memory of all.
func TestActivationsShareAContainer(t *testing.T) {
	p, m := shared(t, nil)
	createShared(t, p, "meets", "nodejs:20", meets, 4, 60000)
	names := []string{"a", "b", "c", "d", "e"}
	ids := map[string]string{}
	for _, name := range names {
		ids[name] = m.begin(t, p, "meets", name, "")
	}
	if got := m.await(5); !slices.Equal(got, names) {
		t.Fatalf("%v came", got)
	}
	if s := p.Status(); s.Running != 2 || s.Used != 512*disdel.MB {
		t.Errorf("five activations of which four may share: %+v", s)
	}
	m.letGo(names...)
	processes, cold := map[any]int{}, 0
	for name, id := range ids {
		got := await(t, p, id)
		status, result := responseOf(got)
		if status != statusSuccess {
			t.Fatalf("%s: %s %v", name, status, result)
		}
		pid := result.(map[string]any)["pid"]
		processes[pid]++
		if annotation(got, "initTime") != nil {
			cold++
		}
		logs := fmt.Sprint(got["logs"])
		lines, _ := got["logs"].([]any)
		if len(lines) != 2 || !strings.Contains(logs, "stdout: before "+name+", not ended but now") ||
			!strings.Contains(logs, "stderr: after "+name) {
			t.Errorf("log of %s: %v", name, got["logs"])
		}
	}
	if len(processes) != 2 || cold != 2 {
		t.Errorf("activations by process: %v, of them cold: %d", processes, cold)
	}
	for name, id := range ids {
		got := await(t, p, id)
		_, result := responseOf(got)
		together := processes[result.(map[string]any)["pid"]] > 1
		if with, peak := annotation(got, "sharedWith"), annotation(got, "peakMemory"); together != (with == 3.0) ||
			together == (peak != nil) {
			t.Errorf("%s: shared %v, sharedWith %v, peakMemory %v", name, together, with, peak)
		}
	}
	wait.Until(t, "both idle", func() bool { s := p.Status(); return s.Running == 0 && s.Ready == 2 })
}

// One that fails closes the container: it takes no others, those that are in it go on, and it goes with the last one.
func TestAFailureClosesASharedContainer(t *testing.T) {
	p, m := shared(t, nil)
	createShared(t, p, "meets", "nodejs:20", meets, 4, 60000)
	other := m.begin(t, p, "meets", "other", "")
	m.await(1)
	failing := m.begin(t, p, "meets", "failing", `,"fail":true`)
	m.await(1)
	m.letGo("failing")
	got := await(t, p, failing)
	want := "map[error:The action did not return a dictionary or array.]"
	if status, result := responseOf(got); status != statusDeveloper || fmt.Sprint(result) != want {
		t.Errorf("%s %v", status, result)
	}
	third := m.begin(t, p, "meets", "third", "")
	m.await(1)
	m.letGo("other", "third")
	processes := map[any]bool{}
	for _, id := range []string{other, third} {
		status, result := responseOf(await(t, p, id))
		if status != statusSuccess {
			t.Fatalf("%s %v", status, result)
		}
		processes[result.(map[string]any)["pid"]] = true
	}
	if len(processes) != 2 {
		t.Error("a container that had failed an activation took another one")
	}
	wait.Until(t, "the failed container gone", func() bool { s := p.Status(); return s.Running == 0 && s.Ready == 1 })
}

// A container that dies takes with it all that were in it; one that one of them has waited for too long goes.
func TestADeathEndsAllThatShareAContainer(t *testing.T) {
	p, m := shared(t, nil)
	createShared(t, p, "meets", "nodejs:20", meets, 4, 60000)
	ids := []string{m.begin(t, p, "meets", "other", ""), m.begin(t, p, "meets", "dies", `,"exit":true`)}
	m.await(2)
	m.letGo("dies")
	for _, id := range ids {
		if status, result := responseOf(await(t, p, id)); status != statusDeveloper ||
			fmt.Sprint(result) != "map[error:"+textAbnormalRun+"]" {
			t.Errorf("%s %v", status, result)
		}
	}
	createShared(t, p, "meets", "nodejs:20", meets, 4, 2000)
	hanging := m.begin(t, p, "meets", "hangs", `,"hang":true`)
	m.letGo("hangs")
	got := await(t, p, hanging)
	if _, result := responseOf(got); fmt.Sprint(result) != "map[error:"+textTimeout(2*time.Second, false)+"]" &&
		fmt.Sprint(result) != "map[error:"+textTimeout(2*time.Second, true)+"]" { // on a machine that is very busy
		t.Errorf("%v", result)
	}
	wait.Until(t, "nothing left", func() bool { s := p.Status(); return s.Running+s.Ready+s.Paused == 0 && s.Used == 0 })
}

// Containers of a kind that knows one activation at a time are not shared, whatever the action's limit says.
func TestKindsThatKnowOneActivationAreNotShared(t *testing.T) {
	p, m := shared(t, func(c *Config) {
		kind := c.Kinds["nodejs:20"]
		kind.Env = nil
		c.Kinds["nodejs:20"] = kind
	})
	createShared(t, p, "meets", "nodejs:20", meets, 4, 60000)
	ids := []string{m.begin(t, p, "meets", "a", ""), m.begin(t, p, "meets", "b", "")}
	m.await(2)
	if s := p.Status(); s.Running != 2 {
		t.Errorf("%+v", s)
	}
	m.letGo("a", "b")
	for _, id := range ids {
		got := await(t, p, id)
		if status, _ := responseOf(got); status != statusSuccess || annotation(got, "sharedWith") != nil {
			t.Errorf("%v", got)
		}
	}
}

// Where a kind names the mains whose activations may be together, those of others are not.
func TestOnlyMainsThatAreNamedShare(t *testing.T) {
	cfg := Config{Kinds: DefaultKinds("unused")}
	for main, want := range map[string]int{"infer": 4, "train": 1, "aggregate": 1, "": 1} {
		a := &action{Exec: execSpec{Kind: disdel.RuntimeKind, Main: main}, Limits: limits{Concurrency: 4}}
		if got := cfg.capacityOf(a); got != want {
			t.Errorf("%q: %d may share a container, want %d", main, got, want)
		}
	}
}
