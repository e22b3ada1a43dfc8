package service

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/addresses"
)

// ResumeRequest is a job to resume.
type ResumeRequest struct {
	Job  string                       // an id, the start of one, a job's name or @last
	Sets []string                     // PATH=VALUE, fields of the job file to change
	Open func(string) ([]byte, error) // files that Sets name; nil: none can be read

	// Description is the network of the job's custom program, see Describe. nil: it has no such program.
	Description *disdel.CustomNetwork

	// Origin is how the job is resumed. The record keeps the options of the submit, except where these replace them.
	// nil: no change.
	Origin *disdel.Origin
	Options
	Preparing func(Event) // as of a Request

	// Move allows the job to continue on this Service's servers although it ran on others.
	Move bool

	// FromStart allows the job to begin anew if its record names a checkpoint and none is found.
	FromStart bool
}

// Resume continues a job at its newest complete checkpoint, with the limits that its failures led to. It returns the
// errors of Submit, and NotFound for an unknown job. It returns Conflict for a job that runs, that was changed so that
// it cannot continue, that ran on other servers (CodeElsewhere), or whose checkpoints are missing (CodeNoCheckpoint).
//
// A job that has succeeded is trained for more epochs if Sets give more: a new job starts from its model. Resume
// returns Conflict if they do not (CodeSucceeded without Sets), or if the model is gone.
func (s *Service) Resume(ctx context.Context, req ResumeRequest) (*Run, error) {
	p, err := s.newPlanner(ctx, "", req.Options, req.Preparing)
	if err != nil {
		return nil, err
	}
	rec, err := p.findRecord(ctx, req.Job)
	if err != nil {
		return nil, err
	}
	if rec.Status == disdel.StatusSucceeded && rec.Unevaluated == nil {
		return p.trainOn(ctx, rec, req)
	}
	if err := s.mayResume(ctx, p.parts.History, &rec, req.Move); err != nil {
		return nil, err
	}
	rec, r, err := p.resolveAgain(ctx, rec, req)
	if err != nil {
		return nil, err
	}
	p.id, p.journal.job = rec.ID, rec.ID
	own, err := s.own(ctx, rec.ID, rec.Data.Name)
	if err != nil {
		return nil, err
	}
	spec, err := p.planResume(ctx, rec, r, req.FromStart)
	if err != nil {
		own.End(ctx)
		return nil, err
	}
	spec.Origin = mergeOrigin(rec.Origin, req.Origin)
	if err := p.claimRoom(ctx, spec, r.Graph); err != nil {
		own.End(ctx)
		return nil, err
	}
	ready := p.continueOld(spec, rec)
	return s.begin(ctx, p, own, rec, "resumed", func(context.Context) (readyJob, error) { return ready, nil })
}

// continueOld runs a job from its newest checkpoint.
func (p *planner) continueOld(spec controller.Spec, rec disdel.Record) readyJob {
	return readyJob{spec.Plan, func(ctx context.Context, c *controller.Controller) (*disdel.Record, error) {
		return c.Resume(ctx, spec, rec)
	}}
}

// planResume plans a job that continues.
func (p *planner) planResume(ctx context.Context, rec disdel.Record, r controller.Resolved, fromStart bool,
) (controller.Spec, error) {
	spec, err := p.planThatFits(ctx, r)
	if err != nil {
		return spec, err
	}
	return spec, p.continueAt(ctx, &spec, rec, r, fromStart)
}

// findRecord reads the record of a job. If the end of the job is still in Home, it is delivered first: a job that has
// ended must not be trained again.
func (p *planner) findRecord(ctx context.Context, job string) (disdel.Record, error) {
	id, err := p.ResolveOwn(ctx, job)
	if err == nil {
		err = p.deliverOne(ctx, p.parts.History, p.unsavedFile(id))
	}
	if err != nil {
		return disdel.Record{}, err
	}
	return p.parts.History.Get(ctx, id)
}

// mayResume returns Conflict for an unfinished job that ran on other servers, unless move is set.
func (s *Service) mayResume(ctx context.Context, h *history.Store, rec *disdel.Record, move bool) error {
	if move || rec.Status == disdel.StatusSucceeded && rec.Unevaluated == nil {
		return nil // resolveAgain returns that it has succeeded
	}
	l, err := h.Lease(ctx, rec.ID)
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		return err
	}
	return s.samePlace(rec, l)
}

// resolveAgain resolves the job of a record. It keeps the number of workers, unless the request changes it, so that the
// weights get the same bits.
func (p *planner) resolveAgain(ctx context.Context, rec disdel.Record, req ResumeRequest) (disdel.Record,
	controller.Resolved, error,
) {
	var r controller.Resolved
	id := rec.ID
	if rec.Status == disdel.StatusSucceeded && rec.Unevaluated == nil {
		return rec, r, &disdel.Error{
			Kind: disdel.Conflict, Code: disdel.CodeSucceeded, Op: "resume job", Job: id,
			Msg:  string(id) + " has succeeded: there is nothing left to do",
			Hint: "disdel jobs show " + string(id),
		}
	}
	was := controller.AdjustedJob(rec)
	job, err := withSets(was, req)
	if err != nil {
		return rec, r, err
	}
	if setsEpochs(req.Sets) && rec.Continued != nil { // as for the job that this one trains further
		if job.Training.Epochs -= rec.Continued.Epochs; job.Training.Epochs < 1 {
			return rec, r, trainOnError(id, "it started from a model of "+disdel.Counted(rec.Continued.Epochs, "epoch"),
				fmt.Sprintf("give more epochs: --set training.epochs=%d", rec.Continued.Epochs+was.Training.Epochs))
		}
	}
	job.Model.Description = req.Description
	if job.Distribution.Workers == was.Distribution.Workers {
		job.Distribution.Workers = rec.Plan.Replicas()
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

// setsEpochs reports whether a request changes the number of epochs.
func setsEpochs(sets []string) bool {
	return slices.ContainsFunc(sets, func(s string) bool { return strings.HasPrefix(s, "training.epochs=") })
}

// withSets returns the job with the changes of the request. It checks the job as a job file: the history may have what
// no Submit allowed, and names become paths.
func withSets(job disdel.Job, req ResumeRequest) (disdel.Job, error) {
	text, err := jobfile.Print(job)
	if err != nil {
		return job, err
	}
	file, err := jobfile.ParseWith("the job of the record", text, req.Sets, req.Open)
	if err != nil || len(req.Sets) == 0 {
		return job, err
	}
	return withProgram(file.Job, job)
}

// withProgram returns a changed job with the Python program and the optimiser of the job as it was, which no job file
// has. It returns Invalid if the changes are about the program: its code and its description are of before.
func withProgram(job, was disdel.Job) (disdel.Job, error) {
	if was.Model.Python == nil && job.Model.Python == nil {
		return job, nil
	}
	if was.Model.Python != nil && job.Model.Python != nil {
		file := *was.Model.Python
		file.Code, file.Network, file.Interpreter, file.Translation = "", nil, "", nil
		if reflect.DeepEqual(&file, job.Model.Python) && job.Training.Backend == was.Training.Backend {
			job.Model.Python, job.Model.Layers = was.Model.Python, was.Model.Layers
			if was.Training.Optimizer.Own != nil {
				job.Training.Optimizer = was.Training.Optimizer
			}
			return job, nil
		}
	}
	return job, &disdel.Error{
		Kind: disdel.Invalid, Op: "resume job",
		Msg:  "a job that continues keeps its program and its engine: model.python and training.backend cannot change",
		Hint: "submit the job anew; model.init.weights starts it from a trained model",
	}
}

// continueAt sets where the job continues, and its limits: those of the plan, or larger ones after failures. It returns
// Conflict if the record names a checkpoint, the storage has none, and fromStart is false.
func (p *planner) continueAt(ctx context.Context, spec *controller.Spec, rec disdel.Record, r controller.Resolved,
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
			return p.checkpointsMissing(&rec)
		}
		if spec.From, err = p.copyInitial(ctx, r); err != nil {
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

// checkpointsMissing is the error for a job whose checkpoints are not in this storage.
func (p *planner) checkpointsMissing(rec *disdel.Record) error {
	return &disdel.Error{
		Kind: disdel.Conflict, Code: disdel.CodeNoCheckpoint, Op: "resume job", Job: rec.ID,
		Msg: fmt.Sprintf("job %s has a checkpoint of round %d, but %s has none of its checkpoints", rec.ID,
			rec.Checkpoint.Round, p.storageText()),
		Hint: "name the storage that the job ran with: --storage URL; or train it from the start: disdel resume " +
			string(rec.ID) + " --from-start",
	}
}

// storageText names the storage of checkpoints for a person.
func (s *Service) storageText() string {
	if s.cfg.Storage == "" {
		return "this home's storage"
	}
	return "the storage " + disdel.Redacted(s.cfg.Storage)
}

// mergeOrigin returns the origin of a resumed job: the options of the resume replace those of the submit.
func mergeOrigin(was, now *disdel.Origin) *disdel.Origin {
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

// addresses are the servers of this Service, as flags of the command line without passwords. An embedded server has
// none. The result is never nil.
func (s *core) addresses() []disdel.Option {
	out := []disdel.Option{}
	for _, o := range []disdel.Option{
		{Name: "apihost", Value: s.cfg.OpenWhisk.Host},
		{Name: "storage", Value: s.cfg.Storage},
		{Name: "redis", Value: addresses.WithoutPasswords(strings.Join(s.cfg.Redis, ","))},
		{Name: "redis-prefix", Value: s.cfg.RedisPrefix},
	} {
		if o.Value != "" {
			out = append(out, o)
		}
	}
	return out
}

// knowsPlace reports whether it is known which servers a job ran on: by its record, or by its lease if the record is a
// tenant's.
func knowsPlace(rec *disdel.Record, l history.Lease) bool {
	return rec.Place != nil || l.Addresses != nil
}

// samePlace returns Conflict with CodeElsewhere if a job ran on other servers than this Service's. It does not compare
// unknown addresses.
func (s *core) samePlace(rec *disdel.Record, l history.Lease) error {
	ran := addresses.PlaceOfRecord(rec)
	if rec.Place == nil && l.Addresses != nil {
		ran = l.Addresses
	}
	here := addresses.Place(s.addresses())
	d, differ := addresses.FirstDifference(ran, func(flag string) (string, bool) {
		now, _ := here.Value(flag)
		_, was := ran.Value(flag)
		return now, was || knowsPlace(rec, l)
	})
	if !differ {
		return nil
	}
	err := &disdel.Error{
		Kind: disdel.Conflict, Code: disdel.CodeElsewhere, Op: "resume job", Job: rec.ID,
		Msg:  fmt.Sprintf("job %s ran at another place than this server's", rec.ID),
		Hint: "to run the job at this place instead: disdel resume " + string(rec.ID) + " --move",
	}
	if rec.Tenant == "" { // tenants do not see the operator's addresses
		err.Msg = fmt.Sprintf("job %s ran on %s (--%s); this server uses %s", rec.ID,
			cmp.Or(d.Was, "the embedded part"), d.Flag, cmp.Or(d.Now, "the embedded part"))
	}
	return err
}
