package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/rehearse"
	"github.com/disdel/disdel/scheduler"
)

// processors is a job that asks for so many of them and a megabyte.
func processors(name string, n int, shares bool) scheduler.Demand {
	return scheduler.Demand{Job: disdel.JobID(name), Shares: shares, Takes: exactly(second), Gang: scheduler.Gang{{
		Task: disdel.TaskTrain, Count: 1, Each: scheduler.Capacity{Memory: disdel.MB, Millicores: 1000 * n},
	}}}
}

// large is one that may share its processor and asks for so many megabytes.
func large(name string, n int) scheduler.Demand {
	d := processors(name, 1, true)
	d.Gang[0].Each.Memory = disdel.Bytes(n) * disdel.MB
	return d
}

// busy is a job that holds processors until a time.
func busy(name string, n int, until disdel.Millis) scheduler.Demand {
	d := processors(name, n, false)
	d.Held = &scheduler.Grant{Job: d.Job, Gang: d.Gang, Room: d.Gang.Room(), Until: until}
	return d
}

// A job that may share processors waits for those that are free soon and for none else; for memory it waits always.
// One that may not, of a batch, waits. Never do two come in at once.
func TestSharing(t *testing.T) {
	const now = 100 * second
	soon, late := now+scheduler.SharesAfter, now+scheduler.SharesAfter+1
	x := processors("x", 1, true)
	for name, c := range map[string]struct {
		held   []scheduler.Demand
		memory disdel.Bytes // free
		waits  []scheduler.Demand
		want   []disdel.JobID
	}{
		"free soon":        {[]scheduler.Demand{busy("a", 2, late), busy("b", 1, soon)}, 9, []scheduler.Demand{x}, nil},
		"free late":        {[]scheduler.Demand{busy("a", 2, late)}, 9, []scheduler.Demand{x}, []disdel.JobID{"x"}},
		"nobody knows":     {[]scheduler.Demand{busy("a", 2, 0)}, 9, []scheduler.Demand{x}, []disdel.JobID{"x"}},
		"late already":     {[]scheduler.Demand{busy("a", 2, now-1)}, 9, []scheduler.Demand{x}, []disdel.JobID{"x"}},
		"of a batch":       {[]scheduler.Demand{busy("a", 2, late)}, 9, []scheduler.Demand{processors("x", 1, false)}, nil},
		"no memory either": {[]scheduler.Demand{busy("a", 2, late)}, 0, []scheduler.Demand{x}, nil},
		"two wait": {
			[]scheduler.Demand{busy("a", 2, late)},
			9,
			[]scheduler.Demand{processors("b", 1, false), processors("x", 1, true), processors("y", 1, true)},
			[]disdel.JobID{"x"},
		},
		"the first waits for memory": {
			[]scheduler.Demand{busy("a", 2, late)},
			1,
			[]scheduler.Demand{large("w", 2), x},
			[]disdel.JobID{"x"},
		},
		"one has room": {
			[]scheduler.Demand{busy("a", 1, late)},
			9,
			[]scheduler.Demand{processors("x", 2, true), processors("z", 1, true)},
			[]disdel.JobID{"z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			free := slots(int(c.memory))
			free.Millicores = 2000
			for _, d := range c.held {
				free.Millicores -= d.Held.Room.Millicores
			}
			jobs := slices.Concat(c.held, c.waits)
			var got []disdel.JobID
			for _, g := range (scheduler.Sharing{By: scheduler.Gangs{}}).Allocate(now, free, jobs) {
				if !g.Reserved {
					got = append(got, g.Job)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("granted %v, want %v", got, c.want)
			}
			if x := c.waits[0]; x.Gang[0].Each.Millicores == 0 {
				t.Error("what the job asks for was changed")
			}
		})
	}
}

func ExampleSharing() {
	jobs := []scheduler.Demand{busy("long", 2, 3600*second), processors("short", 1, true)}
	free := slots(9)
	free.Millicores = 0
	for _, g := range (scheduler.Sharing{By: scheduler.Gangs{}}).Allocate(0, free, jobs) {
		fmt.Println(g.Job, "is granted", g.Room.Memory, "and shares processors:", g.Room.Millicores == 0)
	}
	// Output: short is granted 1.00 MB and shares processors: true
}

// Whatever comes, nobody waits for ever, nobody has more than there was, and no more than one job at a decision goes
// without processors of its own, which those of a batch never do.
func TestSharingLeavesNobodyStuck(t *testing.T) {
	by := scheduler.Sharing{By: scheduler.Gangs{}}
	rapid.Check(t, func(t *rapid.T) {
		n, cores := rapid.IntRange(1, 12).Draw(t, "slots"), rapid.IntRange(1, 4).Draw(t, "processors")
		list := visits(t, n, 3)
		for i := range list {
			list[i].Shares = rapid.Bool().Draw(t, "shares")
			list[i].Gang[0].Each.Millicores = 1000 * cores / list[i].Gang[0].Count
		}
		all := slots(n)
		all.Millicores = 1000 * cores
		out := rehearse.Run(by, all, list, func(s rehearse.See) {
			free, shared := s.Free, 0
			for _, g := range s.Grants {
				if g.Reserved {
					continue
				}
				if free = free.Minus(g.Room); !free.Holds(scheduler.Capacity{}) {
					t.Fatalf("at %v %s got more than there was: %v are left", s.Now, g.Job, free)
				}
				if g.Room.Millicores > 0 {
					continue
				}
				shared++
				at := slices.IndexFunc(list, func(v rehearse.Visit) bool { return v.Job == g.Job })
				if !list[at].Shares || shared > 1 {
					t.Fatalf("at %v %s shares processors, the %d. at once", s.Now, g.Job, shared)
				}
			}
		})
		if len(out.Stuck) > 0 {
			t.Fatalf("stuck: %v", out.Stuck)
		}
	})
}
