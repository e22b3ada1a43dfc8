package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var platformLimits = disdel.PlatformLimits{
	MinMemory: 128 * disdel.MB, MaxMemory: 512 * disdel.MB, MinTimeout: disdel.Millis(100 * time.Millisecond),
	MaxTimeout: disdel.Millis(5 * time.Minute), Concurrent: 30, PerMinute: 60, Pool: 2 * disdel.GB,
}

func planInput(t testing.TB) scheduler.PlanInput {
	t.Helper()
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	in := scheduler.PlanInput{
		Estimator: estimator.Planned(backends.Standard(nil)),
		ID:        "job-1", Graph: g, Platform: platformLimits,
		Data: disdel.DataInfo{
			Name: "fashion-mnist", Checksum: "c", Train: 60000, HeldOut: 10000, Sample: []int{1, 28, 28},
			Classes: 10, SampleSize: 784,
		},
	}
	in.Job.Training = disdel.Training{
		Epochs: 5, BatchSize: 64,
		Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.001}}, ValidateEvery: 1,
	}
	in.Job.Distribution.Sync = disdel.SyncEpoch
	return in
}

// digitsStore is a store that has the digits.
func digitsStore(t *testing.T) *dataset.Store {
	t.Helper()
	store, err := dataset.OpenStore(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	digits, err := dataset.Digits()
	if err == nil {
		_, err = store.Add(t.Context(), digits, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// Resolve adds to the file's own faults those that need the network and the data, in file order.
func TestResolveListsEveryFault(t *testing.T) {
	ctx, store := t.Context(), digitsStore(t)
	lines := map[string]int{"model.name": 3, "data.source": 5, "training.batchSize": 9, "data.checksum": 6, "model": 2}
	locate := func(path string) (int, int) { return lines[path], 1 }
	job := disdel.Job{}
	job.Model.Name, job.Data.Source, job.Training.BatchSize, job.Training.Loss = "lenet-5", "dataset://digts", 64,
		"crossEntropy"
	for _, c := range []struct {
		change func(*disdel.Job)
		want   []string
	}{
		{func(*disdel.Job) {}, []string{"model.name", "data.source", "training.epochs"}},
		{
			func(j *disdel.Job) { j.Data.Source = "dataset://digits"; j.Training.BatchSize = 2000 },
			[]string{"model.name", "training.batchSize", "training.epochs"},
		},
		{func(j *disdel.Job) {
			j.Data.Source = "dataset://digits"
			j.Data.Checksum = "sha256:0"
			j.Model.Name = "digits-cnn"
		}, []string{"data.checksum", "training.epochs"}},
		{
			func(j *disdel.Job) { j.Data.Source = "dataset://digits"; j.Model.Name = "vgg16" },
			[]string{"model", "training.epochs"},
		},
		{func(j *disdel.Job) {
			j.Data.Source, j.Training.Loss = "dataset://digits", "binaryCrossEntropy"
			j.Model.Name, j.Model.Layers = "", []disdel.Layer{{Kind: "dense", Units: 3}}
		}, []string{"training.loss", "model", "training.epochs"}},
	} {
		j := job
		c.change(&j)
		_, err := Resolve(ctx, j, store, "job.yaml", locate,
			[]disdel.Fault{{Path: "training.epochs", Line: 20, Column: 3, Msg: "must be at least 1"}})
		var faults *disdel.Faults
		if !errors.As(err, &faults) {
			t.Errorf("%v: got %v", c.want, err)
			continue
		}
		var paths []string
		for _, f := range faults.Faults {
			paths = append(paths, f.Path)
		}
		if diff := cmp.Diff(c.want, paths); diff != "" {
			t.Errorf("(-want +got):\n%s\n%v", diff, err)
		}
	}
	ends := job
	ends.Model.Name, ends.Data.Source, ends.Training.Loss = "", "dataset://digits", "binaryCrossEntropy"
	for _, activation := range []string{"sigmoid", "softmax"} {
		ends.Model.Layers = []disdel.Layer{{Kind: "dense", Units: 10, Activation: activation}}
		if _, err := Resolve(ctx, ends, store, "job.yaml", locate, nil); err != nil {
			t.Errorf("binaryCrossEntropy of a %s: %v", activation, err)
		}
	}
	own := job
	own.Model.Name, own.Model.Custom, own.Data.Source = "", "mine", "dataset://digits"
	mine := &disdel.CustomNetwork{
		Name: "mine", Input: []int{1, 8, 8}, Classes: 10,
		Params: []disdel.CustomParam{{Name: "w", Shape: []int{64, 10}, Trainable: true}},
	}
	for hint, d := range map[string]*disdel.CustomNetwork{"--action": nil, "custom: yours": {Name: "yours"}} {
		own.Model.Description = d
		if _, err := Resolve(ctx, own, store, "job.yaml", locate, nil); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("a network of its own binary: got %v, want %s", err, hint)
		}
	}
	own.Model.Description = mine
	if r, err := Resolve(ctx, own, store, "job.yaml", locate, nil); err != nil || r.Graph.Custom() == nil ||
		r.Network.Custom != mine {
		t.Errorf("a described network: %v", err)
	}
	job.Model.Name, job.Data.Source = "digits-cnn", "dataset://digits"
	if r, err := Resolve(ctx, job, store, "job.yaml", locate, nil); err != nil || r.Graph == nil || r.Data.Train != 1797 {
		t.Errorf("a good job: %v", err)
	}
}

// Of nine train actions of which two run at once the last starts when four before it have ended: it is not lost until
// then.
func TestInvocationsWaitForTheirTurn(t *testing.T) {
	minute := disdel.Millis(time.Minute)
	spec := Spec{Plan: disdel.Plan{
		Workers: 9, Parallel: 2, Shards: make([]disdel.RowRange, 9),
		Actions: []disdel.ActionPlan{{Task: disdel.TaskTrain, Limits: disdel.Limits{Timeout: minute}}},
	}}
	if got := spec.train(work{attempt: 1}, 8, "").Queue; got != 4*minute {
		t.Errorf("its turn comes after %v", got)
	}
	if got := spec.train(work{attempt: 2, limits: disdel.Limits{Timeout: 2 * minute}}, 8, "").Queue; got != 8*minute {
		t.Errorf("with a raised timeout after %v", got)
	}
	if spec.Plan.Parallel = 9; spec.train(work{attempt: 1}, 8, "").Queue != 0 {
		t.Error("it waits, and all run at once")
	}
}

// A train action is told all that its job file says of training, and where in the job it is: schedules go by the
// latter.
func TestTrainActionsAreToldHowToLearn(t *testing.T) {
	in := planInput(t)
	training := &in.Job.Training
	training.Epochs, training.ClipNorm, training.Backend, training.Loss = 6, 2.5, "gorgonia", "mse"
	training.Exact, training.Precision = true, disdel.PrecisionFloat32
	training.Schedule = &disdel.Schedule{Step: &disdel.StepSchedule{Every: 2, Factor: 0.5}}
	p, err := scheduler.NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{ID: in.ID, Job: in.Job, Plan: p}
	var req disdel.TrainRequest
	if err := json.Unmarshal(spec.train(work{round: 4, attempt: 1}, 1, "").Params, &req); err != nil {
		t.Fatal(err)
	}
	want := disdel.TrainRequest{
		Job: in.ID, Round: 4, Worker: 1, Attempt: 1, Shard: p.Shards[1],
		TrainRange: disdel.TrainRange{Epochs: 1, Epoch: 4}, JobEpochs: 6,
		BatchSize: 64,
		Optimizer: training.Optimizer, Schedule: training.Schedule, ClipNorm: 2.5, Loss: "mse", Backend: "gorgonia",
		Exact: true, Precision: disdel.PrecisionFloat32,
		Memory: req.Memory, Estimate: req.Estimate, Wire: in.Job.Distribution.Aggregation.Wire,
	}
	if diff := cmp.Diff(want, req); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// scripted is a platform that answers each invocation as outcome says.
type scripted struct {
	mu      sync.Mutex
	outcome func(inv disdel.Invocation) disdel.Outcome // OutcomeUnknown: runs until the job is cancelled
	invoked []string
	removed int
	saved   []disdel.Record
	cancel  chan struct{}
}

func newScripted(f func(disdel.Invocation) disdel.Outcome) *scripted {
	return &scripted{outcome: f, cancel: make(chan struct{})}
}

func (s *scripted) Delivered(context.Context, disdel.UpdateID) (json.RawMessage, bool, error) {
	return nil, false, nil
}

func (s *scripted) Quota(disdel.JobID) disdel.Quota { return disdel.Quota{} }

func (s *scripted) Outage() (disdel.Outage, bool) { return disdel.Outage{}, false }

func (s *scripted) Prepare(context.Context, string, []disdel.ActionPlan) error {
	return nil
}

func (s *scripted) Invoke(_ context.Context, inv disdel.Invocation) (disdel.ActivationID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.invoked = append(s.invoked, inv.ID)
	return disdel.ActivationID(inv.ID), nil
}

func (s *scripted) Wait(ctx context.Context, inv disdel.Invocation, id disdel.ActivationID) (disdel.Activation, error) {
	a := disdel.Activation{
		ID: id, Invocation: inv, Outcome: s.outcome(inv), Start: time.Unix(100, 0),
		End: time.Unix(101, 0),
	}
	switch a.Outcome {
	case disdel.OutcomeUnknown:
		select {
		case <-s.cancel:
			a.Outcome, a.Failure = disdel.OutcomeCanceled, &disdel.Error{Kind: disdel.Canceled, Msg: "stopped"}
		case <-ctx.Done():
			return a, ctx.Err()
		}
	case disdel.OutcomeSuccess:
		result := map[disdel.Task]any{
			disdel.TaskTrain:     disdel.TrainResult{Loss: 1, Samples: 10},
			disdel.TaskAggregate: disdel.AggregateResult{Checksum: "sha256:1", Size: 9},
			disdel.TaskEvaluate:  disdel.EvaluateResult{Loss: 0.5, Accuracy: 0.75},
		}[inv.Task]
		a.Result, _ = json.Marshal(result)
	default:
		a.Failure = &disdel.Error{Kind: disdel.Crashed, Op: inv.ID, Msg: "its process was killed"}
	}
	return a, nil
}

func (s *scripted) Remove(context.Context, string) error { s.removed++; return nil }
func (s *scripted) Save(_ context.Context, r *disdel.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = append(s.saved, *r)
	return nil
}

func (s *scripted) Progress(context.Context, disdel.JobID) ([]disdel.Progress, error) {
	return nil, nil
}
func (s *scripted) Cancel(context.Context, disdel.JobID) error { close(s.cancel); return nil }
func (s *scripted) Sweep(context.Context, disdel.JobID) (int, error) {
	return 0, nil
}

func (s *scripted) Commit(_ context.Context, _ *disdel.Record, _ disdel.Network, w disdel.ModelRef) (disdel.ModelRef,
	error,
) {
	w.Version = 3
	return w, nil
}

func (s *scripted) Check(context.Context, disdel.JobID) error { return nil }

func (s *scripted) EndMember(context.Context, disdel.JobID, int, int) error { return nil }
func (s *scripted) LetGo(context.Context, disdel.JobID, int, int) error     { return nil }

func (s *scripted) Keep(context.Context, disdel.JobID, string) error { return nil }
func (s *scripted) TakeUp(context.Context, disdel.JobID, string) (bool, error) {
	return false, nil
}

func (s *scripted) Forget(context.Context, disdel.JobID, int) error { return nil }

func (s *scripted) Discard(context.Context, string) error { return nil }

func runScripted(t *testing.T, ctx context.Context, s *scripted, change func(*Spec)) *disdel.Record {
	t.Helper()
	in := planInput(t)
	in.Job.Training.Epochs = 2
	p, err := scheduler.NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	spec := Spec{ID: in.ID, Job: in.Job, Plan: p, Models: "mem://", Output: "w", Threads: 1}
	if change != nil {
		change(&spec)
	}
	c := New(Config{
		Invoker: s, Recorder: s, Store: s, Models: s, Log: log, Tick: time.Millisecond,
		Grace: 50 * time.Millisecond,
	})
	r, err := c.Run(ctx, spec, in.Data)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.saved); s.removed != 1 || n < 2 || s.saved[0].Status != disdel.StatusRunning ||
		s.saved[n-1].Status != r.Status {
		t.Errorf("package removed %d times, %d records saved", s.removed, len(s.saved))
	}
	return r
}

func TestARunKeepsEverything(t *testing.T) {
	s := newScripted(func(disdel.Invocation) disdel.Outcome { return disdel.OutcomeSuccess })
	r := runScripted(t, context.Background(), s, nil)
	if r.Status != disdel.StatusSucceeded || r.Accuracy != 0.75 || r.Loss != 0.5 || len(r.Rounds) != 2 ||
		len(r.Activations) != 8 || r.CostGBs == 0 {
		t.Errorf("%v %g %g, %d rounds, %d activations", r.Status, r.Accuracy, r.Loss, len(r.Rounds), len(r.Activations))
	}
	if r.Model == nil || r.Model.Version != 3 || r.Model.Checksum != "sha256:1" || r.Model.Size != 9 {
		t.Errorf("model %+v", r.Model)
	}
}

// One action dies: the job fails with its cause, the other is asked to stop, and both are in the record.
func TestARunFailsWithTheCause(t *testing.T) {
	s := newScripted(func(inv disdel.Invocation) disdel.Outcome {
		if inv.Round == 1 && inv.Task == disdel.TaskTrain {
			return []disdel.Outcome{disdel.OutcomeUnknown, disdel.OutcomeDeveloperError}[inv.Member]
		}
		return disdel.OutcomeSuccess
	})
	// and no retries
	r := runScripted(t, context.Background(), s, func(spec *Spec) { spec.Job.Reliability.Retries.MemoryFactor = 2 })
	if r.Status != disdel.StatusFailed || !errors.Is(r.Failure, disdel.Crashed) ||
		!strings.Contains(r.Failure.Error(), "round 1/train/1") {
		t.Errorf("%v: %v", r.Status, r.Failure)
	}
	if n := len(r.Activations); n != 6 || r.Activations[n-1].Outcome != disdel.OutcomeCanceled {
		t.Errorf("%d activations, the last ended as %v", n, r.Activations[n-1].Outcome)
	}
	if r.Model != nil {
		t.Error("a failed job has a model")
	}
}

func TestARunIsCanceledByItsContext(t *testing.T) {
	why := fmt.Errorf("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	s := newScripted(func(inv disdel.Invocation) disdel.Outcome {
		cancel(why)
		return disdel.OutcomeUnknown
	})
	r := runScripted(t, ctx, s, nil)
	if r.Status != disdel.StatusCanceled || !errors.Is(r.Failure, disdel.Canceled) ||
		!strings.Contains(r.Failure.Error(), "interrupted") {
		t.Errorf("%v: %v", r.Status, r.Failure)
	}
}

func TestARunEndsAtItsDeadline(t *testing.T) {
	s := newScripted(func(disdel.Invocation) disdel.Outcome { return disdel.OutcomeUnknown })
	r := runScripted(t, context.Background(), s,
		func(spec *Spec) { spec.Job.Reliability.Deadline = disdel.Duration(20 * time.Millisecond) })
	if r.Status != disdel.StatusFailed || !errors.Is(r.Failure, disdel.Timeout) {
		t.Errorf("%v: %v", r.Status, r.Failure)
	}
}

func TestCheckPlatform(t *testing.T) {
	for name, r := range map[string]disdel.Resources{
		"above": {Memory: disdel.GB}, "below": {Memory: 64 * disdel.MB}, "timeout": {Timeout: disdel.Duration(time.Hour)},
	} {
		if err := CheckPlatform(disdel.Job{Resources: r}, platformLimits); !errors.Is(err, disdel.OverLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckPlatform(disdel.Job{Resources: disdel.Resources{Memory: 256 * disdel.MB}}, platformLimits); err != nil {
		t.Error(err)
	}
}

// Moments are averaged with the weights where the job asks for that, and only there.
func TestMomentsAreAveragedWhereTheJobAsks(t *testing.T) {
	var spec Spec
	spec.Job.Training.Optimizer.Adam = &disdel.Adam{LearningRate: 0.1}
	for policy, want := range map[disdel.StatePolicy]bool{disdel.StateAverage: true, disdel.StateReset: false, "": false} {
		spec.Job.Distribution.Aggregation.OptimizerState = policy
		if got := spec.averaged(); (got != nil) != want || want && got.Adam == nil {
			t.Errorf("%q: %+v", policy, got)
		}
	}
}
