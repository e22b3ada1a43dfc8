// Command tenants measures what many jobs of many tenants come to, and prints lines of the form
//
//	figure NAME VALUE UNIT
//
// It judges nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/service"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	if served, err := service.ServeActions(ctx, os.Args); served { // a container of an embedded platform
		if err != nil {
			end(err)
		}
		return
	}
	if len(os.Args) == 3 && os.Args[1] == servedBy {
		if err := serveHome(ctx, os.Args[2]); err != nil {
			end(err)
		}
		return
	}
	parts := flag.String("parts", "small,batches,stuck,makespan,served,attacks,takeover", "what is measured")
	shrink := flag.Int("shrink", 1, "divide the rows of the batches' jobs by this, to look whether all of it works")
	seeds := flag.Int("seeds", 200, "seeds of the figures of jobs that stop each other")
	submits := flag.Int("served", 1000, "small jobs that are submitted to a server")
	kills := flag.Int("kills", 50, "times that one of two servers is killed")
	program := flag.String("program", "bin/disdel", "the built program, which the attacks attack")
	flag.Parse()
	debug.SetGCPercent(200) // memory is not what is measured
	rig.Main(func() error {
		return rig.RunParts([]rig.Part{
			{Name: "small", Run: func() error { return small(ctx) }},
			{Name: "batches", Run: func() error { return batches(ctx, *shrink) }},
			{Name: "stuck", Run: func() error { return stuck(*seeds) }},
			{Name: "makespan", Run: func() error { return makespans(*seeds) }},
			{Name: "served", Run: func() error { return served(ctx, *submits) }},
			{Name: "attacks", Run: func() error { return attacks(ctx, *program) }},
			{Name: "takeover", Run: func() error { return takeover(ctx, *kills) }},
		}, *parts)
	})
}

// end ends the program for an error.
func end(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}
