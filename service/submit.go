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

// Request is a job to run, or to estimate.
type Request struct {
	Job    disdel.Job
	Source Source         // the file of the job; the zero value: none
	Origin *disdel.Origin // how it was submitted, for its record; nil: unknown
	Options

	Priority int // in the queue: a higher one goes first; from -MaxPriority to MaxPriority

	// Key makes it safe to submit again if the first try may have succeeded: of all requests of a tenant with the same key
	// only the first makes a job, and the others return that job. "": each request makes a job.
	Key string

	// continued is the job that this one trains for more epochs; nil: none.
	continued *disdel.Continued

	// Preparing is called with each event before the job is acknowledged, in the caller's goroutine, also if the job is
	// refused. The Run begins with the same events. Preparing must not block. nil: nothing is called.
	Preparing func(Event)
}

// Source is the file that a job was read from. It gives faults of the job their line and column.
type Source struct {
	Name   string
	Locate controller.Locator // of a field; nil: unknown
	Faults []disdel.Fault     // that the check of the file found
}

// Options say how a job is planned.
type Options struct {
	Estimator string   // method of the memory estimate, see package estimator; "": planned
	Risk      *float64 // accepted chance that an action runs out of memory; nil: the job's, or the estimator's own
	Probe     bool     // measure the speed for two seconds if no earlier job gives it
	Siblings  int      // other jobs of the same batch, which share the platform's processors
}

// MaxPriority bounds the priority of a request, so that sums and products of priorities fit an int.
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

// planner plans a job.
type planner struct {
	*Service
	Options
	parts   Parts
	id      disdel.JobID
	journal *journal
	adopted bool            // another process acknowledged the job, and is gone
	quota   scheduler.Quota // of the tenant
	release func()          // releases the job's claims on the tenant's disk and Redis quotas; nil: there are none
}

// Check resolves the network and the data set of a job and returns all faults of it at once, as *disdel.Faults. It
// needs only the data sets and models.
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

// Submit plans a job and runs it as soon as there is room in the pool. It returns when the job is acknowledged: its
// record is durable. Until then ctx cancels it. Submit returns Invalid (*disdel.Faults if the job itself has faults),
// OverLimit for a job that never fits, Conflict for a Key that another job has, NoSpace, and what servers answer.
func (s *Service) Submit(ctx context.Context, req Request) (*Run, error) {
	if err := checkPriority(req.Priority); err != nil {
		return nil, err
	}
	id, there, err := s.jobOfKey(ctx, req)
	if err != nil || there != nil {
		return there, err
	}
	if err := s.mayRunMore(); err != nil { // before the work of planning
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
	if err := p.claimRoom(ctx, spec, r.Graph); err != nil {
		return nil, err
	}
	own, err := s.own(ctx, p.id, r.Data.Name)
	if err != nil {
		p.release()
		return nil, err
	}
	spec.Origin, spec.Continued = req.Origin, req.continued
	rec := disdel.Record{
		APIVersion: disdel.APIVersion, ID: p.id, Created: time.Now().UTC(), Job: spec.Job, Data: r.Data, Plan: spec.Plan,
		Origin: req.Origin, Tenant: s.whose(), Priority: req.Priority, Key: req.Key, Planning: req.planning(),
		Continued: req.continued,
	}
	if from := req.continued; from != nil {
		p.journal.add(Noted{from.Text(spec.Job.Training.Epochs)})
	}
	if err = s.keepInputForm(ctx, r.Data); err == nil {
		spec.From, err = p.copyInitial(ctx, r)
	}
	if err != nil {
		p.release()
		own.End(ctx)
		return nil, err
	}
	ready := p.startNew(spec, r)
	run, err := s.begin(ctx, p, own, rec, "submitted", func(context.Context) (readyJob, error) { return ready, nil })
	if err != nil && spec.From != nil {
		p.discardInitial(ctx)
	}
	return run, err
}

// keepInputForm copies what makes rows of a file to the models: the tokenizer of a data set of text, or the description
// of a table's columns. The job's model then takes texts, or rows as the table's file has them.
func (s *Service) keepInputForm(ctx context.Context, data disdel.DataInfo) error {
	if data.Tokenizer == "" && data.Table == "" {
		return nil
	}
	set, err := s.FindDataset(ctx, data.Name)
	if err != nil {
		return err
	}
	models, err := s.Models(ctx)
	if err != nil {
		return err
	}
	if data.Table != "" {
		_, err = models.WriteTable(ctx, set.Manifest.Table())
		return err
	}
	file, err := set.Store.Tokenizer(ctx, &set.Manifest)
	if err == nil {
		_, err = models.WriteTokenizer(ctx, file)
	}
	return err
}

// startNew runs a job from its start.
func (p *planner) startNew(spec controller.Spec, r controller.Resolved) readyJob {
	return readyJob{spec.Plan, func(ctx context.Context, c *controller.Controller) (*disdel.Record, error) {
		return c.Run(ctx, spec, r.Data)
	}}
}

// planThatFits plans a resolved job, and checks the room in Redis, on the disk and in the pool.
func (p *planner) planThatFits(ctx context.Context, r controller.Resolved) (controller.Spec, error) {
	spec, err := p.plan(ctx, r)
	if err != nil {
		return spec, err
	}
	return spec, p.checkRoom(ctx, &spec, r)
}

// checkRoom returns OverLimit or NoSpace for a planned job without room.
func (p *planner) checkRoom(ctx context.Context, spec *controller.Spec, r controller.Resolved) error {
	if err := p.checkStorage(ctx, *spec, r.Graph); err != nil {
		return err
	}
	return p.fitsPool(ctx, spec)
}

// planning is the options as a record keeps them for other processes; nil: all are zero.
func (o Options) planning() *disdel.Planning {
	p := disdel.Planning{Estimator: o.Estimator, Risk: o.Risk, Probe: o.Probe, Siblings: o.Siblings}
	if p == (disdel.Planning{}) {
		return nil
	}
	return &p
}

// optionsOf returns the options of a record.
func optionsOf(p *disdel.Planning) Options {
	if p == nil {
		return Options{}
	}
	return Options{Estimator: p.Estimator, Risk: p.Risk, Probe: p.Probe, Siblings: p.Siblings}
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

// nowhere is the Locate function of jobs without a file.
func nowhere(string) (line, column int) { return 0, 0 }

func (p *planner) resolve(ctx context.Context, job disdel.Job, from Source) (controller.Resolved, error) {
	if from.Locate == nil {
		from.Locate = nowhere
	}
	r, err := controller.Resolve(ctx, job, readable{p.Service, p.parts.Data, p.adopted}, from.Name, from.Locate, from.Faults)
	for _, note := range r.Notes {
		p.journal.add(Noted{note})
	}
	if err == nil {
		err = p.findProgram(ctx, r.Job.Model.Python)
	}
	return r, err
}

// findProgram returns Invalid if the storage lacks the code of a Python program.
func (s *Service) findProgram(ctx context.Context, m *disdel.Python) error {
	if m == nil {
		return nil
	}
	models, err := s.Models(ctx)
	if err == nil {
		err = models.FindProgram(ctx, m.Code)
	}
	if disdel.KindOf(err) != disdel.NotFound {
		return err
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "find program", Msg: fmt.Sprintf("the storage has no code of %s (%s)", m.Name(), m.Code),
		Hint: "submit the job anew with the command disdel, which stores the code",
	}
}

// keyNote is the content of the note of an idempotency key.
type keyNote struct {
	Job    disdel.JobID `json:"job"`
	Digest string       `json:"digest"` // of the request
}

// mostKey bounds the length of a key, in bytes.
const mostKey = 200

// jobOfKey returns the job of a request's key if it was submitted before, or else the id for the new job. The first
// request writes the id before anything else. If it died before its job was acknowledged, the next request takes the
// same id. jobOfKey returns Conflict for a key of another request.
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

// claimKey writes the note of a key, and returns the note of another process if that was faster.
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

// digestOf returns a hash that is equal for equal requests.
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
