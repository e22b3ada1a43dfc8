package verify

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
