package infer

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/process"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/lease"
)

// records opens a history of its own.
func records(t *testing.T) *history.Store {
	t.Helper()
	server, err := couchlite.Open(filepath.Join(t.TempDir(), "history.db"), couchlite.Config{})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := history.Open(t.Context(), history.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(h.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// predictor is a Predictor of a history.
func predictor(h *history.Store) *Predictor {
	return New(Config{
		Owner: lease.OwnerOf("mine"), UnderWay: &UnderWay{}, Log: logrus.New(),
		History: func(context.Context) (*history.Store, error) { return h, nil },
		Session: func(ctx context.Context) (string, error) { return h.Identity(ctx) },
		Quota:   func(context.Context) (scheduler.Quota, error) { return scheduler.Quota{}, nil },
	})
}

// A note that its history does not know is one of a session that has ended, once it is not young any more. Where the
// histories are two, under whatever address, or one of them is not known, nothing is concluded.
func TestASessionThatIsNotThereHasEnded(t *testing.T) {
	h := records(t)
	s := predictor(h)
	id, err := h.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := records(t)
	other := predictor(o)
	if there, err := o.Identity(t.Context()); err != nil || there == id || there == "" {
		t.Fatalf("two histories are %q and %q, %v", id, there, err)
	}
	for _, c := range []struct {
		s         *Predictor
		of, where string
		age       time.Duration
		want      bool
	}{
		{s, id, id, 0, false},
		{s, id, id, 2 * lease.Patience, true},
		{s, "", "", 2 * lease.Patience, false},
		{other, id, "", 2 * lease.Patience, false},
	} {
		text, _ := json.Marshal(waiting{history.Owner{Mark: process.Mark{PID: 1, Boot: "another"}, Token: "x"}, c.of})
		one := modelstore.PendingQuestion{Who: text, Since: time.Now().Add(-c.age)}
		if got := c.s.abandoned(t.Context(), one, c.where); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// Of many who ask at once one sweeps, and reads no note of theirs.
func TestQuestionsAtOnceAreSweptForOnce(t *testing.T) {
	s, models := predictor(records(t)), t.TempDir()
	shelf, err := modelstore.Open(t.Context(), "file://"+models)
	if err != nil {
		t.Fatal(err)
	}
	defer shelf.Close()
	whisk := httptest.NewServer(http.NotFoundHandler()) // it has no actions
	defer whisk.Close()
	e, err := executor.New(executor.Config{APIHost: whisk.URL, AuthKey: "user:key", Logger: logrus.New()})
	if err != nil {
		t.Fatal(err)
	}
	asked := func(name string) *query { return &query{executor: e, pkg: name, shelf: shelf} }
	over, err := s.waits(t.Context(), asked("first"))
	if err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(models, "waiting", "first")
	if err := os.Remove(note); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("first", note); err != nil { // which cannot be read
		t.Skip(err)
	}
	if _, err := shelf.PendingQuestions(t.Context(), s.cfg.UnderWay.has); err != nil {
		t.Errorf("the note of a question that is under way is read: %v", err)
	}
	if err := shelf.AddQuestion(t.Context(), "old", []byte(`{"owner":{"token":"mine"}}`)); err != nil {
		t.Fatal(err)
	}
	there := func() bool {
		_, err := os.Stat(filepath.Join(filepath.Dir(note), "old"))
		return err == nil
	}
	s.sweeping.Lock()
	s.sweep(t.Context(), asked("second"), "")
	if !there() {
		t.Error("two sweep at once")
	}
	s.sweeping.Unlock()
	if s.sweep(t.Context(), asked("second"), ""); there() {
		t.Error("nobody has swept")
	}
	if err := over(t.Context(), true); err != nil || s.cfg.UnderWay.has("first") {
		t.Errorf("its question is still under way, %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(note)); len(left) > 0 {
		t.Errorf("%v wait", left)
	}
}
