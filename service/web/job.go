package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/report"
)

// jobSection is one view of a job's page. The address names it, so that each is a link.
type jobSection struct {
	Name, Key string
	parts     []report.Section
}

// jobSections are the views in their order; the first one is shown without a name.
var jobSections = []jobSection{
	{"Overview", "", []report.Section{report.SectionSummary, report.SectionCauses, report.SectionCurves}},
	{"Curves", "curves", []report.Section{report.SectionCurves, report.SectionRounds}},
	{"Memory", "memory", []report.Section{report.SectionMemory}},
	{"Stages", stagesKey, []report.Section{report.SectionStages}},
	{"Timeline", "timeline", []report.Section{report.SectionTimeline}},
	{"Logs", "logs", nil},
	{"Report", "report", []report.Section{report.SectionSummary, report.SectionCauses, report.SectionDetails}},
	{"Files", "files", nil},
}

// stagesKey is the view that only jobs have whose network trains in stages.
const stagesKey = "stages"

// hasSection tells whether a job has a view.
func hasSection(rec *disdel.Record, key string) bool {
	return key != stagesKey || len(rec.Plan.Stages) > 0
}

// oneJob is the page of a job.
type oneJob struct {
	jobHead
	Running bool
	Again   *again // how the job can go on; nil: it has not ended
	Section string // key of the shown view
	Tabs    []tab
	Curves  curveForm
	Report  template.HTML
	Printed []render.ActivationLog // of the view of logs
	Lines   []render.LogLine       // the same
	Earlier int                    // lines that are not shown
	Actions []tab                  // links to the log of one action each
	Model   string                 // NAME:vN, of the view of files
	Spec    string                 // the same
}

// tab is a link to a view of a job.
type tab struct {
	Name, Link string
	Here       bool
}

// mostLines bounds the lines of a log on the page.
const mostLines = 1000

func jobPage(v *visit) error {
	rec, err := v.s.Look(v.Context(), v.PathValue("job"))
	if err != nil {
		return err
	}
	view, ok := sectionOf(v.URL.Query().Get("section"))
	if !ok || !hasSection(&rec, view.Key) {
		return &disdel.Error{Kind: disdel.NotFound, Op: "find page", Msg: "this job has no such section"}
	}
	now := time.Now()
	page := oneJob{
		jobHead: headOf(&rec, now), Running: rec.Status.Unfinished(), Again: againOf(&rec), Section: view.Key,
		Tabs: tabsOf(&rec, view.Key),
	}
	var out bytes.Buffer
	drawn := report.New(&rec, now, v.place()...)
	page.Curves = curveFormOf(v.URL.Query(), &drawn.CurveOptions)
	all := clone(v.URL.Query())
	all.Del("from")
	all.Del("to")
	page.Curves.Keep = [][2]string{{"section", view.Key}}
	page.Curves.All = jobAddress(rec.ID) + "?" + all.Encode()
	if err := drawn.Sections(&out, view.parts...); err != nil {
		return err
	}
	page.Report = template.HTML(out.String()) //nolint:gosec // a template wrote it, which escapes
	page.add(&rec, v.URL.Query().Get("action"))
	if _, err := v.s.ResolveOwn(v.Context(), string(rec.ID)); err != nil {
		page.Again = nil // only its owner continues a job; another tenant clones it
	}
	what := view.page(&rec, page)
	v.write(http.StatusOK, "job", what)
	return nil
}

// page is the view of a job with its title. A job that may still change has events.
func (s jobSection) page(rec *disdel.Record, body oneJob) view {
	title := rec.Job.Metadata.Name + ", " + rec.Status.String()
	if s.Key != "" {
		title = s.Name + " of " + title
	}
	out := view{Title: title, Here: "Jobs", Body: body}
	if body.Running || rec.Status == disdel.StatusPaused {
		out.Live = Root + "live/" + strings.TrimPrefix(jobAddress(rec.ID), Root)
	}
	return out
}

// curveForm is what is chosen of the curves' form.
type curveForm struct {
	Scale, Smooth, Axis string
	From, To            string      // the shown part of the axis; "": all of it
	All                 string      // address of the same curves with all rounds
	Keep                [][2]string // further parts of the address
	ByRound             bool        // the axis can only count rounds
}

// AxisChoices are the axes that the form offers.
func (curveForm) AxisChoices() []string {
	return []string{"round", string(report.AxisTime), string(report.AxisCost)}
}

// SmoothChoices are the weights that the form offers.
func (curveForm) SmoothChoices() []string { return []string{"0", "0.5", "0.8", "0.95"} }

// curveFormOf reads the form of the curves. Unknown choices are those of the empty form.
func curveFormOf(q url.Values, to *report.CurveOptions) curveForm {
	form := curveForm{Scale: q.Get("scale"), Smooth: q.Get("smooth"), Axis: q.Get("axis")}
	to.Log, to.Axis = form.Scale == "log", report.Axis(form.Axis)
	from, low := strconv.ParseFloat(q.Get("from"), 64)
	end, high := strconv.ParseFloat(q.Get("to"), 64)
	if low == nil && high == nil && from < end && !math.IsInf(end-from, 0) {
		to.From, to.To, form.From, form.To = from, end, q.Get("from"), q.Get("to")
	}
	if slices.Contains(form.SmoothChoices(), form.Smooth) {
		to.Smooth, _ = strconv.ParseFloat(form.Smooth, 64)
	}
	return form
}

func sectionOf(key string) (jobSection, bool) {
	i := slices.IndexFunc(jobSections, func(s jobSection) bool { return s.Key == key })
	if i < 0 {
		return jobSection{}, false
	}
	return jobSections[i], true
}

func tabsOf(rec *disdel.Record, here string) (out []tab) {
	for _, s := range jobSections {
		if !hasSection(rec, s.Key) {
			continue
		}
		link := jobAddress(rec.ID)
		if s.Key != "" {
			link += "?section=" + s.Key
		}
		out = append(out, tab{s.Name, link, s.Key == here})
	}
	return out
}

// add adds what the views of logs and of files show of a record.
func (p *oneJob) add(rec *disdel.Record, action string) {
	switch p.Section {
	case "logs":
		p.Printed = render.ActivationLogs(rec)
		all := render.LogLines(rec, render.LogFilter{})
		p.Actions = actionTabs(rec.ID, all, action)
		if action != "" {
			all = slices.DeleteFunc(all, func(l render.LogLine) bool { return l.Action != action })
		}
		p.Earlier = max(0, len(all)-mostLines)
		p.Lines = all[p.Earlier:]
	case "files":
		p.Spec = specOf(rec)
		if m := rec.Model; m != nil {
			p.Model = fmt.Sprintf("%s:v%d", m.Name, m.Version)
		}
	}
}

// mostActions bounds the links to the logs of actions.
const mostActions = 40

// actionTabs are links to the log of all actions, and of each.
func actionTabs(id disdel.JobID, all []render.LogLine, here string) (out []tab) {
	link := jobAddress(id) + "?section=logs"
	out = append(out, tab{"all", link, here == ""})
	for _, l := range all {
		if len(out) <= mostActions && !slices.ContainsFunc(out, func(t tab) bool { return t.Name == l.Action }) {
			out = append(out, tab{l.Action, link + "&action=" + url.QueryEscape(l.Action), here == l.Action})
		}
	}
	return out
}

// specOf is the job file of a record, "" if a record of another version has what no job file can.
func specOf(rec *disdel.Record) string {
	spec, _ := jobfile.Print(rec.Job)
	return string(spec)
}

// jobHead is what a page shows of a job at a glance.
type jobHead struct {
	ID           disdel.JobID
	Name, About  string
	State, Badge string // the words of the status, and its class
	Labels       string
	Done, Rounds int
	Ends         disdel.Millis // likely time left; 0: not known
	Left         string        // "3 min left (2 to 4)"; "": nothing is known, or the job has ended
	Cost         float64
	Budget       float64 // 0: the job has none
	Peak, Limit  disdel.Bytes
	Figure       string // the accuracy, or the RMSE of numbers, with its name; "": not known
}

func headOf(rec *disdel.Record, now time.Time) jobHead {
	result := report.JobResultOf(rec)
	h := jobHead{
		ID: rec.ID, Name: cmp.Or(rec.Job.Metadata.Name, shortID(rec.ID)), State: result.StatusText(), Badge: badgeOf(&result),
		Labels: result.Labels, Rounds: rec.Plan.Rounds, Done: min(len(rec.Rounds), rec.Plan.Rounds),
		Cost: rec.MeteredCost(), Budget: rec.Job.Resources.MaxCost, Peak: result.Peak, Limit: result.Limit,
		About: fmt.Sprintf("%s on %s, %s", cmp.Or(rec.Job.Model.NetworkName(), "own layers"), rec.Data.Name,
			disdel.Counted(rec.Plan.Workers, "worker")),
	}
	switch text := result.Figure(); {
	case text == "-":
	case result.Scores.Text() == "":
		h.Figure = "accuracy " + text
	default:
		h.Figure = text
	}
	if rec.Status == disdel.StatusRunning {
		h.Left, h.Ends = leftText(rec, now)
	}
	return h
}

// leftText is the forecast of a running job's remaining time with its interval.
func leftText(rec *disdel.Record, now time.Time) (text string, likely disdel.Millis) {
	elapsed := disdel.Millis(now.Sub(rec.Created))
	if n := len(rec.Activations); n > 0 && !rec.Activations[0].Start.IsZero() {
		elapsed = disdel.Millis(now.Sub(rec.Activations[0].Start)) // waiting for the pool is no progress
	}
	f := estimator.Remaining(rec.Plan, rec.Rounds, rec.Activations, elapsed)
	if f == nil {
		return "", 0
	}
	d := f.Duration
	return fmt.Sprintf("%s left (%s to %s)", d.Likely.Text(), d.Low.Text(), d.High.Text()), d.Likely
}

// badgeOf is the class of a status. A job that succeeded with a doubtful result is not shown as a success.
func badgeOf(r *report.JobResult) string {
	if r.Verdict != "" {
		return "doubtful"
	}
	return r.Status.String()
}

// jobFile answers with a file of a job, to be stored.
func jobFile(v *visit) error {
	rec, err := v.s.Look(v.Context(), v.PathValue("job"))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	kind := ""
	switch v.PathValue("file") {
	case "job.yaml":
		kind = "application/yaml"
		out.WriteString(specOf(&rec))
	case "record.json":
		kind = "application/json"
		err = json.NewEncoder(&out).Encode(rec)
	case "report.html":
		kind = "text/html; charset=utf-8"
		err = report.New(&rec, time.Now(), v.place()...).HTML(&out, []byte(specOf(&rec)))
	case "report.md":
		kind = "text/markdown; charset=utf-8"
		err = report.New(&rec, time.Now(), v.place()...).Markdown(&out, []byte(specOf(&rec)))
	default:
		return &disdel.Error{Kind: disdel.NotFound, Op: "find file", Msg: "a job has no such file"}
	}
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", kind)
	v.w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", string(rec.ID)+"-"+v.PathValue("file")))
	v.w.Write(out.Bytes()) //nolint:errcheck // the browser went away
	return nil
}

// place is where the page's commands lead: to this server, or for a page that its own program opened to the servers of
// the job.
func (v *visit) place() []disdel.Option {
	if v.site.Enter != "" {
		return nil
	}
	return ServerOf(v.Request)
}

// ServerOf returns the flag that names the server of a request.
func ServerOf(r *http.Request) []disdel.Option {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return []disdel.Option{{Name: "server", Value: scheme + "://" + r.Host}}
}
