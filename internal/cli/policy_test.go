package cli

import (
	"testing"

	"github.com/disdel/disdel"
)

// growingJob has two epochs, so that KubeML's rule decides once, and always the same: one worker more after the first.
// Everything that a worker carries from round to round is there: rounds of batches, a narrow wire with its residual,
// moments of its own.
const growingJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: grows}
model: {name: digits-cnn}
data: {source: dataset://digits}
training: {epochs: 2, batchSize: 16, validateEvery: 0, optimizer: {sgd: {learningRate: 0.05, momentum: 0.9}}}
distribution:
  workers: 2
  policy: kubeml
  sync: {every: 4}
  aggregation: {wire: bfloat16, optimizer: keep}
`

// The workers of a real job change between its epochs, and shards, tree and limits follow. A job that is killed in its
// second stage and taken up again comes to the same weights, to the bit.
func TestWorkersChangeBetweenEpochs(t *testing.T) {
	t.Parallel()
	d := build(t)
	job := d.file(growingJob)
	if _, errs, code := d.run("submit", job, "-q"); code != 0 {
		t.Fatalf("submit: exit %d\n%s", code, errs)
	}
	undisturbed, want := d.record(), d.weights("grows")
	checkGrown(t, undisturbed)

	cmd, _, errs := d.command("submit", job)
	d.killed(cmd, undisturbed.Stages[1].First+2)
	killed := d.record()
	if killed.ID == undisturbed.ID || killed.Status != disdel.StatusRunning || len(killed.Stages) != 2 {
		t.Fatalf("killed: %s, %v, %d stages\n%s", killed.ID, killed.Status, len(killed.Stages), errs)
	}
	if _, errs, code := d.run("resume", "@last", "-q"); code != 0 {
		t.Fatalf("resume: exit %d\n%s", code, errs)
	}
	resumed := d.record()
	if resumed.Resumes != 1 || resumed.Accuracy != undisturbed.Accuracy || d.weights("grows") != want {
		t.Errorf("%v after %d resumes, accuracy %g, and %g undisturbed",
			resumed.Status, resumed.Resumes, resumed.Accuracy, undisturbed.Accuracy)
	}
	newest := resumed.Stages[len(resumed.Stages)-1]
	if len(resumed.Stages) != 3 || newest.Workers != 3 || newest.Decision.Boundary != disdel.BoundaryResume {
		t.Errorf("%d stages: %+v", len(resumed.Stages), newest.Setting)
	}
	d.nothingStays()
}

// checkGrown holds a record's stages against each other and against what ran in them.
func checkGrown(t *testing.T, r disdel.Record) {
	t.Helper()
	if r.Status != disdel.StatusSucceeded || len(r.Stages) != 2 || r.Stages[0].Workers != 2 || r.Stages[1].Workers != 3 {
		t.Fatalf("%v with %d stages", r.Status, len(r.Stages))
	}
	first, second := r.Stages[0], r.Stages[1]
	if len(second.Shards) != 3 || len(second.Levels[0].Clusters[0]) != 3 || len(second.Actions) != 3 ||
		second.Decision.Policy != disdel.PolicyKubeML {
		t.Errorf("second stage %+v", second)
	}
	if second.First != first.PerEpoch || second.From != (disdel.Position{Epoch: 1}) ||
		second.PerEpoch >= first.PerEpoch || r.Plan.Rounds != second.End() {
		t.Errorf("%d rounds an epoch, then %d from round %d of %d",
			first.PerEpoch, second.PerEpoch, second.First, r.Plan.Rounds)
	}
	if len(r.Rounds) != r.Plan.Rounds || r.Rounds[0].Observed == nil || r.Rounds[len(r.Rounds)-1].Stage != 1 {
		t.Errorf("%d of %d rounds", len(r.Rounds), r.Plan.Rounds)
	}
	rows := map[int]int{} // by stage: an epoch each
	for _, a := range r.Activations {
		if a.Task == disdel.TaskTrain {
			rows[a.Stage] += a.Rows
		}
		if stage := r.StageOf(&a.Invocation); a.Task == disdel.TaskTrain && a.Member >= stage.Workers {
			t.Errorf("%s in a stage of %d workers", a.Invocation.ID, stage.Workers)
		}
	}
	if rows[0] != r.Data.Train || rows[1] != r.Data.Train {
		t.Errorf("rows by stage %v, and an epoch has %d", rows, r.Data.Train)
	}
}
