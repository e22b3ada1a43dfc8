package estimator

import (
	"fmt"
	"math"
	"time"

	"github.com/disdel/disdel"
)

// TimeoutFactor is the least growth of a timeout that was too short.
const TimeoutFactor = 2.0

// The Timeout Manager's margins.
const (
	leastFactor = 1.5             // timeout over the likely duration: neighbours on shared machines come and go
	overLongest = 1.25            // and over the longest that was measured
	noise       = 3 * time.Second // and above it: what a cold start or a busy machine takes whatever the work

	patientFactor = 3.0              // the same of tasks that cannot pause: a neighbour can take two thirds of a processor
	leastPatience = 10 * time.Second // and so long a cold start and a slow store have been seen to take
	// of the platform's maximum that a leg may train for; the rest is for storing its state
	legShare = 0.9
)

// TimingInput is what timeouts and forecasts are made of.
type TimingInput struct {
	Past []disdel.Record // jobs of any kind, newest first
	Plan disdel.Plan     // workers, rounds, limits and levels are set; timeouts are not
	Job  disdel.Job
	Data disdel.DataInfo
	Work int64 // multiply-accumulates of one sample forwards; 0: unknown
	Rate *Rate // of a probe; nil: none was made

	slow slowdowns // by other programs; nil: what the load was when Plan was made
}

// Rate is a measured speed of training.
type Rate struct {
	RowsPerSecond float64       `json:"rowsPerSecond"` // of one worker while it computes
	StartUp       disdel.Millis `json:"startUpMs"`     // init, and reading the shard and the reference
	Peak          disdel.Bytes  `json:"peakBytes"`
}

// Timing is what the timeout manager says of a plan.
type Timing struct {
	Timeouts map[disdel.Task]disdel.Millis
	Source   disdel.Source
	// activations that a worker's round takes, one after another, because the platform's maximum is shorter
	Legs     int
	Forecast *disdel.Forecast // nil where nothing is known
	Reasons  []string         // the arithmetic, a sentence each
}

// known is what the past says of one task of the plan.
type known struct {
	group   timeGroup
	samples []timeSample
	cold    float64 // s: the largest start-up, since every activation may be a cold one
	warm    float64 // s: the mean start-up of the others
	whole   spread  // of an activation of the plan's size that starts cold
	each    float64 // s for a row or an update, geometric mean
	units   int
}

// TimingOf is the Timeout Manager of DiSDeL III-B.2b and the forecast of the whole job. Sources, in this order: jobs
// with the same network, data, batch, workers, threads and memory; the nearest others (same network and data scaled by
// rows, same network); a probe's rate; other networks scaled by multiply-accumulates; the cost that the user expects,
// e_time = (e_cost / c_d) / (mu m_e) with the cost in GB-s and so mu = 1, the limit for m_e since that is what is held,
// and all of it divided by the rounds, each of which is an activation of its own; the platform's maximum. A timeout is
// a bound that one activation in a hundred would pass, by Student's t over the logarithms of the measured durations,
// and never tight. A job file's own timeout takes the place of all that. It is pure.
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

// most is the longest that an activation of this job may run.
func (t *timer) most() disdel.Millis {
	m := t.in.Plan.Platform.MaxTimeout
	if own := disdel.Millis(t.in.Job.Resources.Timeout); own > 0 && own < m {
		m = own
	}
	return m
}

// know looks for the nearest group that has measured the task.
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
	for _, stage := range r.ByStage() {
		if g.fits(in, stage) {
			out.samples, out.jobs = append(out.samples, samplesOf(in, stage, task)...), 1
		}
	}
	return out
}

// probed is a probe's rate as a sample. It says nothing of the other tasks.
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
	whole, each := make([]measured, len(samples)), make([]measured, len(samples))
	for i, s := range samples {
		whole[i] = measured{s.job, k.cold + float64(n)*s.each}
		each[i] = measured{s.job, float64(n) * s.each}
	}
	k.whole = spreadOf(whole, g.prior)
	k.each = spreadOf(each, g.prior).likely / float64(n)
	return k
}

// bound is the timeout that the past makes of a task, s. One that cannot pause, and go on in another activation, has
// its work to do anew after a timeout: it gets more, which costs nothing while all goes well.
func (k known) bound(pauses bool) float64 {
	s := k.whole
	d := max(s.likely*max(leastFactor, s.factor(s.sigma, oneInHundred)), s.likely+noise.Seconds())
	if k.group.source == disdel.SourceHistory {
		d = max(d, s.longest*overLongest)
	}
	if !pauses {
		d = max(d, s.likely*patientFactor, s.likely+leastPatience.Seconds())
	}
	return d
}

// leastByCost is the time to start a container and train a leg if neither was measured. No timeout by cost is shorter,
// since it would end actions for no use: the budget itself bounds how long each action runs.
const leastByCost = 10 * time.Second

// timeouts sets every task's timeout and the source of the train action's.
func (t *timer) timeouts() {
	p := t.in.Plan.Platform
	rest, source := p.MaxTimeout, disdel.SourcePlatform
	train, measured := t.all[disdel.TaskTrain]
	if cost, _ := t.in.Job.Budget(); !measured && cost > 0 && t.in.Plan.Workers > 0 {
		held := float64(memoryOf(t.in.Plan)) / float64(disdel.GB)
		rounds := max(1, t.in.Plan.Rounds)
		by := max(cost/float64(rounds)/float64(t.in.Plan.Workers)/held, leastByCost.Seconds())
		rest, source = clamp(by, p), disdel.SourceCost
		t.because("timeout: (%.4g GB-s / %s / %s) / %.3g GB is %v (DiSDeL's e_time, of one round), "+
			"no less than %v for a start and a leg, within %v and %v of the platform",
			cost, plural(rounds, "round"), plural(t.in.Plan.Workers, "worker"), held, round(rest.Seconds()), leastByCost,
			p.MinTimeout, p.MaxTimeout)
	}
	if measured {
		source = train.group.source
		t.because("timeout: %d rows in about %v after a start of %v (%s), and at most %v in 99 of 100 cases",
			train.units, round(train.each*float64(train.units)), round(train.cold), train.basis(), round(train.bound(true)))
	}
	for _, a := range t.in.Plan.Actions {
		t.out.Timeouts[a.Task] = rest
		if k, ok := t.all[a.Task]; ok {
			t.out.Timeouts[a.Task] = clamp(math.Ceil(k.bound(a.Task == disdel.TaskTrain)), p)
		}
		if own := t.in.Job.Resources.Timeout; own > 0 {
			t.out.Timeouts[a.Task], source = clamp(time.Duration(own).Seconds(), p), disdel.SourceJobFile
		}
	}
	t.out.Source = source
}

// basis says what a figure rests on: "history, 12 activations of 3 jobs".
func (k known) basis() string {
	if k.group.fits == nil {
		return "a probe"
	}
	return fmt.Sprintf("%s, %s of %s", k.group.source, plural(k.whole.samples, "activation"), plural(k.whole.count, "job"))
}

// legs divides rounds that cannot end within the longest timeout there is.
func (t *timer) legs() {
	k, most := t.all[disdel.TaskTrain], t.most().Seconds()
	if most <= 0 || k.whole.likely <= legShare*most {
		return
	}
	compute, usual := k.each*float64(k.units), k.typical()
	// A start-up that leaves no time to train is no forecast to build on: at least a tenth of a leg trains.
	first, other := max(legShare*most-usual.cold, most/10), max(legShare*most-usual.warm, most/10)
	t.out.Legs = max(2, 1+int(math.Ceil((compute-first)/other)))
	t.out.Timeouts[disdel.TaskTrain] = t.most()
	whose := "the platform's"
	if t.most() < t.in.Plan.Platform.MaxTimeout {
		whose = "resources.timeout's"
	}
	t.because("a round of worker 0 takes about %v, above %s %v: %d activations one after another, with a checkpoint "+
		"between",
		round(k.whole.likely), whose, round(most), t.out.Legs)
}

func clamp(seconds float64, p disdel.PlatformLimits) disdel.Millis {
	return min(max(millisOf(seconds), p.MinTimeout), p.MaxTimeout)
}

// millisOf keeps what no duration holds, such as a cost without bounds, at the largest there is.
func millisOf(seconds float64) disdel.Millis {
	const most = float64(math.MaxInt64 / 4)
	if math.IsNaN(seconds) {
		return 0
	}
	return disdel.Millis(max(0, min(most, seconds*float64(time.Second))))
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

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
