package actions

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime/debug"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native"
	"github.com/disdel/disdel/runtime/engine/native/plan"
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

// rows returns a shard. A container that gets another worker's reads its rows without those of the last one and without the
// engine, which is that worker's too: two shards at once, or a chunk beside all the rest, were not in the estimate.
func (h *Host) rows(ctx context.Context, key shardKey) (*dataset.Shard, error) {
	c := &h.shard
	if c.shard != nil && c.key == key {
		return c.shard, nil
	}
	if c.shard != nil {
		c.shard = nil
		if err := h.built.drop(); err != nil {
			return nil, err
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
	from := store.ReadTrain
	if key.heldOut {
		from = store.ReadHeldOut
	}
	shard, err := from(ctx, key.data, key.rows)
	if err != nil {
		return nil, err
	}
	c.key, c.shard = key, shard
	debug.FreeOSMemory() // the memory that chunks came in, before an engine takes its own
	return shard, nil
}

// storeCache keeps the way to the last job's store open: setting connections up anew would take a warm round longer than what
// travels over them.
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

// Engine is what tasks compute with: native.Engine, or that of another backend.
type Engine interface {
	Init(init disdel.Init)
	SetWeights(w disdel.Weights) error
	ResetOptimizer() error
	SetRate(rate float64)
	Step(x []float32, labels []int32) (float64, error)
	Evaluate(x []float32, labels []int32) (lossSum float64, correct int, err error)
	Predict(x []float32, rows int) ([]float32, error)
	Weights() disdel.Weights
	Close() error
}

// Backend makes engines for a network, of which g is the graph.
type Backend func(n disdel.Network, g *model.Graph, cfg native.Config) (Engine, error)

// The names that a Host looks backends up by, besides those that a job may ask for.
const (
	StandardBackend = "native" // the engine with its static plan; also what a request means that names none
	CustomBackend   = "custom" // networks that this binary has and no other
)

func standard(_ disdel.Network, g *model.Graph, cfg native.Config) (Engine, error) {
	return native.New(g, cfg)
}

// slab is what an engine keeps outside the Go heap.
func slab(e Engine) disdel.Bytes {
	if p, ok := e.(interface{ Plan() *plan.Plan }); ok {
		return p.Plan().Bytes()
	}
	return 0
}

// engineSpec is what an engine is made of, and a text that tells it apart from others.
type engineSpec struct {
	key     string
	backend string
	net     disdel.Network
	cfg     native.Config
}

func engineKey(backend string, n disdel.Network, cfg native.Config) engineSpec {
	if n.Custom != nil {
		backend = CustomBackend
	}
	s := engineSpec{backend: cmp.Or(backend, StandardBackend), net: n, cfg: cfg}
	text, err := json.Marshal(struct {
		B string
		N disdel.Network
		C native.Config
	}{s.backend, n, cfg})
	if err == nil { // plain data only; an empty key is never found again
		s.key = string(text)
	}
	return s
}

// engineCache keeps the last engine built.
type engineCache struct {
	backends map[string]Backend
	key      string
	engine   Engine
}

// find returns what makes an engine. It returns Invalid for a name that this action has not.
func (c *engineCache) find(s engineSpec) (Backend, error) {
	if b, ok := c.backends[s.backend]; ok {
		return b, nil
	}
	if s.net.Custom != nil {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("this binary has no network %q", s.net.Custom.Name),
			Hint: "give the binary that has it: --action FILE",
		}
	}
	return nil, &disdel.Error{Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("there is no backend %q", s.backend), Hint: "use native or gorgonia: --backend NAME"}
}

func (c *engineCache) get(g *model.Graph, s engineSpec) (Engine, error) {
	if c.engine != nil && s.key != "" && c.key == s.key {
		return c.engine, nil
	}
	if err := c.drop(); err != nil {
		return nil, err
	}
	backend, err := c.find(s)
	if err != nil {
		return nil, err
	}
	e, err := backend(s.net, g, s.cfg)
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
