package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// AdjustedJob is the job of a record after its failures: with the batch that it was planned again with.
func AdjustedJob(r disdel.Record) disdel.Job {
	job := r.Job
	if job.Training.Shared() {
		return job // its stages have the workers' shares
	}
	for _, a := range r.Adjustments {
		ofTraining := a.Task == disdel.TaskTrain // an evaluation has a batch of its own
		if a.Field == disdel.FieldBatchSize && ofTraining && a.From.Count == job.Training.BatchSize {
			job.Training.BatchSize = a.To.Count
		}
	}
	return job
}

// CheckResume refuses a job that was changed so that it cannot continue from a checkpoint of its record (Conflict):
// one that has fewer rounds now, or whose rounds start elsewhere in the data.
func CheckResume(r disdel.Record, spec Spec, c disdel.Checkpoint) error {
	no := func(why string, args ...any) error {
		return &disdel.Error{
			Kind: disdel.Conflict, Op: "resume job", Job: r.ID, Msg: fmt.Sprintf(why, args...),
			Hint: "leave training.epochs, training.batchSize and distribution as they were, or submit the job anew",
		}
	}
	n, err := continued(r, spec, c.Round)
	if err != nil {
		return err
	}
	total, was, now := n.stage.End(), n.in.TrainRange(c.Round), n.in.TrainRange(c.Round)
	if n.onlyStage || n.stage.AverageEvery != n.in.AverageEvery || n.stage.Epochs != n.in.Epochs {
		now = scheduler.SpanOf(spec.Job, spec.Plan, c.Round)
	}
	if n.onlyStage {
		total = spec.Plan.Rounds
	} else if was.Epoch > n.stage.To.Epoch {
		return no("%s were trained, and the job now has %d", disdel.Counted(was.Epoch, "epoch"), n.stage.To.Epoch)
	}
	over := c.Round == r.Plan.Rounds // nothing was left to train
	if over && total == c.Round {
		return nil
	}
	if early := len(r.Rounds); over && early > 0 && r.Rounds[early-1].Round+1 < c.Round ||
		r.Status == disdel.StatusSucceeded {
		return no("its training has ended, and the job now has %s", disdel.Counted(total, "round"))
	}
	if c.Round >= total {
		return no("the job now has %s, and its checkpoint is of round %d", disdel.Counted(total, "round"), c.Round+1)
	}
	if was.Epoch != now.Epoch || was.Batch != now.Batch {
		return no("round %d began at batch %d of epoch %d, and now begins at batch %d of epoch %d",
			c.Round+1, was.Batch+1, was.Epoch+1, now.Batch+1, now.Epoch+1)
	}
	if size := n.in.BatchSize; now.Batch > 0 && size != n.stage.BatchSize {
		return no("round %d begins in the middle of an epoch, and batches had %d rows, not %d", c.Round+1, size,
			n.stage.BatchSize)
	}
	if now.Batch > 0 && n.in.Workers != n.stage.Workers {
		return no("round %d begins in the middle of an epoch, which %d workers began and not %d", c.Round+1, n.in.Workers,
			n.stage.Workers)
	}
	return nil
}

// continuation is how a resumed job continues at a round.
type continuation struct {
	in        disdel.Stage // of the round, in the record
	onlyStage bool         // the job had no other stage
	stage     disdel.Stage // the new one
	plan      disdel.Plan
	job       disdel.Job
}

// continued plans how a job continues at a round of its record. What the user has changed since is as in spec; what a
// policy or a remedy had changed is as it was in that round.
func continued(r disdel.Record, spec Spec, round int) (c continuation, err error) {
	was := AdjustedJob(r)
	if len(r.Stages) == 0 {
		r.Job = was
	}
	stages, _ := r.EffectiveStages()
	c = continuation{
		in: stages[disdel.StageAt(stages, round)], onlyStage: len(stages) == 1, plan: spec.Plan, job: spec.Job,
	}
	next := spec.Plan.AsStage(spec.Job).Setting
	if next.Workers == r.Plan.Workers {
		next.Workers = c.in.Workers
	}
	if next.Stages != c.in.Stages && spec.Job.Distribution.Stages == was.Distribution.Stages { // a remedy changed them
		next.Stages, next.Workers = c.in.Stages, c.in.Workers
	}
	if next.Memory == was.Resources.Memory {
		next.Memory = c.in.Memory
	}
	if next.FanIn == was.Distribution.Aggregation.FanIn {
		next.FanIn = c.in.FanIn
	}
	if spec.Job.Distribution.Sync == was.Distribution.Sync {
		next.AverageEvery = c.in.AverageEvery
	}
	if spec.Job.Training.SameBatch(was.Training) {
		c.job.Training = c.job.Training.WithWorkerBatch(c.in.BatchSize, c.in.Replicas())
	}
	saves := c.in.StepMemory != r.AllStages()[0].StepMemory && // a remedy chose it
		spec.Job.Training.StepMemory == was.Training.StepMemory
	if saves || next != spec.Plan.AsStage(spec.Job).Setting || !c.job.Training.SameBatch(spec.Job.Training) {
		steps := disdel.StepMemory{}
		if saves {
			steps = c.in.StepMemory
		}
		r.Plan.SaveMemoryIn(&c.job, steps)
		if err := c.replan(r, spec, next); err != nil {
			return c, err
		}
	}
	at := c.in.TrainRange(round)
	c.stage = c.plan.AsStage(c.job).Starting(round, disdel.Position{Epoch: at.Epoch, Batch: at.Batch})
	if c.onlyStage {
		c.stage.Rounds = max(0, c.plan.Rounds-round)
	}
	c.stage.Decision = &disdel.Decision{
		Boundary: disdel.BoundaryResume, Round: round, Next: c.stage.Setting, Why: "the job was taken up again",
		Changed: c.stage.Setting != c.in.Setting || c.stage.BatchSize != c.in.BatchSize,
	}
	return c, nil
}

// replan plans an earlier setting again, with limits no lower than those that the job had reached.
func (c *continuation) replan(r disdel.Record, spec Spec, next disdel.Setting) error {
	if spec.Replan == nil {
		return nil
	}
	wanted := scheduler.ApplySetting(c.job, next, 0)
	plan, err := spec.Replan(wanted)
	if err == nil {
		RaiseLimits(&plan, c.job, r)
		c.plan, c.job = plan, wanted
	}
	return err
}

// RaiseLimits raises the limits of a plan to those that the failures of a record led to, unless the job sets them.
func RaiseLimits(p *disdel.Plan, job disdel.Job, r disdel.Record) {
	for i := range p.Actions {
		a := &p.Actions[i]
		minimum := scheduler.LimitsReached(&r, a.Task)
		if job.Resources.Memory == 0 || a.Task != disdel.TaskTrain {
			a.Limits.Memory = min(max(a.Limits.Memory, minimum.Memory), p.Platform.MaxMemory)
		}
		if job.Resources.Timeout == 0 {
			a.Limits.Timeout = min(max(a.Limits.Timeout, minimum.Timeout), p.Platform.MaxTimeout)
		}
		if a.Limits.Device > 0 && (job.Resources.GPU.Memory == 0 || a.Task != disdel.TaskTrain) {
			a.Limits.Device = min(max(a.Limits.Device, minimum.Device), p.Platform.MaxDevice)
		}
	}
}

// goOn continues a job at a round of its record: in the stage of the round, and with the decisions about later ones.
func goOn(r disdel.Record, spec *Spec, round int) error {
	c, err := continued(r, *spec, round)
	if err != nil {
		return err
	}
	if spec.Threads == spec.Plan.Threads && c.plan.Threads > 0 {
		spec.Threads = c.plan.Threads
	}
	spec.Began = r.AllStages()[0].Setting.Workers
	spec.Stage, spec.Plan, spec.Job.Training = &c.stage, scheduler.ContinuePlan(c.plan, c.stage), c.job.Training
	if !c.stage.Decision.Changed {
		spec.Decisions = ahead(r, round)
	}
	return nil
}

// ahead returns the decisions about the rounds from one on that still hold, so that the job goes the same way again.
// A remedy that had changed the job does so again before it is needed, and ends earlier decisions about later rounds.
func ahead(r disdel.Record, round int) []disdel.Decision {
	by := map[int]disdel.Decision{}
	for _, d := range r.Decisions {
		if d.Boundary == disdel.BoundaryStep {
			continue // its round is over, or starts again
		}
		if d.Boundary != disdel.BoundaryFailure {
			by[d.Round] = d
			continue
		}
		for later := range by {
			if later > d.Round {
				delete(by, later)
			}
		}
		if d.Round > round {
			d.Boundary = disdel.BoundaryEpoch
			by[d.Round] = d
		}
	}
	var out []disdel.Decision
	for _, n := range slices.Sorted(maps.Keys(by)) {
		if n >= round {
			out = append(out, by[n])
		}
	}
	return out
}

// StartOver starts a job again that never reached a checkpoint, in the way that its record shows.
func StartOver(r disdel.Record, spec *Spec) error {
	err := goOn(r, spec, 0)
	if err == nil {
		spec.Kept = keptWork(r, spec, 0)
	}
	return err
}

// ContinueFrom continues a job from a checkpoint of its record: with the finished rounds, and the best of them if its
// weights exist. Those of a round after the checkpoint do not count, since that round is repeated, and may differ.
func ContinueFrom(r disdel.Record, spec *Spec, c disdel.Checkpoint) error {
	if err := goOn(r, spec, c.Round); err != nil {
		return err
	}
	spec.From, spec.Kept = &c, keptWork(r, spec, c.Round)
	last := c.Round - 1
	for _, round := range r.Rounds {
		if round.Round < c.Round {
			spec.Done = append(spec.Done, round)
		}
	}
	over := c.Round >= spec.Plan.Rounds
	if over {
		spec.Stopped = r.Stopped
		last = trainedLast(r)
	}
	if n := len(spec.Done); n == 0 || spec.Done[n-1].Round < last {
		if round, ok := rebuilt(r, last); ok {
			spec.Done = append(spec.Done, round)
		}
	}
	if r.Best != nil && r.Best.Round < c.Round {
		spec.Best = r.Best
	}
	return nil
}

// trainedLast is the newest round in which train actions have ended.
func trainedLast(r disdel.Record) (round int) {
	for _, a := range r.Activations {
		if a.Task == disdel.TaskTrain {
			round = max(round, a.Round)
		}
	}
	return round
}

// rebuilt restores a round that the controller did not live to record, from its train actions. ok is false if not all
// of them are known.
func rebuilt(r disdel.Record, round int) (out disdel.Round, ok bool) {
	losses := map[int]float64{}
	plan := r.Plan
	for _, a := range r.Activations {
		if a.Task == disdel.TaskTrain && a.Round == round && a.Loss != nil {
			losses[a.Member], plan = *a.Loss, r.PlanOf(&a.Invocation)
		}
	}
	if len(losses) == 0 || len(losses) != plan.Replicas() || len(plan.Shards) < plan.Workers {
		return out, false
	}
	var sum, rows float64
	for w := range plan.Workers {
		if !plan.KnowsLoss(w) {
			continue
		}
		n := float64(plan.Shards[w].Len())
		sum, rows = sum+losses[w]*n, rows+n
	}
	return disdel.Round{Round: round, TrainLoss: sum / max(rows, 1)}, true
}

// keptFor is how long the store keeps an unfinished round.
const keptFor = 24 * time.Hour

// digest identifies the work of a round's workers: a later run of the job can use states and updates of the round if
// it is the same. Limits, threads and places may differ without changing the bits.
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
		return "" // equals nothing
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// unfinishedRound describes the current round, nil if it has not started. A later run can continue with what its
// workers stored and delivered if the newest checkpoint is the round's start and the store outlives the job.
func (m *Manager) unfinishedRound() *disdel.Halfway {
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

// resumed accounts for what earlier runs spent: on whole rounds, of so many steps of all workers together, and on the
// round in which a budget stopped the job. there says that the store still has the work of that round, so that it
// continues. The sum is no bound of a round's cost, because it includes failed attempts.
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

// newestCheckpoint is the round that a resume would start with.
func (m *Manager) newestCheckpoint() int {
	if m.saved == nil {
		return 0
	}
	return m.saved.Round
}

// repeatedBy says what a resume of a job that stops here repeats. It is "" if nothing, or if that is known only once
// the round is kept.
func (m *Manager) repeatedBy(h *disdel.Halfway) string {
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

// keptWork is what the store has of a round of a job's record if the job continues with the same work, else nil.
func keptWork(r disdel.Record, spec *Spec, round int) *disdel.Halfway {
	h := r.Halfway
	if h == nil || h.Mark == "" || h.Round != round || h.Work == "" || h.Work != spec.digest(round) {
		return nil
	}
	return h
}

// keepUnfinished keeps the round in which a budget stopped the job in the store, and tells whether it did. The
// failure says which.
func (r *run) keepUnfinished(ctx context.Context) bool {
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
	err := r.c.cfg.Store.Keep(ctx, r.spec.ID, mark)
	if err != nil {
		r.log.WithError(err).Warn("the round that the job stopped in is not kept: a resume trains it anew")
		r.addToFailure(trainedAnew(h))
		return false
	}
	h.Mark, h.Until = mark, now.Add(keptFor)
	r.addToFailure(fmt.Sprintf("; what was done of round %d is kept for a day, and a resume goes on with it", h.Round+1))
	return true
}

// addToFailure adds text to the job's failure.
func (r *run) addToFailure(text string) {
	if f := r.rec.Failure; f != nil {
		shown := *f
		shown.Msg += text
		r.rec.Failure = &shown
	}
}
