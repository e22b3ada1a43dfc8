package estimator

import (
	"cmp"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// LossPoint is the loss after a number of epochs.
type LossPoint struct {
	Epoch float64 // trained by then
	Loss  float64
}

// LossCurve is loss(x) = Floor + 1/(Rate x + Start) after x epochs, the law of Optimus and Coach. Rate and Start are
// at least 0. With Rate 0 the loss does not fall.
type LossCurve struct{ Floor, Rate, Start float64 }

// At is the loss after a number of epochs.
func (c LossCurve) At(epoch float64) float64 { return c.Floor + 1/(c.Rate*epoch+c.Start) }

// Reaches is the number of epochs after which the loss is at most target; +Inf: never.
func (c LossCurve) Reaches(target float64) float64 {
	if target <= c.Floor || c.Rate <= 0 {
		if target >= c.At(0) {
			return 0
		}
		return math.Inf(1)
	}
	return max(0, (1/(target-c.Floor)-c.Start)/c.Rate)
}

// Convergence forecasts when the loss of a job reaches a target.
type Convergence struct {
	// Epochs is the total number of epochs until the target. High is +Inf if the loss may never reach the target, and
	// so is Likely if the best fitting floor is above it.
	Epochs disdel.Interval[float64]
	Floor  disdel.Interval[float64] // of the loss
	Curve  LossCurve                // the likeliest
	Points int                      // losses that the forecast uses
}

// MayNever tells whether the target may never be reached: it is inside the interval of the floor, or below it.
func (c Convergence) MayNever() bool { return math.IsInf(c.Epochs.High, 1) }

// Never tells whether the target is below the floor in nine of ten cases.
func (c Convergence) Never() bool { return math.IsInf(c.Epochs.Low, 1) }

// leastPoints is the least number of losses that determine a curve of three parameters.
const leastPoints = 4

// Converge estimates after how many epochs a loss reaches target. Points are means over whole epochs, in order;
// probes and rounds with missing workers are no points. Converge returns false for too few points and for losses that
// do not fall.
//
// The floor is hard to know, so Converge searches it on a grid. The interval is all epochs at which a curve that fits
// nearly as well as the best one reaches the target. Outliers have little weight (Huber). The older half of the
// points weighs less than the newer one, since the law only holds late in a training.
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
	if last.Loss > target { // the target is not reached yet
		e := &out.Epochs
		e.Low, e.Likely, e.High = max(e.Low, last.Epoch), max(e.Likely, last.Epoch), max(e.High, last.Epoch)
	}
	return out, true
}

// FitLosses is the most likely curve of Converge, without intervals; false if there is none.
func FitLosses(points []LossPoint) (LossCurve, bool) {
	s, ok := newFloorSearch(points)
	if !ok {
		return LossCurve{}, false
	}
	_, best := s.profile()
	return best.curve, !math.IsInf(best.error, 1) && best.curve.Rate > 0
}

// floorSearch fits curves to points for given floors.
type floorSearch struct {
	points  []LossPoint
	minimum float64 // of the losses
	scale   float64 // largest loss minus least loss
	weight  []float64
}

// fit is a curve, the weights of the points, and the weighted sum of squared errors.
type fit struct {
	curve   LossCurve
	weights []float64
	error   float64
}

// newFloorSearch keeps the points that are losses. It is false if they are too few.
func newFloorSearch(points []LossPoint) (s *floorSearch, ok bool) {
	points = slices.DeleteFunc(slices.Clone(points), func(p LossPoint) bool {
		return math.IsNaN(p.Loss) || math.IsInf(p.Loss, 0) || p.Epoch < 0
	})
	if len(points) < leastPoints {
		return nil, false
	}
	s = &floorSearch{points: points, minimum: math.Inf(1), weight: make([]float64, len(points))}
	maximum := math.Inf(-1)
	for _, p := range points {
		s.minimum, maximum = min(s.minimum, p.Loss), max(maximum, p.Loss)
	}
	if s.scale = maximum - s.minimum; s.scale <= 0 {
		s.scale = 1
	}
	for i, p := range points { // errors of losses are proportional to the losses
		level := max(math.Abs(p.Loss), s.scale/100) / max(math.Abs(s.minimum), s.scale/100)
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
	floorGrid   = 120 // floors of the coarse grid
	floorFine   = 16  // floors of the fine grid on each side of the best coarse one
	edgeStep    = 1.01
	// standard deviations in a median deviation
	normalMedian = 1.4826
	// 3 F(3, k) / F(1, k) at 90 %, for k of at least 5
	threeAtOnce = 2.5
	farthest    = 1e5 // epochs
	reweights   = 4   // iterations of the outliers' weights
	huber       = 1.5 // median deviations beyond which a point is an outlier
)

// profile fits a curve for each floor of the grids.
func (s *floorSearch) profile() (fits []fit, best fit) {
	best.error = math.Inf(1)
	s.search(s.minimum, func(floor float64) float64 {
		f := s.fit(floor)
		fits = append(fits, f)
		if f.error < best.error {
			best = f
		}
		return f.error
	})
	return fits, best
}

// crossing is the interval of epochs at which curves that fit well enough reach the target.
func (s *floorSearch) crossing(fits []fit, best fit, target, enough float64) disdel.Interval[float64] {
	likely := best.curve.Reaches(target)
	out := disdel.Interval[float64]{Low: likely, Likely: likely, High: likely}
	if likely == 0 {
		return out
	}
	for _, f := range fits { // with floors at or above the target
		if f.curve.Floor >= target && f.error <= enough {
			out.High = math.Inf(1)
		}
	}
	inside := func(x float64) bool { return s.through(x, target, best.weights) <= enough }
	from := likely
	if math.IsInf(from, 1) { // the best curve never reaches it, but others may
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

// edge multiplies an epoch inside by factor until the next one is outside.
func (s *floorSearch) edge(from, factor float64, inside func(float64) bool) float64 {
	at := from
	for next := at * factor; next < farthest && next > 1e-3 && inside(next); next *= factor {
		at = next
	}
	return at
}

// through is the least error of a curve that reaches the target at an epoch.
func (s *floorSearch) through(epoch, target float64, weights []float64) float64 {
	error := func(floor float64) float64 {
		return s.off(s.lineThrough(floor, epoch, 1/(target-floor), weights), weights)
	}
	_, minimum := s.search(min(s.minimum, target), error)
	return minimum
}

// search is the floor below top with the least error, on both grids.
func (s *floorSearch) search(top float64, error func(floor float64) float64) (best, minimum float64) {
	low := min(0, top)
	if top <= low {
		low = top - max(1e-9, math.Abs(s.points[0].Loss))
	}
	floor := func(i float64) float64 { // a share of the way from low to top, finer near top
		remaining := 1 - i/floorGrid
		return low + (top-low)*(1-remaining*remaining)
	}
	at := 0.0
	minimum = math.Inf(1)
	try := func(i float64) {
		f := floor(i)
		if f >= top {
			return
		}
		if e := error(f); e < minimum {
			at, best, minimum = i, f, e
		}
	}
	for i := range floorGrid {
		try(float64(i))
	}
	coarse := at
	for i := 1; i < 2*floorFine; i++ {
		try(max(0, coarse-1+float64(i)/floorFine))
	}
	return best, minimum
}

// lineThrough is line through a fixed point of 1/(loss - floor).
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

// lifted is a point of the line 1/(loss - floor), and the weight that makes its squared errors those of the loss.
func (s *floorSearch) lifted(i int, floor float64, weights []float64) (weight, y float64) {
	above := s.points[i].Loss - floor
	part := above / s.scale // small numbers stay numbers
	return weights[i] * part * part * part * part, 1 / above
}

// fit finds rate and start for a floor: 1/(loss - floor) is linear in the epochs.
func (s *floorSearch) fit(floor float64) fit {
	f := fit{weights: slices.Clone(s.weight)}
	off := make([]float64, len(s.points))
	for range reweights {
		f.curve = s.line(floor, f.weights)
		for i, p := range s.points {
			off[i] = math.Sqrt(s.weight[i]) * math.Abs(p.Loss-f.curve.At(p.Epoch))
		}
		maximum := huber * median(slices.Clone(off))
		for i := range f.weights {
			if f.weights[i] = s.weight[i]; off[i] > maximum && maximum > 0 {
				f.weights[i] *= maximum / off[i]
			}
		}
	}
	f.error = s.off(f.curve, f.weights)
	return f
}

// off is the weighted sum of squared errors of a curve; +Inf if it is not a number.
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

// enough is the error up to which a curve fits nearly as well as the best one. The true curve is below it in nine of
// ten cases, by Student's t with n - 3 degrees of freedom. threeAtOnce accounts for three parameters at once. The
// median tells the errors' size, since outliers do not count in the error.
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

// Constants of ConvergeBySimilar.
const (
	likeLeast  = 3    // curves of earlier jobs that have to match
	likeBest   = 7    // most similar curves that the estimate uses
	likeScales = 96   // stretches that are tried, from 1/12 to 12
	likeWidest = 12.0 // the largest stretch
	likeBase   = 0.18 // least deviation of the logarithm of the remaining epochs
	likeOff    = 0.02 // distance (logarithm of losses) below which curves count alike
	likeTail   = 3    // the last 1/3 of a curve extrapolates it
	likeMost   = 0.5  // distance (logarithm of losses) above which a curve does not match
)

// ConvergeBySimilar estimates after how many epochs a loss reaches target, from the losses of earlier jobs of the
// same model and data, whatever their rates and batches. It stretches each earlier curve until it lies on the losses
// so far, and continues as that curve did. So it knows the floor, which Converge can only guess. It returns false if
// fewer than three curves match or the points are too few; Converge handles those.
func ConvergeBySimilar(points []LossPoint, past [][]LossPoint, target float64) (Convergence, bool) {
	points = soundLosses(points)
	if len(points) < leastPoints || target <= 0 {
		return Convergence{}, false
	}
	var all []similarity
	for _, p := range past {
		if l, ok := similarityOf(points, soundLosses(p), target); ok {
			all = append(all, l)
		}
	}
	if len(all) < likeLeast {
		return Convergence{}, false
	}
	slices.SortStableFunc(all, func(a, b similarity) int { return cmp.Compare(a.off, b.off) })
	all = all[:min(likeBest, len(all))]
	now := points[len(points)-1].Epoch
	out := Convergence{Epochs: epochsBy(all, now), Points: len(points)}
	minimum := math.Inf(1)
	for _, p := range points {
		minimum = min(minimum, p.Loss)
	}
	out.Floor = disdel.Interval[float64]{Likely: min(target, minimum), High: minimum}
	out.Curve, _ = FitLosses(points)
	return out, true
}

// soundLosses returns the points whose loss has a logarithm.
func soundLosses(points []LossPoint) []LossPoint {
	return slices.DeleteFunc(slices.Clone(points), func(p LossPoint) bool {
		return !(p.Loss > 0) || math.IsInf(p.Loss, 0) || p.Epoch < 0
	})
}

// similarity is how near an earlier job's losses are to the losses so far, and when they reach the target.
type similarity struct {
	off    float64 // root mean square distance of the logarithms of the losses
	epochs float64
}

// similarityOf stretches an earlier job's losses until they are nearest.
func similarityOf(points, past []LossPoint, target float64) (best similarity, ok bool) {
	c, ok := newPastCurve(past)
	if !ok {
		return best, false
	}
	best.off = math.Inf(1)
	at := c.crossing(target)
	for i := range likeScales + 1 {
		scale := math.Pow(likeWidest, 2*float64(i)/likeScales-1)
		if off := c.off(points, scale); off < best.off {
			best = similarity{off: off, epochs: at / scale}
		}
	}
	return best, best.off < likeMost && !math.IsInf(best.epochs, 1)
}

// pastCurve is the losses of an earlier job, as logarithms, and the slope of their end.
type pastCurve struct {
	points []LossPoint // losses are logarithms
	fall   float64     // of the logarithm in an epoch, at the end
}

func newPastCurve(past []LossPoint) (s pastCurve, ok bool) {
	if len(past) < leastPoints {
		return s, false
	}
	for _, p := range past {
		s.points = append(s.points, LossPoint{p.Epoch, math.Log(p.Loss)})
	}
	tail := s.points[len(s.points)-max(2, len(s.points)/likeTail):]
	var x, y, xx, xy float64
	for _, p := range tail {
		x, y = x+p.Epoch/float64(len(tail)), y+p.Loss/float64(len(tail))
	}
	for _, p := range tail {
		xx, xy = xx+(p.Epoch-x)*(p.Epoch-x), xy+(p.Epoch-x)*(p.Loss-y)
	}
	if xx > 0 {
		s.fall = max(0, -xy/xx)
	}
	return s, true
}

// at is the logarithm of the loss at an epoch: interpolated between points, extrapolated beyond the last.
func (s pastCurve) at(epoch float64) float64 {
	byEpoch := func(p LossPoint, e float64) int { return cmp.Compare(p.Epoch, e) }
	i, exact := slices.BinarySearchFunc(s.points, epoch, byEpoch)
	switch last := s.points[len(s.points)-1]; {
	case exact:
		return s.points[i].Loss
	case i == len(s.points):
		return last.Loss - s.fall*(epoch-last.Epoch)
	case i == 0: // before the first, as between the first two
		i = 1
	}
	a, b := s.points[i-1], s.points[i]
	return a.Loss + (b.Loss-a.Loss)*(epoch-a.Epoch)/(b.Epoch-a.Epoch)
}

// crossing is the number of epochs until a target; +Inf: never.
func (s pastCurve) crossing(target float64) float64 {
	to := math.Log(target)
	for i, p := range s.points {
		switch {
		case p.Loss > to:
		case i == 0:
			return p.Epoch
		default:
			before := s.points[i-1]
			return before.Epoch + (p.Epoch-before.Epoch)*(before.Loss-to)/(before.Loss-p.Loss)
		}
	}
	last := s.points[len(s.points)-1]
	if s.fall <= 0 {
		return math.Inf(1)
	}
	return last.Epoch + (last.Loss-to)/s.fall
}

// off is the distance of losses from this curve, if one epoch of theirs is scale epochs here. The newer half counts
// twice. Losses beyond the end of this curve add a penalty that grows with the distance.
func (s pastCurve) off(points []LossPoint, scale float64) float64 {
	sum, weights := 0.0, 0.0
	last := s.points[len(s.points)-1].Epoch
	for i, p := range points {
		weight, x := 1.0, p.Epoch*scale
		if 2*i >= len(points) {
			weight = 2
		}
		d, guess := math.Log(p.Loss)-s.at(x), 0.0
		if x > last {
			guess = likeOff * (x - last) / last
		}
		sum, weights = sum+weight*(d*d+guess*guess), weights+weight
	}
	return math.Sqrt(sum / weights)
}

// epochsBy is the total number of epochs by the most similar jobs. Nearer jobs weigh more.
func epochsBy(all []similarity, now float64) disdel.Interval[float64] {
	var sum, squares, weights float64
	for _, l := range all {
		weight := 1 / (likeOff*likeOff + l.off*l.off)
		remaining := math.Log(max(l.epochs-now, 0.5))
		sum, squares, weights = sum+weight*remaining, squares+weight*remaining*remaining, weights+weight
	}
	likely := sum / weights
	apart := max(0, squares/weights-likely*likely)
	off := student(oneInTwenty, float64(max(1, len(all)-1))) * math.Sqrt(apart+likeBase*likeBase)
	return disdel.Interval[float64]{
		Low: now + math.Exp(likely-off), Likely: now + math.Exp(likely), High: now + math.Exp(likely+off),
	}
}
