package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/executor"
)

// container starts a first probe with the least memory and reports what it found.
func (d *doctor) container(ctx context.Context) bool {
	asked := time.Now()
	probes := newProbes()
	a, err := d.probe(ctx, probing{
		limits: disdel.Limits{Memory: d.limits.MinMemory, Timeout: d.timeout()},
		ask:    disdel.ProbeRequest{Probes: probes, Store: d.Store, Models: d.Models, CouchDB: d.CouchDB},
	})
	d.sweep(ctx, probes)
	res, failure := resultOf(a, err)
	if failure != nil {
		d.add(noContainer(failure))
		return false
	}
	started := "a container of the action runtime starts"
	if a.Cold {
		started = fmt.Sprintf("a container of the action runtime starts: %v of waiting, %v until it was ready",
			time.Duration(a.WaitTime), time.Duration(a.InitTime))
	}
	d.add(Finding{Check: CheckImage, State: Good, Found: started})
	d.report.Facts.Processors = res.Processors
	d.add(Finding{
		Check: CheckProcessors, State: Good, Found: fmt.Sprintf("a container finds %d", res.Processors),
		Means: "train actions that run at once share those of their machine",
	})
	d.add(clock(res, asked, time.Now()))
	d.stores(res)
	return true
}

// noContainer is the finding of a runtime that did not start.
func noContainer(failure *disdel.Error) Finding {
	f := Finding{
		Check: CheckImage, State: Problem, Kind: failure.Kind, Found: failure.Error(), Fix: failure.Hint,
		Means: "no action runs",
	}
	switch {
	case failure.Code == disdel.CodeImageMissing:
		f.Fix = "push the image where the cluster's nodes can pull it, with an explicit tag, and name it: " +
			"disdel deploy image REGISTRY/NAME:TAG, then --image REGISTRY/NAME:TAG"
	case failure.Code == disdel.CodeNeverServed, errors.Is(failure, errNotServed):
		f.Kind = disdel.OverLimit
		f.Fix, f.Key, f.Value = "the admin checks that an invoker is healthy and its pool holds the smallest action",
			"whisk.containerPool.userMemory", "2048m or more"
	}
	return f
}

// maxSkew is how far clocks may differ: leases and heartbeats have an accuracy of seconds.
const maxSkew = 2 * time.Second

// clock compares a container's time with the times before and after the probe.
func clock(res disdel.ProbeResult, asked, answered time.Time) Finding {
	at := time.UnixMilli(res.UnixMs)
	var skew time.Duration
	switch {
	case at.Before(asked.Truncate(time.Millisecond)):
		skew = at.Sub(asked)
	case at.After(answered):
		skew = at.Sub(answered)
	}
	if skew.Abs() <= maxSkew {
		return Finding{Check: CheckClock, State: Good, Found: "containers and this machine have the same time"}
	}
	return Finding{
		Check: CheckClock, State: Warning,
		Found: fmt.Sprintf("a container's clock is %v from this machine's", skew.Round(time.Second)),
		Means: "heartbeats look older or newer than they are, and S3 refuses requests that are a quarter of an hour off",
		Fix:   "synchronise both clocks with the same servers (chrony, systemd-timesyncd)",
	}
}

// stores reports which stores the probe and this machine reach.
func (d *doctor) stores(res disdel.ProbeResult) {
	reached := map[string]disdel.Reached{}
	for _, r := range res.Reached {
		reached[r.What] = r
	}
	d.redis(reached)
	if r, asked := reached[CheckStorage]; asked {
		d.add(d.reachedBy(CheckStorage, r, "data sets cannot be read, nor models be written, by any action",
			"name a bucket that the cluster reaches (--storage s3://BUCKET?region=REGION); the admin gives containers its "+
				"credentials: whisk.container-factory.container-args.extra-env-vars, or a role of their pods"))
	}
	d.history(reached)
}

// redis checks both sides: this machine controls jobs through it, actions exchange updates through it.
func (d *doctor) redis(reached map[string]disdel.Reached) {
	const means = "actions cannot exchange updates: no job comes through its first round"
	if d.StoreFailure != nil {
		e := disdel.AsError(d.StoreFailure)
		f := Finding{
			Check: CheckRedis, State: Problem, Kind: e.Kind, Found: "this machine does not reach it: " + e.Error(),
			Means: means, Fix: "name one that this machine and the cluster reach", Key: "DISDEL_REDIS",
			Value: "rediss://HOST:6379/0",
		}
		if e.Kind == disdel.Denied {
			f.Fix, f.Key, f.Value = "put the password of its user into a variable or a context", "DISDEL_REDIS_PASSWORD", "..."
		}
		d.add(f)
		return
	}
	if r, asked := reached[CheckRedis]; asked {
		d.add(d.reachedBy(CheckRedis, r, means,
			"allow the pods of actions to connect to it (deploy/cluster/networkpolicy.yaml), and use its address there: "+
				"--redis URL"))
	}
}

// history needs to be reached only by this machine, or by disdel serve in the cluster.
func (d *doctor) history(reached map[string]disdel.Reached) {
	if d.HistoryFailure != nil {
		e := disdel.AsError(d.HistoryFailure)
		d.add(Finding{
			Check: CheckCouchDB, State: Problem, Kind: e.Kind, Found: "this machine does not reach it: " + e.Error(),
			Means: "no job is accepted, because its record must be saved first", Fix: e.Hint,
		})
		return
	}
	r, asked := reached[CheckCouchDB]
	switch {
	case !asked:
		d.add(Finding{
			Check: CheckCouchDB, State: Note, Found: "the history is a file of this machine",
			Means: "jobs that others submit are not seen here", Fix: "--couchdb https://HOST:6984 names one for all",
		})
	case r.Failure != nil:
		d.add(Finding{
			Check: CheckCouchDB, State: Note, Found: "this machine reaches it, but a pod of the cluster does not",
			Means: "actions do not need it; a disdel serve in the cluster does",
		})
	default:
		d.add(Finding{Check: CheckCouchDB, State: Good, Found: "this machine and the cluster's pods reach it"})
	}
}

func (d *doctor) reachedBy(check string, r disdel.Reached, means, fix string) Finding {
	if r.Failure == nil {
		return Finding{
			Check: check, State: Good,
			Found: fmt.Sprintf("an action reaches it in %v", time.Duration(r.Took).Round(time.Millisecond)),
		}
	}
	return Finding{
		Check: check, State: Problem, Kind: r.Failure.Kind, Found: "an action does not reach it: " + r.Failure.Error(),
		Means: means, Fix: fix,
	}
}

// sweep deletes what probes left in the store.
func (d *doctor) sweep(ctx context.Context, probes disdel.JobID) {
	if d.ProgressStore == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanUpWithin)
	defer stop()
	d.ProgressStore.Sweep(ctx, probes) //nolint:errcheck // every key expires after a day
}

// api reads the description that OpenWhisk gives without a key.
func (d *doctor) api(ctx context.Context) bool {
	limits, err := d.Executor.Limits(ctx)
	if err != nil {
		e := disdel.AsError(err)
		d.add(Finding{
			Check: CheckAPI, State: Problem, Found: "it does not answer: " + e.Error(), Kind: e.Kind,
			Means: "no command reaches this OpenWhisk",
			Fix:   cmp.Or(e.Hint, "check --apihost, and that the API's gateway can be reached from here"),
		})
		return false
	}
	d.limits = limits
	d.add(Finding{Check: CheckAPI, State: Good, Found: "OpenWhisk answers at " + d.Host})
	return true
}

// credentials creates a package: the first request that needs the key and its rights.
func (d *doctor) credentials(ctx context.Context) bool {
	quotas, err := d.Executor.Quotas(ctx)
	if err == nil {
		err = d.Executor.PutPackage(ctx, executor.Deployment{Package: d.pkg})
	}
	if err != nil {
		e := disdel.AsError(err)
		f := Finding{
			Check: CheckCredentials, State: Problem, Found: e.Error(), Kind: e.Kind,
			Means: "OpenWhisk accepts no requests with this key", Fix: e.Hint,
		}
		if e.Kind == disdel.Denied {
			f.Found = "OpenWhisk refuses the key"
			f.Fix, f.Key, f.Value = "put the key that the admin gave out into a variable or a context", "DISDEL_AUTH",
				"UUID:SECRET, as `wskadmin user get NAME` prints it"
		}
		d.add(f)
		return false
	}
	d.report.Facts.PerMinute, d.report.Facts.Concurrent = quotas.PerMinute, quotas.Concurrent
	d.limits.PerMinute = cmp.Or(quotas.PerMinute, d.limits.PerMinute)
	d.limits.Concurrent = cmp.Or(quotas.Concurrent, d.limits.Concurrent)
	d.add(Finding{Check: CheckCredentials, State: Good, Found: "the key is valid and may create packages"})
	return true
}

// limitsAndQuotas compares the platform's limits for an action with what the job needs. It also reports the quotas.
func (d *doctor) limitsAndQuotas(context.Context) bool {
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
		limits.Means = "longer work is divided into segments, which store their state"
		limits.Fix = "the admin raises it for controller and invokers alike"
		limits.Key = "whisk.limits.actions.time.max"
		limits.Value = fmt.Sprintf("%ds", int(time.Duration(d.Need.Timeout).Seconds()))
	}
	d.add(limits)
	d.add(d.throttles())
	return true
}

// enoughPerMinute is the number of invocations per minute with which a job of a few workers does not wait.
const enoughPerMinute = 300

// enoughAtOnce is the number of concurrent invocations with which a job of a few workers does not wait.
const enoughAtOnce = 5

func (d *doctor) throttles() Finding {
	l := d.limits
	f := Finding{
		Check: CheckThrottles, State: Good,
		Found: fmt.Sprintf("%d invocations a minute, %d at once", l.PerMinute, l.Concurrent),
	}
	switch {
	case l.PerMinute == 0 && l.Concurrent == 0:
		f.State, f.Found = Unknown, "the platform does not report them"
	case l.PerMinute > 0 && l.PerMinute < enoughPerMinute:
		const workers = 4
		f.State = Note
		f.Means = fmt.Sprintf("a round of %d workers takes %d invocations, so that %d rounds fit into a minute", workers,
			workers+2, l.PerMinute/(workers+2))
		f.Fix = "the admin raises the namespace's own, wskadmin limits set NAMESPACE --invocationsPerMinute N, or everybody's"
		f.Key, f.Value = "whisk.limits.actionsInvokesPerminute", fmt.Sprint(enoughPerMinute)
	case l.Concurrent > 0 && l.Concurrent < enoughAtOnce:
		f.State = Note
		f.Means = fmt.Sprintf("a job's actions that run at once, its aggregations included: %d at most", l.Concurrent)
		f.Fix = "the admin raises the namespace's own, " +
			"wskadmin limits set NAMESPACE --concurrentInvocations N, or everybody's"
		f.Key, f.Value = "whisk.limits.actionsInvokesConcurrent", fmt.Sprint(enoughAtOnce)
	}
	return f
}

// pool finds out how many containers run at once and how much memory they have. It starts with the least memory. If all
// containers ran, it continues with the memory that one machine is known to hold, which cannot wait forever.
func (d *doctor) pool(ctx context.Context) bool {
	if f, _ := d.report.Find(CheckRedis); d.ProgressStore == nil || f.State == Problem {
		d.add(Finding{
			Check: CheckPool, State: Unknown,
			Found: "without a Redis that actions reach, concurrent containers cannot be counted",
			Fix:   "name one with --redis; or say what the admin says, --pool-memory SIZE",
		})
		return true
	}
	n := d.MaxContainers
	if d.limits.Concurrent > 0 {
		n = min(n, max(1, d.limits.Concurrent-1)) // OpenWhisk frees a place a little after the record exists
		d.quotaBound = n < d.MaxContainers
	}
	for memory := d.limits.MinMemory; ; {
		if err := d.runAtOnce(ctx, memory, n); err != nil {
			e := disdel.AsError(err)
			d.add(Finding{Check: CheckPool, State: Unknown, Found: e.Error(), Kind: e.Kind, Fix: e.Hint})
			return e.Kind != disdel.Canceled
		}
		next := min(d.limits.MaxMemory, d.largestNode())
		if !d.allRan || next <= memory {
			break
		}
		memory = next
	}
	d.report.Facts.Nodes, d.report.Facts.AtLeast = len(d.nodes), d.allRan
	d.add(d.poolFinding())
	return true
}

func (d *doctor) largestNode() (maximum disdel.Bytes) {
	for held := range maps.Values(d.nodes) {
		maximum = max(maximum, held)
	}
	return maximum
}

// runAtOnce asks for n containers, waits until no further one starts, and ends all of them.
func (d *doctor) runAtOnce(ctx context.Context, memory disdel.Bytes, n int) error {
	limits := disdel.Limits{Memory: memory, Timeout: d.timeout()}
	inv, err := d.prepare(ctx, probing{limits: limits})
	if err != nil {
		return err
	}
	probes := newProbes()
	defer d.sweep(ctx, probes)
	taking, stop := context.WithCancel(ctx) // context of the invocations
	defer stop()
	var taken atomic.Int64 // invocations that OpenWhisk accepted; a quota delays the others
	ended := make([]disdel.Activation, n)
	failed := make([]error, n)
	var flying sync.WaitGroup
	for i := range n {
		flying.Go(func() {
			ask := disdel.ProbeRequest{Probes: probes, Member: i, Store: d.Store, Hold: limits.Timeout * 4 / 5}
			ended[i], failed[i] = d.runProbe(ctx, taking, inv, ask, func() { taken.Add(1) })
		})
	}
	there, err := d.waitForProbes(ctx, probes, n)
	asked := int(taken.Load())
	stop() // invocations that wait for a quota would start after the others end
	if err == nil {
		err = d.ProgressStore.Cancel(ctx, probes)
	}
	flying.Wait()
	if err != nil {
		return err
	}
	held := map[string]disdel.Bytes{}
	for _, i := range there {
		res, failure := resultOf(ended[i], failed[i])
		if failure != nil {
			return failure
		}
		held[res.Node] += memory
	}
	d.allRan, d.quotaBound = len(there) >= min(n, asked), d.quotaBound || asked < n
	for node, bytes := range held {
		d.nodes[node] = max(d.nodes[node], bytes)
	}
	d.report.Facts.Pool = max(d.report.Facts.Pool, disdel.Bytes(len(there))*memory)
	return nil
}

// lookEvery is the time between two counts of probes.
const lookEvery = 100 * time.Millisecond

// waitForProbes waits until all n probes run, or no further one starts for a while, and returns their numbers.
func (d *doctor) waitForProbes(ctx context.Context, probes disdel.JobID, n int) (there []int, err error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	newest := time.Now()
	for {
		all, err := d.ProgressStore.Progress(ctx, probes)
		if err != nil {
			return nil, err
		}
		if len(all) > len(there) {
			newest = time.Now()
		}
		there = there[:0]
		for _, p := range all {
			there = append(there, p.Member)
		}
		if len(there) == n || len(there) > 0 && time.Since(newest) >= d.Settle || time.Since(newest) >= d.Patience {
			return slices.Clip(there), nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, &disdel.Error{Kind: disdel.Canceled, Op: "count containers", Err: context.Cause(ctx)}
		}
	}
}

// poolFinding reports what ran at once, and whether the largest allowed action fits on a machine.
func (d *doctor) poolFinding() Finding {
	facts := d.report.Facts
	f := Finding{
		Check: CheckPool, State: Good,
		Found: fmt.Sprintf("%v of containers ran at once on %d machines", facts.Pool, max(1, facts.Nodes)),
		Means: "gangs of jobs are made to fit into it, without what others held meanwhile; it is kept for this cluster, " +
			"and --pool-memory says otherwise",
	}
	if facts.Nodes == 1 {
		f.Found = fmt.Sprintf("%v of containers ran at once on one machine", facts.Pool)
	}
	if facts.AtLeast {
		f.Found = "at least " + f.Found
		f.Means = "nothing shows that the pool ends there, so jobs are not held to it; --pool-memory says what it has"
	}
	if facts.AtLeast && d.quotaBound {
		f.State = Note
		f.Means = "the namespace's quota allowed no more containers at once, so the pool may be larger: jobs are not held " +
			"to this figure; --pool-memory says what the pool has"
	}
	if maximum := d.largestNode(); !facts.AtLeast && maximum < d.limits.MaxMemory {
		f.State, f.Kind = Warning, disdel.OverLimit
		f.Means = fmt.Sprintf("an action of more than %v that no pool holds waits for ever, and everything behind it: "+
			"the platform allows %v", maximum, d.limits.MaxMemory)
		f.Fix = "the admin gives every invoker at least what one action may have, or allows an action no more than that"
		f.Key, f.Value = "whisk.containerPool.userMemory", fmt.Sprintf("%dm or more", d.limits.MaxMemory.MB())
		if d.Need.Memory > maximum {
			f.State = Problem
		}
	}
	return f
}

// largest runs one probe with the most memory that is known to fit on one machine. Invokers may refuse what controllers
// allow.
func (d *doctor) largest(ctx context.Context) bool {
	memory := max(d.limits.MinMemory, min(d.limits.MaxMemory, d.largestNode()))
	a, err := d.probe(ctx, probing{limits: disdel.Limits{Memory: memory, Timeout: d.timeout()}})
	res, failure := resultOf(a, err)
	if failure != nil {
		d.add(Finding{
			Check: CheckMemory, State: Problem, Kind: failure.Kind,
			Found: fmt.Sprintf("an action of %v does not run: %v", memory, failure),
			Means: "controller and invokers were given different limits",
			Fix:   "the admin sets the limit for both, as the chart's value does", Key: "whisk.limits.actions.memory.max",
			Value: fmt.Sprintf("%dm", d.limits.MaxMemory.MB()),
		})
		return true
	}
	d.report.Facts.Largest = memory
	f := Finding{Check: CheckMemory, State: Good, Found: fmt.Sprintf("an action of %v runs", memory)}
	if memory < d.limits.MaxMemory {
		f.State = Note
		f.Means = fmt.Sprintf("%v are allowed, but were not tried: no machine is known to have them",
			d.limits.MaxMemory)
	}
	if res.Limit > 0 && res.Limit < memory {
		f.State = Warning
		f.Found = fmt.Sprintf("an action of %v runs in a container that is limited to %v", memory, res.Limit)
		f.Means = "actions are killed: out of memory, below the limit that they were given"
		f.Fix = "the admin looks for a LimitRange or a pod template with other limits"
	}
	d.add(f)
	return true
}

// longest checks the deadline that a container gets with the longest timeout.
func (d *doctor) longest(ctx context.Context) bool {
	want := d.limits.MaxTimeout
	a, err := d.probe(ctx, probing{limits: disdel.Limits{Memory: d.limits.MinMemory, Timeout: want}})
	res, failure := resultOf(a, err)
	f := Finding{
		Check: CheckTimeout, State: Good, Found: fmt.Sprintf("a container is given %v", time.Duration(want)),
	}
	const short = disdel.Millis(10 * time.Second) // more than a start takes
	switch {
	case failure != nil:
		f.State, f.Kind = Problem, failure.Kind
		f.Found = fmt.Sprintf("an action of %v does not run: %v", time.Duration(want), failure)
		f.Means = "controller and invokers were given different limits"
		f.Fix, f.Key = "the admin sets the limit for both, as the chart's value does", "whisk.limits.actions.time.max"
		f.Value = fmt.Sprintf("%ds", int(time.Duration(want).Seconds()))
	case res.Left > 0 && res.Left+short < want:
		f.State = Warning
		f.Found = fmt.Sprintf("a container is given %v of %v", time.Duration(res.Left).Round(time.Second),
			time.Duration(want))
		f.Means = "work that needs the longer time is paused and continues in several segments"
	}
	d.add(f)
	return true
}

// outOfMemory lets a probe allocate twice its memory.
func (d *doctor) outOfMemory(ctx context.Context) bool {
	memory := d.limits.MinMemory
	a, err := d.probe(ctx, probing{
		limits: disdel.Limits{Memory: memory, Timeout: d.timeout()},
		ask:    disdel.ProbeRequest{Touch: 2 * memory},
	})
	f := Finding{Check: CheckOutOfMemory}
	switch {
	case err != nil:
		e := disdel.AsError(err)
		f.State, f.Found, f.Kind = Unknown, e.Error(), e.Kind
	case a.Outcome == disdel.OutcomeOutOfMemory:
		f.State, f.Found = Good, "an action that uses twice its memory is killed, and its record says why"
		d.report.Facts.TellsOOM = new(true)
	case a.Outcome == disdel.OutcomeSuccess:
		f.State, f.Found = Warning, "an action used twice its memory and was not killed"
		f.Means = "memory limits are not enforced: one job may use the memory of others"
		f.Fix = "the admin makes containers run under memory control groups (docker: --memory; Kubernetes: limits)"
	default:
		d.report.Facts.TellsOOM = new(false)
		f.State = Note
		f.Found = "an action that uses twice its memory is killed, and its record does not say why: " + a.Outcome.String()
		f.Means = "a job recognises out-of-memory kills by heartbeats, and retries with more memory if that is likely"
		f.Fix = "where containers are Docker's, the admin mounts its folder of containers into the invokers (/containers)"
	}
	d.add(f)
	return true
}
