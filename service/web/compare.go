package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/service"
)

// compared is the page that compares jobs.
type compared struct {
	report.Comparison
	Figures []report.Figure
	Curves  curveForm
	Sweep   []report.Figure // of jobs that differ in a parameter
	X, Y    []choice        // what the axes of the sweep may show
	Keep    [][2]string     // of the address, in the form of the axes
	Best    string          // which job has the best result; "": not known
	Lines   []line
}

// line is one figure of all jobs.
type line struct {
	Name   string
	Values []string
}

// mostCompared bounds the jobs of a comparison.
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
	list, err := v.comparedJobs(slices.Compact(slices.Sorted(slices.Values(names)))) // a job may be in several groups
	if err != nil {
		return err
	}
	page := compared{Comparison: report.CompareJobs(list)}
	page.Best = bestOf(page.Jobs)
	page.draw(v.URL.Query())
	for _, l := range page.Rows() {
		one, known := line{Name: l.Name}, false
		for i := range page.Jobs {
			text := l.Text(&page.Jobs[i])
			one.Values, known = append(one.Values, text), known || text != "-" && text != ""
		}
		if known { // jobs that predict numbers have no accuracy, for example
			page.Lines = append(page.Lines, one)
		}
	}
	v.write(http.StatusOK, "compare", view{Title: "Comparison", Here: "Jobs", Body: page})
	return nil
}

// draw draws the curves and the sweep as the address has them.
func (c *compared) draw(q url.Values) {
	var options report.CurveOptions
	c.Curves = curveFormOf(q, &options)
	c.Curves.ByRound, options.Axis = true, ""
	c.Curves.Keep = kept(q, "job", "x", "y")
	c.Curves.All = Root + "compare?" + without(q, "from", "to").Encode()
	c.Figures = c.Comparison.Figures(options)
	x, y := q.Get("x"), q.Get("y")
	c.Sweep, c.Keep = c.Comparison.Sweep(x, y, jobAddress), kept(q, "job", "scale", "smooth", "from", "to")
	c.Differs = slices.DeleteFunc(c.Differs, func(d report.Difference) bool {
		return d.Path == "metadata.name" || d.Path == "output.model"
	})
	for _, path := range c.Parameters() {
		c.X = append(c.X, choice{Name: path, Link: path, Chosen: path == x})
	}
	for _, m := range c.Metrics() {
		c.X = append(c.X, choice{Name: m.Name, Link: m.Key, Chosen: m.Key == x})
		c.Y = append(c.Y, choice{Name: m.Name, Link: m.Key, Chosen: m.Key == y})
	}
}

// kept are the parts of an address with these names.
func kept(q url.Values, names ...string) (out [][2]string) {
	for _, name := range names {
		for _, value := range q[name] {
			out = append(out, [2]string{name, value})
		}
	}
	return out
}

// bestOf tells which job is the best by the metric that the jobs are compared by. If they differ in it, or none has its
// value, it is the lowest loss.
func bestOf(list []report.JobResult) string {
	metric, _ := list[0].Compared()
	loss, _ := disdel.FindMetric(disdel.MetricLoss)
	for i := range list {
		if m, _ := list[i].Compared(); m.Name != metric.Name {
			metric = loss
		}
	}
	for _, m := range []disdel.Metric{metric, loss} {
		best := slices.MinFunc(list, func(a, b report.JobResult) int {
			return cmp.Compare(m.Rank(m.Value(a.Figures())), m.Rank(m.Value(b.Figures())))
		})
		word := "lowest"
		if m.Larger {
			word = "highest"
		}
		if v := m.Value(best.Figures()); v != nil {
			return fmt.Sprintf("%s (%s) has the %s %s: %s.", best.Name, shortID(best.ID), word, m.Title, m.Number(*v))
		}
	}
	return ""
}

// comparedJobs reads what a comparison shows of jobs, each of which is the tenant's or shared with it.
func (v *visit) comparedJobs(names []string) (list []report.ComparedJob, err error) {
	list, others, err := v.ownJobs(names)
	if err != nil {
		return nil, err
	}
	ids := map[*service.Service][]disdel.JobID{}
	for _, name := range others {
		at, id, err := v.s.FindJob(v.Context(), name)
		if err != nil {
			return nil, err
		}
		ids[at] = append(ids[at], id)
	}
	for at, own := range ids {
		h, err := at.History(v.Context())
		if err != nil {
			return nil, err
		}
		some, err := v.site.parts.Get(v.Context(), h, own)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	slices.SortFunc(list, func(a, b report.ComparedJob) int { return cmp.Compare(a.JobResult.ID, b.JobResult.ID) })
	return list, nil
}

// ownJobs are those of the jobs that are named by their whole id and are the tenant's own. They are read together, and
// only where they changed since the last time: FindJob reads a whole record for each. others are the other names.
func (v *visit) ownJobs(names []string) (list []report.ComparedJob, others []string, err error) {
	h, err := v.s.History(v.Context())
	if err != nil {
		return nil, nil, err
	}
	var ids []disdel.JobID
	for _, name := range names {
		if id := disdel.JobID(name); id.Valid() {
			ids = append(ids, id)
		}
	}
	list, err = v.site.parts.Find(v.Context(), h, ids)
	found := map[string]bool{}
	for i := range list {
		found[string(list[i].JobResult.ID)] = true
	}
	return list, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return found[name] }), err
}
