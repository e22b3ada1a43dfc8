package scheduler_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// reopened is an Admission that goes on with another one's books, which were written down between them.
func reopened(t *rapid.T, a *scheduler.Admission, by scheduler.Allocator, whole scheduler.Capacity,
) *scheduler.Admission {
	text, err := json.Marshal(a.State())
	var kept scheduler.AdmissionState
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil {
		t.Fatal(err)
	}
	again := scheduler.RestoreAdmission(by, whole, kept)
	if now, _ := json.Marshal(again.State()); string(now) != string(text) {
		t.Fatalf("read as\n%s\nwritten as\n%s", now, text)
	}
	return again
}

// Books that change hands before everything that happens lead to the decisions of one who keeps them all the time.
func TestBooksMayChangeHands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := []scheduler.Allocator{scheduler.Gangs{Unused: 5 * second}, scheduler.FIFO{Unused: 5 * second}}
		by := rapid.SampledFrom(all).Draw(t, "by")
		whole := slots(6)
		one := scheduler.NewAdmission(by, whole)
		many := scheduler.NewAdmission(by, whole)
		var now disdel.Millis
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			many = reopened(t, many, by, whole)
			now += disdel.Millis(rapid.IntRange(0, 3).Draw(t, "later")) * second
			job := disdel.JobID(fmt.Sprintf("job-%d", rapid.IntRange(0, 7).Draw(t, "job")))
			var kind [2]disdel.Kind
			for k, a := range []*scheduler.Admission{one, many} {
				switch i % 4 {
				case 0, 1:
					kind[k] = disdel.KindOf(a.Enqueue(scheduler.Demand{
						Job: job, Tenant: fmt.Sprint(job[4] % 3), Arrived: now, Gang: gang(1+int(job[4])%5, 1),
						Takes: exactly(10 * second), Cost: 1, Quota: scheduler.Quota{Cost: 6, Jobs: 2},
					}))
				case 2:
					a.Use(job)
				default:
					a.Return(job, 1)
				}
			}
			if kind[0] != kind[1] {
				t.Fatalf("asked: %v and %v", kind[0], kind[1])
			}
			if a, b := one.Expire(now), many.Expire(now); !slices.Equal(a, b) {
				t.Fatalf("expired: %v and %v", a, b)
			}
			one.SetOthers(scheduler.Capacity{}) // whoever opens books decides, also where nothing came back
			if a, b := given(one.Decide(now)), given(many.Decide(now)); !slices.Equal(a, b) {
				t.Fatalf("granted: %v and %v", a, b)
			}
			if one.Free() != many.Free() || one.Waiting() != many.Waiting() || !slices.Equal(one.Queue(), many.Queue()) {
				t.Fatalf("%+v free, %v wait; and %+v, %v", one.Free(), one.Queue(), many.Free(), many.Queue())
			}
		}
	})
}
