package scheduler_test

import (
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// measured are epochs of 1,000 rows with so many workers each, which took so many seconds.
func measured(workers []int, seconds []float64) scheduler.Input {
	in := scheduler.Input{
		Boundary: disdel.BoundaryEpoch, Bounds: scheduler.Bounds{Least: 1, Most: 16, Batches: 16},
		Goal: scheduler.Goal{Epochs: 10},
	}
	for i, w := range workers {
		in.Now = disdel.Setting{Workers: w}
		in.Seen = append(in.Seen, disdel.Observation{
			Round: i, Epoch: float64(i + 1), Setting: in.Now, Rows: 1000,
			Duration: disdel.Millis(seconds[i] * float64(time.Second)), Cost: float64(w) * seconds[i],
		})
	}
	return in
}

// With a budget of 600 GB-s for ten epochs, seven workers are too dear.
func ExamplePath() {
	in := measured([]int{2, 4}, []float64{28, 17})
	fmt.Println(scheduler.DecideInBounds(scheduler.Path{}, in).Why)
	in.Goal.Cost = 600
	fmt.Println(scheduler.DecideInBounds(scheduler.Path{}, in).Why)
	// Output:
	// 1,000 rows take 28.0 s with 2, 17.0 s with 4; by the law of those: 7 workers
	// 1,000 rows take 28.0 s with 2, 17.0 s with 4; by the law of those: 3 workers
}

// What the network draws depends on the job and the round alone: equal input, equal answer.
func ExampleSiren() {
	in := measured([]int{2, 4}, []float64{28, 17})
	in.Seed = scheduler.Seed("job-1", 2)
	one, other := scheduler.DecideInBounds(&scheduler.Siren{}, in), scheduler.DecideInBounds(&scheduler.Siren{}, in)
	fmt.Println(one.Next == other.Next, one.Next.Workers > 4)
	// Output: true true
}

func ExampleFitLaw() {
	fixed, work, each, ok := scheduler.FitLaw(map[int]float64{1: 101, 2: 52, 4: 29})
	fmt.Printf("%.0f + %.0f / w + %.0f w, %v\n", fixed, work, each, ok)
	// Output: 0 + 100 / w + 1 w, true
}
