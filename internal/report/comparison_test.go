package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// job is a record with so many rounds, each with a lower loss.
func job(name string, batch, rounds int) disdel.Record {
	r := disdel.Record{ID: disdel.JobID("job-" + name), Status: disdel.StatusSucceeded, CostGBs: 2}
	r.Job.Metadata.Name, r.Job.Training.BatchSize, r.Data.Checksum = name, batch, "sha256:a"
	r.Plan.Actions = []disdel.ActionPlan{{Task: disdel.TaskTrain, Limits: disdel.Limits{Memory: 256 * disdel.MB}}}
	for i := range rounds {
		loss := 1 / float64(i+1)
		round := disdel.Round{Round: i, TrainLoss: loss}
		if i%2 == 1 { // every second one is evaluated
			round.Loss, round.Accuracy = new(loss/2), new(1-loss)
		}
		r.Rounds = append(r.Rounds, round)
	}
	r.Activations = []disdel.Activation{
		{Invocation: disdel.Invocation{Task: disdel.TaskTrain}, Peak: 100 * disdel.MB},
		{Invocation: disdel.Invocation{Task: disdel.TaskTrain}, Peak: 90 * disdel.MB},
		{Invocation: disdel.Invocation{Task: disdel.TaskEvaluate}, Peak: 200 * disdel.MB},
	}
	return r
}

// What is different is named, and what is the same is not; figures are those of the last evaluation and the best one.
func TestWhatIsDifferent(t *testing.T) {
	a, b := job("a", 64, 4), job("b", 128, 2)
	b.Rounds[1].Accuracy = nil
	c := Compare([]disdel.Record{a, b})
	want := map[string]string{"training.batchSize": "[64 128]", "metadata.name": "[a b]"}
	for _, d := range c.Differs {
		if want[d.Path] != fmt.Sprint(d.Values) {
			t.Errorf("%s: %v", d.Path, d.Values)
		}
		delete(want, d.Path)
	}
	if len(want) > 0 {
		t.Errorf("not named: %v", want)
	}
	if e := c.Jobs[0]; *e.Accuracy != 0.75 || *e.Best != 0.75 || *e.Loss != 0.125 || e.Peak != 100*disdel.MB ||
		e.Limit != 256*disdel.MB {
		t.Errorf("%+v", e)
	}
	if c.Jobs[1].Accuracy != nil {
		t.Error("an accuracy of a job that was not evaluated")
	}
	var out bytes.Buffer
	c.Print(&out)
	for _, want := range []string{"0.7500", "training.batchSize", "100 MB of 256 MB"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	out.Reset()
	same := Compare([]disdel.Record{a, a})
	if same.Print(&out); !strings.Contains(out.String(), "nothing is different") {
		t.Error(out.String())
	}
}

// A job that keeps its best weights is compared by the figures of their round, as jobs and batch show them.
func TestAComparisonIsOfTheKeptModel(t *testing.T) {
	r := job("a", 64, 6)
	r.Rounds[3].Accuracy, r.Rounds[5].Accuracy = new(0.9), new(0.6)
	r.Best = &disdel.Best{Round: 3, Loss: 0.125, Accuracy: 0.9}
	c := Compare([]disdel.Record{r})
	if e := c.Jobs[0]; *e.Accuracy != 0.9 || *e.Loss != 0.125 || *e.Train != 0.25 || *e.Best != 0.9 || e.Rounds != 6 {
		t.Errorf("accuracy %g, loss %g, train loss %g, best %g, %d rounds", *e.Accuracy, *e.Loss, *e.Train, *e.Best, e.Rounds)
	}
	var out bytes.Buffer
	if c.Print(&out); !strings.HasPrefix(out.String(), "OF THE KEPT MODEL ") {
		t.Error(out.String())
	}
}

// Plots have every job's line, up to a bound, and take figures that are none.
func TestCurves(t *testing.T) {
	var list []disdel.Record
	for i := range mostCurves + 3 {
		list = append(list, job(fmt.Sprint("j", i), 64, 10_000))
	}
	list[1].Rounds[5].TrainLoss = math.NaN()
	list[2].Rounds = nil
	c := Compare(list)
	figures := c.Figures(CurveOptions{})
	if len(figures) != 3 {
		t.Fatalf("%d plots", len(figures))
	}
	for _, f := range figures {
		svg := string(f.SVG)
		if n := strings.Count(svg, "<path"); n != mostCurves-1 {
			t.Errorf("%s: %d lines", f.Title, n)
		}
		if strings.Contains(svg, "NaN") || len(svg) > 2<<20 || !strings.Contains(f.Note, "3 are not") {
			t.Errorf("%s: %d bytes, %s", f.Title, len(svg), f.Note)
		}
	}
	none := Compare([]disdel.Record{{ID: "job-x"}, {ID: "job-y"}})
	if len(none.Figures(CurveOptions{})) != 0 {
		t.Error("plots of nothing")
	}
}

// A difference has the value as the author of the job file wrote it, without escapes for HTML.
func TestDifferencesAreAsWritten(t *testing.T) {
	a, b := job("small", 64, 2), job("small", 64, 2)
	a.Job.Metadata.Labels, b.Job.Metadata.Labels = map[string]string{"edge": "a->b"}, map[string]string{"edge": "a&<b"}
	d := Compare([]disdel.Record{a, b}).Differs
	if len(d) != 1 || !slices.Equal(d[0].Values, []string{"a->b", "a&<b"}) {
		t.Errorf("%v", d)
	}
}

// The row of the results has the name of what the jobs are compared by, and no RMSE stands under an accuracy.
func TestResultsHaveTheNameOfTheirMetric(t *testing.T) {
	of := func(name, metric string, s disdel.Scores) disdel.Record {
		r := job(name, 64, 2)
		r.Scores, r.Rounds[1].Scores = s, s
		r.Job.Training.EarlyStop = &disdel.EarlyStop{Metric: metric, Patience: 1}
		return r
	}
	numbers := func(name string, rmse float64) disdel.Record {
		r := of(name, disdel.MetricValLoss, disdel.Scores{RMSE: rmse, MAE: rmse / 2, R2: new(0.5)})
		r.Data.Targets, r.Rounds[1].Accuracy = []disdel.Target{{Name: "price", Deviation: 1}}, nil
		return r
	}
	top5 := of("t", disdel.MetricTop5, disdel.Scores{Top5: new(0.9)})
	for name, c := range map[string]struct {
		jobs  []disdel.Record
		row   []string
		chart string
	}{
		"classes": {
			[]disdel.Record{job("a", 64, 2), job("b", 64, 2)}, []string{"accuracy", "0.5000", "0.5000"}, "Accuracy by round",
		},
		"numbers": {[]disdel.Record{numbers("a", 41.5), numbers("b", 2)}, []string{"RMSE", "41.5", "2"}, "RMSE by round"},
		"top 5":   {[]disdel.Record{top5, top5}, []string{"top-5 accuracy", "0.9000", "0.9000"}, "Top-5 accuracy by round"},
		"both": {
			[]disdel.Record{top5, numbers("b", 2)},
			[]string{"result", "top-5 accuracy 0.9000", "RMSE 2"},
			"Top-5 accuracy by round",
		},
	} {
		t.Run(name, func(t *testing.T) {
			compared, row := Compare(c.jobs), []string(nil)
			for _, line := range compared.Rows() {
				if line.Name == c.row[0] {
					row = []string{line.Name, line.Text(&compared.Jobs[0]), line.Text(&compared.Jobs[1])}
				}
			}
			if !slices.Equal(row, c.row) {
				t.Errorf("row %q, want %q", row, c.row)
			}
			figures := compared.Figures(CurveOptions{})
			if !slices.ContainsFunc(figures, func(f Figure) bool { return f.Title == c.chart }) {
				t.Errorf("no chart %q among %d", c.chart, len(figures))
			}
		})
	}
}

func ExampleCompare() {
	c := Compare([]disdel.Record{job("small", 64, 2), job("large", 128, 2)})
	for _, d := range c.Differs {
		fmt.Println(d.Path, d.Values)
	}
	// Output:
	// metadata.name [small large]
	// training.batchSize [64 128]
}
