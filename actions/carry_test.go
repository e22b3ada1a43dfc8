package actions

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// A worker whose state cannot be written fails before it delivers its update, so that the next attempt writes both.
func TestAWorkerDeliversNoUpdateWithoutItsState(t *testing.T) {
	b, models := setUp(t), t.TempDir()
	obstacle := filepath.Join(models, "checkpoints") // a file where the folder has to be
	if err := os.WriteFile(obstacle, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	req := b.train(0)
	req.OptimizerState, req.Models = disdel.StateKeep, "file://"+models
	req.StateCheckpoint = "checkpoints/job-1/000001/" + WorkerState(0)
	if res, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req); disdel.KindOf(err) != disdel.Unavailable {
		t.Fatalf("%+v, %v", res, err)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	req.Attempt++
	if res, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req); err != nil || res.Duplicate {
		t.Fatalf("%+v, %v", res, err)
	}
	if _, err := os.Stat(filepath.Join(models, filepath.FromSlash(req.StateCheckpoint))); err != nil {
		t.Error(err)
	}
}
