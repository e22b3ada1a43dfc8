package estimator

import (
	"math"

	"github.com/disdel/disdel"
)

// phase is the memory of one part of an action's life, and its uncertainty. No figure falls when the batch, the rows
// or the network grow, so the largest phase does not fall either.
type phase struct {
	likely  disdel.Bytes
	spread  float64      // standard deviation of the peak around likely
	garbage disdel.Bytes // most garbage that the collector leaves
}

// need is the phases of an action. The terms of its estimate belong to the phase that is likely to take most.
type need struct {
	disdel.Estimate
	phases    [2]phase
	residuals quantiles    // of the peak around the likely one
	pages     disdel.Bytes // room for pages of files that the engine's process reads, beside c.Pages
}

// phases are the reading of the rows, before there is an engine, and everything after it. The slab is exact and the
// shard almost. The process varies, and so does the garbage on the Go heap.
func (c calibration) phases(task disdel.Task, in Input, e disdel.Estimate) need {
	if task != disdel.TaskAggregate {
		c.Package -= c.once(in)
	}
	if e.Method == methodMeasured {
		heap := e.Likely - e.Package
		p := phase{
			e.Likely, math.Hypot(float64(c.IdleSigma), in.engine.Spread*float64(heap)),
			disdel.Bytes(c.Garbage * float64(c.Package+heap)),
		}
		return need{e, [2]phase{p, p}, quantiles{-heavyTail(interval), heavyTail(interval)}, in.engine.Pages}
	}
	heap := e.Shard + e.Model + e.Misc
	if e.Activations == 0 { // without an engine everything is on the heap
		heap += e.Parameters + e.Workspace
	}
	if task == disdel.TaskTrain && in.narrow() > 0 { // the encoded update and its loss are copied
		heap += e.Model
	}
	n := need{Estimate: e, residuals: c.Residuals[task]}
	n.phases[1] = c.phase(e.Likely, heap)
	if e.Shard > 0 {
		reading := c.reading(in)
		n.phases[0] = c.phase(e.Package+reading, reading)
		n.Shard += max(0, n.phases[0].likely-e.Likely)
		n.Estimate = sum(n.Estimate)
	}
	return n
}

func (c calibration) phase(likely, heap disdel.Bytes) phase {
	return phase{
		likely, math.Hypot(float64(c.IdleSigma), c.HeapSigma*float64(heap)),
		disdel.Bytes(c.Garbage * float64(c.Package+heap)),
	}
}

// keepGarbage adds what each phase keeps to the phases and to the estimate.
func (c calibration) keepGarbage(n need) need {
	for i, p := range n.phases {
		n.phases[i].likely += c.keptGarbage(p.likely)
	}
	n.Package += c.keptGarbage(n.Likely)
	n.Estimate = sum(n.Estimate)
	return n
}

// keptGarbage is the garbage that a small action keeps: collecting it at once would take a third of its processor time
// or more. It falls more slowly than the likely peak rises.
func (c calibration) keptGarbage(likely disdel.Bytes) disdel.Bytes {
	return max(0, min(c.Kept, (likely-c.KeptAbove)/2, (c.KeptBelow-likely)/4))
}

// scale multiplies every term, and spreads by another factor.
func (n need) scale(by, spread float64) need {
	for i, p := range n.phases {
		n.phases[i] = phase{disdel.Bytes(math.Round(float64(p.likely) * by)), p.spread * spread, p.garbage}
	}
	n.Estimate = scale(n.Estimate, by)
	return n
}

// MemoryInterval returns the ends of the interval of a task's peak around the likely peak, in standard deviations of
// the peak.
func MemoryInterval(task disdel.Task) (low, high float64) {
	q := calibrated.Residuals[task]
	return q.low, q.high
}

// interval is the upper quantile of a 90 % interval.
const interval = 0.95

// margin adds interval, margin and total. The limit is set from the total. The runtime stops an action a little below
// its limit; the peak is above that with probability risk. The total never exceeds the certain need: the largest
// garbage of the collector. Room for the program's pages comes on top.
func (c calibration) margin(n need, risk float64) disdel.Estimate {
	e := n.Estimate
	e.Risk = risk
	var low, high, maximum float64
	for _, p := range n.phases {
		likely := float64(p.likely)
		low = max(low, likely+n.residuals.low*p.spread)
		high = max(high, likely+n.residuals.high*p.spread)
		maximum = max(maximum, min(likely+heavyTail(1-risk)*p.spread, likely+float64(p.garbage)))
	}
	e.Low, e.High = min(e.Likely, disdel.Bytes(low)), max(e.Likely, disdel.Bytes(high))
	e.Total = disdel.Bytes(math.Ceil(max(high, maximum)/c.WatchShare)) + c.Pages + n.pages
	e.Margin = e.Total - e.Likely
	return e
}

// heavyTail is quantile p of Student's distribution with four degrees of freedom, scaled to a standard deviation of
// 1. Peaks have rare large values, which a normal distribution excludes: at 1 in 1,000 it is 5.1 deviations away
// (normal: 3.1), at 1 in 20 it is 1.5 (1.6). The closed form is Shaw's (2006, "Sampling Student's T distribution").
func heavyTail(p float64) float64 {
	a := 4 * p * (1 - p)
	q := math.Cos(math.Acos(math.Sqrt(a))/3) / math.Sqrt(a)
	t := 2 * math.Sqrt(max(0, q-1))
	return math.Copysign(t/math.Sqrt2, p-0.5) // its variance is 2
}
