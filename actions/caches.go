package actions

import (
	"context"
	"encoding/json"
	"reflect"
	"runtime/debug"
	"sync/atomic"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

type shardKey struct {
	data disdel.DataRef
	rows disdel.RowRange
	part disdel.DataPart
}

// shardCache keeps the last shard read: a warm container usually gets the same worker again.
type shardCache struct {
	key   shardKey
	shard *dataset.Shard
}

// rows returns a shard: the cached one, or one read from the data set. Before it reads another shard it drops the old
// one and the engine, since the estimate has no room for two shards, nor for a chunk beside an engine. The process of a
// program stays, which takes long to start: its estimate has room.
func (h *Host) rows(ctx context.Context, key shardKey) (*dataset.Shard, error) {
	c := &h.shard
	if c.shard != nil && c.key == key {
		return c.shard, nil
	}
	if c.shard != nil {
		c.shard.Close() //nolint:errcheck // its file has no name any more
		c.shard = nil
		if e := h.built.engine; e == nil || e.Listener() == nil {
			if err := h.built.drop(); err != nil {
				return nil, err
			}
		}
		debug.FreeOSMemory()
	}
	return c.read(ctx, key)
}

func (c *shardCache) read(ctx context.Context, key shardKey) (*dataset.Shard, error) {
	store, err := dataset.OpenStore(ctx, key.data.URL)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	shard, err := store.ReadPart(ctx, key.data, key.part, key.rows)
	if err != nil {
		return nil, err
	}
	c.key, c.shard = key, shard
	debug.FreeOSMemory() // the memory that chunks came in, before an engine takes its own
	return shard, nil
}

// storeCache keeps the connections to the last job's store: new connections would take longer than a warm round's data.
type storeCache struct {
	at    disdel.Store
	store *aggregator.Store
}

func (c *storeCache) open(ctx context.Context, at disdel.Store) (*aggregator.Store, error) {
	if c.store != nil && reflect.DeepEqual(c.at, at) {
		return c.store, nil
	}
	c.drop()
	store, err := aggregator.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	c.at, c.store = at, store
	return store, nil
}

func (c *storeCache) drop() {
	if c.store != nil {
		c.store.Close() //nolint:errcheck // everything was acknowledged or is of no use
	}
	c.store = nil
}

// slab is the memory of an engine outside the Go heap.
func slab(e engine.Engine) disdel.Bytes { return e.Footprint().In(footprint.Host) }

// engineCache keeps the last engine built.
type engineCache struct {
	backends engine.Table
	key      string
	engine   engine.Engine
	given    string       // checkpoint that the frozen weights of a training engine are of; "": of none
	process  atomic.Int64 // that computes and is no child of this one; 0: none
}

// get returns an engine of a backend, "" for any. The spec's context bounds its calls if it may hang. It returns
// Invalid for a backend that this action does not have, and the backend's error for networks that it does not support.
func (c *engineCache) get(backend string, n disdel.Network, s engine.Spec) (engine.Engine, error) {
	b, err := c.backends.Find(backend, s.Graph)
	if err != nil {
		return nil, err
	}
	key := engineKey(b.Name(), n, s)
	if c.engine != nil && key != "" && c.key == key {
		if l := c.engine.Listener(); l == nil || l.Until(s.Context) {
			return c.engine, nil
		}
	}
	if err := c.drop(); err != nil {
		return nil, err
	}
	e, err := b.New(s)
	if err != nil {
		return nil, err
	}
	c.key, c.engine, c.given = key, e, ""
	if l := e.Listener(); l != nil {
		c.process.Store(int64(l.Process()))
	}
	return e, nil
}

// engineKey identifies an engine; an empty key is never found again.
func engineKey(backend string, n disdel.Network, s engine.Spec) string {
	from, to := 0, 0
	if s.Graph != nil && s.Graph.Slice != nil {
		from, to = s.Graph.Slice.From, s.Graph.Slice.To
	}
	s.Graph = nil                                  // it is the network's
	if n.Custom != nil && n.Custom.Python != nil { // a process takes seconds to start, and is the same for all workers
		s.Seed, s.Place = 0, 0
	}
	text, err := json.Marshal(struct {
		B        string
		N        disdel.Network
		C        engine.Spec
		From, To int // of a slice
	}{backend, n, s, from, to})
	if err != nil { // plain data only
		return ""
	}
	return string(text)
}

// abandon drops an engine whose state a failure may have changed: that of a user's program.
func (c *engineCache) abandon() {
	if c.engine != nil && c.engine.Listener() != nil {
		c.drop() //nolint:errcheck // the failure says more
	}
}

func (c *engineCache) drop() error {
	if c.engine == nil {
		return nil
	}
	e := c.engine
	c.engine = nil
	c.process.Store(0)
	return e.Close()
}
