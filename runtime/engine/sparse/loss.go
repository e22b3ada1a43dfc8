package sparse

import "math"

// loss is the loss of a row, and its slope by the row's sum.
func (e *Engine) loss(sum float64, target float32) (loss, slope float64) {
	if e.probability {
		return logistic(sum, float64(target))
	}
	d := sum - float64(target)
	return d * d, 2 * d
}

// logistic is -y log p - (1-y) log(1-p) with p = 1/(1+exp(-z)), and its slope p - y. It goes by z itself, so that
// neither logarithm sees a probability that was rounded to 0 or 1.
func logistic(z, y float64) (loss, slope float64) {
	tail := math.Exp(-math.Abs(z))
	return math.Log1p(tail) + math.Max(z, 0) - y*z, sigmoid(z, tail) - y
}

// sigmoid is 1/(1+exp(-z)), tail being exp(-|z|).
func sigmoid(z, tail float64) float64 {
	if z < 0 {
		return tail / (1 + tail)
	}
	return 1 / (1 + tail)
}

// predicted is what a row's sum stands for.
func (e *Engine) predicted(sum float64) float32 {
	if e.probability {
		return float32(sigmoid(sum, math.Exp(-math.Abs(sum))))
	}
	return float32(sum)
}
