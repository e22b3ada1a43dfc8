package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/platform/local"
)

func historyCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "history", Usage: "list, show and delete jobs that have ended",
		Description: "   disdel history --model lenet5 --limit 5\n   disdel history show @last",
		Flags:       historyFlags(),
		Subcommands: []*cli.Command{
			historyShow(u), historyExport(u), historyRepair(u),
			historyDelete(u), historyPrune(u),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return needSubcommand(c)
			}
			q, err := historyQuery(c)
			if err != nil {
				return err
			}
			return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
				list, err := listHistory(ctx, c, at.Records, q)
				if err != nil {
					return err
				}
				return u.Show(list, func(w io.Writer) {
					render.PrintHistory(w, list, statusText(ctx, c, at.Records))
				})
			})
		},
	}
}

func historyShow(u *ui) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show a job", ArgsUsage: "JOB",
		Description: "JOB is an id, the start of an id, a name or @last.\n\n   disdel history show @last -o json",
		Flags:       []cli.Flag{&cli.BoolFlag{Name: "logs", Usage: "also show the logs of failed activations"}},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
				r, err := at.Records.Get(ctx, c.Args().First())
				if err != nil {
					return err
				}
				who, runs, _ := at.Records.Runner(ctx, r.ID) // where nobody can tell, the record has to do
				said, _ := at.Records.Remarks(ctx)
				place := placeOfJob(c, &r)
				return u.Show(r, func(w io.Writer) {
					render.PrintPlan(w, &r)
					for _, round := range r.Rounds {
						fmt.Fprintln(w, render.RoundLine(round, r.Plan.Rounds))
					}
					render.PrintRecord(w, &r)
					printRemarkLines(w, said[r.ID])
					render.PrintFailure(w, &r, place, c.Bool("logs"))
					render.PrintNext(w, &r, place, who, runs)
				})
			})
		},
	}
}

func historyRepair(u *ui) *cli.Command {
	return &cli.Command{
		Name: "repair", Usage: "rebuild a damaged history from its readable records",
		Description: "Keeps the newest readable state of every record of the history in --home. The damaged file stays " +
			"beside the new one.",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 0); err != nil {
				return err
			}
			if c.String("couchdb") != "" {
				return &disdel.Error{
					Kind: disdel.Invalid, Msg: "disdel cannot repair the history of a CouchDB server",
					Hint: "leave out --couchdb to repair the history of --home",
				}
			}
			dir, err := home(c)
			if err != nil {
				return err
			}
			done, err := couchlite.Repair(local.HistoryFile(dir), history.Database)
			if err != nil {
				return err
			}
			return u.Show(repairedDocument{done.Kept, done.Aside}, func(w io.Writer) {
				fmt.Fprintf(w, "%s kept; the file as it was is %s\n", terminal.Counted(done.Kept, "record"), done.Aside)
			})
		},
	}
}

// repairedDocument is what `history repair` says with -o json.
type repairedDocument struct {
	Kept  int    `json:"kept"`  // records
	Aside string `json:"aside"` // the file as it was
}

// historyQuery reads the flags of history.
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
				Hint: "use queued, running, paused, succeeded, failed or canceled",
			}
		}
	}
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
	return func(r *disdel.Record) string {
		if !r.Status.Unfinished() {
			return r.Status.String()
		}
		who, runs, err := records.Runner(ctx, r.ID)
		if err == nil && !runs && (who.Known || c.String("couchdb") == "") {
			return "stopped (resume)"
		}
		return r.Status.String()
	}
}

// deletedDocument is what `history delete` prints with -o json.
type deletedDocument struct {
	Job disdel.JobID `json:"job"`
}

// historyDelete deletes the record of one job, also if this version cannot read it.
func historyDelete(u *ui) *cli.Command {
	return &cli.Command{
		Name: "delete", Usage: "delete the record of an ended job", ArgsUsage: "JOB",
		Description: "JOB is an id, the start of an id, a name or @last. The model stays. For an unreadable record, " +
			"give\nthe whole id.\n\n   disdel history delete @last",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
				id, err := deleteRecord(ctx, at.Records, c.Args().First())
				if err != nil {
					return err
				}
				return u.Show(deletedDocument{id}, func(w io.Writer) { fmt.Fprintf(w, "%s: record deleted\n", id) })
			})
		},
	}
}

func deleteRecord(ctx context.Context, records client.Records, job string) (disdel.JobID, error) {
	id := disdel.JobID(job)
	if !id.Valid() { // a whole id needs no record that can be read
		r, err := records.Get(ctx, job)
		if err != nil {
			return "", err
		}
		id = r.ID
	}
	return id, records.Forget(ctx, id)
}

func historyExport(u *ui) *cli.Command {
	return &cli.Command{
		Name: "export", Usage: "write the steps of a job in another program's format", ArgsUsage: "JOB",
		Description: "JOB is an id, the start of an id, a name or @last.\n\n" +
			"   disdel history export @last --mlless films",
		Flags: []cli.Flag{&cli.StringFlag{Name: "mlless", Usage: "write MLLess files, with this file name `PREFIX`"}},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			if c.String("mlless") == "" {
				return missingFlag(c, "--mlless PREFIX")
			}
			return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
				r, err := at.Records.Get(ctx, c.Args().First())
				if err != nil {
					return err
				}
				doc, err := export.WriteMLLess(c.String("mlless"), &r)
				if err != nil {
					return err
				}
				return u.Show(doc, func(w io.Writer) { fmt.Fprintln(w, strings.Join(doc.Files, "\n")) })
			})
		},
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
			Kind: disdel.Invalid, Msg: fmt.Sprintf("%q is no time that has passed", text),
			Hint: "write a time such as 90m, 12h, 7d or 2w",
		}
	}
	return d, nil
}

// historyFlags are the flags of history.
func historyFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "limit", Usage: "`NUMBER` of jobs", Value: 20},
		&cli.StringFlag{Name: "model", Usage: "only jobs of this network or output model `NAME`"},
		&cli.StringFlag{Name: "dataset", Usage: "only jobs on this data set `NAME`"},
		&cli.StringFlag{
			Name: "status", Usage: "only jobs in this `STATE`: queued, running, paused, succeeded, failed or canceled",
		},
		&cli.StringFlag{Name: "before", Usage: "only jobs older than job `ID`: the next page"},
		&cli.StringFlag{Name: "since", Usage: "only jobs of the last `TIME`, for example 90m, 12h, 7d or 2w"},
		&cli.StringFlag{Name: "tag", Usage: "only jobs with this `TAG`, see disdel job tag"},
	}
}

// listHistory is the jobs that match the flags of history.
func listHistory(ctx context.Context, c *cli.Context, records client.Records, q history.Query) ([]disdel.Record,
	error,
) {
	tag := c.String("tag")
	if tag == "" {
		return records.List(ctx, q)
	}
	remarks, err := records.Remarks(ctx)
	if err != nil {
		return nil, err
	}
	var ids []disdel.JobID
	for id, r := range remarks {
		if slices.Contains(r.Tags, tag) && (q.Before == "" || id < q.Before) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	out := []disdel.Record{}
	for _, id := range slices.Backward(ids) {
		r, err := records.Get(ctx, string(id))
		unread := err != nil && disdel.AsError(err).Code == disdel.CodeUnreadable
		if err != nil && disdel.KindOf(err) != disdel.NotFound && !unread {
			return nil, err
		}
		if err == nil && q.Selects(&r) {
			out = append(out, r)
		}
		if len(out) == q.Limit {
			break
		}
	}
	return out, nil
}

// prunedDocument is what `history prune` prints with -o json.
type prunedDocument struct {
	Jobs    []disdel.JobID             `json:"jobs"`
	Weights []modelstore.StoredWeights `json:"weights,omitempty"` // files that no job can begin with any more
	DryRun  bool                       `json:"dryRun,omitempty"`

	needed map[string]bool // weights that jobs name which have not succeeded
}

// historyPrune deletes old records and weights.
func historyPrune(u *ui) *cli.Command {
	return &cli.Command{
		Name: "prune", Usage: "delete records of old jobs, and weights that were sent with jobs",
		ArgsUsage: " ",
		Description: "Keeps jobs with tags or notes, and all models. Also deletes weights (sha256:...) of that age, unless " +
			"a job\nthat has not succeeded names them. Plans and forecasts then learn from fewer jobs.\n\n" +
			"   disdel history prune --older 90d --dry-run",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "older", Usage: "only jobs submitted more than `TIME` ago, for example 12h, 90d or 52w"},
			&cli.BoolFlag{Name: "dry-run", Usage: "list them without deleting"},
		},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 0); err != nil {
				return err
			}
			if c.String("older") == "" {
				return missingFlag(c, "--older TIME")
			}
			ago, err := parseAgo(c.String("older"))
			if err != nil {
				return err
			}
			return withClient(c, u, records|storage, func(ctx context.Context, at client.Client) error {
				doc := prunedDocument{Jobs: []disdel.JobID{}, DryRun: c.Bool("dry-run"), needed: map[string]bool{}}
				before := time.Now().Add(-ago)
				err := doc.prune(ctx, at.Records, before)
				if err == nil {
					err = doc.pruneWeights(ctx, at.Models, before)
				}
				return errors.Join(u.Show(doc, doc.print), err)
			})
		},
	}
}

func (d *prunedDocument) print(w io.Writer) {
	for _, id := range d.Jobs {
		fmt.Fprintln(w, id)
	}
	done := "deleted"
	if d.DryRun {
		done = "would be deleted"
	}
	fmt.Fprintf(w, "%s: %s\n", terminal.Counted(len(d.Jobs), "record"), done)
	if len(d.Weights) == 0 {
		return
	}
	for _, k := range d.Weights {
		fmt.Fprintf(w, "%s  %v\n", k.Ref, k.Size)
	}
	fmt.Fprintf(w, "%s of weights: %s\n", terminal.Counted(len(d.Weights), "file"), done)
}

// pruneWeights deletes weights that were sent before a time and that no unfinished job names. Jobs that have started
// have copies.
func (d *prunedDocument) pruneWeights(ctx context.Context, models client.Models, before time.Time) error {
	list, err := models.KeptWeights(ctx)
	if err != nil {
		return err
	}
	for _, k := range list {
		if d.needed[k.Ref] || k.Written.IsZero() || !k.Written.Before(before) { // zero: nobody knows when
			continue
		}
		if !d.DryRun {
			if err := models.RemoveWeights(ctx, k.Ref); err != nil && disdel.KindOf(err) != disdel.NotFound {
				return err
			}
		}
		d.Weights = append(d.Weights, k)
	}
	return nil
}

// prune deletes records of ended jobs that were submitted before a time and have neither tags nor a note.
func (d *prunedDocument) prune(ctx context.Context, records client.Records, before time.Time) error {
	remarks, err := records.Remarks(ctx)
	if err != nil {
		return err
	}
	for q := (history.Query{Limit: mostJobs}); ; {
		list, err := records.List(ctx, q)
		if err != nil {
			return err
		}
		for i := range list {
			r := &list[i]
			if _, said := remarks[r.ID]; said || r.Status < disdel.StatusSucceeded || !r.Created.Before(before) {
				if r.Status != disdel.StatusSucceeded {
					d.needed[r.Job.Model.Init.Weights] = true
				}
				continue
			}
			if !d.DryRun {
				if err := records.Forget(ctx, r.ID); err != nil && disdel.KindOf(err) != disdel.NotFound {
					return err
				}
			}
			d.Jobs = append(d.Jobs, r.ID)
		}
		if len(list) < q.Limit {
			return nil
		}
		q.Before = list[len(list)-1].ID
	}
}
