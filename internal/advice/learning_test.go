package advice

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// trained is a job of ten classes that did not learn, with these train losses by round.
func trained(o disdel.Optimizer, losses ...float64) *disdel.Record {
	r := &disdel.Record{ID: "job-1", Status: disdel.StatusSucceeded, Learned: new(false)}
	r.Data = disdel.DataInfo{Name: "digits", Classes: 10, Train: 10000, HeldOut: 100}
	r.Plan = disdel.Plan{Workers: 2, HeldOut: 100}
	r.Job.Training = disdel.Training{Epochs: len(losses), BatchSize: 32, Optimizer: o, Loss: "crossEntropy"}
	for i, l := range losses {
		r.Rounds = append(r.Rounds, disdel.Round{Round: i, TrainLoss: l})
	}
	return r
}

func adam(rate float64) disdel.Optimizer {
	return disdel.Optimizer{Adam: &disdel.Adam{LearningRate: rate}}
}

func sgd(rate float64) disdel.Optimizer {
	return disdel.Optimizer{SGD: &disdel.SGD{LearningRate: rate}}
}

// answers counts held-out rows by label, which the network all takes for one class.
func answers(given int, labels ...int) *disdel.ByClass {
	b := disdel.NewByClass(len(labels))
	for label, n := range labels {
		for range n {
			b.Add([]int32{int32(label)}, []int32{int32(given)})
		}
	}
	return b
}

func names(list []Cause) (out []string) {
	for _, c := range list {
		out = append(out, c.What)
	}
	return out
}

// Each way in which training fails has its cause first, with the figures that show it and a change that may help.
func TestWhyAJobDidNotLearn(t *testing.T) {
	const guess = 2.302585
	with := func(r *disdel.Record, b *disdel.ByClass) *disdel.Record {
		r.ByClass = b
		return r
	}
	short := trained(adam(0.001), 2.30, 2.29)
	short.Data.Train = 200
	for name, c := range map[string]struct {
		r        *disdel.Record
		what     string
		evidence string
		sets     []string
		look     string
	}{
		"the loss jumped": {
			trained(sgd(5), 2.2e10, 2.31, 2.304), "the learning rate is too large", "jumped to 2.2e+10 in round 1",
			[]string{"training.optimizer.sgd.learningRate=0.01", "training.clipNorm=1"},
			"",
		},
		"the loss is no number": {
			trained(sgd(0.05), 2.5, math.NaN()), "the learning rate is too large", "jumped to NaN in round 2",
			[]string{"training.optimizer.sgd.learningRate=0.005", "training.clipNorm=1"},
			"",
		},
		"a rate far above": {
			trained(adam(0.3), guess, 2.32), "the learning rate is too large", "0.3, and 0.001 is usual for adam",
			[]string{"training.optimizer.adam.learningRate=0.001", "training.clipNorm=1"},
			"",
		},
		"a rate far below": {
			trained(adam(1e-7), guess, 2.3025, 2.3024), "the learning rate is too small",
			"was 2.303 at first and 2.302 in the end; the learning rate is 1e-07",
			[]string{"training.optimizer.adam.learningRate=0.001"},
			"",
		},
		"few steps": {
			short, "the job is too short", "each worker made about 6 steps", []string{"training.epochs=34"}, "",
		},
		"flat": {
			trained(adam(0.001), guess, 2.31, 2.30), "the labels do not follow from the inputs, or the inputs are not scaled",
			"was 2.303 at first and 2.3 in the end", nil, "dataset sample digits",
		},
		"large inputs": {
			trained(adam(1e-5), 900, 40, 30), "the learning rate is too large", "jumped to 900", []string{
				"training.optimizer.adam.learningRate=1e-06", "training.clipNorm=1",
			}, "",
		},
		"one label": {
			with(trained(adam(0.001), 0.1, 0.001), answers(3, 0, 0, 0, 100)), "all labels are the same",
			"all 100 held-out rows have the class 3", nil, "dataset show digits",
		},
		"uneven": {
			with(trained(adam(0.001), 0.25, 0.2), answers(0, 95, 5)), "the classes are uneven",
			"answers with class 0 for every held-out row, and 95 % of the rows have it",
			[]string{"training.epochs=6"},
			"dataset show digits",
		},
		"by heart": {
			with(trained(adam(0.001), 1.9, 0.01), disdel.NewByClass(10)),
			"the network learned the training rows by heart, or labels are wrong", "fell from 1.9 to 0.01", nil,
			"dataset sample digits",
		},
	} {
		list := NotLearned(c.r)
		if len(list) == 0 {
			t.Errorf("%s: no cause", name)
			continue
		}
		got := list[0]
		if got.What != c.what || !strings.Contains(got.Evidence, c.evidence) || !slices.Equal(got.Sets, c.sets) ||
			strings.Join(got.Look, " ") != c.look {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if list := names(NotLearned(trained(adam(1e-5), 900, 40, 30))); !slices.Contains(list, "the inputs are large numbers") {
		t.Errorf("a usual rate: %v", list)
	}
	learned := trained(adam(5), 9e9)
	for _, verdict := range []*bool{nil, new(true)} {
		if learned.Learned = verdict; NotLearned(learned) != nil {
			t.Error("a job that learned has causes")
		}
	}
}

// A regression of numbers begins with weights of zero, whose loss is far above that of one guess. Adam then needs a rate
// for the size of the targets: the advice raises it, and does not take the first loss for a jump.
func TestWhyARegressionDidNotLearn(t *testing.T) {
	prices := func(o disdel.Optimizer, losses ...float64) *disdel.Record {
		r := trained(o, losses...)
		r.Job.Training.Loss, r.Job.Training.BatchSize, r.Job.Training.Epochs = disdel.LossSquared, 4, 38
		r.Data.Train, r.Data.Classes = 320, 1
		r.Data.Sparse = &disdel.SparseData{Mean: 491577, Deviation: 161435}
		return r
	}
	for name, c := range map[string]struct {
		r    *disdel.Record
		what string
		sets []string
	}{
		"far too small": {
			prices(adam(0.002), 2.675e11, 2.6749e11), "the learning rate is too small",
			[]string{"training.optimizer.adam.learningRate=1700"},
		},
		"far too large": {
			prices(adam(1e6), 9e12, 8e12), "the learning rate is too large",
			[]string{"training.optimizer.adam.learningRate=1.7e+03", "training.clipNorm=1"},
		},
		"sgd diverged": {
			prices(sgd(0.5), 2.6e11, 9e14), "the learning rate is too large",
			[]string{"training.optimizer.sgd.learningRate=0.01", "training.clipNorm=1"},
		},
	} {
		list := NotLearned(c.r)
		if list[0].What != c.what || !slices.Equal(list[0].Sets, c.sets) {
			t.Errorf("%s: %+v", name, list)
		}
	}
}

// descend makes the losses of gradient descent on a quadratic bowl with curvature 1: each step multiplies the distance
// from the minimum by 1 - rate. It starts at the loss of a guess.
func descend(rate float64, rounds, steps int, noise *rand.Rand) (losses []float64) {
	distance := 1.0
	for range rounds {
		sum := 0.0
		for range steps {
			sum += distance * distance
			distance *= 1 - rate
		}
		losses = append(losses, math.Log(10)*sum/float64(steps)*(1+0.01*noise.NormFloat64()))
	}
	return losses
}

// On generated curves, a rate beyond the stable one is always found to be too large, a rate that hardly moves always too
// small, and every job has at least one cause with something to do.
func TestCausesOfGeneratedCurves(t *testing.T) {
	random := rand.New(rand.NewPCG(33, 7))
	for range 2000 {
		rounds := 1 + random.IntN(12)
		large, small := sgd(2.2+3*random.Float64()), sgd(math.Pow(10, -7-3*random.Float64()))
		for want, o := range map[string]disdel.Optimizer{
			"the learning rate is too large": large, "the learning rate is too small": small,
		} {
			r := trained(o, descend(o.Rate(), rounds, 40, random)...)
			list := NotLearned(r)
			if len(list) == 0 || list[0].What != want || len(list[0].Sets) == 0 {
				t.Fatalf("rate %g, losses %v: %+v", o.Rate(), lossesOf(r), list)
			}
		}
		losses := make([]float64, rounds)
		for i := range losses {
			losses[i] = math.Exp(6 * (random.Float64() - 0.5))
		}
		for _, c := range NotLearned(trained(adam(math.Pow(10, -6*random.Float64())), losses...)) {
			if c.What == "" || c.Evidence == "" || len(c.Sets) == 0 && len(c.Look) == 0 {
				t.Fatalf("%v: %+v", losses, c)
			}
		}
	}
}
