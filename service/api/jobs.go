package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/internal/wire"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/web"
)

// What one answer of a list has at most: jobs, and bytes of their records as they are kept.
const (
	mostJobs   = 1000
	mostListed = 2 << 20
)

func listJobs(c *call) (int, any, error) {
	v := c.URL.Query()
	q := history.Query{Model: v.Get("model"), Dataset: v.Get("dataset"), Limit: 20}
	if text := v.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostJobs {
			return 0, nil, invalid("limit is a number from 1 to 1000", nil)
		}
		q.Limit = n
	}
	if text := v.Get("status"); text != "" {
		if q.Status.UnmarshalText([]byte(text)); q.Status == disdel.StatusUnknown { //nolint:errcheck // the zero value tells
			return 0, nil, invalid("there is no such status", nil)
		}
	}
	if text := v.Get("since"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return 0, nil, invalid("since is a moment such as 2026-11-22T08:00:00Z", err)
		}
		q.Since = since
	}
	if q.Before = disdel.JobID(v.Get("before")); q.Before != "" && !q.Before.Valid() {
		return 0, nil, invalid("before is the id of a job", nil)
	}
	h, err := c.Service.History(c.Context())
	if err != nil {
		return 0, nil, err
	}
	list, cut, err := h.Page(c.Context(), q, mostListed)
	for i := range list {
		if rec, ok := c.Service.Undelivered(list[i].ID); ok {
			list[i] = rec
		}
	}
	out := wire.JobList{Jobs: list}
	if cut {
		out.Next = list[len(list)-1].ID
	}
	return http.StatusOK, out, err
}

func runner(c *call) (int, any, error) {
	_, body, err := c.record(http.StatusOK, c.PathValue("job"))
	if err != nil {
		return 0, nil, err
	}
	who, runs, err := c.Service.Runner(c.Context(), body.(disdel.Record).ID)
	return http.StatusOK, wire.Runner{Runs: runs, By: who.Text, Known: who.Known}, err
}

// request is a submission as a service takes it. Files that a job file names are the client's: they come with it.
func (c *call) request() (req service.Request, s wire.Submission, err error) {
	if err := c.readSubmission(&s); err != nil {
		return req, s, err
	}
	origin, err := sentOrigin(s.Origin)
	if err != nil {
		return req, s, err
	}
	sent := func(name string) ([]byte, error) {
		if text, ok := s.Files[name]; ok {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}
	file, err := jobfile.ParseWith(cmp.Or(s.Name, "job"), []byte(s.File), s.Sets, sent)
	if err == nil && file.Job.Model.Custom != "" {
		err = &disdel.Error{
			Kind: disdel.Denied, Op: "submit job", Msg: "this server runs no programs of its clients",
			Hint: "name a network or layers in the job file",
		}
	}
	if err == nil {
		err = checkSizes([]sized{{"metadata.labels", len(file.Job.Metadata.Labels), mostLabels, "labels"}})
	}
	return service.Request{
		Job: file.Job, Source: service.Source{Name: file.Name, Locate: file.Locate}, Priority: s.Priority,
		Key: c.Header.Get("Idempotency-Key"), Origin: cmp.Or(origin, &disdel.Origin{Command: "submit", Sets: s.Sets}),
		Options: s.Options(),
	}, s, err
}

// readSubmission reads a submission and checks how much it says.
func (c *call) readSubmission(s *wire.Submission) error {
	if err := c.read(s); err != nil {
		return err
	}
	return checkSubmission(s)
}

func submitJob(c *call) (int, any, error) {
	if err := c.draining(); err != nil {
		return 0, nil, err
	}
	req, _, err := c.request()
	if err != nil {
		return 0, nil, err
	}
	run, err := c.Service.Submit(c.Context(), req)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, run.Submitted(), nil
}

// record answers with a job's record.
func (c *call) record(status int, job string) (int, any, error) {
	rec, err := c.Service.Look(c.Context(), job)
	return status, rec, err
}

func showJob(c *call) (int, any, error) { return c.record(http.StatusOK, c.PathValue("job")) }

func logs(c *call) (int, any, error) {
	_, body, err := c.record(http.StatusOK, c.PathValue("job"))
	if err != nil {
		return 0, nil, err
	}
	rec := body.(disdel.Record)
	return http.StatusOK, wire.LogList{Logs: render.ActivationLogs(&rec)}, nil
}

// mostWait bounds one wait: clients that wait longer ask again.
const mostWait = 10 * time.Minute

func wait(c *call) (int, any, error) {
	d, err := time.ParseDuration(cmp.Or(c.URL.Query().Get("timeout"), "1m"))
	if err != nil || d < 0 || d > mostWait {
		return 0, nil, invalid("timeout is a time of at most 10m, such as 30s", err)
	}
	open, end := c.lasting()
	defer end()
	ctx, stop := context.WithTimeout(open, d)
	defer stop()
	run, err := c.watch(ctx)
	if err != nil {
		return 0, nil, err
	}
	out := http.NewResponseController(c.w)
	out.SetWriteDeadline(time.Now().Add(d + readWithin)) //nolint:errcheck // there is none then
	rec, err := run.Wait(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = &disdel.Error{
			Kind: disdel.Timeout, Op: "wait for job", Job: run.ID(), Msg: "it has not ended yet", Hint: "ask again",
		}
	}
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errTokenGone):
		err = errTokenGone
	case err != nil:
		err = cmp.Or(c.draining(), err)
	}
	return http.StatusOK, rec, err
}

func reportJob(c *call) (int, any, error) {
	_, body, err := c.record(http.StatusOK, c.PathValue("job"))
	if err != nil {
		return 0, nil, err
	}
	rec := body.(disdel.Record)
	r := report.New(&rec, time.Now(), web.ServerOf(c.Request)...)
	spec, _ := jobfile.Print(rec.Job) // a record of another version may hold what no job file can
	switch format := cmp.Or(c.URL.Query().Get("format"), "json"); format {
	case "json":
		return http.StatusOK, r, nil
	case "html":
		c.w.Header().Set("Content-Type", "text/html; charset=utf-8")
		c.w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		r.HTML(c.w, spec) //nolint:errcheck // the client went away
	case "md":
		c.w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
		r.Markdown(c.w, spec) //nolint:errcheck // the client went away
	default:
		return 0, nil, invalid("format is json, html or md", nil)
	}
	return 0, nil, nil
}

// mostCause bounds what is said of why a job is to stop.
const mostCause = 500

func stopAs(to disdel.Status) func(*call) (int, any, error) {
	return func(c *call) (int, any, error) {
		var said wire.Ask
		if err := c.read(&said); err != nil {
			return 0, nil, err
		}
		if len(said.Cause) > mostCause {
			return 0, nil, invalid("the cause is too long", nil)
		}
		if err := c.Service.Ask(c.Context(), c.PathValue("job"), to, cmp.Or(said.Cause, "asked for over HTTP")); err != nil {
			return 0, nil, err
		}
		return http.StatusAccepted, wire.State{Status: "asked"}, nil
	}
}

func resume(c *call) (int, any, error) {
	if err := c.draining(); err != nil {
		return 0, nil, err
	}
	var s wire.Submission
	if err := c.readSubmission(&s); err != nil {
		return 0, nil, err
	}
	origin, err := sentOrigin(s.Origin)
	if err != nil {
		return 0, nil, err
	}
	run, err := c.Service.Resume(c.Context(), service.ResumeRequest{
		Job: c.PathValue("job"), Sets: s.Sets, Options: s.Options(), Origin: origin,
		FromStart: s.FromStart, Move: s.Move,
	})
	if err != nil {
		return 0, nil, err
	}
	return c.record(http.StatusCreated, string(run.ID()))
}

func estimate(c *call) (int, any, error) {
	req, s, err := c.request()
	if err != nil {
		return 0, nil, err
	}
	q := service.Questions{Explain: s.Explain, Admit: s.Admit}
	if more := s.Questions; more != nil {
		q.MaxMemory, q.Grid, q.Against = more.MaxMemory, more.Grid, cmp.Or(more.Against, scheduler.AgainstCost)
		q.Policies = more.Policies
	}
	if g := q.Grid; g != nil {
		cells := max(1, len(g.Workers)) * max(1, len(g.Batches))
		err := checkSizes([]sized{
			{"the grid", cells, mostCells, "points"},
			{"the grid", cells * len(req.Job.Model.Layers), mostGridLayers, "layers in all its points together"},
		})
		if err != nil {
			return 0, nil, err
		}
	}
	found, err := c.Service.Estimate(c.Context(), req, q)
	return http.StatusOK, found, err
}

// What bounds a grid of other workers and batches: its points, and the layers that are planned for all of them, which
// take about 15 microseconds each.
const (
	mostCells      = 1000
	mostGridLayers = 100_000
)

// check says everything that is wrong with a job.
func check(c *call) (int, any, error) {
	req, _, err := c.request()
	if err != nil {
		return 0, nil, err
	}
	if _, err := c.Service.Check(c.Context(), req); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, wire.State{Status: "valid"}, nil
}
