package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/terminal"
)

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
		Name: "prune", Hidden: true, Usage: "delete records of old jobs, and weights that were sent with jobs",
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
	for r, err := range eachRecord(ctx, records, history.Query{Limit: mostJobs}) {
		if err != nil {
			return err
		}
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
	return nil
}
