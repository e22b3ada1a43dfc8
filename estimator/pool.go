package estimator

import (
	"math"
	"slices"

	"github.com/disdel/disdel"
)

// pool is the earlier jobs that a forecast uses: jobs of the same network and data in any shape, so that forecasts of
// several shapes come from one model. If there are none, it is jobs of the same network. Without any, a forecast uses
// the same sources as the timeouts.
type pool struct {
	jobs  []*disdel.Record // newest first
	group timeGroup        // the nearest that any of them is in

	load loadForecast // of the job to come

	between, outside float64
	gapsKnown        bool
	fallback         map[disdel.Task]known
}

// mostJobs of a pool are looked at: older ones tell less of the machine as it is now.
const mostJobs = 24

func (t *timer) pool() *pool {
	w := &pool{group: t.all[disdel.TaskTrain].group, fallback: t.all, load: t.load}
	fits := func(r *disdel.Record) bool { return sameNetwork(t.in, r) && sameData(t.in, r) }
	if !slices.ContainsFunc(t.in.Past, func(r disdel.Record) bool { return t.comparable(&r) && fits(&r) }) {
		fits = func(r *disdel.Record) bool { return sameNetwork(t.in, r) }
	}
	for i := range t.in.Past {
		if r := &t.in.Past[i]; len(w.jobs) < mostJobs && t.comparable(r) && fits(r) {
			w.jobs = append(w.jobs, r)
		}
	}
	return w
}

func (t *timer) comparable(r *disdel.Record) bool {
	return r.Job.Training.Backend == t.in.Job.Training.Backend
}

// known is what the pool says of every task of a plan: medians for start-ups, since single ones wait for whatever else
// the machine does, and geometric means for what grows with the rows.
func (w *pool) known(in TimingInput) map[disdel.Task]known {
	out := map[disdel.Task]known{}
	for _, a := range in.Plan.Actions {
		var samples []timeSample
		for _, r := range w.jobs {
			for _, stage := range r.ByStage() {
				samples = append(samples, samplesOf(in, stage, a.Task)...)
			}
		}
		if k, ok := w.fallback[a.Task]; len(samples) > 0 {
			out[a.Task] = typical(samples)
		} else if ok {
			out[a.Task] = k.typical()
		}
	}
	return out
}

// typical is the same without the largest start-up, which a timeout has to be above and most activations are below.
func (k known) typical() known {
	out := typical(k.samples)
	out.each = k.each
	return out
}

func typical(samples []timeSample) known {
	var cold, warm, all []float64
	var logs float64
	for _, s := range samples {
		all = append(all, s.fixed)
		if s.cold {
			cold = append(cold, s.fixed)
		} else {
			warm = append(warm, s.fixed)
		}
		logs += math.Log(max(s.each, leastEach))
	}
	k := known{each: math.Exp(logs / float64(len(samples)))}
	if k.each <= leastEach {
		k.each = 0
	}
	if k.cold = middle(cold); len(cold) == 0 {
		k.cold = middle(all)
	}
	if k.warm = middle(warm); len(warm) == 0 {
		k.warm = k.cold * warmShare
	}
	return k
}

// warmShare of a cold start is what a warm one takes where none was measured: the process, the shard and the network
// are there, and only the reference and the answer are on their way.
const warmShare = 0.25

// leastEach is what a row takes at least, s, to have a logarithm.
const leastEach = 1e-12
