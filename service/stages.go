package service

import (
	"context"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/scheduler"
)

// change is another gang that a job wants while it holds one. It is answered at the next look at the ledger: granted
// whole, or not at all. A job does not wait for it, since it would do so with what it holds, and two such jobs could
// wait for each other; its policy is asked again when the next epoch has ended.
type change struct {
	to     scheduler.Demand
	answer chan string // why it is refused; "": it is granted
}

// answerWithin bounds a change where nobody can look at the ledger. It is longer than what it takes to decide without.
const answerWithin = blindFor + 2*time.Second

// change has a job hold another gang from now on, and tells why it does not. What has room in what it holds it has at
// once. What does not is granted at once or refused; a job that cannot do without it gives back what it has and waits,
// in its old place of the queue, until ctx ends, and an error is why it will never have it.
func (q *queue) change(ctx context.Context, job disdel.JobID, to scheduler.Demand, waits bool) (string, error) {
	q.mu.Lock()
	t := q.turns[job]
	if t == nil { // nobody grants anything
		q.mu.Unlock()
		return "", nil
	}
	if within, ok := t.demand.WithinHeld(to); ok {
		t.demand, t.gaveSome = within, true
		q.mu.Unlock()
		q.attend()
		return "", nil
	}
	if waits {
		t.demand.Gang, t.demand.Keep, t.demand.Takes = to.Gang, to.Keep, to.Takes
		q.mu.Unlock()
		return "", q.again(ctx, job)
	}
	w := &change{to: to, answer: make(chan string, 1)}
	t.change = w
	q.mu.Unlock()
	q.attend()
	return q.answered(ctx, t, w), nil
}

// answered waits for what comes of a change. One that nobody has looked at in time is withdrawn: nothing is granted to
// a job that does not know of it, and what was written without an answer is taken back at the next look.
func (q *queue) answered(ctx context.Context, t *turn, w *change) (refused string) {
	late := time.NewTimer(answerWithin)
	defer late.Stop()
	select {
	case refused = <-w.answer:
		return refused
	case <-late.C:
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.change != w {
		return <-w.answer
	}
	t.change, t.gaveSome = nil, true
	return "the queue of the pool did not answer"
}

// consider decides on the changes that jobs of this process want, after all who wait, and returns what came of them;
// the caller holds the lock.
func (q *queue) consider(l *ledger, books *scheduler.Admission) map[disdel.JobID]string {
	var jobs []disdel.JobID
	for job, t := range q.turns {
		if t.change != nil {
			jobs = append(jobs, job)
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	slices.Sort(jobs)
	out := map[disdel.JobID]string{}
	for _, job := range jobs {
		out[job] = books.Change(sinceEpoch(time.Now()), q.turns[job].change.to)
	}
	l.enter(books)
	return out
}

// fulfil tells jobs what came of the changes that they wanted, once it is in the ledger; the caller holds the lock.
func (q *queue) fulfil(books *scheduler.Admission, answers map[disdel.JobID]string) {
	for _, d := range books.Demands() {
		refused, asked := answers[d.Job]
		t := q.turns[d.Job]
		if !asked || t == nil || t.change == nil {
			continue
		}
		if refused == "" {
			t.demand.Gang, t.demand.Keep, t.demand.Held = d.Gang, d.Keep, d.Held
		}
		t.change.answer <- refused
		t.change = nil
	}
}

// ownWord has a ledger say of this process's jobs what they hold: they may have given some of it back since, and a
// change of which nobody knows whether it was written is not theirs. The caller holds the lock.
func (q *queue) ownWord(l *ledger) {
	for i := range l.Books.Jobs {
		d := &l.Books.Jobs[i]
		t := q.turns[d.Job]
		if t != nil && t.demand.Held != nil && d.Held != nil && l.Owners[d.Job] == q.s.token {
			d.Gang, d.Keep, d.Held = t.demand.Gang, t.demand.Keep, t.demand.Held
		}
	}
}

// asks tells whether a job wants the ledger looked at, besides by waiting.
func (t *turn) asks() bool { return t.change != nil || t.gaveSome }

// stage is what a stage of a job asks of its platform; the rest of the job is as it was admitted.
func (p *preparation) stage(ctx context.Context, rec disdel.Record, o controller.GrantOrder) scheduler.Demand {
	d, _ := p.demand(ctx, rec, o.Plan)
	if d.Keep == scheduler.KeepLife && o.Plan.Rounds > 0 {
		left := float64(max(1, o.Plan.Rounds-o.Round)) / float64(o.Plan.Rounds)
		for _, t := range []*disdel.Millis{&d.Takes.Low, &d.Takes.Likely, &d.Takes.High} {
			*t = disdel.Millis(left * float64(*t))
		}
	}
	return d
}
