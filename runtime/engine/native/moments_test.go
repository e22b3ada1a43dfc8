package native

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

var shortAdam = engine.Spec{
	BatchSize: 40, Training: true, Seed: 9, StepMemory: disdel.StepMemory{StateFormat: disdel.StateInt8},
	Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}},
}

// An engine whose state was written piece by piece, as after a kill, goes on with the same bits, on any number of
// threads, also with micro-batches, clipping and idle taps.
func TestShortMomentsGoOnWithTheSameBits(t *testing.T) {
	graphs := map[string]*model.Graph{"idle": idleNetwork(t)}
	for name, f := range someNetworks() {
		graphs[name] = build(t, name, f)
	}
	for name, g := range graphs {
		for i, change := range []func(*engine.Spec){
			func(*engine.Spec) {}, func(s *engine.Spec) { s.MicroBatch, s.ClipNorm = 16, 0.5 },
			func(s *engine.Spec) {
				s.Optimizer = disdel.Optimizer{RMSprop: &disdel.RMSprop{LearningRate: 0.001, Momentum: 0.9, WeightDecay: 0.01}}
			},
		} {
			s := shortAdam
			change(&s)
			one := initialized(t, g, s)
			steps(t, one, g, 0, 3)
			s.Threads = 3
			other := newEngine(t, g, s)
			rng := rand.New(rand.NewPCG(uint64(i), 7))
			to := other.State()
			for k, a := range one.State() {
				for at := 0; at < a.Len(); {
					part := make([]float32, min(1+rng.IntN(1000), a.Len()-at))
					if err := errors.Join(a.ReadAt(part, at), to[k].WriteAt(part, at)); err != nil {
						t.Fatal(err)
					}
					at += len(part)
				}
			}
			steps(t, one, g, 3, 6)
			steps(t, other, g, 3, 6)
			sameBits(t, name, engine.Copies(one.State()), engine.Copies(other.State()))
		}
	}
}

func steps(t *testing.T, e *Engine, g *model.Graph, from, to int) {
	t.Helper()
	for seed := from; seed < to; seed++ {
		x, y := batch(g, 40-seed, uint64(seed))
		if _, err := enginetest.Train(e, x, y); err != nil {
			t.Fatal(err)
		}
	}
}

// Moments of 8 bits take a little more than a quarter of their memory, and the engine takes what its plan says.
func TestShortMomentsTakeAQuarter(t *testing.T) {
	g := testNetwork(t, "lenet5")
	s := enginetest.On(g, shortAdam)
	short, err1 := Backend{}.Footprint(s)
	p, err2 := PlanOf(s)
	s.StateFormat = ""
	wide, err3 := Backend{}.Footprint(s)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	saved := wide.Sum(footprint.Moments) - short.Sum(footprint.Moments)
	if share := float64(short.Sum(footprint.Moments)) / float64(wide.Sum(footprint.Moments)); share > 0.28 ||
		wide.Total()-short.Total() < saved*9/10 || short.Extra <= 0 {
		t.Errorf("%.3f of the moments, %v of %v in all, %g more work", share, short.Total(), wide.Total(), short.Extra)
	}
	if e := newEngine(t, g, shortAdam); len(e.mem.Values()) != p.Len {
		t.Errorf("%d values, planned %d", len(e.mem.Values()), p.Len)
	}
	for _, change := range []func(*engine.Spec){
		func(s *engine.Spec) { s.Exact = true }, func(s *engine.Spec) { s.Optimizer = sgd1 },
		func(s *engine.Spec) { s.Optimizer = disdel.Optimizer{Adagrad: &disdel.Adagrad{LearningRate: 1}} },
		func(s *engine.Spec) { s.Optimizer = disdel.Optimizer{LAMB: &disdel.LAMB{LearningRate: 1}} },
	} {
		s := enginetest.On(g, shortAdam)
		change(&s)
		if _, err := PlanOf(s); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%v", err)
		}
	}
}

// The digits are learned as with float32: over three seeds, the held-out accuracy is at most one point lower.
func TestShortMomentsLearnTheDigits(t *testing.T) {
	race.SkipSequential(t)
	in, err := dataset.Digits()
	if err != nil {
		t.Fatal(err)
	}
	g, err := model.Build(disdel.Network{Name: "digits-cnn", Input: []int{1, 8, 8}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	for name, optimizer := range map[string]disdel.Optimizer{
		"adam":     {Adam: &disdel.Adam{LearningRate: 0.002}},
		"adamw":    {AdamW: &disdel.Adam{LearningRate: 0.002, WeightDecay: 0.01}},
		"momentum": {SGD: &disdel.SGD{LearningRate: 0.05, Momentum: 0.9}},
	} {
		right := map[disdel.StateFormat]float64{}
		for _, format := range []disdel.StateFormat{"", disdel.StateInt8} {
			for seed := range int64(3) {
				s := engine.Spec{
					BatchSize: 64, Training: true, Optimizer: optimizer,
					StepMemory: disdel.StepMemory{StateFormat: format},
				}
				right[format] += learned(t, g, s, in.Train, seed) / 3
			}
		}
		if !(right[""] > 0.9) || right[disdel.StateInt8] < right[""]-0.01 {
			t.Errorf("%s: %.4f with float32, %.4f with 8 bits", name, right[""], right[disdel.StateInt8])
		}
	}
}

// learned trains for some epochs, and returns the share of the last 400 samples that are right.
func learned(t *testing.T, g *model.Graph, s engine.Spec, all dataset.Samples, seed int64) float64 {
	t.Helper()
	const epochs, held = 10, 400
	e := newEngine(t, g, s)
	if err := e.Init(disdel.Init{Seed: seed}); err != nil {
		t.Fatal(err)
	}
	rows := func(order []int) ([]float32, []int32) {
		x, y := make([]float32, 0, 64*len(order)), make([]int32, 0, len(order))
		for _, i := range order {
			for _, v := range all.U8[64*i:][:64] {
				x = append(x, float32(v)/16)
			}
			y = append(y, int32(all.Labels[i]))
		}
		return x, y
	}
	n := len(all.Labels) - held
	order := rand.New(rand.NewPCG(uint64(seed), 3))
	for range epochs {
		for part := range slices.Chunk(order.Perm(n), s.BatchSize) {
			x, y := rows(part)
			if _, err := enginetest.Train(e, x, y); err != nil {
				t.Fatal(err)
			}
		}
	}
	right := 0
	for i := n; i < n+held; i += 50 {
		part := make([]int, 50)
		for k := range part {
			part[k] = i + k
		}
		x, y := rows(part)
		_, correct, err := enginetest.Evaluate(e, x, y)
		if err != nil {
			t.Fatal(err)
		}
		right += correct
	}
	return float64(right) / held
}

// A step with moments in a file comes to the bits of one with moments in memory, on any number of threads, with
// micro-batches, clipping and idle taps. So does an engine that takes its state over piece by piece.
func TestPagedMomentsKeepTheBits(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	graphs := map[string]*model.Graph{"idle": idleNetwork(t)}
	for name, f := range someNetworks() {
		graphs[name] = build(t, name, f)
	}
	for name, g := range graphs {
		for _, change := range []func(*engine.Spec){
			func(*engine.Spec) {}, func(s *engine.Spec) { s.MicroBatch, s.ClipNorm = 16, 0.5 },
			func(s *engine.Spec) { s.Optimizer = disdel.Optimizer{Adagrad: &disdel.Adagrad{LearningRate: 0.01}} },
			func(s *engine.Spec) {
				s.Optimizer, s.ClipNorm = disdel.Optimizer{LAMB: &disdel.LAMB{LearningRate: 0.01, WeightDecay: 0.01}}, 0.5
			},
			func(s *engine.Spec) {
				s.Optimizer = disdel.Optimizer{RMSprop: &disdel.RMSprop{LearningRate: 0.001, Momentum: 0.9, WeightDecay: 0.01}}
			},
		} {
			s := shortAdam
			s.StateFormat = ""
			change(&s)
			memory := initialized(t, g, s)
			s.StateFormat, s.Threads = disdel.StatePaged, 3
			paged, later := initialized(t, g, s), newEngine(t, g, s)
			steps(t, memory, g, 0, 3)
			steps(t, paged, g, 0, 3)
			sameBits(t, name, engine.Copies(memory.State()), engine.Copies(paged.State()))
			to := later.State()
			for k, a := range paged.State() {
				for at := 0; at < a.Len(); at += 777 {
					part := make([]float32, min(777, a.Len()-at))
					if err := errors.Join(a.ReadAt(part, at), to[k].WriteAt(part, at)); err != nil {
						t.Fatal(err)
					}
				}
			}
			steps(t, memory, g, 3, 6)
			steps(t, later, g, 3, 6)
			sameBits(t, name+", resumed", engine.Copies(memory.State()), engine.Copies(later.State()))
			for _, e := range []*Engine{memory, later} {
				if err := e.Reset(engine.Moment); err != nil {
					t.Fatal(err)
				}
			}
			steps(t, memory, g, 0, 2)
			steps(t, later, g, 0, 2)
			sameBits(t, name+", reset", engine.Copies(memory.State()), engine.Copies(later.State()))
		}
	}
}

// Moments in a file take no memory of the plan, and their file goes with the engine.
func TestPagedMomentsAreNotInMemory(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	s := enginetest.On(testNetwork(t, "lenet5"), shortAdam)
	s.StateFormat = ""
	wide, err1 := Backend{}.Footprint(s)
	s.StateFormat = disdel.StatePaged
	paged, err2 := Backend{}.Footprint(s)
	e, err3 := New(s)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if n := paged.Sum(footprint.Moments); n != 0 || paged.Total() > wide.Total()-wide.Sum(footprint.Moments)*9/10 {
		t.Errorf("%v of moments, %v of %v", n, paged.Total(), wide.Total())
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 0 {
		t.Errorf("left behind: %v, %v", files, err)
	}
	s.Optimizer = sgd1
	if _, err := PlanOf(s); !errors.Is(err, disdel.Invalid) {
		t.Errorf("plain gradient descent: %v", err)
	}
}

// A disk without room for the moments is an error with the space that they need, before the first step.
func TestPagedMomentsOnAFullDisk(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := enginetest.On(testNetwork(t, "lenet5"), shortAdam)
	s.StateFormat = disdel.StatePaged
	e, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip("the system has no /dev/full")
	}
	own := e.pages.file
	e.pages.file = full
	e.pages.zero.Store(false)
	err = e.Reset(engine.Moment)
	x, y := batch(s.Graph, 8, 1)
	_, err2 := enginetest.Train(e, x, y)
	for _, err := range []error{err, err2} {
		if !errors.Is(err, disdel.NoSpace) || !strings.Contains(err.Error(), "of disk in") {
			t.Errorf("%v", err)
		}
	}
	e.pages.file = own
	full.Close()
}

// Moments that cannot be read do not pass as zeros: no engine takes the state that was saved, and the next step fails.
func TestPagedMomentsThatCannotBeRead(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := enginetest.On(testNetwork(t, "lenet5"), shortAdam)
	s.StateFormat = disdel.StatePaged
	e, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.pages.file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	for _, a := range engine.Of(e.State(), engine.Moment) {
		if err := a.Set(a.Copy()); a.Name != "step" && !errors.Is(err, disdel.Diverged) {
			t.Errorf("%s: %v", a.Name, err)
		}
	}
	x, y := batch(s.Graph, 8, 1)
	if _, err := enginetest.Train(e, x, y); !errors.Is(err, disdel.Unavailable) {
		t.Errorf("the step: %v", err)
	}
}
