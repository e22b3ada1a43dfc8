package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/disdel/disdel"
)

// keptFor is how long the store keeps what is left in it.
const keptFor = 24 * time.Hour

// digest is of what the workers of a round have to do: states and updates of one round are of use to a later run of the
// job where it is the same. Limits, threads and places may differ, and the bits do not.
func (s *Spec) digest(round int) string {
	type asked struct {
		Workers     []disdel.TrainRequest
		Levels      []disdel.Level
		Aggregation disdel.Aggregation
	}
	all := asked{Levels: s.Plan.Levels, Aggregation: s.Job.Distribution.Aggregation}
	for w := range s.Plan.Workers {
		r := s.trainRequest(work{round: round}, w, "")
		r.Attempt, r.Threads, r.Memory, r.Estimate, r.Device, r.SaveEvery = 0, 0, 0, 0, 0, 0
		r.Store, r.Models, r.StateCheckpoint, r.Data.URL = disdel.Store{}, "", "", ""
		all.Workers = append(all.Workers, r)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "" // which nothing is the same as
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// halfway is what there is of the round that runs; nil: none of it was begun. What its workers stored and delivered can
// be continued where the round's beginning is kept too, in the newest checkpoint, and the store outlives the job.
func (m *Manager) halfway() *disdel.Halfway {
	spent := m.budget.spent - m.budget.began
	if spent <= 0 || m.publish {
		return nil
	}
	h := &disdel.Halfway{Round: m.round, Spent: spent}
	if m.spec.Keeps && m.newestCheckpoint() == m.round && m.spec.Job.Distribution.Exchange == nil {
		h.Work = m.spec.digest(m.round)
	}
	return h
}

// resumed takes over what earlier runs spent: on whole rounds, of so many steps of all workers together, and on the
// round in which a budget stopped the job. there says that the store still has the work of that round, so that it goes
// on. The sum is no bound of a round's cost, because it includes failed attempts.
func (b *budget) resumed(steps int, halfway *disdel.Halfway, there bool) {
	b.began = b.spent
	done := 0.0
	if halfway != nil {
		done = min(halfway.Spent, b.spent)
	}
	if steps > 0 {
		b.perStep = (b.spent - done) / float64(steps)
	}
	if there {
		b.began, b.done = b.spent-done, done
	}
}

// newestCheckpoint is the round that a resume would begin with.
func (m *Manager) newestCheckpoint() int {
	if m.saved == nil {
		return 0
	}
	return m.saved.Round
}

// again says what a resume of a job that stops here does twice; "" where it does nothing twice, or where that is known
// only once the round is kept.
func (m *Manager) again(h *disdel.Halfway) string {
	from := m.newestCheckpoint()
	switch {
	case h != nil && h.Work != "":
		return ""
	case from < m.round && h != nil:
		return fmt.Sprintf("; a resume trains rounds %d to %d anew: the newest checkpoint is before them", from+1, m.round+1)
	case from < m.round-1:
		return fmt.Sprintf("; a resume trains rounds %d to %d anew: the newest checkpoint is before them", from+1, m.round)
	case from < m.round:
		return fmt.Sprintf("; a resume trains round %d anew: the newest checkpoint is before it", from+1)
	case h != nil:
		return trainedAnew(*h)
	}
	return ""
}

func trainedAnew(h disdel.Halfway) string {
	return fmt.Sprintf("; a resume trains round %d anew, which took %.3g GB-s so far", h.Round+1, h.Spent)
}

// kept is what the store has of a round of a job's record, where the job continues with the same work; nil: nothing
// that would be of use.
func kept(r disdel.Record, spec *Spec, round int) *disdel.Halfway {
	h := r.Halfway
	if h == nil || h.Mark == "" || h.Round != round || h.Work != spec.digest(round) {
		return nil
	}
	return h
}

// keep leaves in the store what is there of the round that a budget stopped the job in, and tells whether it has. The
// failure says which of the two it is.
func (r *run) keep(ctx context.Context) bool {
	if r.rec.Halfway == nil {
		return false
	}
	h := *r.rec.Halfway
	h.Mark, h.Until = "", time.Time{}
	r.rec.Halfway = &h
	if h.Work == "" {
		return false
	}
	now := r.c.cfg.Now()
	mark := fmt.Sprintf("run %d, %d", r.spec.Resumes, now.UnixNano())
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer stop()
	err := r.c.cfg.Board.Keep(ctx, r.spec.ID, mark)
	if err != nil {
		r.log.WithError(err).Warn("the round that the job stopped in is not kept: a resume trains it anew")
		r.failureSays(trainedAnew(h))
		return false
	}
	h.Mark, h.Until = mark, now.Add(keptFor)
	r.failureSays(fmt.Sprintf("; what was done of round %d is kept for a day, and a resume goes on with it", h.Round+1))
	return true
}

// failureSays adds to what the job's failure says.
func (r *run) failureSays(text string) {
	if f := r.rec.Failure; f != nil {
		told := *f
		told.Msg += text
		r.rec.Failure = &told
	}
}
