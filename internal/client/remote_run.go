package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/service"
)

// remoteRun is a job of a server. The job goes on whatever becomes of who looks at it.
type remoteRun struct {
	*remote
	id disdel.JobID
}

// How a client gets on with a server that does not answer, or is about to end: another one may continue with its jobs.
const (
	againAfter  = 200 * time.Millisecond
	mostAgain   = 5 * time.Second
	goneFor     = 2 * time.Minute
	waitAtOnce  = time.Minute
	cancelAfter = 10 * time.Second
)

// ID is the job's.
func (r *remoteRun) ID() disdel.JobID { return r.id }

// Cancel asks the server to stop the job.
func (r *remoteRun) Cancel(cause error) {
	ctx, stop := context.WithTimeout(context.Background(), cancelAfter)
	defer stop()
	remoteJobs{r.remote}.RequestStop(ctx, string(r.id), disdel.StatusCanceled, cause.Error()) //nolint:errcheck // its events tell
}

// Wait asks until the job has ended.
func (r *remoteRun) Wait(ctx context.Context) (rec disdel.Record, err error) {
	p := patience{}
	for {
		err = r.ask(ctx, request{
			method: http.MethodGet, path: []string{"jobs", string(r.id), "wait"},
			query: url.Values{"timeout": {waitAtOnce.String()}},
		}, &rec)
		switch {
		case err == nil:
			return rec, nil
		case errors.Is(err, disdel.Timeout) && ctx.Err() == nil: // it is not over yet
			p = patience{}
		case !errors.Is(err, disdel.Unavailable) || !p.again(ctx):
			return rec, err
		}
	}
}

// patience is how long one tries again.
type patience struct {
	since time.Time
	pause time.Duration
}

// again waits before another try; false where it was tried for too long.
func (p *patience) again(ctx context.Context) bool {
	if p.since.IsZero() {
		p.since, p.pause = time.Now(), againAfter
	}
	if time.Since(p.since) > goneFor {
		return false
	}
	t := time.NewTimer(p.pause)
	defer t.Stop()
	p.pause = min(2*p.pause, mostAgain)
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// EventsAfter reads the job's events, from another server too where the one before is gone, until the job has ended.
// What that one tells again is left out.
func (r *remoteRun) EventsAfter(ctx context.Context, number int) iter.Seq[service.Event] {
	return func(yield func(service.Event) bool) {
		s := stream{number: number}
		p := patience{}
		for !s.over && !s.unwanted {
			before := s.number
			err := s.read(ctx, r, yield)
			if s.number != before {
				p = patience{}
			}
			if err != nil && !errors.Is(err, disdel.Unavailable) || !s.over && !s.unwanted && !p.again(ctx) {
				return
			}
		}
	}
}

// stream is a job's events as they come.
type stream struct {
	number   int    // of the newest
	last     string // its id; "": none has come yet
	rounds   int    // that were told
	planned  bool   // that was told
	over     bool   // the job has ended
	unwanted bool   // nobody wants more
}

// read reads until the server ends the stream.
func (s *stream) read(ctx context.Context, r *remoteRun, yield func(service.Event) bool) error {
	header := http.Header{"Accept": {"text/event-stream"}}
	if s.last != "" {
		header.Set("Last-Event-ID", s.last)
	}
	res, err := r.send(ctx, request{
		method: http.MethodGet, path: []string{"jobs", string(r.id), "events"}, header: header,
	})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	for !s.over && !s.unwanted {
		id, kind, data, err := next(in)
		if err != nil { // also where it ends between two events: a server may be about to end
			return &disdel.Error{Kind: disdel.Unavailable, Op: "read events", Job: r.id, Err: err}
		}
		if err := s.take(id, kind, data, yield); err != nil {
			return err
		}
	}
	return nil
}

// next is the next event of a stream.
func next(in *bufio.Reader) (id, kind string, data []byte, err error) {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return "", "", nil, err
		}
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			data = append(data, value...)
		case "":
			if kind != "" {
				return id, kind, data, nil
			}
		}
	}
}

// take passes an event on, unless it was told by another server.
func (s *stream) take(id, kind string, data []byte, yield func(service.Event) bool) error {
	if kind == apitypes.Reset {
		return nil
	}
	var e apitypes.Event
	if err := json.Unmarshal(data, &e); err != nil {
		return &disdel.Error{Kind: disdel.Corrupt, Op: "read event", Msg: kind, Err: err}
	}
	what, err := service.ReadEventData(e.Kind, e.What)
	s.number, s.last = e.Number, id
	if err != nil {
		return nil //nolint:nilerr // of a later version: who looks on can do without
	}
	switch what := what.(type) {
	case service.Planned:
		if s.planned {
			return nil
		}
		s.planned = true
	case service.RoundEnded:
		if what.Round.Round < s.rounds {
			return nil
		}
		s.rounds = what.Round.Round + 1
	case service.Finished:
		s.over = what.Status != disdel.StatusQueued // else its server has given it back, and another goes on
		if !s.over {
			return fmt.Errorf("%w: %w", disdel.Unavailable, io.EOF)
		}
	}
	s.unwanted = !yield(service.Event{Number: e.Number, Job: e.Job, What: what})
	return nil
}
