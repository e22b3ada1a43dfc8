package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/internal/test/rehearse"
	"github.com/disdel/disdel/scheduler"
)

// stuck counts under which admissions jobs stop each other for ever: jobs whose members wait for each other, as Coach's
// do, each of which fits alone. Seeds draw two to six jobs; the crafted traces are the cases that its thesis argues
// with.
func stuck(seeds int) error {
	count := map[string]int{}
	for seed := range uint64(seeds) {
		jobs, slots := contest(seed)
		for name, by := range rules(seed) {
			if len(rehearse.Run(by, room(slots), jobs, nil).Stuck) > 0 {
				count[name]++
			}
		}
	}
	for _, c := range crafted() {
		for name, by := range rules(1) {
			if len(rehearse.Run(by, room(c.slots), c.jobs, nil).Stuck) > 0 {
				count["crafted_"+name]++
			}
		}
	}
	for _, prefix := range []string{"", "crafted_"} {
		for _, name := range []string{"greedy", "ganglike", "fifo", "gang"} {
			unit := fmt.Sprintf("of %d seeds", seeds)
			if prefix != "" {
				unit = fmt.Sprintf("of %d traces", len(crafted()))
			}
			rig.Figure("stuck_"+prefix+name, float64(count[prefix+name]), unit)
		}
	}
	return nil
}

// rules are the ways to admit that are compared.
func rules(seed uint64) map[string]scheduler.Allocator {
	return map[string]scheduler.Allocator{
		"greedy": scheduler.Greedy{Seed: seed}, "ganglike": scheduler.GangLike{}, "fifo": scheduler.FIFO{},
		"gang": scheduler.Gangs{},
	}
}

// slot is a container; all are of one size.
var slot = scheduler.Capacity{Memory: 128 * disdel.MB}

func room(slots int) scheduler.Capacity { return slot.Times(slots) }

// roles is the gang of one of Coach's jobs: a scheduler, servers and workers, by the names that its order goes by.
func roles(servers, workers int) scheduler.Gang {
	return scheduler.Gang{
		{Task: "scheduler", Count: 1, Each: slot},
		{Task: "server", Count: servers, Each: slot},
		{Task: "worker", Count: workers, Each: slot},
	}
}

// contest draws jobs, and slots from the largest gang up to twice of it. Under every other seed all come at once, as
// those of one of Coach's files do; else they come within 20 s.
func contest(seed uint64) (jobs []rehearse.Visit, slots int) {
	lot := rand.New(rand.NewPCG(seed, 1))
	largest, within := 0, 1+20*int(seed%2)
	for i := range 2 + lot.IntN(5) {
		v := visit(i, roles(1+lot.IntN(2), 1+lot.IntN(4)))
		v.Arrived = disdel.Millis(lot.IntN(within)) * disdel.Millis(time.Second)
		v.Lasts = disdel.Millis(1+lot.IntN(30)) * disdel.Millis(time.Second)
		largest = max(largest, v.Gang.Size())
		jobs = append(jobs, v)
	}
	return jobs, largest + lot.IntN(largest+1)
}

func visit(i int, gang scheduler.Gang) rehearse.Visit {
	v := rehearse.Visit{Lasts: disdel.Millis(time.Second)}
	v.Job, v.Gang = disdel.JobID(fmt.Sprintf("job-%d", i)), gang
	return v
}

// craft is a trace that somebody made up.
type craft struct {
	slots int
	jobs  []rehearse.Visit
}

// crafted are the cases of Coach's argument. The gate of its rule opens when the last role by name is looked at, whose
// containers go first then: two jobs get their workers and have no room left for what the workers wait for.
func crafted() []craft {
	many := craft{slots: 7}
	for i := range 4 {
		many.jobs = append(many.jobs, visit(i, roles(2, 4)))
	}
	late := craft{slots: 6, jobs: []rehearse.Visit{visit(0, roles(1, 3)), visit(1, roles(1, 3)), visit(2, roles(2, 3))}}
	late.jobs[0].Lasts = disdel.Millis(10 * time.Second) // the others come while it runs, and divide what it leaves
	late.jobs[1].Arrived, late.jobs[2].Arrived = disdel.Millis(time.Second), disdel.Millis(time.Second)
	return []craft{
		// its least gang, twice, in its slots
		{slots: 3, jobs: []rehearse.Visit{visit(0, roles(1, 1)), visit(1, roles(1, 1))}},
		{slots: 5, jobs: []rehearse.Visit{visit(0, roles(2, 2)), visit(1, roles(2, 2))}},
		many, late,
	}
}
