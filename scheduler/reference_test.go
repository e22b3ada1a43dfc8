package scheduler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// An observation that is made of a round's activations has the time without evaluations, the parts of the slowest
// worker, the slowest aggregation of each level, the cost, the longest cold start and the failures.
func TestActivationsMakeAnObservation(t *testing.T) {
	draw := rand.New(rand.NewPCG(4, 20261129))
	for range 1000 {
		round := disdel.Round{
			Round: 3, Duration: 100 * sec, TrainLoss: 0.5, Loss: new(0.25), Accuracy: new(0.75), Missing: []int{1},
			Left: []int{0, 2},
		}
		want := disdel.Observation{
			Round: 3, Duration: 100 * sec, Loss: 0.5, HeldOut: round.Loss, Accuracy: round.Accuracy, Missing: 1, Left: 2,
		}
		var all []*disdel.Activation
		var compute, exchange [3]disdel.Millis
		var levels [2]disdel.Millis
		for range draw.IntN(10) {
			a := drawnFailure(draw)
			a.WaitTime, a.Duration, a.Cold = someSec(draw, 0, 2), someSec(draw, 1, 2, 5), draw.IntN(3) == 0
			a.InitTime, a.Member, a.Level = someSec(draw, 0, 1), draw.IntN(3), draw.IntN(2)
			a.Phases = disdel.Usage{Phases: map[string]disdel.Millis{
				"compute": someSec(draw, 1, 2), "exchange": someSec(draw, 0, 1),
			}}.Phases
			all = append(all, &a)
			if a.Task == disdel.TaskEvaluate {
				want.Duration -= a.WaitTime + a.Duration
				continue
			}
			want.Cost += a.HeldGBs()
			if a.Cold {
				want.Cold = max(want.Cold, a.InitTime, 1)
			}
			if a.Outcome.Failed() {
				want.Retried++
			}
			if a.Task == disdel.TaskAggregate {
				levels[a.Level] = max(levels[a.Level], a.Duration)
				continue
			}
			want.Limit = max(want.Limit, a.Limits.Memory)
			compute[a.Member] += a.Phases["compute"]
			exchange[a.Member] += a.Phases["exchange"]
		}
		want.Reduce, want.Compute = levels[0]+levels[1], slices.Max(compute[:])
		for w := range compute {
			if compute[w] == want.Compute {
				want.Exchange = max(want.Exchange, exchange[w])
			}
		}
		if diff := gocmp.Diff(want, fromActivations(round, all)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// The observations of earlier jobs are those of jobs that succeeded with the same data and batch, the oldest job first,
// each up to its last whole epoch.
func TestPastObservationsAreThoseOfLikeJobs(t *testing.T) {
	draw := rand.New(rand.NewPCG(5, 20261129))
	for range 500 {
		job := disdel.Job{}
		job.Training.BatchSize = 8
		data := disdel.DataInfo{Checksum: "a"}
		var records []disdel.Record
		var want []disdel.Observation
		for range draw.IntN(4) {
			r := disdel.Record{Job: job}
			r.Status = oneOf(draw, disdel.StatusSucceeded, disdel.StatusSucceeded, disdel.StatusFailed)
			r.Data.Checksum = oneOf(draw, "a", "a", "b")
			r.Job.Training.BatchSize = oneOf(draw, 8, 8, 16)
			var whole, seen []disdel.Observation
			epoch := 0.0
			for range draw.IntN(5) {
				epoch += oneOf(draw, 0.5, 1)
				o := disdel.Observation{Epoch: epoch, Rows: draw.IntN(100), Duration: 1 + someSec(draw, 1, 2)}
				r.Rounds = append(r.Rounds, disdel.Round{Observed: &o})
				if seen = append(seen, o); epoch == math.Trunc(epoch) {
					whole = slices.Clone(seen)
				}
			}
			records = append(records, r)
			if r.Status == disdel.StatusSucceeded && r.Data.Checksum == "a" && r.Job.Training.BatchSize == 8 {
				want = append(slices.Clone(whole), want...) // records are newest first
			}
		}
		if diff := gocmp.Diff(want, PastObservations(records, job, data)); len(want) > 0 && diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// An epoch is the rounds up to a whole number of epochs. Its times, rows and costs are sums. Its setting is that of its
// last round. It is disturbed if any of its rounds started cold, lost a worker or repeated one.
func TestEpochsAreSumsOfRounds(t *testing.T) {
	draw := rand.New(rand.NewPCG(6, 20261129))
	for range 1000 {
		var seen, part []disdel.Observation
		var want []epoch
		for range draw.IntN(8) {
			o := disdel.Observation{
				Setting: disdel.Setting{Workers: 1 + draw.IntN(3), Memory: someMB(draw, 0, 1)}, Limit: someMB(draw, 1, 2),
				Duration: someSec(draw, 0, 0, 1, 2), Rows: draw.IntN(4), Compute: someSec(draw, 1, 2), Cost: float64(draw.IntN(3)),
				Reduce: someSec(draw, 0, 1), Exchange: someSec(draw, 0, 1), Loss: float64(draw.IntN(3)),
				Retried: oneOf(draw, 0, 0, 0, 1), Missing: oneOf(draw, 0, 0, 0, 1), Left: oneOf(draw, 0, 0, 0, 2),
				Cold: oneOf(draw, 0, 0, 0, sec), Epoch: float64(len(seen)) + oneOf(draw, 0, 0.5), HeldOut: new(draw.Float64()),
			}
			seen, part = append(seen, o), append(part, o)
			if o.Epoch != math.Trunc(o.Epoch) {
				continue
			}
			e := epoch{
				workers: o.Setting.Workers, memory: o.Setting.Memory, limit: o.Limit, until: o.Epoch, rounds: len(part),
				heldOut: o.HeldOut,
			}
			for _, p := range part {
				e.duration, e.rows, e.compute = e.duration+p.Duration, e.rows+p.Rows, e.compute+p.Compute
				e.exchange, e.reduce, e.cost = e.exchange+p.Exchange, e.reduce+p.Reduce, e.cost+p.Cost
				e.losses, e.remaining, e.cold = e.losses+p.Loss*float64(p.Rows), e.remaining+p.Left, e.cold+p.Cold
				e.failed = e.failed || p.Retried+p.Missing > 0
				e.disturbed = e.disturbed || p.Retried+p.Missing+p.Left > 0 || p.Cold > 0
			}
			if part = nil; e.duration > 0 {
				want = append(want, e)
			}
		}
		if diff := gocmp.Diff(want, epochs(seen), gocmp.AllowUnexported(epoch{})); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// A cell is on the front if no other one is as good in both objectives and better in one.
func TestTheFrontIsOfCellsThatNoneBeats(t *testing.T) {
	draw := rand.New(rand.NewPCG(7, 20261129))
	for range 1000 {
		cells := make([]Cell, 1+draw.IntN(6))
		for i := range cells {
			cells[i].Memory.Likely = someMB(draw, 1, 2, 3)
			if draw.IntN(4) > 0 {
				cells[i].Forecast = &disdel.Forecast{}
				cells[i].Forecast.Duration.Likely, cells[i].Forecast.Cost.Likely = someSec(draw, 1, 2, 3), float64(draw.IntN(3))
			}
		}
		for _, against := range []Objective{AgainstCost, AgainstMemory} {
			other := func(c Cell) float64 {
				if against == AgainstMemory {
					return float64(c.Memory.Likely)
				}
				return c.Forecast.Cost.Likely
			}
			for i, c := range cells {
				front := c.Forecast != nil
				for _, d := range cells {
					if !front || d.Forecast == nil {
						continue
					}
					time, than := d.Forecast.Duration.Likely, c.Forecast.Duration.Likely
					beats := time < than && other(d) <= other(c) || time == than && other(d) < other(c)
					front = !beats
				}
				if got := onFront(cells, i, against); got != front {
					t.Fatalf("cell %d of %+v by %s: %t", i, cells, against, got)
				}
			}
		}
	}
}

// Another memory is measured within the platform's, the pool's and the job's bounds, and at most twice. More is tried
// while it is faster, and less while it is no slower.
func TestAnotherMemoryIsTriedWithinBounds(t *testing.T) {
	mb := func(n disdel.Bytes) disdel.Bytes { return n * mega }
	type known = map[disdel.Bytes]float64
	one := known{mb(100): 1}
	for i, c := range []struct {
		own       disdel.Bytes
		slower    known
		estimated bool
		tried     map[disdel.Bytes]int
		bounds    Bounds
		workers   int
		want      disdel.Bytes
	}{
		{own: mb(100), slower: nil, want: 0},
		{own: mb(100), slower: one, want: mb(200)},
		{own: mb(100), slower: one, bounds: Bounds{HighestMemory: mb(200)}, want: mb(200)},
		{own: mb(100), slower: one, bounds: Bounds{HighestMemory: mb(200) - 1}, want: mb(50)},
		{own: mb(100), slower: one, bounds: Bounds{HighestMemory: mb(100), LeastMemory: mb(50)}, want: mb(50)},
		{own: mb(100), slower: one, bounds: Bounds{HighestMemory: mb(100), LeastMemory: mb(50) + 1}, want: 0},
		{own: mb(100), slower: one, bounds: Bounds{HighestMemory: mb(100), Estimate: mb(50)}, want: mb(50)},
		{own: mb(100), slower: one, bounds: Bounds{HighestMemory: mb(100), Estimate: mb(50) + 1}, want: 0},
		{own: mb(100), slower: one, bounds: Bounds{HighestMemory: mb(100)}, estimated: true, want: 0},
		{own: mb(100), slower: one, bounds: Bounds{Pool: mb(400)}, workers: 2, want: mb(200)},
		{own: mb(100), slower: one, bounds: Bounds{Pool: mb(400) - 1}, workers: 2, want: mb(50)},
		{own: mb(100), slower: one, bounds: Bounds{Pool: mb(200)}, want: mb(200)},
		{own: mb(100), slower: one, tried: map[disdel.Bytes]int{mb(200): 1}, want: mb(200)},
		{own: mb(100), slower: one, tried: map[disdel.Bytes]int{mb(200): 2}, want: mb(50)},
		{own: mb(100), slower: one, tried: map[disdel.Bytes]int{mb(200): 2, mb(50): 1}, want: mb(50)},
		{own: mb(100), slower: one, tried: map[disdel.Bytes]int{mb(200): 2, mb(50): 2}, want: 0},
		{own: mb(100), slower: known{mb(100): 1, mb(200): 0.9}, want: mb(400)},
		{own: mb(100), slower: known{mb(100): 1, mb(200): 1}, want: mb(50)},
		{own: mb(200), slower: known{mb(100): 1, mb(200): 1}, want: mb(400)},
		{own: mb(200), slower: known{mb(100): 1, mb(200): 1}, bounds: Bounds{HighestMemory: mb(200)}, want: mb(50)},
		{own: mb(200), slower: known{mb(100): 1.1, mb(200): 1}, bounds: Bounds{HighestMemory: mb(200)}, want: 0},
		{own: mb(101), slower: known{mb(101): 1}, bounds: Bounds{HighestMemory: mb(101)}, want: mb(50)},
		{own: mb(1), slower: known{mb(1): 1}, bounds: Bounds{HighestMemory: mb(1)}, want: 0},
	} {
		m := memories{own: c.own, slower: c.slower, estimated: c.estimated, tried: c.tried}
		if got := m.another(c.bounds, c.workers); got != c.want {
			t.Errorf("case %d: %v is tried, want %v", i, got, c.want)
		}
	}
}

// A memory is better if it is as fast and smaller, or without a budget if the other one takes over 1.2 times as long.
func TestABetterMemoryIsFasterOrSmaller(t *testing.T) {
	type known = map[disdel.Bytes]float64
	for i, c := range []struct {
		slower known
		than   disdel.Bytes
		budget bool
		want   disdel.Bytes // 0: none
	}{
		{known{1: 1, 2: 0.8}, 2, false, 0},
		{known{1: 1, 2: 0.8}, 1, false, 2},
		{known{1: 1, 2: 0.8}, 1, true, 0},
		{known{1: 1.2, 2: 1}, 1, false, 0},
		{known{1: 1, 2: 1}, 2, true, 1},
		{known{1: 1, 2: 1}, 1, false, 0},
		{known{1: 0.9, 2: 0.9, 4: 0.9}, 4, true, 1},
		{known{1: 0.9, 2: 0.8, 4: 0.9}, 4, true, 2},
	} {
		m := memories{slower: c.slower}
		if got, ok := m.better(c.than, c.budget); got != c.want || ok != (c.want > 0) {
			t.Errorf("case %d: %v, %t; want %v", i, got, ok, c.want)
		}
	}
}

// Probes may lose a tenth of the job's time, with the epochs that are left. With fewer than two left there are none.
func TestProbesMayLoseATenth(t *testing.T) {
	for _, c := range []struct {
		left, lost float64
		may        bool
	}{
		{0, 10, true}, {0, 10.01, false}, {1.9, 0, false}, {2, 15, true}, {2, 15.01, false}, {4, 20, true}, {4, 20.01, false},
	} {
		in := Input{Goal: Goal{Epochs: c.left}}
		for n := range 4 {
			in.Seen = append(in.Seen, disdel.Observation{Epoch: float64(n + 1), Duration: sec})
		}
		s := speeds{spent: 100, lost: c.lost}
		if got := s.mayProbe(in); got != c.may {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// Another memory is not tried for fewer than four epochs, nor if probes with a cold start lose more than a tenth of the
// time, nor if it costs more than a tenth of the budget.
func TestWhenAnotherMemoryIsNotTried(t *testing.T) {
	for _, c := range []struct {
		left, lost, budget float64
		why                string
	}{
		{4, 6, 0, ""},
		{3.9, 6, 0, "too few epochs are left"},
		{4, 6.01, 0, "probes have lost what they may"},
		{4, 0, 200, ""},
		{4, 0, 199.9, "it would cost more of the budget than probes may"},
	} {
		s := speeds{spent: 60, rows: 1000, lost: c.lost, coldest: 4, price: 0.5, memories: memories{own: mega}}
		in := Input{Goal: Goal{Epochs: c.left, Cost: c.budget}}
		if got := s.keepsMemory(in, timed{2, 10}, 2*mega); got != c.why {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// The second number of workers is twice the first within the bounds. At the maximum it is half of it, and so it is with
// as many workers as processors, unless most of the time passes between rounds.
func TestTheSecondNumberOfWorkers(t *testing.T) {
	for i, c := range []struct {
		first, least, most, processors int
		several                        bool
		between, lost                  float64
		want                           int
	}{
		{first: 3, least: 1, most: 8, want: 6},
		{first: 3, least: 1, most: 5, want: 5},
		{first: 8, least: 1, most: 8, want: 4},
		{first: 8, least: 6, most: 8, want: 6},
		{first: 1, least: 1, most: 1, want: 1},
		{first: 3, least: 1, most: 8, processors: 4, want: 6},
		{first: 4, least: 1, most: 8, processors: 4, want: 2},
		{first: 4, least: 1, most: 8, processors: 4, several: true, between: 0.5, want: 2},
		{first: 4, least: 1, most: 8, processors: 4, several: true, between: 0.51, want: 8},
		{first: 4, least: 1, most: 8, processors: 4, between: 0.51, want: 2},
		{first: 3, least: 1, most: 8, lost: 10.01, want: 3},
	} {
		s := speeds{
			bounds: Bounds{Least: c.least, Most: c.most, Processors: c.processors}, mean: map[int]float64{c.first: 7},
			several: c.several, between: c.between, spent: 100, lost: c.lost,
		}
		if got := s.second(Input{}); got.workers != c.want {
			t.Errorf("case %d: %d workers, want %d: %s", i, got.workers, c.want, got.why)
		}
	}
}

// The terms of the law: at most as many workers as processors share the work, and a third of the fixed part grows with
// those beyond. With several rounds an epoch, more workers have fewer rounds.
func TestTheTermsOfTheLaw(t *testing.T) {
	for _, c := range []struct {
		workers, processors int
		rounds              bool
		want                [3]float64
	}{
		{0, 0, false, [3]float64{1, 1, 1}},
		{4, 0, false, [3]float64{1, 0.25, 4}},
		{4, 4, false, [3]float64{1, 0.25, 4}},
		{8, 4, false, [3]float64{1 + 1/3.0, 0.25, 8}},
		{8, 4, true, [3]float64{(1 + 1/3.0) / 8, 0.25, 1}},
	} {
		got := speedConditions{Processors: c.processors, Rounds: c.rounds}.terms(c.workers)
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-12 {
				t.Errorf("%+v: %v", c, got)
			}
		}
	}
}

// Times that follow a law are those of the fitted law, within a millionth, measured or not.
func TestTheFittedLawIsTheTimesOwn(t *testing.T) {
	draw := rand.New(rand.NewPCG(8, 20261129))
	for range 300 {
		law := speedLaw{oneOf(draw, 0, 1, 3.0), oneOf(draw, 4, 20.0), oneOf(draw, 0, 0.1, 0.5)}
		conditions := speedConditions{Processors: oneOf(draw, 0, 2, 8)}
		var at []timed
		for _, w := range []int{1, 2, 4, 8, 16} {
			at = append(at, timed{w, law.at(w, conditions)})
		}
		got, ok := fitSpeed(at, conditions)
		for w := 1; w <= 32; w++ {
			if want := law.at(w, conditions); !ok || math.Abs(got.at(w, conditions)-want) > 1e-6*want {
				t.Fatalf("%+v, %+v is fitted as %+v: %g with %d workers, want %g", law, conditions, got, got.at(w, conditions), w,
					want)
			}
		}
	}
	if _, ok := fitSpeed([]timed{{2, 1}, {2, 1.1}}, speedConditions{}); ok {
		t.Error("one number of workers determines a law")
	}
}

// A network with fewer cuts than the job's stages is refused with the most stages that it has. One without cuts says
// whether that is for its frozen layers.
func TestStagesThatCannotBeCutAreRefused(t *testing.T) {
	in := planInput(t)
	most := len(in.Graph.Cuts()) + 1
	refusal := func(in PlanInput, stages int) *disdel.Error {
		in.Job.Distribution.Stages = stages
		b := planBuilder{PlanInput: in}
		if err := b.checkStages(); err != nil {
			return disdel.AsError(err)
		}
		return nil
	}
	if e := refusal(in, most); e != nil {
		t.Errorf("%d stages of %d: %v", most, most, e)
	}
	e := refusal(in, most+1)
	if e == nil || !strings.Contains(e.Msg, "Residual blocks are not cut") ||
		e.Hint != fmt.Sprintf("--set distribution.stages=%d", most) || len(e.Changes) != 1 {
		t.Errorf("%d stages of %d: %+v", most+1, most, e)
	}
	single, err := model.Build(disdel.Network{
		Input: []int{1, 2, 2}, Classes: 2,
		Layers: []disdel.Layer{{Kind: "flatten"}, {Kind: "dense", Units: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	in.Graph = single
	if e := refusal(in, 2); e == nil || !strings.Contains(e.Msg, "one piece") ||
		e.Hint != "leave distribution.stages out" {
		t.Errorf("a network of one layer: %+v", e)
	}
	if e := refusal(in, 1); e != nil {
		t.Errorf("one stage: %v", e)
	}
	frozen, err := model.Build(disdel.Network{
		Input: []int{1, 2, 2}, Classes: 2, Layers: []disdel.Layer{
			{Kind: "flatten"}, {Kind: "dense", Units: 3, Name: "first"}, {Kind: "dense", Units: 2, Name: "last"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := frozen.Freeze(disdel.Init{Weights: "x", Freeze: "first"}); err != nil {
		t.Fatal(err)
	}
	in.Graph = frozen
	if e := refusal(in, 2); e == nil || !strings.Contains(e.Msg, "needs layers that are trained") ||
		!strings.Contains(e.Hint, "freeze fewer layers") {
		t.Errorf("frozen layers: %+v", e)
	}
}
