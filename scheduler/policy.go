package scheduler

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// Policy decides how a job continues. It is deterministic, and remembers only what is in Seen. It decides at the
// boundaries of a job: at its start, after a round or an epoch, and after a failed activation. It sets the fields
// Next to Why of its decision; DecideInBounds keeps Next within the bounds.
//
// A new policy is a file with these three methods, a row in Policies and a script in testdata/policies.
type Policy interface {
	// Name returns the policy's name in job files.
	Name() string
	// Meaning says what it does to the workers, as the rest of a sentence whose subject is its name.
	Meaning() string
	Decide(in Input) disdel.Decision
}

// Input is what a policy sees.
type Input struct {
	Boundary disdel.Boundary      // only start, epoch and failure may change workers and memory
	Seen     []disdel.Observation // rounds of this job, oldest first; empty at its start
	Past     []disdel.Observation // rounds of earlier jobs of this kind, oldest first
	Now      disdel.Setting       // the current one
	Bounds   Bounds
	Goal     Goal
	Seed     uint64   // of the job and the boundary, for a policy that samples
	Failure  *Failure // with BoundaryFailure
}

// Failure is a failed activation, and the remedy that FindRemedy has for it.
type Failure struct {
	Activation disdel.Activation
	Remedy     Remedy
}

// Bounds limit a setting.
type Bounds struct {
	Least, Most   int          // workers
	MostReason    string       // what limits Most
	Batches       int          // whole batches of the data: more workers would have less than one each
	LeastMemory   disdel.Bytes // of a train action
	HighestMemory disdel.Bytes // of a train action; 0: unknown
	Memory        disdel.Bytes // of a train action in the current plan; 0: unknown
	Estimate      disdel.Bytes // of a train action, with its margin; 0: unknown
	Pool          disdel.Bytes // of all containers; 0: unknown
	Processors    int          // shared by all actions; 0: unknown
}

// AtMost lowers the bounds to a number of workers.
func (b Bounds) AtMost(workers int, whose string) Bounds {
	if workers < b.Most {
		b.Most, b.MostReason = workers, whose
	}
	b.Least = min(b.Least, b.Most)
	return b
}

// Goal is what the job is to reach, and with what.
type Goal struct {
	EarlyStop *disdel.EarlyStop // nil: all epochs
	Epochs    float64           // left
	Deadline  disdel.Millis     // left; 0: none
	Cost      float64           // GB-s left; 0: no bound
}

// Policies returns the policies that a job file can name.
func Policies() []Policy {
	return []Policy{
		Static{},
		KubeML{},
		Elastic{},
		Plateau{},
		Coach{},
		CoachPublished{},
		MLLess{},
		MLLessPublished{},
		Auto{},
		Path{},
		&Siren{},
	}
}

func PolicyNames() []string {
	var names []string
	for _, p := range Policies() {
		names = append(names, p.Name())
	}
	return names
}

// PolicyOf returns the policy of a job, Static if it names none. It returns Invalid for an unknown name.
func PolicyOf(job disdel.Job) (Policy, error) {
	name := job.Distribution.Policy
	if name == "" {
		return Static{}, nil
	}
	all := Policies()
	i := slices.IndexFunc(all, func(p Policy) bool { return p.Name() == name })
	if i < 0 {
		return Static{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "find policy", Msg: fmt.Sprintf("there is no policy %q", name),
			Hint: "distribution.policy is one of " + strings.Join(PolicyNames(), ", "),
		}
	}
	return all[i], nil
}

// Seed returns the random seed of a job's policy before a round.
func Seed(id disdel.JobID, round int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", id, round)
	return h.Sum64()
}

// BoundsOf returns the bounds of a job's settings by its file, its data and the platform; plan is the current one.
func BoundsOf(job disdel.Job, plan disdel.Plan) Bounds {
	rows := 0
	for _, s := range plan.Shards {
		rows += s.Len()
	}
	train, _ := plan.Action(disdel.TaskTrain)
	b := bounds(job, rows, plan.Platform, train.Limits.Memory)
	b.Memory, b.Estimate = train.Limits.Memory, train.Estimate.Total
	return b
}

// bounds are those of a job with so many rows, whose train actions get so much memory.
func bounds(job disdel.Job, rows int, p disdel.PlatformLimits, memory disdel.Bytes) Bounds {
	d := job.Distribution
	batches := job.Training.MostWorkers(rows)
	b := Bounds{
		Most: batches, MostReason: "one batch a worker", Batches: batches, LeastMemory: p.MinMemory,
		HighestMemory: p.MaxMemory,
		Processors:    p.Processors, Pool: p.Pool,
	}
	if maximum := job.Resources.MaxMemory; maximum > 0 && (b.HighestMemory <= 0 || maximum < b.HighestMemory) {
		b.HighestMemory = maximum
	}
	lower := func(maximum int, whose string) {
		if maximum > 0 && maximum < b.Most {
			b.Most, b.MostReason = maximum, whose
		}
	}
	lower(p.Concurrent, "the platform's concurrent invocations")
	if p.Pool > 0 && memory > 0 {
		lower(max(1, int(p.Pool/memory)), "the pool's memory")
	}
	lower(d.MaxWorkers, "distribution.maxWorkers")
	b.Least = min(max(1, d.MinWorkers), b.Most)
	return b
}

// DecideInBounds lets a policy decide. What is out of bounds is replaced by the nearest value within them, with a
// reason.
func DecideInBounds(p Policy, in Input) disdel.Decision {
	c := clamp{in: in, d: p.Decide(in)}
	c.d.Policy, c.d.Boundary, c.d.Reasons, c.d.Changed = p.Name(), in.Boundary, nil, false
	if in.Boundary == disdel.BoundaryRound && c.d.Next != in.Now {
		c.because("in the middle of an epoch the setting stays: half of its rows would be trained twice, or not at all")
		c.d.Next = in.Now
	}
	c.workers()
	c.memory()
	c.shape()
	c.batch()
	if c.d.StepMemory = (disdel.StepMemory{}); in.Failure != nil { // policies do not choose it
		r := in.Failure.Remedy
		if c.d.StepMemory = r.StepMemory; r.Stages > 0 {
			c.d.Next.Stages, c.d.Next.Workers = r.Stages, r.Stages*in.Now.Replicas()
		}
	}
	return c.d
}

// clamp keeps a decision within its bounds.
type clamp struct {
	in Input
	d  disdel.Decision
}

func (c *clamp) because(format string, args ...any) {
	c.d.Reasons = append(c.d.Reasons, fmt.Sprintf(format, args...))
}

// workers stay within the job's bounds. After a failure only the data limits them: the remedy needs them to continue.
func (c *clamp) workers() {
	minimum, maximum, whose := c.in.Bounds.Least, c.in.Bounds.Most, c.in.Bounds.MostReason
	switch c.in.Boundary {
	case disdel.BoundaryRound:
		return
	case disdel.BoundaryFailure:
		minimum, maximum, whose = 1, max(c.in.Bounds.Batches, c.in.Now.Workers), "one batch a worker"
	}
	switch n := c.d.Next.Workers; {
	case n < minimum:
		c.because("workers: %d instead of %d, the fewest that there may be", minimum, n)
		c.d.Next.Workers = minimum
	case n > maximum:
		c.because("workers: %d instead of %d, by %s", maximum, n, whose)
		c.d.Next.Workers = maximum
	}
}

func (c *clamp) memory() {
	b := c.in.Bounds
	switch m := c.d.Next.Memory; {
	case m == 0 || m == c.in.Now.Memory:
	case m < b.LeastMemory:
		c.because("memory: %v instead of %v, the platform's minimum", b.LeastMemory, m)
		c.d.Next.Memory = b.LeastMemory
	case b.HighestMemory > 0 && m > b.HighestMemory:
		c.because("memory: %v instead of %v, the most that there may be", b.HighestMemory, m)
		c.d.Next.Memory = b.HighestMemory
	}
}

// shape keeps the tree and the rounds valid.
func (c *clamp) shape() {
	now, next := c.in.Now, &c.d.Next
	if next.FanIn < 0 || next.FanIn == 1 {
		c.because("fan-in: %d is none", next.FanIn)
		next.FanIn = now.FanIn
	}
	if next.AverageEvery < 0 {
		c.because("a round of %d batches is none", next.AverageEvery)
		next.AverageEvery = now.AverageEvery
	}
	if c.in.Boundary == disdel.BoundaryFailure && next.AverageEvery != now.AverageEvery {
		c.because("a failure does not change the rounds")
		next.AverageEvery = now.AverageEvery
	}
}

// batch may only become smaller, and only because of a failure: anything else would be another training.
func (c *clamp) batch() {
	if c.d.BatchSize != 0 && (c.in.Boundary != disdel.BoundaryFailure || c.d.BatchSize < 0) {
		c.because("the batch stays as it is")
		c.d.BatchSize = 0
	}
}

// Static leaves a job as it was planned; what a failure's remedy changes stays changed.
type Static struct{}

// Name returns the policy's name in job files.
func (Static) Name() string { return disdel.PolicyStatic }

// Meaning returns what explain says.
func (Static) Meaning() string { return "leaves them as they were planned" }

// Decide keeps the setting, or applies the remedy.
func (Static) Decide(in Input) disdel.Decision { return unchanged(in) }

// unchanged is the decision to keep the setting, after a failure with its remedy.
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
