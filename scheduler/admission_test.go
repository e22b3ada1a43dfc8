package scheduler_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// ask has a job with a gang of so many containers wait, or fails.
func ask(t *testing.T, a *scheduler.Admission, job string, at disdel.Millis, size int) {
	t.Helper()
	d := scheduler.Demand{Job: disdel.JobID(job), Arrived: at, Gang: gang(size, 0), Takes: exactly(10 * second)}
	if err := a.Enqueue(d); err != nil {
		t.Fatal(err)
	}
}

// given are the jobs that a decision grants something.
func given(grants []scheduler.Grant) (out []disdel.JobID) {
	for _, g := range grants {
		if !g.Reserved {
			out = append(out, g.Job)
		}
	}
	return out
}

func expect(t *testing.T, what string, got []disdel.JobID, want ...disdel.JobID) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// A grant that nobody uses goes back whole, and the job waits where it stood before; one that is used stays.
func TestGrantsExpire(t *testing.T) {
	a := scheduler.NewAdmission(scheduler.Gangs{Unused: 5 * second}, slots(4))
	ask(t, a, "first", 0, 3)
	ask(t, a, "second", second, 3)
	expect(t, "at once", given(a.Decide(second)), "first")
	expect(t, "before it expires", a.Expire(5*second))
	expect(t, "expired", a.Expire(6*second), "first")
	if a.Free() != slots(4) || a.Waiting() != 2 || a.Holding() != 0 {
		t.Errorf("%+v are free, %d wait, %d hold something", a.Free(), a.Waiting(), a.Holding())
	}
	expect(t, "it is first again", given(a.Decide(6*second)), "first")
	a.Use("first")
	expect(t, "in use", a.Expire(60*second))
	a.Return("first", 0)
	expect(t, "after it", given(a.Decide(60*second)), "second")
}

// A job that keeps its gang for a round asks anew with its old arrival, and gets the next round before those that came
// later.
func TestRoundsKeepTheirPlace(t *testing.T) {
	a := scheduler.NewAdmission(scheduler.Gangs{}, slots(4))
	ask(t, a, "first", 0, 3)
	expect(t, "its first round", given(a.Decide(0)), "first")
	ask(t, a, "later", second, 3)
	expect(t, "no room", given(a.Decide(second)))
	a.Return("first", 0)
	ask(t, a, "first", 0, 3)
	expect(t, "its second round", given(a.Decide(2*second)), "first")
}

// What others of the platform hold is waited for, and is no reason to say that a job never fits. A platform that has
// become too small for one is, and so is what its tenant has used up.
func TestOthersAreWaitedFor(t *testing.T) {
	a := scheduler.NewAdmission(scheduler.Gangs{}, slots(4))
	a.SetOthers(slots(3).Minus(slots(0)))
	ask(t, a, "job", 0, 3)
	expect(t, "behind others", given(a.Decide(0)))
	if bad := a.NeverFit(); len(bad) > 0 {
		t.Errorf("%v", bad)
	}
	a.SetOthers(scheduler.Capacity{})
	expect(t, "they have gone", given(a.Decide(second)), "job")

	ask(t, a, "large", second, 4)
	a.Resize(slots(3))
	if bad := a.NeverFit(); len(bad) != 1 || !errors.Is(bad[0], disdel.OverLimit) {
		t.Errorf("of a smaller platform: %v", bad)
	}
	a.Return("large", 0)

	costly := scheduler.Demand{
		Job: "costly", Tenant: "a", Gang: gang(1, 0), Cost: 6, Quota: scheduler.Quota{Cost: 10},
	}
	other := costly
	other.Job = "other"
	if err := errors.Join(a.Enqueue(costly), a.Enqueue(other)); err != nil {
		t.Fatal(err)
	}
	a.Return("job", 0)
	expect(t, "within the quota", given(a.Decide(second)), "costly")
	a.Return("costly", 5)
	if bad := a.NeverFit(); len(bad) != 1 {
		t.Errorf("5 of 10 GB-s are left for one of 6: %v", bad)
	}
	expect(t, "beyond the quota", given(a.Decide(2*second)))
}

// The books refuse a second demand of a job, and take nothing of one that they do not know.
func TestBooksKnowTheirJobs(t *testing.T) {
	a := scheduler.NewAdmission(scheduler.Gangs{}, slots(4))
	ask(t, a, "job", 0, 3)
	err := a.Enqueue(scheduler.Demand{Job: "job", Gang: gang(1, 0)})
	if !errors.Is(err, disdel.Conflict) {
		t.Errorf("a second demand: %v", err)
	}
	a.Return("nobody", 1)
	a.Use("nobody")
	if a.Has("job") || a.Has("nobody") || a.Free() != slots(4) {
		t.Errorf("%+v are free", a.Free())
	}
	a.Return("job", 0)
	if a.Waiting() != 0 || len(a.Demands()) != 0 {
		t.Errorf("%d wait after the only one went", a.Waiting())
	}
}

// With many tenants a decision is shown the first jobs of each alone, and comes to what it would come to with all.
func TestLongQueuesAreShownInPart(t *testing.T) {
	const jobs = 1000
	a := scheduler.NewAdmission(scheduler.Gangs{}, slots(600))
	for i := range jobs {
		d := scheduler.Demand{
			Job: disdel.JobID(fmt.Sprintf("job-%04d", i)), Arrived: disdel.Millis(i), Tenant: fmt.Sprint(i % 3),
			Gang: gang(1, 0),
		}
		if err := a.Enqueue(d); err != nil {
			t.Fatal(err)
		}
	}
	all := scheduler.Gangs{}.Allocate(second, a.Free(), a.Demands())
	want := given(all)
	got := given(a.Decide(second))
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) || len(got) != 600 {
		t.Errorf("%d were granted of those that were shown, %d of all", len(got), len(want))
	}
}

// A platform's books in a few lines: two jobs, and room for one.
func ExampleAdmission() {
	container := scheduler.Capacity{Memory: 256 * disdel.MB}
	books := scheduler.NewAdmission(scheduler.Gangs{}, container.Times(5))
	for _, job := range []disdel.JobID{"job-a", "job-b"} {
		err := books.Enqueue(scheduler.Demand{
			Job: job, Takes: exactly(60 * second),
			Gang: scheduler.Gang{
				{Task: disdel.TaskTrain, Count: 2, Each: container}, {Task: disdel.TaskAggregate, Count: 1, Each: container},
			},
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	for _, g := range books.Decide(0) {
		fmt.Println(g.Job, g.Reserved, g.From, g.Why)
		books.Use(g.Job)
	}
	books.Return("job-a", 0)
	for _, g := range books.Decide(40 * second) {
		fmt.Println(g.Job, g.Reserved, g.From, g.Gang)
	}
	// Output:
	// job-a false 0s its gang is free
	// job-b true 1m0s it needs 768 MB of memory, and there are 512 MB
	// job-b false 40s 2 train of 256 MB and 1 aggregate of 256 MB, 768 MB in all
}

// What can never fit is refused with the arithmetic.
func ExampleCheckFits() {
	whole := scheduler.CapacityOf(disdel.PlatformLimits{Pool: disdel.GB, Concurrent: 30})
	each := scheduler.Capacity{Memory: 512 * disdel.MB, Concurrent: 1}
	gang := scheduler.Gang{{Task: disdel.TaskTrain, Count: 4, Each: each}}
	fmt.Println(scheduler.CheckFits(whole, scheduler.Demand{Gang: gang}))
	// Output:
	// admit job: the gang (4 train of 512 MB, 2.00 GB in all) needs 2.00 GB of memory, and there are 1.00 GB
}
