package main

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
)

// unsaved is the record of a job whose end the history did not take. It waits in the home folder for the next command that
// reaches that history.
type unsaved struct {
	History string        `json:"history"` // the address without its user; "": the home's own
	Record  disdel.Record `json:"record"`
}

func (s *stack) unsavedFolder() string { return filepath.Join(s.home, "unsaved") }

// whichHistory is the address of the history that this command uses, without what signs it in.
func (s *stack) whichHistory() string {
	u, err := url.Parse(s.cli.String("couchdb"))
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

// keep stores a record beside the history that could not be reached, and says so. Where even that fails, what the history said
// is returned.
func (s *stack) keep(rec *disdel.Record, failed error) error {
	path := filepath.Join(s.unsavedFolder(), url.PathEscape(string(rec.ID))+".json")
	data, err := json.Marshal(unsaved{s.whichHistory(), *rec})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		return failed
	}
	s.log.WithError(failed).Warnf("the history did not take the job's end; it is in %s, and the next command that reaches the history gives it that", path)
	return nil
}

// deliver gives the history what it could not take before. What cannot be delivered now stays, and is nobody's failure.
func (s *stack) deliver(ctx context.Context, h *history.Store) {
	files, _ := filepath.Glob(filepath.Join(s.unsavedFolder(), "*.json")) // the pattern is well-formed
	for _, path := range files {
		if err := s.deliverOne(ctx, h, path); err != nil {
			s.log.WithError(err).Warnf("%s could not be given to the history", path)
		}
	}
}

func (s *stack) deliverOne(ctx context.Context, h *history.Store, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var left unsaved
	if err := json.Unmarshal(data, &left); err != nil {
		return err
	}
	if left.History != s.whichHistory() {
		return nil
	}
	there, err := h.Get(ctx, left.Record.ID)
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		return err
	}
	if there.Resumes <= left.Record.Resumes { // else another home took the job up since
		if err := h.Save(ctx, &left.Record); err != nil {
			return err
		}
	}
	return os.Remove(path)
}
