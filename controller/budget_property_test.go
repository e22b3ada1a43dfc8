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

// Over drawn jobs, with rounds, legs, timeouts, durations, failures and workers of all sizes: what is spent is never
// above the budget, but for what nobody knew before. A job that would cost 80 % of its budget in all never ends for it.
// A job that ends for it says what the next step costs, which is more than is left. The budget that it proposes passes,
// where a whole round was seen and the others are like it.
func TestABudgetEndsAJobOnlyWhereItCannotPay(t *testing.T) {
	ended, passed, resumed := 0, 0, 0
	for seed := range uint64(1500) {
		w := newPurse(t, seed)
		w.run()
		w.check()
		if w.broke == nil {
			passed++
			continue
		}
		ended++
		if w.steady && w.rounds > 0 {
			resumed++
			w.resume()
		}
	}
	if ended < 150 || passed < 150 || resumed < 20 {
		t.Errorf("%d jobs ended for their budgets, %d passed, %d were resumed: too few to say anything", ended, passed,
			resumed)
	}
}

// purse is a job with a budget, and a platform that runs its actions one event after another.
type purse struct {
	*testing.T
	lot     *rand.Rand
	seed    uint64
	spec    Spec
	m       *Manager
	now     time.Duration
	spent   float64
	unknown float64 // GB-s that activations held beyond what was reserved, where nobody could know
	open    []running
	broke   *disdel.Error
	failed  *disdel.Error // any other
	rounds  int           // that ended

	start, fixed, step time.Duration
	slower             float64 // at most, of one leg
	crashes            float64 // share of activations
	work               map[place]time.Duration
	steady             bool          // every round is like the others
	startSeen, late    time.Duration // longest
}

// running is an activation on its way.
type running struct {
	a        disdel.Activation
	end      time.Duration
	reserved float64
	// what was known when it began: the longest start, and the most by which an activation passed its timeout
	start, late time.Duration
}

func newPurse(t *testing.T, seed uint64) *purse {
	w := &purse{T: t, lot: rand.New(rand.NewPCG(seed, 31)), seed: seed, work: map[place]time.Duration{}}
	between := func(low, high time.Duration) time.Duration {
		return low + time.Duration(w.lot.Float64()*float64(high-low))
	}
	workers, rounds := 1+w.lot.IntN(5), 1+w.lot.IntN(5)
	w.start, w.fixed, w.step = between(0, 300*time.Millisecond), between(1e6, 80*time.Millisecond), between(1e6, 20e6)
	w.slower = []float64{1, 1, 1.3, 3}[w.lot.IntN(4)]
	w.crashes = []float64{0, 0, 0.1, 0.3}[w.lot.IntN(4)]
	w.steady = w.slower == 1 && w.crashes == 0 && w.lot.IntN(2) == 0
	spec := runSpec(workers, rounds)
	spec.Job.Reliability.Retries = disdel.Retries{Limit: 1000, PerWorker: 1000}
	spec.Job.Distribution.Missing.Policy = disdel.MissingWait
	spec.Job.Reliability.CheckpointEvery = 1
	spec.Job.Training.ValidateEvery, spec.Plan.HeldOut = 1, []int{0, 10}[w.lot.IntN(2)]
	spec.Plan.Levels = scheduler.Tree(workers, 2+w.lot.IntN(3))
	spec.Plan.Platform = disdel.PlatformLimits{MaxMemory: disdel.GB, MaxTimeout: disdel.Millis(time.Hour)}
	timeout := between(time.Second, 4*time.Second)
	if w.lot.IntN(3) == 0 {
		timeout = 5 * time.Minute
	}
	longest := between(300*time.Millisecond, 20*time.Second)
	spec.Plan.Actions = nil
	for _, task := range []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate} {
		l := disdel.Limits{Memory: disdel.GB, Timeout: disdel.Millis(timeout)}
		if task != disdel.TaskTrain {
			l.Timeout = disdel.Millis(time.Minute)
		}
		spec.Plan.Actions = append(spec.Plan.Actions,
			disdel.ActionPlan{Task: task, Name: "p/" + disdel.ActionName(task), Limits: l})
	}
	w.spec = spec
	lots := w.lot.Uint64()
	for r := range rounds {
		if w.steady {
			w.lot = rand.New(rand.NewPCG(lots, 0))
		}
		for m := range workers {
			w.work[place{r, disdel.Slot{Task: disdel.TaskTrain, Member: m}}] = between(longest/2, longest)
		}
		for _, l := range spec.Plan.Levels {
			for c := range l.Clusters {
				w.work[place{r, disdel.Slot{Task: disdel.TaskAggregate, Level: l.Height, Member: c}}] = between(1e6, longest/4)
			}
		}
		if spec.Plan.HeldOut > 0 {
			w.work[place{r, disdel.Slot{Task: disdel.TaskEvaluate}}] = between(1e6, longest/4)
		}
	}
	w.spec.Job.Resources.MaxCost = w.rest() * (0.1 + 2*w.lot.Float64())
	w.m = NewManager(w.spec)
	return w
}

// rest is what the job would still cost where nothing failed any more.
func (w *purse) rest() (gbs float64) {
	for p, d := range w.work {
		if d > 0 && p.round >= w.rounds {
			gbs += (w.start + w.fixed + d).Seconds()
		}
	}
	return gbs
}

func (w *purse) run() {
	w.obey(w.m.Step(StartedEvent{Moment: Moment{Spent: w.spent}}))
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
		w.obey(w.m.Step(EndedEvent{Activation: r.a, Moment: Moment{At: disdel.Millis(w.now), Spent: w.spent}}))
	}
}

// beyond counts what an activation held beyond what was reserved for it, and fails where that could be known.
func (w *purse) beyond(r running) {
	start, late := time.Duration(r.a.InitTime), time.Duration(r.a.Duration-r.a.Limits.Timeout)
	if more := r.a.HeldGBs() - r.reserved; more > 1e-9 {
		if start <= r.start && late <= r.late {
			w.Fatalf("seed %d: %s held %.4g GB-s of %.4g that were reserved", w.seed, r.a.Invocation.ID, r.a.HeldGBs(),
				r.reserved)
		}
		w.unknown += more
	}
	w.startSeen, w.late = max(w.startSeen, start), max(w.late, late)
}

func (w *purse) obey(orders []Order) {
	for _, o := range orders {
		switch o := o.(type) {
		case InvokeOrder:
			a := w.activation(o.Invocation)
			w.open = append(w.open, running{
				a, w.now + o.After + time.Duration(a.Duration), w.m.budget.running[a.Invocation.ID], w.startSeen, w.late,
			})
		case RoundOrder:
			w.rounds = o.Round.Round + 1
		case FinishOrder:
			switch {
			case o.Failure == nil:
			case o.Failure.Code == disdel.CodeOverBudget:
				w.broke = o.Failure
			default:
				w.failed = o.Failure
			}
		case AdjustOrder, AlarmOrder, BestOrder, CheckpointOrder, DecisionOrder, EndOrder, ForgetOrder, GrantOrder, LetGoOrder,
			StageOrder, SweepOrder:
		}
	}
}

// activation is what an invocation comes to.
func (w *purse) activation(inv disdel.Invocation) disdel.Activation {
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
	need := w.work[p]
	run := w.fixed + time.Duration(float64(need)*slow)
	pauses := inv.Task == disdel.TaskTrain && run > end
	a.Duration = disdel.Millis(start + run)
	switch {
	case w.lot.Float64() < w.crashes:
		a.Outcome, a.Failure = disdel.OutcomeLost, &disdel.Error{Kind: disdel.Lost}
		a.Duration = disdel.Millis(start + time.Duration(w.lot.Float64()*float64(min(run, end))))
	case pauses && w.fixed+time.Duration(float64(w.step)*slow) <= end:
		did := max(w.step, time.Duration(float64(end*9/10-w.fixed)/slow))
		w.work[p] = max(w.step, need-did)
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
		w.work[p] = 0
	default:
		w.work[p] = 0
		if a.Result = []byte(`{"loss":1}`); inv.Task == disdel.TaskAggregate {
			a.Result = []byte(`{"weight":1}`)
			if p.Level == len(w.spec.Plan.Levels) && inv.Round+1 < w.spec.Plan.Rounds {
				a.Result = fmt.Appendf(nil, `{"weight":1,"saved":{"round":%d,"path":"p"}}`, inv.Round+1)
			}
		}
	}
	return a
}

// trained says what an activation has trained: a batch is one row.
func (w *purse) trained(a *disdel.Activation, did time.Duration, slow float64) {
	a.Rows = max(1, int(did/w.step))
	a.Phases = map[string]disdel.Millis{"compute": disdel.Millis(float64(did) * slow)}
	a.Result, _ = json.Marshal(disdel.TrainResult{
		Loss: 1, Samples: 1, Rows: a.Rows, Paused: a.Outcome == disdel.OutcomePaused, BatchesDone: a.Leg + 1,
	})
}

func (w *purse) check() {
	w.Helper()
	most := w.spec.Job.Resources.MaxCost
	if w.spent > most+w.unknown+1e-9 {
		w.Errorf("seed %d: %.4g GB-s of %.4g are spent, %.4g of it nobody could know", w.seed, w.spent, most, w.unknown)
	}
	switch all := w.spent + w.rest(); {
	case w.failed != nil:
		w.Errorf("seed %d: it failed: %v", w.seed, w.failed)
	case w.broke != nil && all < 0.8*most:
		w.Errorf("seed %d: it would cost %.4g GB-s of %.4g in all, and ended for its budget: %v", w.seed, all, most, w.broke)
	case w.broke != nil && w.m.unpaid.cost <= most-w.spent:
		w.Errorf("seed %d: %.4g GB-s are left, and the next step costs %.4g", w.seed, most-w.spent, w.m.unpaid.cost)
	case w.broke == nil && w.rounds < w.spec.Plan.Rounds:
		w.Errorf("seed %d: nothing runs in round %d of %d", w.seed, w.rounds, w.spec.Plan.Rounds)
	}
}

// resume goes on from the newest checkpoint with the budget that the job's failure proposes.
func (w *purse) resume() {
	_, text, _ := strings.Cut(w.broke.Hint, "resources.maxCost=")
	most, err := strconv.ParseFloat(strings.TrimSuffix(text, "GB-s"), 64)
	if err != nil || most <= w.spec.Job.Resources.MaxCost {
		w.Fatalf("seed %d: %q", w.seed, w.broke.Hint)
	}
	again := newPurse(w.T, w.seed) // what was done of a round is lost
	again.rounds, again.spent, again.broke = w.m.newestCheckpoint(), w.spent, nil
	again.spec.Job.Resources.MaxCost, again.spec.Resumes = most, 1
	if again.rounds > 0 {
		again.spec.From = &disdel.Checkpoint{Round: again.rounds, Path: "p"}
		for r := range again.rounds {
			again.spec.Done = append(again.spec.Done, disdel.Round{Round: r, NotEvaluated: "-"})
		}
	}
	again.m = NewManager(again.spec)
	again.run()
	again.check()
	if again.broke != nil {
		w.Errorf("seed %d: the proposed budget does not pass: %v, then %v", w.seed, w.broke, again.broke)
	}
}
