package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
)

// An average is that of pandas: Series([1, 0, 4]).ewm(alpha=0.5, adjust=True).mean().
func TestAveragesOfCurves(t *testing.T) {
	got := smoothed([]plot.Dot{{Y: 1}, {Y: 0}, {Y: 4}}, 0.5)
	for i, want := range []float64{1, 1.0 / 3, 17.0 / 7} {
		if math.Abs(got[i].Y-want) > 1e-12 {
			t.Errorf("%d: %v, want %v", i, got[i].Y, want)
		}
	}
}

// The options change the scale, the lines and the axis, and the note says that lines are averages. A loss of 0 has no
// logarithm: the scale stays linear.
func TestCurvesByOptions(t *testing.T) {
	rec := &disdel.Record{}
	for i, loss := range []float64{1, 0.1, 0.01} {
		rec.Rounds = append(rec.Rounds,
			disdel.Round{Round: i, TrainLoss: loss, Duration: disdel.Millis(5 * time.Minute)})
	}
	drawn := func(o CurveOptions) *Figure {
		r := New(rec, time.Time{})
		r.CurveOptions = o
		return r.lossPlot()
	}
	plain := drawn(CurveOptions{})
	if svg := string(plain.SVG); !strings.Contains(svg, ">round<") || strings.Contains(svg, ">0.01<") || plain.Note != "" {
		t.Errorf("%s, %s", svg, plain.Note)
	}
	svg := string(drawn(CurveOptions{Log: true}).SVG)
	if !strings.Contains(svg, ">0.01<") || !strings.Contains(svg, ">0.1<") {
		t.Errorf("no powers of ten: %s", svg)
	}
	if svg := string(drawn(CurveOptions{Axis: AxisTime}).SVG); !strings.Contains(svg, ">minutes of all rounds<") ||
		!strings.Contains(svg, "Loss over time") {
		t.Errorf("no time: %s", svg)
	}
	if f := drawn(CurveOptions{Smooth: 0.8}); !strings.Contains(f.Note, "0.8") || f.SVG == plain.SVG {
		t.Errorf("not smooth: %s", f.Note)
	}
	rec.Rounds[2].TrainLoss = 0
	if drawn(CurveOptions{Log: true}).SVG != drawn(CurveOptions{}).SVG {
		t.Error("a loss of 0 has a logarithm")
	}
}

// The axis of cost ends at the job's cost by use, and a part of an axis has the values of that part alone.
func TestCurvesByCostAndInPart(t *testing.T) {
	rec := &disdel.Record{UsedGBs: 12}
	for i, loss := range []float64{8, 4, 2, 1} {
		rec.Rounds = append(rec.Rounds, disdel.Round{Round: i, TrainLoss: loss, Accuracy: new(0.5 + float64(i)/10)})
		rec.Activations = append(rec.Activations, disdel.Activation{
			Invocation: disdel.Invocation{Round: i, Limits: disdel.Limits{Memory: disdel.GB}},
			Duration:   disdel.Millis(time.Second),
		})
	}
	r := New(rec, time.Time{})
	r.CurveOptions = CurveOptions{Axis: AxisCost}
	if svg := string(r.lossPlot().SVG); !strings.Contains(svg, `data-at="3 8,6 4,9 2,12 1"`) ||
		!strings.Contains(svg, "Loss over cost") {
		t.Errorf("not by cost: %s", svg)
	}
	r.CurveOptions.From, r.CurveOptions.To = 5, 10
	if svg := string(r.lossPlot().SVG); !strings.Contains(svg, `data-at="6 4,9 2"`) {
		t.Errorf("not in part: %s", svg)
	}
	if svg := string(r.accuracyPlot().SVG); !strings.Contains(svg, `data-at="6 0.6,9 0.7"`) ||
		!strings.Contains(svg, ">0.6<") || strings.Contains(svg, ">0.8<") {
		t.Errorf("the axis of accuracy is not near its values: %s", svg)
	}
	r.CurveOptions.From, r.CurveOptions.To = 20, 30
	if r.lossPlot() != nil || r.accuracyPlot() != nil {
		t.Error("there is a plot without a value")
	}
	rec.Activations = nil
	if r := New(rec, time.Time{}); r.costByRound() != nil {
		t.Error("there is a cost without activations")
	}
}
