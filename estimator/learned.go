package estimator

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// sample is the measured peak of one task in an earlier job, against the expectation of the plan.
type sample struct {
	task     disdel.Task
	network  string
	engine   string     // the backend that computed
	planned  float64    // bytes
	terms    [3]float64 // parts of planned: parameters, activations, weights in transfer; zeros: unknown
	residual float64    // logarithm of measured / planned
	kind     int        // equal for equal samples
}

// termsOf are the terms that tell plans of the same size apart: layers of a job file have no name.
func termsOf(e *disdel.Estimate, ratio float64) [3]float64 {
	return [3]float64{float64(e.Parameters) / ratio, float64(e.Activations) / ratio, float64(e.Model) / ratio}
}

// same tells whether the plan sees no difference between two samples' jobs.
func (s *sample) same(other *sample) bool {
	const close, minimum = 0.01, 1 << 16
	near := func(a, b float64) bool { return math.Abs(a-b) <= max(minimum, close*max(a, b)) }
	for i := range s.terms {
		if !near(s.terms[i], other.terms[i]) && s.terms != [3]float64{} {
			return false
		}
	}
	return s.network == other.network && math.Abs(math.Log(s.planned/other.planned)) < close
}

// samples reads records. A job counts once per task, by the median of its members' highest peaks, since workers of
// one job are not independent. Peaks of failed activations are cut off and do not count.
func (e Estimator) samples(past []disdel.Record) []sample {
	var out []sample
	for i := range past {
		r := &past[i]
		for _, newest := range r.Plan.Actions {
			stage := newestWith(r, newest.Task)
			a, _ := stage.Plan.Action(newest.Task)
			ratio := cmp.Or(a.Estimate.Ratio, 1)
			planned := float64(cmp.Or(a.Estimate.Likely, a.Estimate.Total-a.Estimate.Margin)) / ratio
			peaks := peaksOf(stage, a.Task)
			if planned <= 0 || len(peaks) == 0 || a.Estimate.Method == MethodPaper ||
				a.Estimate.Method == disdel.MemoryGiven {
				continue
			}
			out = append(out, sample{
				task: a.Task, network: networkOf(r.Job.Model), planned: planned, terms: termsOf(&a.Estimate, ratio),
				engine:   e.computes(r.Job.Training.Backend, customOf(&r.Job.Model)),
				residual: math.Log(median(peaks) / planned),
			})
		}
	}
	for i := range out {
		out[i].kind = i
		for k := range out[:i] {
			if s := &out[k]; s.task == out[i].task && s.engine == out[i].engine && s.same(&out[i]) {
				out[i].kind = s.kind
				break
			}
		}
	}
	return out
}

// newestWith is the newest stage of a job with measured peaks of a task. Only one stage counts, since stages of a job
// are not independent either.
func newestWith(r *disdel.Record, task disdel.Task) *disdel.Record {
	stages := r.SplitByStage()
	for i := len(stages) - 1; i > 0; i-- {
		if len(peaksOf(stages[i], task)) > 0 {
			return stages[i]
		}
	}
	if len(stages) == 0 {
		return r
	}
	return stages[0]
}

// peaksOf is the highest peak of every member.
func peaksOf(r *disdel.Record, task disdel.Task) []float64 {
	type place struct{ level, member int }
	top := map[place]float64{}
	for _, a := range r.Activations {
		if a.Task == task && a.Outcome == disdel.OutcomeSuccess && a.Peak > 0 {
			at := place{a.Level, a.Member}
			top[at] = max(top[at], float64(a.Peak))
		}
	}
	return slices.Collect(maps.Values(top))
}

// layered is the network name of jobs that list their layers. Two such networks need not have anything in common.
const layered = "layers"

func networkOf(m disdel.Model) string { return cmp.Or(m.NetworkName(), layered) }

// customOf describes the network that a job's program brings, as far as its record does; nil for others.
func customOf(m *disdel.Model) *disdel.CustomNetwork {
	switch {
	case m.Translated():
		return nil
	case m.Python != nil && m.Python.Network != nil:
		return m.Python.Network
	case m.Python != nil:
		return &disdel.CustomNetwork{Python: &disdel.PythonNetwork{}}
	case m.Custom != "":
		return &disdel.CustomNetwork{}
	default:
		return nil
	}
}

// familyOf is the leading letters of a network's name: resnet of resnet50-keras.
func familyOf(network string) string {
	if i := strings.IndexFunc(network, func(r rune) bool { return r < 'a' || r > 'z' }); i >= 0 {
		return network[:i]
	}
	return network
}

// group is a set of earlier jobs that resemble the planned one.
type group struct {
	name    string
	minimum int     // least number of jobs that count
	pull    float64 // number of jobs that the prior correction counts for
	rest    float64 // share of the spread that no number of jobs removes
	sure    bool    // a value that its jobs agree on is used even if it is far from the plan
	kinds   bool    // all jobs of one kind count once: other networks have less in common with them
	has     func(like, s *sample) bool
}

// groups, the widest first. Jobs of the same kind look equal to the plan, so one of them tells almost everything.
var groups = []group{
	{
		name: "kinds of jobs of this size", minimum: 5, pull: 8, rest: 0.9, kinds: true,
		has: func(like, s *sample) bool { return math.Abs(math.Log(s.planned/like.planned)) < math.Ln2 },
	},
	{
		name: "kinds of jobs of this family of networks", minimum: 4, pull: 4, rest: 0.8, kinds: true,
		has: func(like, s *sample) bool {
			return like.network != layered && familyOf(s.network) == familyOf(like.network)
		},
	},
	{
		name: "jobs of this network", minimum: 3, pull: 2, rest: 0.7,
		has: func(like, s *sample) bool { return like.network != layered && s.network == like.network },
	},
	{
		name: "jobs of this kind", minimum: 1, pull: 0.1, rest: 0.6, sure: true,
		has: func(like, s *sample) bool { return s.same(like) },
	},
}

const (
	maximum = 0.4 // largest correction (logarithm): beyond, a plan is wrong, not imprecise
	wrong   = 1.8 // largest correction (logarithm) that jobs of the same kind can agree on: 6 times
	agree   = 0.1 // largest difference of the logarithms of jobs that agree
	trust   = 6   // largest correction by fewer than three jobs, in spreads
)

// lesson is the correction so far (a logarithm), and the remaining share of the spread.
type lesson struct {
	shift, remaining float64
	jobs             int
	from             string
}

// learn multiplies the terms by the ratio that earlier jobs of this task measured. It goes from the widest group to
// the nearest. Each group with enough jobs pulls the correction towards the median of its residuals; more jobs pull
// more. Without such a group nothing changes.
func (e Estimator) learn(task disdel.Task, in Input, n need) need {
	like := sample{
		task: task, network: in.Graph.Name, engine: e.computes(in.Backend, in.Graph.Custom()),
		planned: float64(n.Likely), terms: termsOf(&n.Estimate, 1),
	}
	spread := max(n.phases[0].spread, n.phases[1].spread) / like.planned
	l := lesson{remaining: 1}
	closest := 0
	for _, g := range groups {
		r := e.residuals(g, &like)
		if len(r) < g.minimum {
			closest = max(closest, len(r))
			continue
		}
		l = l.after(g, r, spread)
	}
	if l.jobs == 0 {
		n.Notes = append(n.Notes,
			fmt.Sprintf("nothing learned: of %d kinds of jobs of this size with measured peaks it takes %d", closest,
				groups[0].minimum))
		return n
	}
	planned := n.Likely
	n = n.scale(math.Exp(l.shift), l.remaining)
	n.Method, n.Ratio, n.Samples = MethodLearned, float64(n.Likely)/float64(planned), l.jobs
	n.Notes = append(n.Notes, fmt.Sprintf("the plan's %v times %.3f, as %d %s measured", planned, n.Ratio, l.jobs, l.from))
	return n
}

// residuals are the residuals of a group's members, or the median of each kind of them, sorted.
func (e Estimator) residuals(g group, like *sample) []float64 {
	byWorkers := map[int][]float64{}
	for i := range e.past {
		if s := &e.past[i]; s.task == like.task && s.engine == like.engine && g.has(like, s) {
			who := i
			if g.kinds {
				who = s.kind
			}
			byWorkers[who] = append(byWorkers[who], s.residual)
		}
	}
	out := make([]float64, 0, len(byWorkers))
	for _, r := range byWorkers {
		out = append(out, median(r))
	}
	slices.Sort(out)
	return out
}

// after adds a group's sorted residuals; spread is relative. A median of fewer than three jobs counts only as far as
// jobs usually vary, unless two jobs of the same kind agree: then the plan is wrong.
func (l lesson) after(g group, residuals []float64, spread float64) lesson {
	n := float64(len(residuals))
	weight := n / (n + g.pull)
	move := median(residuals) - l.shift
	switch {
	case g.sure && agreeing(residuals):
		l.shift = min(max(l.shift+move, -wrong), wrong)
	case n < 3:
		move = min(max(move, -trust*spread), trust*spread)
		fallthrough
	default:
		l.shift = min(max(l.shift+weight*move, -maximum), maximum)
	}
	l.remaining = min(l.remaining, math.Sqrt(g.rest*g.rest*weight+1-weight))
	l.jobs, l.from = len(residuals), g.name
	return l
}

// agreeing tells whether most of at least two sorted residuals are close together. One outlier does not count.
func agreeing(residuals []float64) bool {
	n := len(residuals)
	cut := n / 4
	return n >= 2 && residuals[n-1-cut]-residuals[cut] <= agree
}

func median(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// scale multiplies every term, so that the sum stays right.
func scale(e disdel.Estimate, by float64) disdel.Estimate {
	for _, term := range []*disdel.Bytes{
		&e.Parameters, &e.Activations, &e.Misc, &e.Workspace, &e.Package, &e.Shard,
		&e.Model,
	} {
		*term = disdel.Bytes(math.Round(float64(*term) * by))
	}
	return sum(e)
}
