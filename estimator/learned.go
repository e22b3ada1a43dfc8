package estimator

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// sample is what one earlier job measured of one task: its peak against what the plan alone had expected.
type sample struct {
	task     disdel.Task
	network  string
	engine   string     // the backend that computed
	planned  float64    // bytes
	terms    [3]float64 // of them: parameters, activations, weights on their way; zeros: unknown
	residual float64    // logarithm of measured over planned
	kind     int        // the same for samples that are the same
}

// termsOf tells plans of the same size apart: a job file's own layers have no name.
func termsOf(e *disdel.Estimate, ratio float64) [3]float64 {
	return [3]float64{float64(e.Parameters) / ratio, float64(e.Activations) / ratio, float64(e.Model) / ratio}
}

// same tells whether two samples are of jobs that differ by nothing that the plan sees.
func (s *sample) same(other *sample) bool {
	const close, least = 0.01, 1 << 16
	near := func(a, b float64) bool { return math.Abs(a-b) <= max(least, close*max(a, b)) }
	for i := range s.terms {
		if !near(s.terms[i], other.terms[i]) && s.terms != [3]float64{} {
			return false
		}
	}
	return s.network == other.network && math.Abs(math.Log(s.planned/other.planned)) < close
}

// samples reads records. A job counts once a task, by the median of its members' highest peaks: workers of one job are
// no independent witnesses. Peaks of activations that did not succeed are cut off, and tell nothing.
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
			if planned <= 0 || len(peaks) == 0 || a.Estimate.Method == MethodPaper {
				continue
			}
			out = append(out, sample{
				task: a.Task, network: networkOf(r.Job.Model), planned: planned, terms: termsOf(&a.Estimate, ratio),
				engine:   e.computes(r.Job.Training.Backend, r.Job.Model.Custom != ""),
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

// newestWith is the newest stage of a job that measured peaks of a task: a job's stages are no independent witnesses
// either.
func newestWith(r *disdel.Record, task disdel.Task) *disdel.Record {
	stages := r.ByStage()
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
	out := make([]float64, 0, len(top))
	for _, p := range top {
		out = append(out, p)
	}
	return out
}

// layered is what a graph that a job file lists is called: two such need have nothing in common.
const layered = "layers"

func networkOf(m disdel.Model) string { return cmp.Or(m.Custom, m.Name, layered) }

// familyOf is the letters that a network's name starts with: resnet of resnet50-keras.
func familyOf(network string) string {
	if i := strings.IndexFunc(network, func(r rune) bool { return r < 'a' || r > 'z' }); i >= 0 {
		return network[:i]
	}
	return network
}

// group is earlier jobs that resemble the one at hand.
type group struct {
	name  string
	least int     // jobs that it takes to say something
	pull  float64 // jobs that what is known without the group stands for
	rest  float64 // of the spread, that no number of jobs takes away
	sure  bool    // what jobs of it agree on is believed however far it is from the plan
	kinds bool    // a kind of jobs is one witness, however many ran: another network has less in common with them
	has   func(like, s *sample) bool
}

// groups, the widest first. Jobs of the same kind differ by nothing that the plan sees, so one of them says almost all.
var groups = []group{
	{
		name: "kinds of jobs of this size", least: 5, pull: 8, rest: 0.9, kinds: true,
		has: func(like, s *sample) bool { return math.Abs(math.Log(s.planned/like.planned)) < math.Ln2 },
	},
	{
		name: "kinds of jobs of this family of networks", least: 4, pull: 4, rest: 0.8, kinds: true,
		has: func(like, s *sample) bool {
			return like.network != layered && familyOf(s.network) == familyOf(like.network)
		},
	},
	{
		name: "jobs of this network", least: 3, pull: 2, rest: 0.7,
		has: func(like, s *sample) bool { return like.network != layered && s.network == like.network },
	},
	{
		name: "jobs of this kind", least: 1, pull: 0.1, rest: 0.6, sure: true,
		has: func(like, s *sample) bool { return s.same(like) },
	},
}

const (
	most  = 0.4 // logarithm of the largest correction: beyond, a plan is wrong, not imprecise
	wrong = 1.8 // and of the largest that jobs of the very kind can agree on: six times
	agree = 0.1 // what their logarithms differ by at most, then
	trust = 6   // spreads that fewer than three jobs may move an estimate by
)

// lesson is what was learned so far: a logarithm to correct by, and the share of the spread that is left.
type lesson struct {
	shift, left float64
	jobs        int
	from        string
}

// learn multiplies the terms by the ratio that earlier jobs of this task measured. From the widest group to the nearest
// with enough jobs, each pulls the correction towards the median of its residuals, the more the more jobs it has;
// nothing is learned where no group has enough.
func (e Estimator) learn(task disdel.Task, in Input, n need) need {
	like := sample{
		task: task, network: in.Graph.Name, engine: e.computes(in.Backend, in.Graph.Custom() != nil),
		planned: float64(n.Likely), terms: termsOf(&n.Estimate, 1),
	}
	spread := max(n.phases[0].spread, n.phases[1].spread) / like.planned
	l := lesson{left: 1}
	closest := 0
	for _, g := range groups {
		r := e.residuals(g, &like)
		if len(r) < g.least {
			closest = max(closest, len(r))
			continue
		}
		l = l.after(g, r, spread)
	}
	if l.jobs == 0 {
		n.Notes = append(n.Notes,
			fmt.Sprintf("nothing learned: of %d kinds of jobs of this size with measured peaks it takes %d", closest,
				groups[0].least))
		return n
	}
	planned := n.Likely
	n = n.scale(math.Exp(l.shift), l.left)
	n.Method, n.Ratio, n.Samples = MethodLearned, float64(n.Likely)/float64(planned), l.jobs
	n.Notes = append(n.Notes, fmt.Sprintf("the plan's %v times %.3f, as %d %s measured", planned, n.Ratio, l.jobs, l.from))
	return n
}

// residuals are those of a group's members, or the median of each kind of them, sorted.
func (e Estimator) residuals(g group, like *sample) []float64 {
	of := map[int][]float64{}
	for i := range e.past {
		if s := &e.past[i]; s.task == like.task && s.engine == like.engine && g.has(like, s) {
			who := i
			if g.kinds {
				who = s.kind
			}
			of[who] = append(of[who], s.residual)
		}
	}
	out := make([]float64, 0, len(of))
	for _, r := range of {
		out = append(out, median(r))
	}
	slices.Sort(out)
	return out
}

// after adds a group's residuals, sorted; spread is relative. A median of fewer than three is one job's word, which is
// believed only as far as jobs usually stray, unless two jobs of the very kind say the same: then the plan is wrong.
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
		l.shift = min(max(l.shift+weight*move, -most), most)
	}
	l.left = min(l.left, math.Sqrt(g.rest*g.rest*weight+1-weight))
	l.jobs, l.from = len(residuals), g.name
	return l
}

// agreeing tells whether most of at least two residuals, sorted, are close together: one that measured nonsense does
// not count.
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

// scale multiplies every term, so that they still add up.
func scale(e disdel.Estimate, by float64) disdel.Estimate {
	for _, term := range []*disdel.Bytes{
		&e.Parameters, &e.Activations, &e.Misc, &e.Workspace, &e.Package, &e.Shard,
		&e.Model,
	} {
		*term = disdel.Bytes(math.Round(float64(*term) * by))
	}
	return sum(e)
}
