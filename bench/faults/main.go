// Command faults kills what a training job is made of, at random moments drawn from a seed, and holds what comes of the job
// against the same job left alone. It prints lines of the form
//
//	figure NAME VALUE UNIT
//
// Its three parts: actions (kill -9 of action processes), redis (restarts of a redis-server with an append-only file) and
// controller (kill -9 of disdel itself, then disdel resume). Every job is seeded, so that one that lost or doubled anything
// ends with other bits. A failure keeps its home folder and says which seed it had.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

func main() {
	o := options{}
	flag.StringVar(&o.program, "program", "bin/disdel", "the built program")
	flag.IntVar(&o.kills, "kills", 200, "kill -9 of action processes")
	flag.IntVar(&o.restarts, "restarts", 20, "restarts of redis-server")
	flag.IntVar(&o.controllers, "controllers", 50, "kill -9 of disdel itself")
	flag.Uint64Var(&o.seed, "seed", 1, "of the moments and the victims")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

type options struct {
	program                      string
	kills, restarts, controllers int
	seed                         uint64
}

func run(o options) error {
	program, err := filepath.Abs(o.program)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "disdel-faults-")
	if err != nil {
		return err
	}
	h := &harness{program: program, dir: dir, rng: rand.New(rand.NewPCG(o.seed, 0xfa017))}
	if h.want, err = h.undisturbed(); err != nil {
		return err
	}
	for _, part := range []func(options) error{h.actions, h.redis, h.controllers} {
		if err := part(o); err != nil {
			return err
		}
	}
	if h.failures > 0 {
		return fmt.Errorf("%d jobs were lost or changed; their homes are below %s (seed %d)", h.failures, dir, o.seed)
	}
	return os.RemoveAll(dir)
}

func figure(name string, value float64, unit string) {
	fmt.Printf("figure %s %.4g %s\n", name, value, unit)
}
