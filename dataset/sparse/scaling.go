package sparse

import "math"

// scaling is what a number is scaled by. Mean and variance are counted one by one (Welford 1962).
type scaling struct {
	scale         Scale
	n             int
	mean, sum     float64
	low, high     float64
	shift, factor float64 // a value is (number - shift) x factor
}

func (s *scaling) add(v float64) {
	v = s.folded(v)
	s.n++
	d := v - s.mean
	s.mean += d / float64(s.n)
	s.sum += d * (v - s.mean)
	s.low, s.high = min(s.low, v), max(s.high, v)
}

// folded is what the scale goes by instead of a number.
func (s *scaling) folded(v float64) float64 {
	if s.scale == Log {
		return math.Copysign(math.Log1p(math.Abs(v)), v)
	}
	return v
}

// close works the factor out. A number that is always the same becomes 0: it says nothing that a bias does not.
func (s *scaling) close() {
	width := math.Sqrt(s.sum / float64(max(1, s.n)))
	s.shift = s.mean
	if s.n == 0 && s.scale != AsIs { // no row to learn from has it
		return
	}
	switch s.scale {
	case AsIs:
		s.shift, width = 0, 1
	case Range:
		s.shift, width = s.low, s.high-s.low
	}
	if width > 0 && !math.IsInf(width, 0) {
		s.factor = 1 / width
	}
}

func (s *scaling) of(v float64) float32 { return float32((s.folded(v) - s.shift) * s.factor) }
