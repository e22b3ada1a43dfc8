package service

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/process"
	"github.com/disdel/disdel/service/tenant"
)

// saved saves a record of a job of a tenant that names its data and weights in some way.
func saved(t *testing.T, s *Service, id disdel.JobID, status disdel.Status, data, weights string) disdel.Record {
	t.Helper()
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := disdel.Record{APIVersion: disdel.APIVersion, ID: id, Status: status, Created: time.Now(), Tenant: s.whose()}
	r.Job.Metadata.Name, r.Job.Data.Source, r.Job.Model.Init.Weights = "some", "dataset://"+data, weights
	if err := h.Save(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// A paused job needs what it names as OWNER/NAME, be it the owner's job or another tenant's.
func TestPruneKeepsWhatJobsNameWithItsOwner(t *testing.T) {
	all, _ := storedHome(t)
	ann, bob := all.Tenant("ann"), all.Tenant("bob")
	store, err := ann.Datasets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own", "lent", "free"} {
		if _, err := store.Add(t.Context(), twoRows(name, 1), false); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		addModel(t, ann, "own", someJob)
		addModel(t, ann, "free", someJob)
	}
	addModel(t, ann, "own", someJob)
	saved(t, ann, "job-01kp0000000000000000000005", disdel.StatusPaused, "ann/own", "ann/own:v2")
	saved(t, bob, "job-01kp0000000000000000000006", disdel.StatusQueued, "ann/lent", "")
	items := byName(t, ann)
	for name, kept := range map[string]string{
		"data own": "paused job job-01kp0000000000000000000005", "data lent": "a queued job of bob needs it", "data free": "",
		"models own:v2": "starts from it",
	} {
		if item, ok := items[name]; !ok || !strings.Contains(item.Kept, kept) || (kept == "") != (item.Kept == "") {
			t.Errorf("%s is there: %t, kept because %q, want %q", name, ok, item.Kept, kept)
		}
	}
}

// A job that runs or starts keeps its checkpoints, whatever its record says; as long as it has none, everything stays
// that it may need.
func TestPruneKeepsWhatRunningJobsNeed(t *testing.T) {
	s, home := storedHome(t)
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store, err := s.Datasets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Add(t.Context(), twoRows("free", 1), false); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(home, "background", endedJob+".log")
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, []byte("log"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(when string, want map[string]bool) {
		t.Helper()
		items := byName(t, s)
		for name, kept := range want {
			if item, ok := items[name]; !ok || (item.Kept != "") != kept {
				t.Errorf("%s: %s is there: %t, kept because %q", when, name, ok, item.Kept)
			}
			if err := s.RemoveStored(t.Context(), items[name]); kept && disdel.KindOf(err) != disdel.Conflict {
				t.Errorf("%s: %s is deleted: %v", when, name, err)
			}
		}
	}
	elsewhere := process.Self()
	elsewhere.Boot, elsewhere.PID = "another boot", 1
	lease, err := h.Take(t.Context(), history.Lease{
		Job: endedJob, Expires: time.Now().Add(time.Hour), Owner: history.Owner{Mark: elsewhere, Host: "there", Token: "x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	check("it starts", map[string]bool{
		"data free": true, "checkpoints " + endedJob: true, "models gone:v1": true, "logs " + endedJob + ".log": true,
	})
	saved(t, s, endedJob, disdel.StatusSucceeded, "free", "gone:v1")
	check("its record says that it has ended", map[string]bool{
		"data free": true, "checkpoints " + endedJob: true, "models gone:v1": true, "logs " + endedJob + ".log": true,
	})
	if err := h.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	check("nobody runs it", map[string]bool{
		"data free": false, "checkpoints " + endedJob: false, "models gone:v1": false, "logs " + endedJob + ".log": false,
	})
	if _, err := os.Stat(log); err == nil {
		t.Error("the log of the background process is still there")
	}
}

// What cannot be read may be needed: the checkpoints of a job without a readable record stay, and data sets stay while
// a model's description cannot be read.
func TestPruneKeepsWhatUnreadThingsMayNeed(t *testing.T) {
	damaged, _, _ := damagedRecord(t, someJob)
	needs, err := damaged.needs(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if why := needs.reason(&StoredItem{Kind: StoredCheckpoints, Name: string(someJob)}, &modelList{}); why == "" {
		t.Error("the checkpoints of a job whose record cannot be read are deleted")
	}
	var n storedNeeds
	n.jobs = map[disdel.JobID]string{}
	n.addUnread(someJob)
	why := n.reason(&StoredItem{Kind: StoredData, Name: "x"}, &modelList{})
	if !strings.Contains(why, string(someJob)) {
		t.Errorf("data is kept because %q", why)
	}
	s, home := storedHome(t)
	store, err := s.Datasets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Add(t.Context(), twoRows("free", 1), false); err != nil {
		t.Fatal(err)
	}
	descriptions, _ := filepath.Glob(filepath.Join(home, "models", "models", "gone", "v*1.json"))
	if len(descriptions) != 1 {
		t.Fatal(descriptions)
	}
	if err := os.WriteFile(descriptions[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if item := byName(t, s)["data free"]; item.Kept == "" {
		t.Error("a data set may be deleted while a model's description cannot be read")
	}
}

// On a storage that other homes may use, data sets, models and weights stay: their jobs are not known here.
func TestPruneKeepsWhatAnotherHomeMayNeed(t *testing.T) {
	storage := "file://" + t.TempDir()
	s, err := Open(t.Context(), Config{Program: testProgram, Home: t.TempDir(), Storage: storage})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	addModel(t, s, "pets", someJob)
	addModel(t, s, "pets", someJob)
	for _, name := range []string{"data digits", "models pets:v1"} {
		item := byName(t, s)[name]
		if err := s.RemoveStored(t.Context(), item); item.Kept == "" || disdel.KindOf(err) != disdel.Conflict {
			t.Errorf("%s is kept because %q: %v", name, item.Kept, err)
		}
	}
}

// A data set that prune deletes is not shared any more; the sharing of a job stays until the job is deleted.
func TestSharingEndsWithTheItemOnly(t *testing.T) {
	all, _ := storedHome(t)
	ann := all.Tenant("ann")
	store, err := ann.Datasets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Add(t.Context(), twoRows("free", 1), false); err != nil {
		t.Fatal(err)
	}
	job := saved(t, ann, "job-01kp0000000000000000000007", disdel.StatusPaused, "none", "")
	for kind, name := range map[tenant.ItemKind]string{tenant.ItemDataset: "free", tenant.ItemJob: string(job.ID)} {
		if _, err := ann.Share(t.Context(), kind, name, nil, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := ann.RemoveStored(t.Context(), StoredItem{Kind: StoredData, Name: "free"}); err != nil {
		t.Fatal(err)
	}
	if _, err := ann.Forget(t.Context(), string(job.ID)); disdel.KindOf(err) != disdel.Conflict {
		t.Errorf("a paused job is deleted: %v", err)
	}
	if list, err := ann.Shares(t.Context()); err != nil || len(list) != 1 || list[0].Kind != tenant.ItemJob {
		t.Errorf("%+v, %v", list, err)
	}
	saved(t, ann, job.ID, disdel.StatusCanceled, "none", "")
	if _, err := ann.Forget(t.Context(), string(job.ID)); err != nil {
		t.Error(err)
	}
	if list, err := ann.Shares(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// An acknowledged job goes on although the owner shares its data set no more; a new job is refused.
func TestAnAcknowledgedJobKeepsASharedDataSet(t *testing.T) {
	all, _ := storedHome(t)
	ann, bob := all.Tenant("ann"), all.Tenant("bob")
	for s, name := range map[*Service]string{ann: "lent", bob: "own"} {
		store, err := s.Datasets(t.Context())
		if err == nil {
			_, err = store.Add(t.Context(), twoRows(name, 1), false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	own, _ := bob.Datasets(t.Context())
	for acknowledged, want := range map[bool]disdel.Kind{true: disdel.UnknownKind, false: disdel.NotFound} {
		for _, ref := range []string{"own", "ann/lent"} {
			_, err := readable{bob, own, acknowledged}.Manifest(t.Context(), ref)
			if kind := disdel.KindOf(err); ref == "own" && err != nil || ref != "own" && kind != want {
				t.Errorf("acknowledged %t, %s: %v", acknowledged, ref, err)
			}
		}
	}
}

// Lists with shared jobs end after so many bytes, and continue with every job once. A tenant sees no paths of the
// operator in a job of the home.
func TestListsWithSharedJobsAreBounded(t *testing.T) {
	all, _ := storedHome(t)
	bob := all.Tenant("bob")
	h, err := all.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const jobs = 20
	ids := map[disdel.JobID]bool{}
	for n := range jobs {
		id := disdel.JobID("job-01kp00000000000000000001" + string("0123456789abcdefghjkmnpq"[n]) + "0")
		r := saved(t, []*Service{all, bob}[n/(jobs-1)], id, disdel.StatusSucceeded, "x", "")
		r.Job.Metadata.Labels = map[string]string{"text": strings.Repeat("x", 20_000)}
		r.Place = []disdel.Option{{Name: "redis", Value: "hidden-redis"}}
		r.Origin = &disdel.Origin{
			Command: "submit", File: "/hidden/job.yaml", Options: []disdel.Option{{Name: "home", Value: "/hidden"}},
		}
		if err := h.Save(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		if ids[id] = true; r.Tenant == "" {
			if _, err := all.Share(t.Context(), tenant.ItemJob, string(id), nil, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	q, pages := history.Query{Limit: 100}, 0
	for ; pages < jobs; pages++ {
		list, next, err := bob.ListJobs(t.Context(), q, 100_000)
		if err != nil || len(list) > 8 {
			t.Fatalf("%d jobs at once: %v", len(list), err)
		}
		for _, r := range list {
			if !ids[r.ID] {
				t.Errorf("%s comes twice", r.ID)
			}
			delete(ids, r.ID)
			if r.Tenant == "" && (r.Place != nil || r.Origin.File != "" || r.Origin.Options != nil) {
				t.Errorf("%s: %+v %+v", r.ID, r.Place, r.Origin)
			}
			one, err := bob.Look(t.Context(), string(r.ID))
			if err != nil || r.Tenant == "" && (one.Place != nil || one.Origin.File != "") {
				t.Errorf("%s: %v %+v %+v", r.ID, err, one.Place, one.Origin)
			}
		}
		if next == "" {
			break
		}
		q.Before = next
	}
	if len(ids) > 0 || pages < 2 {
		t.Errorf("%d pages; missing: %v", pages+1, ids)
	}
}

// The epochs that a resume sets for a job that trains another one further are those of both.
func TestEpochsOfAContinuedJobAreThoseOfBoth(t *testing.T) {
	t.Parallel()
	s := opened(t, t.TempDir())
	p, err := s.newPlanner(t.Context(), someJob, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	store, err := s.Datasets(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	m, err := store.Manifest(t.Context(), "digits")
	if err != nil {
		t.Fatal(err)
	}
	rec := disdel.Record{APIVersion: disdel.APIVersion, ID: someJob, Status: disdel.StatusPaused}
	rec.Job = small(t)
	rec.Job.Training.Epochs, rec.Plan.Workers, rec.Data.Checksum = 3, 1, m.Checksum()
	rec.Continued = &disdel.Continued{Job: endedJob, Epochs: 5}
	for set, want := range map[string]int{"": 3, "training.epochs=10": 5, "training.epochs=6": 1, "training.epochs=5": 0} {
		req := ResumeRequest{Job: string(someJob)}
		if set != "" {
			req.Sets = []string{set}
		}
		_, r, err := p.resolveAgain(t.Context(), rec, req)
		if (err == nil) != (want > 0) || err == nil && r.Job.Training.Epochs != want {
			t.Errorf("%q: %d epochs, %v; want %d", set, r.Job.Training.Epochs, err, want)
		}
	}
}
