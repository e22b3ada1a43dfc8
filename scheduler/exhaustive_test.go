package scheduler_test

import (
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// A world of jobs whose members wait for each other is a small one: who has come, what each holds, who is done. What
// happens next is any of: a job comes, one that holds its whole gang ends, one grant expires unused, and the platform
// decides, about all that wait or, as one without gangs does, about the next request of any of them. Every state that
// can be reached is looked at.
type smallWorld struct {
	by       scheduler.Allocator
	slots    int
	gangs    []scheduler.Gang
	single   bool // it decides about one container of one job at a time
	expiring bool // a grant may expire once, before its job has begun
	seen     map[state]bool
	stuck    []state // nothing leads out of them although somebody waits
}

var names = [3]disdel.JobID{"job-0", "job-1", "job-2"}

// state is where each job stands.
type state [3]place

// place is where a job stands.
type place struct {
	come, over, expired bool
	counts              [3]int
}

func (w *smallWorld) explore(at state) {
	if w.seen[at] {
		return
	}
	w.seen[at] = true
	moved, waits := false, false
	next := func(to state) {
		if to != at {
			moved = true
			w.explore(to)
		}
	}
	turn := func(i int, to place) {
		changed := at
		changed[i] = to
		next(changed)
	}
	for i := range w.gangs {
		j := at[i]
		switch {
		case !j.come:
			turn(i, place{come: true})
		case j.over:
		case w.whole(i, j):
			turn(i, place{come: true, over: true})
			if w.expiring && !j.expired {
				turn(i, place{come: true, expired: true})
			}
		default:
			waits = true
		}
	}
	for _, decided := range w.decisions(at) {
		next(decided)
	}
	if waits && !moved {
		w.stuck = append(w.stuck, at)
	}
}

func (w *smallWorld) whole(i int, j place) bool {
	n := 0
	for _, c := range j.counts {
		n += c
	}
	return n >= w.gangs[i].Size()
}

// decisions are what the platform may make of a state.
func (w *smallWorld) decisions(at state) (out []state) {
	free := slots(w.slots)
	var demands []scheduler.Demand
	for i := range w.gangs {
		j := at[i]
		if !j.come || j.over {
			continue
		}
		d := scheduler.Demand{
			Job: names[i], Arrived: disdel.Millis(i), Gang: w.gangs[i], Takes: exactly(second),
		}
		if held := w.part(i, j.counts); held.Size() > 0 {
			free = free.Minus(held.Room())
			d.Held = &scheduler.Grant{Job: d.Job, Gang: held, Room: held.Room(), Until: 2 * second}
		}
		demands = append(demands, d)
	}
	if !w.single {
		return []state{after(at, w.by.Allocate(second, free, demands))}
	}
	for _, d := range demands { // the next request that is looked at is any job's
		one := free
		one.Memory = min(one.Memory, disdel.MB)
		out = append(out, after(at, w.by.Allocate(second, one, []scheduler.Demand{d})))
	}
	return out
}

// part is so many of a gang's members.
func (w *smallWorld) part(i int, counts [3]int) scheduler.Gang {
	out := append(scheduler.Gang(nil), w.gangs[i]...)
	for m := range out {
		out[m].Count = counts[m]
	}
	return out
}

// after is a state with what was granted.
func after(at state, grants []scheduler.Grant) state {
	for _, g := range grants {
		if g.Reserved {
			continue
		}
		i := slices.Index(names[:], g.Job)
		for m := range g.Gang {
			at[i].counts[m] += g.Gang[m].Count
		}
	}
	return at
}

// shapes are all gangs of up to so many containers in two roles.
func shapes(most int) (out []scheduler.Gang) {
	for n := 1; n <= most; n++ {
		out = append(out, gang((n+1)/2, n/2))
	}
	return out
}

// Of up to three jobs with gangs of up to six, on up to six slots, in whatever order anything happens, no state is
// reached under whole gangs in which somebody waits and nothing can happen any more; under containers one by one many
// are.
func TestGangsNeverDeadlockInAnyOrder(t *testing.T) {
	states := map[string]int{}
	stuck := map[string]int{}
	for n := 1; n <= 6; n++ {
		all := shapes(n)
		for _, a := range all {
			for _, b := range all {
				for _, c := range all {
					for name, w := range map[string]*smallWorld{
						"gang": {by: scheduler.Gangs{}, expiring: true}, "fifo": {by: scheduler.FIFO{}, expiring: true},
						"greedy": {by: scheduler.Greedy{}, single: true},
					} {
						if name == "greedy" && n > 4 {
							continue // what is to be shown is shown by then
						}
						for jobs := 2; jobs <= 3; jobs++ {
							w.slots, w.gangs, w.seen = n, []scheduler.Gang{a, b, c}[:jobs], map[state]bool{}
							w.explore(state{})
							states[name] += len(w.seen)
						}
						stuck[name] += len(w.stuck)
						if name != "greedy" && len(w.stuck) > 0 {
							t.Fatalf("%s: %d slots, gangs %v: stuck in %+v", name, n, w.gangs, w.stuck[0])
						}
					}
				}
			}
		}
	}
	t.Logf("states: %v, of them stuck: %v", states, stuck)
	if stuck["greedy"] == 0 {
		t.Error("single containers never stop each other: the test does not look")
	}
}
