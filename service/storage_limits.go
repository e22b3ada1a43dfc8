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
	"github.com/disdel/disdel/service/program"
)

// checkStorage returns OverLimit with the arithmetic if Redis has no room for what a job's actions keep there, and
// NoSpace if the disk has no room for what the job writes. It warns if Redis may drop values.
func (p *planner) checkStorage(ctx context.Context, spec controller.Spec, g *model.Graph) error {
	if err := p.checkDisk(spec, g); err != nil {
		return err
	}
	all, err := p.openBoard(ctx) // a tenant's own user may not read the limits
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

// checkpointsAtOnce is the number of checkpoints while the newest one is written.
const checkpointsAtOnce = 3

// checkDisk checks the disk for models and checkpoints, if it is one of this machine.
func (p *planner) checkDisk(spec controller.Spec, g *model.Graph) error {
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
	for dir := folder; there < 0 && filepath.Dir(dir) != dir; { // the first model makes the folder
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

// storeNeed is what Redis holds at the end of a round. It does not count states that workers store within a round: most
// rounds are shorter than the time until the first one.
func storeNeed(job disdel.Job, plan disdel.Plan, g *model.Graph) aggregator.Need {
	a := job.Distribution.Aggregation
	wire := cmp.Or(a.Wire, disdel.WireFloat32)
	var weights, statistics, moments disdel.Weights
	for _, q := range g.Params() {
		t := disdel.Tensor{Name: q.Name, Shape: q.Shape}
		if q.Frozen { // it is in no update
			continue
		}
		weights = append(weights, t)
		if !q.Trainable {
			statistics = append(statistics, t)
			continue
		}
		for range job.Training.Optimizer.Moments() {
			moments = append(moments, t)
		}
	}
	if a.OptimizerState == disdel.StateAverage {
		weights = append(weights, moments...)
	}
	n := aggregator.Need{
		Workers: plan.Workers, Update: aggregator.WireBytes(weights, wire),
		Reference: aggregator.WireBytes(weights, disdel.WireFloat32),
	}
	below := plan.Levels[:max(0, len(plan.Levels)-1)]
	if len(below) > 0 && plan.Levels[len(below)].JoinShards { // the shards that it joins are the reference
		below = below[:len(below)-1]
	}
	for _, l := range below {
		n.Outputs += len(l.Clusters) / max(1, l.Shards)
	}
	var carried disdel.Weights
	if a.OptimizerState == disdel.StateKeep {
		carried = append(carried, moments...)
	}
	if a.Statistics == disdel.StateKeep {
		carried = append(carried, statistics...)
	}
	if wire != disdel.WireFloat32 {
		carried = append(carried, weights...) // rounding errors
	}
	n.State = aggregator.WireBytes(carried, disdel.WireFloat32)
	stagesNeed(&n, &job, &plan, g)
	if x := job.Distribution.Exchange; x != nil && plan.Workers > 1 {
		deltasNeed(&n, x, roundSteps(&job, &plan), g.Touched(plan.WorkerBatch(&job)), weightsOf(g))
	}
	return n
}

// stagesNeed counts what stages keep in Redis: each has a part of its replica's update and state. Each boundary between
// two stages holds the values of up to a step. Stages that share a weight also send it, and later its gradient.
func stagesNeed(n *aggregator.Need, job *disdel.Job, plan *disdel.Plan, g *model.Graph) {
	stages := disdel.Bytes(len(plan.Stages))
	if stages == 0 {
		return
	}
	n.Update, n.State = (n.Update+stages-1)/stages, (n.State+stages-1)/stages
	rows := disdel.Bytes(plan.Replicas() * plan.WorkerBatch(job))
	for _, s := range plan.Stages {
		n.Passed += rows * s.Passes
	}
	n.Passed += disdel.Bytes(plan.Replicas()) * lentBytes(plan.Stages, g)
}

// lentBytes is the size of the embedding's weight that a layer of another stage computes with; 0: there is none.
func lentBytes(stages []disdel.PlannedStage, g *model.Graph) disdel.Bytes {
	for i := range g.Nodes {
		of := g.Nodes[i].Tied
		if of == 0 {
			continue
		}
		for _, s := range stages {
			if e := &g.Nodes[of]; s.From <= of && of < s.To && i >= s.To {
				return 4 * disdel.Bytes(e.Vocabulary) * disdel.Bytes(e.Units)
			}
		}
	}
	return 0
}

// sentAgain is how often a change is sent, with its rounding errors, until a value of this format has all bits of a
// float32.
var sentAgain = map[disdel.Wire]int{disdel.WireBfloat16: 3, disdel.WireInt8: 4}

// deltasNeed adds what the steps of a round keep in Redis. Each step changes touched of all weights.
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
	if x.Order == disdel.OrderEager { // with the vector of steps that it began with
		n.Delta, n.Last = n.Delta+disdel.Bytes(n.Workers*vectorBytes), n.Last+disdel.Bytes(n.Workers*vectorBytes)
	}
}

// vectorBytes bounds the size of a number of steps before a delta.
const vectorBytes = binary.MaxVarintLen32

// roundSteps is the number of steps of the longest round.
func roundSteps(job *disdel.Job, plan *disdel.Plan) int {
	return controller.Steps(job, plan, disdel.TrainRange{Epochs: max(1, plan.Epochs), Batches: plan.Batches})
}

// weightsOf is the number of weights of a network.
func weightsOf(g *model.Graph) (n int) {
	for _, p := range g.Params() {
		n += model.Shape(p.Shape).Len()
	}
	return n
}

// ClaimDisk claims more bytes of the tenant's disk quota. The caller calls release when the bytes are written, or will
// not be. ClaimDisk returns OverLimit, with the figures, if the quota has no room. It does nothing for a tenant without
// a disk quota.
func (s *Service) ClaimDisk(ctx context.Context, more disdel.Bytes) (release func(), err error) {
	q, err := s.quota(ctx)
	if err != nil || q.Disk == 0 {
		return func() {}, err
	}
	before, release := s.disk.Add(more)
	// The claim comes first and the look at the stored bytes second, so that no bytes are missed: later claims count this
	// one, and before has the earlier ones, even if their bytes are written meanwhile.
	stored, err := s.stored(ctx)
	if err == nil && stored+before+more > q.Disk {
		err = &disdel.Error{
			Kind: disdel.OverLimit, Op: "use disk",
			Msg: fmt.Sprintf("it needs %v, and the tenant has %v stored and %v claimed by jobs and uploads of its quota of %v",
				more, stored, before, q.Disk),
			Hint: "remove models, data sets, weights or jobs (disdel du lists them); or ask whoever runs the server for a " +
				"larger --disk",
		}
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// claimRoom claims the disk and the memory in Redis of a job within the tenant's quotas. p.release gives both back.
// claimRoom returns OverLimit, with the figures, if a quota has no room.
func (p *planner) claimRoom(ctx context.Context, spec controller.Spec, g *model.Graph) error {
	disk, err := p.ClaimDisk(ctx, diskNeed(spec, g))
	if err != nil {
		return err
	}
	redis, err := p.claimRedis(storeNeed(spec.Job, spec.Plan, g))
	if err != nil {
		disk()
		return err
	}
	p.release = func() { disk(); redis() }
	return nil
}

// claimRedis claims the most memory that a job keeps in Redis. The arithmetic is that of the check for room there, so
// that no key has to be counted. The jobs of a tenant never keep more than their claims together.
func (p *planner) claimRedis(n aggregator.Need) (release func(), err error) {
	before, release := p.redis.Add(n.Bytes())
	if q := p.quota.Redis; q > 0 && before+n.Bytes() > q {
		release()
		return nil, &disdel.Error{
			Kind: disdel.OverLimit, Op: "use Redis",
			Msg: fmt.Sprintf("the job keeps %s in Redis; other jobs of the tenant keep %v, and the quota is %v", n, before, q),
			Hint: "wait until other jobs have ended, use fewer workers, or ask whoever runs the server for a larger " +
				"--redis-memory",
		}
	}
	return release, nil
}

// stored is the size of a tenant's data sets, models, weights, checkpoints, records and environments.
func (s *Service) stored(ctx context.Context) (all disdel.Bytes, err error) {
	if all, err = s.recordBytes(ctx); err != nil {
		return 0, err
	}
	all += program.SizeOf(s.pythonFolder())
	for _, folder := range []string{"datasets", "models"} {
		bucket, err := blobs.Open(ctx, s.storage(folder))
		if err != nil {
			return 0, err
		}
		for o, err := range bucket.List(ctx, "") {
			if err != nil {
				return 0, blobs.Wrap(err, "count bytes", folder)
			}
			all += disdel.Bytes(o.Size)
		}
	}
	return all, nil
}

// recordBytes is the size of the tenant's records in the history.
func (s *Service) recordBytes(ctx context.Context) (disdel.Bytes, error) {
	h, err := s.History(ctx)
	if err != nil {
		return 0, err
	}
	return s.sizes.Total(ctx, h)
}

// diskNeed bounds the size of a job's model and checkpoints at any time.
func diskNeed(spec controller.Spec, g *model.Graph) disdel.Bytes {
	n := storeNeed(spec.Job, spec.Plan, g)
	need := n.Reference
	if spec.Job.Reliability.CheckpointEvery > 0 {
		need += checkpointsAtOnce * (n.Reference + disdel.Bytes(n.Workers)*n.State)
	}
	return need
}
