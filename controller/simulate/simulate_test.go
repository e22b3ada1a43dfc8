package simulate_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms     = disdel.Millis(time.Millisecond)
	second = 1000 * ms
)

func config(admission string) simulate.Config {
	return simulate.Config{
		Admission: admission, Estimator: estimator.Planned(backends.Standard(nil)),
		Cloud: sim.Config{Invokers: 4, Memory: 2 * disdel.GB, Processors: 4, Cold: 500 * ms, Warm: 10 * ms},
	}
}

// lenet is a job of two rounds: two train actions, an aggregation and an evaluation each.
func lenet(id string, at disdel.Millis) sim.Job {
	return sim.Job{
		ID: disdel.JobID(id), At: at, Network: "lenet5", Input: []int{1, 28, 28}, Classes: 10, Rows: 2000, HeldOut: 200,
		BatchSize: 50, Epochs: 2, Workers: 2, PerThousand: second, Aggregate: 100 * ms, Evaluate: 200 * ms, Load: 300 * ms,
	}
}

func simulated(t testing.TB, cfg simulate.Config, jobs ...sim.Job) simulate.Result {
	t.Helper()
	r, err := simulate.Run(cfg, jobs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every job that is not refused comes to its end, under each admission, and the same trace comes to the same result.
func TestEveryJobEnds(t *testing.T) {
	jobs := sim.Generate(sim.Draw{Jobs: 100, Seed: 1, Every: second, Tenants: 3})
	for _, admission := range []string{"gang", "fifo", "greedy", "ganglike", ""} {
		r := simulated(t, config(admission), jobs...)
		if r.Succeeded != len(jobs) || len(r.Stuck) > 0 {
			t.Errorf("%s: %d succeeded, %d failed, %d refused, stuck: %v", admission, r.Succeeded, r.Failed, r.Refused, r.Stuck)
		}
		if again := simulated(t, config(admission), jobs...); !reflect.DeepEqual(r, again) {
			t.Errorf("%s: the same trace came to something else", admission)
		}
	}
	if _, err := simulate.Run(config("luck"), jobs); !errors.Is(err, disdel.Invalid) {
		t.Errorf("an admission that nobody has: %v", err)
	}
}

// One job alone takes what its rounds take, cold ones first.
func TestOneJobAloneTakesItsRounds(t *testing.T) {
	r := simulated(t, config("gang"), lenet("job-a", 5*second))
	o := r.Jobs[0]
	// A round: 1,000 rows a worker, 1 s; the aggregation; the evaluation; each behind 10 ms of a warm container, or 500 of
	// a new one and 300 of its load.
	want := 2*(1000+100+200)*ms + 3*(500+300)*ms + 3*10*ms
	if got := o.Ended - o.Started; got != want || o.Started != 5*second || o.Activations != 8 || o.Cold != 4 {
		t.Errorf("it took %v, and %v was to be: %+v", got, want, o)
	}
	if o.Keep != "life" || o.Status != disdel.StatusSucceeded || o.Workers != 2 || o.CostGBs <= 0 {
		t.Errorf("%+v", o)
	}
}

// A pool that holds one job's containers runs one after the other under gangs, each with warm rounds; greedily all are
// at it at once, and take each other's containers away.
func TestGangsKeepTheirContainersWarm(t *testing.T) {
	var jobs []sim.Job
	for i := range 8 {
		j := lenet(fmt.Sprintf("job-%d", i), 0)
		j.Epochs = 10
		jobs = append(jobs, j)
	}
	cfg := config("gang")
	cfg.Cloud.Invokers, cfg.Cloud.Memory = 1, 4*4*128*disdel.MB
	cfg.Share = 4
	gang := simulated(t, cfg, jobs...)
	cfg.Admission = "greedy"
	greedy := simulated(t, cfg, jobs...)
	if gang.ColdShare > 0.15 || greedy.ColdShare < 2*gang.ColdShare || gang.Makespan > greedy.Makespan {
		t.Errorf("gang: %.2f cold, %v; greedy: %.2f cold, %v", gang.ColdShare, gang.Makespan, greedy.ColdShare,
			greedy.Makespan)
	}
}

// Where a pool does not hold a job's containers for its life, it is granted them round by round, and two jobs take
// turns.
func TestRoundsAreGrantedWhereALifeDoesNotFit(t *testing.T) {
	cfg := config("gang")
	cfg.Cloud.Invokers, cfg.Cloud.Memory = 1, 3*128*disdel.MB
	r := simulated(t, cfg, lenet("job-a", 0), lenet("job-b", 100*ms))
	for _, o := range r.Jobs {
		if o.Keep != "round" || o.Status != disdel.StatusSucceeded {
			t.Errorf("%+v", o)
		}
	}
	if r.Jobs[0].Started != 0 || r.Jobs[1].Started < second || r.Succeeded != 2 {
		t.Errorf("%+v", r.Jobs)
	}
}

// What does not fit is refused with the arithmetic, and the others go on.
func TestWhatDoesNotFitIsRefused(t *testing.T) {
	large := lenet("job-large", 0)
	large.Memory = 3 * disdel.GB
	cfg := config("gang")
	cfg.Quotas = map[string]scheduler.Quota{"poor": {Memory: 256 * disdel.MB}}
	poor := lenet("job-poor", 0)
	poor.Tenant = "poor"
	unknown := lenet("job-unknown", 0)
	unknown.Network = "nobody's"
	r := simulated(t, cfg, large, poor, unknown, lenet("job-a", 0))
	if r.Refused != 3 || r.Succeeded != 1 {
		t.Errorf("%+v", r.Jobs)
	}
	for _, i := range []int{0, 1} {
		if !errors.Is(r.Jobs[i].Refused, disdel.OverLimit) {
			t.Errorf("%v", r.Jobs[i].Refused)
		}
	}
}

// A rate of the namespace is kept to where jobs are admitted, which is no failure; greedily, invocations are refused
// and made again as the manager has it.
func TestRatesAreKeptTo(t *testing.T) {
	cfg := config("gang")
	cfg.Cloud.PerMinute = 10
	jobs := []sim.Job{lenet("job-a", 0), lenet("job-b", 0), lenet("job-c", 0)}
	r := simulated(t, cfg, jobs...)
	if r.Succeeded != 3 || r.Cloud.Throttled == 0 || r.Makespan < 2*60*second {
		t.Errorf("%d succeeded in %v: %+v", r.Succeeded, r.Makespan, r.Cloud)
	}
	for _, o := range r.Jobs {
		if o.Failed > 0 {
			t.Errorf("%s counts %d failures", o.ID, o.Failed)
		}
	}
}

// While jobs wait, what happens within the time to settle is decided together, and nothing else changes.
func TestDecisionsSettle(t *testing.T) {
	cfg := config("gang")
	cfg.Cloud.Invokers = 1
	jobs := sim.Generate(sim.Draw{Jobs: 60, Seed: 4, Every: 200 * ms, Tenants: 2})
	each := simulated(t, cfg, jobs...)
	cfg.Settle = 500 * ms
	together := simulated(t, cfg, jobs...)
	if together.Succeeded != 60 || together.Decisions >= each.Decisions || each.Wait.Mean == 0 {
		t.Errorf("%d decisions became %d, %d jobs succeeded, waiting %v", each.Decisions, together.Decisions,
			together.Succeeded, each.Wait.Mean)
	}
}

// A round that takes longer than an activation may goes on in several legs.
func TestLongRoundsTakeLegs(t *testing.T) {
	j := lenet("job-a", 0)
	j.PerThousand = 3 * 3600 * second / 2 // of an hour at most
	r := simulated(t, config("gang"), j)
	if o := r.Jobs[0]; o.Status != disdel.StatusSucceeded || o.Activations != 4*2+4 || r.Cloud.TimedOut > 0 {
		t.Errorf("%+v: %v", o, o.Failure)
	}
}

// Eight jobs on one host, admitted as whole gangs.
func ExampleRun() {
	jobs := sim.Generate(sim.Draw{Jobs: 8, Seed: 1, Every: second, Tenants: 2})
	r, err := simulate.Run(simulate.Config{
		Admission: "gang", Estimator: estimator.Planned(backends.Standard(nil)),
		Cloud: sim.Config{Invokers: 1, Memory: 4 * disdel.GB, Processors: 4, Cold: 500 * ms, Warm: 10 * ms},
	}, jobs)
	fmt.Println(r.Succeeded, "of", len(jobs), "succeeded, stuck:", r.Stuck, err)
	// Output: 8 of 8 succeeded, stuck: [] <nil>
}
