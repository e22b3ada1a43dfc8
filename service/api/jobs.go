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
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/web"
)

// Bounds of one page of jobs: jobs, and bytes of their stored records.
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
	where, err := history.ParseFilter(v.Get("where"))
	if err != nil {
		return 0, nil, err
	}
	q.Where = where
	if q.Before = disdel.JobID(v.Get("before")); q.Before != "" && !q.Before.Valid() {
		return 0, nil, invalid("before is the id of a job", nil)
	}
	list, next, err := c.Service.ListJobs(c.Context(), q, mostListed)
	return http.StatusOK, apitypes.JobList{Jobs: list, Next: next}, err
}

func runner(c *call) (int, any, error) {
	_, body, err := c.record(http.StatusOK, c.PathValue("job"))
	if err != nil {
		return 0, nil, err
	}
	who, runs, err := c.Service.Runner(c.Context(), body.(disdel.Record).ID)
	return http.StatusOK, apitypes.Runner{Runs: runs, By: who.Text, Known: who.Known}, err
}

// request reads a submission, waits for a place to compute, and converts the submission to a request of a service. done
// gives the place back.
func (c *call) request() (req service.Request, s apitypes.Submission, done func(), err error) {
	if err := c.readSubmission(&s); err != nil {
		return req, s, nil, err
	}
	if done, err = c.compute(); err != nil {
		return req, s, nil, err
	}
	interpreter := ""
	if s.Environment != "" {
		interpreter, err = c.Service.Interpreter(s.Environment)
	}
	if err == nil {
		req, err = convert(&s, c.Header.Get("Idempotency-Key"), interpreter)
	}
	if err != nil {
		done()
	}
	return req, s, done, err
}

// convert converts a submission to a request of a service. A file that the job file names comes with the submission.
// interpreter is the Python of its environment, "" without one.
func convert(s *apitypes.Submission, key, interpreter string) (req service.Request, err error) {
	origin, err := sentOrigin(s.Origin)
	if err != nil {
		return req, err
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
		err = takeProgram(&file.Job, s.Program, interpreter)
	}
	if err == nil {
		err = checkSizes([]sized{{"metadata.labels", len(file.Job.Metadata.Labels), mostLabels, "labels"}})
	}
	return service.Request{
		Job: file.Job, Source: service.Source{Name: file.Name, Locate: file.Locate}, Priority: s.Priority,
		Key: key, Origin: cmp.Or(origin, &disdel.Origin{Command: "submit", Sets: s.Sets}),
		Options: s.Options(),
	}, err
}

// fromPage converts a job file that a user of the page sends.
func fromPage(file string) (service.Request, error) {
	return convert(&apitypes.Submission{File: file}, "", "")
}

// takeProgram completes the Python program of a job by the description that its client made. The server looks at no
// program itself: code of clients runs in actions only, and there by the server's own Python or that of an environment
// which the server has made.
func takeProgram(job *disdel.Job, sent *disdel.Python, interpreter string) error {
	m := job.Model.Python
	if m == nil || sent == nil || sent.Network == nil {
		return nil // without a description, the check of the job refuses it
	}
	asked := disdel.Python{File: sent.File, Entry: sent.Entry, Arguments: sent.Arguments, Requirements: sent.Requirements}
	n := sent.Network
	switch {
	case m.Requirements != "" && interpreter == "":
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "submit job", Msg: "the packages of the program's requirements come first",
			Hint: "use the command disdel, or POST the text of the requirements to /api/v1/environments, and name the answer " +
				"in environment",
		}
	case !m.Same(&asked) || n == nil || n.Python == nil || n.Python.Code != sent.Code:
		return invalid("program is not the one that the job file names", nil)
	}
	described := *n.Python
	described.Interpreter = interpreter
	network := *n
	network.Python = &described
	m.Code, m.Network, m.Interpreter = sent.Code, &network, interpreter
	return nil
}

// readSubmission reads a submission and checks its sizes.
func (c *call) readSubmission(s *apitypes.Submission) error {
	if err := c.read(s); err != nil {
		return err
	}
	return checkSubmission(s)
}

func submitJob(c *call) (int, any, error) {
	if err := c.draining(); err != nil {
		return 0, nil, err
	}
	req, _, done, err := c.request()
	if err != nil {
		return 0, nil, err
	}
	defer done()
	run, err := c.Service.Submit(c.Context(), req)
	if err != nil {
		return 0, nil, err
	}
	noteJob(c.Context(), run.ID())
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
	return http.StatusOK, apitypes.LogList{Logs: render.ActivationLogs(&rec)}, nil
}

// mostWait bounds one wait. A client that waits longer asks again.
const mostWait = 10 * time.Minute

func wait(c *call) (int, any, error) {
	d, err := time.ParseDuration(cmp.Or(c.URL.Query().Get("timeout"), "1m"))
	if err != nil || d < 0 || d > mostWait {
		return 0, nil, invalid("timeout is a time of at most 10m, such as 30s", err)
	}
	open, end := c.lasting()
	defer end()
	run, err := c.watch(open) // finding the job takes none of the client's time
	if err != nil {
		return 0, nil, err
	}
	ctx, stop := context.WithTimeout(open, d)
	defer stop()
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

// mostCause bounds the cause of a request to stop a job, in bytes.
const mostCause = 500

func stopAs(to disdel.Status) func(*call) (int, any, error) {
	return func(c *call) (int, any, error) {
		var stop apitypes.StopRequest
		if err := c.read(&stop); err != nil {
			return 0, nil, err
		}
		if len(stop.Cause) > mostCause {
			return 0, nil, invalid("the cause is too long", nil)
		}
		cause := cmp.Or(stop.Cause, "asked for over HTTP")
		if err := c.Service.RequestStop(c.Context(), c.PathValue("job"), to, cause); err != nil {
			return 0, nil, err
		}
		return http.StatusAccepted, apitypes.State{Status: "asked"}, nil
	}
}

func resume(c *call) (int, any, error) {
	if err := c.draining(); err != nil {
		return 0, nil, err
	}
	var s apitypes.Submission
	if err := c.readSubmission(&s); err != nil {
		return 0, nil, err
	}
	origin, err := sentOrigin(s.Origin)
	if err != nil {
		return 0, nil, err
	}
	done, err := c.compute()
	if err != nil {
		return 0, nil, err
	}
	defer done()
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
	req, s, done, err := c.request()
	if err != nil {
		return 0, nil, err
	}
	defer done()
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

// Bounds of a grid of workers and batches: its points, and the layers of all its plans together. Planning takes about
// 15 microseconds for each layer.
const (
	mostCells      = 1000
	mostGridLayers = 100_000
)

// check returns all faults of a job.
func check(c *call) (int, any, error) {
	req, _, done, err := c.request()
	if err != nil {
		return 0, nil, err
	}
	defer done()
	if _, err := c.Service.Check(c.Context(), req); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, apitypes.State{Status: "valid"}, nil
}

// remarks lists the remarks about the tenant's jobs.
func remarks(c *call) (int, any, error) {
	h, err := c.Service.History(c.Context())
	if err != nil {
		return 0, nil, err
	}
	all, err := h.Remarks(c.Context())
	if all == nil {
		all = map[disdel.JobID]history.Remark{}
	}
	return http.StatusOK, apitypes.RemarkList{Remarks: all}, err
}

// remark replaces the remark about a job.
func remark(c *call) (int, any, error) {
	var r history.Remark
	if err := c.read(&r); err != nil {
		return 0, nil, err
	}
	h, err := c.Service.History(c.Context())
	if err != nil {
		return 0, nil, err
	}
	id, err := c.Service.ResolveOwn(c.Context(), c.PathValue("job"))
	if err == nil {
		err = h.SetRemark(c.Context(), id, r)
	}
	return http.StatusOK, r, err
}

// forget deletes the record of a job that has ended.
func forget(c *call) (int, any, error) {
	_, err := c.Service.Forget(c.Context(), c.PathValue("job"))
	return http.StatusOK, apitypes.State{Status: "deleted"}, err
}
