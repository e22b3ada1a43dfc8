package service

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/history"
)

// kindsOfFiles are what a home has, by a part of their paths.
var kindsOfFiles = []string{
	"history.db", "manifest.json", "manifest.json.sha256", "train-00000.safetensors", "v00001.json",
	"v00001.json.sha256", "models/weights/", "000008/reference.safetensors", "000008/reference.safetensors.sha256",
	"000008/worker-1.safetensors",
}

// damages change a file so that it is not what was written.
var damages = map[string]func(rng *rand.Rand, path string, data []byte) error{
	"truncate": func(rng *rand.Rand, path string, data []byte) error {
		return os.Truncate(path, rng.Int64N(int64(len(data))))
	},
	"flip": func(rng *rand.Rand, path string, data []byte) error {
		data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
		return os.WriteFile(path, data, 0o600)
	},
	"remove": func(_ *rand.Rand, path string, _ []byte) error { return os.Remove(path) },
	"folder": func(_ *rand.Rand, path string, _ []byte) error {
		return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
	},
	"forbid": func(_ *rand.Rand, path string, _ []byte) error { return os.Chmod(path, 0) },
}

// A home of which any one file is damaged tells it: the error names the file and a next step, all that is elsewhere is
// still listed and read, and a job resumes from the newest checkpoint that is whole. Each kind of file is damaged in
// each way, at places drawn from a seed.
func TestADamagedFileIsNamedAndTheRestIsThere(t *testing.T) {
	rng := rand.New(rand.NewPCG(4112, 1))
	for _, kind := range kindsOfFiles {
		for _, way := range slices.Sorted(maps.Keys(damages)) {
			t.Run(kind+" "+way, func(t *testing.T) {
				switch {
				case way == "forbid" && os.Getuid() == 0:
					t.Skip("nothing is forbidden to root")
				case way == "remove" && kind == "history.db":
					t.Skip("a home without a history is a new one")
				}
				home := oldHome(t)
				path := onlyFile(t, home, kind)
				data, err := os.ReadFile(path)
				if err == nil {
					err = damages[way](rng, path, data)
				}
				if err != nil {
					t.Fatal(err)
				}
				lookAtDamage(t, home, filepath.Base(path))
			})
		}
	}
}

// onlyFile is the file of a home whose path ends in or contains part.
func onlyFile(t *testing.T, home, part string) (found string) {
	t.Helper()
	err := filepath.WalkDir(home, func(path string, entry os.DirEntry, err error) error {
		isIn := strings.HasSuffix(path, part) || strings.HasSuffix(part, "/") && strings.Contains(path, part)
		if !entry.IsDir() && isIn {
			found = path
		}
		return err
	})
	if err != nil || found == "" {
		t.Fatalf("no %s: %v", part, err)
	}
	return found
}

// lookAtDamage reads all of a home in which one file is damaged.
func lookAtDamage(t *testing.T, home, file string) {
	t.Helper()
	ctx := t.Context()
	s, err := Open(ctx, Config{Program: testProgram, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	damaged := strings.TrimSuffix(file, ".sha256")
	expect := func(what string, there bool, mayFail string, err error) {
		t.Helper()
		if there == (err != nil) || err != nil && damaged != mayFail {
			t.Errorf("%s: there: %v, error: %v", what, there, err)
		}
		var e *disdel.Error
		if err != nil && (!errors.As(err, &e) || e.Hint == "" || !strings.Contains(err.Error(), damaged)) {
			t.Errorf("%s: no file or no next step: %v", what, err)
		}
	}
	var records []disdel.Record
	h, err := s.History(ctx)
	if err == nil {
		records, err = h.List(ctx, history.Query{})
	}
	expect("jobs", len(records) == 2, "history.db", err)

	models, err := s.Models(ctx)
	if err != nil {
		t.Fatal(err)
	}
	list, err := models.List(ctx)
	expect("models", len(list) == 1, "v00001.json", err)
	if disdel.KindOf(err) == disdel.Corrupt {
		if _, err := models.Remove(ctx, "whole:v1"); err != nil {
			t.Errorf("to remove it: %v", err)
		}
		if list, err := models.List(ctx); err != nil || len(list) > 0 {
			t.Errorf("after it was removed: %d models, %v", len(list), err)
		}
	}
	for _, m := range list {
		_, err := models.ReadWeights(ctx, m.Path, m.Checksum)
		expect("weights", err == nil, filepath.Base(m.Path), err)
	}

	sets, err := s.Datasets(ctx)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := sets.List(ctx)
	expect("data sets", len(manifests) == 1, "manifest.json", err)
	for i := range manifests {
		_, err := sets.Statistics(ctx, manifests[i].Name)
		expect("rows", err == nil, "train-00000.safetensors", err)
	}
	for i := range records {
		if records[i].Status != disdel.StatusRunning {
			continue
		}
		c, _, err := models.NewestCheckpoint(ctx, controller.CheckpointFolder(records[i].ID))
		if disdel.KindOf(err) == disdel.Denied { // which does not pass for damage: it may be the newest
			expect("checkpoint", false, damaged, err)
			continue
		}
		ofRound := strings.HasPrefix(damaged, "reference") || strings.HasPrefix(damaged, "worker-1")
		if err != nil || c.Round != 8 && !ofRound {
			t.Errorf("the newest checkpoint is of round %d, %v", c.Round, err)
		}
	}
}
