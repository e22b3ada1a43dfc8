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
	"strings"

	"golang.org/x/sys/unix"

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
	parts := flag.String("parts", "small,batches,stuck,makespan,large,served,attacks,takeover",
		"what is measured; simulated: of the batches, how far the simulator is off")
	jobs := flag.Int("jobs", 100_000, "jobs of the large trace; the small one has a hundredth of them")
	shrink := flag.Int("shrink", 1, "divide the rows of the batches' jobs by this, to look whether all of it works")
	seeds := flag.Int("seeds", 200, "seeds of the figures of jobs that stop each other")
	submits := flag.Int("served", 1000, "small jobs that are submitted to a server")
	kills := flag.Int("kills", 50, "times that one of two servers is killed")
	program := flag.String("program", "bin/disdel", "the built program, which the attacks attack")
	flag.Parse()
	debug.SetGCPercent(200) // memory is not what is measured
	for part := range strings.SplitSeq(*parts, ",") {
		var err error
		switch part {
		case "small":
			err = small(ctx)
		case "batches":
			err = batches(ctx, *shrink)
		case "simulated":
			err = alone(ctx, *shrink)
		case "stuck":
			err = stuck(*seeds)
		case "makespan":
			err = makespans(*seeds)
		case "large":
			err = large(*jobs)
		case "served":
			err = served(ctx, *submits)
		case "attacks":
			err = attacks(ctx, *program)
		case "takeover":
			err = takeover(ctx, *kills)
		default:
			err = fmt.Errorf("there is no part %q", part)
		}
		if err != nil {
			end(err)
		}
	}
}

// end ends the program for an error.
func end(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

func figure(name string, value float64, unit string) {
	fmt.Printf("figure %s %.6g %s\n", name, value, unit)
}
