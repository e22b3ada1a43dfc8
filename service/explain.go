package service

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// Explanation is where a job's memory goes, why its limits are what they are, and how it fits smaller ones.
type Explanation struct {
	// what is explained where the job itself cannot be planned
	Plan    *disdel.Plan        `json:"withoutCeilings,omitempty"`
	Actions []ExplainedAction   `json:"actions"`
	Layers  []LayerShare        `json:"layers"`  // of a train action, in the network's order
	Largest []LayerShare        `json:"largest"` // the layers that take most
	Smaller []scheduler.Smaller `json:"smaller"`
	// that train actions compute in; "": float32
	Precision disdel.Precision `json:"precision,omitempty"`
}

// ExplainedAction is where the memory of an action goes.
type ExplainedAction struct {
	Task  disdel.Task                   `json:"task"`
	Terms []MemoryTerm                  `json:"terms"`
	Peak  disdel.Interval[disdel.Bytes] `json:"peakBytes"`
	Risk  float64                       `json:"risk"`
	Limit []string                      `json:"limit"` // the arithmetic from the estimate to the limit, a step each
}

// MemoryTerm is a category of an action's memory.
type MemoryTerm struct {
	Name  string       `json:"name"`
	Bytes disdel.Bytes `json:"bytes"`
	Share float64      `json:"share"` // of the estimate
}

// LayerShare is a layer, and its share of the bytes of all layers.
type LayerShare struct {
	disdel.LayerEstimate
	Share float64 `json:"share"`
}

const largestLayers = 5

// explain takes the job's plan apart, or where it has none, the one that it would have without ceilings.
func explain(in scheduler.PlanInput, p *disdel.Plan) (*Explanation, error) {
	out := &Explanation{}
	if in.Job.Training.Backend != disdel.BackendCUDA { // whose activations stay as they are
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

// terms divides an estimate into the categories that it is made of.
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
		out[0].Name, out[1].Name = "sums", "" // of updates: there is no network
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

func share(part, whole disdel.Bytes) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// weightBytes is the network's own parameters as the action holds them.
func weightBytes(in scheduler.PlanInput, a disdel.ActionPlan) disdel.Bytes {
	n := in.Graph.Count()
	return cmp.Or(a.Estimate.Weights, 4*disdel.Bytes(n.Trainable+n.NonTrainable))
}

// limitSteps tells how the limit of an action came from its estimate.
func limitSteps(in scheduler.PlanInput, p disdel.Plan, a disdel.ActionPlan) []string {
	l, r := in.Platform, in.Job.Resources
	whole := disdel.Bytes(a.Estimate.Total.MB()) * disdel.MB
	out := []string{fmt.Sprintf("with its margin %v (%d bytes), which are %d whole MB",
		a.Estimate.Total, a.Estimate.Total, whole.MB())}
	if least := max(whole, l.MinMemory); least > whole {
		out = append(out, fmt.Sprintf("the platform gives no less than %d MB", least.MB()))
		whole = least
	}
	switch {
	case a.Limits.Memory == whole:
		out = append(out, fmt.Sprintf("limit %d MB", whole.MB()))
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
