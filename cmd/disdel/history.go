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
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/jobtext"
	"github.com/disdel/disdel/internal/localplatform"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

func historyCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "history", Usage: "list earlier jobs, or show one",
		Description: "   disdel history --model lenet5 --limit 5\n   disdel history show @last",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "limit", Usage: "`NUMBER` of jobs", Value: 20},
			&cli.StringFlag{Name: "model", Usage: "jobs of this network or output model `NAME`"},
			&cli.StringFlag{Name: "dataset", Usage: "jobs on this data set `NAME`"},
			&cli.StringFlag{Name: "status", Usage: "jobs in this `STATE`: queued, running, paused, succeeded, failed or canceled"},
			&cli.StringFlag{Name: "since", Usage: "jobs of the last `TIME`, such as 90m, 12h, 7d or 2w"},
		},
		Subcommands: []*cli.Command{historyShow(u), historyRepair(u)},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return commandline.NeedSubcommand(c)
			}
			q, err := historyQuery(c)
			if err != nil {
				return err
			}
			return withHistory(c, u, func(ctx context.Context, s *service.Service, h *history.Store) error {
				list, err := h.List(ctx, q)
				if err != nil {
					return err
				}
				return u.Show(list, func(w io.Writer) { printHistory(w, list, standing(ctx, c, s)) })
			})
		},
	}
}

// standing says where a job stands. Of one that its record says runs, its lease knows better; in a history that others
// share there may be jobs of versions before leases.
func standing(ctx context.Context, c *cli.Context, s *service.Service) func(*disdel.Record) string {
	return func(r *disdel.Record) string {
		if !r.Status.Unfinished() {
			return r.Status.String()
		}
		who, runs, err := s.Runner(ctx, r.ID)
		if err == nil && !runs && (who.Known || c.String("couchdb") == "") {
			return "stopped (resume)"
		}
		return r.Status.String()
	}
}

func historyQuery(c *cli.Context) (history.Query, error) {
	q := history.Query{Limit: c.Int("limit"), Model: c.String("model"), Dataset: c.String("dataset")}
	if text := c.String("since"); text != "" {
		d, err := commandline.ParseAgo(text)
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
	if q.Limit < 1 {
		return q, &disdel.Error{Kind: disdel.Invalid, Msg: "--limit must be at least 1"}
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
		accuracy, loss, ok := jobtext.HeldOut(r)
		rows = append(rows, []string{
			string(r.ID), r.Job.Metadata.Name, statusText(r, standing(r)), r.Created.Local().Format("2006-01-02 15:04:05"),
			jobtext.Seconds(r.Phases.Total),
			fmt.Sprint(len(r.Rounds)), jobtext.Decimals(accuracy, ok), jobtext.Decimals(loss, ok),
			fmt.Sprintf("%d/%d MB", peak.MB(), limit.MB()), fmt.Sprintf("%.1f", r.CostGBs),
		})
	}
	terminal.Table(w, terminal.Fitted(w, terminal.ShortIDs(w, rows), "LOSS", "PEAK/LIMIT", "GB-S", "ROUNDS", "TIME",
		"CREATED")...)
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
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			return withHistory(c, u, func(ctx context.Context, s *service.Service, h *history.Store) error {
				id, err := h.Resolve(ctx, c.Args().First())
				if err != nil {
					return err
				}
				r, err := h.Get(ctx, id)
				if err != nil {
					return err
				}
				who, runs, _ := s.Runner(ctx, r.ID) // where nobody can tell, the record has to do
				return u.Show(r, func(w io.Writer) {
					jobtext.PrintPlan(w, &r)
					for _, round := range r.Rounds {
						fmt.Fprintln(w, jobtext.RoundLine(round, r.Plan.Rounds))
					}
					jobtext.PrintRecord(w, &r)
					printFailure(w, &r, c.Bool("logs"))
					printNext(w, &r, who, runs)
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
			if err := commandline.Operands(c, 0, 0); err != nil {
				return err
			}
			if c.String("couchdb") != "" {
				return &disdel.Error{
					Kind: disdel.Invalid, Msg: "the history on a CouchDB is not this program's to repair",
					Hint: "leave out --couchdb to repair that of --home",
				}
			}
			dir, err := home(c)
			if err != nil {
				return err
			}
			done, err := couchlite.Repair(localplatform.HistoryFile(dir), history.Database)
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

// printNext names the commands that help a job that did not succeed, or whose controller is gone.
func printNext(w io.Writer, r *disdel.Record, who service.Runner, runs bool) {
	switch {
	case runs:
		fmt.Fprintf(w, "runs      in %s\n", who.Text)
	case r.Status.Unfinished():
		fmt.Fprintf(w, "resume    its record says that it %s, and no process of this home runs it: %s resume %s\n",
			standsText(r.Status), terminal.Program(), r.ID)
	case r.Status == disdel.StatusCanceled || r.Status == disdel.StatusPaused:
		fmt.Fprintf(w, "resume    %s resume %s\n", terminal.Program(), r.ID)
	}
	if r.Failure != nil {
		fmt.Fprintf(w, "report    %s report %s\n", terminal.Program(), r.ID)
	}
}

func standsText(s disdel.Status) string {
	if s == disdel.StatusRunning {
		return "runs"
	}
	return "is " + s.String()
}

func printFailure(w io.Writer, r *disdel.Record, logs bool) {
	if r.Failure == nil {
		return
	}
	fmt.Fprintf(w, "\nfailure   %s\n", terminal.Clean(r.Failure.Error()))
	if r.Failure.Hint != "" {
		fmt.Fprintf(w, "hint      %s\n", terminal.Clean(r.Failure.Hint))
	}
	for _, a := range r.Activations {
		if a.Outcome == disdel.OutcomeSuccess {
			continue
		}
		fmt.Fprintf(w, "evidence  %s, activation %s, ended as %s\n", a.Invocation.ID, a.ID, a.Outcome)
		for _, e := range a.Evidence {
			fmt.Fprintf(w, "          %s\n", terminal.Clean(e))
		}
		for _, line := range a.Logs {
			if logs {
				fmt.Fprintf(w, "log       %s\n", terminal.Clean(line))
			}
		}
	}
}
