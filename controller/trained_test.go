package controller

import (
	"math"
	"testing"

	"github.com/disdel/disdel"
)

// The accuracy of a round's training rows is the mean over the workers, weighted by their samples, of the last epoch
// that
// each trained; it is not told where a worker of an earlier version did not count it.
func TestTrainingAccuracyIsTheMeanOverTheWorkers(t *testing.T) {
	two := disdel.Plan{Workers: 2, Levels: []disdel.Level{{Clusters: [][]int{{0, 1}}}}}
	of := func(results ...disdel.TrainResult) (round disdel.Round) {
		b := newBarrier(two)
		for w, r := range results {
			b.trained(w, r)
		}
		b.sum(&round)
		return round
	}
	long := disdel.TrainResult{Loss: 2, Losses: []float64{4, 2}, Accuracies: []float64{0.2, 0.6}, Samples: 30}
	short := disdel.TrainResult{Loss: 3, Losses: []float64{3}, Accuracies: []float64{0.4}, Samples: 10}
	r := of(long, short)
	if r.TrainAccuracy == nil || math.Abs(*r.TrainAccuracy-(0.6*30+0.4*10)/40) > 1e-12 {
		t.Errorf("training accuracy %v", r.TrainAccuracy)
	}
	if len(r.Trained) != 2 || math.Abs(*r.Trained[0].Accuracy-(0.2*30+0.4*10)/40) > 1e-12 ||
		*r.Trained[1].Accuracy != 0.6 ||
		r.Trained[0].Loss != (4*30+3*10)/40.0 || r.Trained[1].Loss != 2 || r.Trained[1].Epoch != 2 {
		t.Errorf("by epoch %+v", r.Trained)
	}
	if r.FirstLoss == nil || *r.FirstLoss != (4*30+3*10)/40.0 || r.TrainLoss != (2*30+3*10)/40.0 {
		t.Errorf("losses %v and %v", r.FirstLoss, r.TrainLoss)
	}
	short.Accuracies = nil
	if r = of(long, short); r.TrainAccuracy != nil || r.Trained[0].Accuracy != nil || r.Trained[1].Accuracy == nil {
		t.Errorf("a worker that did not count is counted: %+v", r)
	}
	if r = of(short, short); r.Trained != nil || r.TrainAccuracy != nil {
		t.Errorf("one epoch each has %+v", r.Trained)
	}
}
