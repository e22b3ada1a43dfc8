package actions

import (
	"math"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// round trains two workers and returns their updates' ids.
func (b *bench) round(h *Host, job disdel.JobID, round int, format disdel.Aggregation) (ids []disdel.UpdateID) {
	b.t.Helper()
	for worker := range 2 {
		req := b.train(worker)
		req.Job, req.Round, req.Epoch, req.Shard.End = job, round, round, req.Shard.End+20*worker
		req.Epochs, req.JobEpochs, req.Wire, req.Threshold = 1, 3, format.Wire, format.Threshold
		if _, err := ask[disdel.TrainResult](b.t, h, disdel.TaskTrain, req); err != nil {
			b.t.Fatal(err)
		}
		ids = append(ids, req.ID())
	}
	return ids
}

// publish aggregates a round and returns the next one's reference.
func (b *bench) publish(h *Host, ids []disdel.UpdateID, wire disdel.Wire, like disdel.Weights) disdel.Weights {
	b.t.Helper()
	id := ids[0]
	_, err := ask[disdel.AggregateResult](b.t, h, disdel.TaskAggregate, disdel.AggregateRequest{
		Job: id.Job, Round: id.Round, Level: 1, Attempt: 1, Members: ids, Top: true,
		Store: b.store, Network: b.net, Wire: wire,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return b.reference(id.Job, id.Round+1, like)
}

func (b *bench) reference(job disdel.JobID, round int, like disdel.Weights) disdel.Weights {
	b.t.Helper()
	w, err := b.board.Reference(b.t.Context(), job, round, like)
	if err != nil {
		b.t.Fatal(err)
	}
	return w
}

// MLLess, Corollary 1: with a threshold of 0 the filter is none. Every round of a whole job has the bits of the mean of
// the differences, as float32, of workers that send all of their weights.
func TestAJobWithAThresholdOfZeroHasTheBitsOfDifferences(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	var reference disdel.Weights
	for round := range 3 {
		ids := b.round(h, "job-1", round, disdel.Aggregation{Wire: disdel.WireSignificant})
		like := engine.Weights(h.built.engine)
		if round == 0 {
			reference = b.reference("job-1", 0, like)
		} else if err := b.board.PutReference(t.Context(), "job-plain", round, reference); err != nil {
			t.Fatal(err)
		}
		got := b.publish(h, ids, disdel.WireSignificant, like)
		reference = b.meanOfDifferences(b.round(h, "job-plain", round, disdel.Aggregation{}), reference)
		for i, v := range reference {
			for k, x := range v.Data {
				if math.Float32bits(x) != math.Float32bits(got[i].Data[k]) {
					t.Fatalf("round %d, %s[%d]: %g, want %g", round, v.Name, k, got[i].Data[k], x)
				}
			}
		}
	}
}

// meanOfDifferences is what the reduction of differences comes to, value by value and in its order: members, reference,
// division.
func (b *bench) meanOfDifferences(ids []disdel.UpdateID, reference disdel.Weights) disdel.Weights {
	b.t.Helper()
	var updates []disdel.Update
	total := 0.0
	for _, id := range ids {
		u, err := b.board.FetchUpdate(b.t.Context(), id, reference)
		if err != nil {
			b.t.Fatal(err)
		}
		updates, total = append(updates, u), total+u.Samples
	}
	next := make(disdel.Weights, len(reference))
	for i, v := range reference {
		next[i] = disdel.Tensor{Name: v.Name, Shape: v.Shape, Data: make([]float32, len(v.Data))}
		for k, x := range v.Data {
			sum := 0.0
			for _, u := range updates {
				sum += float64(u.Samples * float64(u.Weights[i].Data[k]-x))
			}
			next[i].Data[k] = float32((sum + float64(total*float64(x))) / total)
		}
	}
	return next
}

// With a threshold a worker sends less, and has the rest when its next round begins in another process.
func TestWhatIsNotSignificantIsKept(t *testing.T) {
	b := setUp(t)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	plain := b.round(h, "job-plain", 0, disdel.Aggregation{})
	exact, err := b.board.FetchUpdate(t.Context(), plain[0], engine.Weights(h.built.engine))
	if err != nil {
		t.Fatal(err)
	}
	ids := b.round(h, "job-1", 0, disdel.Aggregation{Wire: disdel.WireSignificant, Threshold: 0.7})
	like := engine.Weights(h.built.engine)
	start := b.reference("job-1", 0, like)
	sent, err := b.board.FetchUpdate(t.Context(), ids[0], like)
	if err != nil {
		t.Fatal(err)
	}
	_, kept, err := b.board.State(t.Context(), disdel.UpdateID{Job: "job-1", Round: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	went, stayed := 0, 0
	for i, v := range exact.Weights {
		for k, x := range v.Data {
			change := x - start[i].Data[k]
			wantSent, wantKept := float32(0), change
			if math.Abs(float64(change)) > 0.7*math.Abs(float64(x)) {
				wantSent, wantKept = change, 0
				went++
			} else if change != 0 {
				stayed++
			}
			if sent.Weights[i].Data[k] != start[i].Data[k]+wantSent || kept[i].Data[k] != wantKept {
				got := sent.Weights[i].Data[k]
				t.Fatalf("%s[%d]: %g changed by %g: %g sent, %g kept", v.Name, k, x, change, got, kept[i].Data[k])
			}
		}
	}
	if went == 0 || stayed == 0 {
		t.Errorf("%d went, %d stayed: the test shows nothing", went, stayed)
	}
	b.publish(h, ids, disdel.WireSignificant, like)
	other := NewHost(probe, backends.Standard(nil))
	defer other.Close()
	b.round(other, "job-1", 1, disdel.Aggregation{Wire: disdel.WireSignificant, Threshold: 0.7})
}
