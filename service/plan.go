package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/platform/local"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

// plan plans a resolved job, and returns all that a controller needs to run it.
func (p *planner) plan(ctx context.Context, r controller.Resolved) (controller.Spec, error) {
	in, err := p.input(ctx, r)
	if err != nil {
		return controller.Spec{}, err
	}
	return p.planned(r, in)
}

// planned plans a job from an input.
func (p *planner) planned(r controller.Resolved, in scheduler.PlanInput) (controller.Spec, error) {
	asked := in
	asked.Suggest = true
	planned := in
	plan, err := scheduler.NewPlan(asked)
	if err != nil {
		return controller.Spec{}, err
	}
	url, name := p.dataAddress(r.Data.Name)
	return controller.Spec{
		ID: in.ID, Job: r.Job, Network: r.Network, Plan: plan, Planned: &planned,
		Store: p.parts.Store, Threads: plan.Threads,
		Past: scheduler.PastObservations(in.History, r.Job, r.Data), ClassNames: r.Labels,
		Data: disdel.DataRef{
			URL: url, Name: name, Checksum: r.Data.Checksum, Resize: r.Data.Resize,
			Split: r.Job.Data.Split, Augment: r.Data.Augment, OnDisk: r.Job.Data.Keep == disdel.KeepDisk,
		},
		Models: p.storage("models"), Output: modelstore.WeightsPath(r.Job.Output.Model, in.ID),
		Replan: func(job disdel.Job) (disdel.Plan, error) {
			in.Job, in.Decided = job, true
			return scheduler.NewPlan(in)
		},
	}, nil
}

// input is planInput with a measured training speed, if Options.Probe is set and no earlier job gives the speed.
func (p *planner) input(ctx context.Context, r controller.Resolved) (scheduler.PlanInput, error) {
	in, err := p.planInput(ctx, r)
	if err != nil {
		return in, err
	}
	for _, note := range p.unknown(in) {
		p.journal.add(Noted{note})
	}
	if !p.Probe {
		return in, nil
	}
	spec, err := p.planned(r, in)
	if err != nil || spec.Plan.TimeoutSource == "history" {
		return in, err
	}
	if n := len(spec.Plan.Stages); n > 0 { // one of them alone would wait for the others
		p.journal.add(Noted{fmt.Sprintf("not probed: a probe trains one action, and the job has %d stages", n)})
		return in, nil
	}
	c := controller.New(controller.Config{
		Invoker: p.parts.Executor, Recorder: p.parts.History, Store: p.parts.Board, Log: p.log,
	})
	rate, err := c.Probe(ctx, spec)
	if err != nil {
		return in, err
	}
	p.journal.add(Probed{rate})
	in.Rate = &rate
	return in, nil
}

// pastRecords bounds the earlier jobs that a plan uses.
const pastRecords = 200

// planInput is the input of a resolved job's plan on the platform.
func (p *planner) planInput(ctx context.Context, r controller.Resolved) (in scheduler.PlanInput, err error) {
	limits, err := p.parts.Executor.Limits(ctx)
	// OpenWhisk's API does not report these
	limits.Pool, limits.Host, limits.Millicores = p.parts.Pool, p.cfg.OpenWhisk.Host, p.cfg.ActionMillicores
	limits.PoolFrom, limits.PoolAt = p.parts.PoolFrom, p.parts.PoolAt
	if err != nil {
		return in, err
	}
	var known []string
	if !p.embedded() { // the quotas of the namespace, which may differ from those of the cluster
		f := p.facts()
		known = knownText(f, limits, time.Now())
		f = f.Trusted()
		limits.PerMinute, limits.Concurrent = cmp.Or(f.PerMinute, limits.PerMinute), cmp.Or(f.Concurrent, limits.Concurrent)
	}
	limits = p.withGPUs(ctx, limits)
	if err := p.checkGPU(r.Job, limits); err != nil {
		return in, err
	}
	if err := controller.CheckPlatform(r.Job, limits); err != nil {
		return in, err
	}
	past, err := p.earlierJobs(ctx, r.Job)
	if err != nil {
		return in, err
	}
	if len(past.all) > 0 && p.embedded() { // otherwise there is no forecast to correct
		limits.Busy = p.load.now(ctx)
	}
	learnMemory(r.Graph.Custom(), ofProgram(&r.Job, past.all))
	by, err := p.estimator(r.Job, past.all)
	processors := p.processors(ctx, past.all)
	in = scheduler.PlanInput{
		ID: p.id, Job: r.Job, Graph: r.Graph, Data: r.Data, Platform: limits, History: past.similar, Past: past.all,
		Estimator: by, Processors: processors, Siblings: p.Siblings,
		PlatformReasons: known, Bucket: blobs.Folder(p.ModelsURL()) == "",
		Threads: func(parallel int) int { return threads(processors, parallel) },
	}
	if processors == 0 && !p.embedded() {
		in.ProcessorsUnknown = unknownProcessors
	}
	return in, err
}

// estimator returns the requested estimator. The risk of the options goes before that of the job.
func (p *planner) estimator(job disdel.Job, past []disdel.Record) (estimator.Estimator, error) {
	risk := job.Resources.Risk
	if p.Risk != nil {
		if risk = *p.Risk; risk == 0 {
			risk = -1 // 0 means the default to estimator.New; -1 is refused, since no limit is without risk
		}
	}
	method := cmp.Or(p.Estimator, estimator.MethodPlanned)
	same := ofProgram(&job, past)
	if p.Estimator == "" && len(same) > 0 && job.Model.Python.Network.Python.Basis != disdel.MemoryLearned {
		method, past = estimator.MethodLearned, same
	}
	return estimator.New(backends.Standard(nil), method, risk, past)
}

// ofProgram returns the earlier jobs that Python trained with the same program as a job's, by the digest of its files.
// Their peaks tell more of its memory than the allocator's usual factor. There are none for other jobs.
func ofProgram(job *disdel.Job, past []disdel.Record) (same []disdel.Record) {
	is := job.Model.Python
	if is == nil || job.Model.Translated() {
		return nil
	}
	for i := range past {
		was := &past[i].Job.Model
		if was.Python != nil && !was.Translated() && was.Python.Code == is.Code {
			same = append(same, past[i])
		}
	}
	return same
}

// processors is the number of processors that the job's actions share: those of this machine for an embedded platform;
// for another one those that a platform of disdel reports, that the newest job there found, or that the doctor
// measured. 0: unknown.
func (s *Service) processors(ctx context.Context, past []disdel.Record) int {
	if n := s.ownProcessors(ctx); n > 0 {
		return n
	}
	for i := range past {
		if p := past[i].Plan.Platform; p.Host == s.cfg.OpenWhisk.Host && p.Found > 0 {
			return p.Found
		}
	}
	return s.facts().Shared()
}

// ownProcessors is the number of processors of an embedded platform, or of a platform of disdel; 0 for another.
func (s *core) ownProcessors(ctx context.Context) int {
	if s.embedded() {
		return local.Processors()
	}
	if status := s.platformStatus(ctx); status != nil {
		return status.Processors
	}
	return 0
}

const (
	unknownProcessors = "how many processors the platform has is not known before a first job has run there; " +
		"disdel doctor finds out, or --set resources.threads=N"
	unknownPool = "the memory of the platform's pool is not known: an action larger than that would wait for ever; " +
		"disdel doctor finds out, or --pool-memory SIZE"
)

// unknown lists what is unknown about the platform, and what the plan assumes instead.
func (p *planner) unknown(in scheduler.PlanInput) (notes []string) {
	if p.embedded() {
		return nil
	}
	if in.Processors == 0 {
		notes = append(notes, "one thread a train action: "+unknownProcessors)
	}
	if p.parts.Pool == 0 {
		notes = append(notes, unknownPool)
	}
	return notes
}

// threads is the number of threads of each of so many parallel train actions. It is 1 if processors is 0.
func threads(processors, parallel int) int { return max(1, processors/max(parallel, 1)) }

// together merges two lists of records, newest first, without duplicates.
func together(recent, similar []disdel.Record) []disdel.Record {
	out := slices.Concat(recent, similar)
	slices.SortStableFunc(out, func(a, b disdel.Record) int { return cmp.Compare(b.ID, a.ID) })
	return slices.CompactFunc(out, func(a, b disdel.Record) bool { return a.ID == b.ID })
}

// earlier is the earlier jobs that a plan uses, newest first.
type earlier struct {
	similar []disdel.Record // with the same network, data and batch
	all     []disdel.Record // all, including similar
}

// recordCache keeps the records that plans read. Plans of one tenant read one after another and share what was read
// after they began, so that many requests of a tenant take no more memory and processor time than one. A Service with
// many jobs also uses records that were read some seconds ago: reading takes longer than the rest of a submission.
type recordCache struct {
	mu         sync.Mutex
	kept       map[string]readRecords // guarded by mu: by tenant, and by kind
	refreshing bool                   // guarded by mu: one entry is read again while its older version is used
	dropping   *time.Timer            // guarded by mu: drops what was not read for pastMost; nil: nothing was read
}

// readRecords are records of the history. at is when reading began.
type readRecords struct {
	list []disdel.Record
	at   time.Time
}

const (
	manyJobs = 16               // number of jobs from which a Service uses records that were read before
	pastFor  = 10 * time.Second // age at which they are read again in the background
	pastMost = time.Minute      // age at which they are dropped, and a submission waits for new ones
	mostKept = 64
)

// lookUp is a search of the history for a plan.
type lookUp struct {
	key  string
	turn chan struct{} // see Service.reading
	many bool          // records that were read before are good enough
	read func(context.Context) ([]disdel.Record, error)
}

// earlierJobs returns the earlier jobs that the plan of a job uses.
func (p *planner) earlierJobs(ctx context.Context, job disdel.Job) (earlier, error) {
	p.mu.Lock()
	many := len(p.runs) >= manyJobs
	p.mu.Unlock()
	look := func(read func(context.Context) ([]disdel.Record, error), about ...any) ([]disdel.Record, error) {
		key, err := json.Marshal(append([]any{p.whose(), p.tenant == nil}, about...))
		if err != nil {
			return nil, err
		}
		return p.recordCache.get(ctx, lookUp{string(key), p.reading, many, read}, p.background)
	}
	similar, err := look(func(ctx context.Context) ([]disdel.Record, error) { return p.parts.History.Similar(ctx, job) },
		job.Data.Source, job.Data.Resize, job.Data.Augment, job.Data.Keep, job.Training.JobBatch(),
		job.Training.Shared(), job.Training.Backend, job.Model)
	if err != nil {
		return earlier{}, err
	}
	recent, err := look(func(ctx context.Context) ([]disdel.Record, error) {
		return p.parts.History.Recent(ctx, pastRecords)
	})
	out := earlier{slices.Clone(similar), together(recent, similar)}
	shareLayers(job.Model.Layers, out.similar)
	shareLayers(job.Model.Layers, out.all)
	return out, err
}

// shareLayers replaces layers of records that equal those of the job by the same slice. Plans compare them often, and
// comparing a slice with itself is fast.
func shareLayers(layers []disdel.Layer, records []disdel.Record) {
	for i := range records {
		if m := &records[i].Job.Model; len(layers) > 0 && reflect.DeepEqual(m.Layers, layers) {
			m.Layers = layers
		}
	}
}

// get returns the records of a search. background runs a function that the caller does not wait for.
func (k *recordCache) get(
	ctx context.Context, l lookUp, background func(func(context.Context)),
) ([]disdel.Record, error) {
	asked := time.Now()
	if list, ok := k.earlier(l, asked, background); ok {
		return list, nil
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-l.turn }()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if out, ok := k.stored(l.key); ok && !out.at.Before(asked) {
		return out.list, nil
	}
	return k.read(ctx, l)
}

// earlier returns records that were read before if they are good enough, and has them read again if they are old.
func (k *recordCache) earlier(l lookUp, now time.Time, background func(func(context.Context))) ([]disdel.Record, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	out, ok := k.kept[l.key]
	age := now.Sub(out.at)
	if !ok || !l.many || age >= pastMost {
		return nil, false
	}
	if age >= pastFor && !k.refreshing { // one at a time: otherwise those of all tenants would be read at once
		k.refreshing = true
		background(func(ctx context.Context) {
			k.read(ctx, l) //nolint:errcheck // the older records stay until a submission has to wait
			k.mu.Lock()
			defer k.mu.Unlock()
			k.refreshing = false
		})
	}
	return out.list, true
}

func (k *recordCache) stored(key string) (readRecords, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	out, ok := k.kept[key]
	return out, ok
}

// read searches the history and keeps what it finds.
func (k *recordCache) read(ctx context.Context, l lookUp) ([]disdel.Record, error) {
	began := time.Now()
	list, err := l.read(ctx)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropOld(began)
	if k.kept == nil || len(k.kept) >= mostKept {
		k.kept = map[string]readRecords{}
	}
	k.kept[l.key] = readRecords{list, began}
	if k.dropping == nil {
		k.dropping = time.AfterFunc(pastMost, func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.dropOld(time.Now())
		})
	} else {
		k.dropping.Reset(pastMost)
	}
	return list, nil
}

// dropOld drops records that are too old to use. The caller holds mu.
func (k *recordCache) dropOld(now time.Time) {
	maps.DeleteFunc(k.kept, func(_ string, r readRecords) bool { return now.Sub(r.at) >= pastMost })
}

// machineLoad is the processor time that other programs take of this machine. Measuring takes a moment, so that
// submissions at the same time share a measurement.
type machineLoad struct {
	mu    sync.Mutex
	at    time.Time // guarded by mu: of the newest measurement; zero: there was none
	value float64   // guarded by mu
}

// loadFor is how long a measurement is used.
const loadFor = 2 * time.Second

func (l *machineLoad) now(ctx context.Context) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.IsZero() || time.Since(l.at) > loadFor {
		if l.value = platform.MachineLoad(ctx); ctx.Err() == nil {
			l.at = time.Now()
		}
	}
	return l.value
}
