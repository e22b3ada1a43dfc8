package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
)

const someJob disdel.JobID = "job-01m80104rj3cabn3tetc26z8w3"

func bareStack(home string) *stack {
	return &stack{home: home, log: logrus.New(), close: func() error { return nil }}
}

// A job is run once at a time, by whichever process or part of one; looking who runs it lets nobody in.
func TestAJobIsHeldByOne(t *testing.T) {
	home := t.TempDir()
	first, second := bareStack(home), bareStack(home)
	if err := first.hold(someJob); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if pid, runs := runner(home, someJob); !runs || pid != os.Getpid() {
			t.Errorf("process %d, %v", pid, runs)
		}
		if err := second.hold(someJob); !errors.Is(err, disdel.Conflict) || !strings.Contains(err.Error(), "this process runs") {
			t.Errorf("a second one: %v", err)
		}
	}
	if err := first.close(); err != nil {
		t.Error(err)
	}
	if _, runs := runner(home, someJob); runs {
		t.Error("it is held after its end")
	}
	if err := second.hold(someJob); err != nil {
		t.Error(err)
	}
	if err := second.close(); err != nil {
		t.Error(err)
	}
}

// Whoever comes while others go: the file of a lock is the one with the name.
func TestHoldersTakeTurns(t *testing.T) {
	home := t.TempDir()
	var inside, held atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				s := bareStack(home)
				err := s.hold(someJob)
				if errors.Is(err, disdel.Conflict) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two hold one job")
				}
				held.Add(1)
				inside.Add(-1)
				if err := s.close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if held.Load() == 0 {
		t.Error("nobody ever held it")
	}
}

// What a killed process left goes with the next job.
func TestStaleFilesAreTidied(t *testing.T) {
	home := t.TempDir()
	stale := []string{"running/job-01m80104rj3cabn3tetc26zzzz", "unsaved/job-01m80104rj3cabn3tetc26zzzz.reserve"}
	for _, name := range append(stale, "unsaved/job-01m80104rj3cabn3tetc26zzzz.json") {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := bareStack(home)
	if err := s.hold(someJob); err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for _, name := range stale {
		if _, err := os.Stat(filepath.Join(home, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(home, "unsaved/job-01m80104rj3cabn3tetc26zzzz.json")); err != nil {
		t.Errorf("a record was removed: %v", err)
	}
}
