package service

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// Explanation explains the memory of a job, how its limits come about, and how it would fit smaller ones.
type Explanation struct {
	// the explained plan if the job itself cannot be planned
	Plan    *disdel.Plan        `json:"withoutCeilings,omitempty"`
	Actions []ExplainedAction   `json:"actions"`
	Layers  []LayerShare        `json:"layers"`  // of a train action, in the order of the network
	Largest []LayerShare        `json:"largest"` // the largest ones
	Smaller []scheduler.Smaller `json:"smaller"`
	// Precision of train actions; "": float32.
	Precision disdel.Precision `json:"precision,omitempty"`
}

// ExplainedAction explains the memory of an action.
type ExplainedAction struct {
	Task  disdel.Task                   `json:"task"`
	Terms []MemoryTerm                  `json:"terms"`
	Peak  disdel.Interval[disdel.Bytes] `json:"peakBytes"`
	Risk  float64                       `json:"risk"`
	Limit []string                      `json:"limit"` // the steps from the estimate to the limit
}

// MemoryTerm is a part of an action's memory.
type MemoryTerm struct {
	Name  string       `json:"name"`
	Bytes disdel.Bytes `json:"bytes"`
	Share float64      `json:"share"` // of the estimate
}

// LayerShare is a layer with its share of the bytes of all layers.
type LayerShare struct {
	disdel.LayerEstimate
	Share float64 `json:"share"`
}

const largestLayers = 5

// explain explains the job's plan, or if there is none the plan that it would have without upper limits.
func explain(in scheduler.PlanInput, p *disdel.Plan) (*Explanation, error) {
	out := &Explanation{}
	if in.Job.Training.Backend != disdel.BackendCUDA { // which always computes in float32
		out.Precision = in.Job.Training.Precision
	}
	if p == nil {
		lifted, err := scheduler.NewPlan(scheduler.WithoutLimits(in))
		if err != nil {
			return nil, err
		}
		lifted.Platform = in.Platform
		out.Plan, p = &lifted, &lifted
	}
	for _, a := range p.Actions {
		out.Actions = append(out.Actions, ExplainedAction{
			Task: a.Task, Terms: terms(in, a), Peak: a.Estimate.Peak(), Risk: a.Estimate.Risk,
			Limit: limitSteps(in, *p, a),
		})
	}
	train, _ := p.Action(disdel.TaskTrain)
	out.Layers = shares(train.Estimate.Layers)
	out.Largest = slices.Clone(out.Layers)
	slices.SortStableFunc(out.Largest, func(a, b LayerShare) int { return cmp.Compare(b.Share, a.Share) })
	out.Largest = out.Largest[:min(largestLayers, len(out.Largest))]
	out.Smaller = scheduler.SmallerLimits(in, *p)
	return out, nil
}

// terms divides an estimate into its parts.
func terms(in scheduler.PlanInput, a disdel.ActionPlan) []MemoryTerm {
	e := a.Estimate
	weights := min(e.Parameters, weightBytes(in, a))
	out := []MemoryTerm{
		{Name: "parameters", Bytes: weights},
		{Name: "gradients and optimiser", Bytes: e.Parameters - weights},
		{Name: "activations", Bytes: e.Activations},
		{Name: "batch", Bytes: e.Misc},
		{Name: "workspace", Bytes: e.Workspace},
		{Name: "shard", Bytes: e.Shard},
		{Name: "weights in transfer", Bytes: e.Model},
		{Name: "runtime", Bytes: e.Package},
		{Name: "margin", Bytes: e.Margin},
	}
	if a.Task == disdel.TaskAggregate {
		out[0].Name, out[1].Name = "sums", "" // of updates; an aggregation has no network
		out = slices.Delete(out, 1, 2)
		out[0].Bytes = e.Parameters
	}
	rest := e.Total
	for _, t := range out {
		rest -= t.Bytes
	}
	if rest != 0 {
		out = append(out, MemoryTerm{Name: "measured correction", Bytes: rest})
	}
	for i := range out {
		out[i].Share = share(out[i].Bytes, e.Total)
	}
	return out
}

func share(part, all disdel.Bytes) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}

// weightBytes is the size of the network's parameters in the action.
func weightBytes(in scheduler.PlanInput, a disdel.ActionPlan) disdel.Bytes {
	n := in.Graph.Count()
	return cmp.Or(a.Estimate.Weights, 4*disdel.Bytes(n.Trainable+n.NonTrainable))
}

// limitSteps says how the limit of an action follows from its estimate.
func limitSteps(in scheduler.PlanInput, p disdel.Plan, a disdel.ActionPlan) []string {
	l, r := in.Platform, in.Job.Resources
	rounded := disdel.Bytes(a.Estimate.Total.MB()) * disdel.MB
	out := []string{fmt.Sprintf("with its margin %v (%d bytes), which are %d whole MB",
		a.Estimate.Total, a.Estimate.Total, rounded.MB())}
	if minimum := max(rounded, l.MinMemory); minimum > rounded {
		out = append(out, fmt.Sprintf("the platform gives no less than %d MB", minimum.MB()))
		rounded = minimum
	}
	switch {
	case a.Limits.Memory == rounded:
		out = append(out, fmt.Sprintf("limit %d MB", rounded.MB()))
	case a.Limits.Memory == r.Memory:
		out = append(out, fmt.Sprintf("limit %d MB, as resources.memory says", r.Memory.MB()))
	default:
		out = append(out, fmt.Sprintf("the plan gives %d MB", a.Limits.Memory.MB()))
	}
	out = append(out, against(a.Limits.Memory, l.MaxMemory, "the platform's maximum"))
	if r.MaxMemory > 0 {
		out = append(out, against(a.Limits.Memory, r.MaxMemory, "resources.maxMemory"))
	}
	if l.Pool > 0 {
		out = append(out, against(a.Limits.Memory, l.Pool, "the pool"))
		if a.Task == disdel.TaskTrain && a.Limits.Memory <= l.Pool {
			out = append(out, fmt.Sprintf("%d at once take %v of it", p.Parallel, disdel.Bytes(p.Parallel)*a.Limits.Memory))
		}
	}
	return out
}

func against(limit, bound disdel.Bytes, whose string) string {
	if limit > bound {
		return fmt.Sprintf("%d MB too much for %s, %v", (limit - bound).MB(), whose, bound)
	}
	return fmt.Sprintf("within %s, %v", whose, bound)
}

func shares(layers []disdel.LayerEstimate) []LayerShare {
	var sum disdel.Bytes
	for _, l := range layers {
		sum += l.ParameterBytes + l.ActivationBytes
	}
	out := make([]LayerShare, len(layers))
	for i, l := range layers {
		out[i] = LayerShare{l, share(l.ParameterBytes+l.ActivationBytes, sum)}
	}
	return out
}
