package actions

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// A member that is let go leaves its batches to the others and does not wait for them: every batch counts once, those
// who stay end with the same bits, and it delivers nothing, whenever it is told and however often it is tried. Told
// when it is at its end already, it delivers as ever.
func TestWhoIsLetGoLeavesItsBatchesToTheOthers(t *testing.T) {
	b := setUp(t)
	const rows, members = 203, 3
	all := queued(b.films(), members, rows)
	for i := range all {
		all[i].Exchange.Threshold = 0.3 // so that it owes something
	}
	for _, after := range []int{0, 1, 4} {
		var going sync.WaitGroup
		var left disdel.TrainResult
		going.Go(func() { left = b.goes(all[2], after) })
		got := b.together(all[:2])
		going.Wait()
		if !equal(got[0], got[1]) {
			t.Errorf("let go after step %d: the weights of those who stay differ", after)
		}
		late := after > 0 && left.Left == 0
		if left.Left == 0 && !late || left.Paused {
			t.Errorf("let go after step %d: %+v", after, left)
		}
		samples := left.Samples + b.result(all[0]).Samples + b.result(all[1]).Samples
		if samples != rows {
			t.Errorf("let go after step %d: %d rows of %d count", after, samples, rows)
		}
		_, err := b.board.UpdateMeta(t.Context(), all[2].ID())
		if delivered := disdel.KindOf(err) != disdel.NotFound; delivered != late {
			t.Errorf("let go after step %d: it delivered something: %v, %v", after, delivered, err)
		}
		again := all[2]
		again.Attempt = 2 // its answer was lost
		if said := b.run(t.Context(), again); said.Left != left.Left || said.Samples != left.Samples {
			t.Errorf("let go after step %d: another attempt says %+v, and the first %+v", after, said, left)
		}
		b.forget()
	}
}

// Who is let go ends though no other member has begun yet: it waits for nobody.
func TestWhoIsLetGoWaitsForNobody(t *testing.T) {
	b := setUp(t)
	all := queued(b.films(), 3, 203)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := b.board.LetGo(ctx, all[1].Job, all[1].Round, 1); err != nil {
		t.Fatal(err)
	}
	if said := b.run(ctx, all[1]); said.Left == 0 || said.Paused {
		t.Errorf("it is still there: %+v", said)
	}
}

// goes runs a member that is let go once all have sent a step.
func (b *bench) goes(req disdel.TrainRequest, step int) disdel.TrainResult {
	ctx, stop := context.WithCancel(b.t.Context())
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop()
	let := func() {
		if err := b.board.LetGo(ctx, req.Job, req.Round, req.Worker); err != nil {
			b.t.Error(err)
		}
	}
	if step == 0 {
		let()
	} else {
		watch.Go(func() {
			if b.board.Deltas(req.Job, req.Round, req.Members).Wait(ctx, step, func() error { return nil }) == nil {
				let()
			}
		})
	}
	return b.run(ctx, req)
}

// run runs one attempt of a member, and returns what it says.
func (b *bench) run(ctx context.Context, req disdel.TrainRequest) (res disdel.TrainResult) {
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	params, err := json.Marshal(req)
	if err != nil {
		b.t.Error(err)
		return res
	}
	said, err := h.Handlers()[disdel.TaskTrain](ctx, params)
	if err != nil {
		b.t.Errorf("member %d: %v", req.Worker, err)
		return res
	}
	text, err := json.Marshal(said)
	if err == nil {
		err = json.Unmarshal(text, &res)
	}
	if err != nil {
		b.t.Error(err)
	}
	return res
}
