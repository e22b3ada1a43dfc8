// Package verify tests what jobs need from a cluster: the protocol, limits, how actions end for memory or time,
// throttling, a lost container, a small job, and a job whose controller is killed.
//
// Cases have grades: core if no job can do without, full if jobs need it to survive failures. A case that cannot be
// tried is skipped with a reason. The actions are removed afterwards; the records of the jobs and the model
// disdel-verify stay.
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

// Config is a cluster with the service that runs jobs on it.
type Config struct {
	Service *service.Service
	Host    string // as shown to users
	Version string // of disdel

	// Image is the container image of the action runtime; "": the platform has the kind disdel:1.
	Image string

	// Program and Environment start a process that submits a job with the arguments submit FILE. "": the case with a
	// killed controller is skipped.
	Program     string
	Environment []string

	OnCase func(name string) // called with the name of each case; may be nil
}

// skipped is why a case cannot be tried.
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

// verifyCase is a case. try returns what it saw, and an error if it failed or was skipped.
type verifyCase struct {
	name, grade string
	try         func(ctx context.Context) (detail string, err error)
}

// Run tries all cases in order and returns a report. It returns an error only without a cluster, or if ctx ends.
func Run(ctx context.Context, cfg Config) (Report, error) {
	report := Report{Host: cfg.Host, Version: cfg.Version, At: time.Now(), Grade: GradeFull, Cases: []Case{}}
	if cfg.OnCase == nil {
		cfg.OnCase = func(string) {}
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
	for _, t := range []verifyCase{
		{"protocol", Core, r.protocol},
		{"limits", Core, r.refusals},
		{"out of memory", Full, r.outOfMemory},
		{"timeout", Full, r.timeout},
		{"throttle", Full, r.throttle},
		{"lost container", Full, r.lostContainer},
		{"small job", Core, r.smallJob},
		{"killed controller", Full, r.killedController},
	} {
		report.add(r.runCase(ctx, t))
		if ctx.Err() != nil {
			return report, &disdel.Error{Kind: disdel.Canceled, Op: "verify " + cfg.Host, Err: context.Cause(ctx)}
		}
	}
	report.Took = disdel.Millis(time.Since(report.At))
	return report, nil
}

// longestCase bounds one case, which takes less than a minute if the platform answers.
const longestCase = 10 * time.Minute

func (r *run) runCase(ctx context.Context, t verifyCase) Case {
	ctx, stop := context.WithTimeout(ctx, longestCase)
	defer stop()
	r.OnCase(t.name)
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

// cleanUp removes the cases' actions, even after an interruption.
func (r *run) cleanUp(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer stop()
	r.executor.Remove(ctx, r.pkg) //nolint:errcheck // leftover actions cost nothing
}

// action creates a probe action with the least memory.
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

// The grades of cases: if Core fails no job runs, if Full fails some jobs do not survive failures.
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
	GradeFull     = "full"     // all tried cases passed
	GradeUsable   = "usable"   // jobs run, but some failures are not survived or not recognised
	GradeUnusable = "unusable" // no job runs
)

// Case is the result of one case.
type Case struct {
	Name   string        `json:"name"`
	Grade  string        `json:"grade"`
	State  string        `json:"state"`
	Detail string        `json:"detail"` // what was seen
	Took   disdel.Millis `json:"tookMs"`
}

// Report is the result of a verification.
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

// Err is nil if no case failed.
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
		Hint: "disdel doctor shows what the cluster lacks, and which setting changes it",
	}
}

// Print writes the report as a Markdown table, to be pasted into an issue.
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
