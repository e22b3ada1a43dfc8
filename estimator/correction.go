package estimator

import (
	"math"

	"github.com/disdel/disdel"
)

// correction is how far sums of parts were from what whole jobs took, and how uncertain the next one is.
type correction struct {
	factor float64 // the likely duration over the sum
	// The interval is from the likely duration over low to the likely duration times high.
	low, high float64
	jobs      int  // whole jobs behind it
	measured  bool // of just the plan's shape, some of them
}

// How sure the correction is, in units of a job of just the plan's shape.
const (
	ownWeight    = 20.0 // of such a job, beside one of half the workers or of twice the time
	noCorrection = 0.3  // of the sum as it is
	fadedAfter   = 12.0 // jobs until one counts half: the machine of today is rather like yesterday's
)

// What adds to the spread of the logarithm, beside what was measured.
const (
	leastJitter  = 0.08 // s: what a job's processes wait for whatever the work is
	strangeDoubt = 0.05 // for each doubling of the nearest earlier job's time
	shapeDoubt   = 0.12 // for each doubling between the nearest earlier job's shape and the plan's
)

// The spread of whole jobs of one network and data, before any are compared: the deviation of the logarithm, and how
// many jobs it counts for. Both are from the forecasts of jobs that `make bench-estimator` draws.
const (
	wholePrior  = 0.12
	wholeWeight = 10
)

// gauge is a measure of whole jobs: what a record says that one came to, and what a pool expects of it.
type gauge struct {
	took     func(*disdel.Record) float64
	expected func(own TimingInput, legs int) float64
	seconds  float64 // that the job to come takes
}

// correction is that of a job's duration, whose parts come to so much.
func (w *pool) correction(in TimingInput, sum float64) correction {
	return w.compare(in, sum, gauge{
		func(r *disdel.Record) float64 { return r.Phases.Total.Seconds() },
		func(own TimingInput, legs int) float64 { return w.sum(own, legs).total() },
		sum,
	})
}

// compare compares every whole job of the pool with the sum that the pool makes of its own plan. Nearer jobs count
// more: by workers, batch, threads, length, and other programs' load (Shepard's weights, so that shapes between two
// measured ones lie between them). The spread is a Student's t blend of the group's prior with what was measured.
func (w *pool) compare(in TimingInput, sum float64, by gauge) correction {
	c := correction{factor: 1}
	var logs, weights []float64
	nearest, nearestShape := math.Inf(1), math.Inf(1)
	for i, r := range w.jobs {
		own, ok := asPlanned(in, r)
		if !ok {
			continue
		}
		expected, took := by.expected(own, r.Plan.Legs), by.took(r)
		if expected <= 0 || sum <= 0 || took <= 0 {
			continue
		}
		length := math.Abs(math.Log2(expected / sum))
		shape := farOff(in, own)
		load := math.Abs(math.Log2(in.slowdown(disdel.TaskTrain) / own.slowdown(disdel.TaskTrain)))
		d := shape + length/4 + load
		logs = append(logs, math.Log(took/expected))
		weights = append(weights, math.Exp2(-float64(i)/fadedAfter)/(1/ownWeight+d*d))
		nearest, nearestShape = min(nearest, length), min(nearestShape, shape)
		c.measured = c.measured || shape == 0 && sameData(in, r)
	}
	c.jobs = len(logs)
	mean, variance, count := weighed(logs, weights)
	c.factor = math.Exp(mean)
	prior, weight := w.group.prior, float64(priorWeight)
	if c.jobs > 0 {
		prior, weight = wholePrior, wholeWeight
	}
	sigma := math.Sqrt((weight*prior*prior + count*variance) / (weight + count))
	sigma = math.Hypot(sigma, leastJitter/max(by.seconds*c.factor, leastDuration))
	if c.jobs > 0 {
		sigma = math.Hypot(sigma, math.Hypot(strangeDoubt*nearest, shapeDoubt*nearestShape))
	}
	count = max(1, count)
	off := student(oneInTwenty, weight+count-1) * sigma * math.Sqrt(1+1/count)
	c.low = min(mostFactor, math.Exp(math.Hypot(off, oneInTwenty*w.load.less)))
	c.high = min(mostFactor, math.Exp(math.Hypot(off, oneInTwenty*w.load.more)))
	return c
}

// width is one factor for both ends.
func (c correction) width() float64 { return math.Sqrt(c.low * c.high) }

// cheapestTwin is the least cost by use of an earlier job of the same plan; +Inf where there is none.
func (w *pool) cheapestTwin(in TimingInput) float64 {
	least := math.Inf(1)
	for _, r := range w.jobs {
		own, ok := asPlanned(in, r)
		if ok && farOff(in, own) == 0 && sameData(in, r) && r.Plan.Rounds == in.Plan.Rounds &&
			r.Job.Training.Epochs == in.Job.Training.Epochs && len(r.Rounds) == r.Plan.Rounds {
			least = min(least, r.ByUse())
		}
	}
	return least
}

// weighed is the mean of logarithms, drawn towards none by the sum as it is, their variance, and how many equal ones
// they are worth (Kish's effective sample size).
func weighed(logs, weights []float64) (mean, variance, count float64) {
	var sum, squares, total float64
	for i, l := range logs {
		sum += weights[i]
		squares += weights[i] * weights[i]
		total += weights[i] * l
	}
	if sum == 0 {
		return 0, 0, 0
	}
	mean, count = total/sum, sum*sum/squares
	for i, l := range logs {
		variance += weights[i] * (l - mean) * (l - mean) / sum
	}
	if count > 1 {
		variance *= count / (count - 1)
	}
	return mean * sum / (sum + noCorrection), variance, count
}

// asPlanned is what a forecast of an earlier job would have been made of, as far as it ran; false where its duration is
// not that of one run of all its rounds under one plan.
func asPlanned(in TimingInput, r *disdel.Record) (TimingInput, bool) {
	if len(r.Stages) > 1 || r.Status != disdel.StatusSucceeded || r.Phases.Total <= 0 || r.Resumes > 0 ||
		len(r.Rounds) == 0 || r.Plan.Rounds == 0 {
		return in, false
	}
	own := TimingInput{Plan: r.Plan, Job: r.Job, Data: r.Data, Work: in.Work}
	own.slow, _ = slowdownsOf(r)
	if ran := len(r.Rounds); ran < r.Plan.Rounds { // stopped early
		own.Job.Training.Epochs = max(1, r.Job.Training.Epochs*ran/r.Plan.Rounds)
		own.Plan.Rounds = ran
	}
	return own, true
}

// farOff is how many doublings lie between two jobs' shapes; 0: the same shape.
func farOff(a, b TimingInput) (d float64) {
	apart := func(x, y int) float64 {
		if x <= 0 || y <= 0 {
			return 0
		}
		return math.Abs(math.Log2(float64(x) / float64(y)))
	}
	d = apart(a.Plan.Workers, b.Plan.Workers) + apart(a.Plan.WorkerBatch(&a.Job), b.Plan.WorkerBatch(&b.Job)) +
		apart(a.Plan.Threads, b.Plan.Threads)
	if memory := apart(int(memoryOf(a.Plan).MB()), int(memoryOf(b.Plan).MB())); memory > math.Log2(1.25) {
		d += memory / 2
	}
	return d
}
