package report

import (
	"math"
	"slices"
)

// point is a round's figure.
type point struct {
	at   int // in the curve
	x, y float64
}

// points are the figures of a curve that a chart can show.
func (k *Curve) points(values []*float64) []point {
	var out []point
	for i, v := range values {
		if v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0) {
			out = append(out, point{i, float64(k.Round[i]), *v})
		}
	}
	return out
}

// thinned is at most so many points of a line, those that its shape is seen by: of each of as many stretches the one
// that spans the largest triangle with the one chosen before and the mean of the stretch behind (Steinarsson,
// Downsampling Time Series for Visual Representation, 2013: largest triangle, three buckets). The first and the last
// stay. most is 3 or more.
func thinned(line []point, most int) []point {
	if len(line) <= most {
		return line
	}
	out := make([]point, 1, most)
	out[0] = line[0]
	start := func(stretch int) int { return 1 + stretch*(len(line)-2)/(most-2) }
	for k := range most - 2 {
		next := line[start(k+1):min(start(k+2), len(line))]
		x, y := mean(next)
		out = append(out, largest(line[start(k):start(k+1)], out[len(out)-1], x, y))
	}
	return append(out, line[len(line)-1])
}

func mean(part []point) (x, y float64) {
	for _, p := range part {
		x, y = x+p.x, y+p.y
	}
	n := float64(len(part))
	return x / n, y / n
}

// largest is the point that spans the largest triangle with two others.
func largest(part []point, before point, x, y float64) point {
	best, area := part[0], -1.0
	for _, p := range part {
		if a := math.Abs((before.x-x)*(p.y-before.y) - (before.x-p.x)*(y-before.y)); a > area {
			best, area = p, a
		}
	}
	return best
}

// thin is a curve with the points of all its lines that a chart would show.
func (k *Curve) thin() Curve {
	var keep []int
	for _, values := range [][]*float64{k.TrainLoss, k.Loss, k.Accuracy} {
		for _, p := range thinned(k.points(values), mostCurvePoints) {
			keep = append(keep, p.at)
		}
	}
	slices.Sort(keep)
	keep = slices.Compact(keep)
	out := Curve{
		Job: k.Job, Name: k.Name, Round: make([]int, 0, len(keep)), TrainLoss: []*float64{}, Loss: []*float64{},
		Accuracy: []*float64{},
	}
	for _, i := range keep {
		out.Round = append(out.Round, k.Round[i])
		out.TrainLoss = append(out.TrainLoss, copied(k.TrainLoss[i]))
		out.Loss, out.Accuracy = append(out.Loss, copied(k.Loss[i])), append(out.Accuracy, copied(k.Accuracy[i]))
	}
	return out
}

// copied is a figure of its own: a pointer into a record would keep all of it.
func copied(v *float64) *float64 {
	if v == nil {
		return nil
	}
	return new(*v)
}
