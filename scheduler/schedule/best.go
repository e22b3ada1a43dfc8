package schedule

import "math"

// Best is the fixed choice with which the job ends soonest within a budget (0: none), without noise; ok is false where
// none ends within it. It is what any schedule has to be held against: a baseline over workers alone, whose memory is
// the most that there is, is twice as slow (SIREN's is such a one).
func (w *World) Best(budget float64) (c Choice, course Course, ok bool) {
	return w.best(budget, func(c Course) float64 { return c.Seconds })
}

// Cheapest is the fixed choice that costs the least, without noise; ok is false where no number of workers comes to the
// target at all.
func (w *World) Cheapest() (c Choice, course Course, ok bool) {
	return w.best(0, func(c Course) float64 { return c.Cost })
}

func (w *World) best(budget float64, value func(Course) float64) (best Choice, course Course, ok bool) {
	return w.bestOf(budget, fineStep, w.levels, value)
}

func (w *World) bestOf(budget, factor float64, levels func(int) []float64, value func(Course) float64) (best Choice,
	course Course, ok bool,
) {
	for _, n := range counts(w.MostWorkers, factor) {
		for _, m := range levels(n) {
			c := w.Clip(Choice{Workers: n, Memory: m})
			got := w.Run(Fixed(c), budget, nil)
			if got.Reached && (!ok || value(got) < value(course)) {
				best, course, ok = c, got, true
			}
		}
	}
	return best, course, ok
}

// Numbers of workers are looked at in steps of this factor, all of them while they are few.
const (
	fineStep   = 1.02
	coarseStep = 1.25
)

// counts are numbers of workers up to most, each at most a factor above the one before.
func counts(most int, factor float64) []int {
	var out []int
	for n := 1; n < most; n = max(n+1, int(float64(n)*factor)) {
		out = append(out, n)
	}
	return append(out, max(1, most))
}

// levels are the memories that a number of workers can have.
func (w *World) levels(workers int) []float64 {
	least := w.Clip(Choice{Workers: workers}).Memory
	out := []float64{least}
	step := w.Step
	if step == 0 {
		step = 64
	}
	for m := least + step; m <= w.MostMemory; m += step {
		out = append(out, m)
	}
	return out
}

// finish is the cheapest way from a loss, after so many epochs, to the job's end: the choice, and what it costs all in
// all. ok is false where none comes there.
func (w *World) finish(epochs int, loss float64) (best Choice, cost float64, ok bool) {
	best, cost, _, ok = w.finishing(epochs, loss)
	return best, cost, ok
}

// finishing is finish that says after how many epochs.
func (w *World) finishing(epochs int, loss float64) (best Choice, cost float64, more int, ok bool) {
	for _, n := range counts(w.MostWorkers, coarseStep) {
		for _, m := range w.few(n) {
			c := w.Clip(Choice{Workers: n, Memory: m})
			l, sum, each := loss, 0.0, c.Cost(w.Seconds(c))
			e := epochs
			for ; !w.done(e, l) && e < mostEpochs && (!ok || sum < cost); e++ {
				l, sum = w.After(l, n), sum+each
			}
			if w.done(e, l) && (!ok || sum < cost) {
				best, cost, more, ok = c, sum, e-epochs, true
			}
		}
	}
	return best, cost, more, ok
}

// few are the memories that can be the cheapest: what is needed, what a whole processor goes with, and what was
// measured.
func (w *World) few(workers int) []float64 {
	least := w.Clip(Choice{Workers: workers}).Memory
	out := []float64{least}
	for _, share := range []float64{0.25, 0.5, 0.75, 1} {
		if m := share * w.Full; m > least && m <= w.MostMemory {
			out = append(out, m)
		}
	}
	for _, m := range w.Memories {
		if m.Memory > least && m.Memory <= w.MostMemory {
			out = append(out, m.Memory)
		}
	}
	return out
}

// Guard keeps what somebody chooses within a budget: an epoch that may cost more than leaves the cheapest way to the
// end is trained as the best path for the rest has it, or as fast as that way allows, or in it, and where there is
// none, the job gives up (a Choice without workers) before it spends any more. With no budget it chooses as by does.
func (w *World) Guard(by Chooser) Chooser {
	again := w.Adaptive()
	return func(s State) Choice {
		c := w.Clip(by(s))
		if s.Budget <= 0 || w.holds(s, c) {
			return c
		}
		if c = w.Clip(again(s)); w.holds(s, c) {
			return c
		}
		if c, ok := w.fastest(s); ok {
			return c
		}
		c, cost, ok := w.finish(s.Epoch, s.Loss)
		if !ok || cost > s.Left {
			return Choice{}
		}
		return c
	}
}

// fastest is the choice with which the next epoch takes the least, of those that the budget holds.
func (w *World) fastest(s State) (best Choice, ok bool) {
	for _, n := range counts(w.MostWorkers, coarseStep) {
		for _, m := range w.few(n) {
			c := w.Clip(Choice{Workers: n, Memory: m})
			if (!ok || w.Seconds(c) < w.Seconds(best)) && w.holds(s, c) {
				best, ok = c, true
			}
		}
	}
	return best, ok
}

// spread is how many deviations above the expected time an epoch is counted.
const spread = 2

// holds tells whether the budget holds an epoch, and the cheapest way to the end after it, as expensive as they may
// well be together: noise of several epochs evens out.
func (w *World) holds(s State, c Choice) bool {
	one := c.Cost(w.Seconds(c))
	loss := w.After(s.Loss, c.Workers) * math.Exp(spread*w.LossNoise)
	if w.done(s.Epoch+1, loss) {
		return one*math.Exp(spread*w.TimeNoise) <= s.Left
	}
	_, rest, epochs, ok := w.finishing(s.Epoch+1, loss)
	off := math.Hypot(one, rest/math.Sqrt(float64(max(1, epochs))))
	return ok && one+rest+off*math.Expm1(spread*w.TimeNoise) <= s.Left
}
