package queue

import (
	"context"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// change is other room that a job asks for while it has some. The next look at the note grants all of it or nothing.
// The job does not wait until there is room: it would keep what it has, and two such jobs could wait for each other.
// Its policy is asked again after the next epoch.
type change struct {
	to     scheduler.Demand
	answer chan string // why it is refused; "": it is granted
}

// answerWithin bounds the wait for an answer if the note cannot be read. It is longer than blindFor, after which the
// process decides alone.
const answerWithin = blindFor + 2*time.Second

// Change has a job hold other room from now on; refused says why it does not. A job has at once what fits into its own
// room. More is granted at once or refused. With waits the job gives its room back instead, and waits in its old place
// of the queue until ctx ends; err is why it will never have it.
func (q *Queue) Change(
	ctx context.Context, job disdel.JobID, to scheduler.Demand, waits bool,
) (refused string, err error) {
	q.mu.Lock()
	e := q.entries[job]
	if e == nil { // greedy admission
		q.mu.Unlock()
		return "", nil
	}
	if within, ok := e.demand.WithinHeld(to); ok {
		e.demand, e.gaveSome = within, true
		e.edits++
		q.mu.Unlock()
		q.startLooking()
		return "", nil
	}
	if waits {
		e.demand.Gang, e.demand.Keep, e.demand.Takes = to.Gang, to.Keep, to.Takes
		q.mu.Unlock()
		return "", q.again(ctx, job)
	}
	w := &change{to: to, answer: make(chan string, 1)}
	e.change = w
	e.edits++
	q.mu.Unlock()
	q.startLooking()
	return q.answered(ctx, e, w), nil
}

// answered waits for the answer to a change. A change that is not answered in time is withdrawn, so that nothing is
// granted to a job that does not know of it. What was written without an answer is taken back at the next look.
func (q *Queue) answered(ctx context.Context, e *entry, w *change) (refused string) {
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
	if e.change != w {
		return <-w.answer
	}
	e.change, e.gaveSome = nil, true
	e.edits++
	return "the queue of the pool did not answer"
}

// consider decides on the changes that jobs of this process want, after the waiting jobs. It returns the reason of each
// refusal, "" for a change that is granted; the caller holds the lock.
func (q *Queue) consider(s *poolState, admission *scheduler.Admission) map[disdel.JobID]string {
	var jobs []disdel.JobID
	for job, e := range q.entries {
		if e.change != nil {
			jobs = append(jobs, job)
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	slices.Sort(jobs)
	out := map[disdel.JobID]string{}
	for _, job := range jobs {
		out[job] = admission.Change(SinceEpoch(time.Now()), q.entries[job].change.to)
	}
	s.keepFrom(admission)
	return out
}

// fulfil answers a job's change once it is in the note, which has d for it. The caller holds the lock.
func (e *entry) fulfil(d *scheduler.Demand, refused string) {
	if e.change == nil {
		return
	}
	if refused == "" {
		e.demand.Gang, e.demand.Keep, e.demand.Held = d.Gang, d.Keep, d.Held
	}
	e.change.answer <- refused
	e.change = nil
}

// correctOwn corrects what the state says about this process's jobs: they may have given room back since, and they do
// not have a change that was written without an answer. The caller holds the lock.
func (q *Queue) correctOwn(s *poolState) {
	for i := range s.Books.Jobs {
		d := &s.Books.Jobs[i]
		e := q.entries[d.Job]
		if e != nil && e.demand.Held != nil && d.Held != nil && s.Owners[d.Job] == q.Token {
			d.Gang, d.Keep, d.Held = e.demand.Gang, e.demand.Keep, e.demand.Held
		}
	}
}

// asks reports whether a job needs a look at the note although it does not wait.
func (e *entry) asks() bool { return e.change != nil || e.gaveSome }
