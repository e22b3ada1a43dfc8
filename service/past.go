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
// else of a submit, and jobs that come together learn the same from them.
type pasts struct {
	mu   sync.Mutex
	kept map[string]past // guarded by mu: by tenant and kind
}

const (
	manyJobs = 16               // of a Service, from which on a past is kept
	pastFor  = 10 * time.Second // for as long
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
	return p.pasts.get(string(key), func() (past, error) { return readPast(ctx, p.parts.History, job) })
}

// get is what is kept under a key, or what read gives.
func (k *pasts) get(key string, read func() (past, error)) (past, error) {
	k.mu.Lock()
	out, there := k.kept[key]
	k.mu.Unlock()
	if there && time.Since(out.read) < pastFor {
		return out, nil
	}
	out, err := read()
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
