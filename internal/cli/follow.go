package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

// leaveFlags say what becomes of a job when its view ends.
var leaveFlags = []cli.Flag{
	&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "print the job's id and return; the job goes on"},
	&cli.BoolFlag{Name: "cancel-on-interrupt", Usage: "cancel the job at Ctrl-C or SIGTERM, also the job of a server"},
}

// view shows one running job.
type view struct {
	c        *cli.Context
	ui       *ui
	jobs     client.Jobs
	run      client.Run
	follower *render.Follower
	server   bool // a server runs the job
}

// follow starts a job, prints its progress until its end, and prints its result. A failed job is reported and sets the
// exit code. The record is nil if the job was left while it ran.
func follow(c *cli.Context, u *ui, jobs client.Jobs,
	begin func(observe func(service.Event)) (client.Run, error),
) (*disdel.Record, error) {
	v, seen, starter := view{c: c, ui: u, jobs: jobs, follower: render.NewFollower(u)}, 0, takeStarter()
	at, err := serverOf(c)
	if err != nil {
		return nil, err
	}
	v.server = at != nil
	v.run, err = begin(func(e service.Event) {
		seen = e.Number
		v.follower.Follow(e)
	})
	if err != nil {
		return nil, err
	}
	if v.server && c.Bool("detach") {
		return nil, showDetached(u, detachedDocument{Job: v.run.ID()})
	}
	starter.acknowledge(u, v.run.ID())
	v.sayCommands()
	rec, err := v.watch(seen)
	if err == nil {
		starter.removeLog()
	}
	if err != nil || rec == nil {
		return rec, err
	}
	u.Place = placeOfJob(c, rec)
	if err := render.ShowOutcome(u, rec, v.follower.Notes()); err != nil {
		return rec, err
	}
	return rec, failIf(c, rec)
}

// sayCommands prints how to watch the job, see its logs and cancel it.
func (v *view) sayCommands() { sayJobCommands(v.ui, v.run.ID()) }

func sayJobCommands(u *ui, id disdel.JobID) {
	u.Say("watch  %s", u.Command("jobs", "watch", string(id)))
	u.Say("logs   %s", u.Command("jobs", "logs", string(id), "--follow"))
	u.Say("cancel %s", u.Command("jobs", "cancel", string(id)))
}

// watch prints the events after a number until the job has ended or the user leaves it. It returns the record of a job
// that has ended.
func (v *view) watch(seen int) (*disdel.Record, error) {
	always := context.WithoutCancel(v.c.Context)
	watching, leave := context.WithCancel(always)
	defer leave()
	defer context.AfterFunc(v.c.Context, func() {
		if cause := context.Cause(v.c.Context); v.cancels(cause) {
			v.run.Cancel(cause)
		} else {
			leave()
		}
	})()
	for e := range v.run.EventsAfter(watching, seen) {
		v.follower.Follow(e)
	}
	v.follower.Done()
	if watching.Err() != nil {
		return v.leave(always)
	}
	return v.wait(always)
}

func (v *view) wait(ctx context.Context) (*disdel.Record, error) {
	rec, err := v.run.Wait(ctx)
	return &rec, err
}

// cancels says whether the job is cancelled because the program was interrupted. A closed terminal cancels no job,
// Ctrl-C no job of a server. At a terminal, the user of a local job chooses.
func (v *view) cancels(cause error) bool {
	switch {
	case errors.Is(cause, terminal.ErrHungUp):
		return false
	case v.c.Bool("cancel-on-interrupt"):
		return true
	default:
		return !v.server && !v.ui.Interactive()
	}
}

// leave ends the view of a job that runs. The job of a server goes on there, a local one in the background. If the user
// wants it cancelled, leave waits for its end and returns the record.
func (v *view) leave(ctx context.Context) (*disdel.Record, error) {
	if v.server {
		return nil, v.remaining("job %s goes on at the server")
	}
	cause := context.Cause(v.c.Context)
	if !errors.Is(cause, terminal.ErrHungUp) && !v.wantsBackground(ctx) {
		v.run.Cancel(cause)
		return v.wait(ctx)
	}
	return v.toBackground(ctx)
}

// remaining says that the job goes on, and returns the error for a view that was interrupted.
func (v *view) remaining(text string) error {
	v.ui.Say(text, v.run.ID())
	v.sayCommands()
	return terminal.Reported(terminal.ErrInterrupted)
}

// wantsBackground asks whether a local job goes on in the background. It returns false if the user cancels the job, or
// if the job ends meanwhile.
func (v *view) wantsBackground(ctx context.Context) bool {
	cancel := terminal.NextInterrupt(v.c.Context)
	v.ui.Ask("Ctrl-C: press Enter to let the job go on in the background, or Ctrl-C again to cancel it.\n")
	answered, ended := make(chan struct{}), make(chan struct{})
	go func() {
		bufio.NewReader(v.ui.In).ReadString('\n') //nolint:errcheck // a closed terminal is an answer, too
		close(answered)
	}()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		v.run.Wait(ctx) //nolint:errcheck // who reads its record gets the error
		close(ended)
	}()
	select {
	case <-answered:
		return true
	case <-cancel:
	case <-ended:
	}
	return false
}

// toBackground pauses a local job at its newest checkpoint and resumes it in a process of its own. It returns the
// record of a job that has ended before.
func (v *view) toBackground(ctx context.Context) (*disdel.Record, error) {
	id := v.run.ID()
	err := v.jobs.RequestStop(ctx, string(id), disdel.StatusPaused, "goes on in the background")
	if err != nil {
		return nil, err
	}
	rec, err := v.wait(ctx)
	if err != nil || rec.Status != disdel.StatusPaused {
		return rec, err
	}
	dir, err := home(v.c)
	if err != nil {
		return nil, err
	}
	args := []string{"resume", string(id)}
	for _, o := range repeatedOptions(v.c) {
		if f, _ := repeatedFlagOf(o.Name); f.variable == "" { // the environment has the others
			args = append(args, "--"+o.Name, o.Value)
		}
	}
	var messages bytes.Buffer
	b := backgroundProcess{args: args, environment: environmentFor(v.c, dir), messages: &messages}
	if _, err := b.start(ctx, dir); err != nil {
		return rec, &disdel.Error{
			Kind: disdel.KindOf(err), Op: "let the job go on in the background", Job: id,
			Msg: fmt.Sprintf("job %s is paused, because no process could take it over", id),
			Err: errors.New(cmp.Or(strings.TrimSpace(messages.String()), err.Error())), Hint: "disdel resume " + string(id),
		}
	}
	return nil, v.remaining("job %s goes on in the background")
}

// submitAndFollow submits a job and follows it.
func submitAndFollow(ctx context.Context, c *cli.Context, u *ui, jobs client.Jobs, src source) (*disdel.Record, error) {
	rec, err := follow(c, u, jobs, func(observe func(service.Event)) (client.Run, error) {
		req := src.request(c)
		req.Preparing = observe
		return jobs.Submit(ctx, req)
	})
	return rec, src.showFaults(u, err)
}

// sayResult prints the next commands for a job that succeeded.
func sayResult(u *ui, rec *disdel.Record, err error) error {
	if err == nil && rec != nil {
		render.SayModel(u, rec)
	}
	return err
}
