package web

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/service"
)

// compared is the page that compares jobs.
type compared struct {
	report.Comparison
	Figures []report.Figure
	Best    string // which job has the best result; "": not known
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
	page.Figures, page.Best = page.Comparison.Figures(), bestOf(page.Jobs)
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

// bestOf tells which job has the highest accuracy, or the lowest loss if no job has an accuracy.
func bestOf(list []report.JobResult) string {
	best := func(of func(*report.JobResult) *float64, sign int) (*report.JobResult, bool) {
		top := slices.MaxFunc(list, func(a, b report.JobResult) int {
			if x, y := of(&a), of(&b); x != nil && y != nil {
				return sign * cmp.Compare(*x, *y)
			}
			return compareFigures(of(&a), of(&b))
		})
		return &top, of(&top) != nil
	}
	if r, ok := best(func(r *report.JobResult) *float64 { return r.Accuracy }, 1); ok {
		return fmt.Sprintf("%s (%s) has the highest accuracy: %.4f.", r.Name, shortID(r.ID), *r.Accuracy)
	}
	if r, ok := best(func(r *report.JobResult) *float64 { return r.Loss }, -1); ok {
		return fmt.Sprintf("%s (%s) has the lowest loss: %.4f.", r.Name, shortID(r.ID), *r.Loss)
	}
	return ""
}

// comparedJobs reads what a comparison shows of jobs, each of which is the tenant's or shared with it.
func (v *visit) comparedJobs(names []string) (list []report.ComparedJob, err error) {
	ids := map[*service.Service][]disdel.JobID{}
	for _, name := range names {
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

// compareFigures sorts unknown figures first.
func compareFigures(a, b *float64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	default:
		return cmp.Compare(*a, *b)
	}
}
