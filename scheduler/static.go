package scheduler

import "github.com/disdel/disdel"

// Static leaves a job as it was planned; what a failure's remedy changes stays changed.
type Static struct{}

// Name is the word of job files.
func (Static) Name() string { return disdel.PolicyStatic }

// Meaning is what explain says.
func (Static) Meaning() string { return "leaves them as they were planned" }

// Decide keeps what runs, or does what the remedy says.
func (Static) Decide(in Input) disdel.Decision { return unchanged(in) }

// unchanged is the decision to go on as it is, after a failure with its remedy.
func unchanged(in Input) disdel.Decision {
	d := disdel.Decision{Next: in.Now}
	if f := in.Failure; f != nil {
		d.BatchSize, d.Why = f.Remedy.BatchSize, f.Remedy.Why
		if n := f.Remedy.Workers; n > 0 {
			d.Next.Workers = max(n, in.Now.Workers)
		}
	}
	return d
}
