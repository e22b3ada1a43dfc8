package service_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
	"github.com/disdel/disdel/service"
)

// Sixteen drawn jobs in virtual time, as whole gangs.
func ExampleSimulate() {
	jobs := sim.Generate(sim.Draw{Jobs: 16, Seed: 1, Every: disdel.Millis(time.Second), Tenants: 2})
	cloud := sim.Config{Invokers: 2, Memory: 2 * disdel.GB, Processors: 2, Cold: disdel.Millis(time.Second / 2)}
	r, err := service.Simulate(service.Simulation{Cloud: cloud, Admission: scheduler.AdmissionGang}, jobs)
	fmt.Println(r.Succeeded, "succeeded,", len(r.Stuck), "wait for ever", err)
	// Output: 16 succeeded, 0 wait for ever <nil>
}

func ExampleCompare() {
	jobs := sim.Generate(sim.Draw{Jobs: 1, Seed: 1})
	jobs[0].Epochs, jobs[0].MaxWorkers = 8, 8
	cloud := sim.Config{Invokers: 2, Memory: 8 * disdel.GB, Processors: 8}
	lab, err := service.Compare(service.Simulation{Cloud: cloud}, jobs, []string{"static", "coach"})
	for _, s := range lab.Policies {
		fmt.Println(s.Policy, s.Succeeded, s.Time >= 1)
	}
	fmt.Println(err)
	// Output:
	// best fixed 1 true
	// static 1 true
	// coach 1 true
	// <nil>
}

func TestASimulationNamesWhatThereIs(t *testing.T) {
	for _, s := range []service.Simulation{{Admission: "luck"}, {Estimator: "luck"}} {
		if _, err := service.Simulate(s, nil); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
