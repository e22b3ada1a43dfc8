package estimator

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

func lenet(t testing.TB) *model.Graph {
	t.Helper()
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var adam = disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.001}}

// Eq. 1 to 5 for LeNet-5, batch 64, 50 epochs, 30,000 rows of 784 bytes, by hand:
//
//	t_par = 61,706   m_par = 4 x 61,706 = 246,824
//	t_act = 6,518    m_act = 2 x 64 x 6,518 = 834,304
//	m_misc = 28 x 28 x 1 x 50 = 39,200
//	fit = 4 x (246,824 + 834,304 + 39,200) = 4,481,312
//	dta = 30,000 x 784 = 23,520,000   mod = 4 x 61,706 = 246,824   saf = 256 MB
func TestPaperEquations1To5(t *testing.T) {
	e := Paper(Input{Graph: lenet(t), Batch: 64, Rows: 30_000, SampleBytes: 784, Epochs: 50, Optimizer: adam})
	for name, c := range map[string]struct{ got, want disdel.Bytes }{
		"parameters (Eq. 3)": {e.Parameters, 4 * 246_824}, "activations (Eq. 4)": {e.Activations, 4 * 834_304}, "misc (Eq. 5)": {e.Misc, 4 * 39_200},
		"fit (Eq. 2)": {e.Fit, 4_481_312}, "dta": {e.Dta, 23_520_000}, "mod": {e.Mod, 246_824}, "saf": {e.Saf, 256 << 20},
		"m_a (Eq. 1)": {e.Total, 4_481_312 + Default.Package + 23_520_000 + 246_824 + 256<<20},
	} {
		if c.got != c.want {
			t.Errorf("%s = %d, want %d", name, c.got, c.want)
		}
	}
	if len(e.Notes) == 0 || !strings.Contains(e.Notes[0], "epochs") {
		t.Error("nothing says that Eq. 5 is computed as printed")
	}
}

// III-B.1: c_d starts at 2; while m_e > M it grows by ceil((m_e - M) / M). With 10 MB fixed, 90 MB of data and M = 20 MB:
// 2 containers need 55 MB: add ceil(35/20) = 2; 4 need 32.5 MB: add 1; 5 need 28 MB: add 1; then 25 MB: 1, 22.86: 1, 21.25: 1, 20: fits at 9.
func TestPaperContainerRule(t *testing.T) {
	var asked []int
	n, e, steps, err := ContainerRule(20*disdel.MB, 1000, func(c int) disdel.Estimate {
		asked = append(asked, c)
		return sum(disdel.Estimate{Pkg: 10 * disdel.MB, Dta: 90 * disdel.MB / disdel.Bytes(c)})
	})
	if err != nil || n != 9 || e.Total != 20*disdel.MB || len(steps) != len(asked) {
		t.Errorf("%d containers of %v after %v, %v", n, e.Total, asked, err)
	}
	if want := []int{2, 4, 5, 6, 7, 8, 9}; strings.Trim(strings.Join(strings.Fields(sprint(asked)), " "), "[]") != strings.Trim(sprint(want), "[]") {
		t.Errorf("asked for %v, want %v", asked, want)
	}
}

func sprint(v []int) string {
	var b strings.Builder
	for i, x := range v {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(rune('0' + x)))
	}
	return b.String()
}

// Only the shard shrinks: a model that alone is above the limit never fits, and the rule must say so, not loop.
func TestWhatNeverFitsIsSaidAtOnce(t *testing.T) {
	calls := 0
	_, _, _, err := ContainerRule(20*disdel.MB, 1<<30, func(int) disdel.Estimate {
		calls++
		return sum(disdel.Estimate{Pkg: 21 * disdel.MB, Dta: disdel.MB})
	})
	if !errors.Is(err, disdel.OverLimit) || !strings.Contains(err.Error(), "no number of workers makes it fit") || calls != 1 {
		t.Errorf("%v after %d estimates", err, calls)
	}
	_, _, _, err = ContainerRule(20*disdel.MB, 3, func(c int) disdel.Estimate {
		return sum(disdel.Estimate{Pkg: 10 * disdel.MB, Dta: 90 * disdel.MB / disdel.Bytes(c)})
	})
	if !errors.Is(err, disdel.OverLimit) || !strings.Contains(err.Error(), "even with 3 workers") {
		t.Errorf("too few rows: %v", err)
	}
}

// The rule ends, with a plan that fits or with OverLimit.
func TestContainerRuleAlwaysEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := disdel.Bytes(rapid.Int64Range(1, 1000).Draw(t, "limit"))
		fixed := disdel.Bytes(rapid.Int64Range(0, 1000).Draw(t, "fixed"))
		data := disdel.Bytes(rapid.Int64Range(0, 1_000_000).Draw(t, "data"))
		most := rapid.IntRange(1, 5000).Draw(t, "most")
		n, e, _, err := ContainerRule(limit, most, func(c int) disdel.Estimate {
			return sum(disdel.Estimate{Pkg: fixed, Dta: (data + disdel.Bytes(c) - 1) / disdel.Bytes(c)})
		})
		if err == nil && (e.Total > limit || n > most || n < 1) {
			t.Fatalf("%d of at most %d containers of %v, limit %v", n, most, e.Total, limit)
		}
		if err != nil && !errors.Is(err, disdel.OverLimit) {
			t.Fatal(err)
		}
	})
}

// The total is the sum of the terms, fit the sum of its own, and nothing falls when batch, rows or layers grow.
func TestEstimatesAddUpAndGrow(t *testing.T) {
	g := lenet(t)
	rapid.Check(t, func(t *rapid.T) {
		in := Input{Graph: g, Batch: rapid.IntRange(1, 4096).Draw(t, "batch"), Rows: rapid.IntRange(0, 1_000_000).Draw(t, "rows"), SampleBytes: 784, Epochs: 3, Optimizer: adam}
		tasks := map[string]func(Input) disdel.Estimate{"train": Train, "evaluate": Evaluate, "aggregate": Aggregate, "paper": Paper}
		for name, estimate := range tasks {
			e := estimate(in)
			if e.Fit != e.Parameters+e.Activations+e.Misc+e.Workspace || e.Total != e.Fit+e.Pkg+e.Dta+e.Mod+e.Saf {
				t.Fatalf("%s does not add up: %+v", name, e)
			}
			more := in
			more.Batch++
			more.Rows += 100
			if estimate(more).Total < e.Total {
				t.Fatalf("%s falls from %v", name, e.Total)
			}
		}
	})
	deeper, err := model.Build(disdel.Network{Name: "vgg16-cifar", Input: []int{3, 32, 32}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Graph: g, Batch: 32, Rows: 10, SampleBytes: 1, Epochs: 1, Optimizer: adam}
	small := Train(in)
	in.Graph = deeper
	if Train(in).Total <= small.Total {
		t.Error("VGG-16 is not above LeNet-5")
	}
	sgd := in
	sgd.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}}
	weights := float * disdel.Bytes(deeper.Count().Trainable)
	if more := Train(in).Parameters - Train(sgd).Parameters; more < 2*weights || more > 2*weights+weights/100 {
		t.Errorf("Adam keeps two moments of %v more than SGD, not %v", weights, more)
	}
	clipped := in
	clipped.ClipNorm = 1
	if more := Train(clipped).Parameters - Train(in).Parameters; more < weights/3 {
		t.Errorf("clipping needs all gradients at once, and that costs %v more of %v", more, weights)
	}
}

// A network of an action's own binary is estimated by what the binary says it computes, and grows with the batch.
func TestDescribedNetworksAreEstimated(t *testing.T) {
	d := &disdel.CustomNetwork{Name: "mine", Input: []int{1, 28, 28}, Classes: 10, Activations: 10_000, Backward: 20_000, Params: []disdel.CustomParam{{Name: "w", Shape: []int{784, 10}, Trainable: true}}}
	g, err := model.Build(disdel.Network{Custom: d, Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Graph: g, Batch: 64, Rows: 100, SampleBytes: 784, Epochs: 1, Optimizer: adam}
	e := Train(in)
	if least := disdel.Bytes(4 * 64 * 30_000); e.Fit < least || e.Fit > 6*least || e.Method != "measured" {
		t.Errorf("fit %v by %s for %v of values", e.Fit, e.Method, least)
	}
	in.Batch = 128
	if more := Train(in); more.Fit < e.Fit*3/2 {
		t.Errorf("twice the batch needs %v, and the half %v", more.Fit, e.Fit)
	}
	if v := Evaluate(in); v.Fit >= Train(in).Fit {
		t.Errorf("evaluation needs %v", v.Fit)
	}
}
