package actions

import (
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator/embedded"
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
