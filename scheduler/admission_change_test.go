package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// changes has a job hold a gang of so many containers from now on.
func changes(a *scheduler.Admission, job string, now disdel.Millis, size int) (refused string) {
	return a.Change(now, scheduler.Demand{Job: disdel.JobID(job), Gang: gang(size, 0)})
}

func expectRefusal(t *testing.T, what, got, want string) {
	t.Helper()
	if want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// A gang that becomes larger takes what is free, one that becomes smaller gives back the rest at once, and what is not
// there is refused with the arithmetic.
func TestAGangChanges(t *testing.T) {
	for name, by := range map[string]scheduler.Allocator{
		"gang": scheduler.Gangs{}, "fifo": scheduler.FIFO{}, "sharing": scheduler.Sharing{By: scheduler.Gangs{}},
		"greedy": scheduler.Greedy{}, "ganglike": scheduler.GangLike{},
	} {
		t.Run(name, func(t *testing.T) {
			a := scheduler.NewAdmission(by, slots(6))
			expectRefusal(t, "of nobody", changes(a, "first", 0, 2), "has no gang yet")
			ask(t, a, "first", 0, 2)
			ask(t, a, "second", 0, 2)
			a.Decide(0)
			expectRefusal(t, "there is room", changes(a, "first", second, 4), "")
			expectRefusal(t, "there is none", changes(a, "second", second, 3), "another 1.00 MB of memory, and there are 0 B")
			if a.Free() != slots(0) || a.Holding() != 2 {
				t.Errorf("%+v are free, %d hold something", a.Free(), a.Holding())
			}
			ask(t, a, "third", 2*second, 3)
			expect(t, "while the first is large", given(a.Decide(2*second)))
			expectRefusal(t, "smaller", changes(a, "first", 3*second, 1), "")
			expect(t, "once it is small", given(a.Decide(3*second)), "third")
			for _, job := range []disdel.JobID{"first", "second", "third"} {
				a.Return(job, 0)
			}
			if a.Free() != slots(6) || len(a.Demands()) != 0 {
				t.Errorf("%+v are free of 6 once all have gone", a.Free())
			}
		})
	}
}

// Who waits is not passed by somebody's growth: it may take what is free only for as long as that is of no use to them.
func TestGrowthDelaysNobodyWhoWaits(t *testing.T) {
	a := scheduler.NewAdmission(scheduler.Gangs{}, slots(6))
	ask(t, a, "first", 0, 2)
	a.Decide(0) // until 10 s
	ask(t, a, "second", second, 2)
	a.Decide(second) // until 11 s; two are free
	ask(t, a, "third", 2*second, 4)
	expect(t, "no room yet", given(a.Decide(2*second)))
	expectRefusal(t, "it would hold them a second too long", changes(a, "second", 3*second, 3), "would wait longer")
	expectRefusal(t, "it has ended by then", changes(a, "first", 3*second, 4), "")
	a.Return("first", 0)
	expect(t, "as was promised", given(a.Decide(10*second)), "third")
}

// A tenant's memory is bounded for what its jobs grow to, too; that it may run no other job is no reason.
func TestGrowthKeepsToAQuota(t *testing.T) {
	a := scheduler.NewAdmission(scheduler.Gangs{}, slots(10))
	for _, job := range []disdel.JobID{"first", "second"} {
		err := a.Enqueue(scheduler.Demand{
			Job: job, Tenant: "ann", Gang: gang(2, 0), Quota: scheduler.Quota{Memory: 5 * disdel.MB, Jobs: 2},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	a.Decide(0)
	expectRefusal(t, "beyond it", changes(a, "first", 0, 4),
		"another 2.00 MB, and of the quota of tenant ann, 5.00 MB, 1.00 MB are left")
	expectRefusal(t, "within it", changes(a, "first", 0, 3), "")
}

// A job that shares the processors of others goes on to do so when it grows, and one that does not needs its own.
func TestWhoSharesProcessorsGrowsWithoutThem(t *testing.T) {
	whole := slots(9)
	whole.Millicores = 2000
	a := scheduler.NewAdmission(scheduler.Sharing{By: scheduler.Gangs{}}, whole)
	own := processors("own", 2, false)
	own.Takes = exactly(100 * second)
	if err := a.Enqueue(own); err != nil {
		t.Fatal(err)
	}
	expect(t, "it has both", given(a.Decide(0)), "own")
	if err := a.Enqueue(processors("shares", 1, true)); err != nil {
		t.Fatal(err)
	}
	a.SetOthers(scheduler.Capacity{}) // whoever opens books decides
	expect(t, "it has none", given(a.Decide(second)), "shares")
	grown := processors("shares", 2, true)
	grown.Gang[0].Each.Memory *= 2
	expectRefusal(t, "without processors", a.Change(second, grown), "")
	expectRefusal(t, "of its own", a.Change(second, processors("own", 3, false)), "another 1 processors, and there are 0")
}

// Whatever jobs do, and however often their gangs change: together they hold no more than there is, each holds what it
// was granted last, what is free is what nobody holds, books that are kept say the same, and no change of a job puts
// off the time that those who wait were promised.
func TestGangsThatChangeFitTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		by := scheduler.Gangs{Reserve: 64}
		whole := slots(rapid.IntRange(2, 12).Draw(t, "slots"))
		tenants := rapid.IntRange(1, 2).Draw(t, "tenants")
		a := scheduler.NewAdmission(by, whole)
		holds := map[disdel.JobID]disdel.Bytes{}
		var now disdel.Millis
		for i := range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += disdel.Millis(rapid.IntRange(0, 3000).Draw(t, "later")) * second / 1000
			job := disdel.JobID(fmt.Sprintf("job-%d", rapid.IntRange(0, 9).Draw(t, "job")))
			size := rapid.IntRange(1, int(whole.Memory/disdel.MB)).Draw(t, "size")
			d := scheduler.Demand{
				Job: job, Tenant: fmt.Sprint(int(job[4]) % tenants), Arrived: now, Gang: gang(size, 0),
				Takes: exactly(disdel.Millis(rapid.IntRange(0, 20).Draw(t, "takes")) * second),
			}
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				a.Enqueue(d) //nolint:errcheck // one that has asked already goes on
			case 1:
				a.Return(job, 0)
				delete(holds, job)
			default:
				promised := reservations(by, a, now)
				if !a.Has(job) || a.Change(now, d) != "" {
					break
				}
				grows := d.Gang.Room().Memory > holds[job]
				if holds[job] = d.Gang.Room().Memory; grows && tenants == 1 { // the order of several goes by what they hold
					kept(t, promised, reservations(by, a, now))
				}
			}
			for _, g := range a.Decide(now) {
				if !g.Reserved {
					a.Use(g.Job)
					holds[g.Job] = g.Room.Memory
				}
			}
			if i%7 == 0 {
				a = reopened(t, a, by, whole)
			}
			held(t, a, whole, holds)
		}
	})
}

// reservations are when those who wait will have their gangs at the latest; who would be granted it now, now.
func reservations(by scheduler.Allocator, a *scheduler.Admission, now disdel.Millis) map[disdel.JobID]disdel.Millis {
	out := map[disdel.JobID]disdel.Millis{}
	for _, g := range by.Allocate(now, a.Free(), a.Demands()) {
		out[g.Job] = now
		if g.Reserved {
			out[g.Job] = g.From
		}
	}
	return out
}

// kept fails where somebody is promised a later time than before.
func kept(t *rapid.T, before, after map[disdel.JobID]disdel.Millis) {
	for job, at := range before {
		if then, ok := after[job]; at > 0 && (!ok || then > at) {
			t.Fatalf("%s was promised %v, and now %v (%t)", job, at, then, ok)
		}
	}
}

// held fails where the books are not what jobs were granted.
func held(t *rapid.T, a *scheduler.Admission, whole scheduler.Capacity, holds map[disdel.JobID]disdel.Bytes) {
	var all disdel.Bytes
	demands := a.Demands()
	for job, want := range holds {
		i := slices.IndexFunc(demands, func(d scheduler.Demand) bool { return d.Job == job })
		if i < 0 || demands[i].Held == nil || demands[i].Held.Room.Memory != want ||
			demands[i].Gang.Room().Memory != want {
			t.Fatalf("%s holds %+v, want %v", job, demands, want)
		}
		all += want
	}
	if free := a.Free().Memory; free < 0 || free+all != whole.Memory || a.Holding() != len(holds) {
		t.Fatalf("%v of %v are held by %d jobs, and %v are free", all, whole.Memory, a.Holding(), free)
	}
}

// A job that wants two workers more while another one is at work, and once that has ended.
func ExampleAdmission_Change() {
	container := scheduler.Capacity{Memory: 256 * disdel.MB}
	trains := func(job disdel.JobID, n int) scheduler.Demand {
		return scheduler.Demand{Job: job, Gang: scheduler.Gang{{Task: disdel.TaskTrain, Count: n, Each: container}}}
	}
	books := scheduler.NewAdmission(scheduler.Gangs{}, container.Times(5))
	for _, d := range []scheduler.Demand{trains("job-a", 2), trains("job-b", 2)} {
		if err := books.Enqueue(d); err != nil {
			fmt.Println(err)
		}
	}
	books.Decide(0)
	fmt.Println(books.Change(second, trains("job-a", 4)))
	books.Return("job-b", 0)
	fmt.Printf("%q, free: %v\n", books.Change(second, trains("job-a", 4)), books.Free().Memory)
	// Output:
	// it needs another 512 MB of memory, and there are 256 MB
	// "", free: 256 MB
}
