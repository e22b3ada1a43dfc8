package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// containers is how many the simulated cloud holds of what the drawn jobs need on average: 100 hosts with a hundred
// each.
const containers = 10_000

func cloud() sim.Config {
	const hosts = 100
	return sim.Config{
		Invokers: hosts, Memory: containers / hosts * 640 * disdel.MB, Processors: containers / hosts,
		Cold: disdel.Millis(500 * time.Millisecond), Warm: disdel.Millis(10 * time.Millisecond),
	}
}

// trace draws jobs that come nearly as fast as the cloud can run them, so that there is a queue now and then.
func trace(jobs int) []sim.Job {
	return sim.Generate(sim.Draw{Jobs: jobs, Seed: 1, Every: every, Tenants: 10})
}

// every is the mean time between two arrivals.
const every = disdel.Millis(4200 * time.Microsecond)

// large simulates 100,000 jobs on 10,000 containers, and a hundredth of them, with everything that decides.
func large(jobs int) error {
	small, err := timed(jobs/100, "")
	if err != nil {
		return err
	}
	all, err := timed(jobs, "")
	if err != nil {
		return err
	}
	figure("sim_100k_s", all.took.Seconds(), "s")
	figure("sim_100k_cpu_s", all.cpu.Seconds(), "s of processors")
	figure("sim_1k_s", small.took.Seconds(), "s")
	n, m := float64(jobs), float64(jobs)/100
	growth := float64(all.cpu) / float64(small.cpu)
	figure("sim_growth", growth/(n*math.Log2(n)/(m*math.Log2(m))), "of n log n, by processors")
	figure("decision_p99_ms", all.p99, "ms of a processor")
	figure("decision_mean_ms", all.mean, "ms of a processor")
	figure("decision_1k_p99_ms", small.p99, "ms of a processor")
	figure("sim_100k_failed", float64(all.Failed+len(all.Stuck)+all.Refused), "jobs")
	figure("sim_100k_activations", float64(all.Cloud.Calls), "activations")
	figure("sim_100k_containers", float64(all.Cloud.Most), "containers at once")
	figure("sim_100k_used_share", all.UsedShare, "of the memory")
	figure("sim_100k_wait_s", all.Wait.Mean.Seconds(), "s")
	return burst(jobs)
}

// burst is all jobs at once, each a single grant: nothing but decisions, with the longest queue that there can be.
func burst(jobs int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, n := range []int{jobs / 100, jobs} {
		var list []sim.Visit
		for _, j := range sim.Generate(sim.Draw{Jobs: n, Seed: 2, Tenants: 10}) {
			v := sim.Visit{Lasts: disdel.Millis(float64(time.Minute) * j.Slower)}
			v.Job, v.Tenant, v.Priority = j.ID, j.Tenant, j.Priority
			each := scheduler.Capacity{Memory: 128 * disdel.MB}
			v.Gang = scheduler.Gang{
				{Task: disdel.TaskTrain, Count: j.Workers, Each: each}, {Task: disdel.TaskAggregate, Count: 1, Each: each},
			}
			v.Takes = disdel.Interval[disdel.Millis]{Low: v.Lasts, Likely: v.Lasts, High: v.Lasts * 5 / 4}
			list = append(list, v)
		}
		whole := scheduler.Capacity{Memory: containers * 128 * disdel.MB}
		var took []time.Duration
		before := used()
		out := sim.Rehearse(clocked{scheduler.Gangs{}, &took}, whole, list, nil)
		figure(fmt.Sprintf("burst_%d_cpu_s", n), (used() - before).Seconds(), "s of processors")
		figure(fmt.Sprintf("burst_%d_p99_ms", n), percentile(took, 0.99), "ms of a processor")
		if len(out.Stuck) > 0 {
			return fmt.Errorf("%d of %d jobs that came at once wait for ever", len(out.Stuck), n)
		}
	}
	return nil
}

// clocked times an allocator.
type clocked struct {
	scheduler.Allocator
	took *[]time.Duration
}

func (c clocked) Allocate(now disdel.Millis, free scheduler.Capacity, jobs []scheduler.Demand) []scheduler.Grant {
	from := mine()
	defer func() { *c.took = append(*c.took, mine()-from) }()
	return c.Allocator.Allocate(now, free, jobs)
}

type run struct {
	simulate.Result
	took, cpu time.Duration
	p99, mean float64
}

// used is the processors' time of this process so far, mine that of this goroutine's thread, which it has to keep. What
// other programs take of the machine is in neither.
func used() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func mine() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func timed(jobs int, admission string) (run, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, before := time.Now(), used()
	r, err := simulate.Run(simulate.Config{
		Cloud: cloud(), Admission: admission, Estimator: estimator.Planned(backends.Standard(nil)),
		Clock: mine, Settle: disdel.Millis(20 * time.Millisecond),
	}, trace(jobs))
	out := run{Result: r, took: time.Since(began), cpu: used() - before, p99: percentile(r.Took, 0.99)}
	for _, d := range r.Took {
		out.mean += d.Seconds() * 1000 / float64(len(r.Took))
	}
	return out, err
}

// percentile is that of times, in milliseconds.
func percentile(took []time.Duration, share float64) float64 {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[int(share*float64(len(took)-1))].Seconds() * 1000
}
