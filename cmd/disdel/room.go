package main

import (
	"cmp"
	"context"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/model"
)

// room returns OverLimit with the arithmetic if the store has no room for what a job's actions keep in it, and warns where what is
// there may be dropped.
func (j *jobStack) room(ctx context.Context, spec controller.Spec, g *model.Graph) error {
	servers, err := j.board.Capacity(ctx)
	if err != nil {
		return err
	}
	for _, c := range servers {
		if c.Evicts() {
			j.log.Warnf("Redis at %s drops values when it is full (maxmemory-policy %s), updates among them: set maxmemory-policy noeviction", c.Server, c.Policy)
		}
	}
	return storeNeed(spec.Job, spec.Plan, g).Fits(servers)
}

// storeNeed is what is in the store at the end of a round. States that workers store in the middle of one are not counted:
// most rounds are over before one is due.
func storeNeed(job disdel.Job, p disdel.Plan, g *model.Graph) aggregator.Need {
	a := job.Distribution.Aggregation
	wire := cmp.Or(a.Wire, disdel.WireFloat32)
	var weights, statistics, moments disdel.Weights
	for _, q := range g.Params() {
		t := disdel.Tensor{Name: q.Name, Shape: q.Shape}
		weights = append(weights, t)
		if !q.Trainable {
			statistics = append(statistics, t)
			continue
		}
		for range job.Training.Optimizer.Moments() {
			moments = append(moments, t)
		}
	}
	if a.Optimizer == disdel.UpkeepAverage {
		weights = append(weights, moments...)
	}
	n := aggregator.Need{
		Workers: p.Workers, Update: aggregator.WireBytes(weights, wire), Reference: aggregator.WireBytes(weights, disdel.WireFloat32),
	}
	for _, l := range p.Levels[:max(0, len(p.Levels)-1)] {
		n.Outputs += len(l.Clusters)
	}
	var carried disdel.Weights
	if a.Optimizer == disdel.UpkeepKeep {
		carried = append(carried, moments...)
	}
	if a.Statistics == disdel.UpkeepKeep {
		carried = append(carried, statistics...)
	}
	if wire != disdel.WireFloat32 {
		carried = append(carried, weights...) // what rounding lost
	}
	n.State = aggregator.WireBytes(carried, disdel.WireFloat32)
	return n
}
