package advice

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// timeSet is the time that an advice sets a field to; 0: it does not.
func timeSet(t *testing.T, a Advice, field string) disdel.Millis {
	t.Helper()
	for _, s := range a.Sets {
		if text, ok := strings.CutPrefix(s, field+"="); ok {
			d, err := time.ParseDuration(text)
			if err != nil {
				t.Fatal(err)
			}
			return disdel.Millis(d)
		}
	}
	return 0
}

// pastDeadline is a drawn job that its deadline ended, and how long all of it takes.
func pastDeadline(random *rand.Rand) (*disdel.Record, disdel.Millis) {
	begin := time.Unix(1_700_000_000, 0)
	r := &disdel.Record{Status: disdel.StatusFailed, Created: begin, Failure: &disdel.Error{Kind: disdel.Timeout}}
	start := disdel.Millis(random.Float64() * float64(5*time.Second))
	each, noise := float64(time.Second)*(0.5+20*random.Float64()), random.Float64()/3
	r.Plan.Rounds = 5 + random.IntN(60)
	r.Plan.Forecast = &disdel.Forecast{Duration: disdel.Interval[disdel.Millis]{High: disdel.Millis(34 * time.Minute)}}
	r.Plan.Workers = 1 + random.IntN(6)
	r.Plan.Parallel = 1 + random.IntN(r.Plan.Workers)
	stop, now := random.IntN(r.Plan.Rounds-1), start
	for n := range r.Plan.Rounds {
		took := disdel.Millis(each * (1 + noise*(2*random.Float64()-1)))
		if n == 0 {
			a := disdel.Activation{Outcome: disdel.OutcomeSuccess, Duration: took * 9 / 10 / disdel.Millis(r.Plan.Waves())}
			a.Task, a.Start = disdel.TaskTrain, begin.Add(time.Duration(start))
			r.Activations = append(r.Activations, a)
		}
		now += took
		if n < stop {
			r.Rounds = append(r.Rounds, disdel.Round{Round: n, Duration: took})
		}
		if n == stop {
			r.Phases.Total, r.Job.Reliability.Deadline = now, disdel.Duration(now)
		}
	}
	return r, now
}

// The deadline that is advised is enough, and at most two and a half times what the job needs, whatever was expected
// before it began.
func TestAdvisedDeadlineIsEnoughAndNotFarMore(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 3))
	for i := range 3000 {
		r, need := pastDeadline(random)
		a := For(r)
		got := timeSet(t, a, "reliability.deadline")
		if got < need || got > need*5/2+disdel.Millis(time.Second) {
			t.Fatalf("%d: %v after %d of %d rounds (%s); the job needs %v", i, got, len(r.Rounds), r.Plan.Rounds, a.Why, need)
		}
	}
}

// For an action without progress the advice is the platform's maximum, since a timeout is only a bound. At the maximum
// it advises no time.
func TestTimeoutWithoutProgressIsNotGuessed(t *testing.T) {
	for limit, want := range map[disdel.Millis]string{
		disdel.Millis(time.Second): "resources.timeout=5m0s", disdel.Millis(5 * time.Minute): "",
	} {
		r := &disdel.Record{Status: disdel.StatusFailed, Failure: &disdel.Error{Kind: disdel.Timeout, Activation: "a"}}
		r.Plan.Platform.MaxTimeout = disdel.Millis(5 * time.Minute)
		a := disdel.Activation{ID: "a", Outcome: disdel.OutcomeTimeout}
		a.Task, a.Limits.Timeout = disdel.TaskTrain, limit
		r.Activations = []disdel.Activation{a}
		if got := For(r); strings.Join(got.Sets, " ") != want || got.Pass != (want != "") {
			t.Errorf("%v: %v (%s), passes %v", limit, got.Sets, got.Why, got.Pass)
		}
	}
}

// If nothing of the job was measured, the advised deadline is a bound. The advice calls it one.
func TestABoundIsCalledOne(t *testing.T) {
	r := &disdel.Record{Status: disdel.StatusFailed, Failure: &disdel.Error{Kind: disdel.Timeout}}
	r.Job.Reliability.Deadline = disdel.Duration(time.Second)
	r.Plan.Workers, r.Plan.Parallel, r.Plan.Rounds = 5, 2, 10
	r.Plan.Actions = []disdel.ActionPlan{{Task: disdel.TaskTrain}}
	r.Plan.Actions[0].Limits.Timeout = disdel.Millis(time.Minute)
	a := For(r)
	if got := timeSet(t, a, "reliability.deadline"); got != disdel.Millis(30*time.Minute) {
		t.Errorf("%v: %s", got, a.Why)
	}
	if !strings.Contains(a.Why, "far more than it needs") {
		t.Error(a.Why)
	}
}

// A longer timeout is of no use if the deadline comes first. So the advised deadline leaves room for the new timeout,
// and for all rounds at the measured pace.
func TestTheDeadlineLeavesRoomForTheTimeout(t *testing.T) {
	const s = disdel.Millis(time.Second)
	for name, c := range map[string]struct {
		beats []disdel.Beat
		least disdel.Millis
	}{
		"nothing seen": {nil, 305 * s},
		"a pace": {
			[]disdel.Beat{{At: s, Epoch: 1, Batch: 10, Batches: 100}, {At: 2 * s, Epoch: 1, Batch: 20, Batches: 100}},
			200 * s,
		},
	} {
		r := &disdel.Record{Status: disdel.StatusFailed, Failure: &disdel.Error{Kind: disdel.Timeout, Activation: "a"}}
		r.Plan.Platform.MaxTimeout, r.Plan.Rounds, r.Job.Training.Epochs = 300*s, 20, 20
		r.Job.Reliability.Deadline = disdel.Duration(5 * s)
		a := disdel.Activation{ID: "a", Outcome: disdel.OutcomeTimeout, Beats: c.beats, Duration: 2 * s}
		a.Task, a.Limits.Timeout, a.TrainRange = disdel.TaskTrain, 2*s, &disdel.TrainRange{Epochs: 1}
		r.Activations = []disdel.Activation{a}
		got := For(r)
		if deadline := timeSet(t, got, "reliability.deadline"); deadline < c.least {
			t.Errorf("%s: %v: %v", name, got.Sets, got.Why)
		}
	}
}
