package export_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/export"
)

// record is of two rounds of four steps, in two stretches each.
func record() *disdel.Record {
	began := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	r := &disdel.Record{Created: began, CostGBs: 140, EvaluationGBs: 10, UsedGBs: 100}
	r.Phases.Total = disdel.Millis(36 * time.Second)
	r.Activations = []disdel.Activation{
		{Invocation: disdel.Invocation{Task: disdel.TaskTrain}, Duration: disdel.Millis(20 * time.Second)},
		{Invocation: disdel.Invocation{Task: disdel.TaskTrain}, Duration: disdel.Millis(22 * time.Second)},
		{Invocation: disdel.Invocation{Task: disdel.TaskAggregate}, Duration: disdel.Millis(time.Second)},
	}
	for round := range 2 {
		at := func(s int) time.Time { return began.Add(time.Duration(10*round+s) * time.Second) }
		r.Rounds = append(r.Rounds, disdel.Round{Round: round, Steps: &disdel.StepCourse{Stretches: []disdel.StepStretch{
			{
				Last: 2, Steps: 2, End: at(1), Rows: 20, Loss: 1.5,
				StepTimes: disdel.StepTimes{Fetch: 1, Compute: 2, Select: 3, Write: 4, Wait: 5, Read: 6, Apply: 7},
			},
			{Last: 4, Steps: 2, End: at(3), Rows: 20, Loss: 1.25, StepTimes: disdel.StepTimes{Compute: 2}},
		}}})
	}
	return r
}

// The files have MLLess' names, headers and units; the parts of a step come to its total.
func TestAJobIsWrittenAsMLLessWritesIt(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "run")
	w, err := export.WriteMLLess(prefix, record())
	if err != nil || len(w.Files) != 3 {
		t.Fatalf("%v, %v", w, err)
	}
	for name, want := range map[string]string{
		".json": `{
  "total_train_time": 36,
  "acc_functions_time": 42,
  "super_time": 1,
  "functions_cost": 0.0017,
  "redis_cost": 0.0017,
  "rabbitmq_cost": 0,
  "total_estimated_cost": 0.0034
}
`,
		"_loss-time-history.csv": "step,loss,time\n2,1.5,1\n4,1.25,3\n6,1.5,11\n8,1.25,13\n",
		"_step-time-decomposition.csv": "step,t_fetch_minibatch,t_process,t_generate_updates,t_write_update,t_read_updates," +
			"t_redis_read_updates,t_rabbit_read_updates,t_process_updates,step_total_time\n" +
			"2,0.001,0.002,0.003,0.004,0.011,0.006,0.005,0.007,0.028\n4,0,0.002,0,0,0,0,0,0,0.002\n" +
			"6,0.001,0.002,0.003,0.004,0.011,0.006,0.005,0.007,0.028\n8,0,0.002,0,0,0,0,0,0,0.002\n",
	} {
		got, err := os.ReadFile(prefix + name)
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
		}
	}
	if _, err := export.WriteMLLess(prefix, record()); !errors.Is(err, disdel.Invalid) ||
		!strings.Contains(err.Error(), "run.json") {
		t.Errorf("over files that are there: %v", err)
	}
}

func TestAJobWithoutStepsIsRefused(t *testing.T) {
	_, err := export.WriteMLLess(filepath.Join(t.TempDir(), "run"), &disdel.Record{Rounds: []disdel.Round{{}}})
	if !errors.Is(err, disdel.Invalid) {
		t.Error(err)
	}
}

// A record's steps as a file that programs of MLLess read.
func ExampleWriteMLLess() {
	dir, err := os.MkdirTemp("", "mlless-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	w, err := export.WriteMLLess(filepath.Join(dir, "films"), record())
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := os.ReadFile(w.Files[1])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(text))
	// Output:
	// step,loss,time
	// 2,1.5,1
	// 4,1.25,3
	// 6,1.5,11
	// 8,1.25,13
}
