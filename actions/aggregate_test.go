package actions

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
)

// Once the next reference stands, the round's updates are gone. Whoever comes late, or a second time, still finds the work
// done, and what comes after the round has all it needs.
func TestARoundIsDroppedWhenItsSuccessorStands(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe)
	defer h.Close()
	first, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, b.train(0))
	if err != nil {
		t.Fatal(err)
	}
	id := disdel.UpdateID{Job: "job-1"}
	like := h.built.engine.Weights()
	top := disdel.AggregateRequest{Job: "job-1", Level: 1, Attempt: 1, Members: []disdel.UpdateID{id}, Top: true, Store: b.store, Network: b.net}
	if res, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, top); err != nil || res.Again {
		t.Fatalf("%+v, %v", res, err)
	}
	if _, err := b.board.FetchUpdate(t.Context(), id, like); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("the update is still there: %v", err)
	}
	late := b.train(0)
	late.Attempt = 2
	if res, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, late); err != nil || !res.Again || res.Rows != 0 || first.Rows == 0 {
		t.Errorf("a second delivery of the worker: %+v, %v", res, err)
	}
	again := top
	again.Attempt, again.Models, again.Path = 2, "file://"+t.TempDir(), modelstore.WeightsPath("m", "job-1")
	if res, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, again); err != nil || !res.Again || res.Checksum == "" {
		t.Errorf("a second try of the aggregation, after a death before it wrote the model: %+v, %v", res, err)
	}
	next := b.train(0)
	next.Round, next.Epoch = 1, 2
	if res, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, next); err != nil || res.Again {
		t.Errorf("the next round: %+v, %v", res, err)
	}
	evaluation := disdel.EvaluateRequest{Job: "job-1", Network: b.net, Data: b.data, Rows: disdel.Rows{End: 50}, BatchSize: 16, Loss: "crossEntropy", Threads: 1, Store: b.store}
	if res, err := ask[disdel.EvaluateResult](t, h, disdel.TaskEvaluate, evaluation); err != nil || res.Samples != 50 {
		t.Errorf("the evaluation: %+v, %v", res, err)
	}
}

// Writing a model may take far longer than the third of a lease after which a claim is renewed, and the claim went with the
// round.
func TestASlowBucketDoesNotCostTheAggregation(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	backend := s3mem.New()
	if err := backend.CreateBucket("models"); err != nil {
		t.Fatal(err)
	}
	fast := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			select {
			case <-time.After(2500 * time.Millisecond): // a claim is renewed after 2 s
			case <-r.Context().Done():
			}
		}
		fast.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b := setUp(t)
	h := NewHost(probe)
	defer h.Close()
	if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, b.train(0)); err != nil {
		t.Fatal(err)
	}
	top := disdel.AggregateRequest{
		Job: "job-1", Level: 1, Attempt: 1, Members: []disdel.UpdateID{{Job: "job-1"}}, Top: true, Store: b.store, Network: b.net, Path: modelstore.WeightsPath("m", "job-1"),
		Models: "s3://models?region=x&endpoint=" + server.URL + "&use_path_style=true&response_checksum_validation=when_required",
	}
	if res, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, top); err != nil || res.Checksum == "" {
		t.Errorf("%+v, %v", res, err)
	}
}
