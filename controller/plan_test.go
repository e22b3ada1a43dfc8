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
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var platformLimits = disdel.PlatformLimits{
	MinMemory: 128 * disdel.MB, MaxMemory: 512 * disdel.MB, MinTimeout: disdel.Millis(100 * time.Millisecond),
	MaxTimeout: disdel.Millis(5 * time.Minute), Concurrent: 30, PerMinute: 60, Pool: 2 * disdel.GB,
}

func planInput(t testing.TB) PlanInput {
	t.Helper()
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	in := PlanInput{
		ID: "job-1", Graph: g, Platform: platformLimits, Data: disdel.DataInfo{Name: "fashion-mnist", Checksum: "c", Train: 60000, HeldOut: 10000, Sample: []int{1, 28, 28}, Classes: 10, SampleSize: 784},
		Timeouts: func(disdel.TimingInput) disdel.Timing {
			d := disdel.Millis(time.Minute)
			return disdel.Timing{Timeouts: map[disdel.Task]disdel.Millis{disdel.TaskTrain: d, disdel.TaskAggregate: d, disdel.TaskEvaluate: d}, Source: "history"}
		},
	}
	in.Job.Training = disdel.Training{Epochs: 5, BatchSize: 64, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.001}}, ValidateEvery: 1}
	in.Job.Distribution.Sync = disdel.SyncEpoch
	return in
}

func TestPlanStartsAtTwoContainers(t *testing.T) {
	p, err := NewPlan(planInput(t))
	if err != nil {
		t.Fatal(err)
	}
	if p.Workers != 2 || p.Rounds != 5 || p.Epochs != 1 || p.Parallel != 2 || len(p.Levels) != 1 || p.HeldOut != 10000 {
		t.Errorf("%+v", p)
	}
	if diff := cmp.Diff([]disdel.Rows{{Start: 0, End: 30000}, {Start: 30000, End: 60000}}, p.Shards); diff != "" {
		t.Errorf("shards (-want +got):\n%s", diff)
	}
	for _, task := range []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate} {
		a, ok := p.Action(task)
		if !ok || a.Limits.Memory < a.Estimate.Total || a.Limits.Memory%disdel.MB != 0 || a.Limits.Timeout != disdel.Millis(time.Minute) {
			t.Errorf("%s: %+v", task, a.Limits)
		}
	}
}

// A smaller ceiling makes more, smaller shards (DiSDeL's rule); one below the model's own needs is refused.
func TestPlanFollowsTheCeiling(t *testing.T) {
	in := planInput(t)
	free, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	train, _ := free.Action(disdel.TaskTrain)
	in.Platform.MinMemory = disdel.MB
	in.Job.Resources.MaxMemory = train.Estimate.Total - 8*disdel.MB
	tight, err := NewPlan(in)
	if err != nil || tight.Workers <= 2 {
		t.Errorf("%d workers under %v, %v", tight.Workers, in.Job.Resources.MaxMemory, err)
	}
	in.Job.Resources.MaxMemory = train.Estimate.Total - train.Estimate.Dta - disdel.MB
	if _, err := NewPlan(in); !errors.Is(err, disdel.OverLimit) {
		t.Errorf("below the model's own needs: %v, want OverLimit", err)
	}
	in.Platform.MinMemory, in.Job.Resources.MaxMemory = 128*disdel.MB, 100*disdel.MB
	if _, err := NewPlan(in); !errors.Is(err, disdel.OverLimit) || !strings.Contains(err.Error(), "resources.maxMemory is 100 MB") {
		t.Errorf("below the platform's least: %v, want OverLimit", err)
	}
	in = planInput(t)
	in.Job.Distribution.Workers, in.Job.Resources.Memory = 2, 30*disdel.MB
	if _, err := NewPlan(in); !errors.Is(err, disdel.OverLimit) || !strings.Contains(err.Error(), "resources.memory") {
		t.Errorf("the job's own memory: %v, want OverLimit that names it", err)
	}
}

// Algorithm 1, lines 12 and 13: a job that is known runs as it ran.
func TestKnownJobsRunAsTheyRan(t *testing.T) {
	in := planInput(t)
	in.History = []disdel.Record{
		{ID: "job-0", Status: disdel.StatusFailed, Data: in.Data, Plan: disdel.Plan{Workers: 9}},
		{ID: "job-00", Status: disdel.StatusSucceeded, Data: in.Data, Plan: disdel.Plan{Workers: 4}},
	}
	p, err := NewPlan(in)
	if err != nil || p.Workers != 4 || !strings.Contains(strings.Join(p.Reasons, "\n"), "job-00") {
		t.Errorf("%d workers, %v", p.Workers, err)
	}
	in.Job.Distribution.Workers = 3
	if p, err := NewPlan(in); err != nil || p.Workers != 3 {
		t.Errorf("the job file says 3: %d workers, %v", p.Workers, err)
	}
}

func TestSyncEndIsOneRound(t *testing.T) {
	in := planInput(t)
	in.Job.Distribution.Sync = disdel.SyncEnd
	if p, err := NewPlan(in); err != nil || p.Rounds != 1 || p.Epochs != 5 {
		t.Errorf("%d rounds of %d epochs, %v", p.Rounds, p.Epochs, err)
	}
}

// A plan never exceeds a limit, and its tree takes every worker up to one root.
func TestPlansKeepTheLimits(t *testing.T) {
	base := planInput(t)
	rapid.Check(t, func(t *rapid.T) {
		in := base
		in.Platform.MaxMemory = disdel.Bytes(rapid.IntRange(128, 1024).Draw(t, "max")) * disdel.MB
		in.Platform.Pool = disdel.Bytes(rapid.IntRange(128, 2048).Draw(t, "pool")) * disdel.MB
		in.Job.Training.BatchSize = rapid.IntRange(1, 512).Draw(t, "batch")
		in.Job.Distribution.Workers = rapid.IntRange(0, 40).Draw(t, "workers")
		p, err := NewPlan(in)
		if err != nil {
			if !errors.Is(err, disdel.OverLimit) {
				t.Fatal(err)
			}
			return
		}
		for _, a := range p.Actions {
			if a.Limits.Memory > in.Platform.MaxMemory || a.Limits.Memory < a.Estimate.Total || a.Limits.Timeout > in.Platform.MaxTimeout {
				t.Fatalf("%s: %+v for %v", a.Task, a.Limits, a.Estimate.Total)
			}
		}
		if train, _ := p.Action(disdel.TaskTrain); disdel.Bytes(p.Parallel)*train.Limits.Memory > in.Platform.Pool || p.Parallel < 1 {
			t.Fatalf("%d at once in %v", p.Parallel, in.Platform.Pool)
		}
		rows := 0
		for _, s := range p.Shards {
			rows += s.Len()
		}
		if rows != in.Data.Train || len(p.Shards) != p.Workers {
			t.Fatalf("%d rows in %d shards", rows, len(p.Shards))
		}
	})
}

func TestTreesTakeEveryMemberOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers, fanIn := rapid.IntRange(1, 300).Draw(t, "workers"), rapid.IntRange(2, 20).Draw(t, "fanIn")
		members := workers
		levels := Tree(workers, fanIn)
		for h, l := range levels {
			next := 0
			for _, c := range l.Clusters {
				if len(c) > fanIn || len(c) == 0 {
					t.Fatalf("a cluster of %d, fan-in %d", len(c), fanIn)
				}
				for _, m := range c {
					if m != next {
						t.Fatalf("member %d where %d belongs", m, next)
					}
					next++
				}
			}
			if next != members || l.Height != h+1 {
				t.Fatalf("level %d takes %d of %d", l.Height, next, members)
			}
			members = len(l.Clusters)
		}
		if members != 1 {
			t.Fatalf("%d roots", members)
		}
	})
}

// Eq. 6: two trains of 0.5 GB from 0 s to 10 s and one aggregation of 0.25 GB to 12 s cost 12 s x 1.25 GB.
func TestPaperEquation6(t *testing.T) {
	at := func(task disdel.Task, member, from, to int, memory disdel.Bytes) disdel.Activation {
		base := time.Unix(1000, 0)
		return disdel.Activation{
			Invocation: disdel.Invocation{Task: task, Member: member, Limits: disdel.Limits{Memory: memory}},
			Start:      base.Add(time.Duration(from) * time.Second), End: base.Add(time.Duration(to) * time.Second),
		}
	}
	list := []disdel.Activation{at(disdel.TaskTrain, 0, 0, 10, disdel.GB/2), at(disdel.TaskTrain, 1, 1, 9, disdel.GB/2), at(disdel.TaskAggregate, 0, 10, 12, disdel.GB/4), {}}
	if got := Cost(list); got != 15 {
		t.Errorf("%g GB-s, want 15", got)
	}
	if Cost(nil) != 0 {
		t.Error("nothing costs something")
	}
}

// Resolve adds to the file's own faults those that need the network and the data, in file order.
func TestResolveListsEveryFault(t *testing.T) {
	ctx := context.Background()
	store, err := dataset.OpenStore(ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	digits, err := dataset.Digits()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Add(ctx, digits, false); err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{"model.name": 3, "data.source": 5, "training.batchSize": 9, "data.checksum": 6, "model": 2}
	locate := func(path string) (int, int) { return lines[path], 1 }
	job := disdel.Job{}
	job.Model.Name, job.Data.Source, job.Training.BatchSize, job.Training.Loss = "lenet-5", "dataset://digts", 64, "crossEntropy"
	for _, c := range []struct {
		change func(*disdel.Job)
		want   []string
	}{
		{func(*disdel.Job) {}, []string{"model.name", "data.source", "training.epochs"}},
		{func(j *disdel.Job) { j.Data.Source = "dataset://digits"; j.Training.BatchSize = 2000 }, []string{"model.name", "training.batchSize", "training.epochs"}},
		{func(j *disdel.Job) {
			j.Data.Source = "dataset://digits"
			j.Data.Checksum = "sha256:0"
			j.Model.Name = "digits-cnn"
		}, []string{"data.checksum", "training.epochs"}},
		{func(j *disdel.Job) { j.Data.Source = "dataset://digits"; j.Model.Name = "vgg16" }, []string{"model", "training.epochs"}},
		{func(j *disdel.Job) {
			j.Data.Source, j.Training.Loss = "dataset://digits", "binaryCrossEntropy"
			j.Model.Name, j.Model.Layers = "", []disdel.Layer{{Kind: "dense", Units: 3}}
		}, []string{"training.loss", "model", "training.epochs"}},
	} {
		j := job
		c.change(&j)
		_, err := Resolve(ctx, j, store, "job.yaml", locate, []disdel.Fault{{Path: "training.epochs", Line: 20, Column: 3, Msg: "must be at least 1"}})
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
	mine := &disdel.CustomNetwork{Name: "mine", Input: []int{1, 8, 8}, Classes: 10, Params: []disdel.CustomParam{{Name: "w", Shape: []int{64, 10}, Trainable: true}}}
	for hint, d := range map[string]*disdel.CustomNetwork{"--action": nil, "custom: yours": {Name: "yours"}} {
		own.Model.Description = d
		if _, err := Resolve(ctx, own, store, "job.yaml", locate, nil); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("a network of its own binary: got %v, want %s", err, hint)
		}
	}
	own.Model.Description = mine
	if r, err := Resolve(ctx, own, store, "job.yaml", locate, nil); err != nil || r.Graph.Custom() == nil || r.Network.Custom != mine {
		t.Errorf("a described network: %v", err)
	}
	job.Model.Name, job.Data.Source = "digits-cnn", "dataset://digits"
	if r, err := Resolve(ctx, job, store, "job.yaml", locate, nil); err != nil || r.Graph == nil || r.Data.Train != 1797 {
		t.Errorf("a good job: %v", err)
	}
}

// Of nine train actions of which two run at once the last starts when four before it have ended: it is not lost until then.
func TestInvocationsWaitForTheirTurn(t *testing.T) {
	minute := disdel.Millis(time.Minute)
	spec := Spec{Plan: disdel.Plan{Workers: 9, Parallel: 2, Shards: make([]disdel.Rows, 9), Actions: []disdel.ActionPlan{{Task: disdel.TaskTrain, Limits: disdel.Limits{Timeout: minute}}}}}
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

// A train action is told all that its job file says of training, and where in the job it is: schedules go by the latter.
func TestTrainActionsAreToldHowToLearn(t *testing.T) {
	in := planInput(t)
	training := &in.Job.Training
	training.Epochs, training.ClipNorm, training.Backend, training.Loss = 6, 2.5, "gorgonia", "mse"
	training.Schedule = &disdel.Schedule{Step: &disdel.StepSchedule{Every: 2, Factor: 0.5}}
	p, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{ID: in.ID, Job: in.Job, Plan: p}
	var req disdel.TrainRequest
	if err := json.Unmarshal(spec.train(work{round: 4, attempt: 1}, 1, "").Params, &req); err != nil {
		t.Fatal(err)
	}
	want := disdel.TrainRequest{
		Job: in.ID, Round: 4, Worker: 1, Attempt: 1, Shard: p.Shards[1], Epochs: 1, Epoch: 4, JobEpochs: 6, BatchSize: 64,
		Optimizer: training.Optimizer, Schedule: training.Schedule, ClipNorm: 2.5, Loss: "mse", Backend: "gorgonia",
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
	a := disdel.Activation{ID: id, Invocation: inv, Outcome: s.outcome(inv), Start: time.Unix(100, 0), End: time.Unix(101, 0)}
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
			disdel.TaskTrain: disdel.TrainResult{Loss: 1, Samples: 10}, disdel.TaskAggregate: disdel.AggregateResult{Checksum: "sha256:1", Size: 9},
			disdel.TaskEvaluate: disdel.EvaluateResult{Loss: 0.5, Accuracy: 0.75},
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

func (s *scripted) Commit(_ context.Context, _ *disdel.Record, _ disdel.Network, w disdel.ModelRef) (disdel.ModelRef, error) {
	w.Version = 3
	return w, nil
}

func (s *scripted) Forget(context.Context, disdel.JobID, int) error { return nil }

func (s *scripted) Discard(context.Context, string) error { return nil }

func runScripted(t *testing.T, ctx context.Context, s *scripted, change func(*Spec)) *disdel.Record {
	t.Helper()
	in := planInput(t)
	in.Job.Training.Epochs = 2
	p, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	spec := Spec{ID: in.ID, Job: in.Job, Plan: p, Models: "mem://", Output: "w", Threads: 1}
	if change != nil {
		change(&spec)
	}
	c := New(Config{Invoker: s, Recorder: s, Board: s, Shelf: s, Log: log, Tick: time.Millisecond, Grace: 50 * time.Millisecond})
	r, err := c.Run(ctx, spec, in.Data)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.saved); s.removed != 1 || n < 2 || s.saved[0].Status != disdel.StatusRunning || s.saved[n-1].Status != r.Status {
		t.Errorf("package removed %d times, %d records saved", s.removed, len(s.saved))
	}
	return r
}

func TestARunKeepsEverything(t *testing.T) {
	s := newScripted(func(disdel.Invocation) disdel.Outcome { return disdel.OutcomeSuccess })
	r := runScripted(t, context.Background(), s, nil)
	if r.Status != disdel.StatusSucceeded || r.Accuracy != 0.75 || r.Loss != 0.5 || len(r.Rounds) != 2 || len(r.Activations) != 8 || r.CostGBs == 0 {
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
	r := runScripted(t, context.Background(), s, func(spec *Spec) { spec.Job.Reliability.Retries.MemoryFactor = 2 }) // and no retries
	if r.Status != disdel.StatusFailed || !errors.Is(r.Failure, disdel.Crashed) || !strings.Contains(r.Failure.Error(), "round 1/train/1") {
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
	if r.Status != disdel.StatusCanceled || !errors.Is(r.Failure, disdel.Canceled) || !strings.Contains(r.Failure.Error(), "interrupted") {
		t.Errorf("%v: %v", r.Status, r.Failure)
	}
}

func TestARunEndsAtItsDeadline(t *testing.T) {
	s := newScripted(func(disdel.Invocation) disdel.Outcome { return disdel.OutcomeUnknown })
	r := runScripted(t, context.Background(), s, func(spec *Spec) { spec.Job.Reliability.Deadline = disdel.Duration(20 * time.Millisecond) })
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

// The rounds of an epoch follow each other, the last takes what is left, and every worker has a batch in each, also where shards
// differ by one.
func TestRoundsOfBatchesCoverAnEpoch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, workers := rapid.IntRange(1, 400).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "workers")
		workers = min(workers, rows)
		batch, k, epochs := rapid.IntRange(1, 40).Draw(t, "batch"), rapid.IntRange(1, 12).Draw(t, "k"), rapid.IntRange(1, 3).Draw(t, "epochs")
		b := planBuilder{}
		b.Job.Training.BatchSize, b.Job.Training.Epochs = batch, epochs
		b.plan.Shards = dataset.Shards(rows, workers)
		b.every(k)
		s := Spec{Job: b.Job, Plan: b.plan}
		for _, shard := range b.plan.Shards {
			batches := (shard.Len() + batch - 1) / batch
			done, epoch := 0, 0
			for round := range s.Plan.Rounds {
				at, first, n, take := s.stretch(round)
				if at != epoch || first != done || n != 1 || first >= batches {
					t.Fatalf("round %d begins at batch %d of epoch %d with %d epochs; %d batches of epoch %d were done of %d", round, first, at, n, done, epoch, batches)
				}
				if done += take; take == 0 {
					done, epoch = 0, epoch+1
				}
			}
			if epoch != epochs || done != 0 {
				t.Fatalf("it ends at batch %d of epoch %d", done, epoch)
			}
		}
	})
}

// An aggregation action's memory does not grow with its updates, so that what bounds them is how much it reads.
func TestFanInGoesByTheUpdatesSize(t *testing.T) {
	for update, want := range map[disdel.Bytes]int{
		0: 64, 250 * disdel.KB: 64, 32 * disdel.MB: 64, 64 * disdel.MB: 32, 102 * disdel.MB: 20, 550 * disdel.MB: 3, 3 * disdel.GB: 2,
	} {
		if got := FanIn(update); got != want {
			t.Errorf("%d updates of %v, want %d", got, update, want)
		}
	}
}
