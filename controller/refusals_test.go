package controller

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logrustest "github.com/sirupsen/logrus/hooks/test"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

var errGone = &disdel.Error{Kind: disdel.Unavailable, Op: "ask", Msg: "no answer"}

// An action whose limits were raised is created before it is invoked. If the platform refuses that, the invocation ends
// with the platform's reason, and the next one tries again.
func TestAnActionThatIsNotCreatedIsARefusal(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		refuses := true
		s.prepare = func(context.Context) error {
			if refuses {
				return errGone
			}
			return nil
		}
		r := &run{
			c: s.controller(), spec: runSpec(1, 1), delays: t.Context(), prepared: map[disdel.ActionName]*preparedAction{},
			accepted: make(chan disdel.Invocation, 1), log: logrus.New(),
		}
		limits := disdel.Limits{Memory: 2 * disdel.GB}
		inv := disdel.Invocation{Action: "p/evaluate-2048mb", Task: disdel.TaskEvaluate, Limits: limits}
		e, ok := r.runInvocation(t.Context(), inv, 0).(RefusedEvent)
		if !ok || e.Activation.Failure == nil || e.Activation.Failure.Msg != errGone.Msg {
			t.Errorf("%+v", e)
		}
		if refuses = false; slices.Contains(s.calls, "invoke ") {
			t.Errorf("invoked without its action: %v", s.calls)
		}
		if e, ok := r.runInvocation(t.Context(), inv, 0).(EndedEvent); !ok || e.Activation.Failure != nil {
			t.Errorf("the second try: %+v", e)
		}
	})
}

// While the platform creates one action, invocations of another one do not wait.
func TestAnActionThatIsCreatedSlowlyHoldsUpNoOther(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		s.prepare = func(ctx context.Context) error { time.Sleep(time.Minute); return ctx.Err() }
		there := disdel.Invocation{Action: "p/train", Task: disdel.TaskEvaluate, Limits: disdel.Limits{Memory: disdel.GB}}
		r := &run{
			c: s.controller(), spec: runSpec(1, 1), delays: t.Context(), log: logrus.New(),
			accepted: make(chan disdel.Invocation, 2),
			prepared: map[disdel.ActionName]*preparedAction{there.Action: {limits: there.Limits}},
		}
		slow := there
		slow.Action, slow.Limits.Memory = "p/train-2048mb", 2*disdel.GB
		began := time.Now()
		r.running.Go(func() { r.runInvocation(t.Context(), slow, 0) })
		synctest.Wait()
		r.runInvocation(t.Context(), there, 0)
		if took := time.Since(began); took > 0 {
			t.Errorf("it waited %v", took)
		}
		r.running.Wait()
	})
}

// A worker that stopped at its deadline and answers nonsense fails the job; a good answer starts its next leg.
func TestALegThatAnswersNonsenseFailsTheJob(t *testing.T) {
	for result, fails := range map[string]bool{`"no result"`: true, `{"batchesDone": 3}`: false} {
		m := NewManager(runSpec(1, 1))
		orders := m.Step(StartedEvent{})
		a := disdel.Activation{
			Invocation: orders[len(orders)-1].(InvokeOrder).Invocation, Outcome: disdel.OutcomePaused, Result: []byte(result),
		}
		orders = m.Step(EndedEvent{Activation: a})
		end, ended := orders[len(orders)-1].(FinishOrder)
		if ended != fails || fails &&
			(end.Failure == nil || !strings.Contains(end.Failure.Msg, "something else than its result")) {
			t.Errorf("%s: %+v", result, orders)
		}
	}
}

// A decision needs a planner.
func TestADecisionWithoutAPlannerIsRefused(t *testing.T) {
	m := NewManager(runSpec(1, 1))
	if _, err := m.candidate(disdel.Decision{Changed: true}, 1, disdel.Position{}); !errors.Is(err, disdel.Invalid) ||
		!strings.Contains(err.Error(), "cannot be made anew") {
		t.Error(err)
	}
}

// A decision starts a stage only if it changes something: workers, the batch, or how steps save memory.
func TestOnlyAnotherSettingStartsAStage(t *testing.T) {
	m := NewManager(runSpec(1, 1))
	saved, other := disdel.StepMemory{MicroBatch: 8}, disdel.StepMemory{MicroBatch: 4}
	m.spec.Stage = &disdel.Stage{Setting: m.setting(), BatchSize: 16, StepMemory: saved}
	more := m.setting()
	more.Workers++
	for name, c := range map[string]struct {
		d    disdel.Decision
		want bool
	}{
		"nothing":         {disdel.Decision{Next: m.setting()}, false},
		"the same":        {disdel.Decision{Next: m.setting(), BatchSize: 16, StepMemory: saved}, false},
		"workers":         {disdel.Decision{Next: more}, true},
		"another batch":   {disdel.Decision{Next: m.setting(), BatchSize: 8}, true},
		"smaller steps":   {disdel.Decision{Next: m.setting(), StepMemory: other}, true},
		"all of the same": {disdel.Decision{Next: m.setting(), BatchSize: 16}, false},
	} {
		if got := m.changes(c.d); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A probe's rate is its rows by the time that it computed; its start-up is what it did before.
func TestAProbeMeasuresARate(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
			a, err := passes(ctx, inv)
			r := disdel.TrainResult{Rows: 30}
			r.Usage.Phases = map[string]disdel.Millis{"compute": 2e9, "load": 1e9, "fetch": 3e9}
			a.Result, _ = json.Marshal(r)
			a.InitTime, a.Peak = 5e9, disdel.MB
			return a, err
		}
		rate, err := s.controller().Probe(t.Context(), runSpec(1, 1))
		if err != nil || rate.RowsPerSecond != 15 || rate.StartUp != 9e9 || rate.Peak != disdel.MB {
			t.Errorf("%+v, %v", rate, err)
		}
	})
}

// A number that JSON cannot write never reaches an action. Its round equals no other one.
func TestNumbersThatJSONLacks(t *testing.T) {
	spec := runSpec(1, 1)
	if spec.digest(0) == "" {
		t.Error("a good round has no digest")
	}
	spec.Job.Training.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: math.NaN()}}
	said := func() (said any) {
		defer func() { said = recover() }()
		spec.trainRequest(work{}, 0, "")
		spec.invocation(disdel.Slot{Task: disdel.TaskTrain}, work{}, math.NaN())
		return nil
	}()
	if text, ok := said.(string); !ok || !strings.Contains(text, "request of train cannot be written as JSON") {
		t.Errorf("%v", said)
	}
	if d := spec.digest(0); d != "" {
		t.Errorf("digest %s", d)
	}
	rec := disdel.Record{Halfway: &disdel.Halfway{Mark: "m"}}
	if k := keptWork(rec, &spec, 0); k != nil {
		t.Errorf("kept %+v", k)
	}
}

// failingData is a store of data sets of which one call fails.
type failingData struct {
	*dataset.Store
	manifest, rows error
}

func (d failingData) Manifest(ctx context.Context, name string) (dataset.Manifest, error) {
	m, err := d.Store.Manifest(ctx, name)
	return m, errors.Join(d.manifest, err)
}

func (d failingData) ClassRows(ctx context.Context, name string) ([]int, error) {
	n, err := d.Store.ClassRows(ctx, name)
	return n, errors.Join(d.rows, err)
}

// A store of data sets that does not answer is no fault of the job file.
func TestAStoreThatDoesNotAnswerIsNoFault(t *testing.T) {
	job := disdel.Job{}
	job.Data.Source, job.Training.BatchSize, job.Training.Loss = "dataset://digits", 4, disdel.LossCrossEntropy
	job.Training.ClassWeights = disdel.BalancedWeights
	job.Model.Layers = []disdel.Layer{{Kind: "flatten"}, {Kind: "dense", Units: 10}}
	for name, c := range map[string]struct {
		data failingData
		want error
	}{
		"answers":           {failingData{}, nil},
		"no manifest":       {failingData{manifest: errGone}, errGone},
		"no rows per class": {failingData{rows: errGone}, errGone},
	} {
		c.data.Store = digitsStore(t)
		_, err := Resolve(t.Context(), job, c.data, "job.yaml", func(string) (int, int) { return 0, 0 }, nil)
		var faults *disdel.Faults
		if errors.As(err, &faults) || !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A factorisation whose rank cannot be is a fault of the model.
func TestAFactorisationThatCannotBeBuiltIsAFault(t *testing.T) {
	store := digitsStore(t)
	if _, err := store.AddSparse(t.Context(), dataset.SparseInput{
		Name: "films", Columns: 4, Classes: 1, Users: 2, Items: 2, Ones: true,
		Each: func(yield func(dataset.SparseRow) error) error {
			for i := range 40 {
				row := dataset.SparseRow{Target: float32(i % 5), Index: []int32{int32(i % 2), 2 + int32(i/2%2)}}
				if err := yield(row); err != nil {
					return err
				}
			}
			return nil
		},
	}, false); err != nil {
		t.Fatal(err)
	}
	for rank, fits := range map[int]bool{3: true, -1: false} {
		job := disdel.Job{}
		job.Data.Source, job.Training.BatchSize, job.Training.Loss = "dataset://films", 4, disdel.LossSquared
		job.Model.Name, job.Model.Rank = "pmf", rank
		_, err := Resolve(t.Context(), job, store, "job.yaml", func(string) (int, int) { return 0, 0 }, nil)
		var faults *disdel.Faults
		if fits && err != nil || !fits && (!errors.As(err, &faults) || faults.Faults[0].Path != "model" ||
			!strings.Contains(faults.Faults[0].Msg, "a rank of -1")) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// A job whose earlier setting cannot be planned any more is not resumed: the planner's reason says why.
func TestAResumeThatCannotBePlannedSaysWhy(t *testing.T) {
	spec := runSpec(2, 4)
	r := disdel.Record{ID: "job-1", Job: spec.Job, Plan: spec.Plan, Stages: []disdel.Stage{spec.begins()}}
	r.Stages[0].Workers = 3 // a policy had chosen another number
	for _, want := range []error{nil, errGone} {
		spec.Replan = func(disdel.Job) (disdel.Plan, error) { return spec.Plan, want }
		for name, do := range map[string]func() error{
			"check": func() error { return CheckResume(r, spec, disdel.Checkpoint{Round: 1}) },
			"from a checkpoint": func() error {
				s := spec
				return ContinueFrom(r, &s, disdel.Checkpoint{Round: 1})
			},
			"from the start": func() error { s := spec; return StartOver(r, &s) },
		} {
			if err := do(); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
	}
}

// partial is a store of which some calls fail.
type partial struct {
	*surroundings
	sweep, cancel, forget error
}

func (p *partial) Sweep(ctx context.Context, job disdel.JobID) (int, error) {
	n, err := p.surroundings.Sweep(ctx, job)
	if err = errors.Join(p.sweep, err); p.sweep != nil {
		p.sweep = nil // once
	}
	return n, err
}

func (p *partial) Cancel(ctx context.Context, job disdel.JobID) error {
	return errors.Join(p.cancel, p.surroundings.Cancel(ctx, job))
}

func (p *partial) Forget(ctx context.Context, job disdel.JobID, round int) error {
	p.called("forget")
	return errors.Join(p.forget, p.surroundings.Forget(ctx, job, round))
}

func (p *partial) logged() (*Controller, *logrustest.Hook) {
	log, said := logrustest.NewNullLogger()
	return New(Config{Invoker: p, Recorder: p, Store: p, Models: p, Log: log}), said
}

// A store that refuses calls costs a job only what they are for. A resume does not begin over the data of an earlier
// run. A round begins again even if its updates stay. A cancel ends with its grace.
func TestAStoreThatRefusesACall(t *testing.T) {
	for name, c := range map[string]struct {
		store  partial
		resume bool
		end    func(t *testing.T, p *partial, stop context.CancelFunc)
		status disdel.Status
		says   string // the log
	}{
		"a sweep before a resume": {store: partial{sweep: errGone}, resume: true, status: disdel.StatusFailed},
		"a round that is begun again": {
			store: partial{forget: errGone}, status: disdel.StatusSucceeded, end: damagedOnce,
			says: "the store was not told what is to be done about a round",
		},
		"a cancel": {
			store: partial{cancel: errGone}, status: disdel.StatusCanceled, says: "running actions could not be asked to stop",
			end: func(_ *testing.T, p *partial, stop context.CancelFunc) {
				p.end = hangs
				time.AfterFunc(time.Second, stop)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := c.store
				p.surroundings = &surroundings{}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				if c.end != nil {
					c.end(t, &p, stop)
				}
				controller, said := p.logged()
				run := func() (*disdel.Record, error) { return controller.Run(ctx, runSpec(1, 2), disdel.DataInfo{}) }
				if c.resume {
					spec := runSpec(1, 2)
					spec.Resumes = 1
					run = func() (*disdel.Record, error) {
						return controller.Resume(ctx, spec, disdel.Record{ID: "job-1", Status: disdel.StatusFailed})
					}
				}
				rec, err := run()
				if err != nil || rec.Status != c.status {
					t.Fatalf("%v: %v, %v", rec.Status, rec.Failure, err)
				}
				if c.status == disdel.StatusFailed && !strings.Contains(rec.Failure.Error(), errGone.Msg) {
					t.Errorf("it failed by %v", rec.Failure)
				}
				heard := slices.ContainsFunc(said.AllEntries(), func(e *logrus.Entry) bool { return e.Message == c.says })
				if c.says != "" && !heard {
					t.Errorf("the log lacks %q", c.says)
				}
			})
		})
	}
}

// damagedOnce lets the first aggregation find a damaged update.
func damagedOnce(_ *testing.T, p *partial, _ context.CancelFunc) {
	damaged := false
	p.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
		a, err := passes(ctx, inv)
		if inv.Task == disdel.TaskAggregate && !damaged {
			damaged = true
			a.Outcome, a.Result = disdel.OutcomeCorrupt, nil
			a.Failure = &disdel.Error{Kind: disdel.Corrupt, Code: disdel.CodeLostUpdate, Op: "read update"}
		}
		return a, err
	}
}
