package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// bareArgument makes this program a training without platform, store or limit, of the request that follows.
const bareArgument = "train-bare"

// bareResult is what such a process prints.
type bareResult struct {
	Prepare  float64
	Compute  float64
	Evaluate float64 // beside what one container does
	Started  disdel.Bytes
	Prepared disdel.Bytes
	Peak     disdel.Bytes
	Seen     []float64
	HeldOut  *float64
}

// bare runs a job in one process of its own, on all processors: synchronous data parallelism, as TensorFlow mirrors a
// network on the processors of one server.
func (r *testbed) bare(ctx context.Context, t task, turn int, seed int64) (outcome, error) {
	if err := r.sources.add(ctx, r.parts.Data, t); err != nil {
		return outcome{}, err
	}
	job, err := t.parse(seed, disdel.SyncEnd)
	if err != nil {
		return outcome{}, err
	}
	known, err := controller.Resolve(ctx, job, r.parts.Data, t.id, nowhere, nil)
	if err != nil {
		return outcome{}, err
	}
	tr := job.Training
	text, err := json.Marshal(disdel.TrainRequest{
		Network: known.Network, Data: r.dataRef(known.Data, job), Shard: disdel.RowRange{End: known.Data.Train},
		TrainRange: disdel.TrainRange{Epochs: tr.Epochs}, JobEpochs: tr.Epochs, BatchSize: tr.JobBatch(),
		Optimizer: tr.Optimizer,
		Loss:      tr.Loss, Threads: threads(), Round: known.Data.HeldOut, // rows to evaluate on: there are no rounds here
	})
	if err != nil {
		return outcome{}, err
	}
	begun := time.Now()
	var got bareResult
	err = r.call(ctx, &got, os.Args[0], bareArgument, string(text))
	o := t.outcome(envBare, turn, begun)
	o.Passed, o.Wall = err == nil, time.Since(begun).Seconds()-got.Evaluate
	o.Action, o.Sum, o.Started, o.Prepared = got.Peak, got.Peak, got.Started, got.Prepared
	o.Prepare, o.Compute, o.Seen, o.HeldOut = got.Prepare, got.Compute, got.Seen, got.HeldOut
	return o, err
}

// call runs a program, whose memory the samples count, and reads what it prints.
func (r *testbed) call(ctx context.Context, into any, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return err
	}
	end := r.watch(cmd.Process.Pid)
	err := cmd.Wait()
	end()
	if err != nil {
		return errors.Join(err, errors.New(strings.TrimSpace(errs.String())))
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return json.Unmarshal([]byte(lines[len(lines)-1]), into)
}

// trainBare is the process: what a train action does with its rows, and nothing else.
func trainBare(ctx context.Context, text string) error {
	var req disdel.TrainRequest
	if err := json.Unmarshal([]byte(text), &req); err != nil {
		return err
	}
	var out bareResult
	out.Started, _ = resident()
	begun := time.Now()
	store, err := dataset.OpenStore(ctx, req.Data.URL)
	if err != nil {
		return err
	}
	shard, err := store.ReadTrain(ctx, req.Data, req.Shard)
	if err != nil {
		return err
	}
	e, err := bareEngine(&req)
	if err != nil {
		return err
	}
	defer e.Close()
	out.Prepare = time.Since(begun).Seconds()
	out.Prepared, _ = resident()
	begun = time.Now()
	if out.Seen, err = epochs(e, &req, shard); err != nil {
		return err
	}
	out.Compute = time.Since(begun).Seconds()
	_, out.Peak = resident()
	if begun = time.Now(); req.Round > 0 {
		held, err := store.ReadHeldOut(ctx, req.Data, disdel.RowRange{End: req.Round})
		if err != nil {
			return err
		}
		if out.HeldOut, err = evaluated(e, &req, held); err != nil {
			return err
		}
		out.Evaluate = time.Since(begun).Seconds()
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

func bareEngine(req *disdel.TrainRequest) (engine.Engine, error) {
	g, err := model.Build(req.Network)
	if err != nil {
		return nil, err
	}
	e, err := native.New(engine.Spec{
		Graph: g, BatchSize: req.BatchSize, Optimizer: req.Optimizer, Loss: req.Loss, Threads: req.Threads, Training: true,
		Seed: req.Network.Init.Seed,
	})
	if err != nil {
		return nil, err
	}
	return e, e.Init(req.Network.Init)
}

// epochs trains, and is the accuracy of the rows as they were seen, by epoch.
func epochs(e engine.Engine, req *disdel.TrainRequest, shard *dataset.Shard) (seen []float64, err error) {
	n := shard.Len()
	b := dataset.NewBatch(req.BatchSize, shard.SampleLen())
	var order []int32
	for epoch := range req.Epochs {
		order = dataset.Order(order, req.Network.Init.Seed, epoch, 0, n)
		right := 0
		for at := 0; at < n; at += req.BatchSize {
			shard.Fill(&b, order[at:min(at+req.BatchSize, n)])
			m, err := e.Step(b)
			if err != nil {
				return seen, err
			}
			right += m.Correct
		}
		seen = append(seen, float64(right)/float64(n))
	}
	return seen, nil
}

func evaluated(e engine.Engine, req *disdel.TrainRequest, held *dataset.Shard) (*float64, error) {
	n, right := held.Len(), 0
	b := dataset.NewBatch(req.BatchSize, held.SampleLen())
	rows := make([]int32, 0, req.BatchSize)
	for at := 0; at < n; at += req.BatchSize {
		rows = rows[:0]
		for i := at; i < min(at+req.BatchSize, n); i++ {
			rows = append(rows, int32(i))
		}
		held.Fill(&b, rows)
		m, err := e.Evaluate(b)
		if err != nil {
			return nil, err
		}
		right += m.Correct
	}
	return new(float64(right) / float64(n)), nil
}

// resident is what this process holds of memory that is no file's, now and at its most: what a container is charged.
func resident() (now, peak disdel.Bytes) { return residentOf(os.Getpid()) }

// residentOf is that of a process, 0 of one that has ended.
func residentOf(pid int) (now, peak disdel.Bytes) {
	sizes, err := rig.Memory(pid, "RssAnon", "RssShmem", "VmHWM", "RssFile")
	if err != nil {
		return 0, 0
	}
	now = sizes[0] + sizes[1]
	return now, max(now, sizes[2]-sizes[3])
}
