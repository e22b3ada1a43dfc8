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

// Questions is what Estimate is asked beyond the plan.
type Questions struct {
	Explain   bool            // where the memory goes, and what fits less
	MaxMemory disdel.Bytes    // the largest batch and the fewest workers that fit actions of so much; 0: not asked
	Grid      *scheduler.Grid // other workers and batches; nil: not asked
	Against   scheduler.Objective
	Policies  []string // what the job takes under each of them, in virtual time; none: not asked
	Admit     bool     // whether it would be taken: the store, the disk, the pool and the tenant's quota have room for it
}

func (q Questions) any() bool {
	return q.Explain || q.MaxMemory > 0 || q.Grid != nil || len(q.Policies) > 0
}

// Estimation is what Estimate says. A job that cannot be planned has no plan; why is in Refused.
type Estimation struct {
	APIVersion string           `json:"apiVersion"`
	Job        disdel.Job       `json:"job"`
	Data       disdel.DataInfo  `json:"data"`
	Plan       *disdel.Plan     `json:"plan,omitempty"`
	Refused    *disdel.Error    `json:"refused,omitempty"`
	Paper      *disdel.Estimate `json:"paper,omitempty"` // of a train action by Eq. 1 to 5, to compare
	Explain    *Explanation     `json:"explain,omitempty"`
	Fit        *scheduler.Fit   `json:"fit,omitempty"`
	WhatIf     *WhatIf          `json:"whatIf,omitempty"`
	// Scaling is nil where earlier jobs tell nothing about other numbers of workers.
	Scaling  *scheduler.Scaling `json:"scaling,omitempty"`
	Policies *simulate.Lab      `json:"policies,omitempty"`

	asked Questions
}

// WhatIf is a job at every point of a grid.
type WhatIf struct {
	Against scheduler.Objective `json:"against"`      // what the Pareto front holds time against
	Ceiling disdel.Bytes        `json:"ceilingBytes"` // the most that an action may be given
	Whose   string              `json:"whose"`        // who set it
	Cells   []scheduler.Cell    `json:"cells"`
}

// Estimate works out what a job will need, without running it; with Options.Probe it trains for two seconds. A job that
// cannot be planned can be asked about all the same. It returns Invalid, as *disdel.Faults where the job itself is
// wrong; where nothing but the plan is asked for, OverLimit for a job that does not fit; and with Questions.Admit what
// a submit would be refused with.
func (s *Service) Estimate(ctx context.Context, req Request, q Questions) (*Estimation, error) {
	p, err := s.preparing(ctx, newJobID(), req.Options, req.Preparing)
	if err != nil {
		return nil, err
	}
	r, err := p.submitted(ctx, req)
	if err != nil {
		return nil, err
	}
	r = p.chosen(ctx, r)
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

// wouldTake returns what a submit of a job with a plan would be refused with.
func (p *preparation) wouldTake(ctx context.Context, r controller.Resolved, in scheduler.PlanInput) error {
	spec, err := p.planned(r, in)
	if err != nil {
		return err
	}
	return p.fits(ctx, &spec, r)
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
		if out.Policies, err = underPolicies(in, p, q.Policies); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Err is OverLimit where nothing of the job fits the memory that was asked about, or where the job that was to be
// explained does not fit; nil where the answers are what was asked for.
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

// paperEstimate is what the paper's own equations say of a train action of the plan.
func paperEstimate(in scheduler.PlanInput, p disdel.Plan) *disdel.Estimate {
	e := estimator.Paper(estimator.Input{
		Graph: in.Graph, BatchSize: p.WorkerBatch(&in.Job), Rows: p.Shards[0].Len(), SampleBytes: in.Data.SampleSize,
		Epochs: in.Job.Training.Epochs, Optimizer: in.Job.Training.Optimizer,
	})
	return &e
}

// ReadEstimation reads what a server has answered to the questions.
func ReadEstimation(data []byte, q Questions) (*Estimation, error) {
	out := &Estimation{asked: q}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, &disdel.Error{Kind: disdel.Corrupt, Op: "read estimation", Err: err}
	}
	return out, nil
}
