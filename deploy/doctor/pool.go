package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/disdel/disdel"
)

// pool finds out how many containers run at once, and how much memory they have together. It starts with the least
// memory. Where all that were asked for ran, it continues with as much as one machine is known to hold, which therefore
// does not wait for ever.
func (d *doctor) pool(ctx context.Context) bool {
	if f, _ := d.report.Find(CheckRedis); d.Board == nil || f.State == Problem {
		d.found(Finding{
			Check: CheckPool, State: Unknown, Found: "without a Redis that actions reach, nobody can tell how many run at once",
			Fix: "name one with --redis; or say what the admin says, --pool-memory SIZE",
		})
		return true
	}
	n := d.Most
	if d.limits.Concurrent > 0 {
		n = min(n, max(1, d.limits.Concurrent-1)) // a place is free a little later than its activation's record is there
		d.held = n < d.Most
	}
	for memory := d.limits.MinMemory; ; {
		if err := d.wave(ctx, memory, n); err != nil {
			e := disdel.AsError(err)
			d.found(Finding{Check: CheckPool, State: Unknown, Found: e.Error(), Kind: e.Kind, Fix: e.Hint})
			return e.Kind != disdel.Canceled
		}
		next := min(d.limits.MaxMemory, d.largestNode())
		if !d.all || next <= memory {
			break
		}
		memory = next
	}
	d.report.Facts.Nodes, d.report.Facts.AtLeast = len(d.nodes), d.all
	d.found(d.poolFinding())
	return true
}

func (d *doctor) largestNode() (most disdel.Bytes) {
	for held := range maps.Values(d.nodes) {
		most = max(most, held)
	}
	return most
}

// wave asks for n containers at once, waits until no further one comes, and sends all away.
func (d *doctor) wave(ctx context.Context, memory disdel.Bytes, n int) error {
	limits := disdel.Limits{Memory: memory, Timeout: d.timeout()}
	inv, err := d.prepare(ctx, probing{limits: limits})
	if err != nil {
		return err
	}
	probes := newProbes()
	defer d.sweep(ctx, probes)
	taking, stop := context.WithCancel(ctx) // invocations
	defer stop()
	var taken atomic.Int64 // that OpenWhisk accepted: a quota makes the others wait outside the pool
	ended := make([]disdel.Activation, n)
	failed := make([]error, n)
	var flying sync.WaitGroup
	for i := range n {
		flying.Go(func() {
			ask := disdel.ProbeRequest{Probes: probes, Member: i, Store: d.Store, Hold: limits.Timeout * 4 / 5}
			ended[i], failed[i] = d.runTelling(ctx, taking, inv, ask, func() { taken.Add(1) })
		})
	}
	there, err := d.gathered(ctx, probes, n)
	asked := int(taken.Load())
	stop() // those that wait for the quota: they would come when the others have gone
	if err == nil {
		err = d.Board.Cancel(ctx, probes)
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
	d.all, d.held = len(there) >= min(n, asked), d.held || asked < n
	for node, bytes := range held {
		d.nodes[node] = max(d.nodes[node], bytes)
	}
	d.report.Facts.Pool = max(d.report.Facts.Pool, disdel.Bytes(len(there))*memory)
	return nil
}

// lookEvery is how often it is counted who is there.
const lookEvery = 100 * time.Millisecond

// gathered is which of n probes run at once: it waits until all are there, or until no further one came for a while.
func (d *doctor) gathered(ctx context.Context, probes disdel.JobID, n int) (there []int, err error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	newest := time.Now()
	for {
		all, err := d.Board.Progress(ctx, probes)
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

// poolFinding tells what ran at once, and whether the largest action that the platform allows fits where it has to run.
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
	if facts.AtLeast && d.held {
		f.State = Note
		f.Means = "the namespace's quota allowed no more containers at once, so the pool may be larger: jobs are not held " +
			"to this figure; --pool-memory says what the pool has"
	}
	if most := d.largestNode(); !facts.AtLeast && most < d.limits.MaxMemory {
		f.State, f.Kind = Warning, disdel.OverLimit
		f.Means = fmt.Sprintf("an action of more than %v that no pool holds waits for ever, and everything behind it: "+
			"the platform allows %v", most, d.limits.MaxMemory)
		f.Fix = "the admin gives every invoker at least what one action may have, or allows an action no more than that"
		f.Key, f.Value = "whisk.containerPool.userMemory", fmt.Sprintf("%dm or more", d.limits.MaxMemory.MB())
		if d.Need.Memory > most {
			f.State = Problem
		}
	}
	return f
}
