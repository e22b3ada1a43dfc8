package scheduler

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// drawnTimeout is an activation that its timeout ended, and how long its work takes. Its batches take times that differ
// by up to a half.
func drawnTimeout(random *rand.Rand) (disdel.Activation, disdel.Millis) {
	var a disdel.Activation
	a.Task, a.Outcome, a.TrainRange = disdel.TaskTrain, disdel.OutcomeTimeout, &disdel.TrainRange{Epochs: 1}
	if random.IntN(3) == 0 {
		a.Task, a.TrainRange = disdel.TaskEvaluate, nil
	}
	all, noise := 30+random.IntN(2000), random.Float64()/2
	each := float64(time.Millisecond) * (20 + 500*random.Float64())
	a.WaitTime = disdel.Millis(random.Float64() * float64(20*time.Second))
	now := disdel.Millis(random.Float64() * 0.5 * each * float64(all)) // the start
	stop, every := 8+random.IntN(all-8), 1+random.IntN(4)
	for i := 1; i <= all; i++ {
		now += disdel.Millis(each * (1 + noise*(2*random.Float64()-1)))
		if i > stop {
			continue
		}
		if i == 1 || i%every == 0 {
			a.Beats = append(a.Beats, disdel.Beat{At: now + a.WaitTime, Epoch: 1, Batch: i, Batches: all})
		}
		a.Limits.Timeout = now
	}
	a.Duration = a.Limits.Timeout
	return a, now
}

// The limit that is advised after a timeout is enough, and at most two and a half times what the work needs.
func TestEnoughTimeIsEnoughAndNotFarMore(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		a, need := drawnTimeout(random)
		got, why, told := EnoughTime(&disdel.Record{}, a)
		if most := max(LeastTime, need*5/2); !told || got < need || got > most {
			t.Fatalf("%d: %v (%s), told %v; the work needs %v", i, got, why, told, need)
		}
	}
}

// Without progress, EnoughTime uses the time of the same work in other activations of the job. Without any, it returns
// false.
func TestEnoughTimeWithoutProgress(t *testing.T) {
	const s = disdel.Millis(time.Second)
	var a disdel.Activation
	a.Task, a.Member, a.Round, a.Outcome, a.Limits.Timeout = disdel.TaskTrain, 1, 1, disdel.OutcomeTimeout, 20*s
	other := func(task disdel.Task, round int, leg int, o disdel.Outcome, took disdel.Millis) disdel.Activation {
		b := disdel.Activation{Outcome: o, Duration: took}
		b.Task, b.Round, b.Leg = task, round, leg
		return b
	}
	for name, c := range map[string]struct {
		others []disdel.Activation
		want   disdel.Millis
	}{
		"nothing":          {nil, 0},
		"an aggregation":   {[]disdel.Activation{other(disdel.TaskAggregate, 0, 0, disdel.OutcomeSuccess, 40*s)}, 0},
		"a failure":        {[]disdel.Activation{other(disdel.TaskTrain, 0, 0, disdel.OutcomeTimeout, 20*s)}, 0},
		"the round before": {[]disdel.Activation{other(disdel.TaskTrain, 0, 0, disdel.OutcomeSuccess, 40*s)}, 60 * s},
		"a faster one":     {[]disdel.Activation{other(disdel.TaskTrain, 0, 0, disdel.OutcomeSuccess, s)}, 30 * s},
		"legs of one round": {[]disdel.Activation{
			other(disdel.TaskTrain, 0, 0, disdel.OutcomePaused, 30*s),
			other(disdel.TaskTrain, 0, 1, disdel.OutcomeSuccess, 10*s),
		}, 60 * s},
	} {
		got, why, told := EnoughTime(&disdel.Record{Activations: c.others}, a)
		if got != c.want || told != (c.want > 0) {
			t.Errorf("%s: %v (%s), %v; want %v", name, got, why, told, c.want)
		}
	}
}
