package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/history"
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
	Siblings  int      // jobs that are submitted with this one, of a batch: they share the platform's processors
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

// planner is a job on its way to a run.
type planner struct {
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
	p := &planner{Service: s, parts: Parts{Data: data}, journal: newJournal("", req.Preparing)}
	return p.resolveRequest(ctx, req)
}

// Submit plans a job and runs it, as soon as its gang has room. It returns once the job is acknowledged, its record
// being durable; until then ctx cancels it. It returns Invalid, as *disdel.Faults where the job itself is wrong,
// OverLimit for a job that does not fit or never will, Conflict for a Key that means another job, NoSpace, and what
// servers answer.
func (s *Service) Submit(ctx context.Context, req Request) (*Run, error) {
	if err := checkPriority(req.Priority); err != nil {
		return nil, err
	}
	id, there, err := s.jobOfKey(ctx, req)
	if err != nil || there != nil {
		return there, err
	}
	if err := s.mayRunMore(); err != nil { // before it costs anything
		return nil, err
	}
	p, err := s.newPlanner(ctx, id, req.Options, req.Preparing)
	if err != nil {
		return nil, err
	}
	r, err := p.resolveRequest(ctx, req)
	if err != nil {
		return nil, err
	}
	r = p.chooseDevice(ctx, r)
	spec, err := p.planThatFits(ctx, r)
	if err != nil {
		return nil, err
	}
	if p.release, err = p.ClaimDisk(ctx, diskNeed(spec, r.Graph)); err != nil {
		return nil, err
	}
	own, err := s.own(ctx, p.id)
	if err != nil {
		p.release()
		return nil, err
	}
	spec.Origin = req.Origin
	rec := disdel.Record{
		APIVersion: disdel.APIVersion, ID: p.id, Created: time.Now(), Job: spec.Job, Data: r.Data, Plan: spec.Plan,
		Origin: req.Origin, Tenant: s.whose(), Priority: req.Priority, Key: req.Key, Planning: req.planning(),
	}
	if spec.From, err = p.copyInitial(ctx, r); err != nil {
		p.release()
		own.End(ctx)
		return nil, err
	}
	run, err := s.begin(ctx, p, own, rec, "submitted", func(context.Context) (readyJob, error) { return p.startNew(spec, r), nil })
	if err != nil && spec.From != nil {
		p.discardInitial(ctx)
	}
	return run, err
}

// startNew is a job that runs from its start.
func (p *planner) startNew(spec controller.Spec, r controller.Resolved) readyJob {
	return readyJob{spec.Plan, func(ctx context.Context, c *controller.Controller) (*disdel.Record, error) {
		return c.Run(ctx, spec, r.Data)
	}}
}

// planThatFits is the plan of a resolved job that has room in the store, on the disk and in the pool.
func (p *planner) planThatFits(ctx context.Context, r controller.Resolved) (controller.Spec, error) {
	spec, err := p.plan(ctx, r)
	if err != nil {
		return spec, err
	}
	return spec, p.checkRoom(ctx, &spec, r)
}

// checkRoom returns what a job with a plan is refused with for want of room.
func (p *planner) checkRoom(ctx context.Context, spec *controller.Spec, r controller.Resolved) error {
	if err := p.checkStorage(ctx, *spec, r.Graph); err != nil {
		return err
	}
	return p.fitsPool(ctx, spec)
}

// planning is what another process has to know of the options, nil where they say nothing.
func (o Options) planning() *disdel.Planning {
	p := disdel.Planning{Estimator: o.Estimator, Risk: o.Risk, Probe: o.Probe, Beside: o.Siblings}
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
	return Options{Estimator: p.Estimator, Risk: p.Risk, Probe: p.Probe, Siblings: p.Beside}
}

// newPlanner opens what a job needs.
func (s *Service) newPlanner(ctx context.Context, id disdel.JobID, o Options, first func(Event)) (*planner, error) {
	parts, err := s.Parts(ctx)
	p := &planner{Service: s, parts: parts, Options: o, id: id, journal: newJournal(id, first)}
	if err == nil {
		p.quota, err = s.quota(ctx)
	}
	return p, err
}

func newJobID() disdel.JobID { return disdel.JobID("job-" + strings.ToLower(ulid.Make().String())) }

// nowhere is the place of every field of a job that no file has.
func nowhere(string) (line, column int) { return 0, 0 }

func (p *planner) resolve(ctx context.Context, job disdel.Job, from Source) (controller.Resolved, error) {
	if from.Locate == nil {
		from.Locate = nowhere
	}
	r, err := controller.Resolve(ctx, job, p.parts.Data, from.Name, from.Locate, from.Faults)
	for _, note := range r.Notes {
		p.journal.add(Noted{note})
	}
	return r, err
}

// keyNote is what an idempotency key means.
type keyNote struct {
	Job    disdel.JobID `json:"job"`
	Digest string       `json:"digest"` // of what was asked for with it
}

// mostKey bounds the length of a key.
const mostKey = 200

// jobOfKey is the job that a request's key means where it was submitted before, or else the id that it is to be submitted
// with. Who submits first gives the key its job before anything else is done; a try that died before its job was
// acknowledged left an id that the next try takes. It returns Conflict for a key that means another job.
func (s *Service) jobOfKey(ctx context.Context, req Request) (disdel.JobID, *Run, error) {
	id := newJobID()
	if req.Key == "" {
		return id, nil, nil
	}
	if len(req.Key) > mostKey {
		return "", nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "submit job", Msg: fmt.Sprintf("the idempotency key is longer than %d bytes", mostKey),
		}
	}
	digest, err := digestOf(req)
	if err != nil {
		return "", nil, err
	}
	h, err := s.History(ctx)
	if err != nil {
		return "", nil, err
	}
	known, err := s.claimKey(ctx, h, req.Key, keyNote{id, digest})
	switch {
	case err != nil:
		return "", nil, err
	case known.Digest != digest:
		return "", nil, &disdel.Error{
			Kind: disdel.Conflict, Op: "submit job", Job: known.Job,
			Msg:  fmt.Sprintf("the idempotency key %.80q was used for another job, %s", req.Key, known.Job),
			Hint: "use another key, or submit the same job",
		}
	case known.Job == id:
		return id, nil, nil
	}
	run, err := s.Watch(s.open, string(known.Job))
	if disdel.KindOf(err) == disdel.NotFound {
		return known.Job, nil, nil
	}
	return known.Job, run, err
}

// claimKey writes what a key means, and returns what it means already where somebody was faster.
func (s *Service) claimKey(ctx context.Context, h *history.Store, key string, means keyNote) (keyNote, error) {
	sum := sha256.Sum256([]byte(s.whose() + "\x00" + key))
	n, err := h.Note(ctx, history.NoteKey, hex.EncodeToString(sum[:]))
	if disdel.KindOf(err) == disdel.NotFound {
		if n.Value, err = json.Marshal(means); err != nil {
			return means, err
		}
		if _, err = h.WriteNote(ctx, n); disdel.KindOf(err) != disdel.Conflict {
			return means, err
		}
		n, err = h.Note(ctx, n.Kind, n.Name)
	}
	if err == nil {
		err = json.Unmarshal(n.Value, &means)
	}
	return means, err
}

// digestOf is the same for requests that ask for the same.
func digestOf(req Request) (string, error) {
	data, err := json.Marshal(struct {
		Job      disdel.Job
		Planning *disdel.Planning
		Priority int
	}{req.Job, req.planning(), req.Priority})
	if err != nil {
		return "", &disdel.Error{Kind: disdel.Invalid, Op: "submit job", Err: err}
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
