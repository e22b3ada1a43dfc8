package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/platform/local"
)

func historyShow(u *ui) *cli.Command {
	return &cli.Command{
		Name: "show", Aliases: []string{"describe", "get"}, Usage: "show a job", ArgsUsage: "JOB",
		Description: "JOB is an id, the start of an id, a name or @last.\n\n   disdel jobs show @last -o json",
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
				remarks, _ := at.Records.Remarks(ctx)
				place := placeOfJob(c, &r)
				return u.Show(r, func(w io.Writer) {
					render.PrintPlan(w, &r)
					for _, round := range r.Rounds {
						fmt.Fprintln(w, render.RoundLine(round, r.Plan.Rounds))
					}
					render.PrintRecord(w, &r)
					printRemarkLines(w, remarks[r.ID])
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
				fmt.Fprintf(w, "%s kept; the file as it was is %s\n", disdel.Counted(done.Kept, "record"), done.Aside)
			})
		},
	}
}

// repairedDocument is what `history repair` says with -o json.
type repairedDocument struct {
	Kept  int    `json:"kept"`  // records
	Aside string `json:"aside"` // the file as it was
}

// deletedDocument is what `history delete` prints with -o json.
type deletedDocument struct {
	Job disdel.JobID `json:"job"`
}

// historyDelete deletes the record of one job, also if this version cannot read it.
func historyDelete(u *ui) *cli.Command {
	return &cli.Command{
		Name: "delete", Aliases: []string{"rm", "remove"}, Usage: "delete the record of an ended job", ArgsUsage: "JOB",
		Description: "JOB is an id, the start of an id, a name or @last. Its checkpoints go, too; the model stays. " +
			"For an unreadable record,\ngive the whole id. On a terminal disdel asks first.\n\n   disdel jobs delete @last",
		Flags: []cli.Flag{yesFlag},
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
				id, err := deletableRecord(ctx, at.Records, c.Args().First())
				if err == nil {
					err = u.Confirm(fmt.Sprintf("Delete the record of the job %s (%s)?", c.Args().First(), id), c.Bool("yes"))
				}
				if err == nil {
					err = at.Records.Forget(ctx, id)
				}
				if err != nil {
					return err
				}
				return u.Show(deletedDocument{id}, func(w io.Writer) { fmt.Fprintf(w, "%s: record deleted\n", id) })
			})
		},
	}
}

// deletableRecord is the id of a job. A whole id needs no record that can be read.
func deletableRecord(ctx context.Context, records client.Records, job string) (disdel.JobID, error) {
	if id := disdel.JobID(job); id.Valid() {
		return id, nil
	}
	r, err := records.Get(ctx, job)
	return r.ID, err
}

func historyExport(u *ui) *cli.Command {
	return &cli.Command{
		Name: "export", Hidden: true, Usage: "write the steps of a job in another program's format", ArgsUsage: "JOB",
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
				return writeMLLess(u, c.String("mlless"), &r)
			})
		},
	}
}
