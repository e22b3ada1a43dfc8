package simulate_test

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// merging is a job that computes most of its time with few workers, and waits for updates with many.
func merging(id, policy string) sim.Job {
	j := lenet(id, 0)
	j.Rows, j.Epochs, j.Policy, j.MaxWorkers = 8000, 24, policy, 16
	j.PerThousand, j.EachUpdate, j.Noise = 4*second, 200*ms, 0.02
	j.Losses = sim.Losses{First: 2.3, Floor: 0.3, Rate: 1}
	return j
}

func roomy() simulate.Config {
	cfg := config("greedy")
	cfg.Cloud.Invokers, cfg.Cloud.Memory, cfg.Cloud.Processors = 2, 16*disdel.GB, 16
	return cfg
}

// The workers of a simulated job change as its policy says, all its rows are trained once an epoch whoever is there,
// its loss is the trace's, and it comes to the same twice.
func TestASimulatedJobFollowsItsPolicy(t *testing.T) {
	for _, policy := range scheduler.PolicyNames() {
		j := merging("job-a", policy)
		r := simulated(t, roomy(), j)
		o := r.Jobs[0]
		if o.Status != disdel.StatusSucceeded || math.Abs(o.TrainLoss-j.Losses.At(24)) > 1e-9 {
			t.Errorf("%s: %v, loss %g: %v", policy, o.Status, o.TrainLoss, o.Failure)
		}
		changes := policy == "kubeml" || policy == "elastic" || policy == "coach" || policy == "auto"
		if changes && (len(o.Course) < 2 || o.Course[1].Workers <= o.Course[0].Workers) {
			t.Errorf("%s: %+v", policy, o.Course)
		}
		if again := simulated(t, roomy(), j); !reflect.DeepEqual(r, again) {
			t.Errorf("%s: the same job came to something else", policy)
		}
	}
}

// A lab holds each policy against the fixed number of workers that takes the least: nobody static beats it, ours come
// near it, and a job that does not fit is told of.
func TestALabHoldsPoliciesAgainstTheBest(t *testing.T) {
	large := merging("job-large", "")
	large.Memory = 100 * disdel.GB
	lab, err := simulate.Compare(roomy(), []sim.Job{merging("job-a", ""), large}, []string{"static", "coach", "auto"})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(lab.Trials); n != 8 || lab.Trials[0].Policy != simulate.Fixed || lab.Trials[0].Time != 1 {
		t.Fatalf("%d trials: %+v", n, lab.Trials)
	}
	for _, s := range lab.Policies {
		switch {
		case s.Succeeded != 1 || s.Time < 1 || s.WorstTime != s.Time || s.Perf <= 0:
			t.Errorf("%+v", s)
		case s.Policy == "static" && s.Time < 1.2: // two workers are far from the best
			t.Errorf("%+v", s)
		case s.Policy != "static" && s.Time > 1.5:
			t.Errorf("%+v", s)
		}
	}
	if large := lab.Trials[5]; large.Why == "" || large.Time != 0 {
		t.Errorf("%+v", large)
	}
	if _, err := simulate.Compare(roomy(), nil, []string{"luck"}); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a policy that nobody has: %v", err)
	}
}

// Of numbers of workers that take as long, the best fixed one is the cheapest: more of them only cost more.
func TestTheBestFixedNumberIsTheCheapestOfEqualOnes(t *testing.T) {
	for _, work := range []disdel.Millis{0, 1} { // of 1,000 rows: all of a round is what every train action has
		j := merging("job-even", "")
		j.PerThousand, j.EachUpdate, j.Noise, j.Round, j.Epochs, j.MaxWorkers = work, 0, 0, second, 4, 6
		lab, err := simulate.Compare(roomy(), []sim.Job{j}, []string{"static"})
		if err != nil {
			t.Fatal(err)
		}
		if best := lab.Trials[0]; best.Course[0].Workers != 1 {
			t.Errorf("%d workers take %v for %.3f GB-s, though one is as fast", best.Course[0].Workers, best.Took.Text(),
				best.CostGBs)
		}
	}
}
