package actions

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// Batches that are filled beside a device's steps, and by several goroutines, come to the bits of those that are not;
// so do rounds in legs, and evaluations.
func TestBatchesAheadComeToTheSameBits(t *testing.T) {
	b := setUp(t)
	b.data.Augment = disdel.Augment{Crop: 1, Flip: true}
	table := engine.Table{Backends: []engine.Backend{onDeviceBackend{native.Backend{}}, native.Backend{}}}
	train := func(backend string, threads int, limit time.Duration) (disdel.TrainResult, disdel.Update) {
		t.Helper()
		b.forget()
		h := NewHost(probe, table)
		defer h.Close()
		req := b.train(0)
		req.Backend, req.Epochs, req.Threads = backend, 3, threads
		res := b.leg(h, req, limit)
		for res.Paused {
			req.Leg++
			res = b.leg(h, req, limit)
		}
		if req.Leg < 2 && limit < time.Hour {
			t.Errorf("%d legs", req.Leg+1)
		}
		return res, b.fetch(0, h)
	}
	want, update := train(disdel.BackendNative, 1, time.Hour)
	for _, limit := range []time.Duration{time.Hour, 40 * time.Millisecond} {
		res, got := train(disdel.BackendCUDA, 2, limit)
		if diff := cmp.Diff(want.Losses, res.Losses); diff != "" {
			t.Errorf("losses (-one after the other +beside):\n%s", diff)
		}
		if diff := weightsDiff(update.Weights, got.Weights); diff != "" {
			t.Errorf("weights differ:\n%.300s", diff)
		}
	}
}

// A feed fills the batch that it was told of beside, and another where that is not the one that is taken.
func TestAFeedKnowsWhatItFilled(t *testing.T) {
	shard := &dataset.Shard{}
	var filled []int
	f := &feed{filler: shard.Filler(1), concurrent: true}
	f.fill = func(b *dataset.Batch, number int) {
		filled = append(filled, number) // one at a time: the next begins when that before was waited for
		b.Input.Rows = 100 + number
	}
	for _, c := range []struct{ number, then int }{{0, 1}, {1, 5}, {2, 3}, {3, -1}, {4, -1}} {
		if got := f.take(c.number, c.then); got.Input.Rows != 100+c.number {
			t.Errorf("batch %d has %d", c.number, got.Input.Rows-100)
		}
	}
	f.wait()
	if diff := cmp.Diff([]int{0, 1, 5, 2, 3, 4}, filled); diff != "" {
		t.Error(diff)
	}
	f.concurrent, filled = false, nil
	if f.take(7, 8); f.done != nil || len(filled) != 1 {
		t.Errorf("on the processor, too: %v", filled)
	}
	if f.threads(0) != 0 || f.threads(2) != 2 {
		t.Errorf("%d threads", f.threads(2))
	}
	if f.concurrent = true; f.threads(0) != 0 || f.threads(2) != 3 {
		t.Errorf("%d threads with a device", f.threads(2))
	}
}

// failing is an engine whose second step fails, after it has called then.
type failing struct {
	engine.Engine
	steps int
	first func()
	then  func()
}

func (e *failing) Step(b dataset.Batch) (disdel.Metrics, error) {
	if e.steps++; e.steps == 1 {
		e.first()
		return e.Engine.Step(b)
	}
	e.then()
	return disdel.Metrics{}, &disdel.Error{Kind: disdel.Diverged, Op: "train", Msg: "for this test"}
}

// When a step fails, the batch that is being filled is waited for: the next request would find a goroutine in its
// shard. What filling panicked with is the caller's.
func TestNothingIsFilledAfterTheEnd(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, engine.Table{Backends: []engine.Backend{onDeviceBackend{native.Backend{}}}})
	defer h.Close()
	req := b.train(0)
	req.Probe = true
	for _, panics := range []bool{false, true} {
		c := &call{host: h, phases: map[string]disdel.Millis{}}
		tr := trainer{call: c, req: req, session: &session{pulse: pulse{call: c, last: time.Now().Add(time.Hour)}}}
		if err := tr.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := tr.engine.Init(b.net.Init); err != nil {
			t.Fatal(err)
		}
		release, filled := make(chan struct{}), atomic.Bool{}
		e := &failing{Engine: tr.engine, then: func() { close(release) }}
		e.first = func() {
			tr.feed.fill = func(*dataset.Batch, int) {
				<-release
				time.Sleep(50 * time.Millisecond)
				filled.Store(true)
				if panics {
					panic("filled")
				}
			}
		}
		tr.engine = e
		raised := func() (raised any) {
			defer func() { raised = recover() }()
			if err := tr.compute(t.Context()); !errors.Is(err, disdel.Diverged) {
				t.Errorf("%v, want the step's error", err)
			}
			return nil
		}()
		if !filled.Load() || e.steps != 2 || panics != (raised == "filled") {
			t.Errorf("filled %v, %d steps, raised %v", filled.Load(), e.steps, raised)
		}
		tr.feed.fill = nil
	}
}
