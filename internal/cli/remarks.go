package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/terminal"
)

// remarkDocument is what tag and note say with -o json.
type remarkDocument struct {
	Job disdel.JobID `json:"job"`
	history.Remark
}

// RemarkCommands are the subcommands of job that say something of one.
func RemarkCommands(u *terminal.UI, from Reading) []*cli.Command {
	return []*cli.Command{
		{
			Name: "tag", Usage: "add tags to a job, for disdel history --tag", ArgsUsage: "JOB TAG...",
			Description: "JOB is an id, the start of an id, a name or @last. You can tag running jobs.\n\n" +
				"   disdel job tag @last paper baseline\n   disdel job tag @last --remove baseline",
			Flags: []cli.Flag{&cli.BoolFlag{Name: "remove", Usage: "remove the tags"}},
			Action: func(c *cli.Context) error {
				if err := Operands(c, 2, mostJobs); err != nil {
					return err
				}
				return remark(c, u, from, func(r *history.Remark) {
					for _, tag := range c.Args().Tail() {
						r.Tags = slices.DeleteFunc(r.Tags, func(t string) bool { return t == tag })
						if !c.Bool("remove") {
							r.Tags = append(r.Tags, tag)
						}
					}
				})
			},
		},
		{
			Name: "note", Usage: "attach a note to a job", ArgsUsage: "JOB TEXT",
			Description: "An empty TEXT removes the note.\n\n   disdel job note @last 'dropout helps'",
			Action: func(c *cli.Context) error {
				if err := Operands(c, 2, 2); err != nil {
					return err
				}
				return remark(c, u, from, func(r *history.Remark) { r.Text = c.Args().Get(1) })
			},
		},
	}
}

// remark changes what is said of the job that a command names.
func remark(c *cli.Context, u *terminal.UI, from Reading, change func(r *history.Remark)) error {
	return from(c, func(ctx context.Context, at client.Client) error {
		rec, err := at.Records.Get(ctx, c.Args().First())
		if err != nil {
			return err
		}
		all, err := at.Records.Remarks(ctx)
		if err != nil {
			return err
		}
		doc := remarkDocument{rec.ID, all[rec.ID]}
		change(&doc.Remark)
		slices.Sort(doc.Tags)
		if err := at.Records.SetRemark(ctx, rec.ID, doc.Remark); err != nil {
			return err
		}
		return u.Show(doc, func(w io.Writer) { printRemark(w, rec.ID, doc.Remark) })
	})
}

func printRemark(w io.Writer, id disdel.JobID, r history.Remark) {
	if len(r.Tags) == 0 && r.Text == "" {
		fmt.Fprintf(w, "%s has neither tags nor a note\n", id)
		return
	}
	fmt.Fprintln(w, id)
	PrintRemark(w, r)
}

// PrintRemark is what was said of a job, a line each.
func PrintRemark(w io.Writer, r history.Remark) {
	if len(r.Tags) > 0 {
		fmt.Fprintf(w, "tags      %s\n", strings.Join(r.Tags, " "))
	}
	if r.Text != "" {
		fmt.Fprintf(w, "note      %s\n", terminal.OneLine(r.Text))
	}
}

// HistoryFlags are those of history.
func HistoryFlags() []cli.Flag {
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

// History is the jobs that the flags of history ask for.
func History(ctx context.Context, c *cli.Context, records client.Records, q history.Query) ([]disdel.Record, error) {
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
		if err == nil && asked(&r, q) {
			out = append(out, r)
		}
		if len(out) == q.Limit {
			break
		}
	}
	return out, nil
}

// asked says whether a query's conditions let a job through.
func asked(r *disdel.Record, q history.Query) bool {
	return (q.Status == disdel.StatusUnknown || r.Status == q.Status) && (q.Dataset == "" || r.Data.Name == q.Dataset) &&
		(q.Model == "" || r.Job.Model.Name == q.Model || r.Job.Output.Model == q.Model) && !r.Created.Before(q.Since)
}

// prunedDocument is what `history prune` says with -o json.
type prunedDocument struct {
	Jobs    []disdel.JobID    `json:"jobs"`
	Weights []modelstore.Kept `json:"weights,omitempty"` // files that no job can begin with any more
	DryRun  bool              `json:"dryRun,omitempty"`

	needed map[string]bool // weights that jobs name which have not succeeded
}

// HistoryPruneCommand deletes the records of jobs that nobody asks for any more.
func HistoryPruneCommand(u *terminal.UI, from Reading) *cli.Command {
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
			if err := Operands(c, 0, 0); err != nil {
				return err
			}
			if c.String("older") == "" {
				return NeedsFlag(c, "--older TIME")
			}
			ago, err := ParseAgo(c.String("older"))
			if err != nil {
				return err
			}
			return from(c, func(ctx context.Context, at client.Client) error {
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

// pruneWeights deletes files of weights that were sent before a moment and that no job is to begin with again. Jobs
// that have begun have copies.
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

// prune deletes the records of jobs that were submitted before a moment, have ended, and that nobody has said anything
// of.
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
