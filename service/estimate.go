package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/scheduler"
)

// Questions are what Estimate answers besides the plan.
type Questions struct {
	Explain   bool            // explain the memory, and what would need less
	MaxMemory disdel.Bytes    // find the largest batch and the fewest workers for actions of this memory; 0: do not
	Grid      *scheduler.Grid // estimate other workers and batches; nil: do not
	Against   scheduler.Objective
	Policies  []string // simulate the job with each of these policies; none: do not
	Admit     bool     // check that Redis, the disk, the pool and the tenant's quota have room for the job
}

func (q Questions) any() bool {
	return q.Explain || q.MaxMemory > 0 || q.Grid != nil || len(q.Policies) > 0
}

// Estimation is the answer of Estimate. A job that cannot be planned has no plan; Refused says why.
type Estimation struct {
	APIVersion string           `json:"apiVersion"`
	Job        disdel.Job       `json:"job"`
	Data       disdel.DataInfo  `json:"data"`
	Plan       *disdel.Plan     `json:"plan,omitempty"`
	Refused    *disdel.Error    `json:"refused,omitempty"`
	Paper      *disdel.Estimate `json:"paper,omitempty"` // of a train action by Eq. 1 to 5 of the paper, to compare
	Explain    *Explanation     `json:"explain,omitempty"`
	Fit        *scheduler.Fit   `json:"fit,omitempty"`
	WhatIf     *WhatIf          `json:"whatIf,omitempty"`
	// Scaling is nil if earlier jobs show nothing about other numbers of workers.
	Scaling  *scheduler.Scaling `json:"scaling,omitempty"`
	Policies *simulate.Lab      `json:"policies,omitempty"`

	asked Questions
}

// WhatIf is the estimates of a job at every point of a grid.
type WhatIf struct {
	Against scheduler.Objective `json:"against"`      // the objective of the Pareto front besides time
	Ceiling disdel.Bytes        `json:"ceilingBytes"` // the largest memory limit of an action
	Whose   string              `json:"whose"`        // who set Ceiling
	Cells   []scheduler.Cell    `json:"cells"`
}

// Estimate estimates what a job will need without running it; with Options.Probe it trains for two seconds. Questions
// may be about a job that cannot be planned. It returns Invalid (*disdel.Faults if the job itself has faults);
// OverLimit for a job that does not fit, if there are no questions; and with Questions.Admit the error that Submit
// would return.
func (s *Service) Estimate(ctx context.Context, req Request, q Questions) (*Estimation, error) {
	p, err := s.newPlanner(ctx, newJobID(), req.Options, req.Preparing)
	if err != nil {
		return nil, err
	}
	r, err := p.resolveRequest(ctx, req)
	if err != nil {
		return nil, err
	}
	r = p.chooseDevice(ctx, r)
	in, err := p.input(ctx, r)
	if err != nil {
		return nil, err
	}
	out, err := answers(in, q)
	if err == nil && q.Admit && out.Plan != nil {
		err = p.wouldTake(ctx, r, in)
	}
	return out, err
}

// wouldTake returns the error that Submit would return for want of room.
func (p *planner) wouldTake(ctx context.Context, r controller.Resolved, in scheduler.PlanInput) error {
	spec, err := p.planned(r, in)
	if err != nil {
		return err
	}
	return p.checkRoom(ctx, &spec, r)
}

func answers(in scheduler.PlanInput, q Questions) (*Estimation, error) {
	out := &Estimation{APIVersion: disdel.APIVersion, Job: in.Job, Data: in.Data, asked: q}
	in.Suggest = true
	p, refused := scheduler.NewPlan(in)
	switch {
	case refused == nil:
		out.Plan, out.Paper, out.Scaling = &p, paperEstimate(in, p), scheduler.ScalingOf(in)
	case !q.any() || !errors.Is(refused, disdel.OverLimit):
		return nil, refused
	default:
		out.Refused = disdel.AsError(refused)
	}
	var err error
	if q.Explain {
		if out.Explain, err = explain(in, out.Plan); err != nil {
			return nil, err
		}
	}
	if q.MaxMemory > 0 {
		if err := scheduler.CheckKnownMemory(in, q.MaxMemory); err != nil {
			return nil, err
		}
		f := scheduler.FitMemory(in, q.MaxMemory, cmp.Or(p.Workers, in.Job.Distribution.Workers))
		out.Fit = &f
	}
	if q.Grid != nil {
		ceiling, whose := scheduler.MemoryCeiling(in)
		out.WhatIf = &WhatIf{
			Against: q.Against, Ceiling: ceiling, Whose: whose,
			Cells: scheduler.WhatIf(in, *q.Grid, q.Against),
		}
	}
	if len(q.Policies) > 0 && out.Plan != nil {
		if err := checkPolicies(q.Policies); err != nil {
			return nil, err
		}
		if out.Policies, err = comparePolicies(in, p, q.Policies); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Err returns OverLimit if no batch size fits Questions.MaxMemory, or if the explained job does not fit; else nil.
func (e *Estimation) Err() error {
	switch {
	case e.Fit != nil && !e.Fit.Fits():
		return &disdel.Error{
			Kind: disdel.OverLimit, Op: "fit job",
			Msg: fmt.Sprintf("nothing of this job fits %v: %s takes %v even with one row a batch",
				e.asked.MaxMemory, e.Fit.LeastTask, e.Fit.Least),
			Hint: fmt.Sprintf("--max-memory %dMB, or a smaller network", e.Fit.Least.MB()),
		}
	case e.Explain != nil && e.Refused != nil:
		return e.Refused
	default:
		return nil
	}
}

// paperEstimate estimates a train action of the plan by the equations of the paper.
func paperEstimate(in scheduler.PlanInput, p disdel.Plan) *disdel.Estimate {
	e := estimator.Paper(estimator.Input{
		Graph: in.Graph, BatchSize: p.WorkerBatch(&in.Job), Rows: p.Shards[0].Len(), SampleBytes: in.Data.SampleSize,
		Epochs: in.Job.Training.Epochs, Optimizer: in.Job.Training.Optimizer,
	})
	return &e
}

// ReadEstimation reads the answer of a server to questions.
func ReadEstimation(data []byte, q Questions) (*Estimation, error) {
	out := &Estimation{asked: q}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, &disdel.Error{Kind: disdel.Corrupt, Op: "read estimation", Err: err}
	}
	return out, nil
}
