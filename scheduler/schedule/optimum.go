package schedule

import "math"

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
