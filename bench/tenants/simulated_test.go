package main

import (
	"math"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/scheduler/sim"
)

// A job that is calibrated to a time takes that time alone, and every job of the batch can be simulated.
func TestJobsAreCalibrated(t *testing.T) {
	list := mixed(1)
	m := machine(len(list))
	for _, task := range list {
		j := task.simulated(5 * time.Second)
		took := disdel.Millis(7 * time.Second)
		if err := calibrate(m, &j, took); err != nil {
			t.Fatal(err)
		}
		r, err := simulate.Run(m, []sim.Job{j})
		if err != nil || math.Abs(r.Makespan.Seconds()-took.Seconds()) > 0.1 {
			t.Errorf("%s takes %v, %v", task.name, r.Makespan.Text(), err)
		}
	}
}

// What pairs compute more than each alone is divided by what they compute at the same time.
func TestCrowdingIsOfWhatRanTogether(t *testing.T) {
	second := disdel.Millis(time.Second)
	alone := []part{{[]disdel.Millis{3 * second}, 3 * time.Second}, {[]disdel.Millis{second}, time.Second}}
	pairs := []part{{[]disdel.Millis{3 * second, second}, 5 * time.Second}}
	// Of four seconds alone, two were beside each other; they took one more.
	if got := crowding(alone, pairs); math.Abs(got-0.5) > 1e-9 {
		t.Errorf("crowding %v, want 0.5", got)
	}
}
