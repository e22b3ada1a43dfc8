package estimator

import (
	"fmt"
	"math"
	"time"

	"github.com/disdel/disdel"
)

// TimeoutFactor is the least growth of a timeout that was too short.
const TimeoutFactor = 2.0

// Margins of timeouts.
const (
	leastFactor = 1.5             // times the likely duration: the load of shared machines changes
	overLongest = 1.25            // times the longest measured duration
	noise       = 3 * time.Second // above the likely duration: a cold start or a busy machine

	patientFactor = 3.0              // the same for tasks that cannot pause: others may take two thirds of a processor
	leastPatience = 10 * time.Second // a measured cold start with a slow store
	// share of the platform's maximum that a leg trains; the rest stores its state
	legShare = 0.9
)

// TimingInput is what timeouts and forecasts are computed from.
type TimingInput struct {
	Past []disdel.Record // jobs of any kind, newest first
	Plan disdel.Plan     // workers, rounds, limits and levels are set; timeouts are not
	Job  disdel.Job
	Data disdel.DataInfo
	Work int64 // multiply-accumulates of one sample forwards; 0: unknown
	Rate *Rate // of a probe; nil: none was made

	// Least is the timeout that each task needed in earlier jobs after a shorter one was too short.
	Least map[disdel.Task]LeastTimeout

	slow slowdowns // by other programs; nil: by the load when Plan was made
}

// LeastTimeout is a timeout that an earlier job showed to be needed.
type LeastTimeout struct {
	Timeout disdel.Millis
	Job     disdel.JobID
}

// Timeout is the one rule for the timeout of a task, given the computed one: the job file's own timeout comes first;
// otherwise the timeout is no shorter than earlier jobs needed. It is always within the platform's limits.
func (in *TimingInput) Timeout(task disdel.Task, computed disdel.Millis) disdel.Millis {
	if own := disdel.Millis(in.Job.Resources.Timeout); own > 0 {
		return within(own, in.Plan.Platform)
	}
	return within(max(computed, in.Least[task].Timeout), in.Plan.Platform)
}

// Rate is a measured speed of training.
type Rate struct {
	RowsPerSecond float64       `json:"rowsPerSecond"` // of one worker while it computes
	StartUp       disdel.Millis `json:"startUpMs"`     // init, and reading the shard and the reference
	Peak          disdel.Bytes  `json:"peakBytes"`
}

// Timing is the timeouts and the forecast of a plan.
type Timing struct {
	Timeouts map[disdel.Task]disdel.Millis
	Source   disdel.Source
	// number of activations, one after another, of a worker's round that is longer than the platform's maximum
	Legs     int
	Forecast *disdel.Forecast // nil where nothing is known
	Reasons  []string         // the arithmetic, a sentence each
}

// known is what earlier jobs tell about one task of the plan.
type known struct {
	group    timeGroup
	samples  []timeSample
	cold     float64 // s: the largest start-up, since every activation may start cold
	warm     float64 // s: the mean warm start-up
	fullTime spread  // of an activation of the plan's size that starts cold
	each     float64 // s for a row or an update, geometric mean
	units    int
}

// TimingOf computes timeouts (the Timeout Manager of DiSDeL III-B.2b) and the forecast of the whole job.
//
// Sources, in this order: jobs of the same network, data, batch, workers, threads and memory; the nearest others
// (same network and data, scaled by rows; same network); a probe's rate; other networks, scaled by
// multiply-accumulates; the cost that the user expects; the platform's maximum. The paper's formula for a cost is
// e_time = (e_cost / c_d) / (mu m_e). Here e_cost is in GB-s, so mu is 1, and m_e is the memory limit. The result is
// divided by the number of rounds, because each round is an activation of its own.
//
// A computed timeout is a bound that one activation in a hundred exceeds, by Student's t over the logarithms of the
// measured durations. See TimingInput.Timeout for the job file's own timeout and the platform's limits.
func TimingOf(in TimingInput) Timing {
	t := timer{in: in, all: map[disdel.Task]known{}, load: loadOf(in)}
	t.in.slow = t.load.slowdowns(in.Plan)
	for _, a := range in.Plan.Actions {
		if k, ok := know(t.in, a.Task); ok {
			t.all[a.Task] = k
		}
	}
	t.out = Timing{Timeouts: map[disdel.Task]disdel.Millis{}, Legs: 1}
	t.timeouts()
	if _, ok := t.all[disdel.TaskTrain]; ok {
		t.legs()
		t.forecast()
	}
	return t.out
}

type timer struct {
	in   TimingInput
	load loadForecast
	all  map[disdel.Task]known
	out  Timing
}

func (t *timer) because(format string, args ...any) {
	t.out.Reasons = append(t.out.Reasons, fmt.Sprintf(format, args...))
}

// maximum is the longest that an activation of this job may run.
func (t *timer) maximum() disdel.Millis {
	m := t.in.Plan.Platform.MaxTimeout
	if own := disdel.Millis(t.in.Job.Resources.Timeout); own > 0 && own < m {
		m = own
	}
	return m
}

// know takes the samples of the nearest group that has measured the task.
func know(in TimingInput, task disdel.Task) (known, bool) {
	for _, g := range timeGroups {
		var samples []timeSample
		jobs := 0
		switch {
		case g.fits == nil:
			samples = probed(in, task)
		default:
			for i := range in.Past {
				if r := &in.Past[i]; r.Job.Training.Backend == in.Job.Training.Backend && jobs < mostJobs {
					found := g.samples(in, r, task)
					samples = append(samples, found.samples...)
					jobs += found.jobs
				}
			}
		}
		if len(samples) > 0 {
			return knownOf(g, samples, units(in.Plan, in.Plan.WorkerBatch(&in.Job), in.Data, task)), true
		}
	}
	return known{}, false
}

// found is what one earlier job has for a group.
type found struct {
	samples []timeSample
	jobs    int // 1: some stage of it is in the group
}

// samples are those of the stages of an earlier job that are in the group.
func (g timeGroup) samples(in TimingInput, r *disdel.Record, task disdel.Task) (out found) {
	for _, stage := range r.SplitByStage() {
		if g.fits(in, stage) {
			out.samples, out.jobs = append(out.samples, samplesOf(in, stage, task)...), 1
		}
	}
	return out
}

// probed is a probe's rate as a sample. It tells nothing about other tasks.
func probed(in TimingInput, task disdel.Task) []timeSample {
	if in.Rate == nil || in.Rate.RowsPerSecond <= 0 || task != disdel.TaskTrain {
		return nil
	}
	return []timeSample{{job: "probe", cold: true, fixed: in.Rate.StartUp.Seconds(), each: 1 / in.Rate.RowsPerSecond}}
}

func knownOf(g timeGroup, samples []timeSample, n int) known {
	k := known{group: g, samples: samples, units: n}
	var cold, all, warm, warmCount float64
	for _, s := range samples {
		all = max(all, s.fixed)
		if s.cold {
			cold = max(cold, s.fixed)
			continue
		}
		warm, warmCount = warm+s.fixed, warmCount+1
	}
	if k.cold = cold; cold == 0 {
		k.cold = all
	}
	if k.warm = k.cold; warmCount > 0 {
		k.warm = warm / warmCount
	}
	fullTime, each := make([]measured, len(samples)), make([]measured, len(samples))
	for i, s := range samples {
		fullTime[i] = measured{s.job, k.cold + float64(n)*s.each}
		each[i] = measured{s.job, float64(n) * s.each}
	}
	k.fullTime = spreadOf(fullTime, g.prior)
	k.each = spreadOf(each, g.prior).likely / float64(n)
	return k
}

// bound is the timeout of a task by earlier jobs, in seconds. A task that cannot pause starts anew after a timeout,
// so it gets more time, which costs nothing while all goes well.
func (k known) bound(pauses bool) float64 {
	s := k.fullTime
	d := max(s.likely*max(leastFactor, s.factor(s.sigma, oneInHundred)), s.likely+noise.Seconds())
	if k.group.source == disdel.SourceHistory {
		d = max(d, s.longest*overLongest)
	}
	if !pauses {
		d = max(d, s.likely*patientFactor, s.likely+leastPatience.Seconds())
	}
	return d
}

// leastByCost is the time to start a container and train a leg if neither was measured. A shorter timeout by cost
// would end actions without use: the budget itself bounds how long each action runs.
const leastByCost = 10 * time.Second

// timeouts sets every task's timeout, and the source of the train action's.
func (t *timer) timeouts() {
	p := t.in.Plan.Platform
	rest, source := p.MaxTimeout, disdel.SourcePlatform
	train, measured := t.all[disdel.TaskTrain]
	if cost, _ := t.in.Job.Budget(); !measured && cost > 0 && t.in.Plan.Workers > 0 {
		held := float64(memoryOf(t.in.Plan)) / float64(disdel.GB)
		rounds := max(1, t.in.Plan.Rounds)
		by := max(cost/float64(rounds)/float64(t.in.Plan.Workers)/held, leastByCost.Seconds())
		rest, source = within(millisOf(by), p), disdel.SourceCost
		t.because("timeout: (%.4g GB-s / %s / %s) / %.3g GB is %v (DiSDeL's e_time, of one round), "+
			"no less than %v for a start and a leg, within %v and %v of the platform",
			cost, disdel.Counted(rounds, "round"), disdel.Counted(t.in.Plan.Workers, "worker"), held, round(rest.Seconds()),
			leastByCost,
			p.MinTimeout, p.MaxTimeout)
	}
	if measured {
		source = train.group.source
		t.because("timeout: %d rows in about %v after a start of %v (%s), and at most %v in 99 of 100 cases",
			train.units, round(train.each*float64(train.units)), round(train.cold), train.basis(), round(train.bound(true)))
	}
	own := t.in.Job.Resources.Timeout > 0
	for _, a := range t.in.Plan.Actions {
		computed := rest
		if k, ok := t.all[a.Task]; ok {
			computed = millisOf(math.Ceil(k.bound(a.Task == disdel.TaskTrain)))
		}
		if minimum := t.in.Least[a.Task]; minimum.Timeout > within(computed, p) && !own {
			t.because("%s timeout: at least %v, since less was too little for %s", a.Task, minimum.Timeout, minimum.Job)
		}
		t.out.Timeouts[a.Task] = t.in.Timeout(a.Task, computed)
	}
	if t.out.Source = source; own {
		t.out.Source = disdel.SourceJobFile
	}
}

// basis names the source of a figure: "history, 12 activations of 3 jobs".
func (k known) basis() string {
	if k.group.fits == nil {
		return "a probe"
	}
	return fmt.Sprintf("%s, %s of %s", k.group.source, disdel.Counted(k.fullTime.samples, "activation"),
		disdel.Counted(k.fullTime.count, "job"))
}

// legs divides rounds that are longer than the longest timeout.
func (t *timer) legs() {
	k, maximum := t.all[disdel.TaskTrain], t.maximum().Seconds()
	if maximum <= 0 || k.fullTime.likely <= legShare*maximum {
		return
	}
	compute, usual := k.each*float64(k.units), k.typical()
	// At least a tenth of a leg trains, even if the start-up seems to leave no time.
	first, other := max(legShare*maximum-usual.cold, maximum/10), max(legShare*maximum-usual.warm, maximum/10)
	t.out.Legs = max(2, 1+int(math.Ceil((compute-first)/other)))
	t.out.Timeouts[disdel.TaskTrain] = within(t.maximum(), t.in.Plan.Platform)
	whose := "the platform's"
	if t.maximum() < t.in.Plan.Platform.MaxTimeout {
		whose = "resources.timeout's"
	}
	t.because("a round of worker 0 takes about %v, above %s %v: %d activations one after another, with a checkpoint "+
		"between",
		round(k.fullTime.likely), whose, round(maximum), t.out.Legs)
}

// within is a timeout within the platform's limits.
func within(timeout disdel.Millis, p disdel.PlatformLimits) disdel.Millis {
	return min(max(timeout, p.MinTimeout), p.MaxTimeout)
}

// millisOf bounds what no duration can hold, such as an infinite cost.
func millisOf(seconds float64) disdel.Millis {
	const maximum = float64(math.MaxInt64 / 4)
	if math.IsNaN(seconds) {
		return 0
	}
	return disdel.Millis(max(0, min(maximum, seconds*float64(time.Second))))
}

// round is a duration as people read it: "12m0s", "850ms".
func round(seconds float64) time.Duration {
	d := time.Duration(millisOf(seconds))
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond)
	case d < time.Minute:
		return d.Round(100 * time.Millisecond)
	default:
		return d.Round(time.Second)
	}
}
