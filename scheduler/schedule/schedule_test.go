package schedule

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// published is the simulated cloud of the note on SIREN: 2,000 batches of 8 s, a store that saturates at 150 functions,
// Lambda's memories, a loss from ln 10 to 0.3.
func published() *World {
	return &World{
		Batches: 2000, Load: 0.5, Fetch: 0.05, Compute: 8, Push: 0.2, Saturates: 150, Full: 1792,
		Program: 300, Part: 20000, First: 2.3, Target: 0.3, Floor: 0.1, PerWorker: 2e-4, Fall: 0.75,
		MostWorkers: 3000, LeastMemory: 128, MostMemory: 3008, Step: 64, TimeNoise: 0.05, LossNoise: 0.005,
	}
}

// small is the same for tests that run many jobs: 64 workers.
func small() *World {
	w := published()
	w.Batches, w.MostWorkers, w.Saturates, w.PerWorker, w.Part = 200, 64, 30, 1e-3, 4000
	return w
}

// The best fixed choice is the fastest of all that there are within the budget.
func TestBestIsTheFastestOfAll(t *testing.T) {
	w := small()
	_, cheapest, _ := w.Cheapest()
	for _, times := range []float64{1.05, 1.5, 3} {
		budget := times * cheapest.Cost
		got, course, ok := w.Best(budget)
		fastest := math.Inf(1)
		for n := 1; n <= w.MostWorkers; n++ {
			for m := w.LeastMemory; m <= w.MostMemory; m += w.Step {
				if c := w.Run(Fixed(Choice{n, m}), budget, nil); c.Reached {
					fastest = min(fastest, c.Seconds)
				}
			}
		}
		if !ok || course.Seconds > 1.001*fastest || course.Cost > budget {
			t.Errorf("%g GB-s: %v takes %g s for %g, the fastest %g s", budget, got, course.Seconds, course.Cost, fastest)
		}
	}
	if _, _, ok := w.Best(cheapest.Cost / 2); ok {
		t.Error("something ends for half of what the cheapest costs")
	}
}

// A path is never slower than the best fixed choice, and keeps to the budget. Where nothing but the number of workers
// changes and more of them do no harm, it is no faster either (Jensen): what a schedule gains comes from staleness and
// from memory.
func TestPathsAreAsFastAsTheBestFixedChoice(t *testing.T) {
	w := small()
	_, cheapest, _ := w.Cheapest()
	for _, times := range []float64{1.1, 1.5, 3} {
		budget := times * cheapest.Cost
		_, fixed, _ := w.Best(budget)
		p, course, ok := w.Search(budget)
		if !ok || course.Seconds > fixed.Seconds || course.Cost > budget || !course.Reached {
			t.Errorf("%g GB-s: %v takes %g s for %g, the fixed choice %g s", budget, p, course.Seconds, course.Cost,
				fixed.Seconds)
		}
	}
	w.PerWorker, w.LeastMemory, w.MostMemory, w.Program, w.Part = 0, 1792, 1792, 0, 0
	w.Target, w.Epochs = 0, 12
	_, cheapest, _ = w.Cheapest()
	budget := 1.5 * cheapest.Cost
	_, fixed, _ := w.Best(budget)
	if _, course, _ := w.Search(budget); course.Seconds < 0.98*fixed.Seconds {
		t.Errorf("%g s, where the best fixed choice takes %g s", course.Seconds, fixed.Seconds)
	}
}

// No plan of few workers and memories is faster than the best plan, nor below its bound: all of them are tried.
func TestNoPlanIsBelowTheBound(t *testing.T) {
	w := small()
	w.Target, w.Epochs, w.MostWorkers, w.LeastMemory, w.MostMemory, w.Program, w.Part = 0.7, 0, 3, 512, 1792, 0, 0
	w.Step = 640
	w.PerWorker = 0.02
	_, cheapest, _ := w.Cheapest()
	budget := 1.1 * cheapest.Cost
	plan, least, ok := w.Optimum(budget)
	course := w.Run(plan.Chooser(), budget, nil)
	if !ok || !course.Reached || course.Seconds < least {
		t.Fatalf("%v, %v: %+v, at least %g s", ok, plan, course, least)
	}
	fastest := math.Inf(1)
	var try func(s State, seconds float64)
	try = func(s State, seconds float64) {
		if w.done(s.Epoch, s.Loss) || s.Epoch == 8 {
			if s.Loss <= w.Target {
				fastest = min(fastest, seconds)
			}
			return
		}
		for n := 1; n <= w.MostWorkers; n++ {
			for _, m := range w.levels(n) {
				c := w.Clip(Choice{n, m})
				took := w.Seconds(c)
				if left := s.Left - c.Cost(took); left >= 0 && seconds+took < fastest {
					try(State{Epoch: s.Epoch + 1, Loss: w.After(s.Loss, n), Left: left}, seconds+took)
				}
			}
		}
	}
	try(State{Loss: w.First, Left: budget}, 0)
	if least > fastest*(1+1e-9) || course.Seconds > 1.1*fastest {
		t.Errorf("the fastest of all plans takes %g s, the one that was found %g s, and the bound is %g s", fastest,
			course.Seconds, least)
	}
}

// Of any two courses the one that comes to its end has the larger reward, as long as it takes no more than seven units;
// with the reward that SIREN prints it has not.
func TestASuccessIsWorthMoreThanAnyFailure(t *testing.T) {
	w, r := small(), Reward{Unit: 100}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(reached bool, most float64) Course {
			c := Course{Reached: reached, Loss: rapid.Float64Range(w.Target, w.First).Draw(t, "loss")}
			n := rapid.IntRange(1, 30).Draw(t, "epochs")
			total := rapid.Float64Range(1, most).Draw(t, "seconds")
			for range n {
				c.Epochs = append(c.Epochs, Epoch{Took: total / float64(n)})
			}
			c.Seconds = total
			return c
		}
		success, failure := draw(true, 7*r.Unit*0.99), draw(false, 50*r.Unit)
		if a, b := r.Whole(w, success), r.Whole(w, failure); a <= b-1e-9 {
			t.Fatalf("%g for a success of %g s, %g for a failure of %g s", a, success.Seconds, b, failure.Seconds)
		}
	})
	printed := func(c Course) float64 { // -beta P_t, and C = 2 more or less
		if c.Reached {
			return 2 - c.Seconds/r.Unit
		}
		return -2 - c.Seconds/r.Unit
	}
	if printed(Course{Reached: true, Seconds: 6 * r.Unit}) > printed(Course{Seconds: 0.1 * r.Unit}) {
		t.Error("the printed reward has no attractor")
	}
}

// The gradient is that of the logarithm of the probability, by finite differences.
func TestTheGradientIsThatOfTheProbability(t *testing.T) {
	lot := rand.New(rand.NewPCG(1, 1))
	n := &Net{Weights: make([]float64, weights), Scale: Scale{Seconds: 3}}
	for i := range n.Weights {
		n.Weights[i] = 0.3 * lot.NormFloat64()
	}
	s := State{
		Epoch: 4, Loss: 0.7, Seconds: 5, Fetch: 1, Compute: 3, Push: 1, Memory: 0.5, Processor: 0.6, Left: 3, Budget: 7,
	}
	a := [2]float64{0.4, -0.3}
	got := make([]float64, weights)
	n.gradient(got, s, a, 1)
	without := make([]float64, weights) // what keeps deviations from dying is no part of it
	n.gradient(without, s, a, 0)
	for i := range n.Weights {
		const by = 1e-5
		was := n.Weights[i]
		n.Weights[i] = was + by
		up := n.logProbability(s, a)
		n.Weights[i] = was - by
		down := n.logProbability(s, a)
		n.Weights[i] = was
		if want := (up - down) / (2 * by); math.Abs(got[i]-without[i]-want) > 1e-6*max(1, math.Abs(want)) {
			t.Fatalf("weight %d: %g, want %g", i, got[i]-without[i], want)
		}
	}
}

// Learning ends no slower than the best fixed choice, from the path and, with more iterations than any job has, from
// nothing; equal seeds learn the same.
func TestANetworkLearns(t *testing.T) {
	w := small()
	_, cheapest, _ := w.Cheapest()
	budget := 2 * cheapest.Cost
	_, fixed, _ := w.Best(budget)
	for seed := range uint64(3) {
		n, _, ok := w.Learn(Training{Budget: budget, Seed: seed})
		course := w.Run(n.Greedy(), budget, nil)
		if !ok || !course.Reached || course.Seconds > 1.02*fixed.Seconds {
			t.Errorf("seed %d: %v after %g s, the fixed choice takes %g s", seed, course.Reached, course.Seconds, fixed.Seconds)
		}
		if seed > 0 {
			continue
		}
		if again, _, _ := w.Learn(Training{Budget: budget, Seed: seed}); !reflect.DeepEqual(n, again) {
			t.Errorf("seed %d: it learned something else", seed)
		}
	}
}

// What training ends with is no worse than what it began with, however it went.
func TestTheBestNetworkIsKept(t *testing.T) {
	w := small()
	w.TimeNoise, w.LossNoise = 0, 0
	_, cheapest, _ := w.Cheapest()
	budget := 1.25 * cheapest.Cost
	fixed, base, _ := w.Best(budget)
	worth := func(n *Net) float64 { return Reward{Unit: base.Seconds}.Whole(w, w.Run(n.Greedy(), budget, nil)) }
	for seed := range uint64(3) {
		to := Training{Budget: budget, Seed: seed}
		first := w.begin(to, fixed, base, rand.New(rand.NewPCG(seed, 16)))
		if last, _, _ := w.Learn(to); worth(last) < worth(first) {
			t.Errorf("seed %d: %g, and it began with %g", seed, worth(last), worth(first))
		}
	}
}

// A job that was faster than the network's own makes its choices more likely, a slower one less.
func TestANetworkGoesOnLearning(t *testing.T) {
	w := small()
	_, cheapest, _ := w.Cheapest()
	budget := 2 * cheapest.Cost
	n, _, _ := w.Learn(Training{Budget: budget, Seed: 1})
	job := w.Run(n.Sample(rand.New(rand.NewPCG(5, 5))), 0, nil)
	likely := func(n *Net) (sum float64) {
		for _, e := range job.Epochs {
			a := [2]float64{math.Log2(float64(e.Workers)), math.Log2(e.Choice.Memory)}
			sum += n.logProbability(e.State, within(n, e.State, a))
		}
		return sum
	}
	times := func(by float64) Course {
		out := job
		out.Epochs = nil
		for _, e := range job.Epochs {
			e.Took *= by
			out.Epochs = append(out.Epochs, e)
		}
		out.Seconds *= by
		out.Reached = true
		return out
	}
	was := likely(n)
	if now := likely(n.Improve(w, times(0.2), budget)); now <= was {
		t.Errorf("after a fast job %g, before %g", now, was)
	}
	if now := likely(n.Improve(w, times(5), budget)); now >= was {
		t.Errorf("after a slow job %g, before %g", now, was)
	}
	if got := n.Improve(w, Course{}, budget); !reflect.DeepEqual(got, n) {
		t.Error("no epochs taught something")
	}
}

// Under a guard nothing passes a budget but by what the noise of one epoch is beyond two deviations, a job that is
// worth beginning comes to its end nearly always, and one that cannot spends nothing.
func TestAGuardKeepsBudgets(t *testing.T) {
	w := small()
	_, cheapest, _ := w.Cheapest()
	wild := func(lot *rand.Rand) Chooser {
		return func(State) Choice { return Choice{1 + lot.IntN(64), 128 + 3000*lot.Float64()} }
	}
	reached, over := 0, 0
	const jobs = 200
	for seed := range uint64(jobs) {
		lot := rand.New(rand.NewPCG(seed, 2))
		budget := cheapest.Cost * (1.2 + 2*lot.Float64())
		c := w.Run(w.Guard(wild(lot)), budget, lot)
		if c.Cost > 1.02*budget {
			t.Errorf("seed %d: %g GB-s of %g", seed, c.Cost, budget)
		}
		if c.Cost > budget {
			over++
		}
		if c.Reached {
			reached++
		}
	}
	if reached < jobs*9/10 || over > jobs/20 {
		t.Errorf("%d of %d came to their end, %d went over", reached, jobs, over)
	}
	c := w.Run(w.Guard(wild(rand.New(rand.NewPCG(1, 1)))), cheapest.Cost/2, nil)
	if len(c.Epochs) != 0 || c.Cost != 0 {
		t.Errorf("%d epochs for %g GB-s of a budget that holds none", len(c.Epochs), c.Cost)
	}
}

// Measured times go before formulas; a job without a target trains its epochs.
func TestAWorldOfMeasuredTimes(t *testing.T) {
	w := &World{
		Times: map[int]float64{1: 10, 2: 6, 3: 6.5, 4: 7}, MostWorkers: 4, LeastMemory: 256, MostMemory: 256, Epochs: 5,
		First: 1,
	}
	best, course, ok := w.Best(0)
	if !ok || best != (Choice{2, 256}) || course.Seconds != 30 || len(course.Epochs) != 5 {
		t.Errorf("%v: %+v", best, course)
	}
	if best, course, ok = w.Best(14); !ok || best.Workers != 1 || course.Cost != 12.5 {
		t.Errorf("%v: %+v", best, course)
	}
}

// Where processors go with memory, a schedule trades one for the other: with a budget for half of the memory throughout
// it takes that, with more it is faster, and never slower than the best of the memories that were measured.
func TestAWorldOfMeasuredMemories(t *testing.T) {
	w := &World{
		Times: map[int]float64{1: 20, 2: 11}, MostWorkers: 2, LeastMemory: 256, MostMemory: 1024, Step: 32,
		Epochs: 8, First: 1,
		Memories: []Measured{{256, 2.2}, {512, 1}, {1024, 0.9}},
	}
	for memory, want := range map[float64]float64{
		128: 44, 256: 44, 512: 20, 1024: 18, 2048: 18, 362.038672: 20 * math.Sqrt(2.2),
	} {
		if got := w.Seconds(Choice{1, memory}); math.Abs(got-want) > 1e-3 {
			t.Errorf("%g MB: %g s, want %g", memory, got, want)
		}
	}
	if best, _, ok := w.Best(0); !ok || best != (Choice{2, 1024}) {
		t.Errorf("without a budget: %v", best)
	}
	if best, _, ok := w.Cheapest(); !ok || best != (Choice{1, 512}) {
		t.Errorf("the cheapest: %v", best)
	}
	_, fixed, _ := w.Best(110)
	path, course, ok := w.Search(110)
	if !ok || course.Seconds > fixed.Seconds || course.Cost > 110 {
		t.Errorf("%v takes %g s and %g GB-s, the best fixed choice %g s", path, course.Seconds, course.Cost, fixed.Seconds)
	}
}

// logProbability is the log probability of an action, without its constant.
func (n *Net) logProbability(s State, a [2]float64) (sum float64) {
	o := n.think(s)
	for k := range a {
		z := (a[k] - o.mean[k]) / math.Exp(o.logSD[k])
		sum -= z*z/2 + o.logSD[k]
	}
	return sum
}
