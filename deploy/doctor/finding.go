package doctor

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/deploy/clusterfacts"
)

// State says how good what was found is.
type State uint8

// The states. Zero: not found out.
const (
	Unknown State = iota
	Good
	Note    // jobs run, and it is good to know
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

// The names of checks, in the order in which they are made.
const (
	CheckAPI         = "api"         // something answers as OpenWhisk does
	CheckCredentials = "credentials" // it takes the key
	CheckLimits      = "limits"      // an action may be as large and take as long as is needed
	CheckThrottles   = "throttles"   // how many invocations the namespace may make
	CheckImage       = "image"       // the action runtime starts
	CheckProcessors  = "processors"  // that a container finds
	CheckClock       = "clock"       // of containers beside this machine's
	CheckRedis       = "redis"       // actions reach it
	CheckStorage     = "storage"     // actions reach the blob store
	CheckCouchDB     = "couchdb"     // this machine reaches the history, and actions might
	CheckPool        = "pool"        // how many containers run at once
	CheckMemory      = "memory"      // the largest memory that really runs
	CheckTimeout     = "timeout"     // the longest timeout that a container is really given
	CheckOutOfMemory = "outOfMemory" // how an action is ended that takes too much
)

// Finding is what one check found.
type Finding struct {
	Check string      `json:"check"`
	State State       `json:"state"`
	Found string      `json:"found"`
	Means string      `json:"means,omitempty"` // for jobs
	Fix   string      `json:"fix,omitempty"`   // what to do, and who
	Key   string      `json:"key,omitempty"`   // of the OpenWhisk chart, for its admin; or a variable of the user's
	Value string      `json:"value,omitempty"` // that the key should have
	Kind  disdel.Kind `json:"kind,omitempty"`  // of what went wrong
}

// Report is everything that was found of one cluster.
type Report struct {
	Host     string             `json:"host"`
	Findings []Finding          `json:"findings"`
	Facts    clusterfacts.Facts `json:"facts"`
}

// Find is the finding of a check, false where it was not made.
func (r *Report) Find(check string) (Finding, bool) {
	for _, f := range r.Findings {
		if f.Check == check {
			return f, true
		}
	}
	return Finding{}, false
}

// Err is the first problem, nil where there is none.
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

// remedy is what to do about a finding in one line.
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

// Print writes the findings as a table, and below it what those mean that are not as they should be.
func (r *Report) Print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CHECK\tSTATE\tFOUND")
	for _, f := range r.Findings {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Check, f.State, f.Found)
	}
	t.Flush() //nolint:errcheck // whoever gave w looks at it
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
