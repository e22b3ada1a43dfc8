package estimator

import (
	"cmp"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// What ConvergeLike goes by.
const (
	likeLeast  = 3    // curves of earlier jobs that have to match
	likeBest   = 7    // that the estimate is made of
	likeScales = 96   // ways that a curve is stretched, from a twelfth to twelve times
	likeWidest = 12.0 // a stretch
	likeBase   = 0.18 // deviation of the logarithm of the epochs left that is there in any case
	likeOff    = 0.02 // of a logarithm of losses: curves that are as near as that count alike
	likeTail   = 3    // part of a curve, its end, that it is thought to go on as
	likeMost   = 0.5  // of a logarithm of losses: curves that are farther off are of other trainings
)

// ConvergeLike estimates after how many epochs a loss comes to target from the losses of earlier jobs of the same model
// and data, whatever their rates and batches were: those that fall faster or more slowly are stretched until they lie
// on the losses so far, and go on as they went on then. What a law of losses only guesses, their floor above all,
// earlier jobs have seen. It returns false where fewer than three of them match, or the points are too few: Converge is
// for those.
func ConvergeLike(points []LossPoint, past [][]LossPoint, target float64) (Convergence, bool) {
	points = soundLosses(points)
	if len(points) < leastPoints || target <= 0 {
		return Convergence{}, false
	}
	var all []likeness
	for _, p := range past {
		if l, ok := likenessOf(points, soundLosses(p), target); ok {
			all = append(all, l)
		}
	}
	if len(all) < likeLeast {
		return Convergence{}, false
	}
	slices.SortStableFunc(all, func(a, b likeness) int { return cmp.Compare(a.off, b.off) })
	all = all[:min(likeBest, len(all))]
	now := points[len(points)-1].Epoch
	out := Convergence{Epochs: leftBy(all, now), Points: len(points)}
	least := math.Inf(1)
	for _, p := range points {
		least = min(least, p.Loss)
	}
	out.Floor = disdel.Interval[float64]{Likely: min(target, least), High: least}
	out.Curve, _ = FitLosses(points)
	return out, true
}

// soundLosses are the points that a logarithm can be taken of.
func soundLosses(points []LossPoint) []LossPoint {
	return slices.DeleteFunc(slices.Clone(points), func(p LossPoint) bool {
		return !(p.Loss > 0) || math.IsInf(p.Loss, 0) || p.Epoch < 0
	})
}

// likeness is how near an earlier job's losses come to those so far, and when they say that the target is reached.
type likeness struct {
	off    float64 // root of the mean of the squares of what logarithms of losses are apart
	epochs float64
}

// likenessOf stretches an earlier job's losses until they are nearest.
func likenessOf(points, past []LossPoint, target float64) (best likeness, ok bool) {
	c, ok := newSeen(past)
	if !ok {
		return best, false
	}
	best.off = math.Inf(1)
	at := c.crossing(target)
	for i := range likeScales + 1 {
		scale := math.Pow(likeWidest, 2*float64(i)/likeScales-1)
		if off := c.off(points, scale); off < best.off {
			best = likeness{off: off, epochs: at / scale}
		}
	}
	return best, best.off < likeMost && !math.IsInf(best.epochs, 1)
}

// seen is a job's losses as they were, in logarithms, and the line that they end as.
type seen struct {
	points []LossPoint // losses are logarithms
	fall   float64     // of the logarithm in an epoch, at the end
}

func newSeen(past []LossPoint) (s seen, ok bool) {
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

// at is the logarithm of the loss after so many epochs: between those that were, and as the end beyond them.
func (s seen) at(epoch float64) float64 {
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

// crossing is after how many epochs the losses come to a target; +Inf: never.
func (s seen) crossing(target float64) float64 {
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

// off is how far losses are from these, stretched so that an epoch of theirs is so many of these. The newer half counts
// twice, and what lies beyond the last of these is a guess: the farther, the less near.
func (s seen) off(points []LossPoint, scale float64) float64 {
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

// leftBy is the epochs in all by the jobs that are nearest: the nearer, the more one counts.
func leftBy(all []likeness, now float64) disdel.Interval[float64] {
	var sum, squares, weights float64
	for _, l := range all {
		weight := 1 / (likeOff*likeOff + l.off*l.off)
		left := math.Log(max(l.epochs-now, 0.5))
		sum, squares, weights = sum+weight*left, squares+weight*left*left, weights+weight
	}
	likely := sum / weights
	apart := max(0, squares/weights-likely*likely)
	off := student(oneInTwenty, float64(max(1, len(all)-1))) * math.Sqrt(apart+likeBase*likeBase)
	return disdel.Interval[float64]{
		Low: now + math.Exp(likely-off), Likely: now + math.Exp(likely), High: now + math.Exp(likely+off),
	}
}
