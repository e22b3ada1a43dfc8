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
)

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
