package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
)

// leastMemory is the smallest limit of the rig's platform: far below any action, so that no minimum hides what a
// planner chose.
const leastMemory = 4 * disdel.MB

// rig is everything that a job needs, in this process but for the actions: those are the built program's.
type rig struct {
	home    string
	service *service.Service
	data    *dataset.Store
	models  *modelstore.Store
	past    *history.Store
	store   disdel.Store
	board   *aggregator.Store
	run     *executor.Executor
	limits  disdel.PlatformLimits
	jobs    int
	records string // file that records are added to; "": none
}

func (r *rig) url(folder string) string {
	return (&url.URL{Scheme: "file", Path: filepath.Join(r.home, folder)}).String()
}

func quiet() *logrus.Logger {
	l := logrus.New()
	l.SetLevel(logrus.ErrorLevel)
	return l
}

// newRig starts a platform whose containers are program, with bounds of its own.
func newRig(ctx context.Context, program string, bounds func(*platform.Config)) (*rig, error) {
	home, err := os.MkdirTemp("", "disdel-bench-")
	if err != nil {
		return nil, err
	}
	r := &rig{home: home}
	r.service, err = service.Open(ctx, service.Config{
		Home: home, Program: program, Log: quiet(),
		Tune: func(cfg *platform.Config) {
			bounds(cfg)
			cfg.Limits.InvocationsPerMinute, cfg.Limits.ConcurrentInvocations = 100_000, 100
		},
	})
	if err == nil {
		err = r.open(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *rig) open(ctx context.Context) error {
	p, err := r.service.Parts(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "bench: limits are kept by", p.Enforcement)
	r.data, r.models, r.past, r.store, r.board, r.run = p.Data, p.Models, p.History, p.Store, p.Board, p.Executor
	r.limits, err = p.Executor.Limits(ctx)
	r.limits.Pool = p.Pool
	return err
}

// relaxLimits are bounds that no job of the suite meets.
func relaxLimits(cfg *platform.Config) {
	cfg.PoolMemory = 16 * disdel.GB
	cfg.Limits.Memory.Min, cfg.Limits.Memory.Max = leastMemory, cfg.PoolMemory
	cfg.Limits.Timeout.Max = time.Hour
}

func (r *rig) close() error {
	var err error
	if r.service != nil {
		err = r.service.Close()
	}
	return errors.Join(err, os.RemoveAll(r.home))
}

// resolve adds a trial's data set and reads its job.
func (r *rig) resolve(ctx context.Context, t trial) (controller.Resolved, error) {
	file, err := t.parse()
	if err == nil {
		err = t.addData(ctx, r.data)
	}
	if err != nil {
		return controller.Resolved{}, err
	}
	return controller.Resolve(ctx, file.Job, r.data, t.String(), file.Locate, nil)
}

// input is what the plan of a resolved trial is made of.
func (r *rig) input(t trial, job controller.Resolved, e estimator.Estimator) scheduler.PlanInput {
	return scheduler.PlanInput{
		ID: disdel.JobID(fmt.Sprintf("job-%026d", r.jobs+1)), Job: job.Job, Graph: job.Graph, Data: job.Data,
		Platform:  r.limits,
		Estimator: e, Processors: t.workers * t.threads,
	}
}

// plan works out how a trial runs.
func (r *rig) plan(ctx context.Context, t trial, e estimator.Estimator) (controller.Resolved, disdel.Plan, error) {
	job, err := r.resolve(ctx, t)
	if err != nil {
		return job, disdel.Plan{}, fmt.Errorf("%v: %w", t, err)
	}
	plan, err := scheduler.NewPlan(r.input(t, job, e))
	if err != nil {
		return job, plan, fmt.Errorf("%v: %w", t, err)
	}
	return job, plan, nil
}

// submit plans a trial with an estimator and runs it at the limits of its plan.
func (r *rig) submit(ctx context.Context, t trial, e estimator.Estimator) (*disdel.Record, error) {
	job, plan, err := r.plan(ctx, t, e)
	if err != nil {
		return nil, err
	}
	spec := r.spec(t, job, plan)
	rec, err := r.execute(ctx, r.invoker(t), spec, job.Data)
	if err != nil || !t.resumed || rec.Status != disdel.StatusSucceeded {
		return rec, err
	}
	again, err := r.resume(ctx, t, spec, job.Data)
	if err == nil { // one record: peaks of both, and what ended the second
		rec.Activations, rec.Status, rec.Failure = append(rec.Activations, again.Activations...), again.Status, again.Failure
	}
	return rec, err
}

// resume trains the last round of a job again, in new containers, from the checkpoint that the round before left.
func (r *rig) resume(ctx context.Context, t trial, spec controller.Spec, data disdel.DataInfo) (*disdel.Record, error) {
	c, _, err := r.models.NewestCheckpoint(ctx, controller.CheckpointFolder(spec.ID))
	if err != nil {
		return nil, err
	}
	r.jobs++
	spec.ID, spec.From, spec.Resumes = disdel.JobID(fmt.Sprintf("job-%026d", r.jobs)), &c, 1
	spec.Plan.Actions = slices.Clone(spec.Plan.Actions)
	for i := range spec.Plan.Actions {
		a := &spec.Plan.Actions[i]
		a.Name = disdel.ActionName(scheduler.Package(spec.ID) + "/" + string(a.Task))
	}
	return r.execute(ctx, r.invoker(t), spec, data)
}

// clean deletes what a trial left: weights, checkpoints and, where it is nobody else's, its data set.
func (r *rig) clean(ctx context.Context, t trial) error {
	err := errors.Join(os.RemoveAll(filepath.Join(r.home, "models", "weights")),
		os.RemoveAll(filepath.Join(r.home, "models", "checkpoints")))
	if t.name != "" {
		_, removed := r.data.Remove(ctx, t.dataName())
		err = errors.Join(err, removed)
	}
	return err
}

// invoker starts a trial's activations.
func (r *rig) invoker(t trial) controller.Invoker {
	if t.saves == 0 {
		return r.run
	}
	return saving{r.run, t.saves}
}

// saving has train actions store their state inside a round as often as it says.
type saving struct {
	controller.Invoker
	every disdel.Millis
}

func (s saving) Invoke(ctx context.Context, inv disdel.Invocation) (disdel.ActivationID, error) {
	if inv.Task == disdel.TaskTrain {
		var req disdel.TrainRequest
		if err := json.Unmarshal(inv.Params, &req); err != nil {
			return "", err
		}
		req.SaveEvery = s.every
		params, err := json.Marshal(req)
		if err != nil {
			return "", err
		}
		inv.Params = params
	}
	return s.Invoker.Invoke(ctx, inv)
}

// spec is the next job's.
func (r *rig) spec(t trial, job controller.Resolved, plan disdel.Plan) controller.Spec {
	r.jobs++
	return controller.Spec{
		ID: disdel.JobID(fmt.Sprintf("job-%026d", r.jobs)), Job: job.Job, Network: job.Network, Plan: plan, Store: r.store,
		Threads: t.threads,
		Data: disdel.DataRef{
			URL: r.url("datasets"), Name: job.Data.Name, Checksum: job.Data.Checksum,
			Split: job.Job.Data.Split,
		},
		Models: r.url("models"), Output: "weights/" + strings.ReplaceAll(t.String(), " ", "_"),
	}
}

// execute runs a job to its end.
func (r *rig) execute(ctx context.Context, by controller.Invoker, spec controller.Spec,
	data disdel.DataInfo,
) (*disdel.Record, error) {
	return controller.New(controller.Config{
		Invoker: by, Recorder: r.past, Store: r.board, Models: shelf{},
		Log: quiet(),
	}).Run(ctx, spec, data)
}

// shelf keeps no model: its weights were written, and that is what takes memory.
type shelf struct{}

func (shelf) Commit(_ context.Context, _ *disdel.Record, _ disdel.Network, w disdel.ModelRef) (disdel.ModelRef, error) {
	return w, nil
}

func (shelf) Discard(context.Context, string) error { return nil }
