package robust

import (
	"time"

	"github.com/disdel/disdel/internal/test/faults"
)

// exactly runs seeded jobs that are disturbed, and wants every one to end with the bits of the same job left alone.
func exactly(c *trial, most time.Duration, perJob int, run func(*faults.Rig) (faults.Tally, error)) {
	c.t.Helper()
	rig := faults.Seeded(program(c.t), c.t.TempDir(), faults.Job(3, 2), c.seed)
	rig.Log = c.t.Output()
	if _, err := rig.Undisturbed(); err != nil {
		c.t.Fatal(err)
	}
	rig.Pace, rig.PerJob = most, perJob
	n, err := run(rig)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Logf("%+v", n)
	if n.Jobs == 0 || n.Faults == 0 || n.Lost > 0 || n.Changed > 0 || n.Back > 2 {
		c.t.Errorf("jobs were lost, changed, or went back more than two rounds: %+v", n)
	}
}

func killedActions(c *trial) {
	exactly(c, 300*time.Millisecond, 10, func(r *faults.Rig) (faults.Tally, error) { return r.KillActions(20) })
}

func killedAggregates(c *trial) {
	exactly(c, 50*time.Millisecond, 10, func(r *faults.Rig) (faults.Tally, error) { return r.KillAggregates(10) })
}

func killedControllers(c *trial) {
	exactly(c, time.Second, 5, func(r *faults.Rig) (faults.Tally, error) { return r.KillController(10) })
	exactly(c, time.Second, 5, func(r *faults.Rig) (faults.Tally, error) { return r.KillControllerBesideRedis(6) })
	killedInSubmit(c)
}

func lostRedis(c *trial) {
	exactly(c, time.Second, 3, func(r *faults.Rig) (faults.Tally, error) { return r.RestartRedis(6) })
	exactly(c, time.Second, 2, func(r *faults.Rig) (faults.Tally, error) { return r.FlushRedis(4) })
}

func deliveredTwice(c *trial) {
	exactly(c, 500*time.Millisecond, 1<<20, func(r *faults.Rig) (faults.Tally, error) { return r.Duplicate(100) })
}

// killedInSubmit kills submit at any moment from its start on, before and after it has acknowledged the job. An
// acknowledged job is in the history, can be resumed, and succeeds. Of any other job nothing is left.
func killedInSubmit(c *trial) {
	t, d := c.t, newHome(c.t)
	file := d.job(t, "killed", shortJob(2))
	for range 12 {
		p := d.start(t, "submit", file, "-o", "json", "-q")
		select {
		case <-p.done:
		case <-time.After(time.Duration(c.rng.Int64N(int64(1500 * time.Millisecond)))):
			p.kill()
		}
	}
	list := d.run(t, patience, "history", "-o", "json", "--limit", "50")
	if list.code != 0 {
		t.Fatalf("history after the kills: %v", list)
	}
	for _, rec := range records(t, list) {
		if rec.Status.String() == "succeeded" {
			continue
		}
		r := d.run(t, patience, "resume", string(rec.ID), "-q")
		if r.code != 0 {
			t.Errorf("resume %s: %v", rec.ID, r)
		}
	}
}
