package controller

import (
	"math"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// judged is a record of a job of so many classes and held-out rows whose rounds had these train losses, and this
// accuracy in the end; -1: none.
func judged(classes, rows int, accuracy float64, losses ...float64) *disdel.Record {
	r := &disdel.Record{ID: "job-1", Data: disdel.DataInfo{Classes: classes}, Plan: disdel.Plan{HeldOut: rows}}
	r.Job.Training.Loss = "crossEntropy"
	for i, l := range losses {
		r.Rounds = append(r.Rounds, disdel.Round{Round: i, TrainLoss: l})
	}
	if accuracy >= 0 {
		r.Rounds[len(losses)-1].Accuracy = &accuracy
	}
	return r
}

// A job that succeeded without having learned anything says so.
func TestAJobThatDidNotLearnSaysSo(t *testing.T) {
	yes, no := new(true), new(false)
	firstEpoch := judged(10, 0, -1, 79)
	firstEpoch.Rounds[0].FirstLoss = new(2.3)
	best := judged(10, 1000, 0.1, 2.3, 0.5, 9)
	best.Rounds[1].Accuracy, best.Best = new(0.9), &disdel.Best{Round: 1}
	unevaluated := judged(10, 1000, -1, 2.3, 0.5)
	unevaluated.Unevaluated = &disdel.Error{Msg: "out of time"}
	squares := judged(10, 0, -1, 99)
	heldOut := func(loss float64, r *disdel.Record) *disdel.Record {
		r.Rounds[len(r.Rounds)-1].Loss = &loss
		return r
	}
	squares.Job.Training.Loss = "mse"
	for name, c := range map[string]struct {
		r       *disdel.Record
		learned *bool
		says    []string
	}{
		"learned": {judged(10, 10000, 0.89, 2.3, 0.4), yes, nil},
		"chance, and the loss rose": {
			judged(10, 10000, 0.1, 2.3, 79), no,
			[]string{
				"did not learn", "accuracy 0.1000", "10 classes", "(up to 0.1070 of 10000 rows",
				"rose from 2.3 in round 1 to 79",
			},
		},
		"chance though the loss fell": {judged(10, 10000, 0.103, 2.3, 2.29), no, []string{"did not learn", "0.1030"}},
		"worse than chance":           {judged(2, 1000, 0.3, 0.7, 0.6), no, []string{"did not learn"}},
		"just above chance":           {judged(10, 10000, 0.112, 2.3, 2.2), yes, nil},
		"too few rows to tell":        {judged(2, 5, 1, 0.7, 0.1), yes, nil},
		"few rows, clearly":           {judged(10, 20, 0.9, 2.3, 0.1), yes, nil},
		"no rows, the loss rose":      {judged(10, 0, -1, 2.3, 2.31), no, []string{"did not learn: the train loss rose"}},
		"no rows, the loss stayed":    {judged(10, 0, -1, 2.3, 2.3), no, []string{"did not fall"}},
		"no rows, one round":          {judged(10, 0, -1, 2.2), nil, nil},
		"no rows, worse than a guess": {
			judged(10, 0, -1, 41.6), no,
			[]string{"the train loss is 41.6, and that of a guess 2.303"},
		},
		"epochs of one round": {firstEpoch, no, []string{"rose from 2.3 in the first epoch of round 1 to 79"}},
		"it fell, and is worse than a guess": {
			judged(10, 0, -1, 900, 20), no,
			[]string{"did not learn: the train loss is 20, and that of a guess 2.303"},
		},
		"it fell, with right answers, and is worse than a guess": {
			heldOut(11, judged(10, 1000, 0.3, 900, 20)), no,
			[]string{"did not learn: the train loss is 20, and that of a guess 2.303"},
		},
		"the first steps of the epoch were bad": {heldOut(0.3, judged(10, 1000, 0.9, 20)), yes, nil},
		"held-out rows are worse than a guess, and too few for an accuracy": {
			heldOut(3, judged(2, 5, 1, 0.7, 0.1)), no,
			[]string{"did not learn: the held-out loss is 3, and that of a guess 0.6931"},
		},
		"too sure of wrong answers": {
			heldOut(3.1, judged(10, 1000, 0.7, 2, 0.01)), yes,
			[]string{"the held-out loss is 3.1, and that of a guess 2.303"},
		},
		"diverged in the end": {judged(10, 1000, 0.3, 0.5, 20), no, []string{"diverged while it trained"}},
		"it wavers":           {judged(10, 1000, 0.9, 0.500, 0.501), yes, nil},
		"it rose, and is good": {
			judged(10, 1000, 0.9, 0.5, 0.8), yes,
			[]string{"the train loss rose from 0.5 in round 1 to 0.8"},
		},
		"the best is kept": {best, yes, nil},
		"not evaluated": {
			unevaluated, yes,
			[]string{"not evaluated: out of time; disdel resume job-1 repeats the evaluation alone"},
		},
		"another loss":        {squares, nil, nil},
		"nothing was trained": {&disdel.Record{}, nil, nil},
	} {
		learned, warnings := verdict(c.r)
		if (learned == nil) != (c.learned == nil) || learned != nil && *learned != *c.learned || len(warnings) > 1 ||
			(len(warnings) == 1) != (c.says != nil) {
			t.Errorf("%s: %v, %q", name, learned, warnings)
			continue
		}
		for _, text := range c.says {
			if !strings.Contains(warnings[0], text) {
				t.Errorf("%s: %q lacks %q", name, warnings[0], text)
			}
		}
	}
}

// A network that gives one answer for all rows has learned nothing, however many rows have that label.
func TestOneAnswerForAllRowsIsNotLearning(t *testing.T) {
	job := func(given int, labels ...int) *disdel.Record {
		b := disdel.NewByClass(len(labels))
		for label, n := range labels {
			for range n {
				b.Add([]int32{int32(label)}, []int32{int32(given)})
			}
		}
		_, _, all := b.MostLabels()
		r := judged(len(labels), all, float64(labels[given])/float64(all), 0.6, 0.2)
		r.ByClass = b
		return r
	}
	several := job(0, 95, 5)
	several.ByClass.Add([]int32{1}, []int32{1})
	for name, c := range map[string]struct {
		r       *disdel.Record
		learned bool
		says    string
	}{
		"uneven":          {job(0, 95, 5), false, "answers with class 0 for all 100 held-out rows, and 95 of them have it"},
		"few others":      {job(0, 96, 4), true, ""},
		"one label":       {job(1, 0, 20), false, "all 20 held-out rows have the class 1, so that their accuracy shows nothing"},
		"few of a label":  {job(1, 0, 19), true, ""},
		"several answers": {several, true, ""},
	} {
		learned, warnings := verdict(c.r)
		if learned == nil || *learned != c.learned || !strings.Contains(strings.Join(warnings, ""), c.says) {
			t.Errorf("%s: %v, %q", name, *learned, warnings)
		}
	}
}

// Of ten coins: ten heads 1/1024, nine or more 11/1024.
func TestGuessesAreBinomial(t *testing.T) {
	for right, want := range map[int]float64{10: 1.0 / 1024, 9: 11.0 / 1024, 6: 386.0 / 1024, 5: 1, 0: 1} {
		if got := tail(10, right, 2); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d of 10: %v, want %v", right, got, want)
		}
	}
	if got := mostByLuck(10, 2); got != 0.9 {
		t.Errorf("up to %v by luck", got)
	}
}

// Of sparse rows the held-out loss tells, against that of one guess for all rows: most clicks are none, and saying so
// each time is mostly right.
func TestSparseRowsAreJudgedByTheirLoss(t *testing.T) {
	job := func(loss string, heldOut float64) *disdel.Record {
		r := judged(2, 10000, 0.744, 0.6, 0.55)
		r.Job.Training.Loss = loss
		r.Data.Sparse = &disdel.SparseData{Mean: 0.256, Deviation: 1.1}
		r.Rounds[1].Loss = &heldOut
		if loss == disdel.LossSquared {
			r.Data.Classes, r.Rounds[1].Accuracy = 1, nil
		}
		return r
	}
	for name, c := range map[string]struct {
		r       *disdel.Record
		learned bool
		says    string
	}{
		"clicks":             {job(disdel.LossLogistic, 0.52), true, ""},
		"no better clicks":   {job(disdel.LossLogistic, 0.57), false, "the held-out loss 0.57 is no better than the 0.5688 of one guess"},
		"ratings":            {job(disdel.LossSquared, 0.9), true, ""},
		"ratings, no better": {job(disdel.LossSquared, 1.22), false, "no better than the 1.21 of one guess"},
	} {
		learned, warnings := verdict(c.r)
		if learned == nil || *learned != c.learned || !strings.Contains(strings.Join(warnings, " "), c.says) {
			t.Errorf("%s: learned %v, %v; want %v, %q", name, learned, warnings, c.learned, c.says)
		}
	}
}

// Of numbers that are predicted, R2 tells whether the job learned: from as many held-out rows on as tell anything.
func TestR2TellsWhetherNumbersWereLearned(t *testing.T) {
	for _, c := range []struct {
		rows   int
		r2     float64
		learns bool
		chance bool
	}{
		{fewRows, 0.5, true, false}, {fewRows, 0, false, true}, {fewRows, -1, false, true}, {fewRows - 1, -1, false, false},
	} {
		r := judged(0, c.rows, -1, 2.3, 0.4)
		r.Rounds[1].R2 = &c.r2
		if e := against(r); e.accurate != c.learns || (e.chance != "") != c.chance {
			t.Errorf("R2 %v of %d rows: accurate %v, chance %q", c.r2, c.rows, e.accurate, e.chance)
		}
	}
}
