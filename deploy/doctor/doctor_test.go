package doctor_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/aggregator/embedded"
	"github.com/disdel/disdel/deploy/doctor"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/internal/test/deploytest"
	"github.com/disdel/disdel/platform"
)

func TestMain(m *testing.M) {
	if !deploytest.Served() {
		os.Exit(m.Run())
	}
}

// cluster is an OpenWhisk of this test with a Redis beside it, as a doctor examines them.
func cluster(t *testing.T, change func(*platform.Config)) doctor.Config {
	t.Helper()
	p := deploytest.Platform(t, func(c *platform.Config) {
		if c.PoolMemory = disdel.GB; change != nil {
			change(c)
		}
	})
	redis, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { redis.Close() })
	store := disdel.Store{URLs: []string{redis.URL()}}
	board, err := aggregator.Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { board.Close() })
	return doctor.Config{
		Executor: invoker(t, p.URL(), p.AuthKey()), Host: p.URL(), ProgressStore: board, Store: &store,
		Models: "file://" + t.TempDir(), MaxContainers: 10, Settle: 10 * time.Second,
	}
}

func invoker(t *testing.T, host, key string) *executor.Executor {
	t.Helper()
	return deploytest.Executor(t, host, key, 200*time.Millisecond)
}

// examine is a report, and the state of each check.
func examine(t *testing.T, cfg doctor.Config) (doctor.Report, map[string]string) {
	t.Helper()
	report, err := doctor.Examine(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, f := range report.Findings {
		states[f.Check] = f.State.String()
	}
	return report, states
}

// finding is one that has to be there with a state, what it says and what is to be done.
func finding(t *testing.T, r doctor.Report, check string, state doctor.State, said ...string) {
	t.Helper()
	f, ok := r.Find(check)
	if !ok || f.State != state {
		t.Fatalf("%s: %v\n%+v", check, ok, r.Findings)
	}
	text := strings.Join([]string{f.Found, f.Means, f.Fix, f.Key, f.Value}, "\n")
	for _, want := range said {
		if !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", check, want, text)
		}
	}
}

// Everything that can be found out of a cluster is found out, and nothing stays there.
func TestAHealthyCluster(t *testing.T) {
	cfg := cluster(t, nil)
	told := 0
	cfg.OnFinding = func(doctor.Finding) { told++ }
	report, states := examine(t, cfg)
	want := map[string]string{
		"api": "ok", "credentials": "ok", "limits": "ok", "throttles": "ok", "image": "ok", "processors": "ok",
		"clock": "ok", "redis": "ok", "storage": "ok", "couchdb": "note", "pool": "ok", "memory": "ok", "timeout": "ok",
		"outOfMemory": "ok",
	}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("(-want +got)\n%s%+v", diff, report.Findings)
	}
	if err := report.Err(); err != nil || told != len(report.Findings) {
		t.Errorf("%v, told %d", err, told)
	}
	facts := report.Facts
	if facts.Pool != disdel.GB || facts.AtLeast || facts.Nodes > 1 || facts.Processors < 1 ||
		facts.Largest != 512*disdel.MB || facts.PerMinute != 6000 || facts.TellsOOM == nil || !*facts.TellsOOM {
		t.Errorf("%+v", facts)
	}
	if _, err := cfg.Executor.Deployment(t.Context(), "disdel-doctor"); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("%v", err)
	}
}

// A pool that holds everything that was asked for is known to be so large at least.
func TestAPoolThatIsNotFilled(t *testing.T) {
	cfg := cluster(t, func(c *platform.Config) { c.PoolMemory = 16 * disdel.GB })
	cfg.MaxContainers = 2
	report, _ := examine(t, cfg)
	finding(t, report, doctor.CheckPool, doctor.Good, "at least 1.00 GB")
	if !report.Facts.AtLeast || report.Facts.Largest != 512*disdel.MB {
		t.Errorf("%+v", report.Facts)
	}
}

func TestWrongCredentials(t *testing.T) {
	cfg := cluster(t, nil)
	cfg.Executor = invoker(t, cfg.Host, "00000000-0000-4000-8000-000000000000:wrong")
	report, states := examine(t, cfg)
	finding(t, report, doctor.CheckCredentials, doctor.Problem, "refuses the key", "DISDEL_AUTH")
	if _, more := states[doctor.CheckImage]; more || disdel.KindOf(report.Err()) != disdel.Denied {
		t.Errorf("%v, %v", states, report.Err())
	}
}

func TestAHostThatIsNotThere(t *testing.T) {
	cfg := doctor.Config{Executor: invoker(t, "http://127.0.0.1:1", "a:b"), Host: "http://127.0.0.1:1"}
	report, states := examine(t, cfg)
	finding(t, report, doctor.CheckAPI, doctor.Problem, "does not answer")
	if len(states) != 1 || disdel.KindOf(report.Err()) != disdel.Unavailable {
		t.Errorf("%v, %v", states, report.Err())
	}
}

func TestALimitThatIsTooSmall(t *testing.T) {
	cfg := cluster(t, func(c *platform.Config) { c.Limits.Memory.Max = 256 * disdel.MB })
	cfg.Need, cfg.MaxContainers = disdel.Limits{Memory: 512 * disdel.MB}, 1
	report, _ := examine(t, cfg)
	finding(t, report, doctor.CheckLimits, doctor.Problem, "256 MB at most", "whisk.limits.actions.memory.max", "512m")
	if disdel.KindOf(report.Err()) != disdel.OverLimit {
		t.Errorf("%v", report.Err())
	}
}

// An action larger than the pool waits for ever on OpenWhisk, and everything behind it: that it would is found out
// without trying it.
func TestAPoolSmallerThanTheAction(t *testing.T) {
	cfg := cluster(t, func(c *platform.Config) { c.PoolMemory = 256 * disdel.MB })
	cfg.Need = disdel.Limits{Memory: 512 * disdel.MB}
	report, states := examine(t, cfg)
	finding(t, report, doctor.CheckPool, doctor.Problem, "256 MB of containers ran at once", "waits for ever",
		"whisk.containerPool.userMemory", "512m or more")
	finding(t, report, doctor.CheckMemory, doctor.Note, "an action of 256 MB runs")
	if states[doctor.CheckTimeout] != "ok" || disdel.KindOf(report.Err()) != disdel.OverLimit {
		t.Errorf("%v, %v", states, report.Err())
	}
}

// A pool that others keep full is told in bounded time.
func TestAPoolThatIsFull(t *testing.T) {
	cfg := cluster(t, func(c *platform.Config) {
		c.PoolMemory, c.Limits.Timeout.Max = 128*disdel.MB, 3*time.Second
	})
	occupy(t, cfg.Executor)
	cfg.Patience = time.Second
	report, _ := examine(t, cfg)
	finding(t, report, doctor.CheckImage, doctor.Problem, "did not run it", "whisk.containerPool.userMemory")
}

// occupy has actions that do not end by themselves wait for each other.
func occupy(t *testing.T, e *executor.Executor) {
	t.Helper()
	l := disdel.Limits{Memory: 128 * disdel.MB, Timeout: disdel.Millis(3 * time.Second)}
	plan := disdel.ActionPlan{Task: disdel.TaskProbe, Name: "busy/busy", Limits: l}
	if err := e.Prepare(t.Context(), "busy", []disdel.ActionPlan{plan}); err != nil {
		t.Fatal(err)
	}
	inv := disdel.Invocation{
		ID: "busy", Task: plan.Task, Action: plan.Name, Limits: l, Params: []byte(`{"deaf": true, "holdMs": 60000}`),
	}
	for range 40 { // two minutes of work: a slow machine is still busy when it is examined
		if _, err := e.InvokeOnce(t.Context(), inv); err != nil {
			t.Fatal(err)
		}
	}
}

// Redis that only this machine reaches is a problem as much as one that it does not reach itself.
func TestARedisThatIsOutOfReach(t *testing.T) {
	cfg := cluster(t, nil)
	cfg.Store = &disdel.Store{URLs: []string{"redis://127.0.0.1:1/0"}}
	report, states := examine(t, cfg)
	finding(t, report, doctor.CheckRedis, doctor.Problem, "an action does not reach it", "networkpolicy.yaml")
	finding(t, report, doctor.CheckPool, doctor.Unknown, "cannot be counted")
	if states[doctor.CheckOutOfMemory] != "ok" {
		t.Errorf("%v", states)
	}
	cfg.ProgressStore, cfg.Store = nil, nil
	cfg.StoreFailure = &disdel.Error{Kind: disdel.Denied, Op: "open store", Err: errors.New("WRONGPASS")}
	report, _ = examine(t, cfg)
	finding(t, report, doctor.CheckRedis, doctor.Problem, "this machine does not reach it", "DISDEL_REDIS_PASSWORD")
}

func TestQuotasAreTheNamespaces(t *testing.T) {
	cfg := cluster(t, func(c *platform.Config) {
		c.Limits.InvocationsPerMinute, c.Limits.ConcurrentInvocations, c.PoolMemory = 120, 4, 4*disdel.GB
	})
	report, _ := examine(t, cfg)
	finding(t, report, doctor.CheckThrottles, doctor.Note, "120 invocations a minute, 4 at once", "20 rounds",
		"whisk.limits.actionsInvokesPerminute")
	finding(t, report, doctor.CheckPool, doctor.Note, "at least") // three at once are no proof of more
}

// doctor does not take a quota for the size of the pool. That holds for the quota of a minute and for concurrency.
func TestAQuotaIsNotThePool(t *testing.T) {
	for name, change := range map[string]func(*platform.Config){
		"at once": func(c *platform.Config) { c.Limits.ConcurrentInvocations = 2 },
		"minute":  func(c *platform.Config) { c.Limits.InvocationsPerMinute = 10 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := cluster(t, func(c *platform.Config) { c.PoolMemory = 4 * disdel.GB; change(c) })
			cfg.MaxContainers = 16
			var pool doctor.Finding
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			cfg.OnFinding = func(f doctor.Finding) {
				if f.Check == doctor.CheckPool { // what comes after it waits for minutes
					pool = f
					stop()
				}
			}
			report, _ := doctor.Examine(ctx, cfg) //nolint:errcheck // it was canceled
			if report.Facts.Pool == 4*disdel.GB { // the minute turned meanwhile, and the pool was filled
				return
			}
			if pool.State != doctor.Note || !report.Facts.AtLeast || !strings.Contains(pool.Means, "quota") {
				t.Errorf("%+v, %+v", pool, report.Facts)
			}
		})
	}
}

func TestAReportIsATableWithWhatToDoBelow(t *testing.T) {
	r := doctor.Report{Host: "http://h", Findings: []doctor.Finding{
		{Check: "api", State: doctor.Good, Found: "it answers"},
		{Check: "limits", State: doctor.Problem, Found: "too small", Means: "no job", Fix: "raise it", Key: "k", Value: "1g"},
	}}
	var out strings.Builder
	r.Print(&out)
	want := "CHECK   STATE    FOUND\napi     ok       it answers\nlimits  problem  too small\n\nPROBLEM limits\n" +
		"  means: no job\n  to do: raise it: k: 1g\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
