package controller

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// lettingSpec is a job whose workers take batches from a queue and may leave.
func lettingSpec(t *testing.T, words string) Spec {
	t.Helper()
	spec := scriptSpec(t, strings.Fields("policy=mlless workers=4 rounds=3 fanIn=4 rows=240 queue=1 "+words))
	spec.Job.Training.Optimizer.SGD = &disdel.SGD{LearningRate: 0.4, Momentum: 0.8}
	return spec
}

// rateOf is the learning rate of a worker's request.
func rateOf(t *testing.T, s *Spec) float64 {
	t.Helper()
	var req disdel.TrainRequest
	if err := json.Unmarshal(s.train(work{attempt: 1}, 0, "").Params, &req); err != nil {
		t.Fatal(err)
	}
	return req.Optimizer.Rate()
}

// With fewer workers than the job began with, a step has fewer rows. If updates are averaged, the learning rate falls
// in proportion. It stays if updates are added up, or with more workers.
func TestTheRateFollowsTheWorkersThatStay(t *testing.T) {
	for _, c := range []struct {
		combine string
		workers int
		want    float64
	}{
		{disdel.CombineMean, 4, 0.4},
		{disdel.CombineMean, 3, 0.3},
		{disdel.CombineMean, 1, 0.1},
		{disdel.CombineMean, 8, 0.4},
		{disdel.CombineSum, 1, 0.4},
	} {
		spec := lettingSpec(t, "heldOut=10")
		spec.Job.Distribution.Exchange.Combine = c.combine
		job := spec.Job
		job.Distribution.Workers = c.workers
		spec.Began = spec.Plan.Workers
		plan, err := spec.Replan(job)
		if err != nil {
			t.Fatal(err)
		}
		if spec.Plan = plan; rateOf(t, &spec) < c.want-1e-9 || rateOf(t, &spec) > c.want+1e-9 {
			t.Errorf("%s, %d of 4 workers: rate %v, want %v", c.combine, c.workers, rateOf(t, &spec), c.want)
		}
		if rate := spec.Job.Training.Optimizer.Rate(); rate != 0.4 {
			t.Errorf("the job's own rate became %v", rate)
		}
	}
}

// A job that is resumed knows how many workers it began with.
func TestAResumedJobKnowsHowManyWorkersItBeganWith(t *testing.T) {
	spec := lettingSpec(t, "heldOut=10")
	fewer := spec.Job
	fewer.Distribution.Workers = 1
	plan, err := spec.Replan(fewer)
	if err != nil {
		t.Fatal(err)
	}
	first, second := spec.Plan.AsStage(spec.Job), plan.AsStage(fewer)
	second.First = 1
	r := disdel.Record{ID: spec.ID, Job: spec.Job, Plan: spec.Plan, Stages: []disdel.Stage{first, second}}
	if err := ContinueFrom(r, &spec, disdel.Checkpoint{Round: 2}); err != nil {
		t.Fatal(err)
	}
	if rate := rateOf(t, &spec); spec.Began != 4 || spec.Plan.Workers != 1 || rate != 0.1 {
		t.Errorf("began with %d, has %d, rate %v", spec.Began, spec.Plan.Workers, rate)
	}
}

// A job whose workers may leave keeps the weights of its best evaluation, unless it says otherwise or has none.
func TestAJobWhoseWorkersLeaveKeepsItsBestWeights(t *testing.T) {
	for words, want := range map[string]bool{
		"heldOut=10 validateEvery=1": true, "heldOut=10": false, "heldOut=0 validateEvery=1": false,
		"heldOut=10 validateEvery=1 policy=static": false, "heldOut=10 validateEvery=1 patience=3": false,
		"heldOut=10 validateEvery=1 patience=3 keepBest=1": true,
	} {
		if spec := lettingSpec(t, words); spec.keepsBest() != want {
			t.Errorf("%s: keeps the best: %v", words, !want)
		}
	}
}

// Nobody leaves while held-out rows say that the loss rises, though the steps would have workers leave.
func TestNobodyLeavesWhileTheLossRises(t *testing.T) {
	for _, c := range []struct {
		second float64 // held-out loss of the second round, after 0.9
		leaves bool
	}{{0.91, false}, {1.4, false}, {0.8, true}, {0.901, true}} {
		m := NewManager(lettingSpec(t, "heldOut=10"))
		for i, loss := range []float64{0.9, c.second} {
			m.state.seen = append(m.state.seen, disdel.Observation{
				Round: i, Epoch: float64(i + 1), Rows: 240, Duration: 1e9, Loss: 1, HeldOut: &loss,
				Setting: disdel.Setting{Workers: 4},
			})
		}
		m.Step(StartedEvent{})
		left := 0
		for _, loss := range []float64{2, 1, 1, 1, 1} {
			e := stepsEvent(m, 0, map[string]float64{"made": 100, "loss": loss, "own": 1, "others": 9})
			left += len(m.Step(e))
		}
		if left > 0 != c.leaves {
			t.Errorf("held-out loss 0.9 and then %v: %d orders to leave", c.second, left)
		}
	}
}
