package cli

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/service"
)

// someRecords are those that a prune looks at.
type someRecords struct {
	client.Records
	list []disdel.Record
	gone []string
}

func (r *someRecords) Remarks(context.Context) (map[disdel.JobID]history.Remark, error) {
	return map[disdel.JobID]history.Remark{"noted": {Text: "x"}}, nil
}

func (r *someRecords) List(context.Context, history.Query) ([]disdel.Record, error) {
	return r.list, nil
}

func (r *someRecords) RemoveStored(_ context.Context, items []service.StoredItem) (int, error) {
	for _, item := range items {
		r.gone = append(r.gone, string(item.Job))
	}
	return len(items), nil
}

// someWeights are those that a prune looks at.
type someWeights struct {
	client.Models
	list []modelstore.StoredWeights
	gone []string
}

func (w *someWeights) KeptWeights(context.Context) ([]modelstore.StoredWeights, error) {
	return w.list, nil
}

func (w *someWeights) RemoveWeights(_ context.Context, ref string) error {
	w.gone = append(w.gone, ref)
	return nil
}

// Weights stay that a job names which is queued, runs, or may be taken up again, and those that were sent lately.
func TestAPruneLeavesWeightsThatJobsNeed(t *testing.T) {
	now := time.Now()
	old := now.Add(-time.Hour)
	job := func(id disdel.JobID, status disdel.Status, created time.Time, weights string) (r disdel.Record) {
		r.ID, r.Status, r.Created = id, status, created
		r.Job.Model.Init.Weights = weights
		return r
	}
	records, weights := &someRecords{
		list: []disdel.Record{
			job("queued", disdel.StatusQueued, old, "sha256:queued"), job("runs", disdel.StatusRunning, old, "sha256:runs"),
			job("paused", disdel.StatusPaused, old, "sha256:paused"), job("fresh", disdel.StatusFailed, now, "sha256:fresh"),
			job("noted", disdel.StatusFailed, old, "sha256:noted"), job("done", disdel.StatusSucceeded, now, "sha256:done"),
			job("gone", disdel.StatusFailed, old, "sha256:gone"), job("plain", disdel.StatusRunning, now, ""),
		},
	}, &someWeights{}
	for _, name := range []string{"queued", "runs", "paused", "fresh", "noted", "done", "gone", "nobody"} {
		weights.list = append(weights.list, modelstore.StoredWeights{Ref: "sha256:" + name, Written: old})
	}
	weights.list = append(weights.list, modelstore.StoredWeights{Ref: "sha256:new", Written: now},
		modelstore.StoredWeights{Ref: "sha256:nobody knows when"})
	d := prunedDocument{needed: map[string]bool{}}
	before := now.Add(-time.Minute)
	if err := d.prune(t.Context(), records, before); err != nil {
		t.Fatal(err)
	}
	if err := d.pruneWeights(t.Context(), weights, before); err != nil {
		t.Fatal(err)
	}
	if want := []string{"gone"}; !slices.Equal(records.gone, want) {
		t.Errorf("%v went, want %v", records.gone, want)
	}
	if want := []string{"sha256:done", "sha256:gone", "sha256:nobody"}; !slices.Equal(weights.gone, want) {
		t.Errorf("%v went, want %v", weights.gone, want)
	}
}
