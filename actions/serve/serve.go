package serve

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/actions"
	"github.com/disdel/disdel/model"
	owruntime "github.com/disdel/disdel/runtime"
	"github.com/disdel/disdel/runtime/engine/gorgonia"
	"github.com/disdel/disdel/runtime/engine/native"
)

// DefaultAddress is where OpenWhisk looks for a container's runtime.
const DefaultAddress = ":8080"

// GorgoniaBackend is what a job asks for gorgonia by, in the place of the engine with its static plan.
const GorgoniaBackend = "gorgonia"

// collectEvery is the collector's target for actions: memory is what they are billed and killed for.
const collectEvery = 40

// NewHost returns a host that measures this process, with the standard backends.
func NewHost() *actions.Host {
	h := actions.NewHost(owruntime.Memory)
	h.Use(GorgoniaBackend, gorgoniaEngine)
	return h
}

func gorgoniaEngine(_ disdel.Network, g *model.Graph, cfg native.Config) (actions.Engine, error) {
	e, err := gorgonia.New(g, cfg)
	if err != nil {
		return nil, err // not a nil *gorgonia.Engine, which is no nil Engine
	}
	return e, nil
}

// Serve answers /init and /run at an address (:PORT, tcp:HOST:PORT or unix:/PATH) until ctx ends, and closes the host.
func Serve(ctx context.Context, address string, h *actions.Host) error {
	debug.SetGCPercent(collectEvery)
	handlers := map[disdel.Task]owruntime.Handler{}
	for task, handle := range h.Handlers() {
		handlers[task] = func(ctx context.Context, p json.RawMessage) (any, error) { return handle(ctx, p) }
	}
	l, err := owruntime.Listen(address)
	if err != nil {
		return err
	}
	err = owruntime.New(handlers, owruntime.Config{Limit: owruntime.ContainerLimit()}).Serve(ctx, l)
	return errors.Join(err, h.Close())
}
