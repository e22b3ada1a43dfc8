package service

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/internal/localplatform"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

// plan makes the plan of a resolved job, and all that a controller needs to run it.
func (p *planner) plan(ctx context.Context, r controller.Resolved) (controller.Spec, error) {
	in, err := p.input(ctx, r)
	if err != nil {
		return controller.Spec{}, err
	}
	return p.planned(r, in)
}

// planned is a job with the plan that an input leads to.
func (p *planner) planned(r controller.Resolved, in scheduler.PlanInput) (controller.Spec, error) {
	asked := in
	asked.Suggest = true
	planned := in
	plan, err := scheduler.NewPlan(asked)
	if err != nil {
		return controller.Spec{}, err
	}
	return controller.Spec{
		ID: in.ID, Job: r.Job, Network: r.Network, Plan: plan, Planned: &planned,
		Store: p.parts.Store, Threads: plan.Threads,
		Past: scheduler.PastOf(in.History, r.Job, r.Data), ClassNames: r.Labels,
		Data: disdel.DataRef{
			URL: p.storage("datasets"), Name: r.Data.Name, Checksum: r.Data.Checksum, Resize: r.Data.Resize,
			Split: r.Job.Data.Split, Augment: r.Data.Augment,
		},
		Models: p.storage("models"), Output: modelstore.WeightsPath(r.Job.Output.Model, in.ID),
		Replan: func(job disdel.Job) (disdel.Plan, error) {
			in.Job, in.Decided = job, true
			return scheduler.NewPlan(in)
		},
	}, nil
}

// input is planInput after a look at how fast the job trains, if one is allowed and no earlier job tells.
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
	c := controller.New(controller.Config{
		Invoker: p.parts.Executor, Recorder: p.parts.History, Board: p.parts.Board, Log: p.log,
	})
	rate, err := c.Probe(ctx, spec)
	if err != nil {
		return in, err
	}
	p.journal.add(Probed{rate})
	in.Rate = &rate
	return in, nil
}

// pastRecords bounds how many earlier jobs a plan looks at.
const pastRecords = 200

// planInput is what a resolved job's plan is made of on the platform at hand.
func (p *planner) planInput(ctx context.Context, r controller.Resolved) (in scheduler.PlanInput, err error) {
	limits, err := p.parts.Executor.Limits(ctx)
	// its API does not tell
	limits.Pool, limits.Host, limits.Millicores = p.parts.Pool, p.cfg.OpenWhisk.Host, p.cfg.ActionMillicores
	limits.PoolFrom, limits.PoolAt = p.parts.PoolFrom, p.parts.PoolAt
	if err != nil {
		return in, err
	}
	var known []string
	if !p.embedded() { // the namespace's own quotas, where an admin has set them apart
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
	if len(past.all) > 0 && p.embedded() { // without a past there is no forecast to correct
		limits.Busy = p.load.now(ctx)
	}
	by, err := p.estimator(r.Job, past.all)
	processors := p.processors(ctx, past.all)
	in = scheduler.PlanInput{
		ID: p.id, Job: r.Job, Graph: r.Graph, Data: r.Data, Platform: limits, History: past.similar, Past: past.all,
		Estimator: by, Processors: processors, Beside: p.Siblings,
		Known:   known,
		Threads: func(parallel int) int { return threads(processors, parallel) },
	}
	if processors == 0 && !p.embedded() {
		in.Unknown = unknownProcessors
	}
	return in, err
}

// estimator is the one that is asked for, at the risk that is accepted: the option's, else the job's.
func (p *planner) estimator(job disdel.Job, past []disdel.Record) (estimator.Estimator, error) {
	risk := job.Resources.Risk
	if p.Risk != nil {
		if risk = *p.Risk; risk == 0 {
			risk = -1 // no limit is without risk: it is refused as one, and not taken for the default
		}
	}
	return estimator.New(backends.Standard(nil), cmp.Or(p.Estimator, estimator.MethodPlanned), risk, past)
}

// processors is what the job's actions share: those of this machine for an embedded platform; those that a platform of
// disdel tells of, that containers of the newest job there have found, or that were found out by probing, for another.
// 0 where none is known.
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

// ownProcessors is all that a platform has, embedded or one of disdel that tells; 0 for another.
func (s *core) ownProcessors(ctx context.Context) int {
	if s.embedded() {
		return localplatform.Processors()
	}
	if told := s.platformStatus(ctx); told != nil {
		return told.Processors
	}
	return 0
}

const (
	unknownProcessors = "how many processors the platform has is not known before a first job has run there; " +
		"disdel doctor finds out, or --set resources.threads=N"
	unknownPool = "the memory of the platform's pool is not known: an action larger than that would wait for ever; " +
		"disdel doctor finds out, or --pool-memory SIZE"
)

// unknown says what is taken for granted of a platform that does not tell of itself, a sentence each.
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

// threads shares processors among the train actions that run at once; one where nobody knows how many there are.
func threads(processors, parallel int) int { return max(1, processors/max(parallel, 1)) }

// together is the records of both lists, newest first, each once: those of the same kind may be older than the newest
// of any.
func together(recent, similar []disdel.Record) []disdel.Record {
	out := slices.Concat(recent, similar)
	slices.SortStableFunc(out, func(a, b disdel.Record) int { return cmp.Compare(b.ID, a.ID) })
	return slices.CompactFunc(out, func(a, b disdel.Record) bool { return a.ID == b.ID })
}

// earlier is the earlier jobs that a plan looks at, newest first.
type earlier struct {
	similar []disdel.Record // of the same kind
	all     []disdel.Record // of any kind, those among them
}

// recordCache keeps the records that plans read, because jobs that are submitted together learn the same from them. Plans of
// one tenant read one after another and share what was read after they asked, so that a tenant with many requests takes
// no more memory and processor for it than one with a single request. A Service with many jobs also uses records that
// were read before, for a while: reading them takes longer than everything else of a submission.
type recordCache struct {
	mu         sync.Mutex
	kept       map[string]readRecords // guarded by mu: by tenant, and by kind
	refreshing bool                   // guarded by mu: one of them is read again while its older version is used
}

// readRecords are records of the history, and when their reading began.
type readRecords struct {
	list []disdel.Record
	at   time.Time
}

const (
	manyJobs = 16               // from so many jobs on, a Service uses records that were read before
	pastFor  = 10 * time.Second // after which they are read again beside the submissions
	pastMost = time.Minute      // after which a submission waits for that, and they are dropped
	mostKept = 64
)

// lookUp is a search of the history for a plan.
type lookUp struct {
	key  string
	turn chan struct{} // of the tenant, see Service.reading
	many bool          // records that were read before will do
	read func(context.Context) ([]disdel.Record, error)
}

// earlierJobs returns the earlier jobs that a plan of a job looks at.
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
		job.Data.Source, job.Data.Resize, job.Data.Augment, job.Training.JobBatch(), job.Training.Shared(),
		job.Training.Backend, job.Model)
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

// shareLayers gives the records of a network the very layers of the job, where they are equal: plans compare them again
// and again, and the comparison of a deep network with itself ends at once.
func shareLayers(layers []disdel.Layer, records []disdel.Record) {
	for i := range records {
		if m := &records[i].Job.Model; len(layers) > 0 && reflect.DeepEqual(m.Layers, layers) {
			m.Layers = layers
		}
	}
}

// get returns the records of a search. beside runs a function that the caller does not wait for.
func (k *recordCache) get(ctx context.Context, l lookUp, beside func(func(context.Context))) ([]disdel.Record, error) {
	asked := time.Now()
	if list, ok := k.earlier(l, asked, beside); ok {
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

// earlier returns records that were read before, if they will do, and has them read again if they are no longer new.
func (k *recordCache) earlier(l lookUp, now time.Time, beside func(func(context.Context))) ([]disdel.Record, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	out, ok := k.kept[l.key]
	age := now.Sub(out.at)
	if !ok || !l.many || age >= pastMost {
		return nil, false
	}
	if age >= pastFor && !k.refreshing { // one at a time: those of all tenants would be due together
		k.refreshing = true
		beside(func(ctx context.Context) {
			k.read(ctx, l) //nolint:errcheck // the older records stay, until a submission has to wait
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
	maps.DeleteFunc(k.kept, func(_ string, r readRecords) bool { return began.Sub(r.at) >= pastMost })
	if k.kept == nil || len(k.kept) >= mostKept {
		k.kept = map[string]readRecords{}
	}
	k.kept[l.key] = readRecords{list, began}
	return list, nil
}

// machineLoad is what other programs want of this machine's processors. To look at it takes a moment, which many submits that
// come together need not each wait for.
type machineLoad struct {
	mu    sync.Mutex
	at    time.Time // guarded by mu: of the newest look; zero: there was none
	value float64   // guarded by mu
}

// loadFor is for how long a look at the load is good.
const loadFor = 2 * time.Second

func (l *machineLoad) now(ctx context.Context) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.IsZero() || time.Since(l.at) > loadFor {
		if l.value = platform.Busy(ctx); ctx.Err() == nil {
			l.at = time.Now()
		}
	}
	return l.value
}
