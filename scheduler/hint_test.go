package scheduler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

// The hint of a plan that does not fit was planned itself: the job fits with it, or no hint exists that would help.
func TestTheHintOfAPlanThatDoesNotFit(t *testing.T) {
	draw := rand.New(rand.NewPCG(31, 3))
	fits, none := 0, 0
	for range 240 {
		in := wide(t)
		in.Job.Training.BatchSize = 1 << draw.IntN(11)
		in.Job.Distribution.Workers = 1 + draw.IntN(6)
		limit := disdel.Bytes(5+draw.IntN(300)) * disdel.MB
		in.Platform.MinMemory = disdel.MB
		switch draw.IntN(4) {
		case 0:
			in.Platform.Pool = limit
		case 1:
			in.Platform.MaxMemory = limit
		case 2:
			in.Job.Resources.Memory = limit
		default:
			in.Job.Resources.MaxMemory = limit
		}
		in.Suggest = true
		_, err := NewPlan(in)
		if disdel.KindOf(err) != disdel.OverLimit {
			continue
		}
		hint := disdel.AsError(err).Hint
		ways := disdel.AsError(err).Changes
		if len(ways) == 0 {
			if none++; !strings.Contains(hint, "a smaller network: the job needs ") {
				t.Fatalf("%v: %s", err, hint)
			}
			agree(t, err, hint)
			least := in
			least.Job.Training.BatchSize, least.Job.Distribution.Workers = 1, 1
			if _, err := NewPlan(least); err == nil {
				t.Errorf("%v: one row fits, and the hint is %s", limit, hint)
			}
			continue
		}
		fits++
		for _, sets := range ways {
			changed := in
			for _, s := range sets {
				path, value, _ := strings.Cut(s, "=")
				change(t, &changed.Job, path, value)
				if !strings.Contains(hint, s) {
					t.Errorf("%s is not in %s", s, hint)
				}
			}
			if _, err := NewPlan(changed); err != nil {
				t.Errorf("%v: %q does not fit: %v", limit, sets, err)
			}
		}
	}
	if fits == 0 || none == 0 {
		t.Errorf("%d hints with a change, %d without", fits, none)
	}
}

// agree compares what a hint says that the job needs with what its error says, in whole MB.
func agree(t *testing.T, err error, hint string) {
	t.Helper()
	said := regexp.MustCompile(`action needs ([0-9.]+) MB`).FindStringSubmatch(err.Error())
	again := regexp.MustCompile(`the job needs ([0-9]+) MB`).FindStringSubmatch(hint)
	if said == nil || again == nil {
		t.Fatalf("%v: %s", err, hint)
	}
	needs, _ := strconv.ParseFloat(said[1], 64)
	if mb, _ := strconv.ParseFloat(again[1], 64); math.Abs(mb-needs) > 1 {
		t.Errorf("%v: %s", err, hint)
	}
}

// change sets a field of a job as --set does.
func change(t *testing.T, job *disdel.Job, path, value string) {
	t.Helper()
	var n int
	switch path {
	case "training.optimizer":
		job.Training.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: plainRate}}
	case "training.precision":
		job.Training.Precision = disdel.PrecisionBF16
	case "resources.memory", "resources.maxMemory":
		if _, err := fmt.Sscanf(value, "%dMB", &n); err != nil {
			t.Fatal(err)
		}
		if path == "resources.memory" {
			job.Resources.Memory = disdel.Bytes(n) * disdel.MB
		} else {
			job.Resources.MaxMemory = disdel.Bytes(n) * disdel.MB
		}
	default:
		if _, err := fmt.Sscan(value, &n); err != nil {
			t.Fatal(err)
		}
		if path == "distribution.workers" {
			job.Distribution.Workers = n
		} else {
			job.Training.BatchSize = n
		}
	}
}

// counting are engines that count how often the footprint of a network is asked for.
type counting struct {
	estimator.Engines
	asked *int
}

func (c counting) Footprint(backend string, s footprint.Spec) (footprint.Footprint, error) {
	*c.asked++
	return c.Engines.Footprint(backend, s)
}

// A plan searches for a hint only if its caller asks. So a cell of a grid that does not fit costs a few plans and an
// evaluation by layers, not dozens. The rest of its hint is a whole sentence.
func TestOnlyACallerThatAsksPaysForAHint(t *testing.T) {
	in := wide(t)
	in.Job.Resources.Memory = 5 * disdel.MB
	in.Platform.MinMemory = disdel.MB
	asked := 0
	in.Estimator = estimator.Planned(counting{backends.Standard(nil), &asked})
	grid := Grid{Workers: []int{1, 2, 4}, Batches: []int{8, 16, 32}}
	in.Suggest = true
	parts, err := in.Graph.Slices()
	if err != nil {
		t.Fatal(err)
	}
	// A few plans and an evaluation in blocks, and the evaluation of each part of the network.
	most := 9 + len(parts)
	if cells := WhatIf(in, grid, AgainstCost); len(cells) < 9 || asked > most*len(cells) {
		t.Errorf("%d cells, the engine was asked %d times", len(cells), asked)
	}
	asked, in.Suggest = 0, false
	_, err = NewPlan(in)
	hint := disdel.AsError(err).Hint
	if asked > most || !strings.HasPrefix(hint, "--set resources.memory=") || strings.HasSuffix(hint, " ") {
		t.Errorf("asked %d times; the hint is %q", asked, hint)
	}
	in.Suggest = true
	if _, err := NewPlan(in); len(disdel.AsError(err).Hint) <= len(hint) || asked < 24 {
		t.Errorf("asked %d times: %v", asked, disdel.AsError(err).Hint)
	}
}
