package estimator

import (
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// planned is the estimator that plans, with the backends of disdel.
var planned = Planned(backends.Standard(nil))

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
	e := Paper(Input{Graph: lenet(t), BatchSize: 64, Rows: 30_000, SampleBytes: 784, Epochs: 50, Optimizer: adam})
	for name, c := range map[string]struct{ got, want disdel.Bytes }{
		"parameters (Eq. 3)": {e.Parameters, 4 * 246_824}, "activations (Eq. 4)": {e.Activations, 4 * 834_304},
		"misc (Eq. 5)": {e.Misc, 4 * 39_200},
		"fit (Eq. 2)":  {e.Training, 4_481_312}, "dta": {e.Shard, 23_520_000}, "mod": {e.Model, 246_824},
		"saf":         {e.Margin, 256 << 20},
		"m_a (Eq. 1)": {e.Total, 4_481_312 + calibrated.Package + 23_520_000 + 246_824 + 256<<20},
	} {
		if c.got != c.want {
			t.Errorf("%s = %d, want %d", name, c.got, c.want)
		}
	}
	if e.Likely != e.Total-256<<20 || e.Low != e.Likely || e.High != e.Total {
		t.Errorf("the peak is likely %v and from %v to %v, not what the margin leaves of %v", e.Likely, e.Low, e.High,
			e.Total)
	}
	if len(e.Notes) == 0 || !strings.Contains(e.Notes[0], "epochs") {
		t.Error("nothing says that Eq. 5 is computed as printed")
	}
}
