package cli

import (
	"os/exec"
	"testing"
	"time"

	"github.com/disdel/disdel/internal/test/faults"
)

// Exactly once, on a small scale (make bench-faults has the large one): whatever is killed, restarted, lost or
// delivered twice, a seeded job ends with the bits of the same job left alone.
func TestFaultsChangeNothing(t *testing.T) {
	t.Parallel()
	alone := faults.Seeded(build(t).path, t.TempDir(), faults.Job(1, 2), 7)
	if _, err := alone.Undisturbed(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		redis  bool
		faults int
		pace   time.Duration
		run    func(*faults.Rig, int) (faults.Tally, error)
	}{
		{"kill -9 of actions", false, 4, 200 * time.Millisecond, (*faults.Rig).KillActions},
		{"kill -9 of disdel before it has accepted the job", false, 1, time.Millisecond, (*faults.Rig).KillController},
		{"kill -9 of disdel", false, 1, 800 * time.Millisecond, (*faults.Rig).KillController},
		{"every invocation twice", false, 20, 200 * time.Millisecond, (*faults.Rig).Duplicate},
		{"kill -9 of aggregations", false, 2, 20 * time.Millisecond, (*faults.Rig).KillAggregates},
		{"kill -9 of disdel beside redis-server", true, 1, 800 * time.Millisecond, (*faults.Rig).KillControllerBesideRedis},
		{"redis-server restarted", true, 1, 800 * time.Millisecond, (*faults.Rig).RestartRedis},
		{"redis-server flushed", true, 1, 800 * time.Millisecond, (*faults.Rig).FlushRedis},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("redis-server"); c.redis && err != nil {
				t.Skip("redis-server is not installed; scripts/test-deps.sh installs it")
			}
			rig := alone.Beside(t.TempDir(), 7)
			rig.Log, rig.Pace = t.Output(), c.pace
			n, err := c.run(rig, c.faults)
			if err != nil {
				t.Fatal(err)
			}
			if n.Faults < c.faults || n.Jobs == 0 || n.Lost > 0 || n.Changed > 0 || n.Back > 2 {
				t.Errorf("%+v", n)
			}
		})
	}
}

// A stage that is killed, stopped for a while, late or replaced leaves the same bits, and so does a disdel that is
// killed or a Redis that is restarted: all stages of the network begin again together.
func TestFaultsOfStagesChangeNothing(t *testing.T) {
	t.Parallel()
	alone := faults.Seeded(build(t).path, t.TempDir(), faults.StagedJob(1, 1), 7)
	if _, err := alone.Undisturbed(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		redis  bool
		faults int
		run    func(*faults.Rig, int) (faults.Tally, error)
	}{
		{"kill -9 of actions", false, 2, (*faults.Rig).KillActions},
		{"kill -9 of disdel", false, 2, (*faults.Rig).KillController},
		{"actions stopped", false, 4, (*faults.Rig).StopActions},
		{"every invocation twice", false, 10, (*faults.Rig).Duplicate},
		{"redis-server restarted", true, 1, (*faults.Rig).RestartRedis},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("redis-server"); c.redis && err != nil {
				t.Skip("redis-server is not installed; scripts/test-deps.sh installs it")
			}
			rig := alone.Beside(t.TempDir(), 7)
			rig.Log, rig.Pace = t.Output(), 300*time.Millisecond
			n, err := c.run(rig, c.faults)
			if err != nil {
				t.Fatal(err)
			}
			if n.Faults < c.faults || n.Jobs == 0 || n.Lost > 0 || n.Changed > 0 {
				t.Errorf("%+v", n)
			}
		})
	}
}

// A worker that is killed while it exchanges updates after every step makes its steps again, to the bit: in lock-step,
// with the filter, and apart by a slack (make bench-exchange has 200 kills).
func TestKillsInsideARoundChangeNothing(t *testing.T) {
	t.Parallel()
	for name, exchange := range map[string]string{
		"BSP": "{}", "ISP": "{threshold: 0.7, combine: sum, values: int8}", "SSP": "{slack: 2, threshold: 0.3}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := faults.Seeded(build(t).path, t.TempDir(), faults.ExchangeJob(2, exchange), 7)
			rig.Log, rig.Data, rig.Pace = t.Output(), faults.ExchangeData(), 300*time.Millisecond
			if _, err := rig.Undisturbed(); err != nil {
				t.Fatal(err)
			}
			n, err := rig.KillActions(1)
			if err != nil {
				t.Fatal(err)
			}
			if n.Faults < 1 || n.Jobs == 0 || n.Lost > 0 || n.Changed > 0 {
				t.Errorf("%+v", n)
			}
		})
	}
}
