package main

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// Thrifty takes a worker away after every epoch for as long as that makes 1,000 rows cheaper, and then stays. It shows
// all that a policy is: a name, a sentence and a decision that follows from its input alone. What it has to remember it
// reads from what was seen; bounds are kept for it.
type Thrifty struct{}

// Name is the word of job files.
func (Thrifty) Name() string { return "thrifty" }

// Meaning is what explain says, as a sentence goes on whose subject is the name.
func (Thrifty) Meaning() string {
	return "takes a worker away after every epoch for as long as that makes an epoch cheaper"
}

// Decide compares the newest epoch with the one before.
func (Thrifty) Decide(in scheduler.Input) disdel.Decision {
	out := disdel.Decision{Next: in.Now}
	if in.Failure != nil { // what the remedy asks for is needed to go on
		out.Next.Workers, out.BatchSize = max(in.Now.Workers, in.Failure.Remedy.Workers), in.Failure.Remedy.BatchSize
	}
	if in.Boundary != disdel.BoundaryEpoch || len(in.Seen) == 0 {
		return out
	}
	newest := in.Seen[len(in.Seen)-1]
	if len(in.Seen) > 1 {
		before := in.Seen[len(in.Seen)-2]
		switch {
		case newest.Setting.Workers == before.Setting.Workers:
			return out // it has found its number
		case price(newest) >= price(before):
			out.Next.Workers = before.Setting.Workers
			out.Why = fmt.Sprintf("1,000 rows cost %.3g, and %.3g with one more", price(newest), price(before))
			return out
		}
	}
	out.Next.Workers--
	out.Why = fmt.Sprintf("1,000 rows cost %.3g; fewer may cost less", price(newest))
	return out
}

// price is what 1,000 rows cost, in seconds of a worker.
func price(o disdel.Observation) float64 {
	return o.PerThousand().Seconds() * float64(o.Setting.Workers)
}
