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
	for _, task := range list {
		j := task.simulated(5 * time.Second)
		took := disdel.Millis(7 * time.Second)
		if err := calibrate(&j, len(list), took); err != nil {
			t.Fatal(err)
		}
		r, err := simulate.Run(machine(len(list)), []sim.Job{j})
		if err != nil || math.Abs(r.Makespan.Seconds()-took.Seconds()) > 0.1 {
			t.Errorf("%s takes %v, %v", task.name, r.Makespan.Text(), err)
		}
	}
}
