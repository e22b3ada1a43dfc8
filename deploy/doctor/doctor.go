package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/deploy/clusterfacts"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/service"
)

// ProgressStore is the store that probes share, as this machine reaches it.
type ProgressStore interface {
	// Progress returns the last heartbeat of every probe.
	Progress(ctx context.Context, probes disdel.JobID) ([]disdel.Progress, error)
	// Cancel ends the probes.
	Cancel(ctx context.Context, probes disdel.JobID) error
	// Sweep deletes what they left.
	Sweep(ctx context.Context, probes disdel.JobID) (int, error)
}

// Config is a cluster and what to examine.
type Config struct {
	Executor *executor.Executor
	Host     string // as shown to users

	// ProgressStore and Store are the Redis of jobs, as this machine and as actions reach it. nil: StoreFailure says why.
	ProgressStore ProgressStore
	Store         *disdel.Store
	StoreFailure  error

	Models         string // blob URL for actions
	CouchDB        string // address of the history without its password; "": embedded
	HistoryFailure error  // why this machine cannot reach it

	Need          disdel.Limits // limits of the largest action to run; 0: no requirement
	MaxContainers int           // most containers to ask for at once; 0: 16

	// Settle is how long a check waits for one more container. It must be longer than a cold start. 0: 5 s.
	Settle time.Duration

	// Patience is how long a probe may wait in the queue, beyond its timeout. 0: two minutes.
	Patience time.Duration

	OnFinding func(Finding) // called with each finding at once; may be nil
}

// The defaults of Config.
const (
	standardMost     = 16
	standardSettle   = 5 * time.Second
	standardPatience = 2 * time.Minute
)

// doctor is one examination.
type doctor struct {
	Config
	report     Report
	limits     disdel.PlatformLimits
	pkg        string
	nodes      map[string]disdel.Bytes // memory that ran at once on each machine
	allRan     bool                    // all containers ran that were asked for
	quotaBound bool                    // a quota limited the number of containers
}

// check is one check; more is false if no other check is possible.
type check func(ctx context.Context) (more bool)

// Examine checks a cluster and returns the findings. Findings are not errors. It ends with ctx.
func Examine(ctx context.Context, cfg Config) (Report, error) {
	if cfg.MaxContainers == 0 {
		cfg.MaxContainers = standardMost
	}
	if cfg.Settle == 0 {
		cfg.Settle = standardSettle
	}
	if cfg.Patience == 0 {
		cfg.Patience = standardPatience
	}
	if cfg.OnFinding == nil {
		cfg.OnFinding = func(Finding) {}
	}
	d := &doctor{
		Config: cfg, report: Report{Host: cfg.Host, Findings: []Finding{}}, nodes: map[string]disdel.Bytes{},
		pkg: "disdel-doctor-" + strings.ToLower(ulid.Make().String()),
	}
	defer d.cleanUp(ctx)
	for _, look := range []check{
		d.api, d.credentials, d.limitsAndQuotas, d.container, d.pool, d.largest, d.longest, d.outOfMemory,
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

// cleanUpWithin bounds the cleanup after the last check.
const cleanUpWithin = 30 * time.Second

// cleanUp removes the probes' actions, even after an interruption.
func (d *doctor) cleanUp(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanUpWithin)
	defer stop()
	d.Executor.Remove(ctx, d.pkg) //nolint:errcheck // leftover actions cost nothing
}

func (d *doctor) add(f Finding) {
	d.report.Findings = append(d.report.Findings, f)
	d.OnFinding(f)
}

// probing is one probe action.
type probing struct {
	limits disdel.Limits
	ask    disdel.ProbeRequest
}

// longestProbe bounds a probe, which takes seconds.
const longestProbe = disdel.Millis(2 * time.Minute)

// timeout is the timeout of probes.
func (d *doctor) timeout() disdel.Millis { return min(d.limits.MaxTimeout, longestProbe) }

// probe creates an action and invokes it once.
func (d *doctor) probe(ctx context.Context, p probing) (disdel.Activation, error) {
	inv, err := d.prepare(ctx, p)
	if err != nil {
		return disdel.Activation{}, err
	}
	return d.run(ctx, inv, p.ask)
}

// prepare creates the action for probes with these limits.
func (d *doctor) prepare(ctx context.Context, p probing) (disdel.Invocation, error) {
	name := disdel.ActionName(d.pkg + "/probe-" + sizeName(p.limits))
	plan := disdel.ActionPlan{Task: disdel.TaskProbe, Name: name, Limits: p.limits}
	inv := disdel.Invocation{
		Task: disdel.TaskProbe, Action: name, Attempt: 1, Limits: p.limits, Estimate: p.limits.Memory,
		Likely: p.limits.Memory,
	}
	return inv, d.Executor.Prepare(ctx, d.pkg, []disdel.ActionPlan{plan})
}

// sizeName names actions by their limits.
func sizeName(l disdel.Limits) string {
	return fmt.Sprintf("%d-%d", l.Memory.MB(), time.Duration(l.Timeout).Milliseconds())
}

// run invokes a probe and waits for its record.
func (d *doctor) run(ctx context.Context, inv disdel.Invocation, ask disdel.ProbeRequest) (disdel.Activation, error) {
	return d.runProbe(ctx, ctx, inv, ask, func() {})
}

// runProbe is run that calls accepted once OpenWhisk has accepted the invocation. The end of taking ends the wait for
// that.
func (d *doctor) runProbe(
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

// resultOf is a probe's result, or its failure.
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

// errNotServed is the error of an accepted probe without a record.
var errNotServed = errors.New("OpenWhisk took the invocation and did not run it")

// newProbes is a new id for the probes of one check.
func newProbes() disdel.JobID { return disdel.JobID("job-" + strings.ToLower(ulid.Make().String())) }

// ForService fills in the parts of cfg that come from a service. A store that does not answer is not an error but a
// finding.
func ForService(ctx context.Context, s *service.Service, cfg Config) (Config, error) {
	var err error
	if cfg.Executor, err = s.Executor(ctx); err != nil {
		return cfg, err
	}
	cfg.Models = s.ModelsURL()
	if board, store, err := s.Board(ctx); err != nil {
		cfg.StoreFailure = err
	} else {
		cfg.ProgressStore, cfg.Store = board, &store
	}
	_, cfg.HistoryFailure = s.History(ctx)
	return cfg, nil
}

// State grades a finding.
type State uint8

// The states.
const (
	Unknown State = iota
	Good
	Note    // jobs run; worth knowing
	Warning // some jobs fail, or are slow
	Problem // no job runs
)

var stateNames = [...]string{Unknown: "unknown", Good: "ok", Note: "note", Warning: "warning", Problem: "problem"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return stateNames[Unknown]
}

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// The names of checks, in their order.
const (
	CheckAPI         = "api"         // an OpenWhisk answers
	CheckCredentials = "credentials" // it accepts the key
	CheckLimits      = "limits"      // limits of actions are sufficient
	CheckThrottles   = "throttles"   // quotas of invocations
	CheckImage       = "image"       // the action runtime starts
	CheckProcessors  = "processors"  // processors in a container
	CheckClock       = "clock"       // clocks of containers and this machine
	CheckRedis       = "redis"       // actions reach it
	CheckStorage     = "storage"     // actions reach the blob store
	CheckCouchDB     = "couchdb"     // this machine reaches the history
	CheckPool        = "pool"        // how many containers run at once
	CheckMemory      = "memory"      // the largest action that runs
	CheckTimeout     = "timeout"     // the longest timeout that a container gets
	CheckOutOfMemory = "outOfMemory" // how an action ends that uses too much memory
)

// Finding is the result of one check.
type Finding struct {
	Check string      `json:"check"`
	State State       `json:"state"`
	Found string      `json:"found"`
	Means string      `json:"means,omitempty"` // for jobs
	Fix   string      `json:"fix,omitempty"`   // what to do, and who does it
	Key   string      `json:"key,omitempty"`   // setting of the OpenWhisk chart, or an environment variable
	Value string      `json:"value,omitempty"` // value for the setting
	Kind  disdel.Kind `json:"kind,omitempty"`  // kind of the error
}

// Report has all findings of one cluster.
type Report struct {
	Host     string             `json:"host"`
	Findings []Finding          `json:"findings"`
	Facts    clusterfacts.Facts `json:"facts"`
}

// Find returns the finding of a check, false if the check was not made.
func (r *Report) Find(check string) (Finding, bool) {
	for _, f := range r.Findings {
		if f.Check == check {
			return f, true
		}
	}
	return Finding{}, false
}

// Err is the first problem, or nil.
func (r *Report) Err() error {
	for _, f := range r.Findings {
		if f.State != Problem {
			continue
		}
		kind := f.Kind
		if kind == disdel.UnknownKind {
			kind = disdel.Unavailable
		}
		return &disdel.Error{Kind: kind, Op: "examine " + r.Host, Msg: f.Check + ": " + f.Found, Hint: f.remedy()}
	}
	return nil
}

// remedy is what to do about a finding, in one line.
func (f Finding) remedy() string {
	switch {
	case f.Key != "" && f.Fix != "":
		return f.Fix + ": " + f.Key + ": " + f.Value
	case f.Key != "":
		return f.Key + ": " + f.Value
	default:
		return f.Fix
	}
}

// Print writes the findings as a table, followed by the meaning of those that are not ok.
func (r *Report) Print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CHECK\tSTATE\tFOUND")
	for _, f := range r.Findings {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Check, f.State, f.Found)
	}
	t.Flush() //nolint:errcheck // the caller checks w
	for _, f := range r.Findings {
		if f.State == Good || f.Means == "" && f.remedy() == "" {
			continue
		}
		fmt.Fprintf(w, "\n%s %s\n", strings.ToUpper(f.State.String()), f.Check)
		if f.Means != "" {
			fmt.Fprintf(w, "  means: %s\n", f.Means)
		}
		if remedy := f.remedy(); remedy != "" {
			fmt.Fprintf(w, "  to do: %s\n", remedy)
		}
	}
}
