package estimator

import (
	"math"

	"github.com/disdel/disdel"
)

// spread is the standard deviation of the peak around its likely value. The slab is exact, the shard almost; what varies is
// the process, and how much of what weights are moved in is garbage when the next piece of memory is taken.
func (c Calibration) spread(in Input, e disdel.Estimate) float64 {
	if in.measured() {
		return math.Hypot(float64(c.Still), c.Measured*float64(e.Likely-e.Pkg))
	}
	outgrown := c.Outgrown * float64(max(0, in.weights()-c.Part))
	return math.Hypot(math.Hypot(float64(c.Still), c.Moving*float64(c.heap(in, e))), outgrown)
}

// heap is the part of an estimate that is on the Go heap.
func (c Calibration) heap(in Input, e disdel.Estimate) disdel.Bytes {
	if in.measured() {
		return e.Likely - e.Pkg
	}
	if e.Activations > 0 { // an engine's slab is off it
		return e.Dta + e.Mod + e.Misc
	}
	return e.Mod + e.Parameters + e.Workspace
}

// interval is the quantile that nine cases of ten are within.
const interval = 0.95

// margin adds interval, saf and total. The total is what the limit is set from: the runtime stops an action a little below
// its limit, and the peak is above that in risk of all cases. It is never above what is needed for certain: as much garbage as
// the collector ever leaves. Room for the program's pages comes on top.
func (c Calibration) margin(in Input, e disdel.Estimate, spread, risk float64) disdel.Estimate {
	e.Risk = risk
	likely := float64(e.Likely)
	e.Low = disdel.Bytes(max(0, likely-heavyTail(interval)*spread))
	e.High = disdel.Bytes(likely + heavyTail(interval)*spread)
	certain := likely + c.Garbage*float64(c.Package+c.heap(in, e))
	most := max(float64(e.High), min(likely+heavyTail(1-risk)*spread, certain))
	e.Total = disdel.Bytes(math.Ceil(most/c.WatchShare)) + c.Pages
	e.Saf = e.Total - e.Likely
	return e
}

// heavyTail is the quantile p of Student's distribution with four degrees of freedom, scaled to have a standard deviation of
// 1. Peaks have rare large values, as heaps do, which a normal distribution rules out: at 1 in 1,000 it is 5.1 deviations away
// (the normal one 3.1), at 1 in 20 it is 1.5 (1.6). The closed form is Shaw's (2006, "Sampling Student's T distribution").
func heavyTail(p float64) float64 {
	a := 4 * p * (1 - p)
	q := math.Cos(math.Acos(math.Sqrt(a))/3) / math.Sqrt(a)
	t := 2 * math.Sqrt(max(0, q-1))
	return math.Copysign(t/math.Sqrt2, p-0.5) // its variance is 2
}
