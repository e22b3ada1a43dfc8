package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// Grid is what WhatIf plans: every batch with every number of workers. An empty list stands for the job's own value.
type Grid struct {
	Workers []int `json:"workers"`
	Batches []int `json:"batchSizes"`
}

// Cell is a job with one batch and one number of workers: the needs of each train action, and the job's forecast.
type Cell struct {
	Workers         int `json:"workers"`
	BatchSize       int `json:"batchSize"`                 // of the job, if its workers share it
	WorkerBatchSize int `json:"workerBatchSize,omitempty"` // of each worker, if they share it
	// Peak of a train action. All 0: unknown. Low and high 0: no interval.
	Memory   disdel.Interval[disdel.Bytes] `json:"memoryBytes"`
	Limit    disdel.Bytes                  `json:"limitBytes"` // of a train action; 0: it cannot be planned
	Parallel int                           `json:"parallel"`   // train actions at once
	Forecast *disdel.Forecast              `json:"forecast,omitempty"`
	InFile   bool                          `json:"inFile"` // it is the job file's own
	// No other cell is better in one objective and as good in the other.
	Pareto bool   `json:"pareto"`
	Note   string `json:"note,omitempty"` // why it cannot be planned
	// How steps save memory, which the plan chose to make the cell fit.
	StepMemory disdel.StepMemory `json:"stepMemory,omitzero"`
	Stages     int               `json:"stages,omitempty"` // that the plan has
	OnDisk     bool              `json:"onDisk,omitempty"` // the plan keeps rows in files

	Device disdel.Bytes `json:"deviceBytes,omitempty"` // accelerator memory of a train action
}

// Basis says where a cell's time comes from: "measured" if jobs of just this shape ran, "probe", or "extrapolated"
// from jobs of other shapes. It is "" if there is no time.
func (c Cell) Basis() string {
	switch {
	case c.Forecast == nil:
		return ""
	case c.Forecast.Measured:
		return "measured"
	case c.Forecast.Source == disdel.SourceProbe:
		return string(disdel.SourceProbe)
	default:
		return "extrapolated"
	}
}

// Objective is what the Pareto front compares time with.
type Objective string

// The objectives.
const (
	AgainstCost   Objective = "cost"   // GB-s of the whole job
	AgainstMemory Objective = "memory" // likely peak of a train action: limits are often the platform's minimum
)

// WhatIf plans the job at every point of the grid, and at its own point. Cells are sorted by batch, then by workers;
// those that cannot be planned say why. Only cells with a forecast can be on the front.
func WhatIf(in PlanInput, grid Grid, against Objective) []Cell {
	in.Suggest = false // a cell does not show suggestions
	workers, batch := in.Job.Distribution.Workers, in.Job.Training.JobBatch()
	if p, err := NewPlan(in); err == nil {
		workers = p.Workers
	}
	var cells []Cell
	for _, b := range orOwn(grid.Batches, batch) {
		for _, w := range orOwn(grid.Workers, max(workers, 1)) {
			cells = append(cells, cell(in, w, b))
		}
	}
	own := func(c Cell) bool { return c.Workers == workers && c.BatchSize == batch }
	if workers > 0 && !slices.ContainsFunc(cells, own) {
		cells = append(cells, cell(in, workers, batch))
	}
	slices.SortFunc(cells, func(a,
		b Cell,
	) int {
		return cmp.Or(cmp.Compare(a.BatchSize, b.BatchSize), cmp.Compare(a.Workers, b.Workers))
	})
	cells = slices.CompactFunc(cells, func(a, b Cell) bool { return a.BatchSize == b.BatchSize && a.Workers == b.Workers })
	for i := range cells {
		cells[i].InFile = own(cells[i])
		cells[i].Pareto = onFront(cells, i, against)
	}
	return cells
}

func orOwn(list []int, own int) []int {
	if len(list) == 0 {
		return []int{own}
	}
	return list
}

func cell(in PlanInput, workers, batch int) Cell {
	c := Cell{Workers: workers, BatchSize: batch}
	in.Job.Distribution.Workers, in.Job.Training = workers, in.Job.Training.Resized(batch)
	each := in.Job.Training.WorkerBatch(workers)
	if in.Job.Training.Shared() {
		c.WorkerBatchSize = each
	}
	if shard := in.Data.Train / workers; shard < each {
		c.Note = "the smallest shard has " + disdel.Counted(shard, "row")
		return c
	}
	p, err := NewPlan(in)
	if err != nil {
		p, c.Note = unplanned(in, err)
	}
	train, ok := p.Action(disdel.TaskTrain)
	if !ok {
		return c
	}
	c.Device = train.Estimate.Device
	if train.Estimate.Method != disdel.MemoryGiven { // which says a limit, and no peak
		c.Memory = train.Estimate.Peak()
	}
	if err == nil {
		c.Limit, c.Parallel, c.Forecast = train.Limits.Memory, p.Parallel, p.Forecast
		c.StepMemory, c.Stages, c.OnDisk = p.StepMemory, len(p.Stages), p.OnDisk
	}
	return c
}

// boundless is more memory than any machine has, and small enough that its multiples do not overflow.
const boundless = disdel.GB << 20

// WithoutMemoryLimits removes every memory ceiling, so that a job that does not fit can still be planned.
func WithoutMemoryLimits(in PlanInput) PlanInput {
	in.Suggest = false
	in.Platform.MaxMemory, in.Platform.Pool = boundless, 0
	in.Job.Resources.Memory, in.Job.Resources.MaxMemory = 0, 0
	return in
}

// WithoutLimits also removes the ceilings of accelerator memory, and assumes an accelerator if there is none.
func WithoutLimits(in PlanInput) PlanInput {
	in = WithoutMemoryLimits(in)
	in.Platform.MaxDevice, in.Job.Resources.GPU.Memory = boundless, 0
	return in
}

// MemoryCeiling returns the most memory that an action of the job may get, and what sets it.
func MemoryCeiling(in PlanInput) (disdel.Bytes, string) {
	b := planBuilder{PlanInput: in}
	return b.ceiling()
}

// unplanned says briefly why a job could not be planned, and returns the plan that it would have without ceilings.
func unplanned(in PlanInput, why error) (p disdel.Plan, note string) {
	note, _, _ = strings.Cut(disdel.AsError(why).Msg, " (")
	if !errors.Is(why, disdel.OverLimit) {
		return p, note
	}
	p, err := NewPlan(WithoutLimits(in))
	if err != nil {
		return p, note
	}
	limit, _ := MemoryCeiling(in)
	for _, a := range p.Actions {
		if a.Estimate.Total > limit {
			return p, fmt.Sprintf("%s needs %v, above %v", a.Task, a.Estimate.Total, limit)
		}
	}
	return p, note
}

// onFront tells whether no cell with a forecast is at least as good as cell i in both objectives, and better in one.
func onFront(cells []Cell, i int, against Objective) bool {
	if cells[i].Forecast == nil {
		return false
	}
	time, other := objectives(cells[i], against)
	return !slices.ContainsFunc(cells, func(c Cell) bool {
		if c.Forecast == nil {
			return false
		}
		t, o := objectives(c, against)
		return t <= time && o <= other && (t < time || o < other)
	})
}

func objectives(c Cell, against Objective) (time disdel.Millis, other float64) {
	if against == AgainstMemory {
		return c.Forecast.Duration.Likely, float64(c.Memory.Likely)
	}
	return c.Forecast.Duration.Likely, c.Forecast.Cost.Likely
}
