package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/wire"
	"github.com/disdel/disdel/service"
)

type remoteJobs struct{ *remote }

// submission is a job as the server reads it: its whole file, with what the command line and other files say in it. A
// file of weights is sent before it.
func (r remoteJobs) submission(ctx context.Context, req service.Request) (wire.Submission, error) {
	if len(req.Source.Faults) > 0 {
		return wire.Submission{}, &disdel.Faults{File: req.Source.Name, Faults: req.Source.Faults}
	}
	if err := initial(ctx, remoteModels(r), &req); err != nil {
		return wire.Submission{}, err
	}
	if req.Job.Model.Custom != "" || req.Job.Model.Description != nil {
		return wire.Submission{}, &disdel.Error{
			Kind: disdel.Denied, Op: "submit job", Msg: "a server runs no programs of its clients",
			Hint: "name a network or layers in the job file, or leave out --server",
		}
	}
	text, err := jobfile.Print(req.Job)
	return wire.Submission{
		File: string(text), Name: req.Source.Name, Priority: req.Priority, Estimator: req.Estimator, Risk: req.Risk,
		Probe: req.Probe, Beside: req.Beside, Origin: req.Origin,
	}, err
}

// placed gives faults their places in the file as its owner has it.
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
	return r.begun(ctx, request{method: http.MethodPost, path: []string{"jobs", req.Job, "resume"}, body: wire.Submission{
		Sets: req.Sets, Estimator: req.Estimator, Risk: req.Risk, Probe: req.Probe, Origin: req.Origin,
		FromStart: req.FromStart, Move: req.Move,
	}}, service.Source{})
}

func (r remoteJobs) begun(ctx context.Context, q request, from service.Source) (Run, error) {
	var rec disdel.Record
	if err := r.ask(ctx, q, &rec); err != nil {
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

func (r remoteJobs) Ask(ctx context.Context, job string, to disdel.Status, cause string) error {
	what := map[disdel.Status]string{disdel.StatusCanceled: "cancel", disdel.StatusPaused: "pause"}[to]
	return r.ask(ctx, request{
		method: http.MethodPost, path: []string{"jobs", job, what}, body: wire.Ask{Cause: cause},
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
	s.Questions = &wire.Questions{MaxMemory: q.MaxMemory, Grid: q.Grid, Against: q.Against, Policies: q.Policies}
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

// List asks for page after page: an answer of a server has a limited size.
func (r remoteRecords) List(ctx context.Context, q history.Query) (list []disdel.Record, err error) {
	v := url.Values{}
	for name, value := range map[string]string{"model": q.Model, "dataset": q.Dataset, "before": string(q.Before)} {
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
		v.Set("limit", strconv.Itoa(limit-len(list)))
		var out wire.JobList
		if err := r.ask(ctx, request{method: http.MethodGet, path: []string{"history"}, query: v}, &out); err != nil {
			return nil, err
		}
		list = append(list, out.Jobs...)
		if out.Next == "" || len(out.Jobs) == 0 || len(list) >= limit {
			return list, nil
		}
		v.Set("before", string(out.Next))
	}
}

func (r remoteRecords) Get(ctx context.Context, job string) (rec disdel.Record, err error) {
	err = r.ask(ctx, request{method: http.MethodGet, path: []string{"jobs", job}}, &rec)
	return rec, err
}

func (r remoteRecords) Runner(ctx context.Context, id disdel.JobID) (service.Runner, bool, error) {
	var out wire.Runner
	err := r.ask(ctx, request{method: http.MethodGet, path: []string{"jobs", string(id), "runner"}}, &out)
	return service.Runner{Text: out.By, Known: out.Known}, out.Runs, err
}

func (r remoteRecords) Remarks(ctx context.Context) (map[disdel.JobID]history.Remark, error) {
	var out wire.RemarkList
	err := r.ask(ctx, request{method: http.MethodGet, path: []string{"remarks"}}, &out)
	return out.Remarks, err
}

func (r remoteRecords) SetRemark(ctx context.Context, id disdel.JobID, said history.Remark) error {
	var out history.Remark
	return r.ask(ctx, request{method: http.MethodPut, path: []string{"jobs", string(id), "remark"}, body: said}, &out)
}

func (r remoteRecords) Forget(ctx context.Context, id disdel.JobID) error {
	var out wire.State
	return r.ask(ctx, request{method: http.MethodDelete, path: []string{"jobs", string(id)}}, &out)
}
