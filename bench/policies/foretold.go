package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/scheduler"
)

// speedError is how far the time of an epoch with 3 and with 4 workers is off what 1 and 2 say, by the law of policies
// on this machine's processors: the worse of the two, in the median of the six jobs. Times are medians of some runs.
func speedError(o options) error {
	var off several
	err := o.eachJob("speed", func(t trial) error {
		t.epochs = o.whole(t.epochs)
		worst, err := speedErrorOf(o, t)
		if err != nil {
			return err
		}
		figure("speed_error_"+t.name+"_pct", worst, "%")
		off = append(off, worst)
		return nil
	})
	if len(off) == 0 {
		return err
	}
	figure("speed_error_w4_worst_pct", slices.Max(off), "%")
	off.figure("speed_error_w4_pct", "%")
	return err
}

func speedErrorOf(o options, t trial) (worst float64, err error) {
	r, err := newRig(o)
	if err != nil {
		return 0, err
	}
	defer r.close()            //nolint:errcheck // a folder of its own
	t.evaluate = math.MaxInt16 // rounds: policies go by the time without evaluations
	seconds := map[int]float64{}
	for t.workers = 1; t.workers <= 4; t.workers++ {
		var runs []float64
		for range o.seeds {
			rec, err := r.job(t)
			if err != nil {
				return 0, err
			}
			runs = append(runs, epochSeconds(&rec, t.epochs))
		}
		seconds[t.workers] = median(runs)
	}
	known := map[int]float64{1: seconds[1], 2: seconds[2]}
	of := scheduler.SpeedConditions{Processors: runtime.NumCPU(), Rounds: t.sync != ""}
	for n := 3; n <= 4; n++ {
		said, ok := scheduler.EpochTime(known, of, n)
		if !ok {
			return 0, fmt.Errorf("%s: %v s with 1 and 2 workers make no law", t.name, known)
		}
		fmt.Printf("%s: %d workers take %.3f s an epoch, and %.3f s were foretold\n", t.name, n, seconds[n], said)
		worst = max(worst, 100*math.Abs(said/seconds[n]-1))
	}
	return worst, nil
}

// simulated is how far the lab's simulated times of six jobs under three policies are off what they take when they run:
// the median of the jobs' medians. Each job runs once before with one worker and once with two, so that there is a law
// to simulate it by.
func simulated(o options) error {
	var off several
	err := o.eachJob("sim", func(t trial) error {
		t.epochs = o.whole(t.epochs)
		l, err := labOf(o, t)
		if err != nil {
			return err
		}
		figure("sim_error_"+t.name+"_pct", l.SimError, "%")
		off = append(off, l.SimError)
		return nil
	})
	if len(off) == 0 {
		return err
	}
	off.figure("sim_error_pct", "%")
	return err
}

func labOf(o options, t trial) (l simulate.Lab, err error) {
	r, err := newRig(o)
	if err != nil {
		return l, err
	}
	defer r.close() //nolint:errcheck // a folder of its own
	for _, t.workers = range []int{2, 1} {
		if _, err := r.job(t); err != nil {
			return l, err
		}
	}
	file := filepath.Join(r.Home, "job.yaml")
	if err := os.WriteFile(file, r.file(t), 0o644); err != nil {
		return l, err
	}
	out, err := r.Run(nil, "lab", file, "--policies", "static,elastic,auto", "--run", "-o", "json", "-q")
	if err != nil {
		return l, err
	}
	if err := json.Unmarshal(out, &l); err != nil {
		return l, err
	}
	if l.Run == nil {
		return l, fmt.Errorf("%s: the lab ran nothing", t.name)
	}
	for _, ran := range l.Run.Trials {
		if ran.Why != "" {
			return l, fmt.Errorf("%s under %s: %s", t.name, ran.Policy, ran.Why)
		}
	}
	return l, nil
}
