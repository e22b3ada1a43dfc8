package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// wants is a policy that wants so many workers after every epoch, as far as it may.
type wants struct{ workers int }

func (wants) Name() string    { return "wants" }
func (wants) Meaning() string { return "wants so many" }

func (w wants) Decide(in scheduler.Input) disdel.Decision {
	d := disdel.Decision{Next: in.Now, Why: "it wants them", Expect: &disdel.Expectation{PerThousand: 1}}
	if in.Boundary == disdel.BoundaryEpoch {
		d.Next.Workers = min(w.workers, in.Bounds.Most)
	}
	return d
}

// grantingSpec is a job that begins with so many workers and asks for the gangs of its stages.
func grantingSpec(workers, rounds int, p scheduler.Policy) Spec {
	plan := func(workers int) disdel.Plan {
		out := runSpec(workers, rounds).Plan
		for i := range out.Shards {
			out.Shards[i] = disdel.RowRange{Start: i * 120 / workers, End: (i + 1) * 120 / workers}
		}
		return out
	}
	spec := runSpec(workers, rounds)
	spec.Job.Training.Epochs, spec.Job.Training.BatchSize = rounds, 1
	spec.Policy, spec.Gangs, spec.Plan = p, true, plan(workers)
	spec.Replan = func(job disdel.Job) (disdel.Plan, error) { return plan(job.Distribution.Workers), nil }
	return spec
}

// granting is such a job's manager, which has begun.
func granting(t *testing.T, workers, rounds int, p scheduler.Policy, change func(*Spec)) *driver {
	t.Helper()
	spec := grantingSpec(workers, rounds, p)
	if change != nil {
		change(&spec)
	}
	d := &driver{T: t, manager: NewManager(spec)}
	d.tell(StartedEvent{})
	return d
}

// driver is a loop whose activations all pass, until the manager asks for a gang or has finished.
type driver struct {
	*testing.T
	manager   *Manager
	asked     *GrantOrder // that no answer was given to
	finished  *FinishOrder
	trained   map[int]int // workers of each round
	decisions []disdel.Decision
	stages    []int                                     // workers of each
	ends      func(disdel.Invocation) disdel.Activation // nil: all pass
}

func (d *driver) tell(e Event) {
	d.Helper()
	todo := d.manager.Step(e)
	for len(todo) > 0 {
		o := todo[0]
		todo = todo[1:]
		switch o := o.(type) {
		case InvokeOrder:
			if d.asked != nil {
				d.Fatalf("%s runs before its gang was granted", o.Invocation.ID)
			}
			todo = append(todo, d.manager.Step(EndedEvent{Activation: d.end(o.Invocation)})...)
		case GrantOrder:
			d.asked = &o
		case DecisionOrder:
			d.decisions = append(d.decisions, o.Decision)
		case StageOrder:
			d.stages = append(d.stages, o.Plan.Workers)
		case FinishOrder:
			d.finished = &o
		case AdjustOrder, AlarmOrder, BestOrder, CheckpointOrder, EndOrder, ForgetOrder, LetGoOrder, RoundOrder, SweepOrder:
		}
	}
}

func (d *driver) end(inv disdel.Invocation) disdel.Activation {
	if d.trained == nil {
		d.trained = map[int]int{}
	}
	if inv.Task == disdel.TaskTrain {
		d.trained[inv.Round] = max(d.trained[inv.Round], inv.Member+1)
	}
	if d.ends != nil {
		return d.ends(inv)
	}
	a, _ := passes(d.Context(), inv)
	return a
}

// answer answers what was asked, and tells how many workers it was about.
func (d *driver) answer(e GrantedEvent) (workers int) {
	d.Helper()
	if d.asked == nil {
		d.Fatal("nothing was asked")
	}
	workers = d.asked.Plan.Workers
	d.asked = nil
	d.tell(e)
	return workers
}

// A stage that needs another gang begins once that is granted, and not before; one that is not granted does not, its
// policy is asked again for fewer, and for all again when the next epoch has ended.
func TestAStageBeginsWithItsGang(t *testing.T) {
	d := granting(t, 1, 4, wants{8}, nil)
	if d.asked == nil || d.asked.Waits || d.asked.Round != 1 || len(d.decisions) > 0 || len(d.stages) > 0 {
		t.Fatalf("asked %+v, decided %+v", d.asked, d.decisions)
	}
	var asked []int
	for d.asked != nil && d.asked.Round == 1 {
		asked = append(asked, d.answer(GrantedEvent{Refused: "it needs another one"}))
	}
	if want := []int{8, 4, 2}; !slices.Equal(asked, want) {
		t.Errorf("asked for %v, want %v", asked, want)
	}
	if len(d.stages) > 0 || d.trained[1] != 1 || len(d.decisions) != 1 {
		t.Fatalf("stages %v, %d workers, decided %+v", d.stages, d.trained[1], d.decisions)
	}
	no := d.decisions[0]
	if no.Changed || no.Expect != nil || no.Next.Workers != 1 || len(no.NotGranted) != 3 ||
		no.NotGranted[0].Text() != "8 workers were not granted: it needs another one" {
		t.Errorf("decided %+v", no)
	}
	if n := d.answer(GrantedEvent{Refused: "still"}); n != 8 {
		t.Errorf("after the next epoch it asks for %d", n)
	}
	if n := d.answer(GrantedEvent{}); n != 4 || !slices.Equal(d.stages, []int{4}) {
		t.Errorf("granted %d, stages %v", n, d.stages)
	}
	if d.trained[2] != 4 {
		t.Errorf("%d workers, and 4 were granted", d.trained[2])
	}
	if yes := d.decisions[1]; !yes.Changed || yes.Expect == nil || len(yes.NotGranted) != 1 {
		t.Errorf("decided %+v", yes)
	}
	if n := d.answer(GrantedEvent{}); n != 8 || d.trained[3] != 8 {
		t.Errorf("granted %d, %d workers", n, d.trained[3])
	}
	if d.finished == nil || d.finished.Status != disdel.StatusSucceeded {
		t.Errorf("finished as %+v", d.finished)
	}
}

// What was decided before is asked for with nothing in hand, and carried out as it is in the record: a job that is
// taken up again comes to the same stages whatever others hold, or to none at all.
func TestAReplayWaitsForItsGangs(t *testing.T) {
	first := granting(t, 2, 3, wants{4}, nil)
	first.answer(GrantedEvent{Refused: "others are there"})
	first.answer(GrantedEvent{Refused: "others are there"}) // of three
	first.answer(GrantedEvent{})
	if first.finished == nil || !slices.Equal(first.stages, []int{4}) {
		t.Fatalf("stages %v, %+v", first.stages, first.finished)
	}
	again := granting(t, 2, 3, scheduler.Static{}, func(s *Spec) { s.Decisions = first.decisions })
	if again.asked == nil || !again.asked.Waits || again.asked.Round != 2 || again.trained[1] != 2 {
		t.Fatalf("asked %+v, %v", again.asked, again.trained)
	}
	again.answer(GrantedEvent{})
	if !slices.Equal(again.stages, first.stages) || again.trained[2] != 4 || again.finished == nil {
		t.Errorf("stages %v, %v", again.stages, again.trained)
	}
	never := granting(t, 2, 3, scheduler.Static{}, func(s *Spec) { s.Decisions = first.decisions })
	never.answer(GrantedEvent{Err: &disdel.Error{Kind: disdel.OverLimit, Msg: "the pool has become smaller"}})
	if never.finished == nil || never.finished.Status != disdel.StatusFailed || never.trained[2] != 0 ||
		!strings.Contains(never.finished.Failure.Msg, "smaller") {
		t.Errorf("%+v, %v", never.finished, never.trained)
	}
}

// A job that goes back to rounds of an earlier stage waits for the gang of that one, and again for that of the later.
func TestAJobThatGoesBackAsksForItsGangs(t *testing.T) {
	d := granting(t, 3, 4, wants{1}, nil)
	gone := false
	d.ends = func(inv disdel.Invocation) disdel.Activation {
		a, _ := passes(t.Context(), inv)
		if inv.Round == 2 && inv.Task == disdel.TaskTrain && !gone {
			gone = true
			a.Outcome = disdel.OutcomeApplicationError
			a.Failure = lost["lostReference"]
		}
		return a
	}
	d.answer(GrantedEvent{})
	if !gone || d.asked == nil || !d.asked.Waits || d.asked.Round != 0 || d.asked.Plan.Workers != 3 {
		t.Fatalf("asked %+v (gone: %t), %v", d.asked, gone, d.trained)
	}
	d.answer(GrantedEvent{})
	if d.asked == nil || !d.asked.Waits || d.asked.Round != 1 || d.asked.Plan.Workers != 1 {
		t.Fatalf("asked %+v", d.asked)
	}
	d.answer(GrantedEvent{})
	if d.finished == nil || d.finished.Status != disdel.StatusSucceeded || !slices.Equal(d.stages, []int{1}) {
		t.Errorf("%+v, stages %v", d.finished, d.stages)
	}
}

// Who stops a job that waits for a gang stops it, and an answer that comes too late changes nothing.
func TestAJobThatAsksIsStopped(t *testing.T) {
	d := granting(t, 1, 3, wants{2}, nil)
	d.asked = nil
	d.tell(CanceledEvent{Err: &disdel.Error{Kind: disdel.Canceled}})
	if d.finished == nil || d.finished.Status != disdel.StatusCanceled {
		t.Fatalf("%+v", d.finished)
	}
	d.tell(GrantedEvent{})
	if len(d.stages) > 0 || d.trained[1] > 0 {
		t.Errorf("stages %v, %v", d.stages, d.trained)
	}
}

// The loop asks beside its work, tells onlookers once what was not granted, and keeps in the record what was decided.
func TestARunAsksForItsGangs(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		var asked []int
		var told []string
		c := s.controller()
		c.cfg.Grant = func(_ context.Context, o GrantOrder) (string, error) {
			asked = append(asked, o.Plan.Workers)
			if len(asked) < 3 {
				return "others are there", nil
			}
			return "", nil
		}
		c.cfg.Observe = func(n Notice) {
			if n.Refused != nil {
				told = append(told, n.Refused.Text())
			}
		}
		rec, err := c.Run(t.Context(), grantingSpec(2, 4, wants{3}), disdel.DataInfo{})
		if err != nil || rec.Status != disdel.StatusSucceeded {
			t.Fatalf("%v: %v, %v", rec.Status, rec.Failure, err)
		}
		if !slices.Equal(asked, []int{3, 3, 3}) || len(rec.Stages) != 2 || rec.Stages[1].First != 3 ||
			len(rec.Decisions) != 3 {
			t.Errorf("asked for %v, %d stages, %+v", asked, len(rec.Stages), rec.Decisions)
		}
		if !slices.Equal(told, []string{"3 workers were not granted: others are there"}) {
			t.Errorf("told %q", told)
		}
	})
}

// A job whose admission does not answer is canceled all the same, and leaves nobody waiting.
func TestARunThatIsNotAnsweredIsCanceled(t *testing.T) {
	in(t, func(t *testing.T, s *surroundings) {
		c := s.controller()
		c.cfg.Grant = func(ctx context.Context, _ GrantOrder) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		rec, err := c.Run(ctx, grantingSpec(1, 3, wants{2}), disdel.DataInfo{})
		if err != nil || rec.Status != disdel.StatusCanceled || len(rec.Stages) != 1 {
			t.Errorf("%v, %d stages, %v", rec.Status, len(rec.Stages), err)
		}
	})
}
