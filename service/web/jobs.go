package web

import (
	"bytes"
	"cmp"
	"context"
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
)

// row is a job in the list.
type row struct {
	report.JobResult
	Short   string // of its id
	Network string
	Data    string
	Created time.Time
	Took    string
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
	{"GB-s", "cost", func(a, b *row) int { return cmp.Compare(a.CostGBs, b.CostGBs) }},
}

// compareFigures puts what is not known first.
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
	page.All = len(list) < page.Limit
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

// listRows lists jobs, the newest first. A job that has ended in this process is listed as ended, though the history
// may not have its end yet.
func listRows(ctx context.Context, s *service.Service, rows *history.RecordCache[row], ask history.Query) ([]row, error) {
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
		JobResult: report.JobResultOf(r), Short: shortID(r.ID), Network: cmp.Or(r.Job.Model.Name, "own layers"),
		Data:    r.Data.Name,
		Created: r.Created,
	}
	if out.Limit > 0 {
		out.Tenth = int(min(10, 10*out.Peak/out.Limit))
	}
	if !r.Status.Unfinished() {
		out.write(time.Time{}) //nolint:errcheck // it is written again for the page, which says what is wrong
	}
	return out
}

// write writes the row as it is now. Of many jobs on a page most have ended: what takes the server longest is done
// once.
func (r *row) write(now time.Time) error {
	var out bytes.Buffer
	r.Took = r.took(now)
	err := pages().ExecuteTemplate(&out, "row", r)
	r.HTML = template.HTML(out.String()) //nolint:gosec // a template wrote it, which escapes
	return err
}

// took is how long the job took, or has been there so far.
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

// shortID is the end of an id, which is what tells jobs apart.
func shortID(id disdel.JobID) string {
	text := string(id)
	return text[max(0, len(text)-6):]
}

// matches says whether every word of a query is in what the list shows of a job.
func (r *row) matches(query string) bool {
	text := strings.ToLower(strings.Join([]string{
		string(r.ID), r.Name, r.Status.String(), r.Network, r.Data, r.JobResult.Model, r.Labels,
	}, " "))
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(query)),
		func(word string) bool { return !strings.Contains(text, word) })
}

// sort sorts the list by what was asked for; of alike ones the newest comes first.
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

// heads are the heads of the columns: a click sorts by one, another one the other way.
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
