package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/jobtext"
)

func jobCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "job", Usage: "watch, wait for, pause or cancel a running job",
		Description: "JOB is an id, the start of an id, a name or @last. The process that runs the job answers.\n\n" +
			"   disdel job follow @last\n   disdel job cancel small",
		Subcommands: append([]*cli.Command{
			jobFollow(u), jobWait(u), commandline.LogsCommand(u, reading(u, records)),
			commandline.WatchCommand(u, reading(u, records)),
			jobAsk(u, "cancel", "cancel a job", disdel.StatusCanceled),
			jobAsk(u, "pause", "pause a job; disdel resume continues it", disdel.StatusPaused),
		}, commandline.RemarkCommands(u, reading(u, records))...),
		Action: commandline.NeedSubcommand,
	}
}

// ofJob is a command about one job.
func ofJob(u *ui, name, usage string, act func(ctx context.Context, c *cli.Context, at client.Client, job string) error,
) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: "JOB",
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
				return act(ctx, c, at, c.Args().First())
			})
		},
	}
}

func jobFollow(u *ui) *cli.Command {
	return ofJob(u, "follow", "show what happens to a job until its end; Ctrl-C only stops looking",
		func(ctx context.Context, c *cli.Context, at client.Client, job string) error {
			run, err := at.Jobs.Watch(ctx, job)
			if err != nil {
				return err
			}
			f := jobtext.NewFollower(u)
			for e := range run.EventsAfter(ctx, 0) {
				f.Follow(e)
			}
			f.Done()
			return outcome(ctx, c, u, run)
		})
}

func jobWait(u *ui) *cli.Command {
	return ofJob(u, "wait", "wait for a job's end, and show what came of it",
		func(ctx context.Context, c *cli.Context, at client.Client, job string) error {
			run, err := at.Jobs.Watch(ctx, job)
			if err != nil {
				return err
			}
			return outcome(ctx, c, u, run)
		})
}

// outcome waits for a job's end and shows what came of it.
func outcome(ctx context.Context, c *cli.Context, u *ui, run client.Run) error {
	rec, err := run.Wait(ctx)
	if err != nil {
		return err
	}
	u.Place = commandline.PlaceOfJob(c, &rec)
	return jobtext.ShowOutcome(u, &rec, nil)
}

// askedDocument is what cancel and pause say with -o json.
type askedDocument struct {
	Job   disdel.JobID `json:"job"`
	Asked string       `json:"asked"`
}

func jobAsk(u *ui, name, usage string, to disdel.Status) *cli.Command {
	return ofJob(u, name, usage, func(ctx context.Context, _ *cli.Context, at client.Client, job string) error {
		rec, err := at.Records.Get(ctx, job)
		if err != nil {
			return err
		}
		if err := at.Jobs.RequestStop(ctx, string(rec.ID), to, "asked for with disdel job "+name); err != nil {
			return err
		}
		return u.Show(askedDocument{rec.ID, name}, func(w io.Writer) {
			fmt.Fprintf(w, "%s is asked to become %s: %s\n", rec.ID, to, u.Command("job", "wait", string(rec.ID)))
		})
	})
}
