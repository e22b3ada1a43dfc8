package actions

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// byHand is what members in lock-step come to, computed in turns: each steps from the same weights, and what the steps
// change is added in the order of the members.
func (b *bench) byHand(all []disdel.TrainRequest) disdel.Weights {
	b.t.Helper()
	var workers []*trainer
	for _, req := range all {
		h := NewHost(probe, backends.Standard(nil))
		defer h.Close()
		t := &trainer{call: &call{host: h, phases: map[string]disdel.Millis{}}, req: req}
		t.req.Exchange = nil // which takes no part in it
		if err := t.load(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
		if err := t.engine.Init(req.Network.Init); err != nil {
			b.t.Fatal(err)
		}
		t.feed = newFeed(onDevice(t.engine), t.shard, t.batch(), 1)
		workers = append(workers, t)
	}
	shared := engine.Weights(workers[0].engine)
	scale := float32(1)
	if all[0].Exchange.Combine == disdel.CombineMean {
		scale = 1 / float32(len(all))
	}
	for step := range all[0].Steps {
		changes := make([]disdel.Weights, len(all))
		for m, t := range workers {
			changes[m] = b.change(t, step, shared)
		}
		for _, change := range changes {
			for i, v := range change {
				for k, x := range v.Data {
					if len(all) == 1 { // plain training: no difference is taken
						shared[i].Data[k] = x
						continue
					}
					shared[i].Data[k] += float32(scale * x)
				}
			}
		}
	}
	return shared
}

// change is what a worker's step changes of the shared weights, nothing where it has no batch for it; of one alone what
// it leads to.
func (b *bench) change(t *trainer, step int, shared disdel.Weights) disdel.Weights {
	b.t.Helper()
	_, _, batches := t.roundBatches()
	epoch, batch := step/batches, step%batches
	if epoch >= t.req.Epochs {
		return nil
	}
	if err := engine.SetWeights(t.engine, shared); err != nil {
		b.t.Fatal(err)
	}
	t.engine.SetRate(t.req.Optimizer.Rate())
	t.shuffle(epoch)
	if _, err := t.engine.Step(t.feed.take(batch, -1)); err != nil {
		b.t.Fatal(err)
	}
	after := engine.Weights(t.engine)
	if t.req.Members == 1 {
		return after
	}
	for i, v := range after {
		for k := range v.Data {
			v.Data[k] -= shared[i].Data[k]
		}
	}
	return after
}

// A worker without rows is refused at once, before anybody waits for it; deltas that are none are refused by name, and
// have the round begun anew.
func TestWhatNobodyCanFoldIsRefusedByName(t *testing.T) {
	b := setUp(t)
	req := b.films()
	all := gang(req, 2, disdel.Exchange{})
	none := all[1]
	none.Shard.End = none.Shard.Start
	if err := askAlone(t.Context(), none); disdel.KindOf(err) != disdel.Invalid {
		t.Errorf("a worker without rows: %v", err)
	}
	n := 0
	for _, v := range engine.InitWeights(mustBuild(t, b.net), b.net.Init) {
		n += len(v.Data)
	}
	for name, data := range hostile(n) {
		b.forget()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		c, _, err := b.board.Claim(ctx, all[1].ID(), "hostile", all[1].Attempt)
		if err == nil {
			err = b.board.CommitDelta(ctx, c, 1, data)
		}
		if err != nil {
			t.Fatal(err)
		}
		err = askAlone(ctx, all[0])
		var said *disdel.Error
		if !errors.As(err, &said) || said.Kind != disdel.Corrupt || said.Code != disdel.CodeLostUpdate ||
			!strings.Contains(said.Msg, "step 1 of member 1") {
			t.Errorf("%s: %v", name, err)
		}
		stop()
		for m := range all {
			all[m].Attempt++
		}
	}
}

// hostile are deltas that nobody sends, of so many weights.
func hostile(n int) map[string][]byte {
	nan := []byte{1, 1, 1, 0, 0, 0xc0, 0x7f}
	last := n + 1 // the distance of the first index that is not there, from -1
	far := slices.Concat([]byte{1, 1}, []byte{byte(last) | 0x80, byte(last >> 7)}, []byte{0, 0, 0x80, 0x3f})
	return map[string][]byte{
		"empty": {}, "another format": {9, 0}, "cut off": nan[:5], "too long": {1, 0, 7}, "a value that is none": nan,
		"an index beyond the last": far, "more entries than weights": {1, 0xff, 0xff, 0x7f}, "a zero": {1, 1, 1, 0, 0, 0, 0},
		"an index twice": {1, 2, 1, 0, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f},
	}
}
