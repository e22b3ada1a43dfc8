package history_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/test/historytest"
)

// takenApart opens a database in which servers that were apart wrote states of one record, which a replication has
// brought together.
func takenApart(t *testing.T, address string, states ...disdel.Record) *history.Store {
	t.Helper()
	name := fmt.Sprintf("history_%d_%d", os.Getpid(), databases.Add(1))
	s, err := history.Open(t.Context(), history.Config{URL: address, Database: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	var docs []any
	for i, state := range states {
		docs = append(docs, struct {
			Key disdel.JobID `json:"_id"`
			Rev string       `json:"_rev"`
			disdel.Record
		}{state.ID, fmt.Sprintf("1-%032d", len(states)-i), state})
	}
	body, err := json.Marshal(map[string]any{"docs": docs, "new_edits": false})
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(address+"/"+name+"/_bulk_docs", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		t.Fatal(res.Status)
	}
	return s
}

// Of states that servers took apart from each other the one that is furthest counts, whichever the server shows; a save
// and a delete leave none of them.
func TestStatesThatServersTookApart(t *testing.T) {
	address := pouchdb(t)
	running, ended := historytest.Record(1), historytest.Record(1)
	running.Status, running.Accuracy = disdel.StatusRunning, 0.1
	ended.Accuracy = 0.9
	again := ended
	again.Status, again.Resumes, again.Accuracy = disdel.StatusRunning, 1, 0.5
	for name, c := range map[string]struct {
		states []disdel.Record // the server shows the first
		want   float64
	}{
		"the other one has ended":      {[]disdel.Record{running, ended}, 0.9},
		"the one that is shown has":    {[]disdel.Record{ended, running}, 0.9},
		"one of three was taken up":    {[]disdel.Record{ended, running, again}, 0.5},
		"the one shown was taken up":   {[]disdel.Record{again, ended, running}, 0.5},
		"there is nothing but the one": {[]disdel.Record{ended}, 0.9},
	} {
		t.Run(name, func(t *testing.T) {
			s := takenApart(t, address, c.states...)
			if r, err := s.Get(t.Context(), running.ID); err != nil || r.Accuracy != c.want {
				t.Errorf("%v, %v", r.Accuracy, err)
			}
			newest := historytest.Record(1)
			newest.Accuracy = 0.7
			if err := s.Save(t.Context(), &newest); err != nil {
				t.Fatal(err)
			}
			if r, err := s.Get(t.Context(), running.ID); err != nil || r.Accuracy != 0.7 {
				t.Errorf("after a save: %v, %v", r.Accuracy, err)
			}
			if err := s.Delete(t.Context(), running.ID); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Get(t.Context(), running.ID); disdel.KindOf(err) != disdel.NotFound {
				t.Errorf("after a delete: %v", err)
			}
		})
	}
	s := takenApart(t, address, running, ended)
	if err := s.Delete(t.Context(), running.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), running.ID); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("a delete of states apart: %v", err)
	}
}
