package kernel

import (
	"math"
	"unsafe"

	"github.com/disdel/disdel"
)

// Update is a step of an optimiser.
type Update struct {
	Optimizer disdel.Optimizer
	Rate      float64 // of this step, in place of the optimiser's own
	Scale     float64 // of gradients
	Step      int     // 1 and up
	// Trust is LAMB's ratio of the whole array. Norms, where it is not nil, asks for what the ratio is made of instead:
	// the moments change, the squared norms of the weights and of the direction are added, and no weight moves.
	Trust float64
	Norms *[2]float64
}

// Update moves weights x by gradient g. m and v are the optimiser's moments, nil where it has none.
func (w *Worker) Update(u *Update, x, g, m, v []float32) {
	switch o := &u.Optimizer; {
	case o.SGD != nil:
		w.SGD(u.sgd(o.SGD), x, g, m)
	case o.Adam != nil:
		w.Adam(u.adam(o.Adam, o.Adam.WeightDecay, 0), x, g, m, v)
	case o.AdamW != nil:
		w.Adam(u.adam(o.AdamW, 0, o.AdamW.WeightDecay), x, g, m, v)
	case o.Lion != nil:
		w.Lion(u.lion(o.Lion), x, g, m)
	case o.LAMB != nil:
		w.lamb(u, x, g, m, v)
	case o.RMSprop != nil, o.Adagrad != nil:
		w.Rooted(u.rooted(), x, g, m, v)
	}
}

// SquareMoment tells whether a moment of an optimiser is a mean or a sum of squares.
func SquareMoment(o disdel.Optimizer, moment int) bool {
	if o.Adam != nil || o.AdamW != nil || o.LAMB != nil {
		return moment == 1
	}
	return (o.RMSprop != nil || o.Adagrad != nil) && moment == 0
}

// Update moves the rows of a table that have a gradient.
func (e *Exact) Update(u *Update, t *Touched) {
	switch o := &u.Optimizer; {
	case o.SGD != nil:
		e.SGD(u.sgd(o.SGD), t)
	case o.Adam != nil:
		e.Adam(u.adam(o.Adam, o.Adam.WeightDecay, 0), t)
	case o.AdamW != nil:
		e.Adam(u.adam(o.AdamW, 0, o.AdamW.WeightDecay), t)
	case o.Lion != nil:
		e.Lion(u.lion(o.Lion), t)
	case o.RMSprop != nil, o.Adagrad != nil:
		e.Rooted(u.rooted(), t)
	}
}

func (u *Update) sgd(o *disdel.SGD) SGD {
	return SGD{Rate: u.Rate, Decay: o.WeightDecay, Scale: u.Scale, Momentum: o.Momentum, Nesterov: o.Nesterov}
}

func (u *Update) adam(o *disdel.Adam, decay, decoupled float64) Adam {
	a := o.WithDefaults()
	return Adam{
		Rate: u.Rate, Beta1: a.Beta1, Beta2: a.Beta2, Epsilon: a.Epsilon, Scale: u.Scale, Step: u.Step,
		Decay: decay, DecoupledDecay: decoupled,
	}
}

func (u *Update) lion(o *disdel.Lion) Lion {
	l := o.WithDefaults()
	return Lion{Rate: u.Rate, Beta1: l.Beta1, Beta2: l.Beta2, DecoupledDecay: l.WeightDecay, Scale: u.Scale}
}

// lamb updates weights by You and others (2019), whose phi is the norm itself. See Update.Norms: the first call of a
// step needs all workers' ends before the second.
func (w *Worker) lamb(u *Update, x, g, m, v []float32) {
	l := u.Optimizer.LAMB.WithDefaults()
	from, to := w.chunk(len(x))
	x, g, m, v = x[from:to], g[from:to], m[from:to], v[from:to]
	step := float64(u.Step)
	d := direction{
		float32(1 / (1 - math.Pow(l.Beta1, step))), float32(1 / (1 - math.Pow(l.Beta2, step))), float32(l.Epsilon),
		float32(l.WeightDecay),
	}
	if u.Norms == nil {
		far := float32(u.Rate * u.Trust)
		for i, weight := range x {
			x[i] = weight - float32(far*d.of(weight, m[i], v[i]))
		}
		return
	}
	scale, beta1, rest1 := float32(u.Scale), float32(l.Beta1), float32(1-l.Beta1)
	beta2, rest2 := float32(l.Beta2), float32(1-l.Beta2)
	for i, slope := range g {
		slope = float32(scale * slope)
		m[i] = float32(beta1*m[i]) + float32(rest1*slope)
		v[i] = float32(beta2*v[i]) + float32(float32(rest2*slope)*slope)
		to := float64(d.of(x[i], m[i], v[i]))
		u.Norms[0] += float64(x[i]) * float64(x[i])
		u.Norms[1] += to * to
	}
}

// direction is where LAMB moves weights: by Adam's step and their decay.
type direction struct{ first, second, epsilon, decay float32 }

func (d *direction) of(x, m, v float32) float32 {
	root := float32(math.Sqrt(float64(float32(v * d.second))))
	return float32(m*d.first)/(root+d.epsilon) + float32(d.decay*x)
}

// TrustRatio is LAMB's for an array with these squared norms of weights and direction. Weights of zero move as Adam's.
func TrustRatio(norms [2]float64) float64 {
	if norms[0] > 0 && norms[1] > 0 {
		return math.Sqrt(norms[0] / norms[1])
	}
	return 1
}

// rooted is RMSprop, or Adagrad, whose sum of squares forgets nothing.
func (u *Update) rooted() Rooted {
	if o := u.Optimizer.RMSprop; o != nil {
		r := o.WithDefaults()
		return Rooted{
			Rate: u.Rate, Keep: r.Alpha, Take: 1 - r.Alpha, Epsilon: r.Epsilon, Momentum: r.Momentum,
			Decay: r.WeightDecay, Scale: u.Scale,
		}
	}
	a := u.Optimizer.Adagrad.WithDefaults()
	return Rooted{Rate: u.Rate, Keep: 1, Take: 1, Epsilon: a.Epsilon, Decay: a.WeightDecay, Scale: u.Scale}
}

// SGD is one step of stochastic gradient descent: w -= Rate (Scale g + Decay w), with the velocity of Momentum where v
// is not nil (Sutskever 2013; PyTorch's form).
type SGD struct {
	Rate, Decay, Scale, Momentum float64
	Nesterov                     bool
}

// SGD updates weights x by gradient g and velocity v.
func (w *Worker) SGD(o SGD, x, g, v []float32) {
	s := &w.elem.s
	s[0], s[1], s[2] = float32(-o.Rate), float32(o.Decay), float32(o.Scale)
	if v == nil {
		w.element(w.f.sgd, x, g, nil, nil)
		return
	}
	s[3], s[4], s[5] = float32(o.Momentum), 1, 0
	if o.Nesterov {
		s[4], s[5] = float32(o.Momentum), 1
	}
	w.element(w.f.momentum, x, g, v, nil)
}

// Adam is one step of Adam (Kingma 2015) or, with DecoupledDecay, of AdamW (Loshchilov 2019).
type Adam struct {
	Rate, Beta1, Beta2, Epsilon, Decay, DecoupledDecay, Scale float64
	Step                                                      int // 1 and up
}

// Adam updates weights x by gradient g and the moments m and v.
func (w *Worker) Adam(o Adam, x, g, m, v []float32) {
	first := 1 - math.Pow(o.Beta1, float64(o.Step))
	second := 1 - math.Pow(o.Beta2, float64(o.Step))
	for i, value := range [...]float64{
		-o.Rate / first, o.Decay, o.Scale, o.Beta1, 1 - o.Beta1, o.Beta2, 1 - o.Beta2, 1 / math.Sqrt(second), o.Epsilon,
		1 - o.Rate*o.DecoupledDecay,
	} {
		w.elem.s[i] = float32(value)
	}
	w.element(w.f.adam, x, g, m, v)
}

// Lion is one step of Lion (Chen 2023): weights move by the sign of a mean of gradients.
type Lion struct {
	Rate, Beta1, Beta2, DecoupledDecay, Scale float64
}

// Lion updates weights x by gradient g and the mean m.
func (w *Worker) Lion(o Lion, x, g, m []float32) {
	from, to := w.chunk(len(x))
	o.move(x[from:to], g[from:to], m[from:to])
}

// Lion moves rows by Lion: see type Lion.
func (e *Exact) Lion(o Lion, t *Touched) {
	if !e.touched(t) {
		return
	}
	a := &e.rows
	for i := range a.n {
		at, g := a.row(i)
		o.move(a.of(a.values, at), g, a.of(a.first, at))
	}
}

// move is the same in plain Go, with one set of bits on every machine: products are rounded before they are added.
func (o Lion) move(x, gradients, m []float32) {
	rate, keep, scale := float32(o.Rate), float32(1-float64(o.Rate*o.DecoupledDecay)), float32(o.Scale)
	beta1, rest1, beta2, rest2 := float32(o.Beta1), float32(1-o.Beta1), float32(o.Beta2), float32(1-o.Beta2)
	x, m = x[:len(gradients)], m[:len(gradients)]
	for i, g := range gradients {
		g = float32(scale * g)
		step := float32(beta1*m[i]) + float32(rest1*g) // its sign counts; what is no number stays none
		switch {
		case step > 0:
			step = rate
		case step < 0:
			step = -rate
		}
		m[i] = float32(beta2*m[i]) + float32(rest2*g)
		x[i] = float32(keep*x[i]) - step
	}
}

// Rooted is one step of RMSprop or of Adagrad (Duchi 2011), as PyTorch has them: squares = Keep squares + Take g g, and
// weights move by Rate g / (root of squares + Epsilon), or by the velocity of it where there is Momentum.
type Rooted struct {
	Rate, Keep, Take, Epsilon, Momentum, Decay, Scale float64
}

// Rooted updates weights x by gradient g, the squares and, with Momentum, the velocity v.
func (w *Worker) Rooted(o Rooted, x, g, squares, v []float32) {
	from, to := w.chunk(len(x))
	if v != nil {
		v = v[from:to]
	}
	o.move(x[from:to], g[from:to], squares[from:to], v)
}

// Rooted moves rows: see type Rooted.
func (e *Exact) Rooted(o Rooted, t *Touched) {
	if !e.touched(t) {
		return
	}
	a := &e.rows
	for i := range a.n {
		at, g := a.row(i)
		var v []float32
		if o.Momentum != 0 {
			v = a.of(a.second, at)
		}
		o.move(a.of(a.values, at), g, a.of(a.first, at), v)
	}
}

// move is the same in plain Go, with one set of bits on every machine.
func (o Rooted) move(x, gradients, squares, velocity []float32) {
	rate, keep, take, epsilon := float32(o.Rate), float32(o.Keep), float32(o.Take), float32(o.Epsilon)
	scale, decay, momentum := float32(o.Scale), float32(o.Decay), float32(o.Momentum)
	for i, g := range gradients {
		g = float32(scale*g) + float32(decay*x[i])
		squares[i] = float32(keep*squares[i]) + float32(float32(take*g)*g)
		step := g / (float32(math.Sqrt(float64(squares[i]))) + epsilon)
		if velocity != nil {
			step += float32(momentum * velocity[i])
			velocity[i] = step
		}
		x[i] -= float32(rate * step)
	}
}

// Touched are the rows of a table that have a gradient. They are all different.
type Touched struct {
	Rows      []int32
	Gradients []float32 // [len(Rows) Width]
	// Marks, in a table of width 1, are Rows and Gradients side by side: a row, then the bits of its gradient.
	Marks  []int32
	Width  int
	Values []float32 // the table
	// First and Second are the optimiser's moments, like Values: the velocity, or the means of gradients and of their
	// squares; nil where it has none.
	First, Second []float32
}

// touched sets the arguments that all optimisers take, and tells whether there is anything to do.
func (e *Exact) touched(t *Touched) bool {
	a := &e.rows
	switch {
	case len(t.Marks) > 0:
		a.rows, a.gradients = unsafe.Pointer(&t.Marks[0]), unsafe.Pointer(&t.Marks[1])
		a.rowStep, a.gradientStep, a.n, a.width = 8, 8, int64(len(t.Marks)/2), 4
	case len(t.Rows) > 0:
		a.rows, a.gradients = unsafe.Pointer(&t.Rows[0]), p32(t.Gradients)
		a.rowStep, a.gradientStep, a.n, a.width = 4, int64(4*t.Width), int64(len(t.Rows)), int64(4*t.Width)
	default:
		return false
	}
	a.values, a.first, a.second = p32(t.Values), p32(t.First), p32(t.Second)
	return true
}

// SGD moves rows by w - Rate (Scale g + Decay w), or by their velocity where there is momentum: see type SGD.
func (e *Exact) SGD(o SGD, t *Touched) {
	f := e.f.plain
	switch {
	case o.Momentum != 0 && o.Nesterov:
		f = e.f.nesterov
	case o.Momentum != 0:
		f = e.f.momentum
	}
	if e.touched(t) {
		e.rows.s = [10]float32{float32(o.Rate), float32(o.Scale), float32(o.Decay), float32(o.Momentum)}
		f(&e.rows)
	}
}

// Adam moves rows by Adam or AdamW: see type Adam.
func (e *Exact) Adam(o Adam, t *Touched) {
	if !e.touched(t) {
		return
	}
	step, one := float64(o.Step), float32(1)
	beta1, beta2 := float32(o.Beta1), float32(o.Beta2)
	e.rows.s = [10]float32{
		float32(o.Rate / (1 - math.Pow(o.Beta1, step))), float32(o.Scale), float32(o.Decay), beta1, one - beta1, beta2,
		one - beta2, float32(1 / (1 - math.Pow(o.Beta2, step))), float32(o.Epsilon),
		float32(1 - float64(o.Rate*o.DecoupledDecay)),
	}
	e.f.adam(&e.rows)
}

// rowArgs are those of optimisers.
type rowArgs struct {
	rows, gradients       unsafe.Pointer
	rowStep, gradientStep int64 // bytes from one to the next
	n                     int64 // rows
	width                 int64 // bytes
	values, first, second unsafe.Pointer
	s                     [10]float32
}

// row is where the values of the row that was touched i-th lie, in bytes, and its gradient.
func (a *rowArgs) row(i int64) (at int64, gradient []float32) {
	row := *(*int32)(ptr(a.rows, i*a.rowStep))
	return int64(row) * a.width, floats(ptr(a.gradients, i*a.gradientStep), a.width/4)
}

// of is the row of an array that lies so many bytes behind its start.
func (a *rowArgs) of(array unsafe.Pointer, at int64) []float32 {
	return floats(ptr(array, at), a.width/4)
}

// The scalars of rowArgs.
const (
	scalarRate = iota
	scalarScale
	scalarDecay
	scalarMomentum // or the first of Adam's

	scalarBeta1   = 3
	scalarRest1   = 4 // 1 - beta1
	scalarBeta2   = 5
	scalarRest2   = 6
	scalarUnbias  = 7 // of the squares; that of the means is in the rate
	scalarEpsilon = 8
	scalarKeep    = 9 // what AdamW's decay leaves
)

// slope is a gradient, scaled and with decay.
func (a *rowArgs) slope(g, w float32) float32 {
	return float32(a.s[scalarScale]*g) + float32(a.s[scalarDecay]*w)
}

func rowsPlain(a *rowArgs) {
	for i := range a.n {
		at, g := a.row(i)
		x := a.of(a.values, at)
		for k, w := range x {
			x[k] = w - float32(a.s[scalarRate]*a.slope(g[k], w))
		}
	}
}

func rowsMomentum(a *rowArgs) { withVelocity(a, false) }
func rowsNesterov(a *rowArgs) { withVelocity(a, true) }

func withVelocity(a *rowArgs, nesterov bool) {
	momentum := a.s[scalarMomentum]
	for i := range a.n {
		at, g := a.row(i)
		x, velocity := a.of(a.values, at), a.of(a.first, at)
		for k, w := range x {
			slope := a.slope(g[k], w)
			v := float32(momentum*velocity[k]) + slope
			velocity[k] = v
			if nesterov {
				v = slope + float32(momentum*v)
			}
			x[k] = w - float32(a.s[scalarRate]*v)
		}
	}
}

func rowsAdam(a *rowArgs) {
	s := &a.s
	for i := range a.n {
		at, g := a.row(i)
		x, mean, square := a.of(a.values, at), a.of(a.first, at), a.of(a.second, at)
		for k, w := range x {
			slope := a.slope(g[k], w)
			m := float32(s[scalarBeta1]*mean[k]) + float32(s[scalarRest1]*slope)
			v := float32(s[scalarBeta2]*square[k]) + float32(float32(s[scalarRest2]*slope)*slope)
			mean[k], square[k] = m, v
			root := float32(math.Sqrt(float64(float32(v * s[scalarUnbias]))))
			x[k] = float32(s[scalarKeep]*w) - float32(s[scalarRate]*m)/(root+s[scalarEpsilon])
		}
	}
}
