package scheduler_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// One decision: a job that holds something, one that waits for more than is free, and a short one that may go first.
func ExampleGangs_Allocate() {
	each := scheduler.Capacity{Memory: 256 * disdel.MB}
	job := func(id disdel.JobID, arrived, takes disdel.Millis, n int) scheduler.Demand {
		return scheduler.Demand{
			Job: id, Arrived: arrived, Takes: exactly(takes),
			Gang: scheduler.Gang{{Task: disdel.TaskTrain, Count: n, Each: each}},
		}
	}
	runs := job("job-runs", 0, 100*second, 3)
	runs.Held = &scheduler.Grant{Job: runs.Job, Gang: runs.Gang, Room: runs.Gang.Room(), Until: 100 * second}
	free := each
	grants := scheduler.Gangs{}.Allocate(10*second, free, []scheduler.Demand{
		runs, job("job-large", second, 50*second, 4), job("job-long", 2*second, 200*second, 1),
		job("job-short", 3*second, 20*second, 1),
	})
	for _, g := range grants {
		fmt.Printf("%s reserved: %t, from %v: %s\n", g.Job, g.Reserved, g.From, g.Why)
	}
	// Output:
	// job-large reserved: true, from 1m40s: it needs 1.00 GB of memory, and there are 256 MB
	// job-long reserved: true, from 2m30s: it would delay those before it
	// job-short reserved: false, from 10s: its gang is free, and it delays no waiting job
}

// An action counts as the part of a GPU that as many of them as it holds divide it into.
func ExampleDeviceShare() {
	fmt.Println(scheduler.DeviceShare(15*disdel.GB, 5*disdel.GB), scheduler.DeviceShare(16*disdel.GB, 6*disdel.GB))
	// Output: 5.00 GB 8.00 GB
}

// What ran out of 2 GB of a GPU is tried again with a quarter more.
func ExampleDeviceMemory() {
	var a disdel.Activation
	a.Limits.Device = 2 * disdel.GB
	fmt.Println(scheduler.DeviceMemory(a, 0))
	// Output: 2.50 GB 2.00 GB x 1.25
}

// Without ceilings every job can be planned, on whatever it trains.
func ExampleWithoutLimits() {
	var in scheduler.PlanInput
	in.Platform.MaxMemory, in.Job.Resources.GPU.Memory = 512*disdel.MB, disdel.GB
	in = scheduler.WithoutLimits(in)
	fmt.Println(in.Platform.MaxMemory > disdel.GB, in.Platform.MaxDevice > disdel.GB, in.Job.Resources.GPU.Memory)
	// Output: true true 0 B
}

// What a planned job asks of a platform, and the sentence for its plan.
func ExampleDemandOf() {
	plan := disdel.Plan{
		Workers: 4, Parallel: 4, Rounds: 10, HeldOut: 100, Levels: scheduler.Tree(4, 2),
		Actions: []disdel.ActionPlan{
			{Task: disdel.TaskTrain, Limits: disdel.Limits{Memory: 512 * disdel.MB}},
			{Task: disdel.TaskAggregate, Limits: disdel.Limits{Memory: 128 * disdel.MB}},
			{Task: disdel.TaskEvaluate, Limits: disdel.Limits{Memory: 256 * disdel.MB}},
		},
	}
	for _, pool := range []disdel.Bytes{4 * disdel.GB, 2300 * disdel.MB} {
		d, why := scheduler.DemandOf("job-a", plan, scheduler.CapacityOf(disdel.PlatformLimits{Pool: pool}))
		fmt.Println(d.Keep, d.Gang.Room().Memory)
		fmt.Println(strings.ReplaceAll(why, ", ", ",\n"))
	}
	// Output:
	// life 2.50 GB
	// containers: 4 train of 512 MB,
	// 2 aggregate of 128 MB and 1 evaluate of 256 MB,
	// 2.50 GB in all,
	// are kept for the job's life: rounds after the first find them warm
	// round 2.00 GB
	// containers: 4 train of 512 MB,
	// 2.00 GB in all,
	// are granted round by round and shared by its tasks,
	// which start cold: all of a round would take 2.250 GB of memory,
	// and there are 2.246 GB
}

// Two jobs of three containers each, and room for four: whole gangs let one run at once, single containers are dealt
// out until neither has what it needs.
func ExampleAllocatorOf() {
	each := scheduler.Capacity{Memory: 256 * disdel.MB}
	job := func(id disdel.JobID, arrived disdel.Millis) scheduler.Demand {
		return scheduler.Demand{
			Job: id, Arrived: arrived, Gang: scheduler.Gang{{Task: disdel.TaskTrain, Count: 3, Each: each}},
		}
	}
	for _, name := range []string{"gang", "fifo", "greedy", "ganglike"} {
		allocator, err := scheduler.AllocatorOf(name)
		if err != nil {
			log.Fatal(err)
		}
		deals := "whole gangs"
		switch allocator.(type) {
		case scheduler.Gangs, scheduler.FIFO:
		case scheduler.Greedy:
			allocator = scheduler.Greedy{Seed: 3} // the order in which requests happen to come in
			deals = "containers"
		case scheduler.GangLike:
			deals = "containers, a first for everybody first"
		}
		given := map[disdel.JobID]int{}
		for _, g := range allocator.Allocate(0, each.Times(4), []scheduler.Demand{job("job-a", 0), job("job-b", second)}) {
			if !g.Reserved {
				given[g.Job] += g.Gang[0].Count
			}
		}
		fmt.Println(name, "deals out", deals+":", given)
	}
	// Output:
	// gang deals out whole gangs: map[job-a:3]
	// fifo deals out whole gangs: map[job-a:3]
	// greedy deals out containers: map[job-a:3 job-b:1]
	// ganglike deals out containers, a first for everybody first: map[job-a:3 job-b:1]
}

// Two processes share a platform: the second one goes on with the books that the first one has left.
func ExampleRestoreAdmission() {
	each := scheduler.Capacity{Memory: 256 * disdel.MB}
	whole := each.Times(4)
	first := scheduler.NewAdmission(scheduler.Gangs{}, whole)
	for i, id := range []disdel.JobID{"job-a", "job-b"} {
		err := first.Enqueue(scheduler.Demand{
			Job: id, Arrived: disdel.Millis(i) * second,
			Gang: scheduler.Gang{{Task: disdel.TaskTrain, Count: 3, Each: each}},
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	first.Decide(second)
	first.Use("job-a")

	next := scheduler.RestoreAdmission(scheduler.Gangs{}, whole, first.State())
	fmt.Println("free:", next.Free().Memory, "waiting:", next.Queue())
	next.Return("job-a", 0)
	for _, g := range next.Decide(2 * second) {
		fmt.Println(g.Job, "has", g.Gang)
	}
	// Output:
	// free: 256 MB waiting: [job-b]
	// job-b has 3 train of 256 MB, 768 MB in all
}
