package controller

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// letting is how workers of a job are let go while a round runs, by what their steps come to (scheduler.LetsGo). What
// one of them leaves in the queue is another's, so that the round stays whole. At the round's end the policy is asked
// as ever, which takes it from there.
type letting struct {
	rule  *scheduler.ScaleIn // of all the job's rounds; nil: nobody is let go
	seen  map[int]disdel.StepsSoFar
	owed  disdel.StepsSoFar // of steps that the rule was not told of yet
	there int               // workers that are in the round, and are to stay
}

// begin begins a round of so many workers.
func (l *letting) begin(p scheduler.Policy, job disdel.Job, workers int) {
	l.seen, l.owed, l.there = map[int]disdel.StepsSoFar{}, disdel.StepsSoFar{}, workers
	if l.rule == nil {
		l.rule = scheduler.LetsGo(p, job, workers)
		return
	}
	l.rule.Now(workers)
}

// take takes the newest heartbeats of a round's workers, and returns how many steps each has made since, in the mean,
// and what one of them was. A worker that is tried again counts from then on.
func (l *letting) take(round int, list []disdel.Progress) (steps int, mean scheduler.StepSeen) {
	for _, p := range list {
		if p.Task != disdel.TaskTrain || p.Round != round || p.Steps == nil || p.Member >= l.there {
			continue
		}
		if d, ok := p.Steps.Minus(l.seen[p.Member]); ok {
			l.owed.Add(d)
		}
		l.seen[p.Member] = *p.Steps
	}
	steps = l.owed.Made / l.there
	if steps == 0 || l.owed.Rows == 0 {
		return 0, mean
	}
	made := float64(l.owed.Made)
	mean = scheduler.StepSeen{
		Loss: l.owed.Loss / float64(l.owed.Rows), Own: l.owed.Own / made, Others: l.owed.Others / made,
	}
	l.owed = disdel.StepsSoFar{}
	return steps, mean
}

// stepsMade lets workers go where the rule says so after the steps that were made since it was asked last: those with
// the highest numbers, so that a later stage has the others.
func (m *Manager) stepsMade(list []disdel.Progress) (orders []Order) {
	l := &m.letting
	if l.rule == nil || l.there < 2 {
		return nil
	}
	steps, mean := l.take(m.round, list)
	stay := l.there
	l.rule.Holds = scheduler.Worsens(m.course.seen) != ""
	for i := 0; i < steps && stay == l.there; i++ { // those after a change would be of as many as before
		stay = min(stay, l.rule.Step(mean))
	}
	if stay == l.there {
		return nil
	}
	for w := stay; w < l.there; w++ {
		orders = append(orders, LetGoOrder{m.round, w})
	}
	d := disdel.Decision{
		Policy: m.course.policy.Name(), Boundary: disdel.BoundaryStep, Round: m.round, Next: m.setting(),
		Why: fmt.Sprintf("past the knee, and %.0f %% of a step is exchange: %d of %d workers leave while the round runs",
			100*mean.Others/max(mean.Own+mean.Others, 1e-9), l.there-stay, l.there),
	}
	d.Next.Workers, l.there = stay, stay
	return append(orders, DecisionOrder{d})
}
