package platform

import "sync"

// filings lets activations that end together share a sync of the disk, without making one that ends alone wait for
// others: whoever comes while a write is under way is in the next.
type filings struct {
	mu      sync.Mutex
	writing bool
	waiting []filing
}

type filing struct {
	record *activation
	done   chan error
}

// file returns when the activation is on the disk.
func (f *filings) file(s *store, a *activation) error {
	mine := filing{a, make(chan error, 1)}
	f.mu.Lock()
	f.waiting = append(f.waiting, mine)
	first := !f.writing
	f.writing = true
	f.mu.Unlock()
	if first && f.write(s) { // those who came meanwhile are not waited for
		go func() {
			for f.write(s) {
			}
		}()
	}
	return <-mine.done
}

// write writes those that wait, and tells whether there were any.
func (f *filings) write(s *store) bool {
	f.mu.Lock()
	batch := f.waiting
	f.waiting, f.writing = nil, len(batch) > 0
	f.mu.Unlock()
	if len(batch) > 0 {
		writeFilings(s, batch)
	}
	return len(batch) > 0
}

func writeFilings(s *store, batch []filing) {
	list := make([]*activation, len(batch))
	for i, b := range batch {
		list[i] = b.record
	}
	for i, err := range s.fileAll(list) {
		batch[i].done <- err
	}
}

// fileAll keeps activations, all at once. If that cannot be, it does one by one, so that each gets the error that is
// its own.
func (s *store) fileAll(list []*activation) []error {
	errs := make([]error, len(list))
	err := s.record(func(t tx) error {
		for _, a := range list {
			if err := s.fileIn(t, a); err != nil {
				return err
			}
		}
		return nil
	})
	for i, a := range list {
		if errs[i] = err; err != nil && len(list) > 1 {
			errs[i] = s.record(func(t tx) error { return s.fileIn(t, a) })
		}
	}
	return errs
}
