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
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/platform/local"
)

func historyCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "history", Usage: "list, show and delete jobs that have ended",
		Description: "   disdel history --model lenet5 --limit 5\n   disdel history show @last",
		Flags:       HistoryFlags(),
		Subcommands: []*cli.Command{
			historyShow(u), historyExport(u), historyRepair(u),
			HistoryDeleteCommand(u, reading(u, records)),
			HistoryPruneCommand(u, reading(u, records|storage)),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return NeedSubcommand(c)
			}
			q, err := HistoryQuery(c)
			if err != nil {
				return err
			}
			return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
				list, err := History(ctx, c, at.Records, q)
				if err != nil {
					return err
				}
				return u.Show(list, func(w io.Writer) {
					render.PrintHistory(w, list, Standing(ctx, c, at.Records))
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
			if err := Operands(c, 1, 1); err != nil {
				return err
			}
			return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
				r, err := at.Records.Get(ctx, c.Args().First())
				if err != nil {
					return err
				}
				who, runs, _ := at.Records.Runner(ctx, r.ID) // where nobody can tell, the record has to do
				said, _ := at.Records.Remarks(ctx)
				place := PlaceOfJob(c, &r)
				return u.Show(r, func(w io.Writer) {
					render.PrintPlan(w, &r)
					for _, round := range r.Rounds {
						fmt.Fprintln(w, render.RoundLine(round, r.Plan.Rounds))
					}
					render.PrintRecord(w, &r)
					PrintRemark(w, said[r.ID])
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
			if err := Operands(c, 0, 0); err != nil {
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
