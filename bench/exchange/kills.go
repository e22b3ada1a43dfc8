package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/internal/test/faults"
)

// killedJob is a kind of job whose workers are killed.
type killedJob struct {
	job    []byte
	differ bool // two undisturbed runs of it come to different bits
	kills  int
}

// killedJobs are jobs in lock-step, with the filter and apart by a slack, a third of the kills each, and eager jobs.
// One eager job takes batches from a queue and removes workers while a round runs.
func killedJobs(kills int) []killedJob {
	const epochs = 6
	return []killedJob{
		{faults.ExchangeJob(epochs, "{}"), false, (kills + 2) / 3},
		{faults.ExchangeJob(epochs, "{threshold: 0.7, combine: sum}"), false, (kills + 1) / 3},
		{faults.ExchangeJob(epochs, "{slack: 2, threshold: 0.3}"), false, kills / 3},
		{faults.ExchangeJob(epochs, "{order: eager, slack: 2, threshold: 0.3}"), true, kills / 8},
		{
			faults.ExchangeJob(epochs, "{order: eager, slack: 3, batches: queue, combine: sum}", "policy: mlless"),
			true, kills / 8,
		},
	}
}

// killed kills workers of jobs, and counts jobs that were lost or, in a fixed order, came to other bits.
func killed(program string, kills int, seed uint64) error {
	dir, err := os.MkdirTemp("", "disdel-kills-")
	if err != nil {
		return err
	}
	var fixed, eager faults.Tally
	for i, k := range killedJobs(kills) {
		faulty := faults.Seeded(program, filepath.Join(dir, fmt.Sprint(i)), k.job, 8*seed+uint64(i))
		faulty.Data, faulty.Pace, faulty.Differs = faults.ExchangeData(), 300*time.Millisecond, k.differ
		if _, err := faulty.Undisturbed(); err != nil {
			return fmt.Errorf("undisturbed job %d (seed %d): %w", i, seed, err)
		}
		t, err := faulty.KillActions(k.kills)
		if err != nil {
			return err
		}
		sum := &fixed
		if k.differ {
			sum = &eager
		}
		sum.Faults, sum.Jobs = sum.Faults+t.Faults, sum.Jobs+t.Jobs
		sum.Lost, sum.Changed = sum.Lost+t.Lost, sum.Changed+t.Changed
	}
	rig.Figure("kills", float64(fixed.Faults), "faults")
	rig.Figure("killed_jobs", float64(fixed.Jobs), "jobs")
	rig.Figure("lost_jobs", float64(fixed.Lost), "jobs")
	rig.Figure("changed_bits", float64(fixed.Changed), "jobs")
	rig.Figure("eager_kills", float64(eager.Faults), "faults")
	rig.Figure("eager_killed_jobs", float64(eager.Jobs), "jobs")
	rig.Figure("eager_lost_jobs", float64(eager.Lost), "jobs")
	if lost := fixed.Lost + eager.Lost; lost+fixed.Changed > 0 {
		return fmt.Errorf("%d jobs were lost and %d changed; their homes are below %s (seed %d)",
			lost, fixed.Changed, dir, seed)
	}
	return os.RemoveAll(dir)
}
