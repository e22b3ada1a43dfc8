package schedule_test

import (
	"fmt"

	"github.com/disdel/disdel/scheduler/schedule"
)

// Workers and memory change with the epochs, since each of many learns from an older model: SIREN's finding.
func ExampleWorld_Search() {
	w := &schedule.World{
		Batches: 200, Compute: 8, Push: 0.2, Saturates: 30, Full: 1792, Program: 300, Part: 4000,
		First: 2.3, Target: 0.3, Floor: 0.1, PerWorker: 0.001, Fall: 0.75,
		MostWorkers: 64, LeastMemory: 128, MostMemory: 3008,
	}
	_, cheapest, _ := w.Cheapest()
	budget := 1.5 * cheapest.Cost
	_, fixed, _ := w.Best(budget)
	_, course, ok := w.Search(budget)
	fmt.Println(ok, course.Seconds <= fixed.Seconds, course.Cost <= budget)
	// Output: true true true
}

// A network that is trained in the same world chooses for every epoch by what it sees.
func ExampleWorld_Learn() {
	w := &schedule.World{
		Batches: 100, Compute: 4, Merge: 0.2, First: 1, Epochs: 6, MostWorkers: 16, LeastMemory: 256, MostMemory: 256,
	}
	net, lesson, ok := w.Learn(schedule.Training{Seed: 1})
	_, fixed, _ := w.Best(0)
	course := w.Run(net.Greedy(), 0, nil)
	fmt.Println(ok, course.Reached, course.Seconds <= 1.01*fixed.Seconds, lesson.AsFixed > 0)
	// Output: true true true true
}

// The best plan is no slower than the best path, and the bound says how much there is to gain at all.
func ExampleWorld_Optimum() {
	w := &schedule.World{
		Batches: 200, Compute: 8, Push: 0.2, Saturates: 30, Full: 1792, Program: 300, Part: 4000,
		First: 2.3, Target: 0.3, Floor: 0.1, PerWorker: 0.001, Fall: 0.75,
		MostWorkers: 64, LeastMemory: 128, MostMemory: 3008,
	}
	_, cheapest, _ := w.Cheapest()
	budget := 1.5 * cheapest.Cost
	plan, least, ok := w.Optimum(budget)
	course := w.Run(plan.Chooser(), budget, nil)
	_, path, _ := w.Search(budget)
	fmt.Println(ok, course.Reached, course.Seconds <= 1.01*path.Seconds, least <= course.Seconds)
	// Output: true true true true
}
