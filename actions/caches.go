package actions

import (
	"context"
	"encoding/json"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

type shardKey struct {
	data    disdel.DataRef
	rows    disdel.Rows
	heldOut bool
}

// shardCache keeps the last shard read: a warm container usually gets the same worker again.
type shardCache struct {
	key   shardKey
	shard *dataset.Shard
}

func (c *shardCache) get(ctx context.Context, key shardKey) (*dataset.Shard, error) {
	if c.shard != nil && c.key == key {
		return c.shard, nil
	}
	c.shard = nil // two shards at once were not in the estimate
	store, err := dataset.OpenStore(ctx, key.data.URL)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	read := store.ReadTrain
	if key.heldOut {
		read = store.ReadHeldOut
	}
	shard, err := read(ctx, key.data, key.rows)
	if err != nil {
		return nil, err
	}
	c.key, c.shard = key, shard
	return shard, nil
}

// engineSpec is an engine's configuration and a text that tells it apart from others.
type engineSpec struct {
	key string
	cfg engine.Config
}

func engineKey(n disdel.Network, cfg engine.Config) engineSpec {
	text, err := json.Marshal(struct {
		N disdel.Network
		C engine.Config
	}{n, cfg})
	if err != nil {
		return engineSpec{cfg: cfg} // plain data only; an empty key is never found again
	}
	return engineSpec{key: string(text), cfg: cfg}
}

// engineCache keeps the last engine built.
type engineCache struct {
	key    string
	engine *engine.Engine
}

func (c *engineCache) get(g *model.Graph, s engineSpec) (*engine.Engine, error) {
	if c.engine != nil && s.key != "" && c.key == s.key {
		return c.engine, nil
	}
	if err := c.drop(); err != nil {
		return nil, err
	}
	e, err := engine.New(g, s.cfg)
	if err != nil {
		return nil, err
	}
	c.key, c.engine = s.key, e
	return e, nil
}

func (c *engineCache) drop() error {
	if c.engine == nil {
		return nil
	}
	e := c.engine
	c.engine = nil
	return e.Close()
}
