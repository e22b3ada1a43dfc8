package web

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/report"
)

// oneJob is the page of a job.
type oneJob struct {
	ID      disdel.JobID
	Running bool
	Report  template.HTML
	Logs    []render.ActivationLog
}

func jobPage(v *visit) error {
	rec, err := v.s.Look(v.Context(), v.PathValue("job"))
	if err != nil {
		return err
	}
	spec, _ := jobfile.Print(rec.Job) // a record of another version may hold what no job file can
	var out bytes.Buffer
	if err := report.New(&rec, time.Now(), v.place()...).Fragment(&out, spec); err != nil {
		return err
	}
	page := oneJob{
		ID: rec.ID, Running: rec.Status.Unfinished(), Logs: render.ActivationLogs(&rec),
		Report: template.HTML(out.String()), //nolint:gosec // a template wrote it, which escapes
	}
	what := view{Title: rec.Job.Metadata.Name + ", " + rec.Status.String(), Here: "Jobs", Body: page}
	if page.Running || rec.Status == disdel.StatusPaused {
		what.Live = Root + "live/" + strings.TrimPrefix(jobAddress(rec.ID), Root)
	}
	v.write(http.StatusOK, "job", what)
	return nil
}

// place is where the page's commands lead: to this server, or, of a page that its own program opened, to where the job
// ran.
func (v *visit) place() []disdel.Option {
	if v.site.Enter != "" {
		return nil
	}
	return ServerOf(v.Request)
}

// ServerOf is the flag that leads to the server that a request asked.
func ServerOf(r *http.Request) []disdel.Option {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return []disdel.Option{{Name: "server", Value: scheme + "://" + r.Host}}
}

// compared is the page of jobs beside each other.
type compared struct {
	report.Comparison
	Figures []report.Figure
	Lines   []line
}

// line is one figure of all jobs.
type line struct {
	Name   string
	Values []string
}

// mostCompared is how many jobs are held against each other at once.
const mostCompared = 100

func comparePage(v *visit) error {
	names := v.URL.Query()["job"]
	if len(names) < 2 || len(names) > mostCompared {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "compare jobs",
			Msg:  fmt.Sprintf("%d jobs are marked, and it takes 2 to %d", len(names), mostCompared),
			Hint: "mark them in the list of jobs",
		}
	}
	h, err := v.s.History(v.Context())
	if err != nil {
		return err
	}
	ids := make([]disdel.JobID, len(names))
	for i, name := range names {
		if ids[i] = disdel.JobID(name); ids[i].Valid() {
			continue
		}
		if ids[i], err = h.Resolve(v.Context(), name); err != nil {
			return err
		}
	}
	list, err := v.site.parts.Get(v.Context(), h, ids)
	if err != nil {
		return err
	}
	page := compared{Comparison: report.CompareJobs(list)}
	page.Figures = page.Comparison.Figures()
	for _, l := range report.ComparisonRows {
		one := line{Name: l.Name}
		for i := range page.Jobs {
			one.Values = append(one.Values, l.Text(&page.Jobs[i]))
		}
		page.Lines = append(page.Lines, one)
	}
	v.write(http.StatusOK, "compare", view{Title: "Comparison", Here: "Jobs", Body: page})
	return nil
}
