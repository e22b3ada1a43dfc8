// Command faults kills parts of a training job at random moments drawn from a seed, and compares the result with that
// of the same job without faults. It prints lines of the form
//
//	figure NAME VALUE UNIT
//
// for each of its parts: jobs, lost ones, and those that ended with other bits. A failure keeps its home folder and
// says which seed it had.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/internal/test/faults"
)

func main() {
	o := options{}
	flag.StringVar(&o.program, "program", "bin/disdel", "the built program")
	flag.IntVar(&o.kills, "kills", 200, "kill -9 of action processes")
	flag.IntVar(&o.aggregates, "aggregates", 50,
		"moments just after an aggregation began at which every action process is killed")
	flag.IntVar(&o.restarts, "restarts", 20, "restarts of redis-server")
	flag.IntVar(&o.flushes, "flushes", 10, "losses of all that redis-server holds")
	flag.IntVar(&o.controllers, "controllers", 50, "kill -9 of disdel itself")
	flag.IntVar(&o.beside, "beside", 20, "kill -9 of disdel itself while its store lives on")
	flag.IntVar(&o.duplicates, "duplicates", 400, "activations that are delivered twice")
	flag.BoolVar(&o.staged, "stages", false, "only kill actions of a job that trains two networks in two stages each")
	flag.Uint64Var(&o.seed, "seed", 1, "of the moments and the victims")
	flag.Parse()
	rig.Main(func() error { return run(o) })
}

type options struct {
	program                                                               string
	kills, aggregates, restarts, flushes, controllers, beside, duplicates int
	seed                                                                  uint64
	staged                                                                bool
}

// checkpointEvery is the rounds between checkpoints of the job: more than one, so that a job can lose rounds.
const checkpointEvery = 2

func run(o options) error {
	program, err := filepath.Abs(o.program)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "disdel-faults-")
	if err != nil {
		return err
	}
	job := faults.Job(10, checkpointEvery)
	if o.staged {
		job = faults.StagedJob(10, checkpointEvery)
	}
	faulty := faults.Seeded(program, dir, job, o.seed)
	took, err := faulty.Undisturbed()
	if err != nil {
		return err
	}
	rig.Figure("faults_job_s", took.Seconds(), "s")
	bad := 0
	for _, p := range parts(faulty, o) {
		if p.faults == 0 {
			continue
		}
		faulty.Pace, faulty.PerJob = p.pace, p.perJob
		t, err := p.run(p.faults)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		p.print(t)
		bad += t.Lost + t.Changed
	}
	if bad > 0 {
		return fmt.Errorf("%d jobs were lost or changed; their homes are below %s (seed %d)", bad, dir, o.seed)
	}
	return os.RemoveAll(dir)
}

// part is one kind of fault. The names for its jobs that were lost and changed are lost and changed.
type part struct {
	name, lost, changed string
	faults, perJob      int
	pace                time.Duration
	run                 func(int) (faults.Tally, error)
}

func parts(r *faults.Rig, o options) []part {
	if o.staged {
		return []part{{"killed_stages", "kills_lost", "kills_bits", o.kills, 20, 300 * time.Millisecond, r.KillActions}}
	}
	return []part{
		{"killed_actions", "lost_jobs", "changed_bits", o.kills, 20, 300 * time.Millisecond, r.KillActions},
		{"killed_aggregates", "", "", o.aggregates, 20, 50 * time.Millisecond, r.KillAggregates},
		{"redis_restarts", "", "", o.restarts, 4, 1500 * time.Millisecond, r.RestartRedis},
		{"redis_flushes", "", "", o.flushes, 2, 1500 * time.Millisecond, r.FlushRedis},
		{
			"killed_controllers", "restart_lost_jobs", "restart_changed_bits", o.controllers, 10, 2 * time.Second,
			r.KillController,
		},
		{"killed_controllers_beside_redis", "", "", o.beside, 10, 2 * time.Second, r.KillControllerBesideRedis},
		{"duplicates", "", "", o.duplicates, 1 << 20, 500 * time.Millisecond, r.Duplicate},
	}
}

func (p part) print(t faults.Tally) {
	lost, changed := p.lost, p.changed
	if lost == "" {
		lost, changed = p.name+"_lost_jobs", p.name+"_changed_bits"
	}
	rig.Figure(p.name, float64(t.Faults), "faults")
	rig.Figure(p.name+"_jobs", float64(t.Jobs), "jobs")
	rig.Figure(p.name+"_dead_aggregates", float64(t.Aggregates), "activations")
	rig.Figure(p.name+"_back", float64(t.Back), "rounds")
	rig.Figure(p.name+"_again", float64(t.Duplicates), "deliveries")
	rig.Figure(lost, float64(t.Lost), "jobs")
	rig.Figure(changed, float64(t.Changed), "jobs")
}
