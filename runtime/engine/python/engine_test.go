package python

import (
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
)

// A process that is killed at a drawn step, and a new one that goes on from the state of the step before, come to the
// bits of a process that nobody disturbed.
func TestKillsLeaveTheSameBits(t *testing.T) {
	const total = 7
	for name, o := range map[string]disdel.Optimizer{
		"adam": adam, "momentum": {SGD: &disdel.SGD{LearningRate: 0.1, Momentum: 0.9}},
	} {
		t.Run(name, func(t *testing.T) {
			d := describe(t, small, o)
			undisturbed := start(t, d.spec(o))
			losses := steps(t, undisturbed, 0, total)
			draw := rand.New(rand.NewPCG(5, uint64(len(name))))
			at, state := 0, disdel.Weights(nil)
			var got []float64
			for at < total {
				e := start(t, d.spec(o))
				if state != nil {
					restore(t, e, state)
				}
				to := min(total, at+1+draw.IntN(3))
				got = append(got, steps(t, e, at, to)...)
				at, state = to, everything(e)
				if at == total {
					break
				}
				e.control.process.signal(syscall.SIGKILL)
				_, err := e.Step(batch(at))
				wants(t, err, disdel.Crashed, "killed")
			}
			if !slices.Equal(losses, got) {
				t.Errorf("losses %v, want %v", got, losses)
			}
			same(t, "after kills", everything(undisturbed), state)
		})
	}
}

// A warm engine that begins a round anew computes what a new process does.
func TestWarmAndColdGiveTheSameBits(t *testing.T) {
	d := describe(t, small, adam)
	warm := start(t, d.spec(adam))
	steps(t, warm, 0, 3)
	if err := warm.EndRound(); err != nil {
		t.Fatal(err)
	}
	weights := engine.Weights(warm)
	cold := start(t, d.spec(adam))
	for _, e := range []*Engine{warm, cold} {
		e.SetSeed(12)
		if err := errors.Join(engine.SetWeights(e, weights), e.Reset(engine.Moment)); err != nil {
			t.Fatal(err)
		}
		steps(t, e, 3, 6)
	}
	same(t, "of a cold process", everything(warm), everything(cold))
}

// Buffers of whole numbers travel as values: counts go on, and what float32 cannot hold stays exact.
func TestWholeNumbersStayExact(t *testing.T) {
	d := describe(t, small, adam)
	e := start(t, d.spec(adam))
	steps(t, e, 0, 3)
	other := start(t, d.spec(adam))
	restore(t, other, everything(e))
	steps(t, other, 3, 4)
	values := map[string][]int64{}
	for i, p := range other.program.Integers {
		n := other.State()[len(other.network.Params)+i].Len()
		values[p.Name] = part[int64](other.memory, other.layout.Integers[i], n)
	}
	if got := values["norm.num_batches_tracked"]; len(got) != 1 || got[0] != 4 {
		t.Errorf("%d batches were counted, want 4", got)
	}
	if got := values["large"]; !slices.Equal(got, []int64{1<<40 + 1, -3}) {
		t.Errorf("a constant of the program became %d", got)
	}
	counts := integers{7, 1 << 40}
	counts.WriteAt([]float32{2.5, 1 << 40}, 0)
	if counts[0] != 3 || counts[1] != 1<<40 {
		t.Errorf("means are written as %d", counts)
	}
}

// Evaluations and predictions change nothing, not even the next step, and agree with each other.
func TestEvaluationsChangeNothing(t *testing.T) {
	d := describe(t, small, adam)
	e, undisturbed := start(t, d.spec(adam)), start(t, d.spec(adam))
	steps(t, e, 0, 2)
	steps(t, undisturbed, 0, 2)
	x := batch(9)
	m, err := e.Evaluate(x)
	if err != nil || m.Rows != rows || m.Loss <= 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	said := slices.Clone(m.Classes)
	p, err := e.Predict(dataset.Batch{Input: x.Input})
	if err != nil || p.Rows != rows || p.Columns != classes {
		t.Fatalf("%+v, %v", p, err)
	}
	correct := 0
	for i, k := range engine.Largest(p.Values, classes) {
		if k == x.Target.Classes[i] {
			correct++
		}
	}
	if largest := engine.Largest(p.Values, classes); !slices.Equal(said, largest) || correct != m.Correct {
		t.Errorf("classes %v and %d right, predictions say %v and %d", said, m.Correct, largest, correct)
	}
	for i := range p.Rows {
		var sum float32
		for _, v := range p.Row(i) {
			sum += v
		}
		if sum < 0.999 || sum > 1.001 {
			t.Errorf("row %d has probabilities that add up to %v", i, sum)
		}
	}
	steps(t, e, 2, 4)
	steps(t, undisturbed, 2, 4)
	same(t, "after an evaluation", everything(undisturbed), everything(e))
}

// The rate of the next steps, the roles that can be reset, and staged batches are those that every backend has.
func TestAnEngineKeepsItsPromises(t *testing.T) {
	d := describe(t, small, adam)
	e := start(t, d.spec(adam))
	first := everything(e)
	e.SetRate(0)
	steps(t, e, 0, 1)
	same(t, "a rate of 0", engine.Copies(engine.Of(e.State(), engine.Weight)), first[:6])
	e.SetRate(0.01)
	steps(t, e, 1, 3)
	moved := everything(e)
	for _, role := range []engine.Role{engine.Statistic, engine.Moment} {
		if err := e.Reset(role); err != nil {
			t.Fatal(err)
		}
		for i, a := range e.State() {
			want := moved[i]
			if a.Role == engine.Statistic || a.Role == role {
				want = first[i]
			}
			same(t, "reset of "+role.String(), disdel.Weights{want}, disdel.Weights{a.Copy()})
		}
	}
	if err := e.Reset(engine.Weight); !errors.Is(err, disdel.Invalid) {
		t.Errorf("weights were reset: %v", err)
	}
	plain, staged := start(t, d.spec(adam)), start(t, d.spec(adam))
	steps(t, plain, 0, 4)
	ahead := staged.Ahead()
	if err := ahead.Stage(batch(0)); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if _, err := ahead.StepStaged(func() error { return ahead.Stage(batch(i + 1)) }); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "staged", everything(plain), everything(staged))
}

// Batches that do not fit are refused, and the engine goes on.
func TestBatchesThatDoNotFit(t *testing.T) {
	d := describe(t, small, adam)
	e := start(t, d.spec(adam))
	infers := d.spec(adam)
	infers.Training = false
	odd := func(change func(*dataset.Batch)) dataset.Batch {
		x := batch(0)
		change(&x)
		return x
	}
	for name, c := range map[string]struct {
		x    dataset.Batch
		want disdel.Kind
	}{
		"no rows":    {dataset.Batch{}, disdel.Invalid},
		"few values": {odd(func(x *dataset.Batch) { x.Input.Values = x.Input.Values[1:] }), disdel.Invalid},
		"label":      {odd(func(x *dataset.Batch) { x.Target.Classes[0] = classes }), disdel.Invalid},
		"infinite":   {odd(func(x *dataset.Batch) { x.Input.Values[3] /= 0 }), disdel.Diverged},
	} {
		if _, err := e.Step(c.x); !errors.Is(err, c.want) {
			t.Errorf("%s: a step returns %v, want %v", name, err, c.want)
		}
	}
	steps(t, e, 0, 1)
	if _, err := start(t, infers).Step(batch(0)); !errors.Is(err, disdel.Invalid) {
		t.Errorf("an engine for inference trains: %v", err)
	}
}
