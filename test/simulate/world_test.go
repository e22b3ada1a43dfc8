package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/scheduler"
)

// world is everything that one run has: the platform, Redis, the history of records, and the faults.
type world struct {
	weather  *weather
	platform *platform
	redis    *miniredis.Miniredis
	dir      string // of the data set and the models
	models   string // URL

	mu       sync.Mutex
	saved    []byte          // the record of the job as it was saved last
	stays    map[string]bool // what a controller said that it left
	jumped   time.Duration
	onTheWay time.Time // when the last command of a connection arrives that is no more
}

// digest is a short name of a request. It does not depend on the folder of this process.
func (w *world) digest(request []byte) string {
	h := fnv.New32a()
	request = bytes.ReplaceAll(request, []byte(w.dir), nil)
	h.Write(bytes.ReplaceAll(request, []byte(output), []byte("weights/m.safetensors"))) // as the oldest seeds had it
	return fmt.Sprintf("%08x", h.Sum32())
}

const (
	jobID  = disdel.JobID("job-1")
	output = "weights/m/job-1.safetensors"
	// mostStops is how often the user stops a job at most.
	mostStops = 3
	// longest is the virtual time after which a job counts as hung. The slowest fault is an activation that never runs:
	// its controller waits for it for its timeout and a minute.
	longest = 6 * time.Hour
)

// newWorld makes the surroundings of one run. The folder has the data set, and gets the models.
func newWorld(w *weather, folder string) *world {
	out := &world{
		weather: w, redis: miniredis.NewMiniRedis(), dir: folder, models: "file://" + filepath.Join(folder, "run"),
		stays: map[string]bool{},
	}
	out.platform = newPlatform(out)
	c, err := out.redis.Dial() // starts it
	if err == nil {
		c.Close() //nolint:errcheck // it was only opened
	}
	return out
}

// variant is a kind of job. Each has losses and weights of its own.
type variant struct {
	rounds, workers, checkpoint int
	keep                        bool
	stops                       bool // training ends early, with the best weights
}

// variantOf draws the job of a seed.
func variantOf(w *weather) variant {
	pick := func(name string, n int) int { return int(w.roll(name, 0) * float64(n)) }
	return variant{
		rounds: 2 + pick("rounds", 2), workers: 2 + pick("workers", 2), checkpoint: pick("checkpoint", 3),
		keep: pick("keep", 2) == 1, stops: pick("stops", 4) == 0,
	}
}

// spec is the job of a variant on a data set.
func (v variant) spec(data disdel.DataRef, models string) controller.Spec {
	var job disdel.Job
	job.Training.Epochs, job.Training.BatchSize, job.Output.Model = v.rounds, 20, "m"
	job.Training.Optimizer = disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}
	job.Training.Loss, job.Training.ValidateEvery = disdel.LossCrossEntropy, 1
	if v.keep {
		job.Distribution.Aggregation.OptimizerState = disdel.StateKeep
	}
	if v.stops {
		job.Training.EarlyStop = &disdel.EarlyStop{Metric: disdel.MetricAccuracy, Patience: 1, Keep: disdel.KeepBest}
	}
	job.Distribution.Workers = v.workers
	job.Reliability.CheckpointEvery = v.checkpoint
	job.Reliability.Retries = disdel.Retries{
		Limit: 1000, PerWorker: 1000, MemoryFactor: 1, TimeoutFactor: 1,
		Backoff: disdel.Backoff{Initial: disdel.Duration(100 * time.Millisecond), Max: disdel.Duration(time.Second)},
	}
	limits := disdel.Limits{Memory: 512 * disdel.MB, Timeout: disdel.Millis(30 * time.Second)}
	plan := disdel.Plan{
		Workers: v.workers, Rounds: v.rounds, Epochs: 1, Parallel: v.workers, Levels: scheduler.Tree(v.workers, 2),
		Shards: scheduler.Shards(60*v.workers, v.workers), HeldOut: 50, Threads: 1,
	}
	plan.Platform.MaxMemory, plan.Platform.MaxTimeout = limits.Memory, limits.Timeout
	for _, task := range []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate} {
		name := disdel.ActionName(scheduler.Package(jobID) + "/" + string(task))
		plan.Actions = append(plan.Actions, disdel.ActionPlan{
			Task: task, Name: name, Limits: limits, Estimate: disdel.Estimate{Likely: 12 * disdel.MB},
		})
	}
	return controller.Spec{
		ID: jobID, Job: job, Data: data, Models: models, Output: output, Threads: 1, Plan: plan, Keeps: true,
		Store: disdel.Store{URLs: []string{"redis://redis.test:6379/0"}},
		Network: disdel.Network{
			Input: []int{1, 8, 8}, Classes: 10, Init: disdel.Init{Seed: 3, Scheme: "glorot"},
			Layers: []disdel.Layer{{Kind: "flatten"}, {Kind: "dense", Units: 10}, {Kind: "softmax"}},
		},
	}
}

// recorder implements controller.Recorder. Only living controllers reach the history.
type recorder struct{ of *process }

// Save implements controller.Recorder.
func (h recorder) Save(ctx context.Context, rec *disdel.Record) error {
	w := h.of.world
	gone := &disdel.Error{Kind: disdel.Unavailable, Op: "save record", Msg: "the history store does not answer"}
	if !sleep(ctx, w.weather.between(time.Millisecond, 5*time.Millisecond, "save "+h.of.name)) {
		return gone
	}
	first, last := len(rec.Activations) == 0, rec.Status != disdel.StatusRunning
	kind := "save"
	if last {
		kind = "end save"
	}
	done := h.of.call(kind)
	defer done()
	if !h.of.alive() || !first && !last && w.weather.strikes(saveFails, h.of.name) {
		return gone
	}
	text, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saved = text
	return nil
}

// sink implements controller.ModelSink.
type sink struct{ of *process }

// do has a process use the models. The process may die at the call.
func (s sink) do(
	ctx context.Context, kind string, use func(ctx context.Context, models *modelstore.Store) error,
) error {
	done := s.of.call(kind)
	if !s.of.alive() {
		return errKilled
	}
	ctx = s.of.shelf(ctx)
	models, err := modelstore.Open(ctx, s.of.world.models)
	if err != nil {
		return err
	}
	err = errors.Join(use(ctx, models), models.Close())
	done()
	return err
}

// Commit implements controller.ModelSink, as package service does.
func (s sink) Commit(ctx context.Context, rec *disdel.Record, n disdel.Network, ref disdel.ModelRef) (
	disdel.ModelRef, error,
) {
	m := modelstore.Model{ModelRef: ref, Job: rec.ID, Created: rec.Ended, Network: n, Data: rec.Data}
	err := s.do(ctx, "commit", func(ctx context.Context, models *modelstore.Store) error {
		made, err := models.VersionOf(ctx, m.Name, rec.ID)
		if err != nil {
			return err
		}
		if made > 0 {
			m.APIVersion, m.Version = disdel.APIVersion, made
			return models.UpdateDescription(ctx, m)
		}
		m, err = models.Commit(ctx, m)
		return err
	})
	return m.ModelRef, err
}

// Discard implements controller.ModelSink.
func (s sink) Discard(ctx context.Context, folder string) error {
	return s.do(ctx, "discard", func(ctx context.Context, models *modelstore.Store) error {
		return models.Discard(ctx, folder)
	})
}

// jobStore implements controller.JobStore.
type jobStore struct {
	*aggregator.Store
	of *process
}

// Sweep implements controller.JobStore.
func (s jobStore) Sweep(ctx context.Context, job disdel.JobID) (int, error) {
	done := s.of.call("sweep")
	n, err := s.Store.Sweep(ctx, job)
	done()
	return n, err
}

// What a controller logs that it leaves behind.
const (
	leftKeys        = "stay in the store"
	leftPackage     = "package stays on the platform"
	leftCheckpoints = "job's checkpoints stay on the blob store"
)

// logged implements logrus.Hook: it traces what controllers log.
type logged struct{ of *process }

// Levels implements logrus.Hook.
func (logged) Levels() []logrus.Level { return logrus.AllLevels }

// Fire implements logrus.Hook.
func (l logged) Fire(e *logrus.Entry) error {
	w := l.of.world
	w.weather.note("%s: %s: %s %v", l.of.name, e.Level, e.Message, e.Data)
	for _, what := range []string{leftKeys, leftPackage, leftCheckpoints} {
		if strings.Contains(e.Message, what) {
			w.mu.Lock()
			w.stays[what] = true
			w.mu.Unlock()
		}
	}
	return nil
}

// controlled runs the job in one controller until it ends or dies. rec is the record to resume; nil: a first run.
func (w *world) controlled(p *process, spec controller.Spec, rec *disdel.Record) (*disdel.Record, error) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	log.SetLevel(logrus.DebugLevel)
	log.AddHook(logged{p})
	ctx := aggregator.WithDialer(p.shelf(p.ctx), p.dial)
	board, err := openStore(ctx, spec.Store)
	if err != nil {
		return nil, err
	}
	defer board.Close()
	e, err := executor.New(executor.Config{
		APIHost: "http://openwhisk.test", AuthKey: "user:key", Logger: log,
		Transport: caller{from: p, answer: w.platform.answer, late: 8 * time.Second, kind: platformCall},
		Jitter:    func(most time.Duration) time.Duration { return w.weather.between(0, most+1, "jitter "+p.name) },
		Heartbeats: func(ctx context.Context, inv disdel.Invocation) []disdel.Progress {
			all, _ := board.Progress(ctx, inv.Job)
			return slices.DeleteFunc(all, func(p disdel.Progress) bool {
				return p.Task != inv.Task || p.Round != inv.Round || p.Level != inv.Level || p.Member != inv.Member
			})
		},
	})
	if err != nil {
		return nil, err
	}
	c := controller.New(controller.Config{
		Invoker: e, Recorder: recorder{p}, Store: jobStore{board, p}, Models: sink{p}, Log: log, Tick: time.Second,
		Keeps: true,
	})
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if w.weather.hits[userStops] < mostStops && w.weather.strikes(userStops, p.name) {
		at := time.AfterFunc(w.weather.between(0, 8*time.Second, "stop "+p.name), func() { cancel(errStopped) })
		defer at.Stop()
	}
	if rec == nil {
		return c.Run(ctx, spec, disdel.DataInfo{})
	}
	if err := w.resume(ctx, &spec, *rec); err != nil {
		return nil, err
	}
	return c.Resume(ctx, spec, *rec)
}

// openStore opens the store, again while it refuses connections.
func openStore(ctx context.Context, at disdel.Store) (*aggregator.Store, error) {
	for {
		s, err := aggregator.Open(ctx, at)
		if err == nil || ctx.Err() != nil || !sleep(ctx, time.Second) {
			return s, err
		}
	}
}

// resume sets where a job continues, as package service does.
func (w *world) resume(ctx context.Context, spec *controller.Spec, rec disdel.Record) error {
	spec.Resumes = rec.Resumes + 1
	controller.RaiseLimits(&spec.Plan, spec.Job, rec)
	models, err := modelstore.Open(ctx, w.models)
	if err != nil {
		return err
	}
	defer models.Close()
	c, _, err := models.NewestCheckpoint(ctx, controller.CheckpointFolder(rec.ID))
	if disdel.KindOf(err) == disdel.NotFound {
		if rec.Checkpoint != nil {
			return fmt.Errorf("the record has a checkpoint of round %d, and there is none", rec.Checkpoint.Round)
		}
		return controller.StartOver(rec, spec)
	}
	if err != nil {
		return err
	}
	if err := controller.CheckResume(rec, *spec, c); err != nil {
		return err
	}
	return controller.ContinueFrom(rec, spec, c)
}

// last is the record that was saved last; nil: none.
func (w *world) last() *disdel.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.saved == nil {
		return nil
	}
	var rec disdel.Record
	if json.Unmarshal(w.saved, &rec) != nil {
		return nil
	}
	return &rec
}

// lives is how many controllers a job has at most; the last one does not die.
const lives = 3

var errStopped = errors.New("the user has stopped the job")

// job runs the job through the lives of its controllers, and returns its last record.
func (w *world) job(spec controller.Spec) (*disdel.Record, error) {
	began := time.Now()
	for life := 1; ; life++ {
		p, end := w.process(fmt.Sprintf("controller %d", life)), longest
		if p.lasts = life == lives; !p.lasts {
			p.mayDieAt(jobCalls, nil)
			if w.weather.strikes(controllerDies, p.name) {
				end = w.weather.between(0, 8*time.Second, "life")
			}
		}
		alarm := time.AfterFunc(end, p.kill)
		rec, err := w.live(p, spec)
		alarm.Stop()
		if p.alive() || p.lasts {
			p.kill()
			if time.Since(began) >= longest {
				return rec, fmt.Errorf("the job does not end: after %v it is %v", longest, rec.Status)
			}
			return rec, err
		}
		w.weather.note("%s: died", p.name)
		time.Sleep(w.weather.between(time.Millisecond, 3*time.Second, "restart"))
	}
}

// live has a process run the job until it ends or the process dies. Of a job whose end is saved, the process deletes
// the checkpoints, as one does that takes over the lease of a dead one.
func (w *world) live(p *process, spec controller.Spec) (*disdel.Record, error) {
	if rec := w.last(); rec != nil && !w.resumable(rec) {
		if err := controller.DiscardCheckpoints(p.ctx, sink{p}, rec); err != nil {
			w.stays[leftCheckpoints] = true
		}
		return rec, nil
	}
	for {
		rec, err := w.controlled(p, spec, w.last())
		if !p.alive() || disdel.KindOf(err) != disdel.Unavailable && (err != nil || !w.resumable(rec)) {
			return rec, err
		}
	}
}

// resumable tells whether a job continues: nobody runs it, its user has stopped it, or the storage of models failed.
func (w *world) resumable(rec *disdel.Record) bool {
	return rec.Status == disdel.StatusRunning || rec.Status == disdel.StatusCanceled ||
		rec.Status == disdel.StatusFailed && disdel.KindOf(rec.Failure) == disdel.Unavailable && w.weather.shelfFailed()
}

// close ends everything.
func (w *world) close() {
	w.platform.close()
	w.redis.Close()
	os.RemoveAll(strings.TrimPrefix(w.models, "file://")) //nolint:errcheck // the whole folder goes at the end
}

// keysLeft returns the keys in Redis that should not be there. Some keys may come after the last sweep, and expire:
//   - by activations that still run then, or ran at an earlier removal of the package,
//   - by commands of closed connections that arrive late (seed 70112),
//   - around a process that was killed at a call to the model store (seed 5403).
func (w *world) keysLeft() (out []string) {
	swept := !w.platform.disturbed && w.platform.tidy && !w.stays[leftKeys] && w.weather.hits[blobKills] == 0 &&
		w.onTheWay.Before(w.platform.tidied)
	for _, key := range w.redis.Keys() {
		if swept || w.redis.TTL(key) == 0 {
			out = append(out, fmt.Sprintf("%s (%v)", key, w.redis.TTL(key)))
		}
	}
	return out
}
