// Package verify tries what jobs rely on against whatever cluster it is pointed at: the protocol, limits, how actions
// are ended for memory or time, throttling, a container that is lost, a small job, and a job whose controller is
// killed.
//
// Cases are graded: what no job can do without is core, what makes jobs survive is full. One that cannot be tried on a
// cluster is skipped, and says why. Actions that it made are gone afterwards; the records of its jobs and the model
// disdel-verify stay, as those of any job. It is a caller of service like any other.
package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/service"
)

// Config is a cluster, and who runs jobs there.
type Config struct {
	Service *service.Service
	Host    string // as it is told
	Version string // of disdel

	// Image is the container image of the action runtime; "": the platform knows the kind disdel:1.
	Image string

	// Program and Environment are those of a process that submits a job when it is called with submit FILE: the one whose
	// controller is killed. "": that case is skipped.
	Program     string
	Environment []string

	Begin func(name string) // is told the name of each case as it begins; nil: nobody
}

// skipped is why a case cannot be tried here.
type skipped struct{ why string }

func (s skipped) Error() string { return s.why }

func skip(format string, args ...any) error { return skipped{fmt.Sprintf(format, args...)} }

// run is one verification.
type run struct {
	Config
	executor *executor.Executor
	limits   disdel.PlatformLimits
	pkg      string
}

// trial is a case: detail is what was seen, err why it failed or was skipped.
type trial struct {
	name, grade string
	try         func(ctx context.Context) (detail string, err error)
}

// Run tries every case, one after another, and returns what came of it. Only that there is no cluster at all, or that
// ctx has ended, is an error.
func Run(ctx context.Context, cfg Config) (Report, error) {
	report := Report{Host: cfg.Host, Version: cfg.Version, At: time.Now(), Grade: GradeFull, Cases: []Case{}}
	if cfg.Begin == nil {
		cfg.Begin = func(string) {}
	}
	r := &run{Config: cfg, pkg: "disdel-verify-" + strings.ToLower(ulid.Make().String())}
	var err error
	if r.executor, err = cfg.Service.Executor(ctx); err != nil {
		return report, err
	}
	if r.limits, err = r.executor.Limits(ctx); err != nil {
		return report, err
	}
	defer r.cleanUp(ctx)
	for _, t := range []trial{
		{"protocol", Core, r.protocol},
		{"limits", Core, r.refusals},
		{"out of memory", Full, r.outOfMemory},
		{"timeout", Full, r.timeout},
		{"throttle", Full, r.throttle},
		{"lost container", Full, r.lostContainer},
		{"small job", Core, r.smallJob},
		{"killed controller", Full, r.killedController},
	} {
		report.add(r.carryOut(ctx, t))
		if ctx.Err() != nil {
			return report, &disdel.Error{Kind: disdel.Canceled, Op: "verify " + cfg.Host, Err: context.Cause(ctx)}
		}
	}
	report.Took = disdel.Millis(time.Since(report.At))
	return report, nil
}

// longestCase bounds one case: none of them needs a minute where the platform answers.
const longestCase = 10 * time.Minute

func (r *run) carryOut(ctx context.Context, t trial) Case {
	ctx, stop := context.WithTimeout(ctx, longestCase)
	defer stop()
	r.Begin(t.name)
	begun := time.Now()
	c := Case{Name: t.name, Grade: t.grade, State: Passed}
	detail, err := t.try(ctx)
	var skip skipped
	switch {
	case errors.As(err, &skip):
		c.State, detail = Skipped, skip.why
	case err != nil:
		c.State, detail = Failed, err.Error()
	}
	c.Detail, c.Took = detail, disdel.Millis(time.Since(begun))
	return c
}

// cleanUp removes what the cases made on the platform, also where they were interrupted.
func (r *run) cleanUp(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer stop()
	r.executor.Remove(ctx, r.pkg) //nolint:errcheck // it may be gone, and what is left costs nothing
}

// action is a probe action of a name, with the least memory.
func (r *run) action(ctx context.Context, name string, timeout disdel.Millis) (disdel.Invocation, error) {
	l := disdel.Limits{
		Memory:  r.limits.MinMemory,
		Timeout: max(r.limits.MinTimeout, min(timeout, r.limits.MaxTimeout)),
	}
	full := disdel.ActionName(r.pkg + "/" + name)
	inv := disdel.Invocation{
		ID: "verify/" + name, Task: disdel.TaskProbe, Action: full, Attempt: 1, Limits: l, Estimate: l.Memory,
		Likely: l.Memory,
	}
	plan := disdel.ActionPlan{Task: disdel.TaskProbe, Name: full, Limits: l}
	return inv, r.executor.Prepare(ctx, r.pkg, []disdel.ActionPlan{plan})
}

// invoke runs a probe to its end.
func (r *run) invoke(ctx context.Context, inv disdel.Invocation, ask disdel.ProbeRequest) (
	a disdel.Activation, err error,
) {
	ask.Memory = inv.Limits.Memory
	if inv.Params, err = json.Marshal(ask); err != nil {
		return a, err
	}
	id, err := r.executor.Invoke(ctx, inv)
	if err != nil {
		return a, err
	}
	return r.executor.Wait(ctx, inv, id)
}

// The grades of cases: what fails of Core keeps every job from running, what fails of Full some from surviving.
const (
	Core = "core"
	Full = "full"
)

// The states of cases.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped"
)

// The grades of clusters.
const (
	GradeFull     = "full"     // everything that was tried is as it should be
	GradeUsable   = "usable"   // jobs run, and some failures are not survived, or not told for what they are
	GradeUnusable = "unusable" // no job runs
)

// Case is one thing that was tried.
type Case struct {
	Name   string        `json:"name"`
	Grade  string        `json:"grade"`
	State  string        `json:"state"`
	Detail string        `json:"detail"` // what was seen
	Took   disdel.Millis `json:"tookMs"`
}

// Report is everything that was tried on one cluster.
type Report struct {
	Host    string        `json:"host"`
	Version string        `json:"version"` // of disdel
	At      time.Time     `json:"at"`
	Grade   string        `json:"grade"`
	Passed  int           `json:"passed"`
	Failed  int           `json:"failed"`
	Skipped int           `json:"skipped"`
	Took    disdel.Millis `json:"tookMs"`
	Cases   []Case        `json:"cases"`
}

// add counts a case.
func (r *Report) add(c Case) {
	r.Cases = append(r.Cases, c)
	switch {
	case c.State == Passed:
		r.Passed++
	case c.State == Skipped:
		r.Skipped++
	case c.Grade == Core:
		r.Failed++
		r.Grade = GradeUnusable
	default:
		r.Failed++
		if r.Grade == GradeFull {
			r.Grade = GradeUsable
		}
	}
}

// Err is nil where no case failed.
func (r *Report) Err() error {
	if r.Failed == 0 {
		return nil
	}
	var names []string
	for _, c := range r.Cases {
		if c.State == Failed {
			names = append(names, c.Name)
		}
	}
	return &disdel.Error{
		Kind: disdel.Unavailable, Op: "verify " + r.Host,
		Msg:  fmt.Sprintf("%d of %d cases failed: %s", r.Failed, len(r.Cases), strings.Join(names, ", ")),
		Hint: "disdel doctor says what the cluster lacks, and whose key mends it",
	}
}

// Print writes the report as a table of Markdown, to be pasted into an issue.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "disdel %s on %s: %s (%d passed, %d failed, %d skipped in %v)\n\n", r.Version, r.Host, r.Grade,
		r.Passed, r.Failed, r.Skipped, time.Duration(r.Took).Round(time.Second))
	fmt.Fprintln(w, "| case | grade | state | seconds | what was seen |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, c := range r.Cases {
		detail := strings.NewReplacer("|", "\\|", "\n", " ").Replace(c.Detail)
		fmt.Fprintf(w, "| %s | %s | %s | %.1f | %s |\n", c.Name, c.Grade, c.State, c.Took.Seconds(), detail)
	}
}
