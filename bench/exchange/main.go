// Command exchange measures models of sparse rows, and what exchanging updates after every step would come to, and
// prints lines of the form
//
//	figure NAME VALUE UNIT
//
// It judges nothing. Rows a second are measured on one processor. Jobs of four workers, each a process of its own, run
// through the built program beside a redis-server: the time of a step and its parts, the bytes that the filter saves,
// and jobs whose workers are killed. If an experiment needs more workers than a machine has, replicas in one process
// learn for real (gradients, filter, order of addition), and a virtual clock times them: a step takes its rows, its
// bytes over a server that all share, and a draw for stragglers. The server's speed makes bulk synchronous steps four
// fifths communication. clock_error compares the clock's times of the real jobs with their real times. Seeds are fixed,
// so that two runs print the same but for what is measured in time.
package main

import (
	"context"
	"flag"
	"path/filepath"
	"strings"

	"github.com/disdel/disdel/bench/rig"
)

func main() {
	var o options
	parts := flag.String("parts", "speed,real,virtual,tuner,kills", "what to measure, separated by commas")
	flag.StringVar(&o.movielens, "movielens", ".cache/movielens/ml-100k.inter",
		"file of MovieLens-100K; made ratings where it is not there")
	flag.IntVar(&o.seeds, "seeds", 5, "seeds of figures that are means")
	flag.IntVar(&o.tunerSeeds, "tuner-seeds", 20, "seeds of each job of the tuner's figures")
	flag.IntVar(&o.kills, "kills", 200, "kill -9 of workers of jobs in a fixed order; a quarter as many of eager ones")
	flag.Uint64Var(&o.killSeed, "kill-seed", 1, "of the moments and the victims of kills")
	pythons := flag.String("pythons", "", "interpreters that have PyTorch, scikit-learn or LightFM, separated by commas")
	flag.StringVar(&o.program, "program", "bin/disdel", "the built program")
	flag.Parse()
	o.pythons = strings.FieldsFunc(*pythons, func(r rune) bool { return r == ',' })
	rig.Main(func() error { return run(context.Background(), o, *parts) })
}

type options struct {
	movielens, program string
	seeds, kills       int
	tunerSeeds         int
	killSeed           uint64
	pythons            []string
}

func run(ctx context.Context, o options, parts string) (err error) {
	if o.program, err = filepath.Abs(o.program); err != nil {
		return err
	}
	films, err := loadRatings(ctx, o.movielens)
	if err != nil {
		return err
	}
	ads, err := loadClicks(ctx)
	if err != nil {
		return err
	}
	return rig.RunParts([]rig.Part{
		{Name: "speed", Run: func() error { return speed(films, ads, o.pythons) }},
		{Name: "real", Run: func() error { return onThisMachine(o) }},
		{Name: "virtual", Run: func() error { return virtual(films, ads, o.seeds) }},
		{Name: "tuner", Run: func() error { return tuner(films, ads, o.tunerSeeds) }},
		{Name: "kills", Run: func() error { return killed(o.program, o.kills, o.killSeed) }},
	}, parts)
}

// virtual is what is timed by the virtual clock, or needs no time.
func virtual(films, ads *learning, seeds int) error {
	for _, measure := range []func() error{
		func() error { return significance(films) },
		func() error { return gap(films, ads, seeds) },
		func() error { return slack(films) },
		func() error { return servers(films) },
	} {
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}
