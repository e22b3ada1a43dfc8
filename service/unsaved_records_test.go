package service

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history/couchlite"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/internal/test/wait"
)

// smallDisk mounts a file system of so many megabytes, or skips.
func smallDisk(t *testing.T, megabytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0700", megabytes)); err != nil {
		t.Skipf("a disk of its own takes the right to mount one: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) }) //nolint:errcheck // the test is over
	return dir
}

// fill leaves so many bytes of a disk free, as far as it can be told.
func fill(t *testing.T, dir string, leave int64) (free func()) {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "ballast")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n := int64(st.Bavail)*st.Bsize - leave; n > 0 {
		if err := unix.Fallocate(int(f.Fd()), 0, 0, n); err != nil && !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
	}
	return func() { os.Remove(name) }
}

// Wherever the room ends by the end of a job, its record is kept whole.
func TestTheRoomSetAsideIsEnough(t *testing.T) {
	race.SkipSequential(t)
	home := smallDisk(t, 8)
	s, err := Open(t.Context(), Config{Program: testProgram, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // an open one would deliver the files that this test looks at
		t.Fatal(err)
	}
	for n := range 12 {
		release, err := s.reserve(someJob)
		if err != nil {
			t.Fatal(err)
		}
		rec := &disdel.Record{APIVersion: disdel.APIVersion, ID: someJob, Status: disdel.StatusFailed}
		for range 20 << n { // the largest do not fit as they are
			a := disdel.Activation{Outcome: disdel.OutcomeSuccess, Logs: []string{strings.Repeat("l", 100)}}
			rec.Activations = append(rec.Activations, a)
		}
		rec.Activations = append(rec.Activations, disdel.Activation{Outcome: disdel.OutcomeTimeout})
		free := fill(t, home, int64(n%4)*4096)
		if err := s.keep(rec, errors.New("the history is away")); err != nil {
			t.Errorf("%d activations: %v", len(rec.Activations), err)
		}
		free()
		data, err := os.ReadFile(s.unsavedFile(someJob))
		var left unsavedRecord
		if err == nil {
			err = json.Unmarshal(data, &left)
		}
		if r := left.Record; err != nil || r.Status != disdel.StatusFailed || len(r.Activations)+
			r.Omitted != len(rec.Activations) {
			t.Errorf("%d activations: %d and %d, %v", len(rec.Activations), len(r.Activations), r.Omitted, err)
		}
		if err := release(); err != nil {
			t.Error(err)
		}
		list, _ := os.ReadDir(s.unsavedFolder())
		if len(list) != 1 {
			t.Errorf("left: %v", list)
		}
		os.Remove(s.unsavedFile(someJob)) //nolint:errcheck // made anew
	}
}

// A disk without room for a job's record refuses the job.
func TestNoRoomForARecordRefusesTheJob(t *testing.T) {
	home := smallDisk(t, 8)
	s, err := Open(t.Context(), Config{Program: testProgram, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	defer fill(t, home, 40<<10)()
	release, err := s.reserve(someJob)
	if release() != nil || !errors.Is(err, disdel.NoSpace) || !strings.Contains(err.Error(), home) {
		t.Errorf("%v", err)
	}
	if list, _ := os.ReadDir(s.unsavedFolder()); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
}

func unzipped(t *testing.T, body []byte) []byte {
	t.Helper()
	in, err := gzip.NewReader(bytes.NewReader(body))
	if err == nil {
		body, err = io.ReadAll(in)
	}
	if err != nil {
		t.Error(err)
	}
	return body
}

// The history goes away while a job runs. The Service still tells readers how the job ended. Once the history is back,
// it gets the end without a restart.
func TestAHistoryThatComesBackIsGivenTheEnd(t *testing.T) {
	server, err := couchlite.Open(filepath.Join(t.TempDir(), "history.db"), couchlite.Config{})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	at, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	// It is away from the first record with a round on, and before the job's end in any case.
	var away, back atomic.Bool
	through := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: at.Scheme, Host: at.Host})
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if r.Header.Get("Content-Encoding") == "gzip" {
			body = unzipped(t, body)
		}
		if bytes.Contains(body, []byte(`"status":"succeeded"`)) {
			away.Store(true)
		}
		if away.Load() && !back.Load() {
			http.Error(w, `{"error":"down"}`, http.StatusInsufficientStorage)
			return
		}
		through.ServeHTTP(w, r)
		if bytes.Contains(body, []byte(`"rounds":[{`)) {
			away.Store(true)
		}
	}))
	defer proxy.Close()
	address := strings.Replace(proxy.URL, "://", "://"+at.User.String()+"@", 1)
	s, err := Open(t.Context(), Config{Program: testProgram, Home: t.TempDir(), CouchDB: address})
	if err == nil {
		err = s.AddDigits(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run, err := s.Submit(t.Context(), Request{Job: small(t, "training.epochs=8")})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := run.Wait(t.Context())
	if err != nil || rec.Status != disdel.StatusSucceeded {
		t.Fatalf("%v: %v, %v", rec.Status, rec.Failure, err)
	}
	if got, ok := s.Undelivered(run.ID()); !ok || got.Status != disdel.StatusSucceeded {
		t.Errorf("while the history is away: %v, %t", got.Status, ok)
	}
	if got, err := s.Look(t.Context(), string(run.ID())); err != nil || got.Status != disdel.StatusSucceeded {
		t.Errorf("a look at it: %v, %v", got.Status, err)
	}
	back.Store(true)
	wait.Until(t, "the history has the end", func() bool {
		_, waits := s.Undelivered(run.ID())
		return !waits
	})
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if rec, err := h.Get(t.Context(), run.ID()); err != nil || rec.Status != disdel.StatusSucceeded {
		t.Errorf("the history says %v, %v", rec.Status, err)
	}
	if left := s.unsavedFiles(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestAHistoryThatCannotBeOpenedLeavesNothingOpen opens a history on a full disk several times. A failed try leaves no
// server behind.
func TestAHistoryThatCannotBeOpenedLeavesNothingOpen(t *testing.T) {
	home := smallDisk(t, 8)
	s, err := Open(t.Context(), Config{Program: testProgram, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	free := fill(t, home, 0)
	before := len(s.ends)
	for range 3 {
		if _, err := s.History(t.Context()); err == nil {
			t.Fatal("a history on a full disk opened")
		}
	}
	if left := len(s.ends) - before; left != 0 {
		t.Errorf("%d parts of failed tries are open", left)
	}
	free()
	if _, err := s.History(t.Context()); err != nil {
		t.Errorf("after room was made: %v", err)
	}
}

// Several may deliver one end at once: none of them tells a failure.
func TestSeveralMayDeliverOneEnd(t *testing.T) {
	s, h := records(t, t.TempDir())
	rec := disdel.Record{APIVersion: disdel.APIVersion, ID: someJob}
	for range 20 {
		endsUndelivered(t, s, rec)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := s.deliverOne(t.Context(), h, s.unsavedFile(someJob)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

// Of an end whose file is damaged nobody says that the history has it.
func TestADamagedEndIsNotToldAsDelivered(t *testing.T) {
	s, h := records(t, t.TempDir())
	log, told := logtest.NewNullLogger()
	s.log = log
	endsUndelivered(t, s, disdel.Record{APIVersion: disdel.APIVersion, ID: someJob})
	if err := os.WriteFile(s.unsavedFile(someJob), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.undelivered.jobs = map[disdel.JobID]*Run{someJob: nil}
	if err := s.deliverOne(t.Context(), h, s.unsavedFile(someJob)); err != nil {
		t.Fatal(err)
	}
	if !s.allDelivered() {
		t.Error("somebody tries for ever")
	}
	for _, e := range told.AllEntries() {
		if strings.Contains(e.Message, "the history has") && !strings.Contains(e.Message, "damaged") {
			t.Errorf("told: %s", e.Message)
		}
	}
}
