package actions

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/aggregator/embedded"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// bench is a job's surroundings: the digits on a file store, and an embedded Redis.
type bench struct {
	t     *testing.T
	data  disdel.DataRef
	store disdel.Store
	net   disdel.Network
	board *aggregator.Store
}

func setUp(t *testing.T) *bench {
	t.Helper()
	ctx := t.Context()
	b := &bench{
		t: t, data: disdel.DataRef{
			URL: "file://" + t.TempDir(), Name: "digits",
			Split: disdel.Split{Train: 0.8, Validation: 0.2, Seed: 1},
		},
		net: disdel.Network{
			Name: "digits-cnn", Input: []int{1, 8, 8}, Classes: 10,
			Init: disdel.Init{Seed: 3, Scheme: "glorot"},
		},
	}
	sets, err := dataset.OpenStore(ctx, b.data.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer sets.Close()
	in, err := dataset.Digits()
	if err != nil {
		t.Fatal(err)
	}
	m, err := sets.Add(ctx, in, false)
	if err != nil {
		t.Fatal(err)
	}
	b.data.Checksum = m.Checksum()
	redis, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { redis.Close() })
	b.store = disdel.Store{URLs: []string{redis.URL()}}
	b.reopen()
	return b
}

// reopen opens the board at the bench's store.
func (b *bench) reopen() {
	b.t.Helper()
	board, err := aggregator.Open(b.t.Context(), b.store)
	if err != nil {
		b.t.Fatal(err)
	}
	b.board = board
	b.t.Cleanup(func() { board.Close() })
}

func (b *bench) train(worker int) disdel.TrainRequest {
	return disdel.TrainRequest{
		Job: "job-1", Worker: worker, Attempt: 1, Network: b.net, Data: b.data,
		Shard:      disdel.RowRange{Start: worker * 100, End: worker*100 + 100},
		TrainRange: disdel.TrainRange{Epochs: 2}, BatchSize: 16,
		Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.005}},
		Loss:      "crossEntropy", Threads: 1, Store: b.store,
	}
}

// forget has the store take work that was delivered before for new.
func (b *bench) forget() {
	b.t.Helper()
	if err := b.board.Forget(b.t.Context(), "job-1", 0); err != nil {
		b.t.Fatal(err)
	}
}

// ask runs a task as the runtime does: JSON in, a value out.
func ask[T any](t *testing.T, h *Host, task disdel.Task, req any) (out T, err error) {
	t.Helper()
	params, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Handlers()[task](t.Context(), params)
	if err != nil {
		return out, err
	}
	return res.(T), nil
}

func probe(...int) (disdel.Bytes, disdel.Bytes) { return 40 * disdel.MB, 50 * disdel.MB }

// Two workers, one aggregation, one evaluation, one inference: every task once, on real stores.
func TestARoundByHand(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	var members []disdel.UpdateID
	var updates []disdel.Update
	for w := range 2 {
		res, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, b.train(w))
		if err != nil {
			t.Fatal(err)
		}
		if res.Samples != 100 || res.Epochs != 2 || len(res.Losses) != 2 || res.Losses[1] >= res.Losses[0] ||
			res.Usage.Peak != 50*disdel.MB || res.Usage.Warm != (w > 0) {
			t.Errorf("worker %d: %+v", w, res)
		}
		for _, phase := range []string{"load", "fetch", "compute", "push"} {
			if _, ok := res.Usage.Phases[phase]; !ok {
				t.Errorf("worker %d: no phase %s", w, phase)
			}
		}
		id := disdel.UpdateID{Job: "job-1", Member: w}
		members = append(members, id)
		u, err := b.board.FetchUpdate(t.Context(), id, engine.Weights(h.built.engine))
		if err != nil {
			t.Fatal(err)
		}
		updates = append(updates, u)
	}
	models := "file://" + t.TempDir()
	path := modelstore.WeightsPath("m", "job-1")
	agg, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate,
		disdel.AggregateRequest{
			Job: "job-1", Level: 1, Attempt: 1, Members: members, Top: true, Store: b.store,
			Network: b.net, Models: models, WeightsKey: path,
		})
	if err != nil || agg.Weight != 200 || agg.Checksum == "" {
		t.Fatalf("%+v, %v", agg, err)
	}
	ref, err := b.board.Reference(t.Context(), "job-1", 1, updates[0].Weights)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ref {
		for k, v := range ref[i].Data {
			want := (float64(updates[0].Weights[i].Data[k]) + float64(updates[1].Weights[i].Data[k])) / 2
			if math.Abs(float64(v)-want) > 1e-6 {
				t.Fatalf("%s[%d] = %g, want the mean %g", ref[i].Name, k, v, want)
			}
		}
	}
	evaluation := disdel.EvaluateRequest{
		Job: "job-1", Network: b.net, Data: b.data, Rows: disdel.RowRange{End: 359}, BatchSize: 50,
		Loss: "crossEntropy", Store: b.store, InBlocks: true,
	}
	inBlocks, err := ask[disdel.EvaluateResult](t, h, disdel.TaskEvaluate, evaluation) // first, since engines are kept
	if err != nil {
		t.Fatal(err)
	}
	evaluation.InBlocks = false
	eval, err := ask[disdel.EvaluateResult](t, h, disdel.TaskEvaluate, evaluation)
	if inBlocks.Loss != eval.Loss || inBlocks.Accuracy != eval.Accuracy {
		t.Errorf("read in blocks, the same weights have another loss: %+v, %+v", inBlocks, eval)
	}
	if err != nil || eval.Samples != 359 || eval.Accuracy < 0.3 || eval.Loss <= 0 {
		t.Errorf("%+v, %v", eval, err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	evaluation.Data.OnDisk, evaluation.BatchSize = true, 7 // the last batch has 2 rows
	onDisk, err := ask[disdel.EvaluateResult](t, h, disdel.TaskEvaluate, evaluation)
	if err != nil || onDisk.Samples != 359 || onDisk.Accuracy != eval.Accuracy || math.Abs(onDisk.Loss-eval.Loss) > 1e-5 {
		t.Errorf("with rows on disk, 7 at a time: %+v, %v; in memory: %+v", onDisk, err, eval)
	}
	inf, err := ask[disdel.InferResult](t, h, disdel.TaskInfer,
		disdel.InferRequest{
			Models: models, WeightsKey: path, Checksum: agg.Checksum, Network: b.net,
			Inputs: [][]float32{make([]float32, 64), make([]float32, 64)},
		})
	if err != nil || len(inf.Classes) != 2 || len(inf.Probabilities[1]) != 10 {
		t.Errorf("%+v, %v", inf, err)
	}
	var all sync.WaitGroup // those that are there at once take turns
	for range 4 {
		all.Go(func() {
			again, err := ask[disdel.InferResult](t, h, disdel.TaskInfer,
				disdel.InferRequest{
					Models: models, WeightsKey: path, Checksum: agg.Checksum, Network: b.net,
					Inputs: [][]float32{make([]float32, 64), make([]float32, 64)},
				})
			if err != nil || !slices.Equal(again.Probabilities[1], inf.Probabilities[1]) {
				t.Errorf("%+v, %v", again, err)
			}
		})
	}
	all.Wait()
	if _, err := ask[disdel.InferResult](t, h, disdel.TaskInfer,
		disdel.InferRequest{
			Models: models, WeightsKey: path, Checksum: agg.Checksum, Network: b.net,
			Inputs: [][]float32{{1}},
		}); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a short input: %v, want Invalid", err)
	}
}

// A second delivery, in another process, gives the same bits.
func TestTrainingAgainGivesTheSameBits(t *testing.T) {
	b := setUp(t)
	var got []disdel.Update
	for range 2 {
		h := NewHost(probe, backends.Standard(nil))
		if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, b.train(1)); err != nil {
			t.Fatal(err)
		}
		u, err := b.board.FetchUpdate(t.Context(), disdel.UpdateID{Job: "job-1", Member: 1}, engine.Weights(h.built.engine))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, u)
		h.Close()
		b.forget()
		got[len(got)-1].Fence = 0 // of its claim
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		t.Errorf("two deliveries differ:\n%.500s", diff)
	}
}

// A schedule goes by the epochs of the whole job, whatever round it is: from where its factor is 0, weights stay as
// they are, and the next job on the same warm process learns again.
func TestAScheduleSetsTheRateOfEveryEpoch(t *testing.T) {
	race.SkipSequential(t)
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	weights := func(epochs, epoch, all int, s *disdel.Schedule) disdel.Weights {
		t.Helper()
		req := b.train(0)
		req.Epochs, req.Epoch, req.JobEpochs, req.Schedule = epochs, epoch, all, s
		b.forget()
		if res, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req); err != nil || res.Epochs != epochs {
			t.Fatalf("%+v, %v", res, err)
		}
		return engine.Weights(h.built.engine)
	}
	stop := &disdel.Schedule{Step: &disdel.StepSchedule{Every: 1}}
	one := weights(1, 0, 3, nil)
	if diff := weightsDiff(one, weights(3, 0, 3, stop)); diff != "" {
		t.Errorf("the epochs after the first changed weights:\n%.300s", diff)
	}
	g, err := model.Build(b.net)
	if err != nil {
		t.Fatal(err)
	}
	start := engine.InitWeights(g, b.net.Init)
	if diff := weightsDiff(start, weights(1, 1, 3, stop)); diff != "" {
		t.Errorf("an epoch that is the job's second changed weights:\n%.300s", diff)
	}
	if diff := weightsDiff(one, weights(1, 0, 3, nil)); diff != "" {
		t.Errorf("a job after one with a schedule learns otherwise:\n%.300s", diff)
	}
	half := &disdel.Schedule{Step: &disdel.StepSchedule{Every: 1, Factor: 0.5}}
	cosine := &disdel.Schedule{Cosine: &disdel.CosineSchedule{}} // half way through the job its factor is a half, exactly
	if diff := weightsDiff(weights(1, 1, 2, half), weights(1, 1, 2, cosine)); diff != "" {
		t.Errorf("a cosine does not go by the epochs of the job:\n%.300s", diff)
	}
	if cmp.Equal(one, weights(3, 0, 3, nil)) {
		t.Error("without a schedule, later epochs change nothing either")
	}
}

// DiSDeL III-B.3: an action stops at the end of the epoch whose loss is at most the target.
func TestTrainingStopsAtItsTarget(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	req := b.train(0)
	req.Epochs, req.Target = 50, 1.5
	res, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req)
	if err != nil || !res.Reached || res.Loss > 1.5 || res.Epochs == 50 || res.Epochs != len(res.Losses) {
		t.Errorf("%d epochs, loss %g, reached %v, %v", res.Epochs, res.Loss, res.Reached, err)
	}
}

func TestTrainingStopsWhenTheJobIsCancelled(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	if err := b.board.Cancel(context.Background(), "job-1"); err != nil {
		t.Fatal(err)
	}
	req := b.train(0)
	req.Epochs = 10_000
	start := time.Now()
	h.now = func() time.Time { return start.Add(time.Since(start) * 100) } // heartbeats come soon
	if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req); !errors.Is(err, disdel.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	later := b.train(0)
	later.Round = 4
	other := b.train(0)
	other.Data.Checksum = "sha256:other"
	empty := b.train(0)
	empty.Shard = disdel.RowRange{}
	down := b.train(0)
	down.Store.URLs = []string{"redis://127.0.0.1:1/0"}
	for name, c := range map[string]struct {
		req  disdel.TrainRequest
		want disdel.Kind
	}{
		"no reference": {later, disdel.NotFound}, "other data": {other, disdel.Conflict}, "no rows": {empty, disdel.Invalid},
		"no store": {down, disdel.Unavailable},
	} {
		if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, c.req); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := h.Handlers()[disdel.TaskTrain](t.Context(), json.RawMessage(`[]`)); !errors.Is(err, disdel.Invalid) {
		t.Errorf("no request: %v", err)
	}
}

// Over a slow way to the store there are fewer heartbeats: the work waits for each of them.
func TestSlowHeartbeatsAreRare(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	begun := time.Now()
	now, newest, waited := begun, int64(0), time.Duration(0)
	h.now = func() time.Time {
		if seen, err := b.board.Progress(t.Context(), "job-1"); err == nil && len(seen) == 1 && seen[0].UnixMs != newest {
			newest, waited = seen[0].UnixMs, waited+50*time.Millisecond // one has arrived
		}
		now = now.Add(10 * time.Millisecond)
		return now.Add(waited)
	}
	p := pulse{call: &call{host: h}, store: b.board, job: "job-1"}
	for range 1000 {
		if err := p.beat(t.Context(), disdel.Progress{Task: disdel.TaskTrain}); err != nil {
			t.Fatal(err)
		}
	}
	if worked := now.Sub(begun); waited == 0 || waited > worked/15 {
		t.Errorf("%v of waiting for heartbeats beside %v of work", waited, worked)
	}
}

// An action that computes one slice of the network after the other has the results of an action with the whole network:
// an evaluation with the weights in the store or in a checkpoint, and an inference.
func TestByLayersIsAsWithTheWholeNetwork(t *testing.T) {
	b := setUp(t)
	b.net = disdel.Network{
		Input: []int{1, 8, 8}, Classes: 10, Init: disdel.Init{Seed: 3, Scheme: "glorot"},
		Layers: []disdel.Layer{
			{Kind: "conv", Filters: 8, Kernel: 3, Padding: 1, Activation: "relu"},
			{Kind: "conv", Filters: 4, Kernel: 3, Padding: 1, Activation: "relu"},
			{Kind: "flatten"},
			{Kind: "dense", Units: 24, Activation: "relu"},
			{Kind: "dense", Units: 10, Activation: "softmax"},
		},
	}
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, b.train(0)); err != nil {
		t.Fatal(err)
	}
	models, path := "file://"+t.TempDir(), modelstore.WeightsPath("m", "job-1")
	agg, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, disdel.AggregateRequest{
		Job: "job-1", Level: 1, Attempt: 1, Members: []disdel.UpdateID{{Job: "job-1"}}, Top: true, Store: b.store,
		Network: b.net, Models: models, WeightsKey: path, NextCheckpoint: "checkpoints/job-1/000001/reference.safetensors",
	})
	if err != nil {
		t.Fatal(err)
	}
	evaluation := disdel.EvaluateRequest{
		Job: "job-1", Network: b.net, Data: b.data, Rows: disdel.RowRange{End: 359}, BatchSize: 50,
		Loss: "crossEntropy", Store: b.store,
	}
	want, err := ask[disdel.EvaluateResult](t, h, disdel.TaskEvaluate, evaluation)
	if err != nil {
		t.Fatal(err)
	}
	same := func(what string) {
		t.Helper()
		got, err := ask[disdel.EvaluateResult](t, h, disdel.TaskEvaluate, evaluation)
		if err != nil || math.Abs(got.Loss-want.Loss) > 1e-12 || got.Accuracy != want.Accuracy ||
			got.Samples != want.Samples || *got.Top5 != *want.Top5 || !cmp.Equal(got.ByClass, want.ByClass) {
			t.Errorf("%s: %+v, %v, want %+v", what, got, err, want)
		}
	}
	evaluation.ByLayers, evaluation.BatchSize = true, 100 // the last batch has 59 rows
	same("by layers")
	evaluation.Models, evaluation.ReferenceCheckpoint = models, "checkpoints/job-1/000001/reference.safetensors"
	b.forget()
	if err := b.board.DropRound(t.Context(), "job-1", 1); err != nil {
		t.Fatal(err)
	}
	same("by layers, from a checkpoint")

	ask2 := disdel.InferRequest{Models: models, WeightsKey: path, Checksum: agg.Checksum, Network: b.net}
	for i := range 37 {
		row := make([]float32, 64)
		for k := range row {
			row[k] = float32((i*31+k*7)%16) / 16
		}
		ask2.Inputs = append(ask2.Inputs, row)
	}
	whole, err := ask[disdel.InferResult](t, h, disdel.TaskInfer, ask2)
	if err != nil {
		t.Fatal(err)
	}
	ask2.ByLayers = 20
	got, err := ask[disdel.InferResult](t, h, disdel.TaskInfer, ask2)
	if err != nil || !slices.Equal(got.Classes, whole.Classes) || !cmp.Equal(got.Probabilities, whole.Probabilities) {
		t.Errorf("inference by layers: %v, %v, want %v", got.Classes, err, whole.Classes)
	}
	ask2.Checksum = "sha256:00"
	if _, err := ask[disdel.InferResult](t, h, disdel.TaskInfer, ask2); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("a changed model: %v, want Corrupt", err)
	}
}
