package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/internal/advice"
	"github.com/disdel/disdel/scheduler"
)

// saveTimeout limits the last save of a record after the job's own context has ended.
const saveTimeout = 10 * time.Second

// Run runs a resolved and planned job to its end and returns its record, which is saved. A job that failed or was
// cancelled is no error of Run: the record says so. Errors are those of the history store (Unavailable) and of a
// package that could not be created.
//
// Canceling ctx cancels the job: its actions are asked to stop, and the record says canceled with context.Cause.
func (c *Controller) Run(ctx context.Context, spec Spec, data disdel.DataInfo) (*disdel.Record, error) {
	return c.run(ctx, spec, &disdel.Record{
		APIVersion: disdel.APIVersion, ID: spec.ID, Status: disdel.StatusRunning, Created: c.cfg.Now(),
		Job: spec.Job, Data: data, Plan: spec.Plan, Origin: spec.Origin, Continued: spec.Continued,
		Stages: []disdel.Stage{spec.begins()},
	})
}

// Resume continues a job that ended without success, or whose controller died, from spec.From. rec is its record.
func (c *Controller) Resume(ctx context.Context, spec Spec, rec disdel.Record) (*disdel.Record, error) {
	rec.Stages = rec.AllStages() // before its plan and its job change
	spec.Before = len(rec.Stages)
	rec.Status, rec.Failure, rec.Stopped, rec.Ended = disdel.StatusRunning, nil, "", time.Time{}
	asked := rec.Job.Distribution.Workers // as requested
	rec.Job = spec.Job
	rec.Job.Distribution.Workers = asked
	if spec.Origin != nil {
		rec.Origin = spec.Origin
	}
	rec.Rounds, rec.Resumes, rec.Checkpoint, rec.Plan = spec.Done, spec.Resumes, spec.From, spec.Plan
	rec.Stages = append(slices.Clip(rec.Stages), spec.begins())
	rec.Best, rec.Unevaluated, rec.Learned, rec.Warnings = spec.Best, nil, nil, nil
	rec.Halfway = nil
	return c.run(ctx, spec, &rec)
}

func (c *Controller) run(ctx context.Context, spec Spec, rec *disdel.Record) (*disdel.Record, error) {
	spec.Gangs, spec.Keeps = c.cfg.Grant != nil, c.cfg.Keeps
	r := &run{
		c: c, spec: spec, log: c.cfg.Log.WithField("job", spec.ID), events: make(chan Event), rec: rec,
		manager: NewManager(spec), previousPhases: rec.Phases,
		cost: estimator.Bill{
			Before:      cmp.Or(rec.CostGBs, estimator.Cost(rec.Activations)),
			Evaluations: rec.EvaluationGBs, Used: rec.MeteredCost(),
		},
		prepared:    map[disdel.ActionName]*preparedAction{},
		invocations: map[disdel.Slot]*runningInvocation{},
		progress:    make(chan []disdel.Progress), accepted: make(chan disdel.Invocation),
	}
	// A job is acknowledged only once its record is on disk.
	if err := c.cfg.Recorder.Save(ctx, r.rec); err != nil {
		return nil, err
	}
	r.observe(Notice{Planned: r.rec})
	r.saver = newSaver(c.cfg.Recorder, r.log)
	r.execute(ctx)
	r.saver.close()
	return r.rec, r.close(ctx)
}

// run is one running job. Only the loop's goroutine uses it; invocations report through events.
type run struct {
	c              *Controller
	spec           Spec
	log            logrus.FieldLogger
	manager        *Manager
	rec            *disdel.Record
	events         chan Event
	running        sync.WaitGroup
	pending        int // invocations that have not reported yet
	saver          *saver
	delays         context.Context // ends with the loop: delayed work then does not start
	stopAlarm      context.CancelFunc
	builder        recordBuilder
	cost           estimator.Bill
	final          disdel.ModelRef // the final weights, by the action that wrote them
	previousPhases disdel.Phases   // of earlier runs of this job
	notGranted     string          // in the last notice

	mu       sync.Mutex
	prepared map[disdel.ActionName]*preparedAction // guarded by mu

	progress    chan []disdel.Progress
	seen        time.Time // last read of progress
	quotaTold   time.Time // the end of the minute of the last quota notice
	accepted    chan disdel.Invocation
	invocations map[disdel.Slot]*runningInvocation
	outages     outages
	store       *storeChecks  // failed ones; nil: the store answers
	served      bool          // an activation of this run has ended by itself
	aggregated  time.Duration // the longest aggregation of this run that succeeded
	began       time.Time
	roundStart  time.Time
	phaseStart  map[disdel.Task]time.Time
	phaseOpen   map[disdel.Task]int
}

func (r *run) execute(ctx context.Context) {
	r.phaseStart, r.phaseOpen = map[disdel.Task]time.Time{}, map[disdel.Task]int{}
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	delays, noMore := context.WithCancel(work)
	defer noMore()
	r.delays, r.stopAlarm = delays, func() {}
	r.began = r.c.cfg.Now()
	err := r.ready(ctx)
	first := Event(StartedEvent{Moment: Moment{Spent: r.cost.Used}, Halfway: r.spec.Kept != nil})
	if err != nil {
		first = refused(disdel.Invocation{}, err)
	}
	for _, a := range r.spec.Plan.Actions {
		r.prepared[a.Name] = &preparedAction{limits: a.Limits}
	}
	r.rec.Phases.Prepare += disdel.Millis(r.c.cfg.Now().Sub(r.began))
	r.roundStart = r.c.cfg.Now()
	if !r.carryOut(work, r.manager.Step(first)) {
		r.loop(ctx, work)
	}
	noMore()
	r.waitForRunning(ctx, stop)
	if r.outages.now != nil {
		over := *r.outages.now
		over.Until = r.c.cfg.Now()
		r.outageOver(over)
	}
	r.rec.Phases.Total = r.total()
}

// total is the time that the runs of the job have taken so far.
func (r *run) total() disdel.Millis {
	return r.previousPhases.Total + disdel.Millis(r.c.cfg.Now().Sub(r.began))
}

// ready creates the job's package. The Redis store of a resumed job may have rounds that are later than the checkpoint.
// ready therefore deletes the store's data. It keeps the data of the round in which the job continues.
func (r *run) ready(ctx context.Context) error {
	if r.spec.Resumes > 0 {
		there, err := false, error(nil)
		if r.spec.Kept != nil {
			there, err = r.c.cfg.Store.TakeUp(ctx, r.spec.ID, r.spec.Kept.Mark)
		}
		if r.spec.Kept != nil && !there {
			r.log.WithField("round", r.spec.Kept.Round).Warn("the store has lost what was kept of the round: it is trained anew")
			r.spec.Kept = nil
		}
		if err == nil && !there {
			_, err = r.c.cfg.Store.Sweep(ctx, r.spec.ID)
		}
		if err != nil {
			return err
		}
	}
	return r.c.cfg.Invoker.Prepare(ctx, scheduler.Package(r.spec.ID), r.spec.Plan.Actions)
}

// loop waits for events and carries out the manager's orders until the job has ended.
func (r *run) loop(ctx, work context.Context) {
	tick := time.NewTicker(r.c.cfg.Tick)
	defer tick.Stop()
	deadline := r.deadline()
	defer deadline.Stop()
	defer r.pollProgress(ctx)()
	store, stop := r.watchStore(ctx)
	defer stop()
	for ended := false; !ended; {
		select {
		case e := <-r.events:
			ended = r.carryOut(work, r.manager.Step(r.addToRecord(e)))
			// A resume continues from what is saved. close saves the end, once the job has its model.
			if r.rec.Phases.Total = r.total(); !ended {
				r.saver.save(r.rec)
			}
		case <-tick.C:
			r.checkPlatform()
			r.checkSilence()
			r.checkQuota()
		case inv := <-r.accepted:
			r.noteAccepted(inv)
		case p := <-r.progress:
			r.watch(p)
			r.observe(Notice{Progress: p})
			ended = r.carryOut(work, r.manager.Step(StepsEvent{Progress: p}))
		case <-deadline.C:
			ended = r.carryOut(work, r.manager.Step(DeadlineEvent{Err: r.pastDeadline()}))
		case c := <-store:
			if gone := r.storeSeen(c); gone != nil {
				ended = r.carryOut(work, r.manager.Step(gone))
			}
		case <-ctx.Done():
			ended = r.carryOut(work, r.manager.Step(CanceledEvent{Err: canceled(ctx)}))
		}
	}
}

func (r *run) deadline() *time.Timer {
	d, _ := r.spec.Job.TimeLimit()
	if d <= 0 {
		t := time.NewTimer(time.Hour)
		t.Stop()
		return t
	}
	return time.NewTimer(time.Duration(d))
}

func (r *run) pastDeadline() *disdel.Error {
	if o, down := r.c.cfg.Invoker.Outage(); down {
		return r.goneFor(o)
	}
	d, field := r.spec.Job.TimeLimit()
	if r.storeIsAway() {
		return r.storeGone("the job's deadline of " + d.String() + " has passed")
	}
	return &disdel.Error{
		Kind: disdel.Timeout, Code: disdel.CodeDeadline, Op: "run job", Job: r.spec.ID,
		Msg:  "the job's deadline of " + d.String() + " has passed",
		Hint: "raise " + field + ", or lower training.epochs",
	}
}

func canceled(ctx context.Context) *disdel.Error {
	return &disdel.Error{Kind: disdel.Canceled, Op: "run job", Msg: "the job was stopped", Err: context.Cause(ctx)}
}

// carryOut carries out orders and tells whether the job has ended.
func (r *run) carryOut(work context.Context, orders []Order) (ended bool) {
	for _, o := range orders {
		switch o := o.(type) {
		case InvokeOrder:
			if r.checkpoints(o.Invocation) {
				r.saver.save(r.rec)
				r.saver.within(r.rec, saveAhead)
			}
			r.invoke(work, o.Invocation, o.After)
		case AlarmOrder:
			r.alarm(o)
		case AdjustOrder:
			r.rec.Adjustments = append(r.rec.Adjustments, o.Adjustment)
			r.observe(Notice{Adjusted: &o.Adjustment})
		case DecisionOrder:
			r.rec.Decisions = append(r.rec.Decisions, o.Decision)
			r.noteRefusal(o.Decision)
		case GrantOrder:
			r.requestGrant(o)
		case StageOrder:
			r.stageBegins(o)
		case CheckpointOrder:
			r.rec.Checkpoint = &o.Checkpoint
			r.keepRound(o.Round)
		case ForgetOrder:
			r.tellStore(work, func(ctx context.Context) error { return r.c.cfg.Store.Forget(ctx, r.spec.ID, o.Round) })
		case EndOrder:
			r.tellStore(work, func(ctx context.Context) error {
				return r.c.cfg.Store.EndMember(ctx, r.spec.ID, o.Round, o.Worker)
			})
		case LetGoOrder:
			r.tellStore(work, func(ctx context.Context) error {
				return r.c.cfg.Store.LetGo(ctx, r.spec.ID, o.Round, o.Worker)
			})
		case SweepOrder:
			r.tellStore(work, func(ctx context.Context) error { _, err := r.c.cfg.Store.Sweep(ctx, r.spec.ID); return err })
		case RoundOrder:
			r.finishRound(o.Round, o.ByClass)
		case BestOrder:
			o.Best.ByClass = r.named(o.Best.ByClass)
			r.rec.Best = &o.Best
		case FinishOrder:
			r.rec.Status, r.rec.Failure = o.Status, r.byStore(o.Failure)
			r.rec.Stopped, r.rec.Unevaluated = o.Stopped, o.Blind
			r.rec.Halfway = o.Halfway
			if o.Halfway == nil && o.Status != disdel.StatusSucceeded && len(r.invocations) == 0 {
				r.rec.Halfway = r.spec.Kept // nothing was invoked: it is unchanged
			}
			ended = true
		}
	}
	return ended
}

// saveAhead is how long an aggregation that writes a checkpoint waits for the history store.
const saveAhead = 2 * time.Second

// checkpoints tells whether an invocation writes a checkpoint. A resume that continues from it does not train its round
// again, so what the record tells of the round is saved before.
func (r *run) checkpoints(inv disdel.Invocation) bool {
	var req disdel.AggregateRequest
	return inv.Task == disdel.TaskAggregate && json.Unmarshal(inv.Params, &req) == nil && req.NextCheckpoint != ""
}

// stageBegins saves a stage before anything runs in it: a resume after the controller's death needs it.
func (r *run) stageBegins(o StageOrder) {
	r.rec.Plan, r.rec.Stages = o.Plan, append(r.rec.Stages, o.Stage)
	log := r.log.WithFields(logrus.Fields{"stage": o.Number, "round": o.Stage.First, "workers": o.Stage.Workers})
	log.WithField("reasons", strings.Join(o.Stage.Decision.Reasons, "; ")).Info("another stage begins: " +
		o.Stage.Decision.Why)
	r.saver.now(r.rec)
	r.observe(Notice{Stage: &o.Stage})
}

// requestGrant requests the containers of a stage from the admission.
func (r *run) requestGrant(o GrantOrder) {
	ctx := r.delays
	r.running.Go(func() {
		var e GrantedEvent
		refused, err := r.c.cfg.Grant(ctx, o)
		if e.Refused = refused; err != nil {
			e.Err = disdel.AsError(err)
		}
		select {
		case r.events <- e:
		case <-ctx.Done():
		}
	})
}

// noteRefusal reports what a job was not granted, once while it does not change.
func (r *run) noteRefusal(d disdel.Decision) {
	var text string
	if n := len(d.NotGranted); n > 0 {
		text = d.NotGranted[n-1].Text()
	}
	if text != "" && text != r.notGranted {
		r.observe(Notice{Refused: &d.NotGranted[len(d.NotGranted)-1]})
	}
	r.notGranted = text
}

// tellStore tells the store something about a round. If that fails, the manager notices: deleted work is delivered
// again and is refused again; a worker that was to leave stays.
func (r *run) tellStore(work context.Context, do func(context.Context) error) {
	ctx, stop := context.WithTimeout(work, saveTimeout)
	defer stop()
	if err := do(ctx); err != nil {
		r.log.WithError(err).Warn("the store was not told what is to be done about a round")
	}
}

// waitForRunning waits for running invocations after the job's end: they are asked to stop, and get a grace period.
func (r *run) waitForRunning(ctx context.Context, stop context.CancelCauseFunc) {
	if r.pending > 0 {
		quiet, done := context.WithTimeout(context.WithoutCancel(ctx), r.c.cfg.Grace)
		defer done()
		if r.storeIsGone() { // the store cannot pass the request on
			stop(r.rec.Failure)
		} else if err := r.c.cfg.Store.Cancel(quiet, r.spec.ID); err != nil {
			r.log.WithError(err).Warn("running actions could not be asked to stop")
		}
		for r.pending > 0 {
			select {
			case e := <-r.events:
				r.addToRecord(e)
			case <-quiet.Done():
				stop(context.Canceled)
				r.addToRecord(<-r.events)
			}
		}
	}
	r.running.Wait()
}

// addToRecord adds what has ended to the record, and returns the event with its time and the bill.
func (r *run) addToRecord(e Event) Event {
	switch e := e.(type) {
	case EndedEvent:
		r.served = r.served || e.Activation.Outcome != disdel.OutcomeLost
		e.Activation, e.Moment = r.ended(e.Activation)
		return e
	case RefusedEvent:
		e.Activation, e.Moment = r.ended(e.Activation)
		return e
	case AlarmEvent:
		e.Moment = r.now()
		return e
	case GrantedEvent:
		e.Moment = r.now()
		return e
	case StartedEvent, StepsEvent, CanceledEvent, DeadlineEvent, StoreGoneEvent: // the loop makes these itself
	}
	return e
}

func (r *run) now() Moment {
	return Moment{At: disdel.Millis(r.c.cfg.Now().Sub(r.began)), Spent: r.cost.Used}
}

// ended adds an ended invocation to the record, and returns it with its heartbeats.
func (r *run) ended(a disdel.Activation) (disdel.Activation, Moment) {
	now := r.now()
	a.Beats = r.takeBeats(a)
	explainStall(&a)
	out := a
	r.pending--
	r.stopWatching(a.Invocation)
	if r.phaseOpen[a.Task]--; r.phaseOpen[a.Task] == 0 {
		r.addPhase(a.Task, r.c.cfg.Now().Sub(r.phaseStart[a.Task]))
	}
	r.noteWeights(a)
	r.noteLearned(&a)
	if a.Task == disdel.TaskAggregate && a.Outcome == disdel.OutcomeSuccess {
		r.aggregated = max(r.aggregated, time.Duration(a.Duration))
	}
	r.cost.Add(a)
	now.Spent = r.cost.Used
	r.billed()
	r.builder.add(r.rec, a)
	r.observe(Notice{Ended: &a})
	return out, now
}

// explainStall changes the failure of an activation that stopped answering: it says so. The executor cannot say that,
// because it sees only the newest heartbeat.
func explainStall(a *disdel.Activation) {
	stall, stalled := a.Stalled()
	if !stalled || a.Failure == nil {
		return
	}
	failure := *a.Failure
	failure.Msg = fmt.Sprintf("it stopped answering: %s, and OpenWhisk ended it after its timeout of %v", stall.Text(),
		a.Limits.Timeout)
	failure.Hint = "look at the machine that it ran on, then submit the job as it is; a longer timeout is of no use"
	a.Failure = &failure
}

// billed updates the job's cost in the record.
func (r *run) billed() {
	r.rec.CostGBs, r.rec.EvaluationGBs, r.rec.UsedGBs = r.cost.Total(), r.cost.Evaluations, r.cost.Used
}

// noteLearned records the loss of a train action, for a round whose controller dies before it is saved, the
// processors of its container, for the next plan there, and the engine's kernels.
func (r *run) noteLearned(a *disdel.Activation) {
	var res disdel.TrainResult
	if a.Task == disdel.TaskTrain && a.Outcome == disdel.OutcomeSuccess && json.Unmarshal(a.Result, &res) == nil {
		if r.rec.Plan.KnowsLoss(a.Member) {
			a.Loss = &res.Loss
		}
		platform := &r.rec.Plan.Platform
		platform.Found = max(platform.Found, res.Usage.Found)
		platform.Kernels = addName(platform.Kernels, res.Usage.Kernels)
	}
}

// addName adds a name to a list of names separated by commas, unless it is there.
func addName(list, name string) string {
	switch {
	case name == "" || slices.Contains(strings.Split(list, ","), name):
		return list
	case list == "":
		return name
	default:
		return list + "," + name
	}
}

// noteWeights records what an aggregation said about the final weights, and logs the checkpoints that it could not
// remove.
func (r *run) noteWeights(a disdel.Activation) {
	var res disdel.AggregateResult
	if a.Task != disdel.TaskAggregate || json.Unmarshal(a.Result, &res) != nil {
		return
	}
	if res.Checksum != "" {
		r.final.Checksum, r.final.Size = res.Checksum, res.Size
	}
	if res.Unpruned != nil {
		r.log.WithError(res.Unpruned).WithField("round", a.Round).Warn("older checkpoints stay on the blob store")
	}
}

func (r *run) addPhase(task disdel.Task, d time.Duration) {
	p := map[disdel.Task]*disdel.Millis{
		disdel.TaskTrain: &r.rec.Phases.Train, disdel.TaskAggregate: &r.rec.Phases.Aggregate,
		disdel.TaskEvaluate: &r.rec.Phases.Evaluate,
	}[task]
	*p += disdel.Millis(d)
}

func (r *run) finishRound(round disdel.Round, byClass *disdel.ByClass) {
	now := r.c.cfg.Now()
	round.Duration = disdel.Millis(now.Sub(r.roundStart))
	r.roundStart = now
	r.keepRound(round)
	if round.Loss != nil {
		r.rec.Loss, r.rec.Scores, r.rec.ByClass = *round.Loss, round.Scores, r.named(byClass)
	}
	if round.Accuracy != nil {
		r.rec.Accuracy = *round.Accuracy
	}
	if f := estimator.Remaining(r.rec.Plan, r.rec.Rounds, r.rec.Activations, r.sinceFirst()); f != nil {
		f.Used = estimator.RemainingUse(r.rec, f) // a wait for the quota costs nothing
		r.withinQuota(f)
		f.Goal = estimator.RemainingGoal(r.rec, f, r.spec.Past)
		r.observe(Notice{Forecast: f})
	}
	r.observe(Notice{Round: &round})
}

// named adds the classes' names to the counts of an evaluation by class, if a record has room for them.
func (r *run) named(b *disdel.ByClass) *disdel.ByClass {
	if b == nil || len(b.Rows) != len(r.spec.ClassNames) || len(b.Rows) > disdel.MostConfused {
		return b
	}
	out := *b
	out.Names = r.spec.ClassNames
	return &out
}

// keepRound stores a round, and removes this and later ones first: the job may have gone back.
func (r *run) keepRound(round disdel.Round) {
	for n := len(r.rec.Rounds); n > 0 && r.rec.Rounds[n-1].Round >= round.Round; n-- {
		r.rec.Rounds = slices.Clone(r.rec.Rounds[:n-1])
	}
	r.rec.Rounds = append(r.rec.Rounds, round)
}

// sinceFirst is the time of the rounds so far, including the current one. The time between two runs of the job does
// not count.
func (r *run) sinceFirst() disdel.Millis {
	d := disdel.Millis(r.c.cfg.Now().Sub(r.roundStart))
	for _, round := range r.rec.Rounds {
		d += round.Duration
	}
	return d
}

// close removes what the job created on the platform and in the store, and saves its record, even if ctx has ended.
// Each step has its own time: the record is saved even if the platform does not answer.
func (r *run) close(ctx context.Context) error {
	r.bestEffort(ctx, "the job's package stays on the platform", func(ctx context.Context) error {
		err := r.c.cfg.Invoker.Remove(ctx, scheduler.Package(r.spec.ID))
		if disdel.KindOf(err) == disdel.NotFound {
			return nil
		}
		return err
	})
	if !r.keepUnfinished(ctx) && !r.storeIsGone() {
		r.bestEffort(ctx, "the job's updates stay in the store until they expire", func(ctx context.Context) error {
			_, err := r.c.cfg.Store.Sweep(ctx, r.spec.ID)
			return err
		})
	}
	r.rec.Ended = r.c.cfg.Now()
	r.billed()
	r.rec.Losses = estimator.LossesOf(r.rec.Activations)
	r.commitModel(ctx)
	r.advise()
	saving, stop := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer stop()
	if err := r.c.cfg.Recorder.Save(saving, r.rec); err != nil {
		return err
	}
	ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer stop()
	if err := DiscardCheckpoints(ctx, r.c.cfg.Models, r.rec); err != nil {
		r.log.WithError(err).Warn("the job's checkpoints stay on the blob store")
	}
	return nil
}

// DiscardCheckpoints deletes the checkpoints of a job whose saved record has its model. It keeps those of other jobs:
// they continue from them. A job whose model could not be evaluated needs its last one, too.
func DiscardCheckpoints(ctx context.Context, from interface {
	Discard(ctx context.Context, folder string) error
}, rec *disdel.Record,
) error {
	if rec.Status != disdel.StatusSucceeded || rec.Unevaluated != nil {
		return nil
	}
	return from.Discard(ctx, CheckpointFolder(rec.ID))
}

// advise adds advice that lets the job pass to its failure, as its report will show it.
func (r *run) advise() {
	f := r.rec.Failure
	if f == nil || f.Code == disdel.CodeOverBudget || f.Code == disdel.CodeUnkept || f.Code == disdel.CodeStoreGone {
		// the failure itself says what to do
		return
	}
	found := advice.ForPlanned(r.rec, r.spec.Planned)
	hint := found.Hint()
	if r.rec.Failure.Code == disdel.CodeUnreachable {
		hint = "once OpenWhisk answers again: disdel resume " + string(r.rec.ID)
	}
	if hint != "" {
		shown := *r.rec.Failure
		shown.Hint = hint
		if len(found.Sets) > 0 {
			shown.Changes = [][]string{found.Sets}
		}
		r.rec.Failure = &shown
	}
}

// bestEffort does something that may fail, and logs a warning then.
func (r *run) bestEffort(ctx context.Context, warning string, do func(context.Context) error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer stop()
	if err := do(ctx); err != nil {
		r.log.WithError(err).Warn(warning)
	}
}

// commitTimeout limits the copying of a model on the blob store.
const commitTimeout = 10 * saveTimeout

// commitModel makes the weights of a successful job a version of its model. If that fails, the job has failed.
func (r *run) commitModel(ctx context.Context) {
	if r.rec.Status != disdel.StatusSucceeded {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer stop()
	weights := r.final
	if b := r.rec.Best; b != nil {
		weights.Checksum, weights.Size = b.Checksum, b.Size
		r.rec.Accuracy, r.rec.Loss, r.rec.Scores, r.rec.ByClass = b.Accuracy, b.Loss, b.Scores, b.ByClass
	}
	r.rec.Learned, r.rec.Warnings = verdict(r.rec)
	weights.Name, weights.Path = r.spec.Job.Output.Model, r.spec.Output
	ref, err := r.c.cfg.Models.Commit(ctx, r.rec, r.spec.Network, weights)
	if err != nil {
		r.rec.Status, r.rec.Failure = disdel.StatusFailed, disdel.AsError(err)
		return
	}
	r.rec.Model = &ref
	if r.rec.Unevaluated == nil {
		r.rec.Checkpoint = nil // DiscardCheckpoints deletes it
	}
}
