package service

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/scheduler"
)

// What a job needs of the store follows from its network and from what its workers keep.
func TestStoreNeed(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	values := 0
	for _, p := range g.Params() {
		values += model.Shape(p.Shape).Len()
	}
	weights := disdel.Bytes(4 * values)
	adam := disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.001}}
	for name, c := range map[string]struct {
		a    disdel.Aggregation
		want aggregator.Need
	}{
		"reset": {disdel.Aggregation{}, aggregator.Need{Workers: 4, Update: weights, Reference: weights, Outputs: 2}},
		"average": {
			disdel.Aggregation{OptimizerState: disdel.StateAverage},
			aggregator.Need{Workers: 4, Update: 3 * weights, Reference: 3 * weights, Outputs: 2},
		},
		"keep": {
			disdel.Aggregation{OptimizerState: disdel.StateKeep},
			aggregator.Need{Workers: 4, Update: weights, Reference: weights, Outputs: 2, State: 2 * weights},
		},
		"bfloat16": {
			disdel.Aggregation{Wire: disdel.WireBfloat16},
			aggregator.Need{Workers: 4, Update: weights / 2, Reference: weights, Outputs: 2, State: weights},
		},
	} {
		var job disdel.Job
		job.Training.Optimizer, job.Distribution.Aggregation = adam, c.a
		if diff := cmp.Diff(c.want, storeNeed(job, disdel.Plan{Workers: 4, Levels: scheduler.Tree(4, 2)}, g)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Stages have parts of an update, and pass the values of a step.
func TestStoreNeedOfStages(t *testing.T) {
	job := chained(t, "distribution.workers=3")
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	plan := disdel.Plan{Workers: 6, Levels: scheduler.Tree(3, 2), Stages: []disdel.PlannedStage{{Passes: 1000}, {}}}
	n := storeNeed(job, plan, g)
	if want := disdel.Bytes(3 * 512 * 1000); n.Passed != want || n.Update != n.Reference/2 {
		t.Errorf("%+v", n)
	}
	if text := n.String(); !strings.HasPrefix(text, "1.46 MB that stages pass in a step, ") {
		t.Error(text)
	}
}

// The stage of an embedding sends its weight to the stage of the layer that shares it. Nothing is sent within a stage.
func TestStoreNeedOfASharedWeight(t *testing.T) {
	job := chained(t, "distribution.workers=3")
	b := model.NewBuilder("tied", model.Shape{6})
	tokens := b.Embedding("tokens", 0, 50, 8, false)
	b.TiedDense("head", b.Dense("hidden", tokens, 8), tokens)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cut    int
		passed disdel.Bytes
	}{{tokens + 1, 2*512*1000 + 2*4*50*8}, {tokens, 2 * 512 * 1000}} {
		plan := disdel.Plan{Workers: 4, Levels: scheduler.Tree(2, 2), Stages: []disdel.PlannedStage{
			{From: 0, To: c.cut, Passes: 1000}, {From: c.cut, To: len(g.Nodes)},
		}}
		if n := storeNeed(job, plan, g); n.Passed != c.passed {
			t.Errorf("cut at node %d: %v pass, want %v", c.cut, n.Passed, c.passed)
		}
	}
}

// What the steps of a round keep in the store is counted before the job: every delta of the longest round, as large as
// its batch can make it.
func TestStoreNeedOfSteps(t *testing.T) {
	pmf, _ := model.FindSparse("pmf")
	data := disdel.DataInfo{
		Sample: []int{150}, Classes: 1, Train: 1000,
		Sparse: &disdel.SparseData{Entries: 2000, Most: 2, Ones: true, Users: 100, Items: 50},
	}
	g, err := model.Build(pmf.Describe(data, 4, disdel.Init{}))
	if err != nil {
		t.Fatal(err)
	}
	var job disdel.Job
	job.Training.BatchSize = 30
	job.Training.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}}
	plan := disdel.Plan{
		Workers: 2, Levels: scheduler.Tree(2, 2), Epochs: 3, Shards: []disdel.RowRange{{End: 500}, {Start: 500, End: 1000}},
	}
	if n := storeNeed(job, plan, g); n.Deltas != 0 {
		t.Errorf("%+v of a job that exchanges nothing inside rounds", n)
	}
	job.Distribution.Exchange = &disdel.Exchange{}
	n := storeNeed(job, plan, g)
	if steps := 3 * 17; n.Deltas != 2*steps { // 500 rows are 17 batches of 30
		t.Errorf("%d deltas, want %d", n.Deltas, 2*steps)
	}
	if n.Last > 100 {
		t.Errorf("%v at the end, where nothing is owed", n.Last)
	}
	if values := disdel.Bytes(60 * 5); n.Delta < 4*values || n.Delta > 6*values {
		t.Errorf("%v each, of 60 rows of 5 values", n.Delta)
	}
	job.Distribution.Exchange.Threshold = 0.7
	if last, all := storeNeed(job, plan, g).Last, disdel.Bytes(4*150*5); last < all || last > 2*all {
		t.Errorf("%v at the end, where all weights may be owed, which take %v", last, all)
	}
	job.Distribution.Exchange.Values = disdel.WireInt8
	if narrow := storeNeed(job, plan, g).Delta; narrow >= n.Delta/2 {
		t.Errorf("int8 has %v, float32 %v", narrow, n.Delta)
	}
}
