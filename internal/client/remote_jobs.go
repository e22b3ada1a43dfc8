package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/service"
)

type remoteJobs struct{ *remote }

// submission is a job as the server reads it: its complete file, with what the command line and other files add. A file
// of weights is sent before it.
func (r remoteJobs) submission(ctx context.Context, req service.Request) (apitypes.Submission, error) {
	if len(req.Source.Faults) > 0 {
		return apitypes.Submission{}, &disdel.Faults{File: req.Source.Name, Faults: req.Source.Faults}
	}
	if err := sendInitialWeights(ctx, remoteModels(r), &req); err != nil {
		return apitypes.Submission{}, err
	}
	if req.Job.Model.Custom != "" || req.Job.Model.Description != nil {
		return apitypes.Submission{}, &disdel.Error{
			Kind: disdel.Denied, Op: "submit job", Msg: "a server runs no programs of its clients",
			Hint: "name a network or layers in the job file, or leave out --server",
		}
	}
	environment, err := installPackages(ctx, remoteModels(r), &req)
	if err != nil {
		return apitypes.Submission{}, err
	}
	text, err := jobfile.Print(req.Job)
	return apitypes.Submission{
		File: string(text), Name: req.Source.Name, Priority: req.Priority, Estimator: req.Estimator, Risk: req.Risk,
		Probe: req.Probe, Siblings: req.Siblings, Origin: req.Origin, Program: req.Job.Model.Python,
		Environment: environment,
	}, err
}

// placed gives faults their lines in the user's file.
func placed(err error, from service.Source) error {
	var faults *disdel.Faults
	if !errors.As(err, &faults) {
		return err
	}
	faults.File = from.Name
	for i := range faults.Faults {
		if f := &faults.Faults[i]; from.Locate != nil {
			f.Line, f.Column = from.Locate(f.Path)
		}
	}
	return faults
}

func (r remoteJobs) Submit(ctx context.Context, req service.Request) (Run, error) {
	s, err := r.submission(ctx, req)
	if err != nil {
		return nil, err
	}
	q := request{method: http.MethodPost, path: []string{"jobs"}, body: s}
	if req.Key != "" {
		q.header = http.Header{"Idempotency-Key": {req.Key}}
	}
	return r.begun(ctx, q, req.Source)
}

func (r remoteJobs) Resume(ctx context.Context, req service.ResumeRequest) (Run, error) {
	body := apitypes.Submission{
		Sets: req.Sets, Estimator: req.Estimator, Risk: req.Risk, Probe: req.Probe, Origin: req.Origin,
		FromStart: req.FromStart, Move: req.Move,
	}
	path := []string{"jobs", req.Job, "resume"}
	return r.begun(ctx, request{method: http.MethodPost, path: path, body: body}, service.Source{})
}

func (r remoteJobs) begun(ctx context.Context, q request, from service.Source) (Run, error) {
	rec, err := answer[disdel.Record](ctx, r.remote, q)
	if err != nil {
		return nil, placed(err, from)
	}
	return &remoteRun{remote: r.remote, id: rec.ID}, nil
}

func (r remoteJobs) Watch(ctx context.Context, job string) (Run, error) {
	rec, err := remoteRecords(r).Get(ctx, job)
	if err != nil {
		return nil, err
	}
	return &remoteRun{remote: r.remote, id: rec.ID}, nil
}

func (r remoteJobs) RequestStop(ctx context.Context, job string, to disdel.Status, cause string) error {
	what := map[disdel.Status]string{disdel.StatusCanceled: "cancel", disdel.StatusPaused: "pause"}[to]
	return r.ask(ctx, request{
		method: http.MethodPost, path: []string{"jobs", job, what}, body: apitypes.StopRequest{Cause: cause},
	}, nil)
}

func (r remoteJobs) Estimate(ctx context.Context, req service.Request, q service.Questions) (*service.Estimation,
	error,
) {
	s, err := r.submission(ctx, req)
	if err != nil {
		return nil, err
	}
	s.Explain, s.Admit = q.Explain, q.Admit
	s.Questions = &apitypes.Questions{MaxMemory: q.MaxMemory, Grid: q.Grid, Against: q.Against, Policies: q.Policies}
	var text []byte
	if err := r.ask(ctx, request{method: http.MethodPost, path: []string{"estimates"}, body: s}, &text); err != nil {
		return nil, placed(err, req.Source)
	}
	return service.ReadEstimation(text, q)
}

func (r remoteJobs) Check(ctx context.Context, req service.Request) error {
	s, err := r.submission(ctx, req)
	if err != nil {
		return err
	}
	return placed(r.ask(ctx, request{method: http.MethodPost, path: []string{"checks"}, body: s}, nil), req.Source)
}

type remoteRecords struct{ *remote }

// mostAsked is the largest number of jobs that a server lists at once.
const mostAsked = 1000

// List reads page after page: an answer of a server is bounded.
func (r remoteRecords) List(ctx context.Context, q history.Query) (list []disdel.Record, err error) {
	v := url.Values{}
	for name, value := range map[string]string{
		"model": q.Model, "dataset": q.Dataset, "before": string(q.Before), "where": q.Where.String(),
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Status != disdel.StatusUnknown {
		v.Set("status", q.Status.String())
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	limit := cmp.Or(q.Limit, history.DefaultLimit)
	for {
		asked := min(limit-len(list), mostAsked)
		v.Set("limit", strconv.Itoa(asked))
		var out apitypes.JobList
		if err := r.ask(ctx, request{method: http.MethodGet, path: []string{"history"}, query: v}, &out); err != nil {
			return nil, err
		}
		list = append(list, out.Jobs...)
		next := out.Next
		if next == "" && len(out.Jobs) == asked { // the page is full
			next = out.Jobs[asked-1].ID
		}
		if next == "" || len(list) >= limit || string(next) == v.Get("before") {
			return list, nil
		}
		v.Set("before", string(next))
	}
}

func (r remoteRecords) Get(ctx context.Context, job string) (disdel.Record, error) {
	return get[disdel.Record](ctx, r.remote, "jobs", job)
}

func (r remoteRecords) Runner(ctx context.Context, id disdel.JobID) (service.Runner, bool, error) {
	out, err := get[apitypes.Runner](ctx, r.remote, "jobs", string(id), "runner")
	return service.Runner{Text: out.By, Known: out.Known}, out.Runs, err
}

func (r remoteRecords) Remarks(ctx context.Context) (map[disdel.JobID]history.Remark, error) {
	out, err := get[apitypes.RemarkList](ctx, r.remote, "remarks")
	return out.Remarks, err
}

func (r remoteRecords) SetRemark(ctx context.Context, id disdel.JobID, remark history.Remark) error {
	return r.ask(ctx, request{method: http.MethodPut, path: []string{"jobs", string(id), "remark"}, body: remark}, nil)
}

func (r remoteRecords) Stored(ctx context.Context) ([]service.StoredItem, error) {
	out, err := get[apitypes.StoredList](ctx, r.remote, "stored")
	return out.Items, err
}

func (r remoteRecords) RemoveStored(ctx context.Context, items []service.StoredItem) (int, error) {
	for i, item := range items {
		if err := r.removeStored(ctx, item); err != nil && disdel.KindOf(err) != disdel.NotFound {
			return i, err
		}
	}
	return len(items), nil
}

func (r remoteRecords) removeStored(ctx context.Context, item service.StoredItem) error {
	if item.Kind == service.StoredJobs {
		return r.Forget(ctx, item.Job)
	}
	return r.ask(ctx, request{method: http.MethodDelete, path: []string{"stored", string(item.Kind), item.Name}}, nil)
}

func (r remoteRecords) Forget(ctx context.Context, id disdel.JobID) error {
	return r.ask(ctx, request{method: http.MethodDelete, path: []string{"jobs", string(id)}}, nil)
}

// remoteRun is a job of a server. The job continues when this process ends.
type remoteRun struct {
	*remote
	id disdel.JobID
}

// Times for a server that does not answer or is shutting down: another one may continue its jobs.
const (
	againAfter  = 200 * time.Millisecond
	mostAgain   = 5 * time.Second
	goneFor     = 2 * time.Minute
	waitAtOnce  = time.Minute
	cancelAfter = 10 * time.Second
)

// ID is the job's id.
func (r *remoteRun) ID() disdel.JobID { return r.id }

// Cancel asks the server to stop the job.
func (r *remoteRun) Cancel(cause error) {
	ctx, stop := context.WithTimeout(context.Background(), cancelAfter)
	defer stop()
	jobs := remoteJobs{r.remote}
	jobs.RequestStop(ctx, string(r.id), disdel.StatusCanceled, cause.Error()) //nolint:errcheck // its events show it
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

// patience is how long a client tries again.
type patience struct {
	since time.Time
	pause time.Duration
}

// again waits before another try; it returns false if patience is over.
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

// EventsAfter reads the job's events until the job has ended. If the server is gone it continues at another one, and
// skips the events that it has had.
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

// stream is the events of a job.
type stream struct {
	number   int    // of the newest
	last     string // its id; "": none has come yet
	rounds   int    // that were passed on
	planned  bool   // it was passed on
	over     bool   // the job has ended
	unwanted bool   // the reader has stopped
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

// take passes an event on, unless another server has sent it before.
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
