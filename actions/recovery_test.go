package actions

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// What a store has lost is said in the words that the controller goes by.
func TestWhatTheStoreLostIsNamed(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	req := b.train(0)
	req.Round = 1
	_, train := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req)
	top := disdel.AggregateRequest{
		Job: "job-1", Round: 1, Level: 1, Attempt: 1, Top: true, Store: b.store, Network: b.net,
		Models: "file://" + t.TempDir(), WeightsKey: "w.safetensors",
	}
	_, publish := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, top)
	top.Members = []disdel.UpdateID{{Job: "job-1", Round: 1}}
	_, reduce := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, top)
	_, evaluate := ask[disdel.EvaluateResult](t, h, disdel.TaskEvaluate, disdel.EvaluateRequest{
		Job: "job-1", Network: b.net, Data: b.data, Rows: disdel.RowRange{End: 9}, BatchSize: 9, Loss: "crossEntropy",
		Store: b.store,
	})
	for _, c := range []struct {
		err     error
		code    disdel.Code
		subject disdel.UpdateID
	}{
		{train, disdel.CodeLostReference, disdel.UpdateID{Job: "job-1", Round: 1}},
		{publish, disdel.CodeLostReference, disdel.UpdateID{Job: "job-1", Round: 2}},
		{evaluate, disdel.CodeLostReference, disdel.UpdateID{Job: "job-1", Round: 1}},
		{reduce, disdel.CodeLostUpdate, disdel.UpdateID{Job: "job-1", Round: 1}},
	} {
		e := disdel.AsError(c.err) // as it comes out of the action: from JSON
		if e.Kind != disdel.NotFound || e.Code != c.code || e.Subject == nil || *e.Subject != c.subject {
			t.Errorf("error %v: %v %v of %v, want %v of %v", c.err, e.Kind, e.Code, e.Subject, c.code, c.subject)
		}
	}
}

// A round that is over needs no updates to be written: its reference does, or a checkpoint of it where the store has
// lost that.
func TestWhatIsOverIsOnlyWritten(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, b.train(0)); err != nil {
		t.Fatal(err)
	}
	top := disdel.AggregateRequest{
		Job: "job-1", Level: 1, Attempt: 1, Top: true, Members: []disdel.UpdateID{{Job: "job-1"}}, Store: b.store,
		Network: b.net,
		Models:  "file://" + t.TempDir(), NextCheckpoint: "checkpoints/job-1/000001/reference.safetensors",
	}
	if _, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, top); err != nil {
		t.Fatal(err)
	}
	publish := top
	publish.Attempt, publish.Members, publish.WeightsKey, publish.ReferenceCheckpoint, publish.NextCheckpoint = 2, nil,
		"w.safetensors",
		top.NextCheckpoint, ""
	want, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, publish)
	if err != nil || want.Checksum == "" || want.Saved != nil {
		t.Fatalf("%+v, %v", want, err)
	}
	if _, err := b.board.Sweep(t.Context(), "job-1"); err != nil {
		t.Fatal(err)
	}
	got, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, publish)
	if err != nil || got.Checksum != want.Checksum {
		t.Errorf("%+v, %v; want %s", got, err, want.Checksum)
	}
}

// A state that is damaged costs the work that it was to save, not the job.
func TestADamagedStateIsNotGoneOnFrom(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	dir := t.TempDir()
	models, err := modelstore.Open(t.Context(), "file://"+dir)
	if err != nil {
		t.Fatal(err)
	}
	defer models.Close()
	w := disdel.Weights{{Name: "x", Shape: []int{1}, Data: []float32{1}}}
	if _, _, err := models.WriteCheckpoint(t.Context(), "c/"+WorkerState(0), "{}", w,
		modelstore.ArrayValues(1, func(int) []float32 { return w[0].Data })); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "c", WorkerState(0)), 40); err != nil {
		t.Fatal(err)
	}
	req := b.train(0)
	req.Attempt, req.Models, req.ReferenceCheckpoint = 2, "file://"+dir, "c/reference.safetensors"
	if res := b.leg(h, req, time.Hour); res.Rows != 200 {
		t.Errorf("%d rows were trained", res.Rows)
	}
	b.forget()
	req.OptimizerState = disdel.StateKeep // and of a worker that carries on with its own it is said
	if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("error %v, want Corrupt", err)
	}
}

// A round without a batch for a worker would come to a loss of 0, which reaches any target.
func TestARoundWithoutBatchesIsRefused(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	req := b.train(0)
	req.Epochs, req.Batch, req.Batches, req.Target = 1, 7, 2, 1 // of 100 rows in batches of 16
	if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req); !errors.Is(err, disdel.Invalid) {
		t.Errorf("error %v, want Invalid", err)
	}
	req.Batch, req.Shard = 0, disdel.RowRange{}
	if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req); !errors.Is(err, disdel.Invalid) {
		t.Errorf("no rows: error %v, want Invalid", err)
	}
}
