package schedule

import "math"

// Best is the fixed choice with which the job ends soonest within a budget (0: none), without noise; ok is false if
// none ends within it. Schedules are compared with it: a baseline over workers alone, with the most memory (as in
// SIREN), is twice as slow.
func (w *World) Best(budget float64) (c Choice, course Course, ok bool) {
	return w.best(budget, func(c Course) float64 { return c.Seconds })
}

// Cheapest is the fixed choice that costs the least, without noise; ok is false if no number of workers reaches the
// target.
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

// Numbers of workers are tried in steps of this factor; small numbers are all tried.
const (
	fineStep   = 1.02
	coarseStep = 1.25
)

// counts returns numbers of workers up to most, each at most a factor above the previous one.
func counts(maximum int, factor float64) []int {
	var out []int
	for n := 1; n < maximum; n = max(n+1, int(float64(n)*factor)) {
		out = append(out, n)
	}
	return append(out, max(1, maximum))
}

// levels returns the possible memories for a number of workers.
func (w *World) levels(workers int) []float64 {
	minimum := w.Clip(Choice{Workers: workers}).Memory
	out := []float64{minimum}
	step := w.Step
	if step == 0 {
		step = 64
	}
	for m := minimum + step; m <= w.MostMemory; m += step {
		out = append(out, m)
	}
	return out
}

// finish is the cheapest way from a loss, after so many epochs, to the job's end: the choice, and its total cost. ok
// is false if there is none.
func (w *World) finish(epochs int, loss float64) (best Choice, cost float64, ok bool) {
	best, cost, _, ok = w.finishing(epochs, loss)
	return best, cost, ok
}

// finishing is finish that also returns the number of epochs.
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

// few returns the memories that can be the cheapest: the least, shares of a whole processor's, and the measured ones.
func (w *World) few(workers int) []float64 {
	minimum := w.Clip(Choice{Workers: workers}).Memory
	out := []float64{minimum}
	for _, share := range []float64{0.25, 0.5, 0.75, 1} {
		if m := share * w.Full; m > minimum && m <= w.MostMemory {
			out = append(out, m)
		}
	}
	for _, m := range w.Memories {
		if m.Memory > minimum && m.Memory <= w.MostMemory {
			out = append(out, m.Memory)
		}
	}
	return out
}

// Guard keeps a Chooser within a budget. After an epoch, the cheapest way to the end must still be affordable. If a
// choice may cost too much for that, Guard takes the best path for the rest, the fastest affordable choice, or the
// cheapest way. If there is none, the job gives up (a Choice without workers) before it spends any more. Without a
// budget it changes nothing.
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

// fastest is the affordable choice with which the next epoch takes the least time.
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

// spread is how many standard deviations above its expected time an epoch counts.
const spread = 2

// holds tells whether the budget is enough for an epoch and the cheapest way to the end after it, with noise: that of
// several epochs evens out.
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

type Plan []Choice

// Chooser follows the plan, and repeats its last choice after its end.
func (p Plan) Chooser() Chooser {
	return func(s State) Choice { return p[min(s.Epoch, len(p)-1)] }
}

// Optimum returns a plan with which the job ends about as soon as with any within a budget (0: none), without noise;
// ok is false if none was found. Loss and cost are sums over the epochs (see After). With a price for each, every
// epoch is chosen by itself, and the prices are found by bisection. minimum is a lower bound in s for the time of any
// plan (Lagrange's duality), except for the steps in which workers are tried.
func (w *World) Optimum(budget float64) (plan Plan, minimum float64, ok bool) {
	return w.optimum(budget, w.menu(fineStep, w.levels))
}

// offer is a possible choice.
type offer struct {
	Choice
	seconds, cost float64
}

// menu returns the offers for each number of workers.
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

// moreEpochs is how many more epochs are tried than a job with one worker throughout has: more of them come no nearer
// to the target.
const moreEpochs = 6

func (w *World) optimum(budget float64, menu [][]offer) (plan Plan, minimum float64, ok bool) {
	minimum = math.Inf(1)
	seconds := math.Inf(1)
	from, to := w.lengths()
	for length := from; length > 0 && length <= to; length++ {
		p := pricing{w: w, menu: menu, budget: budget, minimum: math.Inf(-1)}
		if !p.begin(length) || !p.solve() {
			continue
		}
		if minimum = min(minimum, p.minimum); p.seconds < seconds {
			plan, seconds, ok = p.plan, p.seconds, true
		}
		if p.minimum > seconds { // longer plans are no faster
			break
		}
	}
	return plan, minimum, ok
}

// lengths returns the fewest epochs that a job can have, and the most to try; 0: it never ends.
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

// pricing searches the best plan of so many epochs.
type pricing struct {
	w      *World
	menu   [][]offer
	budget float64
	weight []float64 // by epoch: the rise of the last loss per worker
	slack  float64   // rise of the last loss that all workers may cause
	best   []offer   // by number of workers, at the price of cost

	chosen  []offer // by epoch, at both prices
	plan    Plan
	seconds float64 // of plan
	minimum float64 // lower bound of all plans
}

// begin is false if even one worker in every epoch misses the target.
func (p *pricing) begin(length int) bool {
	p.chosen = make([]offer, length)
	p.weight = make([]float64, length)
	if p.w.Target <= 0 {
		return true
	}
	remaining := math.Pow(p.w.Fall, float64(length))
	p.slack = p.w.Target - remaining*p.w.First - (1-remaining)*p.w.Floor
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

// solve finds the price of cost; false: no plan is within the budget.
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

// keep makes the current choices the plan if they are faster.
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

// at chooses for every epoch at a price of cost, with the price of loss that reaches the target, and tells whether
// the budget is enough.
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

// choose takes the least for every epoch at two prices, and tells whether that reaches the target.
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
	p.minimum = max(p.minimum, bound)
	return p.w.Target <= 0 || sum <= p.slack
}

// coarseMenu is the factor between numbers of workers in a search after every epoch.
const coarseMenu = 1.1

// Replanned searches the best plan for the rest of the job after every epoch, with a reserve for noise in the times
// of the epochs that are left. If no plan ends within what is left, it takes the cheapest choice.
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
