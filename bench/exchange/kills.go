package main

import (
	"fmt"
	"os"
	"time"

	"github.com/disdel/disdel/internal/faults"
)

// killed kills workers of jobs in lock-step, with the filter and apart by a slack, and counts jobs that were lost or
// came to other bits.
func killed(program string, kills int) error {
	dir, err := os.MkdirTemp("", "disdel-kills-")
	if err != nil {
		return err
	}
	var sum faults.Tally
	for i, exchange := range []string{"{}", "{threshold: 0.7, combine: sum}", "{slack: 2, threshold: 0.3}"} {
		rig := faults.Seeded(program, fmt.Sprint(dir, "/", i), faults.ExchangeJob(6, exchange), uint64(i+1))
		rig.Data, rig.Pace = faults.ExchangeData(), 300*time.Millisecond
		if _, err := rig.Undisturbed(); err != nil {
			return err
		}
		t, err := rig.KillActions((kills + 2 - i) / 3)
		if err != nil {
			return err
		}
		sum.Faults, sum.Jobs = sum.Faults+t.Faults, sum.Jobs+t.Jobs
		sum.Lost, sum.Changed = sum.Lost+t.Lost, sum.Changed+t.Changed
	}
	figure("kills", float64(sum.Faults), "faults")
	figure("killed_jobs", float64(sum.Jobs), "jobs")
	figure("lost_jobs", float64(sum.Lost), "jobs")
	figure("changed_bits", float64(sum.Changed), "jobs")
	if sum.Lost+sum.Changed > 0 {
		return fmt.Errorf("%d jobs were lost and %d changed; their homes are below %s", sum.Lost, sum.Changed, dir)
	}
	return os.RemoveAll(dir)
}
