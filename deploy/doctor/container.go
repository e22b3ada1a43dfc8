package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/disdel/disdel"
)

// container starts a first probe, with the least memory that there is, and tells what it found.
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
		d.found(noContainer(failure))
		return false
	}
	started := "a container of the action runtime starts"
	if a.Cold {
		started = fmt.Sprintf("a container of the action runtime starts: %v of waiting, %v until it was ready",
			time.Duration(a.WaitTime), time.Duration(a.InitTime))
	}
	d.found(Finding{Check: CheckImage, State: Good, Found: started})
	d.report.Facts.Processors = res.Processors
	d.found(Finding{
		Check: CheckProcessors, State: Good, Found: fmt.Sprintf("a container finds %d", res.Processors),
		Means: "train actions that run at once share those of their machine",
	})
	d.found(clock(res, asked, time.Now()))
	d.stores(res)
	return true
}

// noContainer says why the runtime did not start.
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
		f.Fix, f.Key, f.Value = "the admin looks whether an invoker is healthy and its pool holds the smallest action",
			"whisk.containerPool.userMemory", "2048m or more"
	}
	return f
}

// mostSkew is how far clocks may be apart: leases and the age of heartbeats are told in seconds.
const mostSkew = 2 * time.Second

// clock compares a container's time with that between which it must have run.
func clock(res disdel.ProbeResult, asked, answered time.Time) Finding {
	at := time.UnixMilli(res.UnixMs)
	var skew time.Duration
	switch {
	case at.Before(asked.Truncate(time.Millisecond)):
		skew = at.Sub(asked)
	case at.After(answered):
		skew = at.Sub(answered)
	}
	if skew.Abs() <= mostSkew {
		return Finding{Check: CheckClock, State: Good, Found: "containers and this machine have the same time"}
	}
	return Finding{
		Check: CheckClock, State: Warning,
		Found: fmt.Sprintf("a container's clock is %v from this machine's", skew.Round(time.Second)),
		Means: "heartbeats look older or newer than they are, and S3 refuses requests that are a quarter of an hour off",
		Fix:   "have both keep time by the same servers (chrony, systemd-timesyncd)",
	}
}

// stores tells which stores the probe reached, and which this machine does.
func (d *doctor) stores(res disdel.ProbeResult) {
	reached := map[string]disdel.Reached{}
	for _, r := range res.Reached {
		reached[r.What] = r
	}
	d.redis(reached)
	if r, asked := reached[CheckStorage]; asked {
		d.found(d.reachedBy(CheckStorage, r, "data sets cannot be read, nor models be written, by any action",
			"name a bucket that the cluster reaches (--storage s3://BUCKET?region=REGION); the admin gives containers its "+
				"credentials: whisk.container-factory.container-args.extra-env-vars, or a role of their pods"))
	}
	d.history(reached)
}

// redis is of both sides: this machine leads jobs over it, actions exchange updates over it.
func (d *doctor) redis(reached map[string]disdel.Reached) {
	const means = "actions cannot exchange updates: no job comes through its first round"
	if d.BoardFailure != nil {
		e := disdel.AsError(d.BoardFailure)
		f := Finding{
			Check: CheckRedis, State: Problem, Kind: e.Kind, Found: "this machine does not reach it: " + e.Error(),
			Means: means, Fix: "name one that this machine and the cluster reach", Key: "DISDEL_REDIS",
			Value: "rediss://HOST:6379/0",
		}
		if e.Kind == disdel.Denied {
			f.Fix, f.Key, f.Value = "put the password of its user into a variable or a context", "DISDEL_REDIS_PASSWORD", "..."
		}
		d.found(f)
		return
	}
	if r, asked := reached[CheckRedis]; asked {
		d.found(d.reachedBy(CheckRedis, r, means,
			"let the pods of actions out to it (deploy/cluster/networkpolicy.yaml), and name it as they know it: --redis URL"))
	}
}

// history is read and written by this machine alone: that actions reach it is of use to nobody but who runs disdel
// serve in the same cluster.
func (d *doctor) history(reached map[string]disdel.Reached) {
	if d.HistoryFailure != nil {
		e := disdel.AsError(d.HistoryFailure)
		d.found(Finding{
			Check: CheckCouchDB, State: Problem, Kind: e.Kind, Found: "this machine does not reach it: " + e.Error(),
			Means: "no job is acknowledged: its record has to be kept first", Fix: e.Hint,
		})
		return
	}
	r, asked := reached[CheckCouchDB]
	switch {
	case !asked:
		d.found(Finding{
			Check: CheckCouchDB, State: Note, Found: "the history is a file of this machine",
			Means: "jobs that others submit are not seen here", Fix: "--couchdb https://HOST:6984 names one for all",
		})
	case r.Failure != nil:
		d.found(Finding{
			Check: CheckCouchDB, State: Note, Found: "this machine reaches it, a pod of the cluster does not",
			Means: "actions have no need of it; a disdel serve in the cluster has",
		})
	default:
		d.found(Finding{Check: CheckCouchDB, State: Good, Found: "this machine and the cluster's pods reach it"})
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

// sweep removes what probes left on the board.
func (d *doctor) sweep(ctx context.Context, probes disdel.JobID) {
	if d.Board == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanUpWithin)
	defer stop()
	d.Board.Sweep(ctx, probes) //nolint:errcheck // every key expires after a day
}
