package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/controller/jobfile"
)

func resumeCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "resume", Usage: "take a job up again where its newest checkpoint is", ArgsUsage: "JOB",
		Description: "JOB is an id, the start of one, a job's name or @last. A job that failed, was stopped or lost its controller goes\n" +
			"on from its newest whole checkpoint, with the limits that its failures led to, and comes to the same weights as if\n" +
			"nothing had happened.\n\n" +
			"   disdel resume @last\n" +
			"   disdel resume @last --set resources.memory=512MB",
		Flags: append([]cli.Flag{setFlag, actionFlag, backendFlag, probeFlag}, estimatorFlags...),
		Action: func(c *cli.Context) error {
			if err := operands(c, 1, 1); err != nil {
				return err
			}
			return withStack(c, u, func(ctx context.Context, s *stack) error { return resume(ctx, u, s, c) })
		},
	}
}

func resume(ctx context.Context, u *ui, s *stack, c *cli.Context) error {
	f := newFollower(u)
	run, j, err := s.controller(ctx, f.notice)
	if err != nil {
		return err
	}
	rec, r, err := j.unfinished(ctx, c)
	if err != nil {
		return err
	}
	if err := s.hold(rec.ID); err != nil {
		return err
	}
	in, err := j.input(ctx, u, run, rec.ID, r)
	if err != nil {
		return err
	}
	p, err := j.planned(r, in)
	if err != nil {
		return err
	}
	if err := j.room(ctx, p.spec, r.Graph); err != nil {
		return err
	}
	if err := j.goOn(ctx, u, &p.spec, rec); err != nil {
		return err
	}
	p.spec.Origin = s.resumed(rec.Origin)
	out, err := run.Resume(ctx, p.spec, rec)
	f.done()
	err = s.shown(u, out, err)
	if err == nil && out.Model != nil {
		u.say("next:  %[1]s history show %[2]s\n       %[1]s model show %[3]s:v%[4]d", program(), out.ID, out.Model.Name, out.Model.Version)
	}
	return err
}

// unfinished reads the record of the job that is meant and resolves what it names anew. The workers stay as many as they
// were, unless the command line says otherwise, so that the weights come out the same.
func (j *jobStack) unfinished(ctx context.Context, c *cli.Context) (rec disdel.Record, r controller.Resolved, err error) {
	id, err := j.records.Resolve(ctx, c.Args().First())
	if err != nil {
		return rec, r, err
	}
	if rec, err = j.records.Get(ctx, id); err != nil {
		return rec, r, err
	}
	if rec.Status == disdel.StatusSucceeded && rec.Unevaluated == nil {
		return rec, r, &disdel.Error{
			Kind: disdel.Conflict, Op: "resume job", Job: id, Msg: string(id) + " has succeeded: there is nothing left to do",
			Hint: "disdel history show " + string(id),
		}
	}
	was := controller.Adjusted(rec)
	job, err := changed(was, overrides(c))
	if err != nil {
		return rec, r, err
	}
	if job.Model.Description, err = describe(c); err != nil {
		return rec, r, err
	}
	if job.Distribution.Workers == was.Distribution.Workers {
		job.Distribution.Workers = rec.Plan.Workers
	}
	nowhere := func(string) (int, int) { return 0, 0 }
	if r, err = controller.Resolve(ctx, job, j.data, string(id), nowhere, nil); err != nil {
		return rec, r, err
	}
	if r.Data.Checksum != rec.Data.Checksum {
		return rec, r, &disdel.Error{
			Kind: disdel.Conflict, Op: "resume job", Job: id, Msg: fmt.Sprintf("data set %s is not the one that the job began with", r.Data.Name),
			Hint: "add the data set as it was, or submit the job anew",
		}
	}
	return rec, r, nil
}

// changed is the job with what the command line says instead. It is checked as a job file is: the history may hold what no
// submit let in, and its names become paths.
func changed(job disdel.Job, sets []string) (disdel.Job, error) {
	text, err := jobfile.Print(job)
	if err != nil {
		return job, err
	}
	file, err := jobfile.ParseWith("the job of the record", text, sets, beside("-"))
	if err != nil || len(sets) == 0 {
		return job, err
	}
	return file.Job, nil
}

// goOn says where the job goes on, and with which limits: those of the plan, or larger ones that failures led to.
func (j *jobStack) goOn(ctx context.Context, u *ui, spec *controller.Spec, rec disdel.Record) error {
	spec.Resumes = rec.Resumes + 1
	controller.Raise(&spec.Plan, spec.Job, rec)
	c, passed, err := j.shelf.NewestCheckpoint(ctx, controller.CheckpointFolder(rec.ID))
	for _, name := range passed {
		u.say("note   checkpoint %s is damaged; an earlier one is taken", name)
	}
	if disdel.KindOf(err) == disdel.NotFound {
		u.say("resume %s from the start: it has no checkpoint", rec.ID)
		return controller.StartOver(rec, spec)
	}
	if err != nil {
		return err
	}
	if err := controller.CheckResume(rec, *spec, c); err != nil {
		return err
	}
	if err := controller.TakeUp(rec, spec, c); err != nil {
		return err
	}
	if c.Round >= spec.Plan.Rounds {
		u.say("resume %s: all of it is trained, and what is left is the end", rec.ID)
		return nil
	}
	u.say("resume %s from round %d of %d", rec.ID, c.Round+1, spec.Plan.Rounds)
	return nil
}
