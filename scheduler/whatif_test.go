package scheduler

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// wide is a job whose memory is mostly its batch and its shard, so that both matter.
func wide(t testing.TB) PlanInput {
	in := planInput(t)
	in.Data.Train, in.Data.HeldOut, in.Data.SampleSize = 6000, 100, 20*disdel.KB
	in.Job.Training.BatchSize, in.Job.Distribution.Workers = 64, 4
	return in
}

// Every cell is the plan of the job with that batch and number of workers; the job's own is marked, and added where the
// grid leaves it out.
func TestWhatIfPlansEveryCell(t *testing.T) {
	in := wide(t)
	cells := WhatIf(in, Grid{Workers: []int{1, 2}, Batches: []int{32, 64}}, AgainstCost)
	var got []string
	for _, c := range cells {
		in.Job.Distribution.Workers, in.Job.Training.BatchSize = c.Workers, c.BatchSize
		p, err := NewPlan(in)
		if err != nil {
			t.Fatal(err)
		}
		train, _ := p.Action(disdel.TaskTrain)
		if c.Limit != train.Limits.Memory || c.Memory != train.Estimate.Peak() || c.Parallel != p.Parallel || c.Pareto {
			t.Errorf("%+v", c)
		}
		mark := ""
		if c.InFile {
			mark = "*"
		}
		got = append(got, fmt.Sprintf("%dx%d%s", c.BatchSize, c.Workers, mark))
	}
	if diff := cmp.Diff("32x1 32x2 64x1 64x2 64x4*", strings.Join(got, " ")); diff != "" {
		t.Error(diff)
	}
}

// Whatever the grid and the platform, a cell says what a plan of that job by itself says. A cell that cannot be planned
// is one whose job NewPlan refuses.
func TestDrawnCellsAreSinglePlans(t *testing.T) {
	base := wide(t)
	rapid.Check(t, func(t *rapid.T) {
		in := base
		in.Data.Train = rapid.IntRange(50, 9000).Draw(t, "rows")
		in.Platform.MaxMemory = disdel.Bytes(rapid.IntRange(128, 700).Draw(t, "most")) * disdel.MB
		in.Job.Training.ClipNorm = rapid.SampledFrom([]float64{0, 1}).Draw(t, "clip")
		in.Job.Training.BatchSize = rapid.IntRange(1, 200).Draw(t, "batch")
		grid := Grid{
			Workers: rapid.SliceOfNDistinct(rapid.IntRange(1, 12), 1, 3, rapid.ID[int]).Draw(t, "workers"),
			Batches: rapid.SliceOfNDistinct(rapid.IntRange(1, 300), 1, 3, rapid.ID[int]).Draw(t, "batches"),
		}
		for _, c := range WhatIf(in, grid, AgainstCost) {
			one := in
			one.Job.Distribution.Workers, one.Job.Training.BatchSize = c.Workers, c.BatchSize
			p, err := NewPlan(one)
			short := one.Data.Train/c.Workers < c.BatchSize // for which a job file is refused before it is planned
			if (err != nil || short) != (c.Limit == 0) {
				t.Fatalf("the cell is %+v, and the plan's error is %v", c, err)
			}
			if err != nil || short {
				continue
			}
			train, _ := p.Action(disdel.TaskTrain)
			if c.Limit != train.Limits.Memory || c.Memory != train.Estimate.Peak() || c.Parallel != p.Parallel {
				t.Fatalf("the cell is %+v, and the plan has %v, peak %+v, %d at once", c, train.Limits.Memory,
					train.Estimate.Peak(), p.Parallel)
			}
		}
	})
}

// A cell that cannot be planned says why and what it would need; the others are there all the same.
func TestWhatIfSaysWhyACellIsNotPlanned(t *testing.T) {
	in := wide(t)
	in.Platform.MaxMemory, in.Platform.MinMemory = 128*disdel.MB, 64*disdel.MB
	in.Job.Data.Keep = disdel.KeepMemory
	cells := WhatIf(in, Grid{Workers: []int{1, 4, 100}}, AgainstCost)
	if c := cells[0]; c.Limit != 0 || c.Memory.Likely <= 128*disdel.MB || !strings.Contains(c.Note, "train needs ") ||
		!strings.HasSuffix(c.Note, ", above 128 MB") {
		t.Errorf("too large: %+v", c)
	}
	if c := cells[1]; c.Limit == 0 || c.Note != "" || !c.InFile {
		t.Errorf("fits: %+v", c)
	}
	if c := cells[2]; c.Limit != 0 || c.Note != "the smallest shard has 60 rows" {
		t.Errorf("a shard smaller than a batch: %+v", c)
	}
}

// A job that does not fit as it is can be compared with others.
func TestWhatIfOfAJobThatDoesNotFit(t *testing.T) {
	in := wide(t)
	in.Platform.MaxMemory, in.Job.Distribution.Workers = 128*disdel.MB, 1
	in.Job.Data.Keep = disdel.KeepMemory
	cells := WhatIf(in, Grid{Workers: []int{1, 8}}, AgainstCost)
	if len(cells) != 2 || !cells[0].InFile || cells[0].Limit != 0 || cells[1].Limit == 0 {
		t.Errorf("%+v", cells)
	}
}

func forecastCell(seconds, cost float64, memory disdel.Bytes) Cell {
	return Cell{Limit: 8, Memory: disdel.Interval[disdel.Bytes]{Likely: memory}, Forecast: &disdel.Forecast{
		Duration: disdel.Interval[disdel.Millis]{Likely: disdel.Millis(seconds * 1e9)},
		Cost:     disdel.Interval[float64]{Likely: cost},
	}}
}

// The front is what nothing else beats: none is on it that another dominates, and all others are dominated.
func TestParetoFront(t *testing.T) {
	cells := []Cell{
		forecastCell(10, 5, 4), forecastCell(8, 6, 4), forecastCell(10, 6, 1), forecastCell(12, 4, 4),
		forecastCell(12, 4, 4),
		{Limit: 1},
	}
	for against, want := range map[Objective]string{AgainstCost: "yynyyn", AgainstMemory: "nyynnn"} {
		var got strings.Builder
		for i := range cells {
			got.WriteString(map[bool]string{true: "y", false: "n"}[onFront(cells, i, against)])
		}
		if got.String() != want {
			t.Errorf("against %s: %s, want %s", against, got.String(), want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var cells []Cell
		for range rapid.IntRange(1, 12).Draw(t, "cells") {
			cells = append(cells, forecastCell(float64(rapid.IntRange(1, 9).Draw(t, "time")),
				float64(rapid.IntRange(1, 9).Draw(t, "cost")), 1))
		}
		any := false
		for i := range cells {
			any = any || onFront(cells, i, AgainstCost)
			for k := range cells {
				ti, ci := objectives(cells[i], AgainstCost)
				tk, ck := objectives(cells[k], AgainstCost)
				if onFront(cells, i, AgainstCost) && tk <= ti && ck <= ci && (tk < ti || ck < ci) {
					t.Fatalf("%v %v on the front, and %v %v beats it", ti, ci, tk, ck)
				}
			}
		}
		if !any {
			t.Fatal("nothing is on the front")
		}
	})
}

// An estimate that gives no interval has a likely peak all the same.
func TestPeakFallsBackToTheTotal(t *testing.T) {
	if got := (disdel.Estimate{Total: 5}).Peak(); got != (disdel.Interval[disdel.Bytes]{Likely: 5}) {
		t.Errorf("%+v", got)
	}
	if got := (disdel.Estimate{Total: 5, Low: 2, Likely: 3, High: 4}).Peak(); got != (disdel.Interval[disdel.Bytes]{
		Low:    2,
		Likely: 3, High: 4,
	}) {
		t.Errorf("%+v", got)
	}
}
