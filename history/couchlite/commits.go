package couchlite

import (
	"errors"
	"slices"
	"sync"

	"go.etcd.io/bbolt"
)

// commits has those who write at the same time do it together: to open the file and to have it on disk takes the same
// time for one document as for many. Whoever comes while others write waits until they have, and then writes for all
// who have come meanwhile.
type commits struct {
	mu      sync.Mutex
	busy    bool      // guarded by mu: somebody writes, or is about to
	waiting []*change // guarded by mu
}

// change is what one of them does to the file.
type change struct {
	do    func(*bbolt.Tx) error
	turn  chan struct{} // gets a value where it is this one's to write for all
	ended chan error    // one value
}

// errAborted is for those whose change somebody else was about to write who came to a bad end.
var errAborted = errors.New("the write was broken off")

// make has a change written, alone or with others, by a commit that runs a function in one transaction. A change that
// fails leaves nothing behind and does not hinder the others, for which it may run several times: the last one counts.
func (s *commits) make(f func(*bbolt.Tx) error, commit func(func(*bbolt.Tx) error) error) error {
	c := &change{do: f, turn: make(chan struct{}, 1), ended: make(chan error, 1)}
	s.join(c)
	select {
	case err := <-c.ended:
		return err
	case <-c.turn:
	}
	defer s.pass()
	writeAll(s.take(), commit)
	return <-c.ended
}

// join adds a change. Where nobody writes it is its turn.
func (s *commits) join(c *change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, c)
	if !s.busy {
		s.busy = true
		c.turn <- struct{}{}
	}
}

// take is all that are to be written now.
func (s *commits) take() []*change {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.waiting
	s.waiting = nil
	return all
}

// pass has the first of those that came meanwhile go on.
func (s *commits) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy = len(s.waiting) > 0; s.busy {
		s.waiting[0].turn <- struct{}{}
	}
}

// writeAll commits changes, and tells each what became of it. Without the ones that fail the others are made anew.
func writeAll(all []*change, commit func(func(*bbolt.Tx) error) error) {
	defer func() { tellAll(all, errAborted) }() // where something panicked
	for len(all) > 0 {
		failed := -1
		err := commit(func(tx *bbolt.Tx) error {
			for i, c := range all {
				if err := c.do(tx); err != nil {
					failed = i
					return err
				}
			}
			return nil
		})
		if failed < 0 || len(all) == 1 {
			tellAll(all, err)
			all = nil
			return
		}
		tellAll(all[failed:failed+1], err)
		all = slices.Delete(all, failed, failed+1)
	}
}

func tellAll(all []*change, err error) {
	for _, c := range all {
		c.ended <- err
	}
}
