package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/rehearse"
	"github.com/disdel/disdel/scheduler"
)

const second = disdel.Millis(time.Second)

// slots is a platform whose containers are all of one size.
func slots(n int) scheduler.Capacity {
	return scheduler.Capacity{
		Memory: disdel.Bytes(n) * disdel.MB, Millicores: scheduler.Unbounded, Concurrent: scheduler.Unbounded,
		PerMinute: scheduler.Unbounded,
	}
}

// gang is so many containers of that size.
func gang(train, aggregate int) scheduler.Gang {
	each := scheduler.Capacity{Memory: disdel.MB}
	return scheduler.Gang{
		{Task: disdel.TaskTrain, Count: train, Each: each}, {Task: disdel.TaskAggregate, Count: aggregate, Each: each},
	}
}

func exactly(d disdel.Millis) disdel.Interval[disdel.Millis] {
	return disdel.Interval[disdel.Millis]{Low: d, Likely: d, High: d}
}

// visits draws jobs that come to a platform with so many slots, each of which fits alone.
func visits(t *rapid.T, slots, tenants int) []rehearse.Visit {
	out := make([]rehearse.Visit, rapid.IntRange(1, 40).Draw(t, "jobs"))
	at := disdel.Millis(0)
	for i := range out {
		at += disdel.Millis(rapid.IntRange(0, 20).Draw(t, "after")) * second
		size := rapid.IntRange(1, slots).Draw(t, "size")
		lasts := disdel.Millis(rapid.IntRange(1, 60).Draw(t, "lasts")) * second
		v := rehearse.Visit{Lasts: lasts}
		v.Job, v.Arrived = disdel.JobID(fmt.Sprintf("job-%03d", i)), at
		v.Tenant = fmt.Sprintf("tenant-%d", rapid.IntRange(1, tenants).Draw(t, "tenant"))
		v.Gang = gang(size-size/3, size/3)
		v.Takes = exactly(lasts + disdel.Millis(rapid.IntRange(0, 30).Draw(t, "margin"))*second)
		if rapid.IntRange(0, 9).Draw(t, "known") == 0 {
			v.Takes = disdel.Interval[disdel.Millis]{}
		}
		out[i] = v
	}
	return out
}

// Whatever comes: no more is given than there is, gangs are given whole or not at all, nobody gets a second one, quotas
// hold, and the same jobs in another order get the same.
func TestGangsAreWholeAndFit(t *testing.T) {
	for name, by := range map[string]scheduler.Allocator{"gang": scheduler.Gangs{}, "fifo": scheduler.FIFO{}} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.IntRange(1, 12).Draw(t, "slots")
				list := visits(t, n, 3)
				quota := scheduler.Quota{
					Jobs: rapid.IntRange(0, 3).Draw(t, "quota of jobs"), Cost: float64(rapid.IntRange(0, 6).Draw(t, "of cost")),
					Memory: disdel.Bytes(rapid.IntRange(0, n).Draw(t, "of memory")) * disdel.MB,
				}
				for i := range list {
					list[i].Quota, list[i].Cost = quota, 1
					list[i].Priority = rapid.IntRange(0, 2).Draw(t, "priority")
				}
				out := rehearse.Run(by, slots(n), list, func(s rehearse.See) { whole(t, s, by) })
				if len(out.Stuck) > 0 {
					t.Fatalf("stuck: %v", out.Stuck)
				}
			})
		})
	}
}

// whole looks at one decision.
func whole(t *rapid.T, s rehearse.See, by scheduler.Allocator) {
	free, waits := s.Free, map[disdel.JobID]scheduler.Demand{}
	jobs, memory := map[string]int{}, map[string]disdel.Bytes{}
	for _, d := range s.Demands {
		if d.Held == nil {
			waits[d.Job] = d
			continue
		}
		jobs[d.Tenant]++
		memory[d.Tenant] += d.Held.Room.Memory
	}
	for _, g := range s.Grants {
		d, waited := waits[g.Job]
		if !waited || !reflect.DeepEqual(g.Gang, d.Gang) || g.Room != g.Gang.Room() {
			t.Fatalf("at %v %s got %v, and wants %v", s.Now, g.Job, g.Gang, d.Gang)
		}
		if g.Reserved {
			continue
		}
		delete(waits, g.Job)
		if free = free.Minus(g.Room); !free.Holds(scheduler.Capacity{}) {
			t.Fatalf("at %v %s got more than there was: %v are left", s.Now, g.Job, free)
		}
		jobs[d.Tenant]++
		memory[d.Tenant] += g.Room.Memory
		q := d.Quota
		if q.Jobs > 0 && jobs[d.Tenant] > q.Jobs || q.Memory > 0 && memory[d.Tenant] > q.Memory ||
			q.Cost > 0 && float64(jobs[d.Tenant]) > q.Cost {
			t.Fatalf("at %v %s has %d jobs and %v, and its quota is %+v", s.Now, d.Tenant, jobs[d.Tenant],
				memory[d.Tenant], q)
		}
	}
	shuffled := slices.Clone(s.Demands)
	rand.New(rand.NewPCG(1, uint64(s.Now))).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	one, other := by.Allocate(s.Now, s.Free, s.Demands), by.Allocate(s.Now, s.Free, shuffled)
	if !reflect.DeepEqual(one, other) {
		t.Fatalf("at %v the order of what is told matters: %v, %v", s.Now, one, other)
	}
}

// Back-filling delays nobody: no job starts later than if all started strictly in order and took as long as they are
// expected to take at most, although those that passed it did. And what the head of the queue was promised is kept, as
// long as it is the head. (EASY back-filling in its usual form keeps the second promise alone.)
func TestBackFillingDelaysNobody(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "slots")
		list := visits(t, n, 1)
		for i := range list { // a bound is one
			if list[i].Takes.High == 0 {
				list[i].Takes = exactly(list[i].Lasts)
			}
		}
		promised := map[disdel.JobID]disdel.Millis{}
		by := scheduler.Gangs{Reserve: rapid.IntRange(1, 9).Draw(t, "reservations")}
		out := rehearse.Run(by, slots(n), list, func(s rehearse.See) {
			for _, g := range s.Grants {
				if !g.Reserved {
					continue
				}
				if was, ok := promised[g.Job]; ok && g.From > was {
					t.Fatalf("at %v the head %s is put off from %v to %v", s.Now, g.Job, was, g.From)
				}
				promised[g.Job] = g.From
				break // only the first is the head
			}
		})
		latest := inOrder(list, n)
		for i, s := range out.Stays {
			if !s.Ran || s.Started > latest[i] {
				t.Fatalf("%s starts at %v, and in strict order it would at %v", s.Job, s.Started, latest[i])
			}
			if i > 0 && out.Stays[i-1].Started > s.Started {
				passed++
			}
		}
	})
	if passed == 0 {
		t.Error("nobody was ever passed: the test does not look")
	}
}

// A long job that fits beside what is reserved for the head would have the job behind the head wait for it. It does not
// go first, whether that job has a reservation or not; a short one does.
func TestNobodyBehindTheHeadIsDelayed(t *testing.T) {
	visit := func(name string, at disdel.Millis, size int, lasts disdel.Millis) rehearse.Visit {
		v := rehearse.Visit{Lasts: lasts}
		v.Job, v.Arrived, v.Gang, v.Takes = disdel.JobID(name), at, gang(size, 0), exactly(lasts)
		return v
	}
	list := []rehearse.Visit{
		visit("runs", 0, 6, 10*second), visit("head", second, 8, 10*second), visit("behind", 2*second, 10, 10*second),
		visit("long", 3*second, 2, 100*second), visit("short", 4*second, 2, 5*second),
	}
	for _, reserve := range []int{1, 8} {
		out := rehearse.Run(scheduler.Gangs{Reserve: reserve}, slots(10), list, nil)
		for i, want := range []disdel.Millis{0, 10 * second, 20 * second, 30 * second, 4 * second} {
			if s := out.Stays[i]; s.Started != want {
				t.Errorf("%d reservations: %s starts at %v, want %v", reserve, s.Job, s.Started, want)
			}
		}
	}
}

// inOrder is when jobs start that start strictly one after another and take as long as they may.
func inOrder(list []rehearse.Visit, slots int) []disdel.Millis {
	starts := make([]disdel.Millis, len(list))
	fits := func(k int, at disdel.Millis) bool {
		used := list[k].Gang.Size()
		for i := range k {
			if starts[i] <= at && at < latestEnd(starts[i], list[i]) {
				used += list[i].Gang.Size()
			}
		}
		return used <= slots
	}
	for k := range list {
		times := []disdel.Millis{list[k].Arrived}
		if k > 0 {
			times[0] = max(times[0], starts[k-1])
		}
		for i := range k {
			if end := latestEnd(starts[i], list[i]); end > times[0] {
				times = append(times, end)
			}
		}
		slices.Sort(times[1:])
		starts[k] = times[slices.IndexFunc(times, func(at disdel.Millis) bool { return fits(k, at) })]
	}
	return starts
}

// latestEnd is when a job that starts at a time is over at the latest, on the grid that ends are on: the longest of 1,
// 2, 5, 10, 20 ... that is no more than a sixteenth of what the job takes.
func latestEnd(from disdel.Millis, v rehearse.Visit) disdel.Millis {
	grid := disdel.Millis(1)
	for i := 0; ; i++ {
		next := grid * []disdel.Millis{2, 5, 10}[i%3] / []disdel.Millis{1, 2, 5}[i%3]
		if 16*next > v.Takes.High {
			break
		}
		grid = next
	}
	return (from + v.Takes.High + grid - 1) / grid * grid
}

// However many small jobs come, known or not how long they take, of whatever tenant: a large one starts as soon as it
// goes before all that come, which is bounded by what a priority and a share are worth.
func TestNobodyStarves(t *testing.T) {
	for _, known := range []bool{true, false} {
		for _, tenants := range []int{1, 5} {
			t.Run(fmt.Sprintf("known %t, %d tenants", known, tenants), func(t *testing.T) {
				const n = 10
				large := rehearse.Visit{Lasts: 10 * second}
				large.Job, large.Tenant, large.Arrived, large.Gang = "large", "tenant-0", 5*second, gang(8, 2)
				large.Takes = exactly(10 * second)
				list := []rehearse.Visit{large}
				for i := range 500 { // twice as much as there is room for
					v := rehearse.Visit{Lasts: 50 * second}
					v.Job, v.Arrived, v.Priority = disdel.JobID(fmt.Sprintf("small-%04d", i)), disdel.Millis(5*i)*second, i%2
					v.Tenant, v.Gang = fmt.Sprintf("tenant-%d", i%tenants), gang(2, 0)
					if known {
						v.Takes = exactly(v.Lasts)
					}
					list = append(list, v)
				}
				out := rehearse.Run(scheduler.Gangs{}, slots(n), list, nil)
				most := large.Arrived + 2*(scheduler.PriorityWorth+scheduler.ShareWorth)
				if s := out.Stays[0]; !s.Ran || s.Started > most {
					t.Errorf("the large job started at %v (ran: %t), later than %v", s.Started, s.Ran, most)
				}
			})
		}
	}
}

// Tenants that have jobs waiting, which came together, hold shares by their weights, but for one job and for what is
// left because nothing fits. Where all jobs are of one size that is so at all times; where not, small ones may be
// back-filled where the large ones of others wait for room.
func TestTenantsShareFairly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 24
		largest := rapid.SampledFrom([]int{1, 4}).Draw(t, "largest")
		weights := []float64{1, float64(rapid.IntRange(1, 3).Draw(t, "weight"))}
		draw := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var list []rehearse.Visit
		for i := range 200 {
			v := rehearse.Visit{Lasts: disdel.Millis(5+draw.IntN(25)) * second}
			v.Job = disdel.JobID(fmt.Sprintf("job-%03d", i))
			v.Tenant = "few"
			if i%3 > 0 { // this one has twice as many
				v.Tenant, v.Quota.Weight = "many", weights[1]
			}
			v.Gang, v.Takes = gang(1+draw.IntN(largest), 0), exactly(v.Lasts)
			list = append(list, v)
		}
		looked, bound := 0, float64(2*largest-1)
		rehearse.Run(scheduler.Gangs{}, slots(n), list, func(s rehearse.See) {
			holds, waits := map[string]float64{}, map[string]int{}
			for _, d := range s.Demands {
				if d.Held != nil {
					holds[d.Tenant] += float64(d.Gang.Size())
				} else {
					waits[d.Tenant]++
				}
			}
			for _, g := range s.Grants {
				if i := slices.IndexFunc(s.Demands, func(d scheduler.Demand) bool { return d.Job == g.Job }); !g.Reserved {
					holds[s.Demands[i].Tenant] += float64(g.Gang.Size())
					waits[s.Demands[i].Tenant]--
				}
			}
			if waits["few"] == 0 || waits["many"] == 0 || len(s.Grants) == 0 || largest > 1 && s.Now > 0 {
				return
			}
			looked++
			if d := holds["few"]/weights[0] - holds["many"]/weights[1]; d > bound || d < -bound {
				t.Fatalf("at %v the shares are %v with weights %v", s.Now, holds, weights)
			}
		})
		if looked == 0 {
			t.Fatal("no decision was looked at")
		}
	})
}
