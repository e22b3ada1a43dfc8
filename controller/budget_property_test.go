package controller

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// The test draws jobs with rounds, stages, legs, timeouts, durations, failures and workers of all sizes. It checks:
//   - A job spends more than its budget only by the time that an action took beyond its hold.
//   - A job that costs 80 % of its budget in all does not end for the budget.
//   - A job ends for its budget only if the next step costs more than is left. The step's true cost takes the fastest
//     earlier action of each slot.
//   - A job that ended goes on with the proposed budget. After a whole round like the others, that budget is enough.
func TestABudgetEndsAJobOnlyWhereItCannotPay(t *testing.T) {
	ended, passed, resumed, twice, rounds, steps := 0, 0, 0, 0, 0, 0
	for seed := range uint64(160) {
		w := newPurse(t, seed)
		for ; ; w = w.resumed() {
			w.run()
			w.check()
			if w.broke == nil {
				passed++
				break
			}
			ended++
			if w.unpaid.slot == (disdel.Slot{}) {
				rounds++
			} else {
				steps++
			}
			if w.m.state.number > 0 || w.spec.Resumes == 3 {
				break
			}
			resumed++
			if w.spec.Resumes > 0 {
				twice++
			}
		}
	}
	t.Logf("%d ended, %d of them before a round and %d before a step; %d passed; %d resumed, %d of them again",
		ended, rounds, steps, passed, resumed, twice)
	if rounds < 20 || steps < 20 || passed < 20 || resumed < 20 || twice < 8 {
		t.Errorf("%d jobs ended before a round, %d before a step, %d passed, %d were resumed, %d twice: too few",
			rounds, steps, passed, resumed, twice)
	}
}

// purse is a job with a budget, and a platform that runs its actions one event after another.
type purse struct {
	*testing.T
	lot     *rand.Rand
	seed    uint64
	script  []string // all orders
	spec    Spec
	m       *Manager
	now     time.Duration
	before  float64 // GB-s spent when this run of the job began
	spent   float64
	unknown float64 // GB-s that activations held beyond what was reserved, where nobody could know
	open    []running
	broke   *disdel.Error
	unpaid  step          // what the budget did not pay
	failed  *disdel.Error // any other
	rounds  int           // that ended

	start, fixed, step time.Duration
	slower             float64 // at most, of one leg
	crashes            float64 // share of activations
	freezes            float64 // share of activations whose container stands still
	closing            map[disdel.Slot]time.Duration
	did                map[place]time.Duration // of an action's work
	shareDone          bool                    // a resume finds what was done of a round
	steady             bool                    // every round is like the others
	startSeen, late    time.Duration           // longest
	least              map[disdel.Slot]float64 // how much slower than the work the fastest activation was; in the stage
	tooShort           map[disdel.Task]time.Duration
	stage              int
}

// running is an activation on its way.
type running struct {
	a        disdel.Activation
	end      time.Duration
	reserved float64
	slow     float64
	frozen   bool
	// what was known when it began: the longest start, and the most by which an activation passed its timeout
	start, late time.Duration
}

// growing is a policy that changes the workers once.
type growing struct{ round, workers int }

func (growing) Name() string    { return "growing" }
func (growing) Meaning() string { return "changes the workers once" }

func (g growing) Decide(in scheduler.Input) disdel.Decision {
	d := disdel.Decision{Next: in.Now}
	if n := len(in.Seen); n > 0 && in.Seen[n-1].Round+1 >= g.round {
		d.Next.Workers = g.workers
	}
	return d
}

func (w *purse) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.lot.Float64()*float64(high-low))
}

// oneOf draws one of some values.
func oneOf[T any](lot *rand.Rand, of ...T) T { return of[lot.IntN(len(of))] }

func newPurse(t *testing.T, seed uint64) *purse {
	w := &purse{
		T: t, lot: rand.New(rand.NewPCG(seed, 31)), seed: seed, did: map[place]time.Duration{},
		closing: map[disdel.Slot]time.Duration{}, least: map[disdel.Slot]float64{},
		tooShort: map[disdel.Task]time.Duration{},
	}
	w.start, w.fixed = w.between(0, 300*time.Millisecond), w.between(1e6, 80*time.Millisecond)
	w.step = w.between(1e6, 20e6)
	w.slower = oneOf(w.lot, 1, 1, 1.3, 3)
	w.crashes, w.freezes = oneOf(w.lot, 0, 0, 0.1, 0.3), oneOf(w.lot, 0, 0, 0, 0.02)
	longest := w.between(300*time.Millisecond, 20*time.Second)
	w.steady = w.slower == 1 && w.crashes == 0 && w.freezes == 0 && w.lot.IntN(2) == 0
	w.shareDone = w.lot.IntN(2) == 0
	w.spec = w.drawnSpec(longest)
	for level := 1; level < 4; level++ {
		for c := range 16 {
			w.closing[disdel.Slot{Task: disdel.TaskAggregate, Level: level, Member: c}] = w.between(1e6, longest/4)
		}
	}
	w.closing[disdel.Slot{Task: disdel.TaskEvaluate}] = w.between(1e6, longest/4)
	w.m = NewManager(w.spec)
	w.spec.Job.Resources.MaxCost = w.rest() * (0.1 + 2*w.lot.Float64())
	w.m = NewManager(w.spec)
	return w
}

// drawnSpec is a job whose epoch takes one worker so long.
func (w *purse) drawnSpec(longest time.Duration) Spec {
	workers, epochs := 1+w.lot.IntN(8), 1+w.lot.IntN(12)
	spec := runSpec(workers, epochs)
	spec.Job.Reliability.Retries = disdel.Retries{Limit: 1000, PerWorker: 1000}
	spec.Job.Distribution.Missing.Policy = disdel.MissingWait
	spec.Job.Reliability.CheckpointEvery = 1
	spec.Job.Training.ValidateEvery, spec.Plan.HeldOut = 1, []int{0, 10}[w.lot.IntN(2)]
	spec.Plan.Platform = disdel.PlatformLimits{MaxMemory: disdel.GB, MaxTimeout: disdel.Millis(1000 * time.Hour)}
	batches := max(1, int(longest/w.step))
	if w.lot.IntN(8) == 0 && w.freezes == 0 {
		spec.Job.Distribution.Exchange = &disdel.Exchange{}
	}
	every := 0
	if w.lot.IntN(3) == 0 && !w.steady {
		every = 1 + w.lot.IntN(batches)
		if most := 4; batches/every > most {
			every = batches / most
		}
	}
	fan := 2 + w.lot.IntN(3)
	divide := func(plan disdel.Plan, workers int) disdel.Plan {
		plan.Workers, plan.Parallel, plan.Shards = workers, workers, nil
		for m := range workers {
			plan.Shards = append(plan.Shards, disdel.RowRange{Start: m * batches * 10, End: (m+1)*batches*10 - m%3})
		}
		if plan.Batches = every; every > 0 {
			plan.Rounds = epochs * ((batches + every - 1) / every)
		}
		plan.Levels = scheduler.Tree(workers, fan)
		return plan
	}
	spec.Plan = divide(spec.Plan, workers)
	timeout := w.between(time.Second, 4*time.Second)
	if w.lot.IntN(3) == 0 {
		timeout = 5 * time.Minute
	}
	spec.Plan.Actions = nil
	for _, task := range []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate} {
		l := disdel.Limits{Memory: disdel.GB, Timeout: disdel.Millis(timeout)}
		if task != disdel.TaskTrain {
			l.Timeout = disdel.Millis(time.Minute)
		}
		spec.Plan.Actions = append(spec.Plan.Actions,
			disdel.ActionPlan{Task: task, Name: "p/" + disdel.ActionName(task), Limits: l})
	}
	if w.lot.IntN(3) == 0 && !w.steady && spec.Job.Distribution.Exchange == nil {
		plan := spec.Plan
		spec.Replan = func(j disdel.Job) (disdel.Plan, error) { return divide(plan, j.Distribution.Workers), nil }
		spec.Policy = growing{1 + w.lot.IntN(6), 1 + w.lot.IntN(8)}
	}
	return spec
}

// of is the whole work of a slot in a round.
func (w *purse) of(round int, s disdel.Slot) time.Duration {
	if s.Task != disdel.TaskTrain {
		return w.closing[s]
	}
	span, rows := w.m.spec.span(round), w.m.spec.Plan.Shards[s.Member].Len()
	batches := (rows + 9) / 10
	n := span.Epochs*batches - span.Batch
	if span.Batches > 0 {
		n = min(n, span.Batches)
	}
	return time.Duration(max(1, n)) * w.step
}

// slots are those of a round, without its evaluation.
func (w *purse) slots() (out []disdel.Slot) {
	for m := range w.m.spec.Plan.Workers {
		out = append(out, disdel.Slot{Task: disdel.TaskTrain, Member: m})
	}
	for _, l := range w.m.spec.Plan.Levels {
		for c := range l.Clusters {
			out = append(out, disdel.Slot{Task: disdel.TaskAggregate, Level: l.Height, Member: c})
		}
	}
	return out
}

// rest is what the job would still cost where nothing failed any more.
func (w *purse) rest() (gbs float64) {
	slots := w.slots()
	if w.spec.Plan.HeldOut > 0 {
		slots = append(slots, disdel.Slot{Task: disdel.TaskEvaluate})
	}
	for r := w.rounds; r < w.m.spec.Plan.Rounds; r++ {
		for _, s := range slots {
			if left := w.of(r, s) - w.did[place{r, s}]; left > 0 {
				gbs += (w.start + w.fixed + left).Seconds()
			}
		}
	}
	return gbs
}

// cost is what a step costs at least: each of its actions is as fast as the fastest one of its slot before, and its
// container starts as long as the one that took longest.
func (w *purse) cost(s step) (gbs float64) {
	slots := []disdel.Slot{s.slot}
	if s.slot == (disdel.Slot{}) {
		slots = w.slots()
	}
	for _, slot := range slots {
		work := w.of(w.rounds, slot) - w.did[place{w.rounds, slot}]
		switch {
		case s.slot == slot && slot.Task == disdel.TaskTrain: // one batch is a step
			work = w.step
		case work <= 0:
			continue
		}
		gbs += (w.startSeen + w.fixed + time.Duration(float64(work)*max(1, w.least[slot]))).Seconds()
	}
	if w.together(s) {
		gbs *= float64(len(w.m.barrier.outstanding()))
	}
	return gbs
}

func (w *purse) run() {
	w.before = w.spent
	w.obey(w.m.Step(StartedEvent{Moment: Moment{Spent: w.spent}, Halfway: w.spec.Kept != nil}))
	for w.broke == nil && len(w.open) > 0 {
		next := 0
		for i := range w.open {
			if w.open[i].end < w.open[next].end {
				next = i
			}
		}
		r := w.open[next]
		w.open = append(w.open[:next:next], w.open[next+1:]...)
		w.now = max(w.now, r.end)
		w.spent += r.a.HeldGBs()
		w.beyond(r)
		w.sees(r)
		w.obey(w.m.Step(EndedEvent{Activation: r.a, Moment: Moment{At: disdel.Millis(w.now), Spent: w.spent}}))
		if n := w.m.state.number; n != w.stage {
			w.stage = n
			clear(w.least)
			clear(w.tooShort)
		}
	}
}

// beyond counts what an activation held beyond what was reserved for it, and fails where that could be known.
func (w *purse) beyond(r running) {
	start, late := time.Duration(r.a.InitTime), time.Duration(r.a.Duration-r.a.Limits.Timeout)
	if more := r.a.HeldGBs() - r.reserved; more > 1e-9 {
		if start <= r.start && late <= r.late && !r.frozen {
			w.Fatalf("seed %d: %s held %.4g GB-s of %.4g that were reserved", w.seed, r.a.Invocation.ID, r.a.HeldGBs(),
				r.reserved)
		}
		w.unknown += more
	}
	if !r.frozen {
		w.startSeen, w.late = max(w.startSeen, start), max(w.late, late)
	}
}

// sees keeps how fast a slot's activations were, and which holds were too short.
func (w *purse) sees(r running) {
	s := r.a.Slot()
	switch {
	case r.a.Outcome == disdel.OutcomeSuccess, r.a.Outcome == disdel.OutcomePaused:
		w.least[s] = lower(w.least[s], r.slow)
	case holdTooShort(r.a):
		w.tooShort[s.Task] = max(w.tooShort[s.Task], time.Duration(r.a.Hold))
	}
}

func (w *purse) obey(orders []Order) {
	for _, o := range orders {
		w.script = append(w.script, describe(o))
		last := &w.script[len(w.script)-1]
		switch o := o.(type) {
		case InvokeOrder:
			*last += fmt.Sprintf(", hold %v", o.Invocation.Hold)
			r := w.activation(o.Invocation)
			r.end, r.reserved = w.now+o.After+time.Duration(r.a.Duration), w.m.budget.running[r.a.Invocation.ID]
			r.start, r.late = w.startSeen, w.late
			w.open = append(w.open, r)
		case RoundOrder:
			w.rounds = o.Round.Round + 1
		case FinishOrder:
			switch {
			case o.Failure == nil:
			case o.Failure.Code == disdel.CodeOverBudget:
				*last += ", hint " + o.Failure.Hint
				w.broke, w.unpaid = o.Failure, o.unpaid
			default:
				w.failed = o.Failure
			}
		case AdjustOrder, AlarmOrder, BestOrder, CheckpointOrder, DecisionOrder, EndOrder, ForgetOrder, GrantOrder,
			LetGoOrder, StageOrder, SweepOrder:
		}
	}
}

// activation is what an invocation comes to.
func (w *purse) activation(inv disdel.Invocation) running {
	a := disdel.Activation{Invocation: inv, Outcome: disdel.OutcomeSuccess}
	start := time.Duration(0)
	if w.lot.IntN(2) == 0 {
		start = time.Duration(w.lot.Float64() * float64(w.start))
	}
	a.InitTime = disdel.Millis(start)
	p, slow := place{inv.Round, inv.Slot()}, 1+w.lot.Float64()*(w.slower-1)
	end := time.Duration(inv.Limits.Timeout) - start
	if inv.Hold > 0 {
		end = time.Duration(inv.Hold)
	}
	need := max(0, w.of(inv.Round, inv.Slot())-w.did[p])
	run := w.fixed + time.Duration(float64(need)*slow)
	pauses := inv.Task == disdel.TaskTrain && run > end
	a.Duration = disdel.Millis(start + run)
	frozen := w.lot.Float64() < w.freezes
	switch {
	case frozen && w.lot.IntN(2) == 0: // until the platform ends it
		a.Outcome, a.Failure = disdel.OutcomeTimeout, &disdel.Error{Kind: disdel.Timeout}
		a.Duration = inv.Limits.Timeout
		a.Beats = []disdel.Beat{{At: 1, Batch: 1, Batches: 100}, {At: 2, Batch: 2, Batches: 100}}
		return running{a: a, frozen: true}
	case w.lot.Float64() < w.crashes:
		a.Outcome, a.Failure = disdel.OutcomeLost, &disdel.Error{Kind: disdel.Lost}
		a.Duration = disdel.Millis(start + time.Duration(w.lot.Float64()*float64(min(run, end))))
	case pauses && w.fixed+time.Duration(float64(w.step)*slow) <= end:
		did := max(w.step, time.Duration(float64(end*9/10-w.fixed)/slow)/w.step*w.step)
		w.did[p] += did
		a.Outcome, a.Duration = disdel.OutcomePaused, disdel.Millis(start+w.fixed+time.Duration(float64(did)*slow))
		if inv.Hold == 0 && w.lot.IntN(2) == 0 { // a busy machine: it ends some time after its timeout
			a.Duration = inv.Limits.Timeout + disdel.Millis(w.lot.Float64()*0.1*float64(inv.Limits.Timeout))
		}
		w.trained(&a, did, slow)
	case run > end:
		a.Outcome, a.Duration = disdel.OutcomeTimeout, disdel.Millis(start+end)
		a.Failure = &disdel.Error{Kind: disdel.Timeout}
		if inv.Hold > 0 {
			a.Failure.Code = disdel.CodeOverBudget
		}
	case inv.Task == disdel.TaskTrain:
		w.trained(&a, need, slow)
		w.did[p] += need
	default:
		w.did[p] += need
		if a.Result = []byte(`{"loss":1}`); inv.Task == disdel.TaskAggregate {
			a.Result = []byte(`{"weight":1}`)
			if p.Level == len(w.m.spec.Plan.Levels) && inv.Round+1 < w.m.spec.Plan.Rounds {
				a.Result = fmt.Appendf(nil, `{"weight":1,"saved":{"round":%d,"path":"p"}}`, inv.Round+1)
			}
		}
	}
	if frozen { // it went on in the end
		a.Duration += disdel.Millis(w.between(0, time.Minute))
	}
	return running{a: a, slow: slow, frozen: frozen}
}

// trained says what an activation has trained, of batches of ten rows.
func (w *purse) trained(a *disdel.Activation, did time.Duration, slow float64) {
	a.Rows = max(1, int(did/w.step)*10)
	a.Phases = map[string]disdel.Millis{"compute": disdel.Millis(float64(did) * slow)}
	a.Result, _ = json.Marshal(disdel.TrainResult{
		Loss: 1, Samples: 1, Rows: a.Rows, Paused: a.Outcome == disdel.OutcomePaused, BatchesDone: a.Leg + 1,
	})
}

func (w *purse) check() {
	w.Helper()
	most := w.spec.Job.Resources.MaxCost
	if w.spent > max(most, w.before)+w.unknown+1e-9 {
		w.Errorf("seed %d: %.4g GB-s of %.4g are spent, %.4g of it nobody could know", w.seed, w.spent, most, w.unknown)
	}
	left := most - w.spent
	switch all := w.spent + w.rest(); {
	case w.failed != nil:
		w.Errorf("seed %d: it failed: %v", w.seed, w.failed)
	case w.broke != nil && all < 0.8*most:
		w.Errorf("seed %d: it would cost %.4g GB-s of %.4g in all, and ended for its budget: %v", w.seed, all, most, w.broke)
	case w.broke != nil && w.unpaid.cost <= left:
		w.Errorf("seed %d: %.4g GB-s are left, and the next step costs %.4g", w.seed, left, w.unpaid.cost)
	case w.broke == nil && w.rounds < w.spec.Plan.Rounds:
		w.Errorf("seed %d: nothing runs in round %d of %d", w.seed, w.rounds, w.spec.Plan.Rounds)
	case w.broke != nil && w.payable(left):
		w.Errorf("seed %d, resume %d: %.4g GB-s are left of %.4g, and the next step costs %.4g: %v", w.seed, w.spec.Resumes,
			left, most, w.cost(w.unpaid), w.broke)
	}
}

// payable tells whether left GB-s would have paid the next step. They do not if such an action has already failed with
// as much.
func (w *purse) payable(left float64) bool {
	usable, s := left*(1-reserveSpare), w.unpaid
	tried := (leastHold + min(disdel.Millis(w.startSeen), firstStart)).Seconds()
	if !w.m.budget.ended {
		tried = 2 * leastHold.Seconds()
	}
	if hold := w.tooShort[s.slot.Task]; hold > 0 {
		tried = max(tried, (hold + w.startSeen).Seconds())
	}
	if w.together(s) {
		tried *= float64(len(w.m.barrier.outstanding()))
	}
	return usable > tried && usable > w.cost(s)
}

// together tells whether a step is of use only if all missing workers take it.
func (w *purse) together(s step) bool {
	return s.slot.Task == disdel.TaskTrain && w.spec.Job.Distribution.Exchange != nil
}

// resumed goes on from the newest checkpoint with the budget that the job's failure proposes, or with too little.
func (w *purse) resumed() *purse {
	_, text, _ := strings.Cut(w.broke.Hint, "resources.maxCost=")
	most, err := strconv.ParseFloat(strings.TrimSuffix(text, "GB-s"), 64)
	if err != nil || most <= w.spec.Job.Resources.MaxCost {
		w.Fatalf("seed %d: %q", w.seed, w.broke.Hint)
	}
	again := newPurse(w.T, w.seed)
	again.spec, again.m = w.spec, w.m // for what the rounds are
	again.lot = rand.New(rand.NewPCG(w.seed, uint64(w.spec.Resumes)))
	proposed := w.spec.Resumes == 2 || again.lot.IntN(2) == 0
	if !proposed {
		most = w.spent + (most-w.spent)*again.lot.Float64()
	}
	again.rounds, again.spent = w.m.newestCheckpoint(), w.spent
	again.spec.Job.Resources.MaxCost, again.spec.Kept = most, nil
	again.spec.Resumes++
	if h := w.m.unfinishedRound(); w.shareDone && h != nil && h.Round == again.rounds {
		again.spec.Kept, again.did = h, w.did
	}
	if again.rounds > 0 {
		again.spec.From, again.spec.Done = &disdel.Checkpoint{Round: again.rounds, Path: "p"}, nil
		for r := range again.rounds {
			again.spec.Done = append(again.spec.Done, disdel.Round{Round: r, NotEvaluated: "-"})
		}
	}
	again.m = NewManager(again.spec)
	if !w.steady || w.rounds == 0 || !proposed {
		return again
	}
	again.run()
	again.check()
	if again.broke != nil {
		w.Errorf("seed %d: the proposed budget does not pass: %v, then %v", w.seed, w.broke, again.broke)
	}
	again = newPurse(w.T, w.seed) // nothing is left to try
	again.spec.Job.Resources.MaxCost, again.freezes, again.crashes = 1e6, 0, 0
	again.m = NewManager(again.spec)
	return again
}
