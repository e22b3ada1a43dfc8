package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/fullscreen"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
)

// LogsCommand shows what a job's actions did and printed, and with --follow what they do.
func LogsCommand(u *terminal.UI, from Reading) *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "show the logs of a job's actions", ArgsUsage: "JOB",
		Description: "JOB is an id, the start of an id, a name or @last. With --follow it continues " +
			"until the job\n" +
			"ends: heartbeats appear at once, the output of an action when its activation has ended. -o json has only the\n" +
			"output; with --follow, one line for each event.\n\n" +
			"   disdel job logs @last --worker 1 --round 3\n   disdel job logs small --follow",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "continue until the job ends"},
			&cli.StringFlag{Name: "task", Usage: "only logs of this `TASK`: train, aggregate or evaluate"},
			&cli.IntFlag{Name: "worker", Usage: "only logs of this train `WORKER`, from 0"},
			&cli.IntFlag{Name: "round", Usage: "only logs of this `ROUND`, from 1"},
			&cli.IntFlag{Name: "tail", Usage: "only the last lines, a `NUMBER`"},
		},
		Action: func(c *cli.Context) error {
			w, err := wantedLines(c)
			if err != nil {
				return err
			}
			return from(c, func(ctx context.Context, at client.Client) error {
				if c.Bool("follow") {
					return followLogs(ctx, u, at, c.Args().First(), w)
				}
				rec, err := at.Records.Get(ctx, c.Args().First())
				if err != nil {
					return err
				}
				return u.Show(render.Logs(&rec), func(out io.Writer) {
					render.PrintLogLines(out, &rec, render.LogLines(&rec, w))
				})
			})
		},
	}
}

// WatchCommand shows jobs on the whole terminal.
func WatchCommand(u *terminal.UI, from Reading) *cli.Command {
	return &cli.Command{
		Name: "watch", Usage: "show running jobs on the whole terminal", ArgsUsage: "[JOB]",
		Description: "JOB is an id, the start of an id, a name or @last; without it, the screen " +
			"lists all\n" +
			"jobs. Keys: up and down select, enter opens, / filters, l shows the log, c cancels, p pauses, q goes back.\n\n" +
			"   disdel job watch\n   disdel job watch @last",
		Action: func(c *cli.Context) error {
			if err := Operands(c, 0, 1); err != nil {
				return err
			}
			return from(c, func(ctx context.Context, at client.Client) error {
				return fullscreen.Watch(ctx, u, at, c.Args().First())
			})
		},
	}
}

// wantedLines is what the flags say of the lines that are wanted.
func wantedLines(c *cli.Context) (w render.Wanted, err error) {
	if err := Operands(c, 1, 1); err != nil {
		return w, err
	}
	bad := func(msg, hint string) error { return &disdel.Error{Kind: disdel.Invalid, Msg: msg, Hint: hint} }
	tasks := []disdel.Task{"", disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate}
	w = render.Wanted{Task: disdel.Task(c.String("task")), Round: c.Int("round"), Tail: c.Int("tail")}
	switch {
	case !slices.Contains(tasks, w.Task):
		return w, bad(fmt.Sprintf("a job has no %q actions", w.Task), "--task train, aggregate or evaluate")
	case c.IsSet("round") && w.Round < 1, c.IsSet("tail") && w.Tail < 1:
		return w, bad("--round and --tail are at least 1", "")
	case c.IsSet("tail") && c.Bool("follow"):
		return w, bad("--tail is of what has happened, and --follow of what happens", "leave one of them out")
	case c.IsSet("worker"):
		w.Worker = new(c.Int("worker"))
	}
	return w, nil
}

// followLogs prints lines as they come, until the job has ended.
func followLogs(ctx context.Context, u *terminal.UI, at client.Client, job string, w render.Wanted) error {
	run, err := at.Jobs.Watch(ctx, job)
	if err != nil {
		return err
	}
	f, document := render.NewLogFollower(w), json.NewEncoder(u.Out)
	for e := range run.EventsAfter(ctx, 0) {
		for _, l := range f.Follow(e) {
			if u.Format == "table" {
				_, err = fmt.Fprintln(u.Out, terminal.Clean(l.String()))
			} else {
				err = document.Encode(l)
			}
			if err != nil {
				return terminal.Unwritten(err)
			}
		}
	}
	return ctx.Err()
}
