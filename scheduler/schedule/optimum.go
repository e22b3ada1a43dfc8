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

// Plan is a choice for every epoch.
type Plan []Choice

// Chooser chooses as the plan has it, and its last choice for epochs after it.
func (p Plan) Chooser() Chooser {
	return func(s State) Choice { return p[min(s.Epoch, len(p)-1)] }
}

// Optimum is a plan with which the job ends about as soon as with any within a budget (0: none), without noise; ok is
// false where none was found. Loss and cost are sums over the epochs (see After), so that, with a price for each, every
// epoch is chosen by itself, and the prices are found by bisection. least is a time, s, that no plan of the workers and
// memories that there are comes below, but for the steps in which workers are looked at: by the same prices (Lagrange's
// duality).
func (w *World) Optimum(budget float64) (plan Plan, least float64, ok bool) {
	return w.optimum(budget, w.menu(fineStep, w.levels))
}

// offer is what there is for a number of workers.
type offer struct {
	Choice
	seconds, cost float64
}

// menu is the offers for each number of workers.
func (w *World) menu(factor float64, levels func(int) []float64) (out [][]offer) {
	for _, n := range counts(w.MostWorkers, factor) {
		var all []offer
		for _, m := range levels(n) {
			c := w.Clip(Choice{Workers: n, Memory: m})
			seconds := w.Seconds(c)
			all = append(all, offer{c, seconds, c.Cost(seconds)})
		}
		out = append(out, all)
	}
	return out
}

// moreEpochs is how many more epochs are looked at than a job has that never has more than one worker: more of them
// come no nearer to the target.
const moreEpochs = 6

func (w *World) optimum(budget float64, menu [][]offer) (plan Plan, least float64, ok bool) {
	least = math.Inf(1)
	seconds := math.Inf(1)
	from, to := w.lengths()
	for length := from; length > 0 && length <= to; length++ {
		p := pricing{w: w, menu: menu, budget: budget, least: math.Inf(-1)}
		if !p.begin(length) || !p.solve() {
			continue
		}
		if least = min(least, p.least); p.seconds < seconds {
			plan, seconds, ok = p.plan, p.seconds, true
		}
		if p.least > seconds { // nor are longer ones any faster
			break
		}
	}
	return plan, least, ok
}

// lengths are the fewest epochs that a job can have, and the most that are looked at; 0: it comes to no end.
func (w *World) lengths() (from, to int) {
	if w.Target <= 0 {
		return max(1, w.Epochs), max(1, w.Epochs)
	}
	loss := w.First
	for e := 1; e <= mostEpochs; e++ {
		if loss = w.After(loss, 1); loss <= w.Target {
			return e, e + moreEpochs
		}
	}
	return 0, 0
}

// pricing looks for the best plan of so many epochs.
type pricing struct {
	w      *World
	menu   [][]offer
	budget float64
	weight []float64 // by epoch: what a worker more raises the last loss by
	slack  float64   // that all workers together may
	best   []offer   // by number of workers, at the price of cost

	chosen  []offer // by epoch, at both prices
	plan    Plan
	seconds float64 // of plan
	least   float64 // that no plan comes below
}

// begin is false where not even one worker in every epoch comes to the target.
func (p *pricing) begin(length int) bool {
	p.chosen = make([]offer, length)
	p.weight = make([]float64, length)
	if p.w.Target <= 0 {
		return true
	}
	left := math.Pow(p.w.Fall, float64(length))
	p.slack = p.w.Target - left*p.w.First - (1-left)*p.w.Floor
	sum := 0.0
	for i := range p.weight {
		p.weight[i] = (1 - p.w.Fall) * p.w.PerWorker * math.Pow(p.w.Fall, float64(length-1-i))
		sum += p.weight[i]
	}
	return sum <= p.slack
}

// The bisections, over factors of prices.
const (
	priceSteps = 20
	leastPrice = 1e-6
	mostPrice  = 1e12
)

// solve finds the price of cost, and says whether there is a plan within the budget.
func (p *pricing) solve() bool {
	if p.at(0) || p.budget <= 0 {
		return p.keep()
	}
	low, high := 0.0, leastPrice
	for !p.at(high) {
		if low, high = high, 8*high; high > mostPrice {
			return false
		}
	}
	p.keep()
	for range priceSteps {
		middle := math.Sqrt(max(low, leastPrice/8) * high)
		if p.at(middle) {
			high = middle
			p.keep()
		} else {
			low = middle
		}
	}
	return true
}

// keep takes what is chosen now as the plan.
func (p *pricing) keep() bool {
	seconds := 0.0
	for _, o := range p.chosen {
		seconds += o.seconds
	}
	if p.plan != nil && seconds >= p.seconds {
		return true
	}
	p.plan, p.seconds = nil, seconds
	for _, o := range p.chosen {
		p.plan = append(p.plan, o.Choice)
	}
	return true
}

// at chooses for every epoch at a price of cost, with the price of loss at which the target is come to, and says
// whether the budget holds that.
func (p *pricing) at(price float64) bool {
	p.best = p.best[:0]
	for _, all := range p.menu {
		best := all[0]
		for _, o := range all[1:] {
			if o.seconds+price*o.cost < best.seconds+price*best.cost {
				best = o
			}
		}
		p.best = append(p.best, best)
	}
	if !p.choose(price, 0) {
		low, high := 0.0, 1.0
		for !p.choose(price, high) {
			low, high = high, 8*high
		}
		for range priceSteps {
			middle := (low + high) / 2
			if p.choose(price, middle) {
				high = middle
			} else {
				low = middle
			}
		}
		p.choose(price, high)
	}
	cost := 0.0
	for _, o := range p.chosen {
		cost += o.cost
	}
	return p.budget <= 0 || cost <= p.budget
}

// choose takes for every epoch what is least at two prices, and says whether that comes to the target.
func (p *pricing) choose(price, ofLoss float64) bool {
	sum, bound := 0.0, -ofLoss*p.slack
	if p.budget > 0 {
		bound -= price * p.budget
	}
	for i, weight := range p.weight {
		value := math.Inf(1)
		for _, o := range p.best {
			if v := o.seconds + price*o.cost + ofLoss*weight*float64(o.Workers); v < value {
				value, p.chosen[i] = v, o
			}
		}
		sum += weight * float64(p.chosen[i].Workers)
		bound += value
	}
	p.least = max(p.least, bound)
	return p.w.Target <= 0 || sum <= p.slack
}

// coarseMenu steps are wide enough for what is looked for anew after every epoch.
const coarseMenu = 1.1

// Replanned chooses as the best plan for the rest of the job has it, which it looks for anew after every epoch, with
// something kept back for noise: what the times of all epochs that are left may come to above what is expected. Where
// no plan comes to the end for what is left, it does what costs the least.
func (w *World) Replanned() Chooser {
	menu := w.menu(coarseMenu, w.few)
	return func(s State) Choice {
		rest := *w
		rest.First, rest.Epochs = s.Loss, max(1, w.Epochs-s.Epoch)
		for _, kept := range []float64{spread, spread / 2, 0} {
			if w.Target > 0 {
				rest.Target = w.Target * math.Exp(-kept*w.LossNoise)
			}
			epochs, _ := rest.lengths()
			budget := 0.0
			if s.Budget > 0 {
				budget = max(1e-9, s.Left*(1-kept*w.TimeNoise/math.Sqrt(float64(max(1, epochs)))))
			}
			if plan, _, ok := rest.optimum(budget, menu); ok {
				return plan[0]
			}
		}
		c, _, _ := w.finish(s.Epoch, s.Loss)
		return c
	}
}
