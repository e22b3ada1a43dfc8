package service

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
)

// past is the earlier jobs that a plan looks at, newest first.
type past struct {
	similar []disdel.Record // of the same kind
	all     []disdel.Record // of any kind, those among them
	read    time.Time
}

// pasts keeps them for a while where a Service has many jobs: to read some fifty records takes longer than everything
// else of a submit, and jobs that come together learn the same from them. One that is no longer new is read anew beside
// the submits, one at a time: were each to read its own, all tenants' would fall due together.
type pasts struct {
	mu      sync.Mutex
	kept    map[string]past // guarded by mu: by tenant and kind
	reading bool            // guarded by mu: one of them is being read anew
}

const (
	manyJobs = 16               // of a Service, from which on a past is kept
	pastFor  = 10 * time.Second // after which it is read anew
	pastMost = time.Minute      // after which a submit waits for that
	mostKept = 64
)

// pastOf is what a plan of a job looks at.
func (p *preparation) pastOf(ctx context.Context, job disdel.Job) (past, error) {
	p.mu.Lock()
	many := len(p.runs) >= manyJobs
	p.mu.Unlock()
	if !many {
		return readPast(ctx, p.parts.History, job)
	}
	key, err := json.Marshal([]any{
		p.whose(), p.tenant == nil, job.Data.Source, job.Training.BatchSize,
		job.Training.Backend, job.Model,
	})
	if err != nil {
		return past{}, err
	}
	read := func(ctx context.Context) (past, error) { return readPast(ctx, p.parts.History, job) }
	return p.pasts.get(ctx, string(key), read, p.beside)
}

// get is what is kept under a key, or what read gives; beside runs something that the caller does not wait for.
func (k *pasts) get(ctx context.Context, key string, read func(context.Context) (past, error),
	beside func(func(context.Context)),
) (past, error) {
	k.mu.Lock()
	out, there := k.kept[key]
	age := time.Since(out.read)
	anew := there && age >= pastFor && age < pastMost && !k.reading
	k.reading = k.reading || anew
	k.mu.Unlock()
	if anew {
		beside(func(ctx context.Context) {
			k.read(ctx, key, read) //nolint:errcheck // the older one stays, until a submit has to wait
			k.mu.Lock()
			defer k.mu.Unlock()
			k.reading = false
		})
	}
	if there && age < pastMost {
		return out, nil
	}
	return k.read(ctx, key, read)
}

// read keeps what read gives.
func (k *pasts) read(ctx context.Context, key string, read func(context.Context) (past, error)) (past, error) {
	out, err := read(ctx)
	if err != nil {
		return out, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil || len(k.kept) >= mostKept {
		k.kept = map[string]past{}
	}
	k.kept[key] = out
	return out, nil
}

func readPast(ctx context.Context, h *history.Store, job disdel.Job) (out past, err error) {
	out.read = time.Now()
	if out.similar, err = h.Similar(ctx, job); err != nil {
		return out, err
	}
	recent, err := h.Recent(ctx, pastRecords)
	out.all = together(recent, out.similar)
	return out, err
}
