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

// writeFilings writes a batch as one; if that cannot be, one by one, so that each gets the error that is its own.
func writeFilings(s *store, batch []filing) {
	err := s.update(func(t tx) error {
		for _, b := range batch {
			if err := s.fileIn(t, b.record); err != nil {
				return err
			}
		}
		return nil
	})
	for _, b := range batch {
		if err != nil && len(batch) > 1 {
			b.done <- s.update(func(t tx) error { return s.fileIn(t, b.record) })
		} else {
			b.done <- err
		}
	}
}
