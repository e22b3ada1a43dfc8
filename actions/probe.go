package actions

import (
	"context"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
)

// Bounds of a probe: how long it waits for a store, and how often it looks whether it is to go.
const (
	reachWithin = 10 * time.Second
	meetEvery   = 200 * time.Millisecond
)

// look is the probe action: it describes the container, connects to the stores that the request names, and then stays,
// or ends as the request says.
func (h *Host) look(ctx context.Context, c *call, req disdel.ProbeRequest) (res disdel.ProbeResult, err error) {
	now := h.now()
	res = disdel.ProbeResult{
		Processors: h.found, Limit: h.limit, Node: node(), UnixMs: now.UnixMilli(), Warm: c.warm,
	}
	if end, ok := ctx.Deadline(); ok {
		res.Left = disdel.Millis(end.Sub(now))
	}
	res.Reached = h.reach(ctx, req)
	if req.Exit {
		os.Exit(1) // which is what was asked for: how a platform tells of it is what the check is about
	}
	defer runtime.KeepAlive(touch(req.Touch))
	if req.Deaf {
		time.Sleep(time.Duration(req.Hold))
		return res, nil
	}
	return res, h.hold(ctx, req)
}

// node identifies the machine by the start time of its kernel.
func node() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(boot))
}

// touch allocates memory and writes all of its pages.
func touch(size disdel.Bytes) []byte {
	const page = 4096
	out := make([]byte, size)
	for i := 0; i < len(out); i += page {
		out[i] = 1
	}
	return out
}

// reach tells which stores answer from here.
func (h *Host) reach(ctx context.Context, req disdel.ProbeRequest) (out []disdel.Reached) {
	try := func(what string, f func(ctx context.Context) error) {
		ctx, stop := context.WithTimeout(ctx, reachWithin)
		defer stop()
		begun := h.now()
		r := disdel.Reached{What: what}
		if err := f(ctx); err != nil {
			r.Failure = disdel.AsError(err)
		}
		r.Took = disdel.Millis(h.now().Sub(begun))
		out = append(out, r)
	}
	if req.Store != nil {
		try("redis", func(ctx context.Context) error {
			store, err := h.store.open(ctx, *req.Store)
			if err == nil {
				_, err = store.Heartbeat(ctx, req.Probes, h.state(req))
			}
			return err
		})
	}
	if req.Models != "" {
		try("storage", func(ctx context.Context) error { return reachStorage(ctx, req.Models) })
	}
	if req.CouchDB != "" {
		try("couchdb", func(ctx context.Context) error { return reachServer(ctx, req.CouchDB) })
	}
	return out
}

// absent is a key that does not exist: a bucket that reports this was reached and can be read.
const absent = "disdel-probe/absent"

func reachStorage(ctx context.Context, address string) error {
	store, err := modelstore.Open(ctx, address)
	if err != nil {
		return err
	}
	defer store.Close()
	_, err = store.ReadWeights(ctx, absent, "")
	if disdel.KindOf(err) == disdel.NotFound {
		return nil
	}
	return err
}

// reachServer accepts any answer, since an action does not have the password.
func reachServer(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return &disdel.Error{Kind: disdel.Invalid, Op: "reach server", Msg: "the address is no URL"}
	}
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := direct.Do(req)
	if err != nil {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "reach server", Msg: req.URL.Host, Err: err}
	}
	return res.Body.Close()
}

func (h *Host) state(req disdel.ProbeRequest) disdel.Progress {
	return disdel.Progress{Task: disdel.TaskProbe, Member: req.Member, UnixMs: h.now().UnixMilli()}
}

// hold waits until the probe is cancelled, its time is over or its deadline has passed. Without a store it cannot be
// cancelled.
func (h *Host) hold(ctx context.Context, req disdel.ProbeRequest) error {
	if req.Hold == 0 {
		return nil
	}
	over := time.NewTimer(time.Duration(req.Hold))
	defer over.Stop()
	tick := time.NewTicker(meetEvery)
	defer tick.Stop()
	for {
		select {
		case <-over.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if req.Store == nil {
			continue
		}
		store, err := h.store.open(ctx, *req.Store)
		if err != nil {
			continue // the finding has it already
		}
		if gone, err := store.Heartbeat(ctx, req.Probes, h.state(req)); err == nil && gone {
			return nil
		}
	}
}
