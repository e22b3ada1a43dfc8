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
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/service"
)

// usuallyPruned are the kinds that prune deletes if its user names none: what nobody made by hand.
var usuallyPruned = []service.StoredKind{
	service.StoredCheckpoints, service.StoredWeights, service.StoredPrograms, service.StoredEnvironments,
	service.StoredAnswers, service.StoredLogs,
}

// prunable are all kinds that prune deletes.
var prunable = append(slices.Clone(usuallyPruned), service.StoredModels, service.StoredData, service.StoredJobs)

var yesFlag = &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "ask nothing"}

// usedDocument is what `du` prints with -o json.
type usedDocument struct {
	Items []service.StoredItem `json:"items"`
	Size  disdel.Bytes         `json:"sizeBytes"`
}

// usageCommand shows what takes space.
func usageCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "du", Usage: "show what takes space: data sets, models, checkpoints, logs and caches", ArgsUsage: " ",
		Description: "KEPT says why disdel prune does not delete something. In a home, and for a server's operator, the items\n" +
			"of tenants are listed as TENANT/NAME.\n\n   disdel du\n   disdel du -o json",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 0); err != nil {
				return err
			}
			return withClient(c, u, storage|records, func(ctx context.Context, at client.Client) error {
				items, err := at.Records.Stored(ctx)
				if err != nil {
					return err
				}
				doc := usedDocument{append([]service.StoredItem{}, items...), sizeOf(items)}
				return u.Show(doc, func(w io.Writer) {
					render.PrintStored(w, items, time.Now())
					render.PrintStoredKinds(w, items)
				})
			})
		},
	}
}

func sizeOf(items []service.StoredItem) (all disdel.Bytes) {
	for i := range items {
		all += items[i].Size
	}
	return all
}

// cleanedDocument is what `prune` prints with -o json.
type cleanedDocument struct {
	Items  []service.StoredItem `json:"items"`
	Size   disdel.Bytes         `json:"sizeBytes"`
	DryRun bool                 `json:"dryRun,omitempty"`
}

// pruneCommand deletes what nothing needs.
func pruneCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "prune", Usage: "delete checkpoints, logs and caches that nothing needs; models, data or jobs if you name them",
		ArgsUsage: "[KIND...]",
		Description: "KIND is " + kindNames(prunable) + ". Without KIND: " + kindNames(usuallyPruned) + ".\n\n" +
			"What a queued, running or paused job needs always stays. Of models, the newest version, the best version and\n" +
			"versions with tags stay. Of data sets, those that a model was trained on stay. Of jobs, those with tags or\n" +
			"notes stay. A job whose checkpoints are deleted cannot be resumed. disdel lists the items and asks before it\n" +
			"deletes. Off a terminal it deletes only with --yes.\n\n" +
			"   disdel prune --dry-run\n   disdel prune checkpoints --older 7d\n   disdel prune models data --yes\n" +
			"   disdel prune jobs --older 90d",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "older", Usage: "only what was written more than `TIME` ago, for example 12h or 30d"},
			&cli.BoolFlag{Name: "dry-run", Usage: "list it without deleting"}, yesFlag,
		},
		Action: func(c *cli.Context) error {
			kinds, before, err := prunedKinds(c)
			if err != nil {
				return err
			}
			return withClient(c, u, storage|records, func(ctx context.Context, at client.Client) error {
				items, err := unneeded(ctx, at.Records, kinds, before)
				if err != nil {
					return err
				}
				return prune(ctx, c, u, at.Records, items)
			})
		},
	}
}

func kindNames(kinds []service.StoredKind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// prunedKinds reads the operands of prune, and the time of --older.
func prunedKinds(c *cli.Context) (kinds []service.StoredKind, before time.Time, err error) {
	before = time.Now()
	if text := c.String("older"); text != "" {
		ago, err := parseAgo(text)
		if err != nil {
			return nil, before, err
		}
		before = before.Add(-ago)
	}
	for _, name := range c.Args().Slice() {
		kind := service.StoredKind(name)
		if !slices.Contains(prunable, kind) {
			return nil, before, &disdel.Error{
				Kind: disdel.Invalid, Msg: fmt.Sprintf("prune deletes no %q", name), Hint: "use " + kindNames(prunable),
			}
		}
		kinds = append(kinds, kind)
	}
	if kinds == nil {
		kinds = usuallyPruned
	}
	if slices.Contains(kinds, service.StoredJobs) && !c.IsSet("older") {
		return nil, before, missingFlag(c, "--older TIME")
	}
	return kinds, before, nil
}

// unneeded lists what prune deletes of these kinds: what was written before a time and nothing needs. The items of
// tenants are theirs.
func unneeded(ctx context.Context, records client.Records, kinds []service.StoredKind, before time.Time) (
	out []service.StoredItem, err error,
) {
	items, err := records.Stored(ctx)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if slices.Contains(kinds, item.Kind) && item.Tenant == "" && item.Kept == "" && item.Written.Before(before) {
			out = append(out, item)
		}
	}
	if !slices.Contains(kinds, service.StoredJobs) {
		return out, nil
	}
	found := prunedDocument{needed: map[string]bool{}}
	if err := found.find(ctx, records, before); err != nil {
		return nil, err
	}
	return append(out, found.items...), nil
}

// prune shows items, asks, and deletes them.
func prune(ctx context.Context, c *cli.Context, u *ui, records client.Records, items []service.StoredItem) error {
	doc := cleanedDocument{append([]service.StoredItem{}, items...), sizeOf(items), c.Bool("dry-run")}
	done := fmt.Sprintf("%s, %v", disdel.Counted(len(items), "item"), doc.Size)
	print := func(verb string) func(w io.Writer) {
		return func(w io.Writer) {
			render.PrintStored(w, doc.Items, time.Now())
			fmt.Fprintf(w, "%s %s, %v\n", verb, disdel.Counted(len(doc.Items), "item"), doc.Size)
		}
	}
	switch {
	case len(items) == 0:
		return u.Show(doc, func(w io.Writer) { fmt.Fprintln(w, "there is nothing to delete") })
	case doc.DryRun:
		return u.Show(doc, print("would delete"))
	case !u.Interactive() && !c.Bool("yes"):
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "prune", Msg: done + " would be deleted, and there is no terminal to ask on",
			Hint: "add --yes, or --dry-run to list them",
		}
	case !c.Bool("yes"):
		u.Tell(func(w io.Writer) { render.PrintStored(w, items, time.Now()) })
	}
	if err := u.Confirm("Delete "+done+"?", c.Bool("yes")); err != nil {
		return err
	}
	n, err := records.RemoveStored(ctx, items)
	doc.Items, doc.Size = doc.Items[:n], sizeOf(items[:n])
	return errors.Join(u.Show(doc, print("deleted")), err)
}

// prunedDocument is what `history prune` prints with -o json.
type prunedDocument struct {
	Jobs    []disdel.JobID             `json:"jobs"`
	Weights []modelstore.StoredWeights `json:"weights,omitempty"` // files that no job can begin with any more
	DryRun  bool                       `json:"dryRun,omitempty"`

	needed map[string]bool // weights that jobs name which have not succeeded
	items  []service.StoredItem
}

// historyPrune deletes old records and weights.
func historyPrune(u *ui) *cli.Command {
	return &cli.Command{
		Name: "prune", Hidden: true, Usage: "delete records of old jobs, and weights that were sent with jobs",
		ArgsUsage: " ",
		Description: "Keeps jobs with tags or notes, and all models. Also deletes weights (sha256:...) of that age, unless " +
			"a job\nthat has not succeeded names them. Plans and forecasts then learn from fewer jobs.\n\n" +
			"   disdel jobs prune --older 90d --dry-run",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "older", Usage: "only jobs submitted more than `TIME` ago, for example 12h, 90d or 52w"},
			&cli.BoolFlag{Name: "dry-run", Usage: "list them without deleting"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "ask nothing, which it never does"},
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
	fmt.Fprintf(w, "%s: %s\n", disdel.Counted(len(d.Jobs), "record"), done)
	if len(d.Weights) == 0 {
		return
	}
	for _, k := range d.Weights {
		fmt.Fprintf(w, "%s  %v\n", k.Ref, k.Size)
	}
	fmt.Fprintf(w, "%s of weights: %s\n", disdel.Counted(len(d.Weights), "file"), done)
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

// prune finds records, and deletes them.
func (d *prunedDocument) prune(ctx context.Context, records client.Records, before time.Time) error {
	if err := d.find(ctx, records, before); err != nil || d.DryRun {
		return err
	}
	gone, err := records.RemoveStored(ctx, d.items)
	d.Jobs = d.Jobs[:gone]
	return err
}

// find adds the ended jobs that were submitted before a time and have neither tags nor a note.
func (d *prunedDocument) find(ctx context.Context, records client.Records, before time.Time) error {
	remarks, err := records.Remarks(ctx)
	if err != nil {
		return err
	}
	for r, err := range eachRecord(ctx, records, history.Query{Limit: mostJobs}) {
		if err != nil {
			return err
		}
		if _, hasRemark := remarks[r.ID]; hasRemark || r.Status < disdel.StatusSucceeded || !r.Created.Before(before) {
			if r.Status != disdel.StatusSucceeded {
				d.needed[r.Job.Model.Init.Weights] = true
			}
			continue
		}
		d.Jobs = append(d.Jobs, r.ID)
		d.items = append(d.items, service.StoredItem{
			Kind: service.StoredJobs, Name: r.Job.Metadata.Name, Job: r.ID, Written: r.Created,
		})
	}
	return nil
}
