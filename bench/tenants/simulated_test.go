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
	for _, task := range mixed(1) {
		j := task.simulated()
		took := disdel.Millis(7 * time.Second)
		if err := calibrate(&j, took); err != nil {
			t.Fatal(err)
		}
		r, err := simulate.Run(machine(), []sim.Job{j})
		if err != nil || math.Abs(r.Makespan.Seconds()-took.Seconds()) > 0.1 {
			t.Errorf("%s takes %v, %v", task.name, r.Makespan.Text(), err)
		}
	}
}
