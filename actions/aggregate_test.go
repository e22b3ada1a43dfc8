package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// Once the next reference stands, the round's updates are gone. Whoever comes late, or a second time, still finds the
// work done, and what comes after the round has all it needs.
func TestARoundIsDroppedWhenItsSuccessorStands(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	first, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, b.train(0))
	if err != nil {
		t.Fatal(err)
	}
	id := disdel.UpdateID{Job: "job-1"}
	like := engine.Weights(h.built.engine)
	top := disdel.AggregateRequest{
		Job: "job-1", Level: 1, Attempt: 1, Members: []disdel.UpdateID{id}, Top: true,
		Store: b.store, Network: b.net,
	}
	if res, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, top); err != nil || res.Duplicate {
		t.Fatalf("%+v, %v", res, err)
	}
	if _, err := b.board.FetchUpdate(t.Context(), id, like); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("the update is still there: %v", err)
	}
	late := b.train(0)
	late.Attempt = 2
	if res, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, late); err != nil || !res.Duplicate || res.Rows != 0 ||
		first.Rows == 0 {
		t.Errorf("a second delivery of the worker: %+v, %v", res, err)
	}
	again := top
	again.Attempt, again.Models, again.WeightsKey = 2, "file://"+t.TempDir(), modelstore.WeightsPath("m", "job-1")
	if res, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, again); err != nil || !res.Duplicate ||
		res.Checksum == "" {
		t.Errorf("a second try of the aggregation, after a death before it wrote the model: %+v, %v", res, err)
	}
	next := b.train(0)
	next.Round, next.Epoch = 1, 2
	if res, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, next); err != nil || res.Duplicate {
		t.Errorf("the next round: %+v, %v", res, err)
	}
	evaluation := disdel.EvaluateRequest{
		Job: "job-1", Network: b.net, Data: b.data, Rows: disdel.RowRange{End: 50},
		BatchSize: 16, Loss: "crossEntropy", Threads: 1, Store: b.store,
	}
	if res, err := ask[disdel.EvaluateResult](t, h, disdel.TaskEvaluate, evaluation); err != nil || res.Samples != 50 {
		t.Errorf("the evaluation: %+v, %v", res, err)
	}
}

// Writing a model may take far longer than the third of a lease after which a claim is renewed, and the claim went with
// the round.
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
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, b.train(0)); err != nil {
		t.Fatal(err)
	}
	top := disdel.AggregateRequest{
		Job: "job-1", Level: 1, Attempt: 1, Members: []disdel.UpdateID{{Job: "job-1"}}, Top: true, Store: b.store,
		Network: b.net, WeightsKey: modelstore.WeightsPath("m", "job-1"),
		Models: "s3://models?region=x&endpoint=" + server.URL +
			"&use_path_style=true&response_checksum_validation=when_required",
	}
	if res, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, top); err != nil || res.Checksum == "" {
		t.Errorf("%+v, %v", res, err)
	}
}

// An aggregation whose older checkpoints cannot be removed keeps the newest one, and says why the others stay.
func TestOlderCheckpointsThatStayAreTold(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	backend := s3mem.New()
	if err := backend.CreateBucket("models"); err != nil {
		t.Fatal(err)
	}
	all := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete || r.URL.Query().Has("delete") {
			http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
			return
		}
		all.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	for round := range 3 {
		worker := b.train(0)
		worker.Round, worker.Epoch = round, round+1
		if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, worker); err != nil {
			t.Fatal(err)
		}
		res, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, disdel.AggregateRequest{
			Job: "job-1", Round: round, Level: 1, Attempt: 1, Members: []disdel.UpdateID{{Job: "job-1", Round: round}},
			Top: true, Store: b.store, Network: b.net,
			NextCheckpoint: fmt.Sprintf("checkpoints/job-1/%06d/reference.safetensors", round+1),
			Models: "s3://models?region=x&endpoint=" + server.URL +
				"&use_path_style=true&response_checksum_validation=when_required",
		})
		if stays := round >= keptCheckpoints; err != nil || res.Saved == nil || res.Unsaved != nil ||
			stays != (res.Unpruned != nil && res.Unpruned.Kind == disdel.Denied) {
			t.Errorf("round %d: %+v, %v: %v", round, res.Saved, err, res.Unpruned)
		}
	}
}

// On Kubernetes OpenWhisk has the same words for a lack of memory and for a crash. An aggregation near its limit has
// said so before it dies, at whatever level it is and in whatever it is about to do.
func TestAnAggregationThatDiesNearItsLimitIsOutOfMemory(t *testing.T) {
	const limit = 128 * disdel.MB
	b := setUp(t)
	h := NewHost(func(...int) (disdel.Bytes, disdel.Bytes) { return 120 * disdel.MB, 121 * disdel.MB }, backends.Standard(nil))
	defer h.Close()
	if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, b.train(0)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	told, died := make(chan []disdel.Progress, 1), make(chan struct{})
	// the work never comes to its end
	bucket := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			seen, err := b.board.Progress(r.Context(), "job-1")
			if i := slices.IndexFunc(seen, func(p disdel.Progress) bool { return p.Task == disdel.TaskAggregate }); err == nil &&
				i >= 0 {
				told <- seen[i : i+1]
				<-died
				return
			}
		}
	}))
	defer bucket.Close()
	ctx, die := context.WithCancel(t.Context())
	req := disdel.AggregateRequest{
		Job: "job-1", Level: 2, Cluster: 3, Attempt: 1, Members: []disdel.UpdateID{{Job: "job-1"}}, Top: true, Store: b.store,
		Network: b.net, Memory: limit,
		WeightsKey: modelstore.WeightsPath("m", "job-1"), Models: "s3://models?region=x&endpoint=" + bucket.URL +
			"&use_path_style=true",
	}
	params, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	var beats []disdel.Beat
	go func() {
		for _, p := range <-told {
			if p.Level == req.Level && p.Member == req.Cluster && p.Round == req.Round {
				beats = append(beats, p.Beat(0))
			}
		}
		die()
		close(died)
	}()
	if _, err := h.Handlers()[disdel.TaskAggregate](ctx, params); err == nil {
		t.Fatal("the bucket took the model")
	}
	<-died
	inv := disdel.Invocation{
		Task: disdel.TaskAggregate, Level: req.Level, Member: req.Cluster,
		Limits: disdel.Limits{Memory: limit},
	}
	said := executor.Record{
		Status: "action developer error",
		Result: []byte(`{"error":"The action did not produce a valid response and exited unexpectedly."}`),
	}
	if a := executor.Classify(inv, said, beats); a.Outcome != disdel.OutcomeOutOfMemory || a.Peak != 121*disdel.MB {
		t.Errorf("%v, peak %v: %v", a.Outcome, a.Peak, a.Evidence)
	}
}

// Memory may run out sooner than a heartbeat is due.
func TestWhatComesNearItsLimitIsToldAtOnce(t *testing.T) {
	b := setUp(t)
	var resident atomic.Int64
	h := NewHost(func(...int) (disdel.Bytes, disdel.Bytes) { return disdel.Bytes(resident.Load()), 0 }, backends.Standard(nil))
	defer h.Close()
	begun := time.Now()
	var asked atomic.Int64
	h.now = func() time.Time { return begun.Add(time.Duration(asked.Add(1))) } // no time passes: none is due but the first
	p := pulse{call: &call{host: h}, store: b.board, job: "job-1"}
	stop := p.during(t.Context(), disdel.Progress{Task: disdel.TaskAggregate}, 100)
	defer stop()
	for _, bytes := range []int64{10, 95} {
		resident.Store(bytes)
		for {
			if seen, err := b.board.Progress(t.Context(), "job-1"); err != nil || len(seen) > 0 &&
				seen[0].Resident == disdel.Bytes(bytes) {
				break
			}
		}
	}
}
