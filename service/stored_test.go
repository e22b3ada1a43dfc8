package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/platform/local"
)

// storedHome is a Service whose home has something of every kind. The paused job needs the data set, its checkpoints
// and the model kept:v1.
func storedHome(t *testing.T) (*Service, string) {
	t.Helper()
	home, ctx := t.TempDir(), t.Context()
	s, err := Open(ctx, Config{Program: testProgram, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.AddDigits(ctx); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"kept", "gone", "kept", "gone"} {
		addModel(t, s, name, disdel.JobID(fmt.Sprintf("job-01kp000000000000000000010%d", i)))
	}
	models := filepath.Join(home, "models")
	for file, size := range map[string]int{
		filepath.Join(models, "checkpoints", pausedJob, "000001", "reference.safetensors"):                             100,
		filepath.Join(models, "checkpoints", endedJob, "000001", "reference.safetensors"):                              1000,
		filepath.Join(models, "checkpoints", endedJob, "000002", "reference.safetensors"):                              200,
		filepath.Join(models, "answers", "infer-x", "000000-1.safetensors"):                                            300,
		filepath.Join(models, "given", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff.safetensors"): 400,
		local.Log(home): 500,
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h, err := s.History(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r := disdel.Record{APIVersion: disdel.APIVersion, ID: pausedJob, Status: disdel.StatusPaused, Created: time.Now()}
	r.Job.Metadata.Name, r.Job.Data.Source, r.Job.Model.Init.Weights = "paused", "dataset://digits", "kept:v1"
	if err := h.Save(ctx, &r); err != nil {
		t.Fatal(err)
	}
	r.ID, r.Status, r.Job.Model = "job-01kp0000000000000000000003", disdel.StatusFailed, disdel.Model{
		Python: &disdel.Python{File: "net.py", Code: addProgram(t, s, "of a failed job")},
	}
	if err := h.Save(ctx, &r); err != nil {
		t.Fatal(err)
	}
	addProgram(t, s, "of no job")
	return s, home
}

const (
	pausedJob = "job-01kp0000000000000000000001"
	endedJob  = "job-01kp0000000000000000000002"
)

// addProgram stores an archive, and returns its digest.
func addProgram(t *testing.T, s *Service, archive string) string {
	t.Helper()
	store, err := s.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	code, err := store.WriteProgram(t.Context(), []byte(archive))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// digestOfText is the digest of an archive.
func digestOfText(archive string) string {
	sum := sha256.Sum256([]byte(archive))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// addModel adds the next version of a model.
func addModel(t *testing.T, s *Service, name string, job disdel.JobID) {
	t.Helper()
	ctx := t.Context()
	store, err := s.Models(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m := modelstore.Model{
		ModelRef: disdel.ModelRef{Name: name, Path: modelstore.WeightsPath(name, job)}, Job: job,
		Network: disdel.Network{Name: "mlp", Input: []int{1, 8, 8}, Classes: 10},
	}
	m.Checksum, m.Size, err = store.WriteWeights(ctx, m.Path, disdel.Weights{{Name: "w", Shape: []int{4}}}, nil,
		modelstore.ArrayValues(1, func(int) []float32 { return make([]float32, 4) }))
	if err == nil {
		_, err = store.Commit(ctx, m)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// filesSize is the size of all files of a folder.
func filesSize(t *testing.T, folder string) (all disdel.Bytes) {
	t.Helper()
	err := filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		all += disdel.Bytes(info.Size())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What nothing needs is deleted, what a paused job needs stays, and exactly the bytes go that were listed.
func TestDeletedSizesAreThoseThatWereListed(t *testing.T) {
	s, home := storedHome(t)
	before := byName(t, s)
	for name, kept := range map[string]bool{
		"data digits": true, "models kept:v1": true, "models kept:v2": true, "models gone:v1": false,
		"models gone:v2": true, "checkpoints " + pausedJob: true, "checkpoints " + endedJob: false,
		"answers infer-x": false, "logs platform.log": false, "jobs history.db": true,
		"programs " + digestOfText("of a failed job"): true, "programs " + digestOfText("of no job"): false,
		"weights sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff": false,
	} {
		if item, ok := before[name]; !ok || (item.Kept != "") != kept {
			t.Errorf("%s: there is one: %t, kept because %q", name, ok, item.Kept)
		}
	}
	for name, item := range before {
		disk := filesSize(t, home)
		err := s.RemoveStored(t.Context(), item)
		gone := disk - filesSize(t, home)
		switch {
		case item.Kept != "":
			if err == nil || gone != 0 {
				t.Errorf("%s: %v, and %v are gone", name, err, gone)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case item.Kind == StoredModels:
			if gone > item.Size || gone < item.Size-10 { // the number of the deleted version is noted
				t.Errorf("%s: %v are gone, and it had %v", name, gone, item.Size)
			}
		case gone != item.Size:
			t.Errorf("%s: %v are gone, and it had %v", name, gone, item.Size)
		}
	}
	for name, item := range byName(t, s) {
		if item.Kept == "" {
			t.Errorf("%s is still there", name)
		}
	}
}

func byName(t *testing.T, s *Service) map[string]StoredItem {
	t.Helper()
	list, err := s.Stored(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]StoredItem{}
	for _, item := range list {
		out[string(item.Kind)+" "+item.Name] = item
	}
	return out
}

// A tenant lists and deletes its own items, and the home lists those of all tenants. A name from a client cannot lead
// out of its folder.
func TestWhatTenantsStore(t *testing.T) {
	s, err := Open(t.Context(), Config{Program: testProgram, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ann, bob := s.Tenant("ann"), s.Tenant("bob")
	for _, who := range []*Service{ann, bob} {
		if err := who.AddDigits(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.StoredOfAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, item := range all {
		found = append(found, item.Tenant+"/"+item.Name)
	}
	if !slices.Contains(found, "ann/digits") || !slices.Contains(found, "bob/digits") {
		t.Errorf("the home sees %v", found)
	}
	if own, err := ann.StoredOfAll(t.Context()); err != nil || len(own) != 1 || own[0].Tenant != "" {
		t.Errorf("ann sees %+v, %v", own, err)
	}
	for _, name := range []string{"../../bob/datasets/digits", "..", ".", "", "digits/../digits"} {
		for _, kind := range []StoredKind{StoredData, StoredCheckpoints, StoredAnswers} {
			if err := ann.RemoveStored(t.Context(), StoredItem{Kind: kind, Name: name}); disdel.KindOf(err) != disdel.Invalid {
				t.Errorf("%s %q: %v", kind, name, err)
			}
		}
	}
	if err := ann.RemoveStored(t.Context(), StoredItem{Kind: StoredData, Name: "digits"}); err != nil {
		t.Error(err)
	}
	if err := ann.RemoveStored(t.Context(), StoredItem{Kind: StoredLogs, Name: "x"}); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("the log of the home: %v", err)
	}
	if left := byName(t, bob); len(left) != 1 {
		t.Errorf("bob has %v", left)
	}
}

// lister counts how often all keys of the models are listed.
type lister struct {
	blobs.Bucket
	lists *int
}

func (l lister) List(ctx context.Context, prefix string) iter.Seq2[blobs.Object, error] {
	if prefix == "models/" {
		*l.lists++
	}
	return l.Bucket.List(ctx, prefix)
}

// Who deletes many versions, jobs or checkpoints waits once for the list of all models. Data sets are looked for in a
// new list each: a model that was made meanwhile may be trained on them.
func TestManyItemsAreDeletedWithOneListOfTheModels(t *testing.T) {
	lists := 0
	ctx := blobs.WithWrapper(t.Context(), func(_ string, b blobs.Bucket) blobs.Bucket { return lister{b, &lists} })
	s, err := Open(ctx, Config{Program: testProgram, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Models(ctx); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[StoredKind]int{StoredCheckpoints: 1, StoredModels: 1, StoredJobs: 1, StoredData: 5} {
		var items []StoredItem
		count := 5
		for i := range count {
			item := StoredItem{Kind: kind, Name: fmt.Sprintf("m:v%d", i+1)}
			switch kind {
			case StoredModels:
				addModel(t, s, "m", disdel.JobID(fmt.Sprintf("job-%d", i)))
			case StoredJobs:
				item.Job = failedJob(t, s)
			case StoredData:
				item.Name = fmt.Sprintf("gone-%d", i) // it is no error that it is gone
			default:
				item.Name = string(failedJob(t, s))
			}
			items = append(items, item)
		}
		lists = 0
		gone, err := s.RemoveAllStored(ctx, items)
		if kind == StoredModels && disdel.KindOf(err) == disdel.Conflict { // the newest version stays
			count, err = count-1, nil
		}
		if err != nil || gone != count || lists != want {
			t.Errorf("%s: %d of %d gone with %d lists: %v", kind, gone, count, lists, err)
		}
	}
}

// failedJob is the record of a job that has failed.
func failedJob(t *testing.T, s *Service) disdel.JobID {
	t.Helper()
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec := disdel.Record{APIVersion: disdel.APIVersion, ID: newJobID(), Status: disdel.StatusFailed}
	rec.Job.Output.Model = "m"
	if err := h.Save(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	return rec.ID
}

// Weights that a canceled job has left belong to its checkpoints, and go with them. Those of other jobs stay.
func TestWeightsOfEndedJobsAreCheckpoints(t *testing.T) {
	endedJobs(t, func(s *Service, item StoredItem) error { return s.RemoveStored(t.Context(), item) })
}

// A job that is deleted takes its checkpoints and these weights with it: without its record nothing could delete them.
func TestADeletedJobLeavesNoCheckpoints(t *testing.T) {
	endedJobs(t, func(s *Service, item StoredItem) error {
		_, err := s.Forget(t.Context(), item.Name)
		return err
	})
}

// endedJobs has remove delete the checkpoints of two ended jobs beside those of a running one.
func endedJobs(t *testing.T, remove func(*Service, StoredItem) error) {
	t.Helper()
	home, ctx := t.TempDir(), t.Context()
	s, err := Open(ctx, Config{Program: testProgram, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h, err := s.History(ctx)
	if err != nil {
		t.Fatal(err)
	}
	files, checkpoints := map[disdel.Status]string{}, map[disdel.Status]string{}
	for _, status := range []disdel.Status{disdel.StatusCanceled, disdel.StatusFailed, disdel.StatusRunning} {
		rec := disdel.Record{APIVersion: disdel.APIVersion, ID: newJobID(), Status: status}
		rec.Job.Output.Model = "m"
		if err := h.Save(ctx, &rec); err != nil {
			t.Fatal(err)
		}
		files[status] = filepath.Join(home, "models", filepath.FromSlash(modelstore.WeightsPath("m", rec.ID)))
		if err := os.MkdirAll(filepath.Dir(files[status]), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files[status], []byte("weights"), 0o600); err != nil {
			t.Fatal(err)
		}
		checkpoints[status] = filepath.Join(home, "models", "checkpoints", string(rec.ID))
		if err := os.MkdirAll(filepath.Join(checkpoints[status], "000001"), 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(checkpoints[status], "000001", "reference.safetensors")
		if err := os.WriteFile(file, []byte("checkpoint"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	items, err := s.Stored(ctx)
	if err != nil {
		t.Fatal(err)
	}
	removed := 0
	for _, item := range items {
		if item.Kind != StoredCheckpoints {
			continue
		}
		if item.Kept != "" {
			continue
		}
		if removed++; item.Size != 17 {
			t.Errorf("%+v", item)
		}
		if err := remove(s, item); err != nil {
			t.Error(err)
		}
	}
	for status, file := range files {
		for _, file := range []string{file, checkpoints[status]} {
			if _, err := os.Stat(file); (err == nil) != (status == disdel.StatusRunning) {
				t.Errorf("%s of a %s job: %v", filepath.Base(file), status, err)
			}
		}
	}
	if removed != 2 {
		t.Errorf("%d items in %+v", removed, items)
	}
}
