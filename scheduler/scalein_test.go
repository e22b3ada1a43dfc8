package scheduler_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// trains makes steps of a job whose loss falls as a law has it, by as much as the workers of a step bring, until it
// comes to the target; a step takes own, and others for every other worker.
func trains(s *scheduler.ScaleIn, own, others, target float64) (time, cost float64) {
	progress := 0.0
	for range 100_000 {
		loss := 0.3 + 1/(0.02*progress+0.5)
		if loss <= target {
			return time, cost
		}
		n := s.Workers
		seen := scheduler.StepSeen{Loss: loss, Own: own, Others: others * float64(n-1)}
		progress += float64(n)
		time, cost = time+seen.Own+seen.Others, cost+float64(n)*(seen.Own+seen.Others)
		s.Step(seen)
	}
	return math.Inf(1), math.Inf(1)
}

// fixed is the same with nobody leaving.
func fixed(workers int, own, others, target float64) (time, cost float64) {
	return trains(&scheduler.ScaleIn{Workers: workers, Least: workers}, own, others, target)
}

// Whatever a job is like, time times cost is no more with scale-in than without; of one that waits it is far less, and
// of one that computes nobody is let go.
func TestScaleInIsNeverDearer(t *testing.T) {
	for _, workers := range []int{1, 2, 7, 24} {
		for _, others := range []float64{0, 0.05, 0.3, 2} {
			for _, target := range []float64{0.6, 0.4, 0.33} {
				s := scheduler.ScaleIn{Workers: workers, Target: target}
				time, cost := trains(&s, 1, others, target)
				if was, did := fixed(workers, 1, others, target); time*cost > 1.0001*was*did {
					t.Errorf("%d workers, %v for each other one, to %v: %v x %v, and %v x %v without; %d in the end", workers,
						others, target, time, cost, was, did, s.Workers)
				}
			}
		}
	}
	for _, c := range []struct {
		others float64
		gain   float64
		left   int
	}{{0.5, 1.4, 6}, {0.01, 1, 12}} {
		s := scheduler.ScaleIn{Workers: 12, Target: 0.31}
		time, cost := trains(&s, 1, c.others, 0.31)
		was, did := fixed(12, 1, c.others, 0.31)
		if gain := was * did / (time * cost); gain < c.gain || s.Workers > c.left {
			t.Errorf("%v for each other worker: %.2f times Perf/$, %d workers in the end", c.others, gain, s.Workers)
		}
	}
}

// Before the loss has a knee nobody goes, and never more than half at once, nor below the least.
func TestScaleInGoesStepByStep(t *testing.T) {
	s := scheduler.ScaleIn{Workers: 12, Least: 3}
	before := 12
	for step := range 2000 {
		loss := 1 - float64(step)/200
		if step >= 100 {
			loss = 0.5
		}
		n := s.Step(scheduler.StepSeen{Loss: loss, Own: 1, Others: 20})
		if step < 100 && n != 12 {
			t.Fatalf("step %d: %d workers before the knee", step, n)
		}
		if n < (before+1)/2 || n < 3 {
			t.Fatalf("step %d: from %d workers to %d", step, before, n)
		}
		before = n
	}
	if before != 3 {
		t.Errorf("%d workers in the end", before)
	}
}

// Workers that wait most of a step are let go once the loss is flat.
func ExampleScaleIn() {
	s := scheduler.ScaleIn{Workers: 8}
	for step := range 400 {
		was := s.Workers
		loss := 0.3 + 1/(0.05*float64(step)+0.5)
		if n := s.Step(scheduler.StepSeen{Loss: loss, Own: 1, Others: float64(was - 1)}); n < was {
			fmt.Printf("step %d: %d workers\n", step+1, n)
		}
	}
	// Output:
	// step 100: 4 workers
	// step 150: 2 workers
	// step 200: 1 workers
}

// A rule that is told of other workers goes on from there with what it knows of the losses.
func ExampleScaleIn_Now() {
	s := scheduler.ScaleIn{Workers: 8}
	for range 200 {
		s.Step(scheduler.StepSeen{Loss: 1, Own: 1, Others: 20})
	}
	fmt.Println("flat from the start:", s.Workers)
	s.Now(16)
	fmt.Println("a stage begins:", s.Workers)
	// Output:
	// flat from the start: 8
	// a stage begins: 16
}

// Workers are let go inside a round where the policy is mlless and what one of them leaves is another's.
func ExampleScaleInFor() {
	var job disdel.Job
	job.Distribution.Exchange = &disdel.Exchange{Order: disdel.OrderEager, Batches: disdel.BatchesQueue}
	job.Distribution.MinWorkers = 2
	fmt.Println(scheduler.ScaleInFor(scheduler.MLLess{}, job, 8).Least,
		scheduler.ScaleInFor(scheduler.Static{}, job, 8) == nil)
	job.Distribution.Exchange.Batches = disdel.BatchesShard
	fmt.Println(scheduler.ScaleInFor(scheduler.MLLess{}, job, 8) == nil)
	// Output:
	// 2 true
	// true
}
