package simulate_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// trainMemory is that of every train action of these tests.
const trainMemory = 256 * disdel.MB

// growing is a job whose policy wants as many workers as it may: its epochs take less time with each.
func growing(id string, at disdel.Millis, policy string) sim.Job {
	j := lenet(id, at)
	j.Policy, j.MaxWorkers, j.Memory, j.Epochs, j.Workers = policy, 8, trainMemory, 10, 1
	return j
}

// course is a job's workers from its start on.
func policyTrace(o simulate.Outcome) []simulate.WorkerChange {
	if len(o.Course) == 0 {
		return []simulate.WorkerChange{{Workers: o.Workers}}
	}
	return o.Course
}

// atOnce is the most memory that the train actions of all jobs of a result were granted at once.
func atOnce(r simulate.Result) (most disdel.Bytes) {
	type change struct {
		at disdel.Millis
		by int
	}
	var all []change
	for _, o := range r.Jobs {
		was := 0
		for _, c := range policyTrace(o) {
			all = append(all, change{o.Started + c.At, c.Workers - was})
			was = c.Workers
		}
		all = append(all, change{o.Ended, -was})
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), a.by-b.by) })
	now := disdel.Bytes(0)
	for _, c := range all {
		now += disdel.Bytes(c.by) * trainMemory
		most = max(most, now)
	}
	return most
}

// Two tenants in one pool: what the one's policy wants is not taken from the other. It grows once the other has ended.
func TestAPolicyGrowsIntoWhatIsFree(t *testing.T) {
	cfg := config("gang")
	cfg.Cloud.Invokers, cfg.Cloud.Memory, cfg.Share = 1, 2*disdel.GB, 8
	ann, bob := growing("job-ann", 0, "kubeml"), lenet("job-bob", 0)
	ann.Epochs = 30
	ann.Tenant, bob.Tenant = "ann", "bob"
	bob.Memory, bob.Workers, bob.Epochs = trainMemory, 4, 10
	r := simulated(t, cfg, ann, bob)
	if r.Succeeded != 2 || r.Jobs[0].NotGranted == 0 {
		t.Fatalf("%d succeeded: %+v", r.Succeeded, r.Jobs)
	}
	if most := atOnce(r); most > cfg.Cloud.Memory || r.Granted > cfg.Cloud.Memory {
		t.Errorf("%v at once, and %v were granted, of %v", most, r.Granted, cfg.Cloud.Memory)
	}
	before, after := 0, 0
	for _, c := range r.Jobs[0].Course {
		if r.Jobs[0].Started+c.At <= r.Jobs[1].Ended {
			before = max(before, c.Workers)
		} else {
			after = max(after, c.Workers)
		}
	}
	if before > 2 || after <= before {
		t.Errorf("%d workers beside the other, %d after it: %+v", before, after, r.Jobs[0].Course)
	}
}

// A stage with fewer workers gives the rest to who waits.
func TestAPolicyThatShrinksLetsOthersStart(t *testing.T) {
	cfg := config("gang")
	cfg.Cloud.Invokers, cfg.Cloud.Memory, cfg.Share = 1, 2*disdel.GB, 8
	first, waits := growing("job-first", 0, "plateau"), growing("job-waits", second, "")
	first.Workers, waits.Workers = 5, 2 // the loss stays at 1, so that after four epochs two leave
	r := simulated(t, cfg, first, waits)
	if r.Succeeded != 2 || r.Jobs[1].Started == 0 || r.Jobs[1].Started >= r.Jobs[0].Ended {
		t.Errorf("the second began at %v, and the first ended at %v: %+v", r.Jobs[1].Started, r.Jobs[0].Ended,
			r.Jobs[0].Course)
	}
}

// Whatever many jobs' policies want: all come to their end, together they are never granted more than there is, and
// the same trace comes to the same.
func TestPoliciesKeepToThePool(t *testing.T) {
	policies := []string{"", "kubeml", "elastic", "plateau", "coach", "auto", "path"}
	for seed := range uint64(6) {
		draw := rand.New(rand.NewPCG(seed, 1))
		var jobs []sim.Job
		for i := range 24 {
			j := growing(fmt.Sprintf("job-%02d", i), disdel.Millis(i)*second, policies[draw.IntN(len(policies))])
			j.Tenant, j.Workers, j.Epochs = fmt.Sprint(draw.IntN(3)), 1+draw.IntN(4), 2+draw.IntN(8)
			j.Slower = 0.5 + 2*draw.Float64()
			jobs = append(jobs, j)
		}
		for _, admission := range []string{"gang", "fifo"} {
			cfg := config(admission)
			cfg.Cloud.Invokers, cfg.Cloud.Memory, cfg.Share = 1, disdel.Bytes(6+draw.IntN(10))*trainMemory, 16
			cfg.Quotas = map[string]scheduler.Quota{"1": {Memory: 8 * trainMemory}}
			r := simulated(t, cfg, jobs...)
			if r.Succeeded+r.Refused != len(jobs) || len(r.Stuck) > 0 {
				t.Errorf("%s, seed %d: %d succeeded, %d failed, stuck: %v", admission, seed, r.Succeeded, r.Failed, r.Stuck)
			}
			if r.Granted > cfg.Cloud.Memory || r.Granted < trainMemory {
				t.Errorf("%s, seed %d: %v were granted at once, of %v", admission, seed, r.Granted, cfg.Cloud.Memory)
			}
			if again := simulated(t, cfg, jobs...); !reflect.DeepEqual(r, again) {
				t.Errorf("%s, seed %d: the same trace came to something else", admission, seed)
			}
		}
	}
}
