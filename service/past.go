package service

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/disdel/disdel"
)

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
