package web

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/service"
)

// How many jobs a page lists.
const (
	usualJobs = 100
	mostJobs  = 1000

	mostShared = 8 << 20 // bytes of the records of shared jobs
)

// row is a job in the list.
type row struct {
	report.JobResult
	Short   string // of its id
	Network string
	Data    string
	Created time.Time
	Took    string
	Badge   string        // class of the status
	Tenth   int           // how many of the limit that the peak takes, 0 to 10
	HTML    template.HTML // the row as the page has it; "": of a job that has not ended, whose time goes on
}

// jobList is the page of jobs.
type jobList struct {
	Rows    []row
	Columns []column
	Query   string
	Status  string
	States  []string
	Limit   int
	All     bool // there are no more
	More    string
	Sort    string
	Down    bool
}

// column is a head of the list: what a click on it sorts by.
type column struct {
	Name, Key string
	Link      string
	Sorted    string // ascending, descending or "" as aria-sort has it
}

// orders are what the list can be sorted by. Without one it is the newest first.
var orders = []struct {
	name, key string
	less      func(a, b *row) int
}{
	{"Job", "name", func(a, b *row) int { return strings.Compare(a.Name, b.Name) }},
	{"Status", "status", func(a, b *row) int { return cmp.Compare(a.Status, b.Status) }},
	{"Model", "model", func(a, b *row) int { return strings.Compare(a.Network, b.Network) }},
	{"Data", "data", func(a, b *row) int { return strings.Compare(a.Data, b.Data) }},
	{"Created", "created", func(a, b *row) int { return a.Created.Compare(b.Created) }},
	{"Time", "time", func(a, b *row) int { return cmp.Compare(a.Duration, b.Duration) }},
	{"Rounds", "rounds", func(a, b *row) int { return cmp.Compare(a.Rounds, b.Rounds) }},
	{"Loss", "loss", func(a, b *row) int { return compareFigures(a.Loss, b.Loss) }},
	{"Accuracy", "accuracy", func(a, b *row) int { return compareFigures(a.Accuracy, b.Accuracy) }},
	{"Memory", "memory", func(a, b *row) int { return cmp.Compare(a.Peak, b.Peak) }},
	{"Cost", "cost", func(a, b *row) int { return cmp.Compare(a.CostGBs, b.CostGBs) }},
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

var states = []string{"queued", "admitted", "running", "paused", "succeeded", "failed", "canceled"}

func jobsPage(v *visit) error {
	q := v.URL.Query()
	page := jobList{
		Query: q.Get("q"), Status: q.Get("status"), States: states, Limit: limitOf(q.Get("limit")), Sort: q.Get("sort"),
		Down: q.Get("dir") != "up",
	}
	ask := history.Query{Limit: page.Limit}
	ask.Status.UnmarshalText([]byte(page.Status)) //nolint:errcheck // of one that there is not, all are shown
	list, err := listRows(v.Context(), v.s, v.site.rows, ask)
	if err != nil {
		return err
	}
	others, next, err := v.s.SharedJobs(v.Context(), ask, mostShared)
	if err != nil {
		return err
	}
	for i := range others {
		list = append(list, rowOf(&others[i]))
	}
	slices.SortFunc(list, func(a, b row) int { return cmp.Compare(b.ID, a.ID) })
	list = list[:min(len(list), ask.Limit)]
	page.All = len(list) < page.Limit && next == ""
	for _, r := range list {
		if !r.matches(page.Query) {
			continue
		}
		if r.HTML == "" {
			if err := r.write(time.Now()); err != nil {
				return err
			}
		}
		page.Rows = append(page.Rows, r)
	}
	page.sort()
	page.heads(q)
	more := clone(q)
	more.Set("limit", strconv.Itoa(mostJobs))
	page.More = Root + "jobs?" + more.Encode()
	v.write(http.StatusOK, "jobs", view{Title: "Jobs", Here: "Jobs", Live: Root + "live/jobs", Body: page})
	return nil
}

// listRows lists jobs, the newest first. A job that has ended in this process is listed as ended, even if the history
// does not have its end yet.
func listRows(
	ctx context.Context, s *service.Service, rows *history.RecordCache[row], ask history.Query,
) ([]row, error) {
	h, err := s.History(ctx)
	if err != nil {
		return nil, err
	}
	list, err := rows.List(ctx, h, ask)
	if err != nil {
		return nil, err
	}
	ends := s.UndeliveredEnds()
	for i := range ends {
		r := &ends[i]
		list = slices.DeleteFunc(list, func(old row) bool { return old.ID == r.ID })
		if ask.Status == disdel.StatusUnknown || ask.Status == r.Status {
			list = append(list, rowOf(r))
		}
	}
	slices.SortFunc(list, func(a, b row) int { return cmp.Compare(b.ID, a.ID) })
	return list[:min(len(list), ask.Limit)], nil
}

func limitOf(text string) int {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return min(n, mostJobs)
	}
	return usualJobs
}

func rowOf(r *disdel.Record) row {
	out := row{
		JobResult: report.JobResultOf(r), Short: shortID(r.ID), Network: cmp.Or(r.Job.Model.NetworkName(), "own layers"),
		Data:    r.Data.Name,
		Created: r.Created,
	}
	out.Badge = badgeOf(&out.JobResult)
	if out.Limit > 0 {
		out.Tenth = int(min(10, 10*out.Peak/out.Limit))
	}
	if !r.Status.Unfinished() {
		out.write(time.Time{}) //nolint:errcheck // it is written again for the page, which says what is wrong
	}
	return out
}

// write renders the row. Most listed jobs have ended; their rows are rendered once.
func (r *row) write(now time.Time) error {
	var out bytes.Buffer
	r.Took = r.took(now)
	err := pages().ExecuteTemplate(&out, "row", r)
	r.HTML = template.HTML(out.String()) //nolint:gosec // a template wrote it, which escapes
	return err
}

// took is how long the job took, or has taken so far.
func (r *row) took(now time.Time) string {
	switch {
	case r.Duration > 0:
		return r.Duration.Text()
	case r.Status.Unfinished() && !r.Created.IsZero():
		return disdel.Millis(now.Sub(r.Created).Round(time.Second)).Text()
	default:
		return ""
	}
}

// shortID is the end of an id, which differs between jobs.
func shortID(id disdel.JobID) string {
	text := string(id)
	return text[max(0, len(text)-6):]
}

// matches reports whether the row shows every word of a query.
func (r *row) matches(query string) bool {
	text := strings.ToLower(strings.Join([]string{
		string(r.ID), r.Name, r.StatusText(), r.Network, r.Data, r.JobResult.Model, r.Labels,
	}, " "))
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(query)),
		func(word string) bool { return !strings.Contains(text, word) })
}

// sort sorts the list by the chosen column, and rows that are equal there by age.
func (l *jobList) sort() {
	for _, o := range orders {
		if o.key != l.Sort {
			continue
		}
		slices.SortStableFunc(l.Rows, func(a, b row) int {
			if l.Down {
				return o.less(&b, &a)
			}
			return o.less(&a, &b)
		})
	}
}

// heads are the heads of the columns. A click sorts by a column; another click reverses the order.
func (l *jobList) heads(q url.Values) {
	for _, o := range orders {
		to, c := clone(q), column{Name: o.name, Key: o.key}
		to.Set("sort", o.key)
		to.Del("dir")
		if o.key == l.Sort {
			c.Sorted = "ascending"
			if l.Down {
				c.Sorted = "descending"
				to.Set("dir", "up")
			}
		}
		c.Link = Root + "jobs?" + to.Encode()
		l.Columns = append(l.Columns, c)
	}
}

func clone(q url.Values) url.Values {
	out := url.Values{}
	for k, v := range q {
		out[k] = slices.Clone(v)
	}
	return out
}

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
	list, err := v.comparedJobs(names)
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
