package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/scheduler"
)

// saveTimeout bounds the last save of a record after the job's own context has ended.
const saveTimeout = 10 * time.Second

// Run runs a resolved and planned job to its end and returns its record, which is saved. A job that failed or was
// cancelled is no error of Run: the record says so. Errors are those of the history store (Unavailable) and of a
// package that could not be created.
//
// Canceling ctx cancels the job: its actions are asked to stop, and the record says canceled with context.Cause.
func (c *Controller) Run(ctx context.Context, spec Spec, data disdel.DataInfo) (*disdel.Record, error) {
	return c.run(ctx, spec, &disdel.Record{
		APIVersion: disdel.APIVersion, ID: spec.ID, Status: disdel.StatusRunning, Created: c.cfg.Now(),
		Job: spec.Job, Data: data, Plan: spec.Plan, Origin: spec.Origin, Stages: []disdel.Stage{spec.begins()},
	})
}

// Resume takes up a job again that ended without success, or whose controller died, where spec.From says. rec is its
// record.
func (c *Controller) Resume(ctx context.Context, spec Spec, rec disdel.Record) (*disdel.Record, error) {
	rec.Stages = rec.Staged() // of before its plan and its job become others
	spec.Before = len(rec.Stages)
	rec.Status, rec.Failure, rec.Stopped, rec.Ended = disdel.StatusRunning, nil, "", time.Time{}
	asked := rec.Job.Distribution.Workers // not as many as there were
	rec.Job = spec.Job
	rec.Job.Distribution.Workers = asked
	if spec.Origin != nil {
		rec.Origin = spec.Origin
	}
	rec.Rounds, rec.Resumes, rec.Checkpoint, rec.Plan = spec.Done, spec.Resumes, spec.From, spec.Plan
	rec.Stages = append(slices.Clip(rec.Stages), spec.begins())
	rec.Best, rec.Unevaluated, rec.Learned, rec.Warnings = spec.Best, nil, nil, nil
	return c.run(ctx, spec, &rec)
}

func (c *Controller) run(ctx context.Context, spec Spec, rec *disdel.Record) (*disdel.Record, error) {
	r := &run{
		c: c, spec: spec, log: c.cfg.Log.WithField("job", spec.ID), events: make(chan Event), rec: rec,
		manager: NewManager(spec), before: rec.Phases,
		cost: estimator.Bill{
			Before:      cmp.Or(rec.CostGBs, estimator.Cost(rec.Activations)),
			Evaluations: rec.EvaluationGBs,
		},
		prepared: map[disdel.ActionName]disdel.Limits{}, remade: map[disdel.ActionName]time.Time{},
		seen:     map[disdel.Slot]*watched{},
		progress: make(chan []disdel.Progress),
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

// run is one job in flight. Only the loop's goroutine touches it; invocations report through events.
type run struct {
	c       *Controller
	spec    Spec
	log     logrus.FieldLogger
	manager *Manager
	rec     *disdel.Record
	events  chan Event
	flying  sync.WaitGroup
	open    int // invocations that have not reported yet
	saver   *saver
	delays  context.Context // ends with the loop: what waits for its turn is not begun any more
	unalarm context.CancelFunc
	ledger  ledger
	cost    estimator.Bill
	warned  bool            // of a checkpoint that could not be written
	final   disdel.ModelRef // what the action that wrote the final weights said of them
	before  disdel.Phases   // of the runs of this job before this one

	mu       sync.Mutex
	prepared map[disdel.ActionName]disdel.Limits // guarded by mu
	remade   map[disdel.ActionName]time.Time     // guarded by mu: when an action that was gone was created again

	progress   chan []disdel.Progress
	seen       map[disdel.Slot]*watched
	silent     outages
	served     bool // an activation of this run has ended by itself
	began      time.Time
	roundStart time.Time
	phaseStart map[disdel.Task]time.Time
	phaseOpen  map[disdel.Task]int
}

func (r *run) execute(ctx context.Context) {
	r.phaseStart, r.phaseOpen = map[disdel.Task]time.Time{}, map[disdel.Task]int{}
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	delays, noMore := context.WithCancel(work)
	defer noMore()
	r.delays, r.unalarm = delays, func() {}
	r.began = r.c.cfg.Now()
	first := Event{Kind: EventStarted, Spent: r.cost.Spent(r.began)}
	if err := r.ready(ctx); err != nil {
		first = refused(disdel.Invocation{}, err)
	}
	for _, a := range r.spec.Plan.Actions {
		r.prepared[a.Name] = a.Limits
	}
	r.rec.Phases.Prepare += disdel.Millis(r.c.cfg.Now().Sub(r.began))
	r.roundStart = r.c.cfg.Now()
	if !r.obey(work, r.manager.Step(first)) {
		r.loop(ctx, work)
	}
	noMore()
	r.windDown(ctx, stop)
	if r.silent.now != nil {
		over := *r.silent.now
		over.Until = r.c.cfg.Now()
		r.outageOver(over)
	}
	r.rec.Phases.Total = r.before.Total + disdel.Millis(r.c.cfg.Now().Sub(r.began))
}

// ready makes the job's place on the platform. Of a job that is taken up again the store may be ahead of the
// checkpoint, and have the rounds in between taken for done: it forgets all of it.
func (r *run) ready(ctx context.Context) error {
	if r.spec.Resumes > 0 {
		if _, err := r.c.cfg.Board.Sweep(ctx, r.spec.ID); err != nil {
			return err
		}
	}
	return r.c.cfg.Invoker.Prepare(ctx, scheduler.Package(r.spec.ID), r.spec.Plan.Actions)
}

// loop waits for what happens next and carries out what the manager makes of it, until the job has ended.
func (r *run) loop(ctx, work context.Context) {
	tick := time.NewTicker(r.c.cfg.Tick)
	defer tick.Stop()
	deadline := r.deadline()
	defer deadline.Stop()
	defer r.lookOn(ctx)()
	for ended := false; !ended; {
		select {
		case e := <-r.events:
			e.At = disdel.Millis(r.c.cfg.Now().Sub(r.began))
			r.keep(&e)
			ended = r.obey(work, r.manager.Step(e))
			// a resume goes on from what is saved
			r.rec.Phases.Total = r.before.Total + disdel.Millis(r.c.cfg.Now().Sub(r.began))
			r.saver.save(r.rec)
		case <-tick.C:
			r.lookAtPlatform()
			r.lookAtQuiet()
		case p := <-r.progress:
			r.watch(p)
			r.observe(Notice{Progress: p})
		case <-deadline.C:
			ended = r.obey(work, r.manager.Step(Event{Kind: EventDeadline, Err: r.pastDeadline()}))
		case <-ctx.Done():
			ended = r.obey(work, r.manager.Step(Event{Kind: EventCanceled, Err: canceled(ctx)}))
		}
	}
}

func (r *run) deadline() *time.Timer {
	d := time.Duration(r.spec.Job.Reliability.Deadline)
	if d <= 0 {
		t := time.NewTimer(time.Hour)
		t.Stop()
		return t
	}
	return time.NewTimer(d)
}

func (r *run) pastDeadline() *disdel.Error {
	if o, down := r.c.cfg.Invoker.Outage(); down {
		return r.goneFor(o)
	}
	return &disdel.Error{
		Kind: disdel.Timeout, Code: disdel.CodeDeadline, Op: "run job", Job: r.spec.ID,
		Msg:  "the job's deadline of " + r.spec.Job.Reliability.Deadline.String() + " has passed",
		Hint: "raise reliability.deadline, or lower training.epochs",
	}
}

func canceled(ctx context.Context) *disdel.Error {
	return &disdel.Error{Kind: disdel.Canceled, Op: "run job", Msg: "the job was stopped", Err: context.Cause(ctx)}
}

// obey carries out orders and tells whether the job has ended.
func (r *run) obey(work context.Context, orders []Order) (ended bool) {
	for _, o := range orders {
		switch o.Kind {
		case OrderInvoke:
			r.invoke(work, o.Invocation, o.After)
		case OrderAlarm:
			r.alarm(o)
		case OrderAdjust:
			r.rec.Adjustments = append(r.rec.Adjustments, o.Adjustment)
			r.observe(Notice{Adjusted: &o.Adjustment})
		case OrderDecision:
			r.rec.Decisions = append(r.rec.Decisions, o.Decision)
		case OrderStage:
			r.stageBegins(o)
		case OrderCheckpoint:
			r.rec.Checkpoint = &o.Checkpoint
			r.keepRound(o.Round)
		case OrderForget, OrderSweep:
			r.forget(work, o)
		case OrderRound:
			r.roundOver(o.Round)
		case OrderBest:
			r.rec.Best = &o.Best
		case OrderFinish:
			r.rec.Status, r.rec.Failure, r.rec.Stopped, r.rec.Unevaluated = o.Status, o.Failure, o.Stopped, o.Blind
			ended = true
		}
	}
	return ended
}

// stageBegins keeps a stage, before anything runs in it: what a job goes on with after its controller died must be
// known then.
func (r *run) stageBegins(o Order) {
	r.rec.Plan, r.rec.Stages = o.Plan, append(r.rec.Stages, o.Stage)
	log := r.log.WithFields(logrus.Fields{"stage": o.Number, "round": o.Stage.First, "workers": o.Stage.Workers})
	log.WithField("reasons", strings.Join(o.Stage.Decision.Reasons, "; ")).Info("another stage begins: " +
		o.Stage.Decision.Why)
	r.saver.now(r.rec)
	r.observe(Notice{Stage: &o.Stage})
}

// forget has the store forget a round, or all of the job. The manager finds out where that fails: what is left is
// delivered again, and is of as little use as before.
func (r *run) forget(work context.Context, o Order) {
	ctx, stop := context.WithTimeout(work, saveTimeout)
	defer stop()
	err := error(nil)
	if o.Kind == OrderForget {
		err = r.c.cfg.Board.Forget(ctx, r.spec.ID, o.Round.Round)
	} else {
		_, err = r.c.cfg.Board.Sweep(ctx, r.spec.ID)
	}
	if err != nil {
		r.log.WithError(err).Warn("what a round had delivered may stand in the way of its next try")
	}
}

func (r *run) invoke(work context.Context, inv disdel.Invocation, after time.Duration) {
	r.open++
	if r.phaseOpen[inv.Task]++; r.phaseOpen[inv.Task] == 1 {
		r.phaseStart[inv.Task] = r.c.cfg.Now()
	}
	r.invoked(inv, r.c.cfg.Now().Add(after))
	r.cost.Invoked(inv, r.c.cfg.Now().Add(after))
	r.flying.Go(func() {
		e := r.attend(work, inv, after)
		r.events <- e
	})
	r.observe(Notice{Invoked: &inv})
}

// alarm has the manager told when time has passed, unless the job ends or another alarm is set before.
func (r *run) alarm(o Order) {
	r.unalarm()
	ctx, stop := context.WithCancel(r.delays)
	r.unalarm = stop
	r.flying.Go(func() {
		defer stop()
		if !wait(ctx, o.After) {
			return
		}
		select {
		case r.events <- Event{Kind: EventAlarm, Alarm: o.Alarm}:
		case <-ctx.Done():
		}
	})
}

// wait returns false if ctx ends before d has passed.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attend makes one invocation and waits for its end.
func (r *run) attend(work context.Context, inv disdel.Invocation, after time.Duration) Event {
	if !wait(r.delays, after) {
		return refused(inv, context.Canceled)
	}
	if err := r.prepare(work, inv); err != nil {
		return refused(inv, err)
	}
	id, err := r.c.cfg.Invoker.Invoke(work, inv)
	if disdel.KindOf(err) == disdel.NotFound { // the platform was started again without what it had
		if err = r.prepareAnew(work, inv); err == nil {
			id, err = r.c.cfg.Invoker.Invoke(work, inv)
		}
	}
	if err != nil {
		return refused(inv, err)
	}
	r.log.WithFields(logrus.Fields{"action": inv.Action, "activation": id, "round": inv.Round}).Debug("invoked")
	a, err := r.c.cfg.Invoker.Wait(work, inv, id)
	if err != nil {
		e := refused(inv, err)
		e.Activation.ID = id
		return e
	}
	return Event{Kind: EventEnded, Activation: a}
}

// prepare creates the action of an invocation whose limits no action has yet.
func (r *run) prepare(ctx context.Context, inv disdel.Invocation) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.prepared[inv.Action] == inv.Limits {
		return nil
	}
	return r.make(ctx, inv)
}

// make creates an action; the caller holds the lock.
func (r *run) make(ctx context.Context, inv disdel.Invocation) error {
	err := r.c.cfg.Invoker.Prepare(ctx, scheduler.Package(r.spec.ID),
		[]disdel.ActionPlan{{Task: inv.Task, Name: inv.Action, Limits: inv.Limits}})
	if err == nil {
		r.prepared[inv.Action] = inv.Limits
	}
	return err
}

// remadeFor is for how long an action that was created again is taken to be there: all its invocations find out
// together.
const remadeFor = 5 * time.Second

// prepareAnew creates an action that is gone.
func (r *run) prepareAnew(ctx context.Context, inv disdel.Invocation) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.remade[inv.Action]; ok && r.c.cfg.Now().Sub(at) < remadeFor {
		return nil
	}
	r.remade[inv.Action] = r.c.cfg.Now()
	return r.make(ctx, inv)
}

func refused(inv disdel.Invocation, err error) Event {
	why := disdel.AsError(err)
	outcome := scheduler.Refused(why)
	if errors.Is(err, context.Canceled) {
		outcome = disdel.OutcomeCanceled
	}
	return Event{Kind: EventRefused, Activation: disdel.Activation{Invocation: inv, Outcome: outcome, Failure: why}}
}

// keep adds an ended invocation to the record.
func (r *run) keep(e *Event) {
	if e.Kind == EventAlarm {
		e.Spent, e.Rate = r.cost.Spent(r.c.cfg.Now()), r.cost.Rate()
		return
	}
	a := e.Activation
	a.Beats = r.beats(a)
	e.Activation = a
	r.open--
	r.served = r.served || e.Kind == EventEnded && a.Outcome != disdel.OutcomeLost
	r.closed(a.Invocation)
	if r.phaseOpen[a.Task]--; r.phaseOpen[a.Task] == 0 {
		r.addPhase(a.Task, r.c.cfg.Now().Sub(r.phaseStart[a.Task]))
	}
	r.wrote(a)
	r.learned(&a)
	e.Rate = r.cost.Rate()
	r.cost.Ended(a, r.c.cfg.Now())
	e.Spent = r.cost.Spent(r.c.cfg.Now())
	r.rec.CostGBs, r.rec.EvaluationGBs = r.cost.Total(), r.cost.Evaluations
	r.ledger.add(r.rec, a)
	r.observe(Notice{Ended: &a})
}

// learned keeps the loss that a train action came to, what is left of a round whose controller dies before it is kept,
// and how many processors its container found, which the next job there goes by.
func (r *run) learned(a *disdel.Activation) {
	var res disdel.TrainResult
	if a.Task == disdel.TaskTrain && a.Outcome == disdel.OutcomeSuccess && json.Unmarshal(a.Result, &res) == nil {
		a.Loss = &res.Loss
		r.rec.Plan.Platform.Found = max(r.rec.Plan.Platform.Found, res.Usage.Found)
	}
}

// wrote keeps what the action that wrote the final weights said of them.
func (r *run) wrote(a disdel.Activation) {
	var res disdel.AggregateResult
	if (a.Task != disdel.TaskAggregate && a.Task != disdel.TaskTrain) || json.Unmarshal(a.Result, &res) != nil {
		return
	}
	if a.Task == disdel.TaskAggregate && res.Checksum != "" {
		r.final.Checksum, r.final.Size = res.Checksum, res.Size
	}
	if res.Unsaved != nil && !r.warned { // both results call it so
		r.warned = true
		r.log.WithError(res.Unsaved).WithField("round",
			a.Round).Warn("a checkpoint could not be written: the job goes on, and a resume would begin at an earlier round")
	}
}

func (r *run) addPhase(task disdel.Task, d time.Duration) {
	p := map[disdel.Task]*disdel.Millis{
		disdel.TaskTrain: &r.rec.Phases.Train, disdel.TaskAggregate: &r.rec.Phases.Aggregate,
		disdel.TaskEvaluate: &r.rec.Phases.Evaluate,
	}[task]
	*p += disdel.Millis(d)
}

func (r *run) roundOver(round disdel.Round) {
	now := r.c.cfg.Now()
	round.Duration = disdel.Millis(now.Sub(r.roundStart))
	r.roundStart = now
	r.keepRound(round)
	if round.Accuracy != nil {
		r.rec.Accuracy, r.rec.Loss = *round.Accuracy, *round.Loss
	}
	if f := estimator.Remaining(r.rec.Plan, r.rec.Rounds, r.rec.Activations, r.sinceFirst()); f != nil {
		r.observe(Notice{Forecast: f})
	}
	r.observe(Notice{Round: &round})
}

// keepRound puts a round in place of any from that one on: the job may have gone back.
func (r *run) keepRound(round disdel.Round) {
	for n := len(r.rec.Rounds); n > 0 && r.rec.Rounds[n-1].Round >= round.Round; n-- {
		r.rec.Rounds = slices.Clone(r.rec.Rounds[:n-1])
	}
	r.rec.Rounds = append(r.rec.Rounds, round)
}

// sinceFirst is the time that the rounds have taken so far, the one that is under way too. What lay between two runs of
// the job does not count.
func (r *run) sinceFirst() disdel.Millis {
	d := disdel.Millis(r.c.cfg.Now().Sub(r.roundStart))
	for _, round := range r.rec.Rounds {
		d += round.Duration
	}
	return d
}

// lookOn reads how far the actions are, again and again until the stop that it returns is called, beside the loop,
// which never waits for the store. One that does not answer costs the onlooker the picture, not the job.
func (r *run) lookOn(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	r.flying.Go(func() {
		for wait(ctx, r.c.cfg.Tick) {
			p, err := r.look(ctx)
			if err != nil {
				r.log.WithError(err).Debug("no progress to be had")
				continue
			}
			select {
			case r.progress <- p:
			case <-ctx.Done():
			}
		}
	})
	return stop
}

func (r *run) look(ctx context.Context) ([]disdel.Progress, error) {
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	return r.c.cfg.Board.Progress(ctx, r.spec.ID)
}

// windDown lets what still runs come to an end: at once after success, after a cancel and a grace period otherwise.
func (r *run) windDown(ctx context.Context, stop context.CancelCauseFunc) {
	if r.open > 0 {
		quiet, done := context.WithTimeout(context.WithoutCancel(ctx), r.c.cfg.Grace)
		defer done()
		if err := r.c.cfg.Board.Cancel(quiet, r.spec.ID); err != nil {
			r.log.WithError(err).Warn("running actions could not be asked to stop")
		}
		for r.open > 0 {
			select {
			case e := <-r.events:
				r.keep(&e)
			case <-quiet.Done():
				stop(context.Canceled)
				e := <-r.events
				r.keep(&e)
			}
		}
	}
	r.flying.Wait()
}
