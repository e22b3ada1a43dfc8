package controller

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

func TestAChangedJobGoesOnOnlyWhereItsRoundsDo(t *testing.T) {
	spec := func(rounds, epochs, per, batches, batch, workers int) Spec {
		var s Spec
		s.Job.Training.Epochs, s.Job.Training.BatchSize = epochs, batch
		s.Plan = disdel.Plan{Rounds: rounds, Epochs: per, Batches: batches, Workers: workers}
		return s
	}
	epochs, every := spec(4, 4, 1, 0, 16, 2), spec(8, 4, 1, 5, 16, 2)
	for name, c := range map[string]struct {
		was, now Spec
		round    int
		why      string // it cannot continue; "": it can
	}{
		"as it was":   {epochs, epochs, 3, ""},
		"more epochs": {epochs, spec(9, 9, 1, 0, 16, 2), 3, ""},
		"fewer epochs": {
			epochs, spec(3, 3, 1, 0, 16, 2), 3,
			"the job now has 3 rounds, and its checkpoint is of round 4",
		},
		"another batch": {epochs, spec(4, 4, 1, 0, 8, 2), 3, ""},
		"other workers": {epochs, spec(4, 4, 1, 0, 16, 3), 3, ""},
		"rounds of batches": {
			epochs, every, 3,
			"round 4 began at batch 1 of epoch 4, and now begins at batch 6 of epoch 2",
		},
		"epochs instead": {
			every, spec(8, 8, 1, 0, 16, 2), 3,
			"round 4 began at batch 6 of epoch 2, and now begins at batch 1 of epoch 4",
		},
		"in an epoch": {every, every, 3, ""},
		"in an epoch, another batch": {
			every, spec(8, 4, 1, 5, 8, 2), 3,
			"round 4 begins in the middle of an epoch, and batches had 16 rows, not 8",
		},
		"in an epoch, other workers": {
			every, spec(8, 4, 1, 5, 16, 3), 3,
			"round 4 begins in the middle of an epoch, which 2 workers began and not 3",
		},
		"in an epoch, other K": {
			every, spec(8, 4, 1, 6, 16, 2), 3,
			"round 4 began at batch 6 of epoch 2, and now begins at batch 7 of epoch 2",
		},
		"between epochs, another batch": {every, spec(8, 4, 1, 5, 8, 2), 4, ""},
		"between epochs, more in each": {
			every, spec(16, 4, 1, 2, 16, 2), 4,
			"round 5 began at batch 1 of epoch 3, and now begins at batch 1 of epoch 2",
		},
		"more epochs of as many rounds": {every, spec(12, 6, 1, 5, 16, 2), 5, ""},
		"all in one round, from a record": {
			epochs, spec(1, 4, 4, 0, 16, 2), 1,
			"the job now has 1 round, and its checkpoint is of round 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := disdel.Record{ID: "job-1", Job: c.was.Job, Plan: c.was.Plan}
			err := CheckResume(r, c.now, disdel.Checkpoint{Round: c.round})
			why := ""
			if err != nil {
				why = disdel.AsError(err).Msg
			}
			if why != c.why || err != nil && disdel.KindOf(err) != disdel.Conflict {
				t.Errorf("%v, want %q", err, c.why)
			}
		})
	}
}

// A job that ended well is not trained further, also where the job now has more epochs; a failed one is.
func TestAFinishedTrainingIsNotContinued(t *testing.T) {
	var now Spec
	now.Job.Training.Epochs, now.Plan = 6, disdel.Plan{Rounds: 6, Epochs: 1, Workers: 2}
	for status, refused := range map[disdel.Status]bool{disdel.StatusSucceeded: true, disdel.StatusFailed: false} {
		r := disdel.Record{Status: status, Plan: disdel.Plan{Rounds: 4, Epochs: 1, Workers: 2}}
		r.Job.Training.Epochs = 4
		err := CheckResume(r, now, disdel.Checkpoint{Round: 4})
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "its training has ended") {
			t.Errorf("%s: %v", status, err)
		}
	}
}

func halved(task disdel.Task, from, to int) disdel.Adjustment {
	return disdel.Adjustment{
		Task: task, Field: disdel.FieldBatchSize, From: disdel.Quantity{Count: from},
		To: disdel.Quantity{Count: to},
	}
}

func TestTheBatchThatFailuresLedToIsKept(t *testing.T) {
	var r disdel.Record
	r.Job.Training.BatchSize = 64
	r.Adjustments = []disdel.Adjustment{
		{
			Task: disdel.TaskTrain, Field: disdel.FieldMemory, From: disdel.Quantity{Memory: 64},
			To: disdel.Quantity{Memory: 128},
		},
		halved(disdel.TaskTrain, 64, 32),
		halved(disdel.TaskEvaluate, 32, 16),
		halved(disdel.TaskTrain, 32, 8),
		halved(disdel.TaskTrain, 50, 25), // of a batch that somebody has changed since
	}
	if n := AdjustedJob(r).Training.BatchSize; n != 8 {
		t.Errorf("batch %d, want 8", n)
	}
}

// A job that is taken up again knows the rounds that were done, one too that its controller did not live to keep, and
// whose weights are the best.
func TestAResumeKnowsWhatWasDone(t *testing.T) {
	trained := func(round, worker int, loss float64) disdel.Activation {
		return disdel.Activation{
			Invocation: disdel.Invocation{Task: disdel.TaskTrain, Round: round, Member: worker},
			Outcome:    disdel.OutcomeSuccess, Loss: &loss,
		}
	}
	r := disdel.Record{
		Plan:        disdel.Plan{Workers: 2, Rounds: 9, Shards: []disdel.RowRange{{End: 1}, {Start: 1, End: 4}}},
		Rounds:      []disdel.Round{{Round: 0, TrainLoss: 3}, {Round: 1, TrainLoss: 2}},
		Activations: []disdel.Activation{trained(1, 0, 9), trained(2, 0, 1), trained(2, 1, 2)},
		Best:        &disdel.Best{Round: 1}, Stopped: "enough",
	}
	spec := Spec{Plan: r.Plan}
	mustTakeUp(t, r, &spec, disdel.Checkpoint{Round: 3})
	if len(spec.Done) != 3 || spec.Done[2].TrainLoss != 1.75 || spec.Best == nil || spec.Stopped != "" {
		t.Errorf("%+v, best %v, %q", spec.Done, spec.Best, spec.Stopped)
	}
	spec = Spec{Plan: r.Plan}
	mustTakeUp(t, r, &spec, disdel.Checkpoint{Round: 1})
	if len(spec.Done) != 1 || spec.Best != nil {
		t.Errorf("%+v, best %v: its weights are made anew", spec.Done, spec.Best)
	}
	spec = Spec{Plan: r.Plan}
	mustTakeUp(t, r, &spec, disdel.Checkpoint{Round: 9}) // it stopped early, after three rounds
	if len(spec.Done) != 3 || spec.Done[2].Round != 2 || spec.Stopped != "enough" {
		t.Errorf("%+v, %q", spec.Done, spec.Stopped)
	}
	for rounds, ok := range map[int]bool{9: true, 12: false, 5: false} {
		spec := Spec{Plan: disdel.Plan{Workers: 2, Rounds: rounds, Epochs: 1, Shards: r.Plan.Shards}}
		if err := CheckResume(r, spec, disdel.Checkpoint{Round: 9}); (err == nil) != ok {
			t.Errorf("%d rounds: %v", rounds, err)
		}
	}
}

// A job whose evaluation always fails has its model and its checkpoints. A resume repeats only the evaluation,
// describes the model anew, and adds its time to that of the first run.
func TestAnEvaluationThatFailsDoesNotCostTheModel(t *testing.T) {
	for _, outcome := range []disdel.Outcome{disdel.OutcomeTimeout, disdel.OutcomeOutOfMemory} {
		in(t, func(t *testing.T, s *surroundings) {
			fails, checkpoints := true, "discard "+CheckpointFolder("job-1")
			s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
				time.Sleep(time.Second)
				a, err := passes(ctx, inv)
				if inv.Task == disdel.TaskEvaluate && fails {
					a.Outcome, a.Result, a.Failure = outcome, nil, &disdel.Error{Kind: disdel.Timeout, Msg: "no end"}
				}
				return a, err
			}
			spec := runSpec(1, 2)
			spec.Plan.HeldOut, spec.Job.Training.ValidateEvery = 100, 0
			spec.Job.Reliability.CheckpointEvery, spec.Job.Reliability.Retries.Limit = 1, 1
			rec, err := s.controller().Run(t.Context(), spec, disdel.DataInfo{})
			if err != nil || rec.Status != disdel.StatusSucceeded || rec.Model == nil || rec.Unevaluated == nil ||
				len(rec.Warnings) == 0 {
				t.Fatalf("%v: %+v, %v", outcome, rec, err)
			}
			if len(rec.Rounds) != 2 || rec.Rounds[1].NotEvaluated == "" {
				t.Errorf("rounds %+v", rec.Rounds)
			}
			if slices.Contains(s.calls, checkpoints) {
				t.Error("it has no checkpoint for a later evaluation")
			}
			took, resumed := rec.Phases.Total, time.Now()
			fails, s.calls = false, nil
			mustTakeUp(t, *rec, &spec, disdel.Checkpoint{Round: 2, Path: "p"})
			spec.Resumes = 1
			rec, err = s.controller().Resume(t.Context(), spec, *rec)
			if err != nil || rec.Status != disdel.StatusSucceeded || rec.Unevaluated != nil || len(rec.Rounds) != 2 ||
				rec.Rounds[1].Accuracy == nil {
				t.Fatalf("%v: %+v, %v", outcome, rec, err)
			}
			if all := took + disdel.Millis(time.Since(resumed)); took == 0 || rec.Phases.Total != all {
				t.Errorf("both runs together took %v, want %v", rec.Phases.Total, all)
			}
			if !slices.Contains(s.calls, checkpoints) {
				t.Error("its checkpoints stay")
			}
			for _, call := range s.calls {
				if strings.Contains(call, "/train/") {
					t.Errorf("%s: it is trained already", call)
				}
			}
		})
	}
}

// A resumed job keeps what a policy had changed of its setting, but for what the user has changed since.
func TestAResumeKeepsWhatTheUserDidNotChange(t *testing.T) {
	for user := range 1 << 4 {
		spec := runSpec(2, 9)
		plan := spec.Plan
		spec.Replan = func(job disdel.Job) (disdel.Plan, error) {
			p := plan
			p.Workers, p.Batches = job.Distribution.Workers, job.Distribution.Sync.Every()
			return p, nil
		}
		change := func(j *disdel.Job, workers int, memory disdel.Bytes, fanIn int, sync disdel.Sync) {
			for i, set := range []func(){
				func() { j.Distribution.Workers = workers }, func() { j.Resources.Memory = memory },
				func() { j.Distribution.Aggregation.FanIn = fanIn }, func() { j.Distribution.Sync = sync },
			} {
				if user>>i&1 > 0 {
					set()
				}
			}
			spec.Plan, _ = spec.Replan(*j) //nolint:errcheck // it has none
		}
		spec.Job.Distribution = disdel.Distribution{
			Workers: 2, Sync: disdel.SyncEvery(3), Aggregation: disdel.Aggregation{FanIn: 2},
		}
		spec.Job.Resources.Memory = 512 * disdel.MB
		spec.Plan, _ = spec.Replan(spec.Job) //nolint:errcheck // it has none
		r := disdel.Record{ID: spec.ID, Job: spec.Job, Plan: spec.Plan}
		second := spec.Plan.AsStage(spec.Job).Starting(1, disdel.Position{Epoch: 1})
		second.Setting = disdel.Setting{Workers: 3, Memory: disdel.GB, FanIn: 4, AverageEvery: 6}
		r.Stages = []disdel.Stage{spec.Plan.AsStage(spec.Job), second}
		r.Decisions = []disdel.Decision{{Round: 5}}
		want := scheduler.ApplySetting(spec.Job, second.Setting, 0)
		change(&want, 5, 700*disdel.MB, 3, disdel.SyncEpoch)
		change(&spec.Job, 5, 700*disdel.MB, 3, disdel.SyncEpoch)
		mustTakeUp(t, r, &spec, disdel.Checkpoint{Round: 4})
		setting := disdel.Setting{
			Workers: want.Distribution.Workers, Memory: want.Resources.Memory,
			FanIn: want.Distribution.Aggregation.FanIn, AverageEvery: want.Distribution.Sync.Every(),
		}
		if spec.Stage.Setting != setting || (len(spec.Decisions) > 0) != (user == 0) {
			t.Errorf("%04b: it continues as %+v, want %+v; decisions %v", user, spec.Stage.Setting, setting,
				spec.Decisions)
		}
	}
}

func mustTakeUp(t *testing.T, r disdel.Record, spec *Spec, c disdel.Checkpoint) {
	t.Helper()
	if err := ContinueFrom(r, spec, c); err != nil {
		t.Fatal(err)
	}
}

// A checkpoint ends the training of its round. What the record tells of the round is therefore saved before.
func TestARoundIsSavedBeforeItsCheckpoint(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		spec, aggregations := runSpec(2, 3), 0
		spec.Job.Reliability.CheckpointEvery = 1
		s.invoke = func(inv disdel.Invocation) error {
			if inv.Task != disdel.TaskAggregate || inv.Round == 2 {
				return nil
			}
			aggregations++
			s.mu.Lock()
			defer s.mu.Unlock()
			if _, ok := rebuilt(s.saved[len(s.saved)-1], inv.Round); !ok {
				t.Errorf("the record lacks the workers of round %d", inv.Round)
			}
			return nil
		}
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			time.Sleep(100 * time.Millisecond)
			return passes(ctx, inv)
		}
		if rec, err := s.controller().Run(t.Context(), spec, disdel.DataInfo{}); err != nil || rec.Failure != nil {
			t.Fatalf("%v, %v", rec.Failure, err)
		}
		if aggregations != 2 {
			t.Errorf("%d aggregations with a checkpoint", aggregations)
		}
	})
}

// A resumed job uses the threads that it is given, also where its plan has others, or does not say.
func TestAResumeKeepsTheThreadsThatItIsGiven(t *testing.T) {
	for _, c := range []struct{ plan, given, want int }{{2, 4, 4}, {2, 2, 2}, {0, 0, 0}, {0, 3, 3}} {
		r := disdel.Record{Plan: disdel.Plan{Workers: 2, Rounds: 9, Threads: c.plan, Shards: []disdel.RowRange{{End: 4}}}}
		spec := Spec{Plan: r.Plan, Threads: c.given}
		mustTakeUp(t, r, &spec, disdel.Checkpoint{Round: 3})
		if spec.Threads != c.want {
			t.Errorf("%+v: %d threads", c, spec.Threads)
		}
	}
}

// full is a recorder that fails while its flag is up.
type full struct{ is bool }

func (f *full) Save(context.Context, *disdel.Record) error {
	if f.is {
		return &disdel.Error{Kind: disdel.Unavailable, Msg: "no room"}
	}
	return nil
}

// A history that fails for a while is logged once each time, and not at all when the run is being ended.
func TestAFailingHistoryIsLoggedOnce(t *testing.T) {
	var s saver
	to, log := &full{}, logrus.New()
	log.SetOutput(io.Discard)
	hook := logtest.NewLocal(log)
	write := func(ctx context.Context, fails bool, logged int) {
		t.Helper()
		to.is = fails
		s.write(ctx, to, &disdel.Record{}, log)
		if n := len(hook.AllEntries()); n != logged {
			t.Fatalf("%d messages, want %d", n, logged)
		}
	}
	write(t.Context(), false, 0)
	write(t.Context(), true, 1)
	write(t.Context(), true, 1)
	write(t.Context(), false, 1)
	write(t.Context(), true, 2)
	write(t.Context(), false, 2)
	ended, end := context.WithCancel(t.Context())
	end()
	write(ended, true, 2)
}

// A job goes on with the round after its checkpoint. If it had stopped early, only the end of its last round is left.
func TestAJobGoesOnAfterItsCheckpointsRound(t *testing.T) {
	for _, c := range []struct{ from, done, at int }{{9, 3, 2}, {9, 9, 8}, {3, 1, 3}, {3, 3, 3}} {
		spec := runSpec(2, 9)
		spec.From = &disdel.Checkpoint{Round: c.from, Path: "p"}
		for round := range c.done {
			spec.Done = append(spec.Done, disdel.Round{Round: round, TrainLoss: float64(round)})
		}
		m := NewManager(spec)
		m.begin()
		if m.round != c.at || m.last != (c.from == 9) {
			t.Errorf("%+v: it goes on with round %d; last: %v", c, m.round, m.last)
		}
	}
}

// A process may be killed after it has saved that a round is the best so far, and before it has saved that the round's
// weights are written. The file may have them or not. So whoever continues evaluates the round and writes it again.
func TestTheBestRoundIsWrittenAgainIfTheRecordDoesNotHaveIt(t *testing.T) {
	for name, c := range map[string]struct {
		first, second float64 // accuracies
		lost          bool    // the record lacks the second
		again         bool
	}{
		"the last is better": {0.2, 0.3, false, true}, "the first is better": {0.3, 0.2, false, false},
		"the record lacks the last": {0.2, 0, true, true},
	} {
		spec := runSpec(1, 2)
		spec.Plan.HeldOut, spec.Job.Training.ValidateEvery = 10, 1
		spec.Job.Training.EarlyStop = &disdel.EarlyStop{
			Metric: disdel.MetricAccuracy, Patience: 5, Keep: disdel.KeepBest,
		}
		rec := disdel.Record{ID: "job-1", Plan: spec.Plan, Job: spec.Job}
		for i, accuracy := range []float64{c.first, c.second} {
			if i == 0 || !c.lost {
				rec.Rounds = append(rec.Rounds, disdel.Round{Round: i, Loss: new(1.0), Accuracy: &accuracy})
			}
		}
		rec.Best = &disdel.Best{Round: 0, Loss: 1, Accuracy: c.first, Checksum: "of the first"}
		if err := ContinueFrom(rec, &spec, disdel.Checkpoint{Round: 2, Path: "p"}); err != nil {
			t.Fatal(err)
		}
		orders := NewManager(spec).Step(StartedEvent{})
		inv, invokes := orders[0].(InvokeOrder)
		if invokes != c.again || invokes && inv.Invocation.Task != disdel.TaskEvaluate {
			t.Errorf("%s: %+v", name, orders)
		}
	}
}
