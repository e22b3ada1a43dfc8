package web

import (
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
	usualJobs    = 100
	mostJobs     = 1000
	mostSearched = 5000 // newest jobs that a filter or an order is applied to

	mostShared = 8 << 20 // bytes of the records of shared jobs
)

// row is a job in the list.
type row struct {
	report.JobResult
	Facts   history.JobFacts
	Tags    []string
	Short   string // of its id
	Created time.Time
	Badge   string // class of the status
	Result  string // its figure, below the head of the list
	Tenth   int    // how many of the limit that the peak takes, 0 to 10
}

// jobList is the page of jobs.
type jobList struct {
	Query    string
	Fault    *disdel.Error // of the filter or of a view; nil: none
	Views    []choice      // conditions to add to the filter, and saved views
	Saved    []choice
	Groups   []group
	Columns  []head
	Chosen   string // classes of the table
	Choices  []choice
	GroupBy  string
	GroupOf  []choice
	Shown    int
	Totals   string
	Searched int // jobs that the filter was applied to, if there may be more; 0: all
	More     string
	Sort     string
	address  url.Values
}

// Fields are the fields of filters.
func (jobList) Fields() []history.Field { return history.Fields() }

// Keep are the parts of the address that a form keeps, besides those that it has fields for.
func (l jobList) Keep(fields ...string) (out [][2]string) {
	for _, name := range []string{"q", "sort", "dir", "group", "cols", "limit"} {
		if value := l.address.Get(name); value != "" && !slices.Contains(fields, name) {
			out = append(out, [2]string{name, value})
		}
	}
	return out
}

// group are the jobs of the list that have the same value; a list without groups is one group without a name.
type group struct {
	Name, Totals string
	Rows         template.HTML
}

func jobsPage(v *visit) error {
	q := v.URL.Query()
	if to, ok := keepChoices(v, q); ok {
		http.Redirect(v.w, v.Request, to, http.StatusSeeOther)
		return nil
	}
	page := jobList{Query: cmp.Or(q.Get("q"), stateFilter(q.Get("status"))), Sort: q.Get("sort"), address: q}
	status := http.StatusOK
	filter, err := history.ParseFilter(page.Query)
	if err != nil {
		page.Fault, status = disdel.AsError(err), http.StatusBadRequest
	}
	if q.Has(viewsFull) {
		q.Del(viewsFull)
		page.Fault = &disdel.Error{Kind: disdel.OverLimit, Msg: fmt.Sprintf("the view was not saved: the browser keeps %d "+
			"views of about %d characters in all. Forget one first, or bookmark this page", mostViews, mostViewsText)}
	}
	list, err := v.searchJobs(&page, filter, q)
	if err != nil {
		return err
	}
	page.columns(v, q, list)
	page.views(v, q, list)
	page.group(q.Get("group"), list)
	v.write(status, "jobs", view{Title: "Jobs", Here: "Jobs", Live: Root + "live/jobs", Body: page})
	return nil
}

// stateFilter is the filter of an address that names a state, as earlier versions had it.
func stateFilter(state string) string {
	if state == "" {
		return ""
	}
	return "state:" + strconv.Quote(state)
}

// searchJobs returns the jobs of the page in their order.
func (v *visit) searchJobs(page *jobList, filter history.Filter, q url.Values) ([]row, error) {
	limit := limitOf(q.Get("limit"))
	ask := history.Query{Limit: limit}
	if filter.String() != "" || page.Sort != "" {
		ask.Limit = mostSearched
	}
	list, err := listRows(v.Context(), v.s, v.site.rows, ask)
	if err != nil {
		return nil, err
	}
	others, next, err := v.s.SharedJobs(v.Context(), ask, mostShared)
	if err != nil {
		return nil, err
	}
	for i := range others {
		list = append(list, rowOf(&others[i]))
	}
	slices.SortFunc(list, func(a, b row) int { return cmp.Compare(b.ID, a.ID) })
	complete := len(list) < ask.Limit && next == ""
	if list, err = v.withTags(list); err != nil {
		return nil, err
	}
	now := time.Now()
	list = slices.DeleteFunc(list, func(r row) bool { return !filter.Matches(&r.Facts, r.Tags, now) })
	sortRows(list, page.Sort, q.Get("dir") != "up")
	if !complete && ask.Limit == mostSearched {
		page.Searched = mostSearched
	}
	if limit < mostJobs && (len(list) > limit || !complete && ask.Limit == limit) {
		more := clone(q)
		more.Set("limit", strconv.Itoa(mostJobs))
		page.More = jobsAddress(more)
	}
	return list[:min(len(list), limit)], nil
}

// withTags adds the tags to rows. The tags of a shared job are those of its owner.
func (v *visit) withTags(list []row) ([]row, error) {
	h, err := v.s.History(v.Context())
	if err != nil {
		return nil, err
	}
	remarks, err := h.Remarks(v.Context())
	if err != nil {
		return nil, err
	}
	shared, err := v.s.SharedTags(v.Context())
	if err != nil {
		return nil, err
	}
	for i := range list {
		id := list[i].ID
		list[i].Tags = remarks[id].Tags
		if len(list[i].Tags) == 0 {
			list[i].Tags = shared[id]
		}
	}
	return list, nil
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
		list = append(slices.DeleteFunc(list, func(old row) bool { return old.ID == r.ID }), rowOf(r))
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
		JobResult: report.JobResultOf(r), Facts: history.FactsOf(r), Short: shortID(r.ID), Created: r.Created,
	}
	out.Name = cmp.Or(out.Name, out.Short)
	out.Badge = badgeOf(&out.JobResult)
	if out.Limit > 0 {
		out.Tenth = int(min(10, 10*out.Peak/out.Limit))
	}
	return out
}

// Took is how long the job took, or has taken so far.
func (r *row) Took() string {
	switch {
	case r.Duration > 0:
		return r.Duration.Text()
	case r.Status.Unfinished() && !r.Created.IsZero():
		return disdel.Millis(max(0, time.Since(r.Created)).Round(time.Second)).Text() // the controller's clock may be ahead
	default:
		return ""
	}
}

// text is the text of a field, "" if the job has none.
func (r *row) text(field string) string {
	text, _ := r.Facts.Text(field)
	return text
}

// shortID is the end of an id, which differs between jobs.
func shortID(id disdel.JobID) string {
	text := string(id)
	return text[max(0, len(text)-6):]
}

func clone(q url.Values) url.Values {
	out := url.Values{}
	for k, v := range q {
		out[k] = slices.Clone(v)
	}
	return out
}

// jobsAddress is the address of a list of jobs.
func jobsAddress(q url.Values) string {
	return strings.TrimSuffix(Root+"jobs?"+q.Encode(), "?")
}
