package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/internal/localplatform"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

// Request is a job to run, or to ask about.
type Request struct {
	Job    disdel.Job
	Source Source         // where the job was read from; the zero value: nowhere
	Origin *disdel.Origin // how it was submitted, for its record and for those who submit it again; nil: not told
	Options

	Priority int // in the queue: a higher one goes first; from -MaxPriority to MaxPriority

	// Key makes it safe to submit again when nobody knows whether the first try came through: of all requests with the
	// same key of one tenant only the first makes a job, and the others are that job. "": each makes one.
	Key string

	// Preparing is told each event that comes before the job is acknowledged, at once and from the caller's goroutine;
	// also where the job is refused. The same events begin those of the Run. It must not block. nil: nobody.
	Preparing func(Event)
}

// Source is the file that a job was read from, so that what is wrong with it can be told with its place.
type Source struct {
	Name   string
	Locate controller.Locator // of a field; nil: no field has a place
	Faults []disdel.Fault     // that its own check found
}

// Options say how a job is planned.
type Options struct {
	Estimator string   // method that estimates memory, see package estimator; "": planned
	Risk      *float64 // accepted chance that an action runs out of memory; nil: the job's, or the estimator's own
	Probe     bool     // where no earlier job tells how long this one takes, train for two seconds to find out
	Beside    int      // jobs that are submitted with this one, of a batch: they share the platform's processors
}

// MaxPriority bounds a request's priority, so that no sum or product of priorities passes an int.
const MaxPriority = 1_000_000

func checkPriority(priority int) error {
	if priority >= -MaxPriority && priority <= MaxPriority {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "submit job",
		Msg:  fmt.Sprintf("priority %d is out of range: it can be from %d to %d", priority, -MaxPriority, MaxPriority),
		Hint: "give a smaller number; 0 is the priority of most jobs",
	}
}

// preparation is a job on its way to a run.
type preparation struct {
	*Service
	Options
	parts   Parts
	id      disdel.JobID
	journal *journal
	adopted bool            // the job was acknowledged before, by a process that is no more
	quota   scheduler.Quota // of the tenant
	release func()          // gives back what the job claims of the tenant's disk quota; nil: nothing
}

// Check resolves the network and the data set of a job and returns everything that is wrong with it at once, as
// *disdel.Faults. It needs nothing but the data sets.
func (s *Service) Check(ctx context.Context, req Request) (controller.Resolved, error) {
	if err := checkPriority(req.Priority); err != nil {
		return controller.Resolved{}, err
	}
	data, err := s.Datasets(ctx)
	if err != nil {
		return controller.Resolved{}, err
	}
	p := &preparation{Service: s, parts: Parts{Data: data}, journal: newJournal("", req.Preparing)}
	return p.submitted(ctx, req)
}

// Submit plans a job and runs it, as soon as its gang has room. It returns once the job is acknowledged, its record
// being durable; until then ctx cancels it. It returns Invalid, as *disdel.Faults where the job itself is wrong,
// OverLimit for a job that does not fit or never will, Conflict for a Key that means another job, NoSpace, and what
// servers answer.
func (s *Service) Submit(ctx context.Context, req Request) (*Run, error) {
	if err := checkPriority(req.Priority); err != nil {
		return nil, err
	}
	id, there, err := s.meant(ctx, req)
	if err != nil || there != nil {
		return there, err
	}
	if err := s.mayRunMore(); err != nil { // before it costs anything
		return nil, err
	}
	p, err := s.preparing(ctx, id, req.Options, req.Preparing)
	if err != nil {
		return nil, err
	}
	r, err := p.submitted(ctx, req)
	if err != nil {
		return nil, err
	}
	r = p.chosen(ctx, r)
	spec, err := p.fitting(ctx, r)
	if err != nil {
		return nil, err
	}
	if p.release, err = p.claimDisk(ctx, spec, r.Graph); err != nil {
		return nil, err
	}
	own, err := s.own(ctx, p.parts.History, p.id)
	if err != nil {
		p.release()
		return nil, err
	}
	spec.Origin = req.Origin
	rec := disdel.Record{
		APIVersion: disdel.APIVersion, ID: p.id, Created: time.Now(), Job: spec.Job, Data: r.Data, Plan: spec.Plan,
		Origin: req.Origin, Tenant: s.whose(), Priority: req.Priority, Key: req.Key, Planning: req.planning(),
	}
	if spec.From, err = p.beginsWith(ctx, r); err != nil {
		p.release()
		own.end(ctx)
		return nil, err
	}
	run, err := s.begin(ctx, p, own, rec, "submitted", func(context.Context) (work, error) { return p.anew(spec, r), nil })
	if err != nil && spec.From != nil {
		p.noBeginning(ctx)
	}
	return run, err
}

// anew is a job that runs from its start.
func (p *preparation) anew(spec controller.Spec, r controller.Resolved) work {
	return work{spec.Plan, func(ctx context.Context, c *controller.Controller) (*disdel.Record, error) {
		return c.Run(ctx, spec, r.Data)
	}}
}

// fitting is the plan of a resolved job that has room in the store, on the disk and in the pool.
func (p *preparation) fitting(ctx context.Context, r controller.Resolved) (controller.Spec, error) {
	spec, err := p.plan(ctx, r)
	if err != nil {
		return spec, err
	}
	return spec, p.fits(ctx, &spec, r)
}

// fits returns what a job with a plan is refused with for want of room.
func (p *preparation) fits(ctx context.Context, spec *controller.Spec, r controller.Resolved) error {
	if err := p.room(ctx, *spec, r.Graph); err != nil {
		return err
	}
	return p.everFits(ctx, spec)
}

// planning is what another process has to know of the options, nil where they say nothing.
func (o Options) planning() *disdel.Planning {
	p := disdel.Planning{Estimator: o.Estimator, Risk: o.Risk, Probe: o.Probe, Beside: o.Beside}
	if p == (disdel.Planning{}) {
		return nil
	}
	return &p
}

// optionsOf is the options that a job was submitted with.
func optionsOf(p *disdel.Planning) Options {
	if p == nil {
		return Options{}
	}
	return Options{Estimator: p.Estimator, Risk: p.Risk, Probe: p.Probe, Beside: p.Beside}
}

// preparing opens what a job needs.
func (s *Service) preparing(ctx context.Context, id disdel.JobID, o Options, first func(Event)) (*preparation, error) {
	parts, err := s.Parts(ctx)
	p := &preparation{Service: s, parts: parts, Options: o, id: id, journal: newJournal(id, first)}
	if err == nil {
		p.quota, err = s.quota(ctx)
	}
	return p, err
}

func newJobID() disdel.JobID { return disdel.JobID("job-" + strings.ToLower(ulid.Make().String())) }

// nowhere is the place of every field of a job that no file has.
func nowhere(string) (line, column int) { return 0, 0 }

func (p *preparation) resolve(ctx context.Context, job disdel.Job, from Source) (controller.Resolved, error) {
	if from.Locate == nil {
		from.Locate = nowhere
	}
	r, err := controller.Resolve(ctx, job, p.parts.Data, from.Name, from.Locate, from.Faults)
	for _, note := range r.Notes {
		p.journal.add(Noted{note})
	}
	return r, err
}

// plan makes the plan of a resolved job, and all that a controller needs to run it.
func (p *preparation) plan(ctx context.Context, r controller.Resolved) (controller.Spec, error) {
	in, err := p.input(ctx, r)
	if err != nil {
		return controller.Spec{}, err
	}
	return p.planned(r, in)
}

// planned is a job with the plan that an input leads to.
func (p *preparation) planned(r controller.Resolved, in scheduler.PlanInput) (controller.Spec, error) {
	asked := in
	asked.Suggest = true
	planned := in
	plan, err := scheduler.NewPlan(asked)
	if err != nil {
		return controller.Spec{}, err
	}
	return controller.Spec{
		ID: in.ID, Job: r.Job, Network: r.Network, Plan: plan, Planned: &planned,
		Store: p.parts.Store, Threads: plan.Threads,
		Past: scheduler.PastObservations(in.History, r.Job, r.Data), ClassNames: r.Labels,
		Data: disdel.DataRef{
			URL: p.storage("datasets"), Name: r.Data.Name, Checksum: r.Data.Checksum, Resize: r.Data.Resize,
			Split: r.Job.Data.Split, Augment: r.Data.Augment,
		},
		Models: p.storage("models"), Output: modelstore.WeightsPath(r.Job.Output.Model, in.ID),
		Replan: func(job disdel.Job) (disdel.Plan, error) {
			in.Job, in.Decided = job, true
			return scheduler.NewPlan(in)
		},
	}, nil
}

// input is planInput after a look at how fast the job trains, if one is allowed and no earlier job tells.
func (p *preparation) input(ctx context.Context, r controller.Resolved) (scheduler.PlanInput, error) {
	in, err := p.planInput(ctx, r)
	if err != nil {
		return in, err
	}
	for _, note := range p.unknown(in) {
		p.journal.add(Noted{note})
	}
	if !p.Probe {
		return in, nil
	}
	spec, err := p.planned(r, in)
	if err != nil || spec.Plan.TimeoutSource == "history" {
		return in, err
	}
	c := controller.New(controller.Config{
		Invoker: p.parts.Executor, Recorder: p.parts.History, Store: p.parts.Board, Log: p.log,
	})
	rate, err := c.Probe(ctx, spec)
	if err != nil {
		return in, err
	}
	p.journal.add(Probed{rate})
	in.Rate = &rate
	return in, nil
}

// pastRecords bounds how many earlier jobs a plan looks at.
const pastRecords = 200

// planInput is what a resolved job's plan is made of on the platform at hand.
func (p *preparation) planInput(ctx context.Context, r controller.Resolved) (in scheduler.PlanInput, err error) {
	limits, err := p.parts.Executor.Limits(ctx)
	// its API does not tell
	limits.Pool, limits.Host, limits.Millicores = p.parts.Pool, p.cfg.OpenWhisk.Host, p.cfg.ActionMillicores
	limits.PoolFrom, limits.PoolAt = p.parts.PoolFrom, p.parts.PoolAt
	if err != nil {
		return in, err
	}
	var known []string
	if !p.embedded() { // the namespace's own quotas, where an admin has set them apart
		f := p.facts()
		known = knownText(f, limits, time.Now())
		f = f.Trusted()
		limits.PerMinute, limits.Concurrent = cmp.Or(f.PerMinute, limits.PerMinute), cmp.Or(f.Concurrent, limits.Concurrent)
	}
	limits = p.accelerated(ctx, limits)
	if err := p.onGPU(r.Job, limits); err != nil {
		return in, err
	}
	if err := controller.CheckPlatform(r.Job, limits); err != nil {
		return in, err
	}
	past, err := p.pastOf(ctx, r.Job)
	if err != nil {
		return in, err
	}
	if len(past.all) > 0 && p.embedded() { // without a past there is no forecast to correct
		limits.Busy = p.load.now(ctx)
	}
	by, err := p.estimator(r.Job, past.all)
	processors := p.processors(ctx, past.all)
	in = scheduler.PlanInput{
		ID: p.id, Job: r.Job, Graph: r.Graph, Data: r.Data, Platform: limits, History: past.similar, Past: past.all,
		Estimator: by, Processors: processors, Siblings: p.Beside,
		PlatformReasons: known,
		Threads:         func(parallel int) int { return threads(processors, parallel) },
	}
	if processors == 0 && !p.embedded() {
		in.ProcessorsUnknown = unknownProcessors
	}
	return in, err
}

// estimator is the one that is asked for, at the risk that is accepted: the option's, else the job's.
func (p *preparation) estimator(job disdel.Job, past []disdel.Record) (estimator.Estimator, error) {
	risk := job.Resources.Risk
	if p.Risk != nil {
		if risk = *p.Risk; risk == 0 {
			risk = -1 // no limit is without risk: it is refused as one, and not taken for the default
		}
	}
	return estimator.New(backends.Standard(nil), cmp.Or(p.Estimator, estimator.MethodPlanned), risk, past)
}

// processors is what the job's actions share: those of this machine for an embedded platform; those that a platform of
// disdel tells of, that containers of the newest job there have found, or that were found out by probing, for another.
// 0 where none is known.
func (s *Service) processors(ctx context.Context, past []disdel.Record) int {
	if n := s.ownProcessors(ctx); n > 0 {
		return n
	}
	for i := range past {
		if p := past[i].Plan.Platform; p.Host == s.cfg.OpenWhisk.Host && p.Found > 0 {
			return p.Found
		}
	}
	return s.facts().Shared()
}

// ownProcessors is all that a platform has, embedded or one of disdel that tells; 0 for another.
func (s *core) ownProcessors(ctx context.Context) int {
	if s.embedded() {
		return localplatform.Processors()
	}
	if told := s.told(ctx); told != nil {
		return told.Processors
	}
	return 0
}

const (
	unknownProcessors = "how many processors the platform has is not known before a first job has run there; " +
		"disdel doctor finds out, or --set resources.threads=N"
	unknownPool = "the memory of the platform's pool is not known: an action larger than that would wait for ever; " +
		"disdel doctor finds out, or --pool-memory SIZE"
)

// unknown says what is taken for granted of a platform that does not tell of itself, a sentence each.
func (p *preparation) unknown(in scheduler.PlanInput) (notes []string) {
	if p.embedded() {
		return nil
	}
	if in.Processors == 0 {
		notes = append(notes, "one thread a train action: "+unknownProcessors)
	}
	if p.parts.Pool == 0 {
		notes = append(notes, unknownPool)
	}
	return notes
}

// threads shares processors among the train actions that run at once; one where nobody knows how many there are.
func threads(processors, parallel int) int { return max(1, processors/max(parallel, 1)) }

// together is the records of both lists, newest first, each once: those of the same kind may be older than the newest
// of any.
func together(recent, similar []disdel.Record) []disdel.Record {
	out := slices.Concat(recent, similar)
	slices.SortStableFunc(out, func(a, b disdel.Record) int { return cmp.Compare(b.ID, a.ID) })
	return slices.CompactFunc(out, func(a, b disdel.Record) bool { return a.ID == b.ID })
}
