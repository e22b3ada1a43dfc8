package estimator

import (
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// LossPoint is a loss after so many epochs.
type LossPoint struct {
	Epoch float64 // trained by then
	Loss  float64
}

// LossCurve is loss(x) = Floor + 1/(Rate x + Start) after x epochs, the law that Optimus and Coach go by. Rate and
// Start are at least 0; with Rate 0 it does not fall.
type LossCurve struct{ Floor, Rate, Start float64 }

// At is the loss after so many epochs.
func (c LossCurve) At(epoch float64) float64 { return c.Floor + 1/(c.Rate*epoch+c.Start) }

// Reaches is after how many epochs the loss is at most target; +Inf: never.
func (c LossCurve) Reaches(target float64) float64 {
	if target <= c.Floor || c.Rate <= 0 {
		if target >= c.At(0) {
			return 0
		}
		return math.Inf(1)
	}
	return max(0, (1/(target-c.Floor)-c.Start)/c.Rate)
}

// Convergence is when a job's loss comes to a target, by its losses so far.
type Convergence struct {
	// Epochs is how many the job takes in all, nine times in ten within Low and High. High, and Likely with it where the
	// floor that fits best is above the target, is +Inf where the loss may never come to the target.
	Epochs disdel.Interval[float64]
	Floor  disdel.Interval[float64] // that the loss falls to
	Curve  LossCurve                // the likeliest
	Points int                      // losses that it goes by
}

// MayNever tells whether the target may never be reached: it is within the interval of the floor, or below it.
func (c Convergence) MayNever() bool { return math.IsInf(c.Epochs.High, 1) }

// Never tells whether the target is below the floor in nine of ten cases.
func (c Convergence) Never() bool { return math.IsInf(c.Epochs.Low, 1) }

// leastPoints are fewer than which say nothing of a curve of three parameters.
const leastPoints = 4

// Converge estimates after how many epochs a loss comes to target. Points are means over whole epochs, in their order:
// probes, and rounds that a worker was missing from, are no points. It returns false for too few points, and for
// losses that do not fall.
//
// The floor is what is hard to know: it is looked for on a grid. The interval is every epoch at which a curve that fits
// nearly as well as the best one comes to the target. Outliers weigh little (Huber), and the older half of the points
// weighs less than the newer, since the law only holds later in a training.
func Converge(points []LossPoint, target float64) (Convergence, bool) {
	s, ok := newFloorSearch(points)
	if !ok {
		return Convergence{}, false
	}
	points = s.points
	fits, best := s.profile()
	if math.IsInf(best.error, 1) || best.curve.Rate <= 0 {
		return Convergence{}, false
	}
	out := Convergence{Curve: best.curve, Points: len(points)}
	enough := s.enough(best)
	out.Floor = disdel.Interval[float64]{Low: best.curve.Floor, Likely: best.curve.Floor, High: best.curve.Floor}
	for _, f := range fits {
		if f.error <= enough {
			out.Floor.Low, out.Floor.High = min(out.Floor.Low, f.curve.Floor), max(out.Floor.High, f.curve.Floor)
		}
	}
	out.Epochs = s.crossing(fits, best, target, enough)
	last := points[len(points)-1]
	if last.Loss > target { // it has not come to it yet
		e := &out.Epochs
		e.Low, e.Likely, e.High = max(e.Low, last.Epoch), max(e.Likely, last.Epoch), max(e.High, last.Epoch)
	}
	return out, true
}

// FitLosses is the curve that Converge takes for the likeliest, without its intervals; false where there is none.
func FitLosses(points []LossPoint) (LossCurve, bool) {
	s, ok := newFloorSearch(points)
	if !ok {
		return LossCurve{}, false
	}
	_, best := s.profile()
	return best.curve, !math.IsInf(best.error, 1) && best.curve.Rate > 0
}

// floorSearch fits curves with given floors to points.
type floorSearch struct {
	points []LossPoint
	least  float64 // of the losses
	scale  float64 // of the losses: how far they are apart
	weight []float64
}

// fit is a curve, the weights of the points, and the weighted squares of what they are off it.
type fit struct {
	curve   LossCurve
	weights []float64
	error   float64
}

// newFloorSearch takes the points that are losses; false where they are too few.
func newFloorSearch(points []LossPoint) (s *floorSearch, ok bool) {
	points = slices.DeleteFunc(slices.Clone(points), func(p LossPoint) bool {
		return math.IsNaN(p.Loss) || math.IsInf(p.Loss, 0) || p.Epoch < 0
	})
	if len(points) < leastPoints {
		return nil, false
	}
	s = &floorSearch{points: points, least: math.Inf(1), weight: make([]float64, len(points))}
	most := math.Inf(-1)
	for _, p := range points {
		s.least, most = min(s.least, p.Loss), max(most, p.Loss)
	}
	if s.scale = most - s.least; s.scale <= 0 {
		s.scale = 1
	}
	for i, p := range points { // losses are off by a share of what they are
		level := max(math.Abs(p.Loss), s.scale/100) / max(math.Abs(s.least), s.scale/100)
		s.weight[i] = 1 / (level * level)
		if 2*i < len(points) {
			s.weight[i] *= olderWeight
		}
	}
	return s, true
}

// What a fit goes by.
const (
	olderWeight = 0.5 // of the older half of the points
	floorGrid   = 120 // floors that are tried, and so many
	floorFine   = 16  // on each side of the best of them
	edgeStep    = 1.01
	// normal deviations in a median deviation
	normalMedian = 1.4826
	// 3 F(3, k) over F(1, k), nine times in ten, for k of 5 and more
	threeAtOnce = 2.5
	farthest    = 1e5 // epochs that are looked at
	reweights   = 4   // times that outliers are weighed anew
	huber       = 1.5 // median deviations from which a point is an outlier
)

// profile fits a curve for each floor that is tried.
func (s *floorSearch) profile() (fits []fit, best fit) {
	best.error = math.Inf(1)
	s.search(s.least, func(floor float64) float64 {
		f := s.fit(floor)
		fits = append(fits, f)
		if f.error < best.error {
			best = f
		}
		return f.error
	})
	return fits, best
}

// crossing is when curves that fit well enough come to the target.
func (s *floorSearch) crossing(fits []fit, best fit, target, enough float64) disdel.Interval[float64] {
	likely := best.curve.Reaches(target)
	out := disdel.Interval[float64]{Low: likely, Likely: likely, High: likely}
	if likely == 0 {
		return out
	}
	for _, f := range fits { // of a floor that is not below the target
		if f.curve.Floor >= target && f.error <= enough {
			out.High = math.Inf(1)
		}
	}
	inside := func(x float64) bool { return s.through(x, target, best.weights) <= enough }
	from := likely
	if math.IsInf(from, 1) { // the best curve never does: the others may
		for from = 1; from < farthest && !inside(from); from *= 1.25 {
		}
		if from >= farthest {
			return out
		}
	}
	out.Low = s.edge(from, 1/edgeStep, inside)
	if !math.IsInf(out.High, 1) {
		out.High = s.edge(from, edgeStep, inside)
	}
	return out
}

// edge goes from an epoch that is inside by steps of a factor until one is not.
func (s *floorSearch) edge(from, factor float64, inside func(float64) bool) float64 {
	at := from
	for next := at * factor; next < farthest && next > 1e-3 && inside(next); next *= factor {
		at = next
	}
	return at
}

// through is the least error of a curve that comes to the target after so many epochs.
func (s *floorSearch) through(epoch, target float64, weights []float64) float64 {
	error := func(floor float64) float64 {
		return s.off(s.lineThrough(floor, epoch, 1/(target-floor), weights), weights)
	}
	_, least := s.search(min(s.least, target), error)
	return least
}

// search is the floor below top with the least error, on the two grids.
func (s *floorSearch) search(top float64, error func(floor float64) float64) (best, least float64) {
	low := min(0, top)
	if top <= low {
		low = top - max(1e-9, math.Abs(s.points[0].Loss))
	}
	floor := func(i float64) float64 { // a share of the way from low to top, finer near top
		left := 1 - i/floorGrid
		return low + (top-low)*(1-left*left)
	}
	at := 0.0
	least = math.Inf(1)
	try := func(i float64) {
		f := floor(i)
		if f >= top {
			return
		}
		if e := error(f); e < least {
			at, best, least = i, f, e
		}
	}
	for i := range floorGrid {
		try(float64(i))
	}
	coarse := at
	for i := 1; i < 2*floorFine; i++ {
		try(max(0, coarse-1+float64(i)/floorFine))
	}
	return best, least
}

// lineThrough is line, through a point of 1/(loss - floor).
func (s *floorSearch) lineThrough(floor, epoch, at float64, weights []float64) LossCurve {
	var xx, xy float64
	for i, p := range s.points {
		v, y := s.lifted(i, floor, weights)
		x := p.Epoch - epoch
		xx, xy = xx+v*x*x, xy+v*x*(y-at)
	}
	c := LossCurve{Floor: floor}
	if xx > 0 {
		c.Rate = max(0, xy/xx)
	}
	if c.Rate*epoch > at {
		c.Rate = at / epoch
	}
	c.Start = at - c.Rate*epoch
	return c
}

// lifted is a point's place on the line that 1/(loss - floor) is, and its weight there, with which squares are those of
// the losses.
func (s *floorSearch) lifted(i int, floor float64, weights []float64) (weight, y float64) {
	above := s.points[i].Loss - floor
	part := above / s.scale // small numbers stay numbers
	return weights[i] * part * part * part * part, 1 / above
}

// fit finds rate and start for a floor: 1/(loss - floor) is a line over the epochs.
func (s *floorSearch) fit(floor float64) fit {
	f := fit{weights: slices.Clone(s.weight)}
	off := make([]float64, len(s.points))
	for range reweights {
		f.curve = s.line(floor, f.weights)
		for i, p := range s.points {
			off[i] = math.Sqrt(s.weight[i]) * math.Abs(p.Loss-f.curve.At(p.Epoch))
		}
		most := huber * median(slices.Clone(off))
		for i := range f.weights {
			if f.weights[i] = s.weight[i]; off[i] > most && most > 0 {
				f.weights[i] *= most / off[i]
			}
		}
	}
	f.error = s.off(f.curve, f.weights)
	return f
}

// off is the weighted squares of what the points are off a curve; +Inf where it is none.
func (s *floorSearch) off(c LossCurve, weights []float64) (sum float64) {
	for i, p := range s.points {
		d := p.Loss - c.At(p.Epoch)
		sum += weights[i] * d * d
	}
	if math.IsNaN(sum) {
		return math.Inf(1)
	}
	return sum
}

// line is the weighted line through 1/(loss - floor), neither falling nor beginning below zero.
func (s *floorSearch) line(floor float64, weights []float64) LossCurve {
	var w, x, y, xx, xy float64
	for i, p := range s.points {
		v, at := s.lifted(i, floor, weights)
		w, x, y, xx, xy = w+v, x+v*p.Epoch, y+v*at, xx+v*p.Epoch*p.Epoch, xy+v*p.Epoch*at
	}
	c := LossCurve{Floor: floor}
	if d := w*xx - x*x; d > 0 {
		c.Rate = max(0, (w*xy-x*y)/d)
	}
	c.Start = (y - c.Rate*x) / w
	if c.Start <= 0 && xx > 0 { // through the origin
		c.Rate, c.Start = max(0, xy/xx), 0
	}
	return c
}

// enough is the error up to which a curve fits nearly as well as the best: nine times in ten the true one's is below,
// by Student's t with n - 3 degrees of freedom, and more, since three parameters are looked for at once. What losses
// are off is told by their median, since outliers do not count in the error.
func (s *floorSearch) enough(best fit) float64 {
	off := make([]float64, len(s.points))
	for i, p := range s.points {
		off[i] = math.Sqrt(s.weight[i]) * math.Abs(p.Loss-best.curve.At(p.Epoch))
	}
	free := float64(max(1, len(s.points)-3))
	sigma := normalMedian * median(off) * math.Sqrt(float64(len(s.points))/free)
	t := student(oneInTwenty, free)
	return best.error + threeAtOnce*t*t*max(sigma*sigma, best.error/free) + 1e-18*s.scale*s.scale
}
