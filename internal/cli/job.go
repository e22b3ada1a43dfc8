package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/fullscreen"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service/tenant"
)

// jobSubcommands are the commands about one job that runs or has run.
func jobSubcommands(u *ui) []*cli.Command {
	return append([]*cli.Command{
		jobFollow(u), jobWait(u), jobLogs(u),
		jobWatch(u),
		jobAsk(u, "cancel", "cancel a job", disdel.StatusCanceled),
		jobAsk(u, "pause", "pause a job; disdel resume continues it", disdel.StatusPaused),
	}, slices.Concat(remarkCommands(u), shareCommands(u, tenant.ItemJob, "job"))...)
}

// jobSubcommand builds a command about one job.
func jobSubcommand(u *ui, name, usage string,
	act func(ctx context.Context, c *cli.Context, at client.Client, job string) error,
) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: "JOB",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
				return act(ctx, c, at, c.Args().First())
			})
		},
	}
}

func jobFollow(u *ui) *cli.Command {
	return jobSubcommand(u, "follow", "show what happens to a job until its end; Ctrl-C only stops looking",
		func(ctx context.Context, c *cli.Context, at client.Client, job string) error {
			return followJob(ctx, c, u, at, job)
		})
}

// followJob prints what happens to a job, and its result.
func followJob(ctx context.Context, c *cli.Context, u *ui, at client.Client, job string) error {
	run, err := at.Jobs.Watch(ctx, job)
	if err != nil {
		return err
	}
	f := render.NewFollower(u)
	for e := range run.EventsAfter(ctx, 0) {
		f.Follow(e)
	}
	f.Done()
	return waitAndShow(ctx, c, u, run)
}

func jobWait(u *ui) *cli.Command {
	wait := jobSubcommand(u, "wait", "wait for a job's end, and show its result",
		func(ctx context.Context, c *cli.Context, at client.Client, job string) error {
			maximum := c.Duration("timeout")
			if c.IsSet("timeout") && maximum <= 0 {
				return &disdel.Error{
					Kind: disdel.Invalid, Op: "wait for job", Msg: "--timeout is above 0", Hint: "for example --timeout 10m",
				}
			}
			if err := checkRules(c); err != nil {
				return err
			}
			run, err := at.Jobs.Watch(ctx, job)
			if err != nil {
				return err
			}
			if maximum > 0 {
				timed, stop := context.WithTimeoutCause(ctx, maximum, errTimeIsUp)
				defer stop()
				ctx = timed
			}
			return waitAndShow(ctx, c, u, run)
		})
	wait.Flags = []cli.Flag{
		&cli.DurationFlag{Name: "timeout", Usage: "longest `TIME` to wait, as 10m; then the exit code is 124"}, failIfFlag,
	}
	return wait
}

// errTimeIsUp is the cause of a context that --timeout ended.
var errTimeIsUp = errors.New("the time of --timeout is up")

// waitAndShow waits for the end of a job and prints its result. The job goes on if ctx ends.
func waitAndShow(ctx context.Context, c *cli.Context, u *ui, run client.Run) error {
	rec, err := run.Wait(ctx)
	switch cause := context.Cause(ctx); {
	case err == nil:
	case errors.Is(cause, errTimeIsUp):
		return &disdel.Error{
			Kind: disdel.Timeout, Op: "wait for job", Job: run.ID(), Err: errTimeIsUp,
			Msg:  fmt.Sprintf("%s has not ended within %v; it goes on", run.ID(), c.Duration("timeout")),
			Hint: u.Command("jobs", "wait", string(run.ID())),
		}
	case errors.Is(cause, terminal.ErrInterrupted):
		u.Say("job %s goes on", run.ID())
		return terminal.Reported(terminal.ErrInterrupted)
	default:
		return err
	}
	u.Place = placeOfJob(c, &rec)
	if err := render.ShowOutcome(u, &rec, nil); err != nil {
		return err
	}
	return failIf(c, &rec)
}

// askedDocument is what cancel and pause print with -o json.
type askedDocument struct {
	Job   disdel.JobID `json:"job"`
	Asked string       `json:"asked"`
}

func jobAsk(u *ui, name, usage string, to disdel.Status) *cli.Command {
	return jobSubcommand(u, name, usage, func(ctx context.Context, _ *cli.Context, at client.Client, job string) error {
		rec, err := at.Records.Get(ctx, job)
		if err != nil {
			return err
		}
		if err := at.Jobs.RequestStop(ctx, string(rec.ID), to, "asked for with disdel jobs "+name); err != nil {
			return err
		}
		return u.Show(askedDocument{rec.ID, name}, func(w io.Writer) {
			fmt.Fprintf(w, "%s is asked to become %s: %s\n", rec.ID, to, u.Command("jobs", "wait", string(rec.ID)))
		})
	})
}

// jobLogs prints what a job's actions did and printed. With --follow it continues until the job ends.
func jobLogs(u *ui) *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "show the logs of a job's actions", ArgsUsage: "JOB",
		Description: "JOB is an id, the start of an id, a name or @last. With --follow it continues " +
			"until the job\n" +
			"ends: heartbeats appear at once, the output of an action when its activation has ended. -o json has only the\n" +
			"output; with --follow, one line for each event.\n\n" +
			"   disdel jobs logs @last --worker 1 --round 3\n   disdel jobs logs small --follow",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "continue until the job ends"},
			&cli.StringFlag{Name: "task", Usage: "only logs of this `TASK`: train, aggregate or evaluate"},
			&cli.IntFlag{Name: "worker", Usage: "only logs of this train `WORKER`, from 0"},
			&cli.IntFlag{Name: "round", Usage: "only logs of this `ROUND`, from 1"},
			&cli.IntFlag{Name: "tail", Aliases: []string{"n"}, Usage: "only the last lines, a `NUMBER`"},
		},
		Action: func(c *cli.Context) error {
			w, err := wantedLines(c)
			if err != nil {
				return err
			}
			return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
				if c.Bool("follow") {
					return followLogs(ctx, u, at, c.Args().First(), w)
				}
				rec, err := at.Records.Get(ctx, c.Args().First())
				if err != nil {
					return err
				}
				return u.Show(render.ActivationLogs(&rec), func(out io.Writer) {
					render.PrintLogLines(out, &rec, render.LogLines(&rec, w))
				})
			})
		},
	}
}

// jobWatch shows jobs on the whole terminal.
func jobWatch(u *ui) *cli.Command {
	return &cli.Command{
		Name: "watch", Usage: "show running jobs on the whole terminal", ArgsUsage: "[JOB]",
		Description: "JOB is an id, the start of an id, a name or @last; without it, the screen " +
			"lists all\n" +
			"jobs. Keys: up and down select, enter opens, / filters, l shows the log, c cancels, p pauses, q goes back.\n" +
			"Off a terminal, watch JOB prints what happens, like disdel jobs follow.\n\n" +
			"   disdel jobs watch\n   disdel jobs watch @last",
		Action: func(c *cli.Context) error {
			if err := checkOperands(c, 0, 1); err != nil {
				return err
			}
			return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
				if job := c.Args().First(); job != "" && !u.Interactive() {
					return followJob(ctx, c, u, at, job)
				}
				return fullscreen.Watch(ctx, u, at, c.Args().First())
			})
		},
	}
}

// wantedLines reads the flags that select log lines.
func wantedLines(c *cli.Context) (w render.LogFilter, err error) {
	if err := checkOperands(c, 1, 1); err != nil {
		return w, err
	}
	bad := func(msg, hint string) error { return &disdel.Error{Kind: disdel.Invalid, Msg: msg, Hint: hint} }
	tasks := []disdel.Task{"", disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate}
	w = render.LogFilter{Task: disdel.Task(c.String("task")), Round: c.Int("round"), Tail: c.Int("tail")}
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
func followLogs(ctx context.Context, u *ui, at client.Client, job string, w render.LogFilter) error {
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

// remarkDocument is what tag and note print with -o json.
type remarkDocument struct {
	Job disdel.JobID `json:"job"`
	history.Remark
}

// remarkCommands are the commands that tag a job or add a note to it.
func remarkCommands(u *ui) []*cli.Command {
	return []*cli.Command{
		{
			Name: "tag", Usage: "add tags to a job, for disdel jobs --tag", ArgsUsage: "JOB TAG...",
			Description: "JOB is an id, the start of an id, a name or @last. You can tag running jobs.\n\n" +
				"   disdel jobs tag @last paper baseline\n   disdel jobs tag @last --remove baseline",
			Flags: []cli.Flag{&cli.BoolFlag{Name: "remove", Usage: "remove the tags"}},
			Action: func(c *cli.Context) error {
				if err := checkOperands(c, 2, mostJobs); err != nil {
					return err
				}
				return changeRemark(c, u, func(r *history.Remark) {
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
			Description: "An empty TEXT removes the note.\n\n   disdel jobs note @last 'dropout helps'",
			Action: func(c *cli.Context) error {
				if err := checkOperands(c, 2, 2); err != nil {
					return err
				}
				return changeRemark(c, u, func(r *history.Remark) { r.Text = c.Args().Get(1) })
			},
		},
	}
}

// changeRemark changes the tags and the note of a job.
func changeRemark(c *cli.Context, u *ui, change func(r *history.Remark)) error {
	return withClient(c, u, records, func(ctx context.Context, at client.Client) error {
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
	printRemarkLines(w, r)
}

// printRemarkLines prints the tags and the note of a job, if it has any.
func printRemarkLines(w io.Writer, r history.Remark) {
	if len(r.Tags) > 0 {
		fmt.Fprintf(w, "tags      %s\n", strings.Join(r.Tags, " "))
	}
	if r.Text != "" {
		fmt.Fprintf(w, "note      %s\n", terminal.OneLine(r.Text))
	}
}
