package estimator

import (
	"math"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// lenetJob is the job that the tests estimate.
func lenetJob(t *testing.T) Input {
	return Input{Graph: lenet(t), BatchSize: 64, Rows: 30_000, SampleBytes: 784, Epochs: 1, Optimizer: adam}
}

// ran is a record of a job of a network with one train action by two workers, whose estimate was likely and whose peaks
// were so many times that.
func ran(network string, likely disdel.Bytes, times ...float64) disdel.Record {
	r := disdel.Record{Job: disdel.Job{Model: disdel.Model{Name: network}}}
	e := disdel.Estimate{Method: MethodPlanned, Likely: likely, Margin: disdel.MB, Total: likely + disdel.MB}
	r.Plan.Actions = []disdel.ActionPlan{{Task: disdel.TaskTrain, Estimate: e}}
	for member, x := range times {
		for round := range 2 { // the first round's peak is below
			r.Activations = append(r.Activations, disdel.Activation{
				Invocation: disdel.Invocation{Task: disdel.TaskTrain, Round: round, Member: member},
				Outcome:    disdel.OutcomeSuccess, Peak: disdel.Bytes(float64(likely) * x * (0.8 + 0.2*float64(round))),
			})
		}
	}
	return r
}

func repeat(n int, r disdel.Record) []disdel.Record {
	out := make([]disdel.Record, n)
	for i := range out {
		out[i] = r
	}
	return out
}

func learn(t *testing.T, in Input, past ...disdel.Record) disdel.Estimate {
	t.Helper()
	e, err := New(backends.Standard(nil), MethodLearned, 0, past)
	if err != nil {
		t.Fatal(err)
	}
	return e.Train(in)
}

// The second job of a kind is nearly exact, and the more jobs there were, the narrower its interval.
func TestLearnedIsNearlyExactTheSecondTime(t *testing.T) {
	in := lenetJob(t)
	plan := planned.Train(in)
	width := plan.High - plan.Low
	for _, n := range []int{1, 3, 20} {
		e := learn(t, in, repeat(n, ran("lenet5", plan.Likely, 1.06, 1.06))...)
		if got := float64(e.Likely) / float64(plan.Likely); math.Abs(got-1.06) > 0.006 || math.Abs(e.Ratio-got) > 1e-9 {
			t.Errorf("after %d jobs: %.4f of the plan, ratio %.4f, and 1.06 was measured", n, got, e.Ratio)
		}
		if e.Method != MethodLearned || e.Samples != n || e.High-e.Low >= width {
			t.Errorf("after %d jobs: %s from %d samples, an interval of %v after %v", n, e.Method, e.Samples, e.High-e.Low,
				width)
		}
		if e.Likely != e.Training+e.Package+e.Shard+e.Model || e.Total != e.Likely+e.Margin || e.Training != e.Parameters+
			e.Activations+e.Misc+
			e.Workspace {
			t.Errorf("it does not add up: %+v", e)
		}
		width = e.High - e.Low
	}
}

// What was learned before is no part of what is learned from: a ratio is of the plan alone.
func TestLearnedDoesNotCompound(t *testing.T) {
	in := lenetJob(t)
	plan := planned.Train(in)
	r := ran("lenet5", plan.Likely, 1.1)
	a := &r.Plan.Actions[0].Estimate
	a.Likely, a.Ratio = disdel.Bytes(1.1*float64(plan.Likely)), 1.1
	if e := learn(t, in, repeat(9, r)...); math.Abs(e.Ratio-1.1) > 0.01 {
		t.Errorf("ratio %.3f after estimates of 1.1 that were right", e.Ratio)
	}
}

// Without enough jobs that resemble it nothing is learned, and the estimate says how many are missing.
func TestTooFewJobsTeachNothing(t *testing.T) {
	in := lenetJob(t)
	plan := planned.Train(in)
	failed := ran("lenet5", plan.Likely, 2)
	for i := range failed.Activations {
		failed.Activations[i].Outcome = disdel.OutcomeOutOfMemory
	}
	paper := ran("lenet5", plan.Likely, 2)
	paper.Plan.Actions[0].Estimate.Method = MethodPaper
	gorgonia := ran("lenet5", plan.Likely, 2)
	gorgonia.Job.Training.Backend = disdel.BackendGorgonia
	for name, past := range map[string][]disdel.Record{
		"none": nil, "two of another network": repeat(2, ran("mlp", plan.Likely*5/4, 1.3)),
		"far larger ones": repeat(9, ran("vgg16", 40*plan.Likely, 1.3)),
		"failures":        repeat(9, failed), "the paper's": repeat(9, paper), "another backend's": repeat(9, gorgonia),
	} {
		e := learn(t, in, past...)
		if e.Likely != plan.Likely || e.Total != plan.Total || e.Ratio != 0 || e.Samples != 0 || e.Method != MethodPlanned {
			t.Errorf("%s: %v, ratio %v of %d, %s", name, e.Likely, e.Ratio, e.Samples, e.Method)
		}
		if len(e.Notes) == 0 || !strings.Contains(e.Notes[len(e.Notes)-1], "it takes 5") {
			t.Errorf("%s: nothing says what is missing: %q", name, e.Notes)
		}
	}
}

// The nearest group speaks: its own network before its family, its family before other networks of its size.
func TestTheNearestGroupSpeaks(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "resnet34", Input: []int{3, 32, 32}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Graph: g, BatchSize: 32, Rows: 100, SampleBytes: 3072, Epochs: 1, Optimizer: adam}
	likely := planned.Train(in).Likely
	var past, family []disdel.Record
	for i := range 50 { // each of a kind of its own
		larger := math.Pow(1.011, float64(i))
		past = append(past, ran("vgg16-cifar", disdel.Bytes(0.8*larger*float64(likely)), 0.72))
		family = append(family, ran("resnet18", disdel.Bytes(3*larger*float64(likely)), 1.1))
	}
	network := repeat(50, ran("resnet34", 5*likely, 1.2))
	for _, c := range []struct {
		more []disdel.Record
		want float64
	}{{nil, 0.72}, {family, 1.1}, {network, 1.2}} {
		past = append(past, c.more...)
		if e := learn(t, in, past...); math.Abs(e.Ratio-c.want) > 0.06 {
			t.Errorf("ratio %.3f after %d records, want about %.2f", e.Ratio, len(past), c.want)
		}
	}
}

// However many jobs of one kind ran, they are one witness of what another network needs: a thousand tiny ones of
// somebody else had taken an eighth off the estimate of a network of the same size.
func TestManyOfAKindAreOneWitness(t *testing.T) {
	in := lenetJob(t)
	plan := planned.Train(in)
	past := repeat(100, ran("mlp", plan.Likely*9/10, 0.85))
	for i := range 3 {
		past = append(past, ran("mlp", plan.Likely*disdel.Bytes(11+i)/10, 1))
	}
	if e := learn(t, in, past...); e.Ratio != 0 || e.Likely != plan.Likely {
		t.Errorf("four kinds of jobs teach a ratio of %.3f", e.Ratio)
	}
	past = append(past, ran("mlp", plan.Likely*3/2, 1))
	if e := learn(t, in, past...); math.Abs(e.Ratio-1) > 0.01 {
		t.Errorf("of five kinds, one of which had a hundred jobs, a ratio of %.3f", e.Ratio)
	}
}

// One job that measured nonsense does little: alone, and among others nothing.
func TestAnOutlierDoesLittle(t *testing.T) {
	in := lenetJob(t)
	plan := planned.Train(in)
	alone := learn(t, in, ran("lenet5", plan.Likely, 3, 3))
	if alone.Ratio > 1.12 {
		t.Errorf("one job of three times the plan makes the next %.2f times as large", alone.Ratio)
	}
	good := repeat(4, ran("lenet5", plan.Likely, 1.03))
	without, with := learn(t, in, good...), learn(t, in, append(good, ran("lenet5", plan.Likely, 0.2))...)
	if math.Abs(with.Ratio-without.Ratio) > 0.01 {
		t.Errorf("among four good jobs it moves the ratio from %.3f to %.3f", without.Ratio, with.Ratio)
	}
	other := ran("lenet5", 3*plan.Likely, 9) // of the network, and of no job of this kind
	if all := learn(t, in, repeat(50, other)...); all.Ratio > 1.5 {
		t.Errorf("a ratio of %.1f is no correction", all.Ratio)
	}
}

// A plan that is wrong for a kind of jobs is got over after two of them, however wrong it was, and whatever the second
// was planned at.
func TestTwoJobsGetOverAWrongPlan(t *testing.T) {
	in := lenetJob(t)
	plan := planned.Train(in)
	for _, wrong := range []float64{0.4, 1.5, 2.2, 4} {
		first := ran("lenet5", plan.Likely, wrong)
		planned := learn(t, in, first)
		second := ran("lenet5", plan.Likely, wrong*1.01)
		second.Plan.Actions[0].Estimate = planned
		third := learn(t, in, second, first)
		if err := float64(third.Likely)/float64(plan.Likely)/wrong - 1; math.Abs(err) > 0.03 {
			t.Errorf("a plan that was %.1f times too small is off by %.1f %% after two jobs", wrong, 100*err)
		}
		if e := learn(t, in, second, first, ran("lenet5", plan.Likely, 1),
			ran("lenet5", plan.Likely, wrong)); math.Abs(float64(e.Likely)/float64(plan.Likely)/wrong-1) > 0.5 {
			t.Errorf("one job of four that was as planned brings %.2f back for %.2f", e.Ratio, wrong)
		}
	}
	if e := learn(t, in, ran("lenet5", plan.Likely, 1), ran("lenet5", plan.Likely, 3)); e.Ratio > 1.5 {
		t.Errorf("two jobs that disagree give a ratio of %.2f", e.Ratio)
	}
}

// Own layers have no name: jobs of the same size are of the same kind only if their plans are the same.
func TestOwnLayersAreToldApartByTheirPlans(t *testing.T) {
	in := lenetJob(t)
	in.Graph.Name = layered
	plan := planned.Train(in)
	same, other := ran("", plan.Likely, 2), ran("", plan.Likely, 2)
	for i, r := range []*disdel.Record{&same, &other} {
		e := &r.Plan.Actions[0].Estimate
		e.Parameters, e.Activations, e.Model = plan.Parameters+disdel.Bytes(i)*disdel.MB,
			plan.Activations-disdel.Bytes(i)*disdel.MB, plan.Model
	}
	if e := learn(t, in, same, same); math.Abs(e.Ratio-2) > 0.02 {
		t.Errorf("two of the same: %.2f", e.Ratio)
	}
	if e := learn(t, in, other, other); e.Ratio != 0 {
		t.Errorf("two of the same size: %.2f", e.Ratio)
	}
}

// Networks of a family learn from each other: the family is the letters that a name begins with, of the whole alphabet.
func TestTheFamilyOfANetwork(t *testing.T) {
	for network, want := range map[string]string{
		"resnet50-keras": "resnet", "vgg16": "vgg", "zfnet8": "zfnet", "alexnet": "alexnet", "": "",
	} {
		if got := familyOf(network); got != want {
			t.Errorf("%q is of family %q, want %q", network, got, want)
		}
	}
}
