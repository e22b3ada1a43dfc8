package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/service"
)

// route is one thing that the server does.
type route struct {
	method, path string
	role         service.Role // that it takes; "": it asks nobody who he is
	answer       func(c *call) (status int, body any, err error)
}

// call is one request, from a tenant whose Service it is. An answer of status 0 was written already.
type call struct {
	*http.Request
	w       http.ResponseWriter
	server  *server
	Service *service.Service
}

var routes = []route{
	{"GET", "/healthz", "", func(*call) (int, any, error) { return http.StatusOK, state{"ok"}, nil }},
	{"GET", "/readyz", "", ready},
	{"GET", "/openapi.json", "", describe},
	{"GET", "/api/v1/jobs", service.RoleRead, listJobs},
	{"POST", "/api/v1/jobs", service.RoleSubmit, submitJob},
	{"GET", "/api/v1/jobs/{job}", service.RoleRead, showJob},
	{"GET", "/api/v1/jobs/{job}/events", service.RoleRead, events},
	{"GET", "/api/v1/jobs/{job}/logs", service.RoleRead, logs},
	{"GET", "/api/v1/jobs/{job}/wait", service.RoleRead, wait},
	{"GET", "/api/v1/jobs/{job}/report", service.RoleRead, reportJob},
	{"POST", "/api/v1/jobs/{job}/cancel", service.RoleSubmit, stopAs(disdel.StatusCanceled)},
	{"POST", "/api/v1/jobs/{job}/pause", service.RoleSubmit, stopAs(disdel.StatusPaused)},
	{"POST", "/api/v1/jobs/{job}/resume", service.RoleSubmit, resume},
	{"POST", "/api/v1/jobs/{job}/retry", service.RoleSubmit, resume},
	{"POST", "/api/v1/estimates", service.RoleSubmit, estimate},
	{"GET", "/api/v1/datasets", service.RoleRead, listData},
	{"POST", "/api/v1/datasets", service.RoleAdmin, addData},
	{"GET", "/api/v1/datasets/{name}", service.RoleRead, showData},
	{"DELETE", "/api/v1/datasets/{name}", service.RoleAdmin, removeData},
	{"GET", "/api/v1/models", service.RoleRead, listModels},
	{"GET", "/api/v1/models/{model}", service.RoleRead, showModel},
	{"POST", "/api/v1/models/{model}/infer", service.RoleSubmit, infer},
}

type state struct {
	Status string `json:"status"`
}

func ready(c *call) (int, any, error) {
	if _, err := c.Service.Parts(c.Context()); err != nil {
		return 0, nil, &disdel.Error{Kind: disdel.Unavailable, Op: "look at the back ends", Msg: "one does not answer"}
	}
	return http.StatusOK, state{"ready"}, nil
}

func describe(*call) (int, any, error) { return http.StatusOK, json.RawMessage(description), nil }

type jobList struct {
	Jobs []disdel.Record `json:"jobs"`
}

func listJobs(c *call) (int, any, error) {
	v := c.URL.Query()
	q := history.Query{Model: v.Get("model"), Dataset: v.Get("dataset"), Limit: 20}
	if text := v.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			return 0, nil, invalid("limit is a number from 1 to 1000", nil)
		}
		q.Limit = n
	}
	if text := v.Get("status"); text != "" {
		if q.Status.UnmarshalText([]byte(text)); q.Status == disdel.StatusUnknown { //nolint:errcheck // the zero value tells
			return 0, nil, invalid("there is no such status", nil)
		}
	}
	h, err := c.Service.History(c.Context())
	if err != nil {
		return 0, nil, err
	}
	list, err := h.List(c.Context(), q)
	return http.StatusOK, jobList{list}, err
}

// submission is a job file and what a submit says beside it.
type submission struct {
	File      string   `json:"file"` // the job file's text
	Sets      []string `json:"sets,omitempty"`
	Priority  int      `json:"priority,omitempty"`
	Estimator string   `json:"estimator,omitempty"`
	Risk      *float64 `json:"risk,omitempty"`
	Explain   bool     `json:"explain,omitempty"` // of an estimate: where the memory goes
}

// request is a submission as a service takes it. Files that a job file names are the client's, and not read here.
func (c *call) request() (req service.Request, s submission, err error) {
	if err := c.read(&s); err != nil {
		return req, s, err
	}
	file, err := jobfile.ParseWith("job", []byte(s.File), s.Sets, func(string) ([]byte, error) { return nil, os.ErrNotExist })
	if err == nil && file.Job.Model.Custom != "" {
		err = &disdel.Error{
			Kind: disdel.Denied, Op: "submit job", Msg: "this server runs no programs of its clients",
			Hint: "name a network or layers in the job file",
		}
	}
	return service.Request{
		Job: file.Job, Source: service.Source{Name: file.Name, Locate: file.Locate}, Priority: s.Priority,
		Key: c.Header.Get("Idempotency-Key"), Origin: &disdel.Origin{Command: "submit", Sets: s.Sets},
		Options: service.Options{Estimator: s.Estimator, Risk: s.Risk},
	}, s, err
}

func submitJob(c *call) (int, any, error) {
	req, _, err := c.request()
	if err != nil {
		return 0, nil, err
	}
	run, err := c.Service.Submit(c.Context(), req)
	if err != nil {
		return 0, nil, err
	}
	return c.record(http.StatusCreated, string(run.ID()))
}

// record answers with a job's record.
func (c *call) record(status int, job string) (int, any, error) {
	h, err := c.Service.History(c.Context())
	if err != nil {
		return 0, nil, err
	}
	id, err := h.Resolve(c.Context(), job)
	if err != nil {
		return 0, nil, err
	}
	rec, err := h.Get(c.Context(), id)
	return status, rec, err
}

func showJob(c *call) (int, any, error) { return c.record(http.StatusOK, c.PathValue("job")) }

type logList struct {
	Logs []logOf `json:"logs"`
}

type logOf struct {
	Invocation string   `json:"invocation"`
	Outcome    string   `json:"outcome"`
	Lines      []string `json:"lines"`
}

func logs(c *call) (int, any, error) {
	_, body, err := c.record(http.StatusOK, c.PathValue("job"))
	if err != nil {
		return 0, nil, err
	}
	out := logList{Logs: []logOf{}}
	for _, a := range body.(disdel.Record).Activations {
		if len(a.Logs) > 0 {
			out.Logs = append(out.Logs, logOf{a.Invocation.ID, a.Outcome.String(), a.Logs})
		}
	}
	return http.StatusOK, out, nil
}

// mostWait bounds one wait: who waits longer asks again.
const mostWait = 10 * time.Minute

func wait(c *call) (int, any, error) {
	d, err := time.ParseDuration(cmp.Or(c.URL.Query().Get("timeout"), "1m"))
	if err != nil || d < 0 || d > mostWait {
		return 0, nil, invalid("timeout is a time of at most 10m, such as 30s", err)
	}
	ctx, stop := context.WithTimeout(c.Context(), d)
	defer stop()
	run, err := c.Service.Watch(ctx, c.PathValue("job"))
	if err != nil {
		return 0, nil, err
	}
	http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(d + readWithin)) //nolint:errcheck // there is none then
	rec, err := run.Wait(ctx)
	return http.StatusOK, rec, err
}

func reportJob(c *call) (int, any, error) {
	_, body, err := c.record(http.StatusOK, c.PathValue("job"))
	if err != nil {
		return 0, nil, err
	}
	rec := body.(disdel.Record)
	r := report.New(&rec, time.Now())
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

func stopAs(to disdel.Status) func(*call) (int, any, error) {
	return func(c *call) (int, any, error) {
		cause := "asked for over HTTP"
		if err := c.Service.Ask(c.Context(), c.PathValue("job"), to, cause); err != nil {
			return 0, nil, err
		}
		return http.StatusAccepted, state{"asked"}, nil
	}
}

func resume(c *call) (int, any, error) {
	var s submission
	if err := c.read(&s); err != nil {
		return 0, nil, err
	}
	run, err := c.Service.Resume(c.Context(), service.ResumeRequest{
		Job: c.PathValue("job"), Sets: s.Sets, Options: service.Options{Estimator: s.Estimator, Risk: s.Risk},
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
	found, err := c.Service.Estimate(c.Context(), req, service.Questions{Explain: s.Explain})
	return http.StatusOK, found, err
}

type dataList struct {
	Datasets []dataset.Manifest `json:"datasets"`
}

func listData(c *call) (int, any, error) {
	store, err := c.Service.Datasets(c.Context())
	if err != nil {
		return 0, nil, err
	}
	list, err := store.List(c.Context())
	return http.StatusOK, dataList{append([]dataset.Manifest{}, list...)}, err
}

// addData adds the data set that the program carries.
func addData(c *call) (int, any, error) {
	var in struct {
		Source string `json:"source"`
	}
	if err := c.read(&in); err != nil {
		return 0, nil, err
	}
	if in.Source != "digits" {
		return 0, nil, invalid("source is digits: others are added with disdel dataset add", nil)
	}
	if err := c.Service.AddDigits(c.Context()); err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, state{"added"}, nil
}

func showData(c *call) (int, any, error) {
	store, err := c.Service.Datasets(c.Context())
	if err != nil {
		return 0, nil, err
	}
	m, err := store.Manifest(c.Context(), c.PathValue("name"))
	return http.StatusOK, m, err
}

func removeData(c *call) (int, any, error) {
	store, err := c.Service.Datasets(c.Context())
	if err != nil {
		return 0, nil, err
	}
	name := c.PathValue("name")
	if job := c.Service.Reader(c.Context(), name); job != "" {
		return 0, nil, &disdel.Error{
			Kind: disdel.Conflict, Op: "remove data set", Msg: string(job) + " reads it", Job: job, Hint: "wait for its end",
		}
	}
	if _, err := store.Remove(c.Context(), name); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, state{"removed"}, nil
}

type modelList struct {
	Models []modelstore.Model `json:"models"`
}

func listModels(c *call) (int, any, error) {
	store, err := c.Service.Models(c.Context())
	if err != nil {
		return 0, nil, err
	}
	list, err := store.List(c.Context())
	return http.StatusOK, modelList{append([]modelstore.Model{}, list...)}, err
}

func showModel(c *call) (int, any, error) {
	store, err := c.Service.Models(c.Context())
	if err != nil {
		return 0, nil, err
	}
	m, err := store.Get(c.Context(), c.PathValue("model"))
	return http.StatusOK, m, err
}

// answers is what a model said.
type answers struct {
	Model         string      `json:"model"`
	Classes       []int       `json:"classes"`
	Probabilities [][]float32 `json:"probabilities"`
}

func infer(c *call) (int, any, error) {
	var body json.RawMessage
	if err := c.read(&body); err != nil {
		return 0, nil, err
	}
	m, err := c.Service.Trained(c.Context(), c.PathValue("model"))
	if err != nil {
		return 0, nil, err
	}
	in, err := m.Read("body.json", body)
	if err != nil {
		return 0, nil, err
	}
	said, err := c.Service.Infer(c.Context(), m, in.Rows)
	return http.StatusOK, answers{m.Ref(), said.Classes, said.Probabilities}, err
}
