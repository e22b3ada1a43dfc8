// Command disdel-runtime is the action runtime alone, the entry point of a container image: OpenWhisk's /init and /run
// for train, aggregate, evaluate and infer. The native engine computes, except for models of sparse rows and for users'
// Python programs, which have engines of their own. A program that is built with the tag nvidia has one for GPUs, too.
//
//	disdel-runtime [--listen :PORT|tcp:HOST:PORT|unix:/PATH]
//
// It does what `disdel runtime` does with a third of the size, and without the backend gorgonia, which is for networks
// of a program's own: those bring their own program (package actions/custom). Arguments may begin with the word
// runtime, as a platform that starts programs of either kind has it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/actions/serve"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/gpu"
	"github.com/disdel/disdel/runtime/engine/native"
	"github.com/disdel/disdel/runtime/engine/python"
	"github.com/disdel/disdel/runtime/engine/sparse"
)

// release is the version, set when the program is built.
var release = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err == nil {
		return
	}
	serve.Tell(os.Stderr, err)
	os.Exit(1)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 1 && (args[0] == "version" || args[0] == "--version") {
		_, err := fmt.Fprintln(out, "disdel-runtime", release)
		return err
	}
	if len(args) > 0 && args[0] == "runtime" {
		args = args[1:]
	}
	address, err := serve.ReadAddress(args)
	if err != nil {
		return err
	}
	aggregator.SilenceRedis()
	return serve.Serve(ctx, address, serve.NewHost(engine.Table{
		Backends: append([]engine.Backend{native.Backend{}, sparse.Backend{}, python.Backend{}}, gpu.Backends()...),
		Custom:   disdel.BackendGorgonia, Sparse: disdel.BackendSparse, Programs: disdel.BackendPython,
	}))
}
