package service

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
	"github.com/disdel/disdel/internal/process"
	"github.com/disdel/disdel/service/lease"
)

// damagedRecord is a Service that takes over, on a history with a record that nobody can read, and its log.
func damagedRecord(t *testing.T, id disdel.JobID) (*Service, *history.Store, *logtest.Hook) {
	t.Helper()
	server, err := couchlite.Open(filepath.Join(t.TempDir(), "history.db"), couchlite.Config{})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	log, told := logtest.NewNullLogger()
	s, err := Open(t.Context(), Config{
		Program: testProgram, Home: t.TempDir(), CouchDB: server.URL(), TakeOver: true, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	body := `{"apiVersion": "` + disdel.APIVersion + `", "id": "` + string(id) + `", "created": 5}`
	url := strings.TrimSuffix(server.URL(), "/") + "/" + history.Database + "/" + string(id)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if res.StatusCode != http.StatusCreated {
		t.Fatal(res.Status)
	}
	return s, h, told
}

// A damaged record stays for as long as somebody runs its job, and can be deleted then.
func TestADamagedRecordIsDeletedOnceNobodyRunsItsJob(t *testing.T) {
	s, h, _ := damagedRecord(t, someJob)
	elsewhere := process.Self()
	elsewhere.Boot, elsewhere.PID = "another boot", 1
	theirs := history.Lease{
		Job: someJob, Expires: time.Now().Add(time.Hour),
		Owner: history.Owner{Mark: elsewhere, Host: "there", Token: "theirs"},
	}
	lease, err := h.Take(t.Context(), theirs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Forget(t.Context(), string(someJob)); disdel.KindOf(err) != disdel.Conflict ||
		!strings.Contains(err.Error(), "process 1 on there") {
		t.Errorf("while its job runs: %v", err)
	}
	if err := h.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if id, err := s.Forget(t.Context(), string(someJob)); err != nil || id != someJob {
		t.Errorf("%q, %v", id, err)
	}
	if _, err := h.Get(t.Context(), someJob); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("after that: %v", err)
	}
}

// A server that cannot read the record of a job that nobody runs says so once, and looks again much later.
func TestAnUnreadableJobIsToldOnce(t *testing.T) {
	s, h, told := damagedRecord(t, someJob)
	if _, err := h.Take(t.Context(), history.Lease{Job: someJob, Owner: history.Owner{Token: lease.Nobody}}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Attend(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	warned := 0
	for _, e := range told.AllEntries() {
		err, _ := e.Data[logrus.ErrorKey].(error)
		if err != nil && disdel.AsError(err).Code == disdel.CodeUnreadable {
			warned++
		}
	}
	if warned != 1 {
		t.Errorf("told %d times", warned)
	}
}
