package estimator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// learner makes records of jobs whose held-out loss follows a law of the epochs, each of its own pace.
type learner struct {
	work workload
	law  LossCurve
	lot  *rand.Rand
	id   int
}

func (l *learner) run(epochs int) (r disdel.Record, pace float64) {
	w := l.work
	w.epoch = epochs
	l.id++
	r = w.run(l.id, func() float64 { return 1 })
	pace = math.Exp(0.15 * l.lot.NormFloat64())
	for i := range r.Rounds {
		loss := l.law.At(float64(i+1) * pace)
		accuracy := 1 - loss
		r.Rounds[i].Round, r.Rounds[i].Loss, r.Rounds[i].Accuracy = i, &loss, &accuracy
	}
	return r, pace
}

func (l *learner) input(g disdel.Goal, epochs int, past []disdel.Record) TimingInput {
	w := l.work
	w.epoch = epochs
	in := w.input(past...)
	in.Job.Training.Goal = &g
	return in
}

// What earlier jobs took to a goal, or would have by their curves, is what the next one is expected to take: nine times
// in ten it is within the interval.
func TestGoalsAreForecastByEarlierJobs(t *testing.T) {
	inside, all := 0, 0
	for seed := range uint64(60) {
		l := &learner{work: lenetWork, lot: rand.New(rand.NewPCG(seed, 3))}
		l.law = LossCurve{Floor: 0.05 + 0.1*l.lot.Float64(), Rate: 0.5 + l.lot.Float64(), Start: 1.2}
		goal := disdel.Goal{Loss: l.law.At(10 + 8*l.lot.Float64())}
		if l.lot.IntN(2) == 0 {
			goal = disdel.Goal{Accuracy: 1 - goal.Loss}
		}
		var past []disdel.Record
		for range 1 + l.lot.IntN(6) {
			r, _ := l.run([]int{9, 30}[l.lot.IntN(2)]) // ended before the goal, or after
			past = append([]disdel.Record{r}, past...)
		}
		in := l.input(goal, 40, past)
		f := TimingOf(in).Forecast.Goal
		if f == nil || f.MayNever || f.Jobs != len(past) || f.Reached != len(past) {
			t.Fatalf("seed %d: %+v of %d jobs", seed, f, len(past))
		}
		next, _ := l.run(60)
		took, reached, _ := epochsTo(goal, &next)
		if !reached {
			t.Fatalf("seed %d: the law does not come to its own value", seed)
		}
		all++
		inside += btoi(f.Epochs.Low <= took && took <= f.Epochs.High)
		whole := TimingOf(in).Forecast
		if share := f.Cost.Likely / whole.Cost.Likely; math.Abs(share-f.Epochs.Likely/40) > 0.01 {
			t.Errorf("seed %d: %.3g of the whole job's cost for %.3g of 40 epochs", seed, share, f.Epochs.Likely)
		}
	}
	t.Logf("%d of %d within the interval", inside, all)
	if inside < all*85/100 {
		t.Errorf("%d of %d within an interval that is meant for nine of ten", inside, all)
	}
}

// A goal below what the loss falls to is not expected, and nobody says when it comes.
func TestAGoalThatNothingCameTo(t *testing.T) {
	l := &learner{work: lenetWork, lot: rand.New(rand.NewPCG(1, 1)), law: LossCurve{Floor: 0.3, Rate: 1, Start: 1}}
	first, _ := l.run(20)
	short, _ := l.run(3)
	f := TimingOf(l.input(disdel.Goal{Loss: 0.2}, 10, []disdel.Record{first, short})).Forecast.Goal
	if f == nil || !f.MayNever || f.Epochs.Likely != 0 || f.Epochs.Low != 20 || f.Jobs != 1 || f.Reached != 0 ||
		!strings.Contains(f.String(), "loss 0.2 is not expected: 20 epochs were not enough") {
		t.Errorf("%+v", f)
	}
	for name, change := range map[string]func(*disdel.Record){
		"another optimiser": func(r *disdel.Record) { r.Job.Training.Optimizer.SGD = &disdel.SGD{LearningRate: 1} },
		"another batch":     func(r *disdel.Record) { r.Job.Training.BatchSize = 7 },
		"other data":        func(r *disdel.Record) { r.Data.Checksum = "other" },
		"never evaluated":   func(r *disdel.Record) { r.Rounds = nil },
		"given weights":     func(r *disdel.Record) { r.Job.Model.Init.Weights = "small:v1" },
	} {
		other, _ := l.run(20)
		change(&other)
		if f := TimingOf(l.input(disdel.Goal{Loss: 0.5}, 10, []disdel.Record{other})).Forecast; f != nil && f.Goal != nil {
			t.Errorf("%s says %+v of this job", name, f.Goal)
		}
	}
}

// A goal has to hold for three evaluations in a row: one that comes and goes does not count.
func TestOneGoodEvaluationIsNoGoal(t *testing.T) {
	l := &learner{work: lenetWork, lot: rand.New(rand.NewPCG(1, 1)), law: LossCurve{Floor: 0.1, Rate: 1, Start: 1}}
	r, _ := l.run(8)
	for i, accuracy := range []float64{0.9, 0.5, 0.9, 0.9, 0.5, 0.9, 0.9, 0.9} {
		loss := 1 - accuracy
		r.Rounds[i].Loss, r.Rounds[i].Accuracy = &loss, &accuracy
	}
	if at, ok, _ := epochsTo(disdel.Goal{Accuracy: 0.9}, &r); at != 8 || !ok {
		t.Errorf("after %g epochs, %v; want 8", at, ok)
	}
}

// A running job goes by its own evaluations from the fourth on, and before that by its plan.
func TestARunningJobForecastsItsGoal(t *testing.T) {
	l := &learner{work: lenetWork, lot: rand.New(rand.NewPCG(1, 1)), law: LossCurve{Floor: 0.1, Rate: 0.4, Start: 1}}
	r, pace := l.run(20)
	goal := disdel.Goal{Loss: l.law.At(15)}
	r.Job.Training.Goal = &goal
	r.Plan.Forecast = &disdel.Forecast{Goal: &disdel.GoalForecast{Goal: "as planned"}}
	left := &disdel.Forecast{
		Duration: disdel.Interval[disdel.Millis]{Likely: sec(100)}, Cost: disdel.Interval[float64]{Likely: 50},
	}
	whole := r.Rounds
	for n := range len(whole) {
		if r.Rounds = whole[:n]; n == 0 {
			if f := RemainingGoal(&r, left, nil); f != nil {
				t.Errorf("before the first round: %+v", f)
			}
			continue
		}
		f := RemainingGoal(&r, left, nil)
		switch {
		case n < leastPoints:
			if f == nil || f.Goal != "as planned" {
				t.Errorf("after %d rounds: %+v", n, f)
			}
		case n < 12:
			want := math.Ceil(15/pace) + disdel.GoalHeld - 1 // evaluations come after whole epochs
			share := (want - float64(n)) / float64(20-n)
			if f == nil || math.Abs(f.Epochs.Likely-want) > 0.5 || math.Abs(f.Cost.Likely/50-share) > 0.05 ||
				math.Abs(f.Duration.Likely.Seconds()/100-share) > 0.05 {
				t.Errorf("after %d rounds: %+v, want %.3g epochs", n, f, want)
			}
		}
	}
	r.Job.Training.Goal = nil
	if f := RemainingGoal(&r, left, nil); f != nil {
		t.Errorf("without a goal: %+v", f)
	}
}

func ExampleRemainingGoal() {
	var r disdel.Record
	r.Job.Training.Epochs, r.Job.Training.Goal = 20, &disdel.Goal{Loss: 0.3}
	r.Plan = disdel.Plan{Workers: 2, Rounds: 20, Epochs: 1}
	for i := range 6 {
		loss := 0.1 + 1/(1+0.5*float64(i+1))
		r.Rounds = append(r.Rounds, disdel.Round{Round: i, Loss: &loss, Accuracy: new(0.5)})
	}
	left := disdel.Forecast{Duration: disdel.Interval[disdel.Millis]{Likely: sec(70)}}
	fmt.Printf("%s after %.0f epochs\n", RemainingGoal(&r, &left, nil).Goal, RemainingGoal(&r, &left, nil).Epochs.Likely)
	// Output: loss 0.3 after 10 epochs
}

// Jobs with as many workers that average as often count for the goal. Others count only where there is none of these.
func TestAGoalGoesByJobsOfTheSameDistribution(t *testing.T) {
	l := &learner{
		work: lenetWork, lot: rand.New(rand.NewPCG(1, 1)), law: LossCurve{Floor: 0.1, Rate: 1, Start: 1},
	}
	goal := disdel.Goal{Loss: 0.5}
	same, _ := l.run(20)
	workers, _ := l.run(20)
	workers.Plan.Workers++
	sync, _ := l.run(20)
	sync.Job.Distribution.Sync = disdel.SyncEvery(3)
	all := evidenceFor(goal, l.input(goal, 20, []disdel.Record{workers, sync, same}))
	if all.tried != 1 || all.prior != goalPrior || len(all.epochs) != 1 || all.epochs[0].job != same.ID {
		t.Errorf("%+v, want only job %s", all, same.ID)
	}
	others := evidenceFor(goal, l.input(goal, 20, []disdel.Record{workers, sync}))
	if others.tried != 2 || others.prior != goalOther {
		t.Errorf("%+v, want both other jobs", others)
	}
}
