package actions

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// queued is a worker's requests for members that take the batches of one epoch of so many rows from a queue.
func queued(req disdel.TrainRequest, members, rows int) (all []disdel.TrainRequest) {
	req.TrainRange, req.Shard, req.Members = disdel.TrainRange{Epochs: 1}, disdel.RowRange{End: rows}, members
	req.Steps = (rows + req.BatchSize - 1) / req.BatchSize
	req.Exchange = &disdel.Exchange{
		Order: disdel.OrderEager, Batches: disdel.BatchesQueue, Slack: 4, Combine: disdel.CombineSum,
	}
	for m := range members {
		r := req
		r.Worker = m
		all = append(all, r)
	}
	return all
}

// Of an epoch's batches each counts once, whoever takes it and whoever is killed, and all members end with the same
// bits; they make as many steps as there are batches, and one each to send what is owed.
func TestEveryBatchOfAQueueCountsOnce(t *testing.T) {
	b := setUp(t)
	const rows = 203
	all := queued(b.films(), 3, rows)
	for seed := range 3 {
		rng := rand.New(rand.NewPCG(uint64(seed), 9))
		var strikes []strike
		for range seed {
			strikes = append(strikes, strike{rng.IntN(3), 1 + rng.IntN(5)})
		}
		got := b.together(all, strikes...)
		samples := 0
		for m, w := range got {
			if !equal(w, got[0]) {
				t.Errorf("seed %d, %v: member %d delivers other weights than member 0", seed, strikes, m)
			}
			samples += b.result(all[m]).Samples
		}
		if samples != rows {
			t.Errorf("seed %d, %v: %d rows of %d count", seed, strikes, samples, rows)
		}
		steps, d := 0, b.board.Deltas(all[0].Job, all[0].Round, len(all))
		if err := d.ReadLog(t.Context()); err != nil {
			t.Fatal(err)
		}
		for m := range all {
			steps += d.LastStep(m)
		}
		if steps != all[0].Steps+len(all) {
			t.Errorf("seed %d, %v: %d steps for %d batches", seed, strikes, steps, all[0].Steps)
		}
		b.forget()
	}
}

// result is what a worker said of its work when it delivered it.
func (b *bench) result(req disdel.TrainRequest) (res disdel.TrainResult) {
	b.t.Helper()
	u, err := b.board.UpdateMeta(b.t.Context(), req.ID())
	if err == nil {
		err = json.Unmarshal([]byte(u.Meta[aggregator.ResultKey]), &res)
	}
	if err != nil {
		b.t.Error(err)
	}
	return res
}

// A member that is lost for good holds nobody up once it is ended: the others end with the same bits.
func TestMembersGoOnWithoutOneThatIsEnded(t *testing.T) {
	b := setUp(t)
	req := b.films()
	for name, all := range map[string][]disdel.TrainRequest{
		"lock-step": gang(req, 3, disdel.Exchange{Threshold: 0.3, Combine: disdel.CombineMean}),
		"eager":     gang(req, 3, disdel.Exchange{Slack: 2, Order: disdel.OrderEager, Combine: disdel.CombineSum}),
		"queue":     queued(req, 3, 200),
	} {
		var lost sync.WaitGroup
		lost.Go(func() {
			b.dies(all[2], 3)
			if err := b.board.EndMember(t.Context(), req.Job, req.Round, 2); err != nil {
				t.Error(err)
			}
		})
		got := b.together(all[:2])
		lost.Wait()
		if !equal(got[0], got[1]) {
			t.Errorf("%s: the members' weights differ", name)
		}
		b.forget()
	}
}

// dies runs a member until all have sent a step.
func (b *bench) dies(req disdel.TrainRequest, step int) {
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	attempt, kill := context.WithCancel(b.t.Context())
	var watch sync.WaitGroup
	defer watch.Wait()
	defer kill()
	watch.Go(func() {
		if b.board.Deltas(req.Job, req.Round, req.Members).Wait(attempt, step, func() error { return nil }) == nil {
			kill()
		}
	})
	params, err := json.Marshal(req)
	if err != nil {
		b.t.Error(err)
		return
	}
	h.Handlers()[disdel.TaskTrain](attempt, params) //nolint:errcheck // it is killed, or was faster than that
}
