package scheduler

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// RoundedUp formats a cost for a job file, rounded up to two digits.
func RoundedUp(cost float64) string {
	if cost <= 0 || math.IsInf(cost, 0) || math.IsNaN(cost) {
		return "1"
	}
	step := math.Pow(10, math.Floor(math.Log10(cost))-1)
	return fmt.Sprintf("%.4g", math.Ceil(cost/step)*step)
}

// CheckBudget returns OverLimit for a plan that costs more than the job's budget: by use on a quiet machine, or at
// least. A plan of unknown cost passes: the budget is checked while the job runs.
func CheckBudget(id disdel.JobID, job disdel.Job, plan disdel.Plan) error {
	maximum, field := job.Budget()
	if maximum <= 0 {
		return nil
	}
	text, enough := "", 0.0
	minimum := leastCost(plan)
	switch f := plan.Forecast; {
	case f != nil && f.LeastCost(job.Training.Goal != nil) > maximum:
		c := f.MeteredCost()
		text = fmt.Sprintf("the job is likely to cost %.4g GB-s (%.4g to %.4g, by %s)", c.Likely, c.Low, c.High, f.Source)
		enough = c.High
	case minimum > maximum:
		text = fmt.Sprintf("the job costs %.4g GB-s at the least: no activation takes less than a millisecond", minimum)
		enough = 10 * minimum
	default:
		return nil
	}
	raised := fmt.Sprintf("%s=%sGB-s", field, RoundedUp(enough))
	return &disdel.Error{
		Kind: disdel.OverLimit, Op: "plan job", Job: id,
		Msg:     fmt.Sprintf("%s, and %s is %.4g GB-s", text, field, maximum),
		Hint:    fmt.Sprintf("--set %s, or fewer training.epochs", raised),
		Changes: [][]string{{raised}},
	}
}

// leastCost is the cost by use if every activation takes the shortest time that OpenWhisk counts: a lower bound for
// any job.
func leastCost(plan disdel.Plan) float64 {
	const shortest = 0.001 // s
	var memory disdel.Bytes
	for _, a := range plan.Actions {
		memory += disdel.Bytes(plan.ActionCount(a.Task)) * a.Limits.Memory
	}
	return shortest * float64(max(1, plan.Rounds)) * memory.Gigabytes()
}

// goal checks a plan against the job's goal and its bounds, with the forecast from earlier jobs. If the user does not
// set the workers, it chooses the fewest that are likely to meet the bounds, or else the fewest that may. If the low
// end of every forecast is above a bound, it refuses the job with the figures (OverLimit), before anything is spent.
func (b *planBuilder) goal() error {
	g := b.plan.Forecast.Goal
	epochs := b.Job.Training.Epochs
	switch {
	case g.Epochs.Likely == 0 && g.Epochs.Low >= float64(epochs):
		return b.outOfReach(fmt.Sprintf("none of %s like this one came to %s, in up to %.3g epochs, and training.epochs "+
			"is %d",
			disdel.Counted(g.Jobs, "earlier job"), g.Goal, g.Epochs.Low, epochs),
			", or a goal that is easier", fmt.Sprintf("training.epochs=%.0f", 2*g.Epochs.Low))
	case g.Epochs.Low > float64(epochs):
		return b.outOfReach(fmt.Sprintf("%s takes %.3g to %.3g epochs by %s, and training.epochs is %d", g.Goal, g.Epochs.Low,
			max(g.Epochs.Low, g.Epochs.High), disdel.Counted(g.Jobs, "earlier job"), epochs),
			"", fmt.Sprintf("training.epochs=%.0f", max(g.Epochs.Likely, g.Epochs.High)+1))
	}
	lack := b.overBound(&b.plan, likely)
	if lack == nil {
		return nil
	}
	others := b.others()
	for _, c := range []struct {
		end  forecastEnd
		does string
	}{{likely, "are likely to"}, {low, "may"}} {
		if c.end == low && b.overBound(&b.plan, low) == nil {
			b.because("%s is likely to take more than %s allows, and may take less", g.Goal, lack.field)
			return nil
		}
		i := slices.IndexFunc(others, func(o planBuilder) bool { return b.overBound(&o.plan, c.end) == nil })
		if i < 0 || !b.free() {
			continue
		}
		o := others[i]
		reasons := slices.Concat(b.plan.Reasons, o.plan.Reasons)
		b.plan, b.train = o.plan, o.train
		b.plan.Reasons = reasons
		b.because("workers: %d, the fewest that %s come to %s within %s", b.plan.Workers, c.does, g.Goal, lack.field)
		return nil
	}
	return b.unreachable(lack, others)
}

// forecastEnd selects a value of a forecast's interval.
type forecastEnd int

const (
	likely forecastEnd = iota
	low
)

func endOf[T any](e forecastEnd, v disdel.Interval[T]) T {
	if e == low {
		return v.Low
	}
	return v.Likely
}

// free tells whether the planner may choose the number of workers.
func (b *planBuilder) free() bool {
	p := b.Job.Distribution.Policy
	return b.Job.Distribution.Workers == 0 && (p == "" || p == disdel.PolicyStatic)
}

// exceeded is a bound of the job that a plan is not likely to meet on the way to its goal.
type exceeded struct {
	field string
	has   string
	need  func(*disdel.GoalForecast) float64 // GB-s, or s
	text  func(float64) string
	set   func(float64) string // in the form of --set
}

// overBound returns the bound that a plan exceeds by that end of its forecast, nil if it meets all.
func (b *planBuilder) overBound(p *disdel.Plan, e forecastEnd) *exceeded {
	if p.Forecast == nil || p.Forecast.Goal == nil {
		return nil
	}
	g := p.Forecast.Goal
	maximum, whose := b.Job.Budget()
	if maximum > 0 && endOf(e, g.MeteredCost()) > maximum {
		return &exceeded{
			field: whose, has: fmt.Sprintf("%.4g GB-s", maximum),
			need: func(g *disdel.GoalForecast) float64 { return g.MeteredCost().Likely },
			text: func(v float64) string { return fmt.Sprintf("%.4g GB-s", v) },
			set:  func(v float64) string { return RoundedUp(v) + "GB-s" },
		}
	}
	within, whose := b.Job.TimeLimit()
	if within > 0 && endOf(e, g.Duration) > disdel.Millis(within) {
		return &exceeded{
			field: whose, has: within.String(),
			need: func(g *disdel.GoalForecast) float64 { return float64(g.Duration.Likely) },
			text: func(v float64) string { return disdel.Millis(v).Text() },
			set:  func(v float64) string { return disdel.Millis(v).Readable().String() },
		}
	}
	return nil
}

// others returns plans with other numbers of workers, the fewest first: powers of two within the job's bounds.
func (b *planBuilder) others() []planBuilder {
	bounds := bounds(b.Job, b.Data.Train, b.Platform, b.train.Total)
	var out []planBuilder
	for n := bounds.Least; n <= min(bounds.Most, mostOthers); n *= 2 {
		if n == b.plan.Workers {
			continue
		}
		o := planBuilder{PlanInput: b.PlanInput}
		o.comparing, o.Suggest, o.Job.Distribution.Workers = true, false, n
		if o.build() == nil && o.plan.Forecast != nil && o.plan.Forecast.Goal != nil {
			out = append(out, o)
		}
	}
	return out
}

// mostOthers is the most workers that are considered for a goal.
const mostOthers = 64

// unreachable refuses a job that no plan, or no plan with its number of workers, brings to its goal within a bound.
func (b *planBuilder) unreachable(l *exceeded, others []planBuilder) error {
	g := b.plan.Forecast.Goal
	minimum, workers := l.need(g), b.plan.Workers
	looked := []int{workers}
	for _, o := range others {
		looked = append(looked, o.plan.Workers)
		if n := l.need(o.plan.Forecast.Goal); n < minimum {
			minimum, workers = n, o.plan.Workers
		}
	}
	msg := fmt.Sprintf("%s takes about %.3g epochs by %s, %s with %s, and %s is %s", g.Goal, g.Epochs.Likely,
		disdel.Counted(g.Jobs, "earlier job"), l.text(l.need(g)), disdel.Counted(b.plan.Workers, "worker"), l.field, l.has)
	sets := []string{fmt.Sprintf("%s=%s", l.field, l.set(minimum*(1+spareGoal)))}
	if len(others) > 0 {
		slices.Sort(looked)
		each := strings.Trim(fmt.Sprint(looked), "[]")
		msg += fmt.Sprintf("; of %s workers %d take the least, %s",
			strings.ReplaceAll(each, " ", ", "), workers, l.text(minimum))
	}
	if workers != b.plan.Workers && b.Job.Distribution.Workers > 0 {
		sets = append([]string{fmt.Sprintf("distribution.workers=%d", workers)}, sets...)
	}
	return b.outOfReach(msg, "", sets...)
}

// spareGoal is the margin of a proposed bound above the likely value.
const spareGoal = 0.25

// outOfReach is the error of a job that cannot reach its goal. Its hint names the settings that are enough, and the
// alternative in or.
func (b *planBuilder) outOfReach(msg, or string, sets ...string) error {
	return &disdel.Error{
		Kind: disdel.OverLimit, Op: "plan job", Job: b.ID, Msg: msg,
		Hint: "--set " + strings.Join(sets, ", and --set ") + or, Changes: [][]string{sets},
	}
}
