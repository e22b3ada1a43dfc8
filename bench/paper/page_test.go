package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

// passed is a run of a job that came to its end.
func passed(env string, t task, turn int, wall float64, peak disdel.Bytes) outcome {
	o := t.outcome(env, turn, time.Time{})
	o.Passed, o.Wall, o.Action, o.Sum = true, wall, peak, peak
	return o
}

// somewhere is a sitting of an hour ago.
func somewhere(others float64) []sitting {
	began := time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)
	return []sitting{{Began: began, Ended: began.Add(time.Minute), Machine: "a machine", Scale: 0.5, Others: others}}
}

// everything is measurements of all experiments, of which each beats what is printed or does not.
func everything() *raw {
	p, j9 := pairs(), mobile(64, 15)
	killed := passed(envSteps, j9, 0, 2.5, disdel.MB)
	killed.Passed, killed.Lost = false, 2.5
	three := passed(envDefault, mobile(64, 1), 0, 1, 96*disdel.MB)
	three.Expected = &expected{
		Low: 90 * disdel.MB, Likely: 98 * disdel.MB, High: 104 * disdel.MB, Limit: 112 * disdel.MB, Paper: 400 * disdel.MB,
	}
	tf := passed(envDefaultTF, p[0], 0, 20, 800*disdel.MB)
	tf.Begin = 12
	nine := passed(envEnd, p[0], 0, 4, 100*disdel.MB)
	nine.Started, nine.Prepared = 20*disdel.MB, 40*disdel.MB
	seen := func(env string, held float64) outcome {
		o := passed(env, accurate()[0], 0, 9, disdel.MB)
		o.Seen, o.HeldOut = []float64{0.9, held}, new(held)
		return o
	}
	pool := func(size disdel.Bytes, wall float64) outcome {
		o := passed(envEnd, wide(), 0, wall, disdel.MB)
		o.Pool, o.Activations = size, []activation{{Name: "train/0", Train: true, Start: 1, End: wall - 1}}
		return o
	}
	of := func(all ...outcome) *measured {
		return &measured{Outcomes: all, Sittings: somewhere(0.01), Data: map[string]string{"mnist": realMNIST}}
	}
	eleven := of(pool(widePool, 10), pool(wideDoubled, 6))
	eleven.Pools = map[string][]sample{"pool of 2 GB": {{At: 0, Reserved: disdel.MB}, {At: 1, Reserved: 2 * disdel.MB}}}
	return &raw{Experiments: map[string]*measured{
		"fig1": of(passed(envMax, mobile(64, 8), 0, 7, disdel.MB), passed(envEpoch, mobile(64, 8), 0, 9, disdel.MB)),
		"fig2": of(killed, passed(envSteps, j9, 1, 4, disdel.MB), passed(envEpoch, j9, 0, 3, disdel.MB)),
		"fig3": of(three),
		"fig8": of(passed(envEnd, p[0], 0, 9, 100*disdel.MB), passed(envDefault, p[0], 0, 10, 125*disdel.MB), tf,
			passed(envEnd, p[1], 0, 8, 100*disdel.MB), passed(envDefault, p[1], 0, 10, 125*disdel.MB)),
		"fig9":  of(nine),
		"fig10": of(seen(envBare, 0.989), seen(envEpoch, 0.988), seen(envEnd, 0.97)),
		"fig11": eleven,
		"fig12": {
			Sittings: somewhere(0.4),
			Batches: []batch{
				{Environment: envEnd, Makespan: 9, Reserved: 1.2},
				{Environment: envMax, Makespan: 10},
				{Environment: envEnd, Turn: 1, Makespan: 9.5},
				{Environment: envMax, Turn: 1, Makespan: 10},
			},
			Pools: map[string][]sample{envEnd: {{At: 0, Resident: disdel.MB}, {At: 1, Resident: 2 * disdel.MB}}},
		},
	}}
}

// The page has what the issue asks for of every figure, whatever was measured when.
func TestThePageHoldsWhatWasMeasuredAgainstThePaper(t *testing.T) {
	folder := t.TempDir()
	p := newPage(everything(), folder, filepath.Join(folder, "page.md"), 1)
	p.compose()
	if p.err != nil {
		t.Fatal(p.err)
	}
	for name, want := range map[string]float64{
		"fig1_default_killed": 1, "fig1_disdel_failed": 0, "fig2_lost_s": 0, "fig2_attempts": 1, "fig2_retries_lost_s": 2.5,
		"fig3_inside": 1, "fig7_action_default": 0.8, "fig7_action_tf_default": 0.125, "fig8_time_default": 0.85,
		"fig8_time_tf_default": 0.45, "fig8_time_tf_default_warm": 1.125, "fig9_started_mb": 20, "fig11_ratio": 0.6,
		"fig11_train_ratio": 0.5, "fig12_default": 0.925, "fig12_failures": 0, "fig10_mnist": 0.988,
	} {
		if got := p.figures[name].Value; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	text := p.text()
	for _, want := range []string{
		"| 8: time over default | -46 % | 0.850 (0.800 to 0.900)", "| 8: time over default-tensorflow | -46 % | 0.450",
		"| 10: accuracy on MNIST | 97 to 98.7 % | LeNet-5, held-out: 0.9880 | yes |",
		"| 2: lost to retries | 7 to 4 attempts, 5,400 to 1,620 s lost |", "without TensorFlow's import",
		"**machine busy**: other programs used 40 % of the processors' time", "Not measured yet: `bin/bench-paper -only sim`",
		"![Figure 8: time of the eight pairs](fig8.svg)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Count(text, "machine busy") != 1 || strings.Contains(text, "NaN") {
		t.Error(text)
	}
	for _, name := range []string{"1", "2", "3", "7", "8", "9", "10", "11", "12"} {
		drawn, err := os.ReadFile(filepath.Join(folder, "fig"+name+".svg"))
		if err != nil || !strings.Contains(string(drawn), "<svg") {
			t.Errorf("figure %s is not drawn: %v", name, err)
		}
	}
	again := newPage(everything(), folder, filepath.Join(folder, "page.md"), 1)
	if again.compose(); again.text() != text {
		t.Error("the same measurements made another page")
	}
}

// A sitting replaces the measurements of its own experiment, of single jobs those of these jobs, and what is written is
// read again.
func TestASittingReplacesItsOwnMeasurements(t *testing.T) {
	file := filepath.Join(t.TempDir(), "raw.json")
	if nothing, err := readRaw(file); err != nil || len(nothing.Experiments) != 0 {
		t.Fatalf("%+v, %v", nothing, err)
	}
	r, p := everything(), pairs()
	r.put("fig8", &measured{
		Outcomes: []outcome{passed(envEnd, p[1], 0, 5, disdel.MB)}, Sittings: somewhere(0),
	}, true)
	if got := r.Experiments["fig8"]; len(got.Outcomes) != 4 || len(got.Sittings) != 2 || len(got.of(envEnd)) != 2 {
		t.Errorf("%d outcomes of %d sittings", len(got.Outcomes), len(got.Sittings))
	}
	r.put("fig3", &measured{Sittings: somewhere(0)}, false)
	if len(r.Experiments["fig3"].Outcomes) != 0 || len(r.Experiments["fig2"].Outcomes) != 3 {
		t.Error("another experiment's measurements were replaced, or its own were not")
	}
	if err := r.write(file); err != nil {
		t.Fatal(err)
	}
	again, err := readRaw(file)
	if err != nil {
		t.Fatal(err)
	}
	same := cmp.Comparer(func(a, b outcome) bool { return a.String() == b.String() && a.Rows == b.Rows })
	if diff := cmp.Diff(r.Experiments, again.Experiments, same); diff != "" {
		t.Error(diff)
	}
}

// Experiments have the names of the figures that they give.
func TestExperimentsAreChosenByFigures(t *testing.T) {
	b, err := parse([]string{"-only", "fig7,fig13,fig2", "-engine", "disdel", "-scale", "0.25"})
	if err != nil || !cmp.Equal(b.only, []string{"fig8", "sim", "fig2"}) || b.tensorflow {
		t.Fatalf("%+v, %v", b, err)
	}
	if got := b.size.time(300 * time.Second); got != 2500*time.Millisecond {
		t.Errorf("300 s are %v", got)
	}
	if got := b.size.task(pairs()[0]); got.rows != 256 || b.size.task(got).rows != 256 {
		t.Errorf("%d rows, and then %d", got.rows, b.size.task(got).rows)
	}
	total := 0.0
	for _, e := range experiments() {
		total += e.share
	}
	if total < 0.99 || total > 1.01 {
		t.Errorf("the experiments share %.2f of the time", total)
	}
	for _, bad := range [][]string{{"-only", "fig4"}, {"-scale", "0"}, {"-engine", "other"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%v passes", bad)
		}
	}
}

// A name of a job that a scale changes would be two jobs of one data set.
func TestTheRowsOfAJobNameItsData(t *testing.T) {
	for _, t1 := range append(pairs(), accurate()...) {
		if _, err := t1.parse(1, disdel.SyncEnd); err != nil {
			t.Errorf("%s: %v", t1.id, err)
		}
	}
	if a, b := pairs()[0], scale(0.5).task(pairs()[0]); a.dataName() == b.dataName() {
		t.Error(a.dataName())
	}
}
