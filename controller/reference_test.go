package controller

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

// of draws one of some values.
func of[T any](draw *rand.Rand, values ...T) T { return values[draw.IntN(len(values))] }

// A resumed job takes the decisions about its next rounds again. A decision about a round holds if it is the newest one
// about it and no later failure belongs to an earlier round. A failure's own decision holds for rounds after the
// checkpoint's.
func TestAResumeRepeatsTheDecisionsThatHold(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 20261129))
	for range 3000 {
		var r disdel.Record
		for n := range draw.IntN(7) {
			r.Decisions = append(r.Decisions, disdel.Decision{
				Round: draw.IntN(5), Why: fmt.Sprint(n),
				Boundary: of(draw, disdel.BoundaryEpoch, disdel.BoundaryFailure, disdel.BoundaryStep, disdel.BoundaryStart),
			})
		}
		from := draw.IntN(4)
		var want []disdel.Decision
		for round := from; round < 5; round++ {
			newest, found := disdel.Decision{}, false
			for _, d := range r.Decisions {
				fails := d.Boundary == disdel.BoundaryFailure
				switch {
				case d.Boundary == disdel.BoundaryStep:
				case fails && d.Round < round:
					found = false
				case d.Round == round && fails && round > from:
					newest, found = d, true
					newest.Boundary = disdel.BoundaryEpoch
				case d.Round == round && !fails:
					newest, found = d, true
				}
			}
			if found {
				want = append(want, newest)
			}
		}
		if diff := gocmp.Diff(want, ahead(r, from)); diff != "" {
			t.Fatalf("from round %d of %+v (-want +got):\n%s", from, r.Decisions, diff)
		}
	}
}

// A policy observes the sums of a round: the rows of all workers, the parts of the slowest worker's time, the slowest
// aggregation of each level, the longest cold start, the highest peak and the failures. An evaluation counts for
// nothing.
func TestAnObservationSumsItsRound(t *testing.T) {
	draw := rand.New(rand.NewPCG(2, 20261129))
	for range 500 {
		spec := runSpec(3, 4)
		spec.Plan.Actions[0].Limits.Memory = 7 * disdel.MB
		m := NewManager(spec)
		m.stats.now = 100
		m.stats.begin()
		m.budget.began, m.budget.spent = 2, of(draw, 1, 2, 5.0)
		want := disdel.Observation{
			Setting: m.setting(), Limit: 7 * disdel.MB, Loss: 0.5, Epoch: m.spec.Stage.EpochsAfter(0),
			Missing: 2, Left: 1,
		}
		if m.budget.spent > 2 {
			want.Cost = m.budget.spent - 2
		}
		type parts struct{ fetch, compute, push, wait, exchange disdel.Millis }
		var workers [3]parts
		var levels [2]disdel.Millis
		for range draw.IntN(9) {
			some := func() disdel.Millis { return disdel.Millis(draw.IntN(3)) }
			a := disdel.Activation{
				WaitTime: some(), Duration: some(), Cold: draw.IntN(3) == 0, InitTime: some(), Peak: disdel.Bytes(draw.IntN(5)),
				Phases: map[string]disdel.Millis{
					"load": some(), "fetch": some(), "compute": some(), "push": some(), "exchange": some(), "other": 9,
				},
			}
			a.Task = of(draw, disdel.TaskTrain, disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate)
			a.Member, a.Level = draw.IntN(3), draw.IntN(2)
			m.stats.ended(a)
			if a.Task == disdel.TaskEvaluate {
				continue
			}
			if want.Peak = max(want.Peak, a.Peak); a.Cold {
				want.Cold = max(want.Cold, a.InitTime, 1)
			}
			if a.Task == disdel.TaskAggregate {
				levels[a.Level] = max(levels[a.Level], a.Duration)
				continue
			}
			w := &workers[a.Member]
			w.fetch += a.Phases["load"] + a.Phases["fetch"]
			w.compute, w.push = w.compute+a.Phases["compute"], w.push+a.Phases["push"]
			w.exchange, w.wait = w.exchange+a.Phases["exchange"], w.wait+a.WaitTime
			result := disdel.TrainResult{Rows: of(draw, 0, 10), Paused: draw.IntN(4) == 0, Samples: 6, Epochs: draw.IntN(3)}
			m.stats.trained(a.Member, result)
			switch {
			case result.Rows > 0:
				want.Rows += result.Rows
			case !result.Paused:
				want.Rows += 6 * max(1, result.Epochs)
			}
		}
		m.stats.now, m.stats.failed = 130, 4
		m.stats.done()
		want.Duration, want.Retried, want.Reduce = 30, 4, levels[0]+levels[1]
		time := func(w parts) disdel.Millis { return w.fetch + w.compute + w.push + w.wait }
		slowest := workers[0]
		for _, w := range workers[1:] {
			if time(w) >= time(slowest) {
				slowest = w
			}
		}
		want.Fetch, want.Compute, want.Push = slowest.fetch, slowest.compute, slowest.push
		want.Wait, want.Exchange = slowest.wait, slowest.exchange
		got := m.observed(disdel.Round{TrainLoss: 0.5, Missing: []int{1, 2}, Left: []int{0}})
		if diff := gocmp.Diff(want, *got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// A job that trained all its epochs says how near it came to its goal. Enough evaluations in a row at the goal or
// better reach it. Rounds without an evaluation neither count nor interrupt.
func TestAMissedGoalSaysHowNearItCame(t *testing.T) {
	const none = -1
	for _, c := range []struct {
		accuracies []float64
		want       string
	}{
		{[]float64{0.9, 0.9, 0.9}, ""},
		{[]float64{0.1, 0.9, none, 0.95, 0.9}, ""},
		{[]float64{0.9, 0.9}, "did not hold for 3 evaluations in a row; the best was accuracy 0.9000 in round 1"},
		{
			[]float64{0.9, 0.92, 0.8999, 0.92},
			"did not hold for 3 evaluations in a row; the best was accuracy 0.9200 in round 2",
		},
		{[]float64{0.9, 0.9, 0.9, 0.8}, "did not hold for 3 evaluations in a row; the best was accuracy 0.9000 in round 1"},
		{[]float64{0.7, 0.8999, none, 0.8999}, "not reached: the best evaluation was accuracy 0.8999 in round 2"},
		{[]float64{none, none}, "not reached: no round was evaluated"},
		{nil, "not reached: no round was evaluated"},
	} {
		r := disdel.Record{}
		r.Job.Training.Goal = &disdel.Goal{Accuracy: 0.9}
		for i, a := range c.accuracies {
			round := disdel.Round{Round: i}
			if a != none {
				round.Accuracy, round.Loss = &a, new(1.0)
			}
			r.Rounds = append(r.Rounds, round)
		}
		got := missedGoal(&r)
		if !strings.HasSuffix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%v: %q, want %q", c.accuracies, got, c.want)
		}
		learned, warnings := verdict(&r)
		if slices.Contains(warnings, got) != (got != "") {
			t.Errorf("%v: the verdict %v says %q", c.accuracies, learned, warnings)
		}
	}
}

// A loss is worse than a guess from more than 1.05 times the guess's loss on. Guesses have a loss of 1 for standardised
// numbers, of ln 2 for several labels, and of ln n for n classes.
func TestALossIsComparedWithThatOfAGuess(t *testing.T) {
	number, label := disdel.Target{Name: "price", Deviation: 1}, disdel.Target{Name: "funny", Deviation: 1, Label: true}
	for _, c := range []struct {
		data  disdel.DataInfo
		loss  string
		guess float64 // 0: none is known
	}{
		{disdel.DataInfo{Targets: []disdel.Target{number}}, disdel.LossMSE, 1},
		{disdel.DataInfo{Targets: []disdel.Target{number}}, disdel.LossMAE, 0},
		{disdel.DataInfo{Targets: []disdel.Target{label}}, disdel.LossBinaryCrossEntropy, math.Ln2},
		{disdel.DataInfo{Classes: 4}, disdel.LossCrossEntropy, math.Log(4)},
		{disdel.DataInfo{Classes: 2}, disdel.LossCrossEntropy, math.Ln2},
		{disdel.DataInfo{Classes: 1}, disdel.LossCrossEntropy, 0},
	} {
		for _, more := range []float64{0, 1e-9} {
			r := judged(c.data.Classes, 0, -1, 1.05*c.guess+more)
			r.Data, r.Job.Training.Loss = c.data, c.loss
			e := against(r)
			if worse := c.guess > 0 && more > 0; e.worse != worse || (e.loss != "") != worse {
				t.Errorf("%+v, %s, %g above: worse %t, %q", c.data, c.loss, more, e.worse, e.loss)
			}
		}
	}
}

// With an accuracy above guessing, a train loss may rise by a twentieth. Without one it may not rise at all.
func TestALossMayRiseALittleIfAnswersAreRight(t *testing.T) {
	for _, c := range []struct {
		accuracy, last float64
		rose, fell     bool
	}{
		{0.9, 1.05, false, false},
		{0.9, 1.0500001, true, false},
		{0.9, 1, false, false},
		{0.9, 0.99, false, true},
		{-1, 1.0000001, true, false},
		{-1, 0.99, false, true},
	} {
		e := against(judged(10, 1000, c.accuracy, 1, c.last))
		if e.rose != c.rose || e.fell != c.fell || (e.loss != "") != c.rose {
			t.Errorf("%+v: rose %t, fell %t, %q", c, e.rose, e.fell, e.loss)
		}
	}
	const same = "the train loss did not fall: it is 1 as in round 1"
	if e := against(judged(10, 1000, -1, 1, 1)); e.rose || e.fell || e.loss != same {
		t.Errorf("the same loss: %+v", e)
	}
}

// Rows can tell learning from guessing if guessing all of them right has a chance of at most one in a hundred.
func TestEnoughRowsTellLearningFromGuessing(t *testing.T) {
	for _, c := range []struct {
		rows, classes int
		tells         bool
	}{
		{0, 10, false},
		{1, 10, false},
		{3, 10, true},
		{6, 2, false},
		{7, 2, true},
		{1, 100, true},
		{1, 99, false},
		{1000, 1, false},
	} {
		if got := canTell(c.rows, c.classes); got != c.tells {
			t.Errorf("%d rows of %d classes tell: %t", c.rows, c.classes, got)
		}
	}
}

// A language model has learned if its perplexity is below the number of tokens.
func TestAPerplexityIsComparedWithAllTokens(t *testing.T) {
	for perplexity, learned := range map[float64]bool{7.99: true, 8: false, 9: false} {
		r := judged(8, 100, -1, 2, 1.9)
		r.Rounds[1].Perplexity = perplexity
		if e := against(r); e.accurate != learned || (e.chance == "") != learned {
			t.Errorf("perplexity %g of 8 tokens: %+v", perplexity, e)
		}
	}
}

// A refusal of containers is told once while it stays the same, and again after the job was granted something.
func TestARefusalIsToldOnceWhileItStays(t *testing.T) {
	told := 0
	r := &run{c: New(Config{Observe: func(n Notice) {
		if told++; n.Refused == nil || n.Refused.Why != "full" {
			t.Errorf("%+v", n)
		}
	}}), rec: &disdel.Record{}}
	four, two := disdel.Refusal{Workers: 4, Why: "full"}, disdel.Refusal{Workers: 2, Why: "full"}
	for i, c := range []struct {
		refusals []disdel.Refusal
		told     int
	}{
		{nil, 0},
		{[]disdel.Refusal{four}, 1},
		{[]disdel.Refusal{four}, 1},
		{[]disdel.Refusal{four, two}, 2},
		{nil, 2},
		{[]disdel.Refusal{two}, 3},
	} {
		if r.noteRefusal(disdel.Decision{NotGranted: c.refusals}); told != c.told {
			t.Errorf("step %d: told %d times, want %d", i, told, c.told)
		}
	}
}

// A hold was too short if it ended an activation before its timeout. One that lasted until its timeout, or had no hold,
// hung.
func TestAHoldIsTooShortBeforeTheTimeout(t *testing.T) {
	for _, c := range []struct {
		outcome        disdel.Outcome
		code           disdel.Code
		hold, took     disdel.Millis
		short, isFroze bool
	}{
		{disdel.OutcomeTimeout, "", 1, 99, true, false},
		{disdel.OutcomeTimeout, "", 1, 100, false, true},
		{disdel.OutcomeTimeout, "", 1, 101, false, true},
		{disdel.OutcomeTimeout, "", 0, 99, false, false},
		{disdel.OutcomeTimeout, "", 0, 100, false, false},
		{disdel.OutcomeLost, "", 1, 99, false, false},
		{disdel.OutcomeLost, "", 1, 100, false, false},
		{disdel.OutcomeLost, disdel.CodeOverBudget, 0, 200, true, false},
	} {
		a := disdel.Activation{Outcome: c.outcome, Duration: c.took, Failure: &disdel.Error{Code: c.code}}
		a.Hold, a.Limits.Timeout = c.hold, 100
		if holdTooShort(a) != c.short || frozen(a) != c.isFroze {
			t.Errorf("%+v: too short %t, frozen %t", c, holdTooShort(a), frozen(a))
		}
	}
}
