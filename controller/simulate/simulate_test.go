package simulate_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

const second = disdel.Millis(time.Second)

func config(admission string) simulate.Config {
	return simulate.Config{
		Admission: admission, Estimator: estimator.Planned(backends.Standard(nil)),
		Cloud: sim.Config{Invokers: 4, Memory: 2 * disdel.GB, Processors: 4, Cold: second / 2, Warm: second / 100},
	}
}

func simulated(t testing.TB, cfg simulate.Config, jobs []sim.Job) simulate.Result {
	t.Helper()
	r, err := simulate.Run(cfg, jobs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every job that is not refused comes to its end, under each admission, and the same trace comes to the same result.
func TestEveryJobEnds(t *testing.T) {
	jobs := sim.Generate(sim.Draw{Jobs: 200, Seed: 1, Every: 2 * second, Tenants: 3})
	for _, admission := range []string{"gang", "fifo", "greedy"} {
		r := simulated(t, config(admission), jobs)
		if r.Succeeded+r.Refused != len(jobs) || len(r.Stuck) > 0 || r.Failed > 0 || r.Refused > 0 {
			t.Errorf("%s: %d succeeded, %d failed, %d refused, stuck: %v", admission, r.Succeeded, r.Failed, r.Refused, r.Stuck)
		}
		t.Logf("%s: makespan %v wait %+v run %+v cold %.3f used %.3f decisions %d cloud %+v", admission, r.Makespan, r.Wait, r.Run,
			r.ColdShare, r.UsedShare, r.Decisions, r.Cloud)
		if again := simulated(t, config(admission), jobs); !reflect.DeepEqual(r, again) {
			t.Errorf("%s: the same trace came to something else", admission)
		}
	}
	_ = scheduler.Unbounded
}
