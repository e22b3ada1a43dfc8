package schedule

import (
	"math"
	"math/rand/v2"
	"slices"
)

// The network has nine features, sixteen hidden units, and for each of log2 workers and log2 memory a mean and the
// logarithm of a standard deviation.
const (
	features = 9
	hidden   = 16
	outputs  = 4
	weights  = hidden*(features+1) + outputs*(hidden+1)
)

// The bounds of the logarithm of a standard deviation.
const (
	leastLogSD = -3.0
	mostLogSD  = 0.5
)

// Net is a policy network (SIREN, Eq. 4): its output for a state is a Gaussian over the logarithms of workers and
// memory. Its parameters are one list: for each hidden unit its weights and its bias, then the same of each output.
type Net struct {
	Weights []float64 `json:"weights"`
	Scale   Scale     `json:"scale"`
}

// Scale has the units of the features in one world.
type Scale struct {
	Seconds float64 `json:"seconds"` // of an epoch, 0: 1
	Loss    float64 `json:"loss"`    // before the first epoch
}

// copied returns a copy, for training in place.
func (n *Net) copied() *Net { return &Net{Weights: slices.Clone(n.Weights), Scale: n.Scale} }

// features are those of SIREN's state: epoch, loss, times, use of memory and processors, and what is left.
func (n *Net) features(s State) (x [features]float64) {
	t := n.Scale.Seconds
	if t == 0 {
		t = 1
	}
	x = [features]float64{float64(s.Epoch) / 30, math.Log(max(1e-9, s.Loss))}
	if s.Epoch > 0 {
		x[2], x[3], x[4], x[5] = s.Seconds/t-1, s.Fetch/t, s.Compute/t, s.Push/t
		x[6], x[7] = s.Memory, s.Processor
	}
	x[8] = 1
	if s.Budget > 0 {
		x[8] = 2*s.Left/s.Budget - 1
	}
	return x
}

// opinion is a network's output for a state, with intermediate results for learning.
type opinion struct {
	x          [features]float64
	h          [hidden]float64
	mean       [2]float64 // log2 workers, log2 MB
	logSD      [2]float64
	outOfRange [2]bool // the deviation is at its bound, and has no gradient
}

func (n *Net) think(s State) (o opinion) {
	o.x = n.features(s)
	o.h = hiddenOf(n.Weights, o.x)
	var y [outputs]float64
	for k := range y {
		row := n.Weights[hidden*(features+1)+k*(hidden+1):]
		y[k] = row[hidden]
		for j, h := range o.h {
			y[k] += row[j] * h
		}
	}
	for k := range 2 {
		o.mean[k] = y[k]
		o.logSD[k] = min(max(leastLogSD, y[2+k]), mostLogSD)
		o.outOfRange[k] = o.logSD[k] != y[2+k]
	}
	return o
}

func hiddenOf(w []float64, x [features]float64) (h [hidden]float64) {
	for j := range h {
		row := w[j*(features+1):]
		sum := row[features]
		for i, v := range x {
			sum += row[i] * v
		}
		h[j] = math.Tanh(sum)
	}
	return h
}

// choice converts two logarithms; a World clips the result.
func choice(a [2]float64) Choice {
	const mostLog = 40
	return Choice{
		Workers: int(math.Round(math.Exp2(min(max(0, a[0]), mostLog)))),
		Memory:  math.Exp2(min(max(0, a[1]), mostLog)),
	}
}

// Greedy chooses the mean of the network's output.
func (n *Net) Greedy() Chooser {
	return func(s State) Choice { return choice(n.think(s).mean) }
}

// Sample draws from the network's distribution.
func (n *Net) Sample(lot *rand.Rand) Chooser {
	return func(s State) Choice {
		c, _ := n.sample(s, lot)
		return c
	}
}

func (n *Net) sample(s State, lot *rand.Rand) (Choice, [2]float64) {
	o := n.think(s)
	var a [2]float64
	for k := range a {
		a[k] = o.mean[k] + math.Exp(o.logSD[k])*lot.NormFloat64()
	}
	return choice(a), a
}

// gradient adds the gradient of the log probability of an action, times its advantage (SIREN, Eq. 5), and a small
// entropy term that keeps the deviations from vanishing.
func (n *Net) gradient(into []float64, s State, a [2]float64, advantage float64) {
	const entropy = 0.001
	o := n.think(s)
	var dy [outputs]float64
	for k := range a {
		sd := math.Exp(o.logSD[k])
		z := (a[k] - o.mean[k]) / sd
		dy[k] = z / sd * advantage
		if !o.outOfRange[k] {
			dy[2+k] = (z*z-1)*advantage + entropy
		}
	}
	n.backward(into, o, dy)
}

// backward adds the gradient of the outputs' sum, each times its dy, to that of the weights.
func (n *Net) backward(into []float64, o opinion, dy [outputs]float64) {
	const head = hidden * (features + 1)
	var dh [hidden]float64
	for k, d := range dy {
		row, to := n.Weights[head+k*(hidden+1):], into[head+k*(hidden+1):]
		for j, h := range o.h {
			to[j] += d * h
			dh[j] += d * row[j]
		}
		to[hidden] += d
	}
	for j, h := range o.h {
		d := dh[j] * (1 - h*h)
		to := into[j*(features+1):]
		for i, v := range o.x {
			to[i] += d * v
		}
		to[features] += d
	}
}

// adam is an ascent (Kingma and Ba).
type adam struct {
	m, v  []float64
	steps float64
}

const (
	adamRate = 0.003
	beta1    = 0.9
	beta2    = 0.999
	longest  = 1 // norm of a gradient
)

func newAdam() *adam { return &adam{m: make([]float64, weights), v: make([]float64, weights)} }

func (a *adam) climb(w, gradient []float64) {
	norm := 0.0
	for _, g := range gradient {
		norm += g * g
	}
	shorter := 1.0
	if norm = math.Sqrt(norm); norm > longest {
		shorter = longest / norm
	}
	a.steps++
	c1, c2 := 1-math.Pow(beta1, a.steps), 1-math.Pow(beta2, a.steps)
	for i, g := range gradient {
		g *= shorter
		a.m[i] = beta1*a.m[i] + (1-beta1)*g
		a.v[i] = beta2*a.v[i] + (1-beta2)*g*g
		w[i] += adamRate * a.m[i] / c1 / (math.Sqrt(a.v[i]/c2) + 1e-8)
	}
}
