// Package serve is the action runtime of a container: a host behind OpenWhisk's /init and /run, with the backends that
// the main program gives it.
//
// The program disdel serves it as `disdel runtime`; a program with a network of its own (actions/custom) serves the
// same with that network. It refuses nothing that the host does not. Invariant: memory is collected at actions' pace,
// since memory is what they are billed and killed for.
package serve

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/actions"
	owruntime "github.com/disdel/disdel/runtime"
	"github.com/disdel/disdel/runtime/engine"
)

// DefaultAddress is where OpenWhisk looks for a container's runtime.
const DefaultAddress = ":8080"

// ReadAddress reads the arguments of a program that serves actions: --listen ADDRESS, or nothing for DefaultAddress. It
// returns Invalid for others.
func ReadAddress(args []string) (string, error) {
	flags := flag.NewFlagSet("runtime", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	address := flags.String("listen", DefaultAddress, "")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return "", &disdel.Error{
			Kind: disdel.Invalid, Op: "start action",
			Msg: fmt.Sprintf("runtime takes --listen ADDRESS, not %q", args), Err: err,
		}
	}
	return *address, nil
}

// Tell writes why a program that serves actions ended, and what to do about it.
func Tell(w io.Writer, err error) {
	e := disdel.AsError(err)
	fmt.Fprintf(w, "error: %v\n", e)
	if e.Hint != "" {
		fmt.Fprintf(w, " hint: %s\n", e.Hint)
	}
}

// NewHost returns a host that measures this process and computes with these backends.
func NewHost(backends engine.Table) *actions.Host { return actions.NewHost(owruntime.Memory, backends) }

// Serve answers /init and /run at an address (:PORT, tcp:HOST:PORT or unix:/PATH) until ctx ends, and closes the host.
func Serve(ctx context.Context, address string, h *actions.Host) error {
	debug.SetGCPercent(actions.CollectEvery)
	handlers := map[disdel.Task]owruntime.Handler{}
	for task, handle := range h.Handlers() {
		handlers[task] = func(ctx context.Context, p json.RawMessage) (any, error) { return handle(ctx, p) }
	}
	l, err := owruntime.Listen(address)
	if err != nil {
		return err
	}
	limit := owruntime.ContainerLimit()
	h.Within(limit)
	together := []disdel.Task{disdel.TaskInfer} // whose requests need not be there at once, but may be
	err = owruntime.New(handlers, owruntime.Config{
		Limit: limit, Together: together, Memory: h.Memory,
	}).Serve(ctx, l)
	return errors.Join(err, h.Close())
}
