package doctor

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/deploy/clusterfacts"
)

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
