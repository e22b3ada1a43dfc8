package controller

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
)

// saver keeps the record of a running job on disk without holding the job up: it writes the newest state there is, and
// passes over those that came while it wrote.
type saver struct {
	newest chan disdel.Record
	quit   chan struct{}
	done   chan struct{}
}

// saveInterval is the least time between two writes of a running job's record.
const saveInterval = time.Second

func newSaver(to Recorder, log logrus.FieldLogger) *saver {
	s := &saver{newest: make(chan disdel.Record, 1), quit: make(chan struct{}), done: make(chan struct{})}
	go s.loop(to, log)
	return s
}

func (s *saver) loop(to Recorder, log logrus.FieldLogger) {
	defer close(s.done)
	for {
		select {
		case rec := <-s.newest:
			ctx, stop := context.WithTimeout(context.Background(), saveTimeout)
			if err := to.Save(ctx, &rec); err != nil {
				log.WithError(err).Warn("the record of the running job could not be saved; a later one will be")
			}
			stop()
		case <-s.quit:
			return
		}
		select {
		case <-time.After(saveInterval):
		case <-s.quit:
			return
		}
	}
}

// save takes the state of r. Its lists only ever grow at their ends, so that a copy of the head is a copy of the whole.
func (s *saver) save(r *disdel.Record) {
	select {
	case <-s.newest:
	default:
	}
	s.newest <- *r
}

// close ends the saver; the last state is the caller's to write.
func (s *saver) close() {
	close(s.quit)
	<-s.done
}
