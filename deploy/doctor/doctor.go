package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/service"
)

// Board is where probes meet: the store that actions share, as this machine reaches it.
type Board interface {
	// Progress is what the probes of a check said last.
	Progress(ctx context.Context, probes disdel.JobID) ([]disdel.Progress, error)
	// Cancel sends them away.
	Cancel(ctx context.Context, probes disdel.JobID) error
	// Sweep removes what they left.
	Sweep(ctx context.Context, probes disdel.JobID) (int, error)
}

// Config is a cluster, and what of it is to be examined.
type Config struct {
	Executor *executor.Executor
	Host     string // as it is told

	// Board and Store are the Redis of jobs, as this machine and as actions reach it. nil: BoardFailure says why.
	Board        Board
	Store        *disdel.Store
	BoardFailure error

	Models         string // blob URL that actions are given
	CouchDB        string // address of the history without its password, "" for an embedded one
	HistoryFailure error  // why this machine does not reach it

	Need disdel.Limits // of the largest action that is to run; 0: any will do
	Most int           // containers that are asked for at once; 0: 16

	// Settle is how long a check waits for one more container before it takes those that run for all. It is to be longer
	// than a cold start. 0: 5 s.
	Settle time.Duration

	// Patience is how long beyond its timeout a probe may wait for its turn. 0: two minutes.
	Patience time.Duration

	Tell func(Finding) // is told each finding at once; nil: nobody
}

// standard is what a Config's zeros mean.
const (
	standardMost     = 16
	standardSettle   = 5 * time.Second
	standardPatience = 2 * time.Minute
)

// doctor is one examination.
type doctor struct {
	Config
	report Report
	limits disdel.PlatformLimits
	pkg    string
	nodes  map[string]disdel.Bytes // memory that ran at once, by machine
	all    bool                    // every container that was asked for ran
	held   bool                    // a quota let fewer be asked for than were wanted
}

// check is one look; more is false where nothing else can be found out.
type check func(ctx context.Context) (more bool)

// Examine looks at a cluster, and returns what it found. What it finds is no error; ctx ends it.
func Examine(ctx context.Context, cfg Config) (Report, error) {
	if cfg.Most == 0 {
		cfg.Most = standardMost
	}
	if cfg.Settle == 0 {
		cfg.Settle = standardSettle
	}
	if cfg.Patience == 0 {
		cfg.Patience = standardPatience
	}
	if cfg.Tell == nil {
		cfg.Tell = func(Finding) {}
	}
	d := &doctor{
		Config: cfg, report: Report{Host: cfg.Host, Findings: []Finding{}}, nodes: map[string]disdel.Bytes{},
		pkg: "disdel-doctor-" + strings.ToLower(ulid.Make().String()),
	}
	defer d.cleanUp(ctx)
	for _, look := range []check{
		d.api, d.credentials, d.allowances, d.container, d.pool, d.largest, d.longest, d.outOfMemory,
	} {
		if more := look(ctx); !more || ctx.Err() != nil {
			break
		}
	}
	d.report.Facts.At = time.Now()
	if ctx.Err() != nil {
		return d.report, &disdel.Error{Kind: disdel.Canceled, Op: "examine " + cfg.Host, Err: context.Cause(ctx)}
	}
	return d.report, nil
}

// cleanUpWithin bounds the time after the last check.
const cleanUpWithin = 30 * time.Second

// cleanUp removes the probes' actions, also where the examination was interrupted.
func (d *doctor) cleanUp(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanUpWithin)
	defer stop()
	d.Executor.Remove(ctx, d.pkg) //nolint:errcheck // what is left costs nothing, and the findings are what counts
}

func (d *doctor) found(f Finding) {
	d.report.Findings = append(d.report.Findings, f)
	d.Tell(f)
}

// probing is one probe action.
type probing struct {
	limits disdel.Limits
	ask    disdel.ProbeRequest
}

// longestProbe bounds a probe: what it is asked takes seconds.
const longestProbe = disdel.Millis(2 * time.Minute)

// timeout is what probes are given.
func (d *doctor) timeout() disdel.Millis { return min(d.limits.MaxTimeout, longestProbe) }

// probe prepares an action and invokes it once.
func (d *doctor) probe(ctx context.Context, p probing) (disdel.Activation, error) {
	inv, err := d.prepare(ctx, p)
	if err != nil {
		return disdel.Activation{}, err
	}
	return d.run(ctx, inv, p.ask)
}

// prepare makes the action that probes of these limits are activations of.
func (d *doctor) prepare(ctx context.Context, p probing) (disdel.Invocation, error) {
	name := disdel.ActionName(d.pkg + "/probe-" + sizeName(p.limits))
	plan := disdel.ActionPlan{Task: disdel.TaskProbe, Name: name, Limits: p.limits}
	inv := disdel.Invocation{
		Task: disdel.TaskProbe, Action: name, Attempt: 1, Limits: p.limits, Estimate: p.limits.Memory,
		Likely: p.limits.Memory,
	}
	return inv, d.Executor.Prepare(ctx, d.pkg, []disdel.ActionPlan{plan})
}

// sizeName tells actions of different limits apart.
func sizeName(l disdel.Limits) string {
	return fmt.Sprintf("%d-%d", l.Memory.MB(), time.Duration(l.Timeout).Milliseconds())
}

// run invokes a probe and waits for its record.
func (d *doctor) run(ctx context.Context, inv disdel.Invocation, ask disdel.ProbeRequest) (disdel.Activation, error) {
	return d.runTelling(ctx, ctx, inv, ask, func() {})
}

// runTelling is run, and calls accepted once OpenWhisk has taken the invocation. The end of taking
// ends the wait until it does.
func (d *doctor) runTelling(
	ctx, taking context.Context, inv disdel.Invocation, ask disdel.ProbeRequest, accepted func(),
) (a disdel.Activation, err error) {
	ask.Memory = inv.Limits.Memory
	if inv.Params, err = json.Marshal(ask); err != nil {
		return a, &disdel.Error{Kind: disdel.Internal, Op: "probe", Err: err}
	}
	inv.ID, inv.Member = fmt.Sprintf("probe/%d", ask.Member), ask.Member
	ctx, stop := context.WithTimeoutCause(ctx, d.Patience+time.Duration(inv.Limits.Timeout), errNotServed)
	defer stop()
	id, err := d.Executor.Invoke(taking, inv)
	if err != nil {
		return a, err
	}
	accepted()
	return d.Executor.Wait(ctx, inv, id)
}

// resultOf is what a probe answered, and why it did not.
func resultOf(a disdel.Activation, err error) (res disdel.ProbeResult, failure *disdel.Error) {
	switch {
	case err != nil:
		return res, disdel.AsError(err)
	case a.Failure != nil:
		return res, a.Failure
	}
	if err := json.Unmarshal(a.Result, &res); err != nil {
		return res, &disdel.Error{Kind: disdel.Internal, Op: "read the probe's answer", Err: err}
	}
	return res, nil
}

// errNotServed is of a probe that OpenWhisk took, and of which nothing was heard for longer than it may take.
var errNotServed = errors.New("OpenWhisk took the invocation and did not run it")

// newProbes names the probes of one check.
func newProbes() disdel.JobID { return disdel.JobID("job-" + strings.ToLower(ulid.Make().String())) }

// Of is the examination of a service's cluster: cfg with the parts of the service that were not said. A store that does
// not answer is no error but something to be found.
func Of(ctx context.Context, s *service.Service, cfg Config) (Config, error) {
	var err error
	if cfg.Executor, err = s.Executor(ctx); err != nil {
		return cfg, err
	}
	cfg.Models = s.ModelsURL()
	if board, store, err := s.Board(ctx); err != nil {
		cfg.BoardFailure = err
	} else {
		cfg.Board, cfg.Store = board, &store
	}
	_, cfg.HistoryFailure = s.History(ctx)
	return cfg, nil
}
