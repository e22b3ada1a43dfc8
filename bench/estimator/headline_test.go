package main

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

// planRig is a rig that plans on the headline's platform and runs nothing.
func planRig(t *testing.T) *rig {
	t.Helper()
	cfg := platform.DefaultConfig()
	scaled(&cfg)
	l := cfg.Limits
	r := &rig{home: t.TempDir(), limits: disdel.PlatformLimits{
		MinMemory: l.Memory.Min, MaxMemory: l.Memory.Max, Pool: cfg.PoolMemory,
		MinTimeout: disdel.Millis(l.Timeout.Min), MaxTimeout: disdel.Millis(l.Timeout.Max),
	}}
	var err error
	if r.data, err = dataset.OpenStore(context.Background(), "file://"+filepath.ToSlash(r.home)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.data.Close() })
	return r
}

// The headline is of twenty different jobs, each of which disdel plans within its platform, and most of which
// OpenWhisk's default memory suffices for.
func TestTwentyJobsPlan(t *testing.T) {
	r, names, large := planRig(t), map[string]bool{}, 0
	for _, job := range twenty() {
		names[job.String()] = true
		_, plan, err := r.plan(context.Background(), job, estimator.Planned(backends.Standard(nil)))
		if err != nil {
			t.Fatal(err)
		}
		train, _ := plan.Action(disdel.TaskTrain)
		if train.Estimate.Likely > standard.Memory {
			large++
		}
		for _, a := range atLimits(plan, standard).Actions {
			if a.Limits != standard || a.Estimate.Total != 0 {
				t.Errorf("%v: %s at %+v knows %v", job, a.Task, a.Limits, a.Estimate.Total)
			}
		}
		if again, _ := plan.Action(disdel.TaskTrain); again.Limits != train.Limits || again.Limits == standard {
			t.Errorf("%v: the plan itself was changed to %+v", job, again.Limits)
		}
	}
	if len(names) != 20 || large != 5 {
		t.Errorf("%d jobs, %d above the default memory", len(names), large)
	}
}

func TestTimeoutSuitePlans(t *testing.T) {
	r := planRig(t)
	for _, job := range timeoutSuite() {
		job.rows = 2 * job.batch // limits go by it, faults do not
		if _, _, err := r.plan(context.Background(), job, estimator.Planned(backends.Standard(nil))); err != nil {
			t.Error(err)
		}
	}
}

// DiSDeL Fig. 2: 240 s more with every retry, here from OpenWhisk's 60 s on, all divided by the scale.
func TestRetriesAreThePapersScaled(t *testing.T) {
	for i, want := range []time.Duration{60, 300, 540, 780} {
		l := retries.Attempt(i)
		if l.Timeout != disdel.Millis(want*time.Second/scale) || l.Memory != disdel.Bytes(i+1)*256*disdel.MB {
			t.Errorf("attempt %d: %+v", i, l)
		}
	}
	if l := retries.Attempt(100); l != retries.Most || retries.Attempt(101) != l {
		t.Errorf("no end of retries: %+v", l)
	}
}

// A plain job's first failure is its end: retries of none must not read as retries that nobody chose.
func TestPlainJobsAreNotTriedAgain(t *testing.T) {
	r := planRig(t)
	job, plan, err := r.plan(context.Background(), twenty()[0], estimator.Planned(backends.Standard(nil)))
	if err != nil {
		t.Fatal(err)
	}
	plain := withoutRemedies(job.Job)
	for _, o := range []disdel.Outcome{disdel.OutcomeOutOfMemory, disdel.OutcomeTimeout, disdel.OutcomeDeveloperError} {
		a := disdel.Activation{Outcome: o, Failure: &disdel.Error{Kind: disdel.Crashed}}
		a.Task, a.Limits = disdel.TaskTrain, standard
		if d := scheduler.FindRemedy(scheduler.RemedyInput{Activation: a, Job: plain, Plan: plan}); d.Retry {
			t.Errorf("%v is tried again: %s", o, d.Why)
		}
		if d := scheduler.FindRemedy(scheduler.RemedyInput{Activation: a, Job: job.Job, Plan: plan}); !d.Retry {
			t.Errorf("disdel's own job is not tried again after %v: %s", o, d.Why)
		}
	}
}

// An action that would have been killed is not saved by the state that it stored.
func TestPlainWaysHaveNoLegs(t *testing.T) {
	for was, want := range map[disdel.Outcome]disdel.Outcome{
		disdel.OutcomePaused: disdel.OutcomeTimeout, disdel.OutcomeSuccess: disdel.OutcomeSuccess,
		disdel.OutcomeOutOfMemory: disdel.OutcomeOutOfMemory,
	} {
		got := cutOff(disdel.Activation{Outcome: was})
		if got.Outcome != want || (want == disdel.OutcomeTimeout) != (got.Failure != nil) {
			t.Errorf("%v became %v, %v", was, got.Outcome, got.Failure)
		}
	}
}

func ran(status disdel.Status, seconds float64, all ...disdel.Activation) disdel.Record {
	begin := time.Unix(0, 0)
	return disdel.Record{Status: status, Created: begin, Ended: begin.Add(time.Duration(seconds * 1e9)), Activations: all}
}

func took(o disdel.Outcome, memory disdel.Bytes, seconds int) disdel.Activation {
	a := disdel.Activation{Outcome: o, Duration: disdel.Millis(time.Duration(seconds) * time.Second)}
	a.Task, a.Limits = disdel.TaskTrain, disdel.Limits{Memory: memory, Timeout: disdel.Millis(10 * time.Second)}
	return a
}

// A failed run is lost with what its good activations held; of a run that passed, only what failed in it.
func TestTallies(t *testing.T) {
	const gb = disdel.GB
	failed := ran(disdel.StatusFailed, 4, took(disdel.OutcomeTimeout, gb, 3), took(disdel.OutcomeSuccess, gb, 2))
	passed := ran(disdel.StatusSucceeded, 6, took(disdel.OutcomeOutOfMemory, 2*gb, 1),
		took(disdel.OutcomeSuccess, 4*gb, 2), took(disdel.OutcomePaused, gb, 1))
	for name, c := range map[string]struct {
		runs []disdel.Record
		want tally
	}{
		"failed":   {[]disdel.Record{failed}, tally{attempts: 1, activations: 1, wall: 4, gbs: 5, lost: 5}},
		"remedied": {[]disdel.Record{passed}, tally{passed: true, attempts: 1, activations: 1, wall: 6, gbs: 11, lost: 2}},
		"restarted": {
			[]disdel.Record{failed, failed, passed},
			tally{passed: true, attempts: 3, activations: 3, wall: 14, gbs: 21, lost: 12},
		},
	} {
		got := tallyOf(c.runs...)
		if got.passed != c.want.passed || got.attempts != c.want.attempts || got.activations != c.want.activations ||
			!near(got.wall, c.want.wall) || !near(got.gbs, c.want.gbs) || !near(got.lost, c.want.lost) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestSumsAreOverTheChosenJobs(t *testing.T) {
	w := way{jobs: []tally{{passed: true, wall: 1, gbs: 2}, {attempts: 3, wall: 10, gbs: 20, lost: 20}}}
	if got := w.sum(everyJob); got.jobs != 2 || got.failed != 1 || got.attempts != 3 || got.wall != 11 || got.gbs != 22 ||
		got.lost != 20 {
		t.Errorf("%+v", got)
	}
	if got := w.sum(func(i int) bool { return w.jobs[i].passed }); got.jobs != 1 || got.failed != 0 || got.gbs != 2 {
		t.Errorf("%+v", got)
	}
}

// Timeouts are compared with train activations that ended well and took long enough. A failed job, or one without a
// forecast, counts as outside of its interval.
func TestTimeoutsBesideDurations(t *testing.T) {
	short, long := took(disdel.OutcomeSuccess, disdel.GB, 1), took(disdel.OutcomeSuccess, disdel.GB, 4)
	other := long
	other.Task = disdel.TaskEvaluate
	r := ran(disdel.StatusSucceeded, 10, short, long, other, took(disdel.OutcomeTimeout, disdel.GB, 9))
	if got := overActual([]disdel.Record{r}, longEnough); !slices.Equal(got, []float64{2.5}) {
		t.Error(got)
	}
	if n := ended([]disdel.Record{r}, disdel.OutcomeTimeout); n != 1 {
		t.Error(n)
	}
	said := func(low, likely, high float64) disdel.Record {
		r, f := r, disdel.Forecast{}
		f.Duration.Low, f.Duration.Likely, f.Duration.High = disdel.Millis(low*1e9), disdel.Millis(likely*1e9),
			disdel.Millis(high*1e9)
		r.Plan.Forecast = &f
		return r
	}
	lost := said(1, 2, 3)
	lost.Status = disdel.StatusFailed
	inside, errors := forecasts([]disdel.Record{said(8, 9, 12), said(11, 12, 13), lost, r})
	if inside != 0.25 || len(errors) != 4 || !near(errors[0], 10) || !near(errors[1], 20) || errors[2] != 100 {
		t.Errorf("%v inside, errors %v", inside, errors)
	}
	if got := widths([]disdel.Record{said(8, 9, 12), said(0, 9, 12), r}); got[0] != 1.5 || !math.IsInf(got[1], 1) ||
		!math.IsInf(got[2], 1) {
		t.Errorf("widths %v", got)
	}
}

// Half of the drawn jobs run beside a load, half of the loads change in mid-job, and one that was ended stays so.
func TestForecastSuiteDrawsLoads(t *testing.T) {
	first, later := forecastSuite(31)
	count := map[loadCourse]int{}
	for _, job := range later {
		if job.threads > 0 {
			count[job.course]++
		}
	}
	if len(first) != forecastKinds || len(later) != forecastJobs || count[loadThroughout] != forecastJobs/4+1 ||
		count[loadBegins]+count[loadEnds] != forecastJobs/4-1 {
		t.Errorf("%d first, %d later, loads %v", len(first), len(later), count)
	}
	b := &burner{threads: 1}
	b.stop()
	if err := b.start(); err != nil || b.program != nil {
		t.Errorf("a load that was ended started again: %v", err)
	}
}
