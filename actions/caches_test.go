package actions

import (
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator/embedded"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// A warm process keeps its connections to the store from one activation to the next, opens another store when the next
// job has one, and trusts no connection after a failure.
func TestAWarmHostKeepsItsStore(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	train := func(round int) {
		t.Helper()
		b.forget()
		req := b.train(0)
		req.Epochs, req.Attempt = 1, round
		if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req); err != nil {
			t.Fatal(err)
		}
	}
	train(1)
	first := h.store.store
	if train(2); h.store.store != first || first == nil {
		t.Error("the second activation opened the store anew")
	}
	missing := b.train(0)
	missing.Round = 7
	if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, missing); err == nil {
		t.Fatal("there is no reference of round 7")
	}
	if h.store.store != nil {
		t.Error("a failed activation left its connections")
	}
	train(3)
	redis, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	before := h.store.store
	other := b.train(0)
	other.Store, other.Epochs = disdel.Store{URLs: []string{redis.URL()}}, 1
	if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, other); err != nil {
		t.Fatal(err)
	}
	if h.store.store == before || h.store.at.URLs[0] != redis.URL() {
		t.Error("another job's store was not opened")
	}
}

// Rows of a data set that were asked about are let go of before rows that come with a request: the estimate of that
// action has no room for both. Those of the same question again are not read anew.
func TestAQuestionLetsGoOfTheRowsBefore(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, b.train(0)); err != nil {
		t.Fatal(err)
	}
	models, path := "file://"+t.TempDir(), modelstore.WeightsPath("m", "job-1")
	agg, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, disdel.AggregateRequest{
		Job: "job-1", Level: 1, Attempt: 1, Members: []disdel.UpdateID{{Job: "job-1"}}, Top: true, Store: b.store,
		Network: b.net, Models: models, WeightsKey: path,
	})
	if err != nil {
		t.Fatal(err)
	}
	shelf, err := modelstore.Open(t.Context(), models)
	if err == nil {
		err = shelf.WantAnswers(t.Context(), "answers/a")
	}
	if err != nil {
		t.Fatal(err)
	}
	own := disdel.InferRequest{Models: models, WeightsKey: path, Checksum: agg.Checksum, Network: b.net}
	own.Inputs = [][]float32{make([]float32, 64)}
	of := own
	of.Inputs, of.Dataset = nil, &disdel.DataAsk{
		Data: b.data, Part: disdel.PartAll, Rows: disdel.RowRange{End: 70}, Batch: 64, Answers: "answers/a/0.safetensors",
	}
	infer := func(req disdel.InferRequest) {
		t.Helper()
		if _, err := ask[disdel.InferResult](t, h, disdel.TaskInfer, req); err != nil {
			t.Fatal(err)
		}
	}
	infer(of)
	first := h.shard.shard
	if infer(of); first == nil || h.shard.shard != first {
		t.Error("the same rows were read anew")
	}
	if infer(own); h.shard.shard != nil {
		t.Error("rows of the question before are in memory beside those of the request")
	}
}
