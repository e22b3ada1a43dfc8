package cli

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
)

// jobsCommand lists jobs. Its subcommands are all that can be done with one job.
func jobsCommand(u *ui) *cli.Command {
	list := &cli.Command{
		Name: "jobs", Aliases: []string{"job", "history", "ps", "list"},
		Usage: "list, show, watch, cancel, tag and delete jobs, running and ended",
		Description: "Without COMMAND it lists jobs, the newest first. JOB is an id, the start of an id, a name or @last. " +
			"A batch\nhas one line in the list; --batch lists its jobs, with the fields that differ between them.\n\n" +
			"   disdel jobs --model lenet5 --since 7d --sort -accuracy\n" +
			"   disdel jobs --label team=vision --columns name,status,accuracy,training.batchSize\n" +
			"   disdel jobs --where 'accuracy > 0.9 and tag:lenet'\n" +
			"   disdel jobs --batch @last\n   disdel jobs show @last\n   disdel jobs cancel small",
		Flags: jobsFlags(),
		Subcommands: slices.Concat([]*cli.Command{historyShow(u)}, jobSubcommands(u), []*cli.Command{
			historyDelete(u), historyRepair(u), historyExport(u), historyPrune(u),
		}),
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return unknownJobCommand(c)
			}
			return listJobs(c, u)
		},
	}
	again := &cli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: list.Usage, Flags: jobsFlags(), Hidden: true, Action: list.Action,
	}
	list.Subcommands = append(list.Subcommands, again)
	return list
}

// unknownJobCommand is the error for a word after jobs that is no command; it may be a job.
func unknownJobCommand(c *cli.Context) error {
	word := c.Args().First()
	out := disdel.AsError(unknownCommand(c.Command.Subcommands, c.Command.HelpName, word))
	if out.Hint == c.Command.HelpName+" --help" {
		out.Hint = fmt.Sprintf("disdel jobs show %s shows a job; disdel jobs --help lists the commands",
			addresses.Quote(word))
	}
	return out
}

// jobStates are the states that lists of jobs are filtered by.
var jobStates = []string{"queued", "running", "paused", "succeeded", "failed", "canceled"}

// jobsFlags are the flags of the list of jobs.
func jobsFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "limit", Usage: "largest `NUMBER` of lines", Value: 20},
		&cli.StringFlag{
			Name: "sort", Usage: "sort by this `COLUMN`, smallest first; -COLUMN: largest first (default: newest first)",
		},
		&cli.StringFlag{
			Name: "columns", Usage: "`NAMES` of columns with commas between: " + strings.Join(render.JobColumns(), ", ") +
				", or fields such as training.batchSize",
		},
		&cli.StringFlag{Name: "model", Usage: "only jobs of this network or output model `NAME`"},
		&cli.StringFlag{Name: "dataset", Usage: "only jobs on this data set `NAME`"},
		&cli.StringFlag{
			Name: "status", Usage: "only jobs in this `STATE`: " + strings.Join(jobStates, ", "),
		},
		&cli.StringSliceFlag{
			Name: "label", Aliases: []string{"l"}, Usage: "only jobs whose job file has this label, `KEY=VALUE` (repeatable)",
		},
		&cli.StringFlag{Name: "tag", Usage: "only jobs with this `TAG`, see disdel jobs tag"},
		&cli.StringFlag{Name: "batch", Usage: "only jobs of the batch with this `ID`; @last: of the newest one"},
		&cli.StringFlag{
			Name: "where", Usage: "only jobs that a `FILTER` in words selects: accuracy > 0.9 and tag:lenet and finished < 7d",
		},
		&cli.StringFlag{Name: "since", Usage: "only jobs of the last `TIME`, for example 90m, 12h, 7d or 2w"},
		&cli.StringFlag{Name: "before", Usage: "only jobs older than job `ID`: the next page"},
	}
}

// filtered says whether a flag leaves jobs out of the list.
func filtered(c *cli.Context) bool {
	return slices.ContainsFunc([]string{"model", "dataset", "status", "label", "tag", "batch", "since", "before", "where"},
		c.IsSet)
}

// listJobs prints the jobs that the flags select.
func listJobs(c *cli.Context, u *ui) error {
	f, err := jobFilterOf(c)
	if err != nil {
		return err
	}
	f.fold = u.Format == "table" && f.sort == "" && f.batch == ""
	return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
		remarks, err := f.remarks(ctx, at.Records)
		if err != nil {
			return err
		}
		list := render.JobList{
			Columns: f.columns, Status: statusText(ctx, c, at.Records), Now: time.Now(), Filtered: filtered(c),
			Tags: func(id disdel.JobID) []string { return remarks[id].Tags },
		}
		if err := f.fill(ctx, &list, at.Records, remarks); err != nil {
			return err
		}
		if f.batch != "" && f.columns == nil {
			list.Columns = render.BatchColumns(list.Records)
		}
		return u.Show(list.Records, func(w io.Writer) { render.PrintJobs(w, &list) })
	})
}

// jobFilter is what the flags of jobs select, and in which order.
type jobFilter struct {
	query   history.Query
	limit   int
	labels  map[string]string
	tag     string
	batch   string
	sort    string
	columns []string
	fold    bool // the jobs of a batch count as one line
}

// jobFilterOf reads the flags of jobs.
func jobFilterOf(c *cli.Context) (f jobFilter, err error) {
	f = jobFilter{
		limit: c.Int("limit"), tag: c.String("tag"), batch: c.String("batch"), sort: c.String("sort"),
		labels: map[string]string{},
	}
	if f.query, err = historyQuery(c); err != nil {
		return f, err
	}
	if f.batch != "" && !c.IsSet("limit") {
		f.limit = mostJobs
	}
	for _, text := range c.StringSlice("label") {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return f, &disdel.Error{
				Kind: disdel.Invalid, Msg: fmt.Sprintf("--label %q is not KEY=VALUE", text),
				Hint: "write a label of the job file, for example --label team=vision",
			}
		}
		f.labels[key] = value
	}
	if f.sort != "" {
		if err := render.CheckJobColumn("--sort", strings.TrimPrefix(f.sort, "-")); err != nil {
			return f, err
		}
	}
	if text := c.String("columns"); text != "" {
		for name := range strings.SplitSeq(text, ",") {
			name = strings.TrimSpace(name)
			if err := render.CheckJobColumn("--columns", name); err != nil {
				return f, err
			}
			f.columns = append(f.columns, name)
		}
	}
	return f, nil
}

// remarks reads the tags of jobs if the list needs them.
func (f *jobFilter) remarks(ctx context.Context, from client.Records) (map[disdel.JobID]history.Remark, error) {
	if f.tag == "" && !slices.Contains(f.columns, "tags") && strings.TrimPrefix(f.sort, "-") != "tags" {
		return nil, nil
	}
	return from.Remarks(ctx)
}

// fill adds the selected jobs to a list.
func (f *jobFilter) fill(ctx context.Context, list *render.JobList, from client.Records,
	remarks map[disdel.JobID]history.Remark,
) error {
	list.Records = []disdel.Record{}
	lines := map[string]bool{} // ids of jobs and of batches
	all := eachRecord(ctx, from, f.query)
	if f.tag != "" {
		all = taggedRecords(ctx, from, remarks, f)
	}
	for r, err := range all {
		if err != nil {
			return err
		}
		if !f.matches(r) {
			continue
		}
		line := string(r.ID)
		if name := r.Job.Metadata.Labels[disdel.BatchLabel]; f.fold && name != "" {
			line = name
		}
		if f.sort == "" && !lines[line] && len(lines) == f.limit {
			break
		}
		lines[line] = true
		list.Records = append(list.Records, *r)
		if f.sort == "" && len(lines) == f.limit && line == string(r.ID) {
			break
		}
		if f.sort != "" && len(list.Records) >= 2*f.limit { // which bounds the memory of long histories
			f.order(list)
		}
	}
	if f.sort != "" {
		f.order(list)
	}
	if f.fold {
		list.Batches = batchesOf(list.Records)
	}
	return nil
}

// order sorts a list and cuts it at the limit.
func (f *jobFilter) order(list *render.JobList) {
	list.SortJobs(f.sort)
	list.Records = list.Records[:min(len(list.Records), f.limit)]
}

// matches says whether a job has the labels of the filter, and belongs to its batch. The first batch that it meets
// becomes @last.
func (f *jobFilter) matches(r *disdel.Record) bool {
	labels := r.Job.Metadata.Labels
	for key, value := range f.labels {
		if has, ok := labels[key]; !ok || has != value {
			return false
		}
	}
	name := labels[disdel.BatchLabel]
	if f.batch == "@last" && name != "" {
		f.batch = name
	}
	return f.batch == "" || name != "" && strings.HasPrefix(name, f.batch)
}

// batchesOf sorts the jobs of a list by their batches.
func batchesOf(list []disdel.Record) map[string][]*disdel.Record {
	out := map[string][]*disdel.Record{}
	for i := range list {
		if name := list[i].Job.Metadata.Labels[disdel.BatchLabel]; name != "" {
			out[name] = append(out[name], &list[i])
		}
	}
	return out
}

// recordsPage is how many records a page of eachRecord has at least.
const recordsPage = 50

// eachRecord yields all jobs of a query, newest first, page by page: its limit only sets the size of a page.
func eachRecord(ctx context.Context, from client.Records, q history.Query) iter.Seq2[*disdel.Record, error] {
	return func(yield func(*disdel.Record, error) bool) {
		for {
			list, err := from.List(ctx, q)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range list {
				if !yield(&list[i], nil) {
					return
				}
			}
			if len(list) < q.Limit {
				return
			}
			q.Before, q.Limit = list[len(list)-1].ID, max(q.Limit, recordsPage)
		}
	}
}

// taggedRecords yields the jobs of a filter that have its tag, newest first.
func taggedRecords(ctx context.Context, from client.Records, remarks map[disdel.JobID]history.Remark,
	f *jobFilter,
) iter.Seq2[*disdel.Record, error] {
	var ids []disdel.JobID
	for id, r := range remarks {
		if slices.Contains(r.Tags, f.tag) && (f.query.Before == "" || id < f.query.Before) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return func(yield func(*disdel.Record, error) bool) {
		for _, id := range slices.Backward(ids) {
			r, err := from.Get(ctx, string(id))
			unread := err != nil && disdel.AsError(err).Code == disdel.CodeUnreadable
			if err != nil && disdel.KindOf(err) != disdel.NotFound && !unread {
				yield(nil, err)
				return
			}
			if err == nil && f.query.Selects(&r, remarks[id].Tags) && !yield(&r, nil) {
				return
			}
		}
	}
}

// historyQuery reads those flags of jobs that the history answers.
func historyQuery(c *cli.Context) (history.Query, error) {
	q := history.Query{Limit: c.Int("limit"), Model: c.String("model"), Dataset: c.String("dataset")}
	if text := c.String("since"); text != "" {
		d, err := parseAgo(text)
		if err != nil {
			return q, err
		}
		q.Since = time.Now().Add(-d)
	}
	if text := c.String("status"); text != "" {
		if q.Status.UnmarshalText([]byte(text)); q.Status == disdel.StatusUnknown { //nolint:errcheck // the zero value tells
			return q, &disdel.Error{
				Kind: disdel.Invalid, Msg: fmt.Sprintf("there is no state %q", text),
				Hint: "use " + strings.Join(jobStates, ", "),
			}
		}
	}
	where, err := history.ParseFilter(c.String("where"))
	if err != nil {
		return q, err
	}
	q.Where = where
	if q.Before = disdel.JobID(c.String("before")); q.Before != "" && !q.Before.Valid() {
		return q, &disdel.Error{
			Kind: disdel.Invalid, Msg: fmt.Sprintf("--before %.80q is no job's id", c.String("before")),
			Hint: "give it the last id of the list before",
		}
	}
	if q.Limit < 1 {
		return q, &disdel.Error{Kind: disdel.Invalid, Msg: "--limit must be at least 1"}
	}
	return q, nil
}

// statusText returns a function that says the status of a job. For a job that runs by its record, it asks who holds the
// lease. A history that others share may have jobs of versions without leases.
func statusText(ctx context.Context, c *cli.Context, records client.Records) func(*disdel.Record) string {
	known := map[disdel.JobID]string{}
	return func(r *disdel.Record) string {
		if !r.Status.Unfinished() {
			return r.Status.String()
		}
		if known[r.ID] == "" {
			known[r.ID] = r.Status.String()
			who, runs, err := records.Runner(ctx, r.ID)
			if err == nil && !runs && (who.Known || c.String("couchdb") == "") {
				known[r.ID] = "stopped (resume)"
			}
		}
		return known[r.ID]
	}
}

// longUnits are units of time that Go's durations lack.
var longUnits = map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour}

// mostUnits is more than any history is old, and fits a duration.
const mostUnits = 10_000

// parseAgo reads a duration in Go's syntax, or in days or weeks.
func parseAgo(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	for unit, length := range longUnits {
		if number, ok := strings.CutSuffix(text, unit); ok {
			var n float64
			n, err = strconv.ParseFloat(number, 64)
			d = time.Duration(min(n, mostUnits) * float64(length))
		}
	}
	if err != nil || d <= 0 {
		return 0, &disdel.Error{
			Kind: disdel.Invalid, Msg: fmt.Sprintf("%q is not a duration", text),
			Hint: "write a time such as 90m, 12h, 7d or 2w",
		}
	}
	return d, nil
}
