package batch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func at(epochs int, accuracy float64) Point {
	return Point{Epochs: epochs, TrainLoss: 1, Accuracy: &accuracy, Loss: new(1.0)}
}

// Of nine jobs three go on after one epoch and one after three, whichever comes first: the jobs that nobody stopped are
// those that were the best at every look, in any order of their rounds.
func TestHalvingKeepsTheBest(t *testing.T) {
	for seed := range uint64(500) {
		lot := rand.New(rand.NewPCG(seed, 0))
		c := newContest(Halving{Factor: 3}, ByAccuracy, 9)
		next, stopped := make([]int, 9), map[int]int{}
		for len(stopped) < 9 {
			job := lot.IntN(9)
			if _, ended := stopped[job]; ended {
				continue
			}
			if next[job]++; next[job] > 10 {
				stopped[job] = 10
				continue
			}
			// a job is always better than those before it, and everybody gets better
			for _, out := range c.reached(job, 10, at(next[job], float64(job)/100+float64(next[job])/20)) {
				if _, ended := stopped[out.job]; !ended {
					stopped[out.job] = next[out.job]
				}
			}
		}
		if stopped[8] != 10 {
			t.Fatalf("seed %d: the best job was stopped: %v", seed, stopped)
		}
		for job := range 6 {
			if !c.out[job] {
				t.Errorf("seed %d: job %d is of the worse two thirds, and nobody stopped it: %v", seed, job, stopped)
			}
		}
	}
}

// At every look there is a job that goes on, whatever the numbers are, and never more than go on.
func TestHalvingNeverStopsEverybody(t *testing.T) {
	for seed := range uint64(300) {
		lot := rand.New(rand.NewPCG(seed, 1))
		jobs, h := 1+lot.IntN(12), Halving{Factor: 2 + lot.IntN(3), From: 1 + lot.IntN(3)}
		c := newContest(h, ByLoss, jobs)
		for range 200 {
			job := lot.IntN(jobs)
			p := Point{Epochs: 1 + lot.IntN(12), TrainLoss: float64(lot.IntN(3))}
			if lot.IntN(4) == 0 {
				p.TrainLoss = math.NaN()
			}
			c.reached(job, 12, p)
		}
		if len(c.out) >= jobs {
			t.Fatalf("seed %d: all %d jobs are stopped", seed, jobs)
		}
		for rung, list := range c.rungs {
			left := 0
			for job := range list {
				if !c.out[job] {
					left++
				}
			}
			if left > c.goOn(rung) {
				t.Errorf("seed %d: %d jobs go on after rung %d, want at most %d", seed, left, rung, c.goOn(rung))
			}
		}
	}
}

// A job that failed beats nobody, one that has ended at a look's epochs is not looked at, and without a factor nobody
// is stopped.
func TestWhoIsNotCompared(t *testing.T) {
	c := newContest(Halving{Factor: 2}, ByAccuracy, 2)
	c.reached(0, 4, at(1, 0.9))
	c.leaves(0)
	if out := c.reached(1, 4, at(1, 0.1)); len(out) > 0 {
		t.Errorf("%v is stopped by a job that failed", out)
	}
	c = newContest(Halving{Factor: 2, From: 4}, ByAccuracy, 2)
	if out := append(c.reached(0, 4, at(4, 0.9)), c.reached(1, 4, at(4, 0.1))...); len(out) > 0 {
		t.Errorf("%v is stopped at its end", out)
	}
	c = newContest(Halving{}, ByAccuracy, 2)
	if out := append(c.reached(0, 9, at(4, 0.9)), c.reached(1, 9, at(4, 0.1))...); len(out) > 0 {
		t.Errorf("%v is stopped without halving", out)
	}
}

// What is not known is worse than anything that is.
func TestPointsAreOrdered(t *testing.T) {
	list := []Point{
		{TrainLoss: math.NaN()},
		{TrainLoss: 3},
		{TrainLoss: 1},
		{TrainLoss: 9, Loss: new(math.NaN()), Accuracy: new(math.NaN())},
		{TrainLoss: 9, Loss: new(0.2), Accuracy: new(0.5)},
		{TrainLoss: 9, Loss: new(0.4), Accuracy: new(0.9)},
		{TrainLoss: 9, Loss: new(0.3), Accuracy: new(0.9)},
	}
	for by, want := range map[Measure][]int{ByAccuracy: {6, 5, 4, 2, 1, 3, 0}, ByLoss: {4, 6, 5, 2, 1, 3, 0}} {
		order := []int{0, 1, 2, 3, 4, 5, 6}
		slices.SortFunc(order, func(a, b int) int { return by.compare(list[a], list[b]) })
		if !slices.Equal(order, want) {
			t.Errorf("%s: %v, want %v", by, order, want)
		}
	}
}

// A job holds its place at a rung even if it is stopped at a later rung, whether jobs run one after another or side by
// side. A job goes on only if fewer better jobs came to the rung before it than the rung has places.
func TestAPlaceIsTakenOnce(t *testing.T) {
	for seed := range uint64(300) {
		lot := rand.New(rand.NewPCG(seed, 2))
		jobs, epochs, factor, beside := 2+lot.IntN(12), 2+lot.IntN(30), 2+lot.IntN(3), 1+lot.IntN(4)
		c := newContest(Halving{Factor: factor}, ByAccuracy, jobs)
		trained, seen, begun := make([]int, jobs), map[int][]float64{}, 0
		quality, running := lot.Perm(jobs), []int(nil)
		for begun < jobs || len(running) > 0 {
			for ; begun < jobs && len(running) < beside; begun++ {
				running = append(running, begun)
			}
			job := running[lot.IntN(len(running))]
			trained[job]++
			accuracy := float64(quality[job])
			c.reached(job, epochs, at(trained[job], accuracy))
			for rung, look := 0, 1; look < epochs; rung, look = rung+1, look*factor {
				if look != trained[job] {
					continue
				}
				better := 0
				for _, other := range seen[rung] {
					if other > accuracy {
						better++
					}
				}
				seen[rung] = append(seen[rung], accuracy)
				if goesOn := !c.out[job]; goesOn && better >= c.goOn(rung) && len(c.out) < jobs-1 ||
					!goesOn && better < c.goOn(rung) {
					t.Fatalf("seed %d: job %d of %d goes on after epoch %d: %v, %d were better, %d go on", seed, job, jobs,
						look, goesOn, better, c.goOn(rung))
				}
			}
			running = slices.DeleteFunc(running, func(j int) bool { return c.out[j] || trained[j] == epochs })
		}
	}
}

// Jobs do not wait: of jobs that run one after another, the next one always better, all run to the end. In any drawn
// order the text of a stopped job is true: it names no more better jobs than have trained for as long.
func TestTheTextOfAStoppedJobIsTrue(t *testing.T) {
	rising := newContest(Halving{Factor: 3}, ByAccuracy, 6)
	for job := range 6 {
		for epoch := 1; epoch <= 9; epoch++ {
			for _, out := range rising.reached(job, 9, at(epoch, float64(job))) {
				if out.job == job { // the others have ended
					t.Errorf("job %d is stopped: %s", job, out.why)
				}
			}
		}
	}
	for seed := range uint64(300) {
		lot := rand.New(rand.NewPCG(seed, 3))
		jobs, factor, epochs := 2+lot.IntN(12), 2+lot.IntN(3), 2+lot.IntN(30)
		c, quality, trained := newContest(Halving{Factor: factor}, ByAccuracy, jobs), lot.Perm(jobs), make([]int, jobs)
		for range jobs * epochs {
			job := lot.IntN(jobs)
			if c.out[job] || trained[job] == epochs {
				continue
			}
			trained[job]++
			for _, out := range c.reached(job, epochs, at(trained[job], float64(quality[job]))) {
				var says, of, after, better int
				const form = "it fell behind: %d of %d jobs were better after %d"
				if _, err := fmt.Sscanf(out.why, form, &says, &of, &after); err != nil {
					t.Fatal(out.why, err)
				}
				for other := range jobs {
					if quality[other] > quality[out.job] && trained[other] >= after {
						better++
					}
				}
				if better < says || of != jobs {
					t.Fatalf("seed %d: %q, and %d were better", seed, out.why, better)
				}
			}
		}
	}
}
