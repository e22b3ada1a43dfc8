package service

import (
	"context"
	"fmt"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/history"
)

// ResumeRequest is a job to resume.
type ResumeRequest struct {
	Job  string                       // an id, the start of one, a job's name or @last
	Sets []string                     // PATH=VALUE, of what the job's file said
	Open func(string) ([]byte, error) // files that Sets name; nil: none can be read

	// Description is what the program of a network of one's own says of it, see Describe. nil: the job names none.
	Description *disdel.CustomNetwork

	// Origin is how the job is taken up. What it was submitted with stays in its record, and what is said now counts
	// on. nil: as it was.
	Origin *disdel.Origin
	Options
	Preparing func(Event) // as of a Request

	// Move allows the job to go on at this Service's addresses although it ran at others.
	Move bool

	// FromStart allows the job to begin anew where none of its checkpoints is found although its record names one.
	FromStart bool
}

// Resume continues a job at its newest whole checkpoint, with the limits that its failures led to. It returns the
// errors of Submit, and NotFound for an unknown job. It returns Conflict for a job that has succeeded, that somebody
// runs, that was changed so that it cannot go on, that ran at another place (CodeElsewhere), or whose checkpoints are
// missing.
func (s *Service) Resume(ctx context.Context, req ResumeRequest) (*Run, error) {
	p, err := s.preparing(ctx, "", req.Options, req.Preparing)
	if err != nil {
		return nil, err
	}
	rec, err := p.named(ctx, req.Job)
	if err != nil {
		return nil, err
	}
	if err := s.mayResume(ctx, p.parts.History, &rec, req.Move); err != nil {
		return nil, err
	}
	rec, r, err := p.unfinishedOf(ctx, rec, req)
	if err != nil {
		return nil, err
	}
	p.id, p.journal.job = rec.ID, rec.ID
	own, err := s.own(ctx, p.parts.History, rec.ID)
	if err != nil {
		return nil, err
	}
	spec, err := p.takenUp(ctx, rec, r, req.FromStart)
	if err != nil {
		own.end(ctx)
		return nil, err
	}
	spec.Origin = resumed(rec.Origin, req.Origin)
	if p.release, err = p.claimDisk(ctx, spec, r.Graph); err != nil {
		own.end(ctx)
		return nil, err
	}
	return s.begin(ctx, p, own, rec, "resumed", func(context.Context) (work, error) { return p.goesOn(spec, rec), nil })
}

// goesOn is a job that runs from its newest checkpoint on.
func (p *preparation) goesOn(spec controller.Spec, rec disdel.Record) work {
	return work{spec.Plan, func(ctx context.Context, c *controller.Controller) (*disdel.Record, error) {
		return c.Resume(ctx, spec, rec)
	}}
}

// takenUp is the plan of a job that goes on.
func (p *preparation) takenUp(ctx context.Context, rec disdel.Record, r controller.Resolved, fromStart bool,
) (controller.Spec, error) {
	spec, err := p.fitting(ctx, r)
	if err != nil {
		return spec, err
	}
	return spec, p.goOn(ctx, &spec, rec, r, fromStart)
}

// named reads the record of the job that is meant. An end of the job that waits beside the history is delivered first:
// a job that has ended is not to be trained again.
func (p *preparation) named(ctx context.Context, job string) (disdel.Record, error) {
	id, err := p.parts.History.Resolve(ctx, job)
	if err == nil {
		err = p.deliverOne(ctx, p.parts.History, p.unsavedFile(id))
	}
	if err != nil {
		return disdel.Record{}, err
	}
	return p.parts.History.Get(ctx, id)
}

// mayResume returns Conflict for an unfinished job that ran at another place, unless move is set.
func (s *Service) mayResume(ctx context.Context, h *history.Store, rec *disdel.Record, move bool) error {
	if move || rec.Status == disdel.StatusSucceeded && rec.Unevaluated == nil {
		return nil // that it has succeeded is told instead
	}
	l, err := h.Lease(ctx, rec.ID)
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		return err
	}
	return s.samePlace(rec, l)
}

// unfinishedOf resolves the job of a record again. The number of workers stays, unless the request changes it, so that
// the weights come out the same.
func (p *preparation) unfinishedOf(ctx context.Context, rec disdel.Record, req ResumeRequest) (disdel.Record,
	controller.Resolved, error,
) {
	var r controller.Resolved
	id := rec.ID
	if rec.Status == disdel.StatusSucceeded && rec.Unevaluated == nil {
		return rec, r, &disdel.Error{
			Kind: disdel.Conflict, Code: disdel.CodeSucceeded, Op: "resume job", Job: id,
			Msg:  string(id) + " has succeeded: there is nothing left to do",
			Hint: "disdel history show " + string(id),
		}
	}
	was := controller.AdjustedJob(rec)
	job, err := changed(was, req)
	if err != nil {
		return rec, r, err
	}
	job.Model.Description = req.Description
	if job.Distribution.Workers == was.Distribution.Workers {
		job.Distribution.Workers = rec.Plan.Workers
	}
	p.journal.job = id
	if r, err = p.resolve(ctx, job, Source{Name: string(id)}); err != nil {
		return rec, r, err
	}
	if r.Data.Checksum != rec.Data.Checksum {
		return rec, r, &disdel.Error{
			Kind: disdel.Conflict, Op: "resume job", Job: id,
			Msg:  fmt.Sprintf("data set %s is not the one that the job began with", r.Data.Name),
			Hint: "add the data set as it was, or submit the job anew",
		}
	}
	return rec, r, nil
}

// changed is the job with what the request says instead. It is checked as a job file is: the history may hold what no
// submit let in, and its names become paths.
func changed(job disdel.Job, req ResumeRequest) (disdel.Job, error) {
	text, err := jobfile.Print(job)
	if err != nil {
		return job, err
	}
	file, err := jobfile.ParseWith("the job of the record", text, req.Sets, req.Open)
	if err != nil || len(req.Sets) == 0 {
		return job, err
	}
	return file.Job, nil
}

// goOn says where the job goes on, and with which limits: those of the plan, or larger ones that failures led to.
// It returns Conflict where the record names a checkpoint, the storage has none, and fromStart is false.
func (p *preparation) goOn(ctx context.Context, spec *controller.Spec, rec disdel.Record, r controller.Resolved,
	fromStart bool,
) error {
	spec.Resumes = rec.Resumes + 1
	controller.RaiseLimits(&spec.Plan, spec.Job, rec)
	c, passed, err := p.parts.Models.NewestCheckpoint(ctx, controller.CheckpointFolder(rec.ID))
	for _, name := range passed {
		p.journal.add(Noted{fmt.Sprintf("checkpoint %s is damaged; an earlier one is taken", name)})
	}
	if disdel.KindOf(err) == disdel.NotFound {
		if rec.Checkpoint != nil && len(passed) == 0 && !fromStart {
			return p.noCheckpoints(&rec)
		}
		if spec.From, err = p.beginsWith(ctx, r); err != nil {
			return err
		}
		err = controller.StartOver(rec, spec)
		p.journal.add(Resumed{Rounds: spec.Plan.Rounds, Fresh: true, Halfway: spec.Kept != nil})
		return err
	}
	if err != nil {
		return err
	}
	if err := controller.CheckResume(rec, *spec, c); err != nil {
		return err
	}
	if err := controller.ContinueFrom(rec, spec, c); err != nil {
		return err
	}
	p.journal.add(Resumed{
		Round: min(c.Round, spec.Plan.Rounds), Rounds: spec.Plan.Rounds, Fresh: c.Round == 0, Halfway: spec.Kept != nil,
	})
	return nil
}

// noCheckpoints refuses to train a job from its start because its checkpoints are somewhere else.
func (p *preparation) noCheckpoints(rec *disdel.Record) error {
	return &disdel.Error{
		Kind: disdel.Conflict, Code: disdel.CodeNoCheckpoint, Op: "resume job", Job: rec.ID,
		Msg: fmt.Sprintf("job %s has a checkpoint of round %d, but %s has none of its checkpoints", rec.ID,
			rec.Checkpoint.Round, p.storageText()),
		Hint: "name the storage that the job ran with: --storage URL; or train it from the start: disdel resume " +
			string(rec.ID) + " --from-start",
	}
}

// storageText names where checkpoints are looked for.
func (s *Service) storageText() string {
	if s.cfg.Storage == "" {
		return "this home's storage"
	}
	return "the storage " + disdel.Redacted(s.cfg.Storage)
}

// resumed is the origin of a resumed job: what is said now counts on.
func resumed(was, now *disdel.Origin) *disdel.Origin {
	if was == nil || now == nil {
		return was
	}
	out := *was
	out.Sets = slices.Concat(was.Sets, now.Sets)
	out.Options = slices.DeleteFunc(slices.Clone(was.Options), func(o disdel.Option) bool {
		return slices.ContainsFunc(now.Options, func(n disdel.Option) bool { return n.Name == o.Name })
	})
	out.Options = append(out.Options, now.Options...)
	return &out
}
