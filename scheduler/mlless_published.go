package scheduler

import (
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// MLLessPublished is MLLess' scale-in as in its code, for comparison with MLLess. Its steps are our rounds, and its
// interval of 20 s is our epoch. Its least squares are solved by golden sections and non-negative linear fits, since
// scipy's result depends on its starting point. The rule considers the loss alone. Past the knee the first worker
// leaves whatever that costs. The next ones leave while the loss that is expected ten seconds later is less than 15 %
// worse than with all workers. No worker comes back.
type MLLessPublished struct{}

// The constants of MLLess' code.
const (
	publishedSpan    = 20      // of the running means
	publishedSlope   = -7.5e-5 // of the loss, per step
	publishedCount   = 5       // times that the knee is found at the same step
	publishedHorizon = 10.0    // s
	publishedWorse   = 0.15    // S
)

// Name returns the policy's name in job files.
func (MLLessPublished) Name() string { return "mlless-published" }

// Meaning returns what explain says.
func (MLLessPublished) Meaning() string { return "is the rule that MLLess published" }

func (MLLessPublished) Decide(in Input) disdel.Decision {
	out := unchanged(in)
	if in.Boundary != disdel.BoundaryEpoch {
		return out
	}
	s := publishedTuner{times: map[int][]float64{}}
	for i, o := range in.Seen {
		s.step(o)
		n := o.Setting.Workers
		switch last := i == len(in.Seen)-1; {
		case o.Epoch != float64(int(o.Epoch)) || !s.knee:
		case !last && in.Seen[i+1].Setting.Workers < n:
			s.removed(n)
		case last && n > 1:
			s.decide(n)
		}
	}
	if s.removes {
		out.Next.Workers--
	}
	if out.Why = s.why; !s.knee {
		out.Why = "the loss has no knee yet"
	}
	return out
}

// publishedTuner is the state of MLLess' tuner.
type publishedTuner struct {
	losses    []float64 // since the last removal
	steps     int
	times     map[int][]float64 // of steps by workers, s
	workers   int
	candidate int // step of the knee
	count     int // times that it was found there
	knee      bool
	all       []float64 // losses with all workers, of L_P; nil: no worker has left
	full      int       // P

	removes bool
	why     string
}

func (s *publishedTuner) step(o disdel.Observation) {
	if n := o.Setting.Workers; n != s.workers {
		s.workers = n
	}
	s.steps++
	s.losses = append(s.losses, o.Loss)
	s.times[s.workers] = append(s.times[s.workers], o.Duration.Seconds())
	if !s.knee {
		s.findKnee()
	}
}

// findKnee finds the first step at which the smoothed slope of the smoothed losses is nearly flat. It is the knee if
// five more steps have not moved it.
func (s *publishedTuner) findKnee() {
	if len(s.losses) < 3 {
		return
	}
	slopes := both(differences(both(s.losses)))
	k := 0
	for i, d := range slopes {
		if d > publishedSlope {
			k = i
			break
		}
	}
	switch {
	case k == 0:
		s.candidate, s.count = 0, 0
	case k > s.candidate:
		s.candidate, s.count = k, 0
	default:
		s.count++
		s.knee = s.count >= publishedCount
	}
}

func differences(v []float64) []float64 {
	out := make([]float64, len(v)-1)
	for i := range out {
		out[i] = v[i+1] - v[i]
	}
	return out
}

// both is the mean of running means forward and back, corrected for their start like pandas' adjust=True.
func both(v []float64) []float64 {
	const keep = 1 - 2.0/(publishedSpan+1)
	out := make([]float64, len(v))
	sum, weight := 0.0, 0.0
	for i, x := range v {
		sum, weight = keep*sum+x, keep*weight+1
		out[i] = sum / weight / 2
	}
	sum, weight = 0, 0
	for i := len(v) - 1; i >= 0; i-- {
		sum, weight = keep*sum+v[i], keep*weight+1
		out[i] += sum / weight / 2
	}
	return out
}

// decide tells whether a worker leaves at the end of the newest epoch.
func (s *publishedTuner) decide(workers int) {
	if s.all == nil {
		s.removes, s.why = true, "past the knee: one worker less"
		return
	}
	if len(s.losses) < 3 {
		s.why = "too few losses since the last one left"
		return
	}
	all, fewer := reference(s.all), recent(s.losses)
	before := all(math.Floor(float64(s.steps) + publishedHorizon/mean(s.times[s.full])))
	now := fewer(math.Floor(float64(len(s.losses)) + publishedHorizon/mean(s.times[workers])))
	worse := (now - before) / before
	s.why = fmt.Sprintf("the loss would be %.1f %% worse than with %s", 100*worse, workersText(s.full))
	if worse < publishedWorse {
		s.removes = true
		s.why += ": one worker less"
	}
}

// removed clears the losses, like the tuner after a removal.
func (s *publishedTuner) removed(workers int) {
	if s.all == nil {
		s.all, s.full = s.losses, workers
	}
	s.losses = nil
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(1, len(v)))
}

// reference is MLLess' L_P(t) = 1/(a t^b + c) + d, fitted to the losses of steps 1, 2, ...
func reference(losses []float64) func(float64) float64 {
	b := golden(0.2, 3, func(b float64) float64 { return bestFloor(losses, b).off })
	f := bestFloor(losses, b)
	return f.at
}

// recent is MLLess' l_p(t) = 1/(a t^2 + b t + c) + d, for the losses since a worker left, whose steps count from 1.
func recent(losses []float64) func(float64) float64 {
	f := bestFloor(losses, 2, 1)
	return f.at
}

// powers is 1/(sum of factor t^power, and a constant) + floor.
type powers struct {
	power, factor []float64 // the last power is 0
	floor, off    float64   // off is the sum of squares of the losses
}

func (p powers) at(t float64) float64 {
	sum := 0.0
	for i, b := range p.power {
		sum += p.factor[i] * math.Pow(t, b)
	}
	if sum <= 0 {
		return p.floor
	}
	return p.floor + 1/sum
}

// bestFloor fits floor and factors for the given powers: the floor by a golden section below the least loss, the
// factors by non-negative least squares.
func bestFloor(losses []float64, power ...float64) powers {
	f := powerFit{power: append(slices.Clone(power), 0)}
	for from := 0; from < len(losses); {
		until := min(len(losses), from+1+int(groupShare*float64(from)))
		f.add(losses[from:until], from)
		from = until
	}
	return f.fit(f.floor())
}

// floor returns the floor below the least loss with the best fit. The error has several minima, and far from the true
// floor of a long curve it is almost flat. So floor first tries the whole range, in steps that become finer towards
// the least loss. Then it searches around the best step.
func (f *powerFit) floor() float64 {
	const looks, finest = 48, 1e-6
	minimum, maximum := slices.Min(f.losses), slices.Max(f.losses)
	reach := max(minimum, maximum-minimum, 1e-9) // from the least loss down: a loss is not below 0
	at := func(i int) float64 {
		if i >= looks {
			return minimum
		}
		return minimum - reach*math.Pow(finest, float64(i)/(looks-1))
	}
	best, off := 0, math.Inf(1)
	for i := range looks {
		if o := f.fit(at(i)).off; o < off {
			best, off = i, o
		}
	}
	return golden(at(max(0, best-1)), at(best+1), func(floor float64) float64 { return f.fit(floor).off })
}

// groupShare is the size of a group of steps, as a share of the steps before it. A group counts as one step with the
// mean loss, since the weights follow the losses above the floor, and late losses differ from it only by noise.
const groupShare = 0.08

// powerFit holds means of losses and the powers of their steps.
type powerFit struct {
	losses, power []float64
	count         []float64   // steps of each mean
	rows          [][]float64 // by mean, of each power
}

// add adds the mean of the losses of the steps that follow step after.
func (f *powerFit) add(losses []float64, after int) {
	sum, n := 0.0, float64(len(losses))
	for _, l := range losses {
		sum += l
	}
	row := make([]float64, len(f.power))
	for j, p := range f.power {
		row[j] = math.Pow(float64(after)+(n+1)/2, p)
	}
	f.losses, f.count, f.rows = append(f.losses, sum/n), append(f.count, n), append(f.rows, row)
}

// fit is the non-negative fit for a floor: over all sets of terms with factors of at least 0, the one with the least
// squares. 1/(loss - floor) is linear in the factors, and weights of (loss - floor)^4 make its squares those of the
// losses.
func (f *powerFit) fit(floor float64) powers {
	best := powers{floor: floor, off: math.Inf(1)}
	for set := 1; set < 1<<len(f.power); set++ {
		var terms []int
		var power []float64
		for i, p := range f.power {
			if set&(1<<i) != 0 {
				terms, power = append(terms, i), append(power, p)
			}
		}
		factors, ok := f.factors(terms, floor)
		if !ok {
			continue
		}
		if off := f.off(terms, factors, floor); off < best.off {
			best = powers{power, factors, floor, off}
		}
	}
	return best
}

// off is the sum of squared differences from the losses.
func (f *powerFit) off(terms []int, factors []float64, floor float64) (sum float64) {
	for k, l := range f.losses {
		y := 0.0
		for i, term := range terms {
			y += factors[i] * f.rows[k][term]
		}
		d := l - floor
		if y > 0 {
			d -= 1 / y
		}
		sum += f.count[k] * d * d
	}
	return sum
}

func (f *powerFit) factors(terms []int, floor float64) ([]float64, bool) {
	n := len(terms)
	a := make([][]float64, n)
	for i := range a {
		a[i] = make([]float64, n+1)
	}
	for k, l := range f.losses {
		above := max(l-floor, 1e-9)
		w := f.count[k] * above * above * above * above
		for i, p := range terms {
			x := w * f.rows[k][p]
			for j, q := range terms {
				a[i][j] += x * f.rows[k][q]
			}
			a[i][n] += x / above
		}
	}
	x, ok := solve(a)
	return x, ok && !slices.ContainsFunc(x, func(v float64) bool { return !(v >= 0) || math.IsInf(v, 0) })
}

// golden returns the minimum of f between two points, by a golden section of 32 steps.
func golden(low, high float64, f func(float64) float64) float64 {
	const share = 0.6180339887498949
	a, b := high-share*(high-low), low+share*(high-low)
	fa, fb := f(a), f(b)
	for range 32 {
		if fa <= fb {
			high, b, fb = b, a, fa
			a = high - share*(high-low)
			fa = f(a)
		} else {
			low, a, fa = a, b, fb
			b = low + share*(high-low)
			fb = f(b)
		}
	}
	return (low + high) / 2
}
