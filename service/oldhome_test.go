package service

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/report"
)

// oldHome is a home that the version of 2026-11-21 left, the last one without stages and codes: a job that succeeded,
// and one that was killed between two checkpoints, whose workers keep moments and what a wire rounded away.
func oldHome(t *testing.T) string {
	t.Helper()
	f, err := os.Open("testdata/home-2026-11-21.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return home
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatal(h, err)
		}
		path := filepath.Join(home, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else {
			var data []byte
			data, err = io.ReadAll(files)
			err = errors.Join(err, os.WriteFile(path, data, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What the version before left is read: records are listed and explained, a model answers, and a job that was killed
// half way goes on from its checkpoint to its end.
func TestAHomeOfTheVersionBeforeIsReadAndGoesOn(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := Open(ctx, Config{Program: testProgram, Home: oldHome(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	h, err := s.History(ctx)
	if err != nil {
		t.Fatal(err)
	}
	list, err := h.List(ctx, history.Query{})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*disdel.Record{}
	for i := range list {
		byName[list[i].Job.Metadata.Name] = &list[i]
		var text strings.Builder
		report.New(&list[i], time.Now()).Text(&text)
		if !strings.Contains(text.String(), string(list[i].ID)) {
			t.Errorf("the report of %s does not name it:\n%s", list[i].ID, text.String())
		}
	}
	whole, cut := byName["whole"], byName["interrupted"]
	if len(list) != 2 || whole == nil || cut == nil {
		t.Fatalf("%d records, by name %v", len(list), byName)
	}
	if whole.Status != disdel.StatusSucceeded || len(whole.Rounds) != 3 || len(whole.AllStages()) != 1 {
		t.Errorf("%v after %d rounds in %d stages", whole.Status, len(whole.Rounds), len(whole.AllStages()))
	}
	if cut.Status != disdel.StatusRunning {
		t.Fatalf("the job that was killed: %v", cut.Status)
	}

	m, err := s.Trained(ctx, "whole")
	if err != nil {
		t.Fatal(err)
	}
	said, err := s.Infer(ctx, m, [][]float32{
		{0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2},
	})
	if err != nil || len(said.Probabilities) != 1 || len(said.Probabilities[0]) != 3 {
		t.Errorf("the old model says %v, %v", said.Probabilities, err)
	}

	askMany(t, s, m)
	evaluate(t, s, m)

	run, err := s.Resume(ctx, ResumeRequest{Job: "interrupted"})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := run.Wait(ctx)
	if err != nil || rec.Status != disdel.StatusSucceeded || rec.Model == nil {
		t.Fatalf("%v, %v: %v", err, rec.Status, rec.Failure)
	}
	// rounds that ended just before the kill may be missing in its record
	if last := rec.Rounds[len(rec.Rounds)-1]; rec.Resumes != 1 || last.Round != rec.Plan.Rounds-1 {
		t.Errorf("the last round is %d of %d after %d resumes", last.Round, rec.Plan.Rounds, rec.Resumes)
	}
	for e := range run.Events() {
		if what, ok := e.What.(Resumed); ok && (what.Fresh || what.Round != 8) {
			t.Errorf("it goes on in round %d (fresh: %v), and its newest checkpoint is of round 8", what.Round, what.Fresh)
		}
	}
}

// After a downgrade nothing of the newer version is used or changed: a record, a model and a data set are refused by
// name, with both versions. What the older version wrote still answers.
func TestDocumentsOfANewerVersionAreRefused(t *testing.T) {
	t.Parallel()
	ctx, home := t.Context(), oldHome(t)
	var files []string
	for _, name := range []string{"models/models/whole/v00001.json", "datasets/tiny/manifest.json"} {
		name = filepath.Join(home, name)
		files = append(files, name)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		newer := strings.Replace(string(text), disdel.APIVersion, "disdel/v9", 1)
		if err := os.WriteFile(name, []byte(newer), 0o600); err != nil {
			t.Fatal(err)
		}
		os.Remove(name + ".sha256") //nolint:errcheck // this home may have none
	}
	s, err := Open(ctx, Config{Program: testProgram, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	h, err := s.History(ctx)
	if err != nil {
		t.Fatal(err)
	}
	list, err := h.List(ctx, history.Query{Model: "interrupted"})
	if err != nil || len(list) != 1 {
		t.Fatal(len(list), err)
	}
	rec := list[0]
	rec.APIVersion = "disdel/v9"
	if err := h.Save(ctx, &rec); err != nil {
		t.Fatal(err)
	}
	before := contents(t, files)
	_, model := s.Trained(ctx, "whole")
	_, resumed := s.Resume(ctx, ResumeRequest{Job: string(rec.ID)})
	sets, err := s.Datasets(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, data := sets.Manifest(ctx, "tiny")
	for what, err := range map[string]error{"whole:v1": model, string(rec.ID): resumed, "tiny": data} {
		if !errors.Is(err, disdel.Conflict) || !strings.Contains(err.Error(), what) ||
			!strings.Contains(err.Error(), "disdel/v9") || !strings.Contains(err.Error(), disdel.APIVersion) {
			t.Errorf("%s: %v, want Conflict with both versions", what, err)
		}
	}
	if after := contents(t, files); after != before {
		t.Errorf("files of a newer version changed:\n%s", after)
	}
	if list, err := h.List(ctx, history.Query{}); err != nil || len(list) != 1 || list[0].Job.Metadata.Name != "whole" {
		t.Errorf("%d records of this version: %v", len(list), err)
	}
}

// contents are the contents of files, one behind the other.
func contents(t *testing.T, files []string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
