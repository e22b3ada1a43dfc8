package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
)

func historyCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "history", Usage: "list earlier jobs, or show one",
		Description: "   disdel history --model lenet5 --limit 5\n   disdel history show @last",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "limit", Usage: "`NUMBER` of jobs", Value: 20},
			&cli.StringFlag{Name: "model", Usage: "jobs of this network or output model `NAME`"},
			&cli.StringFlag{Name: "dataset", Usage: "jobs on this data set `NAME`"},
			&cli.StringFlag{Name: "status", Usage: "jobs in this `STATE`: running, succeeded, failed or canceled"},
			&cli.StringFlag{Name: "since", Usage: "jobs of the last `TIME`, such as 90m, 12h, 7d or 2w"},
		},
		Subcommands: []*cli.Command{historyShow(u), historyRepair(u)},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return needSubcommand(c)
			}
			q, err := historyQuery(c)
			if err != nil {
				return err
			}
			return withHistory(c, u, func(ctx context.Context, h *history.Store) error {
				list, err := h.List(ctx, q)
				if err != nil {
					return err
				}
				return u.show(list, func(w io.Writer) { printHistory(w, list, standing(c)) })
			})
		},
	}
}

// standing says where a job stands. Of one that its record says runs, the home's own lock knows better; a history that others
// share has jobs of other homes.
func standing(c *cli.Context) func(*disdel.Record) string {
	dir, err := home(c)
	return func(r *disdel.Record) string {
		if r.Status != disdel.StatusRunning || err != nil || c.String("couchdb") != "" {
			return r.Status.String()
		}
		if _, runs := runner(dir, r.ID); !runs {
			return "stopped (resume)"
		}
		return r.Status.String()
	}
}

func withHistory(c *cli.Context, u *ui, f func(context.Context, *history.Store) error) error {
	return withStack(c, u, func(ctx context.Context, s *stack) error {
		h, err := s.history(ctx)
		if err != nil {
			return err
		}
		return f(ctx, h)
	})
}

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
			return q, usageError{&disdel.Error{Kind: disdel.Invalid, Msg: fmt.Sprintf("there is no state %q", text), Hint: "use running, succeeded, failed or canceled"}}
		}
	}
	if q.Limit < 1 {
		return q, usageError{&disdel.Error{Kind: disdel.Invalid, Msg: "--limit must be at least 1"}}
	}
	return q, nil
}

func printHistory(w io.Writer, list []disdel.Record, standing func(*disdel.Record) string) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no jobs yet: disdel quickstart")
		return
	}
	rows := [][]string{{"JOB", "NAME", "STATUS", "CREATED", "TIME", "ROUNDS", "ACCURACY", "LOSS", "PEAK/LIMIT", "GB-S"}}
	for i := range list {
		r := &list[i]
		var peak, limit disdel.Bytes
		for _, a := range r.Activations {
			if a.Peak >= peak {
				peak, limit = a.Peak, a.Limits.Memory
			}
		}
		accuracy, loss, ok := heldOut(r)
		rows = append(rows, []string{
			string(r.ID), r.Job.Metadata.Name, statusText(r, standing(r)), r.Created.Local().Format("2006-01-02 15:04:05"), sec(r.Phases.Total),
			fmt.Sprint(len(r.Rounds)), decimals(accuracy, ok), decimals(loss, ok), fmt.Sprintf("%d/%d MB", peak.MB(), limit.MB()), fmt.Sprintf("%.1f", r.CostGBs),
		})
	}
	table(w, fitted(w, shortIDs(w, rows), "LOSS", "PEAK/LIMIT", "GB-S", "ROUNDS", "TIME", "CREATED")...)
}

// statusText is a job's status, and what there is to say against its success.
func statusText(r *disdel.Record, status string) string {
	switch {
	case r.Status != disdel.StatusSucceeded:
		return status
	case r.Unevaluated != nil:
		return status + ", not evaluated"
	case r.Learned != nil && !*r.Learned:
		return status + ", did not learn"
	default:
		return status
	}
}

func historyShow(u *ui) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show one job", ArgsUsage: "JOB",
		Description: "JOB is an id, the start of one, a job's name, or @last.\n\n   disdel history show @last -o json",
		Flags:       []cli.Flag{&cli.BoolFlag{Name: "logs", Usage: "show the log of failed activations"}},
		Action: func(c *cli.Context) error {
			if err := operands(c, 1, 1); err != nil {
				return err
			}
			dir, err := home(c)
			if err != nil {
				return err
			}
			return withHistory(c, u, func(ctx context.Context, h *history.Store) error {
				id, err := h.Resolve(ctx, c.Args().First())
				if err != nil {
					return err
				}
				r, err := h.Get(ctx, id)
				if err != nil {
					return err
				}
				return u.show(r, func(w io.Writer) {
					printPlan(w, &r)
					for _, round := range r.Rounds {
						fmt.Fprintln(w, (&follower{total: r.Plan.Rounds}).roundLine(round))
					}
					printRecord(w, &r)
					printFailure(w, &r, c.Bool("logs"))
					printNext(w, dir, &r)
				})
			})
		},
	}
}

func historyRepair(u *ui) *cli.Command {
	return &cli.Command{
		Name: "repair", Usage: "make a new history of what can be read of a damaged one",
		Description: "Takes the newest whole state of every record of the history in --home. The damaged file stays beside the new one.",
		Action: func(c *cli.Context) error {
			if err := operands(c, 0, 0); err != nil {
				return err
			}
			if c.String("couchdb") != "" {
				return usageError{&disdel.Error{Kind: disdel.Invalid, Msg: "the history on a CouchDB is not this program's to repair", Hint: "leave out --couchdb to repair that of --home"}}
			}
			dir, err := home(c)
			if err != nil {
				return err
			}
			done, err := couchlite.Repair(historyFile(dir), history.Database)
			if err != nil {
				return err
			}
			return u.show(repairedDocument{done.Kept, done.Aside}, func(w io.Writer) {
				fmt.Fprintf(w, "%s kept; the file as it was is %s\n", counted(done.Kept, "record"), done.Aside)
			})
		},
	}
}

// repairedDocument is what `history repair` says with -o json.
type repairedDocument struct {
	Kept  int    `json:"kept"`  // records
	Aside string `json:"aside"` // the file as it was
}

// printNext names the commands that help a job that did not succeed, or whose controller is gone.
func printNext(w io.Writer, home string, r *disdel.Record) {
	switch pid, runs := runner(home, r.ID); {
	case runs && pid == 0:
		fmt.Fprintln(w, "runs      in another process")
	case runs:
		fmt.Fprintf(w, "runs      in process %d\n", pid)
	case r.Status == disdel.StatusRunning:
		fmt.Fprintf(w, "resume    its record says that it runs, and no process of this home runs it: %s resume %s\n", program(), r.ID)
	case r.Status == disdel.StatusCanceled:
		fmt.Fprintf(w, "resume    %s resume %s\n", program(), r.ID)
	}
	if r.Failure != nil {
		fmt.Fprintf(w, "report    %s report %s\n", program(), r.ID)
	}
}

func printFailure(w io.Writer, r *disdel.Record, logs bool) {
	if r.Failure == nil {
		return
	}
	fmt.Fprintf(w, "\nfailure   %s\n", clean(r.Failure.Error()))
	if r.Failure.Hint != "" {
		fmt.Fprintf(w, "hint      %s\n", clean(r.Failure.Hint))
	}
	for _, a := range r.Activations {
		if a.Outcome == disdel.OutcomeSuccess {
			continue
		}
		fmt.Fprintf(w, "evidence  %s, activation %s, ended as %s\n", a.Invocation.ID, a.ID, a.Outcome)
		for _, e := range a.Evidence {
			fmt.Fprintf(w, "          %s\n", clean(e))
		}
		for _, line := range a.Logs {
			if logs {
				fmt.Fprintf(w, "log       %s\n", clean(line))
			}
		}
	}
}
