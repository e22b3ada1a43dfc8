package doctor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/executor"
)

// api asks for the description that OpenWhisk gives to everybody.
func (d *doctor) api(ctx context.Context) bool {
	limits, err := d.Executor.Limits(ctx)
	if err != nil {
		e := disdel.AsError(err)
		d.found(Finding{
			Check: CheckAPI, State: Problem, Found: "it does not answer: " + e.Error(), Kind: e.Kind,
			Means: "no command reaches this OpenWhisk",
			Fix:   cmp.Or(e.Hint, "check --apihost, and that the API's gateway can be reached from here"),
		})
		return false
	}
	d.limits = limits
	d.found(Finding{Check: CheckAPI, State: Good, Found: "OpenWhisk answers at " + d.Host})
	return true
}

// credentials makes a package: that is the first thing that needs the key, and the right to make things.
func (d *doctor) credentials(ctx context.Context) bool {
	quotas, err := d.Executor.Quotas(ctx)
	if err == nil {
		err = d.Executor.PutPackage(ctx, executor.Deployment{Package: d.pkg})
	}
	if err != nil {
		e := disdel.AsError(err)
		f := Finding{
			Check: CheckCredentials, State: Problem, Found: e.Error(), Kind: e.Kind,
			Means: "OpenWhisk does nothing for this key", Fix: e.Hint,
		}
		if e.Kind == disdel.Denied {
			f.Found = "OpenWhisk refuses the key"
			f.Fix, f.Key, f.Value = "put the key that the admin gave out into a variable or a context", "DISDEL_AUTH",
				"UUID:SECRET, as `wskadmin user get NAME` prints it"
		}
		d.found(f)
		return false
	}
	d.report.Facts.PerMinute, d.report.Facts.Concurrent = quotas.PerMinute, quotas.Concurrent
	d.limits.PerMinute = cmp.Or(quotas.PerMinute, d.limits.PerMinute)
	d.limits.Concurrent = cmp.Or(quotas.Concurrent, d.limits.Concurrent)
	d.found(Finding{Check: CheckCredentials, State: Good, Found: "the key is taken, and may make packages"})
	return true
}

// allowances compares what an action may have with what is needed, and tells the quotas.
func (d *doctor) allowances(context.Context) bool {
	l := d.limits
	limits := Finding{
		Check: CheckLimits, State: Good,
		Found: fmt.Sprintf("%v to %v of memory, %v to %v", l.MinMemory, l.MaxMemory, time.Duration(l.MinTimeout),
			time.Duration(l.MaxTimeout)),
	}
	switch {
	case d.Need.Memory > l.MaxMemory:
		limits.State, limits.Kind = Problem, disdel.OverLimit
		limits.Found = fmt.Sprintf("an action may have %v at most, and %v are needed", l.MaxMemory, d.Need.Memory)
		limits.Means = "actions that need more are refused before anything runs"
		limits.Fix = "the admin raises it for controller and invokers alike"
		limits.Key, limits.Value = "whisk.limits.actions.memory.max", fmt.Sprintf("%dm", d.Need.Memory.MB())
	case d.Need.Timeout > l.MaxTimeout:
		limits.State, limits.Kind = Problem, disdel.OverLimit
		limits.Found = fmt.Sprintf("an action may take %v at most, and %v are needed", time.Duration(l.MaxTimeout),
			time.Duration(d.Need.Timeout))
		limits.Means = "longer work is divided into legs, which store their state and go on"
		limits.Fix = "the admin raises it for controller and invokers alike"
		limits.Key = "whisk.limits.actions.time.max"
		limits.Value = fmt.Sprintf("%ds", int(time.Duration(d.Need.Timeout).Seconds()))
	}
	d.found(limits)
	d.found(d.throttles())
	return true
}

// comfortable is the invocations a minute from which on a job of a few workers does not wait for the minute to turn.
const comfortable = 300

// comfortableAtOnce is the invocations at once from which on a job of a few workers is not held up.
const comfortableAtOnce = 5

func (d *doctor) throttles() Finding {
	l := d.limits
	f := Finding{
		Check: CheckThrottles, State: Good,
		Found: fmt.Sprintf("%d invocations a minute, %d at once", l.PerMinute, l.Concurrent),
	}
	switch {
	case l.PerMinute == 0 && l.Concurrent == 0:
		f.State, f.Found = Unknown, "the platform does not tell them"
	case l.PerMinute > 0 && l.PerMinute < comfortable:
		const workers = 4
		f.State = Note
		f.Means = fmt.Sprintf("a round of %d workers takes %d invocations, so that %d rounds fit into a minute", workers,
			workers+2, l.PerMinute/(workers+2))
		f.Fix = "the admin raises the namespace's own, wskadmin limits set NAMESPACE --invocationsPerMinute N, or everybody's"
		f.Key, f.Value = "whisk.limits.actionsInvokesPerminute", fmt.Sprint(comfortable)
	case l.Concurrent > 0 && l.Concurrent < comfortableAtOnce:
		f.State = Note
		f.Means = fmt.Sprintf("a job's actions that run at once, its aggregations included: %d at most", l.Concurrent)
		f.Fix = "the admin raises the namespace's own, " +
			"wskadmin limits set NAMESPACE --concurrentInvocations N, or everybody's"
		f.Key, f.Value = "whisk.limits.actionsInvokesConcurrent", fmt.Sprint(comfortableAtOnce)
	}
	return f
}
