package scheduler_test

import (
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

func ExampleCoach() {
	epochs(scheduler.Coach{}, 12, 7, 7)
	// Output:
	// 4 workers: 1,000 rows take 12.0 s with 2; nothing else was measured: 4 workers
	// 7 workers: 1,000 rows take 12.0 s with 2, 7.00 s with 4; by the law of those: 7 workers
	// 4 workers: 1,000 rows take 12.0 s with 2, 7.00 s with 4, 7.00 s with 7: 4 workers
}

func ExampleAuto() {
	epochs(scheduler.Auto{}, 12, 9, 11)
	// Output:
	// 4 workers: 1,000 rows take 12.0 s with 2; nothing else was measured: 4 workers
	// 4 workers: 1,000 rows take 12.0 s with 2, 9.00 s with 4: 4 workers
	// 4 workers: 1,000 rows take 12.0 s with 2, 9.00 s with 4: 4 workers
}

// Of a loss that stands still, and epochs that wait more than they compute.
func ExampleMLLess() {
	in := scheduler.Input{
		Boundary: disdel.BoundaryEpoch, Now: disdel.Setting{Workers: 4}, Bounds: scheduler.Bounds{Least: 1, Most: 8},
	}
	for epoch := range 3 {
		in.Seen = append(in.Seen, disdel.Observation{
			Setting: in.Now, Rows: 1000, Epoch: float64(epoch + 1), Loss: 0.5,
			Duration: disdel.Millis(10 * time.Second), Compute: disdel.Millis(2 * time.Second),
		})
		in.Now = scheduler.DecideInBounds(scheduler.MLLess{}, in).Next
		fmt.Println(in.Now.Workers)
	}
	// Output:
	// 4
	// 4
	// 3
}

func ExampleCoachPublished() {
	epochs(scheduler.CoachPublished{}, 12, 9, 11)
	// Output:
	// 2 workers: the second probe: 2 workers
	// 1 workers: 1.03 - 0.97 (w - 1.02)^2 epochs a second: 1 worker
	// 2 workers: 0.203 - 0.435 (w - 1.51)^2 epochs a second: 2 workers
}

// Six losses are too few for its knee.
func ExampleMLLessPublished() {
	epochs(scheduler.MLLessPublished{}, 12, 9, 11)
	// Output:
	// 2 workers: the loss has no knee yet
	// 2 workers: the loss has no knee yet
	// 2 workers: the loss has no knee yet
}

// What earlier jobs of the same data and batch were seen to take is what auto begins with.
func ExamplePastObservations() {
	record := disdel.Record{Status: disdel.StatusSucceeded, Data: disdel.DataInfo{Checksum: "c"}}
	for epoch, workers := range []int{2, 4} {
		record.Rounds = append(record.Rounds, disdel.Round{Round: epoch, Observed: &disdel.Observation{
			Setting: disdel.Setting{Workers: workers}, Epoch: float64(epoch + 1), Rows: 1000,
			Duration: disdel.Millis(time.Minute) / disdel.Millis(workers),
		}})
	}
	past := scheduler.PastObservations([]disdel.Record{record}, disdel.Job{}, disdel.DataInfo{Checksum: "c"})
	d := scheduler.DecideInBounds(scheduler.Auto{}, scheduler.Input{
		Boundary: disdel.BoundaryStart, Past: past, Now: disdel.Setting{Workers: 2},
		Bounds: scheduler.Bounds{Least: 1, Most: 8},
	})
	fmt.Println(d.Next.Workers, d.Why)
	// Output: 8 1,000 rows take 30.0 s with 2, 15.0 s with 4 in earlier jobs; by their law about 7.50 s with 8: 8 workers
}

// Nobody leaves a job whose loss rises.
func ExampleLossRises() {
	var seen []disdel.Observation
	for i, loss := range []float64{0.9, 0.7, 1.1} {
		seen = append(seen, disdel.Observation{
			Setting: disdel.Setting{Workers: 4}, Rows: 1000, Epoch: float64(i + 1), Loss: loss,
			Duration: disdel.Millis(time.Second),
		})
	}
	fmt.Println(scheduler.LossRises(seen[:2]) == "")
	fmt.Println(scheduler.LossRises(seen))
	// Output:
	// true
	// the train loss is 1.1 after 0.7
}
