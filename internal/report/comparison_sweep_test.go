package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// sweepOf are three jobs that differ in two parameters.
func sweepOf() Comparison {
	var list []disdel.Record
	for i, rate := range []float64{.1, .01, .001} {
		r := job(fmt.Sprint("sweep-", i+1), 64, 3)
		r.Job.Training.Optimizer = disdel.Optimizer{Adam: &disdel.Adam{LearningRate: rate}}
		if r.Job.Training.Loss = "mse"; i == 0 {
			r.Job.Training.Loss = "mae"
		}
		list = append(list, r)
	}
	return Compare(list)
}

// A sweep has a scatter over the chosen parameter and metric, and parallel coordinates over all parameters.
func TestSweepFigures(t *testing.T) {
	c := sweepOf()
	link := func(id disdel.JobID) string { return "/ui/jobs/" + string(id) }
	figures := c.Sweep("training.optimizer.adam.learningRate", "loss", link)
	if len(figures) != 2 || figures[0].Title != "Loss by learningRate" || len(figures[0].Legend) != 3 {
		t.Fatalf("%+v", figures)
	}
	if svg := string(figures[0].SVG); !strings.Contains(svg, "1 sweep-1; learningRate: 0.1; loss: ") {
		t.Errorf("%s", svg)
	}
	if svg := string(figures[1].SVG); !strings.Contains(svg, "loss: mse") || strings.Contains(svg, "metadata") {
		t.Errorf("%s", svg)
	}
	if f := c.Sweep("none", "none", link); len(f) != 2 || !strings.HasPrefix(f[0].Title, "Accuracy by ") {
		t.Errorf("unknown axes: %+v", f)
	}
	same := Compare([]disdel.Record{job("a", 64, 3), job("b", 64, 3)})
	if f := same.Sweep("", "", link); f != nil {
		t.Errorf("jobs that differ in no parameter: %+v", f)
	}
}

// Compared curves are smoothed and cut as those of a job are.
func TestOptionsOfComparedCurves(t *testing.T) {
	c := sweepOf()
	plain, part := c.Figures(CurveOptions{}), c.Figures(CurveOptions{From: 2, To: 3, Smooth: .5})
	if len(plain) != len(part) || plain[0].SVG == part[0].SVG {
		t.Error("options change nothing")
	}
	if svg := string(part[0].SVG); !strings.Contains(svg, ` 2 3" data-unit="round" data-zoom`) ||
		strings.Contains(svg, `data-at="1 `) {
		t.Errorf("%s", svg)
	}
	if !strings.Contains(part[0].Note, "the weight 0.5.") {
		t.Errorf("%q", part[0].Note)
	}
}
