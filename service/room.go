package service

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/aggregator/exchange"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/model"
)

// room returns OverLimit with the arithmetic if the store has no room for what a job's actions keep in it, and warns
// where what is there may be dropped. It returns NoSpace if the disk has no room for what the job writes.
func (p *preparation) room(ctx context.Context, spec controller.Spec, g *model.Graph) error {
	if err := p.diskRoom(spec, g); err != nil {
		return err
	}
	all, err := p.openBoard(ctx) // a tenant's own user may not ask
	if err != nil {
		return err
	}
	servers, err := all.Capacity(ctx)
	if err != nil {
		return err
	}
	for _, c := range servers {
		if c.Evicts() {
			p.log.Warnf("Redis at %s drops values when it is full (maxmemory-policy %s), updates among them: set "+
				"maxmemory-policy noeviction", c.Server, c.Policy)
		}
	}
	return storeNeed(spec.Job, spec.Plan, g).Fits(servers)
}

// checkpointsAtOnce is how many checkpoints are there while the newest is written.
const checkpointsAtOnce = 3

// diskRoom looks at the disk that models and checkpoints go to, where that is one of this machine's.
func (p *preparation) diskRoom(spec controller.Spec, g *model.Graph) error {
	folder := blobs.Folder(spec.Models)
	if folder == "" {
		return nil
	}
	n := storeNeed(spec.Job, spec.Plan, g)
	need := n.Reference + reserveSize
	if spec.Job.Reliability.CheckpointEvery > 0 {
		need += checkpointsAtOnce * (n.Reference + disdel.Bytes(n.Workers)*n.State)
	}
	there := files.Free(folder)
	for dir := folder; there < 0 && filepath.Dir(dir) != dir; { // it is made with the first model
		dir = filepath.Dir(dir)
		there = files.Free(dir)
	}
	if there < 0 || there >= need {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.NoSpace, Op: "run job", Job: spec.ID,
		Msg:  fmt.Sprintf("the job writes up to %v, and the disk of %s has %v of room left", need, folder, there),
		Hint: "free some space, or name a folder on another disk with --home or --storage",
	}
}

// storeNeed is what is in the store at the end of a round. States that workers store in the middle of one are not
// counted: most rounds are over before one is due.
func storeNeed(job disdel.Job, plan disdel.Plan, g *model.Graph) aggregator.Need {
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
	if a.Moments == disdel.StateAverage {
		weights = append(weights, moments...)
	}
	n := aggregator.Need{
		Workers: plan.Workers, Update: aggregator.WireBytes(weights, wire),
		Reference: aggregator.WireBytes(weights, disdel.WireFloat32),
	}
	for _, l := range plan.Levels[:max(0, len(plan.Levels)-1)] {
		n.Outputs += len(l.Clusters)
	}
	var carried disdel.Weights
	if a.Moments == disdel.StateKeep {
		carried = append(carried, moments...)
	}
	if a.Statistics == disdel.StateKeep {
		carried = append(carried, statistics...)
	}
	if wire != disdel.WireFloat32 {
		carried = append(carried, weights...) // what rounding lost
	}
	n.State = aggregator.WireBytes(carried, disdel.WireFloat32)
	if x := job.Distribution.Exchange; x != nil && plan.Workers > 1 {
		deltasNeed(&n, x, roundSteps(&job, &plan), g.Touched(plan.WorkerBatch(&job)), weightsOf(g))
	}
	return n
}

// sentAgain is how often a change goes out, with what rounding it has lost, where all changes do: a value has as many
// bits as so many of its formats have.
var sentAgain = map[disdel.Wire]int{disdel.WireBfloat16: 3, disdel.WireInt8: 4}

// deltasNeed adds what the steps of a round keep in the store, each of which touches so many weights of all.
func deltasNeed(n *aggregator.Need, x *disdel.Exchange, steps, touched, weights int) {
	n.Deltas = n.Workers * steps
	if x.Queued() {
		n.Deltas = steps
	}
	each, owed := touched, min(weights, touched*steps)
	switch again := sentAgain[x.Values]; {
	case x.Threshold == 0 && again > 0:
		each = min(weights, again*touched)
	case x.Threshold == 0 && x.Slack == 0:
		owed = 0
	}
	n.Delta = exchange.MaxBytes(each, weights, x.Values)
	n.Last = exchange.MaxBytes(owed, weights, disdel.WireFloat32)
	if x.Order == disdel.OrderEager { // what it began with
		n.Delta, n.Last = n.Delta+disdel.Bytes(n.Workers*vectorBytes), n.Last+disdel.Bytes(n.Workers*vectorBytes)
	}
}

// vectorBytes is the most that a number of steps takes ahead of a delta.
const vectorBytes = binary.MaxVarintLen32

// roundSteps is how many steps the longest round has.
func roundSteps(job *disdel.Job, plan *disdel.Plan) int {
	return controller.Steps(job, plan, disdel.Span{Epochs: max(1, plan.Epochs), Batches: plan.Batches})
}

// weightsOf is how many weights a network has.
func weightsOf(g *model.Graph) (n int) {
	for _, p := range g.Params() {
		n += model.Shape(p.Shape).Len()
	}
	return n
}
