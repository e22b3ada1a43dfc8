package plot

import (
	"math"
	"strings"
	"testing"
)

// A scale is logarithmic where values span powers of ten, and every value has its place on it.
func TestScales(t *testing.T) {
	for _, c := range []struct {
		values     []float64
		categories []string
		log        bool
	}{
		{[]float64{.1, .01, .001}, nil, true},
		{[]float64{1, 2, 3}, nil, false},
		{[]float64{-1, 100}, nil, false},
		{[]float64{5, 5, math.NaN()}, nil, false},
		{[]float64{0, 0}, nil, false},
		{[]float64{0, 1}, []string{"adam", "sgd"}, false},
		{[]float64{math.NaN()}, nil, false},
	} {
		s := ScaleOf("x", c.values, c.categories)
		if s.Log != c.log || !(s.Low < s.High) {
			t.Errorf("%v: %+v", c.values, s)
		}
		for _, v := range c.values {
			if at := s.part(v); !math.IsNaN(v) && !(at > 0 && at < 1) {
				t.Errorf("%v: %g is at %g", c.values, v, at)
			}
		}
		for _, m := range s.marks(6) {
			if at := s.part(m.at); at < -1e-9 || at > 1+1e-9 {
				t.Errorf("%v: the mark %s is at %g", c.values, m.text, at)
			}
		}
	}
	if s := ScaleOf("rate", []float64{.1, .01, .001}, nil); math.Abs(s.part(.01)-.5) > 1e-9 {
		t.Errorf("the middle power is at %g", s.part(.01))
	}
	if n := len((&Scale{Categories: make([]string, 100), High: 100}).marks(6)); n > 6 {
		t.Errorf("%d marks", n)
	}
}

// A sweep shows every job that has its values, as a link with a name, and escapes what it is given.
func TestSweeps(t *testing.T) {
	nan := math.NaN()
	s := &Sweep{
		Title: "T", Alt: "<alt>",
		Scales: []Scale{
			ScaleOf("a", []float64{1, 2, 3}, nil), ScaleOf("b", []float64{1, 2, nan}, nil),
			ScaleOf("c", []float64{1, nan, 3}, nil),
		},
		Jobs: []SweepJob{
			{Number: 1, Note: "1 one; a: \"1\"", Class: "s0", Link: "/ui/jobs/x?\"", Values: []float64{1, 1, 1}},
			{Number: 2, Note: "2 <script>", Class: "s1", Link: "/y", Values: []float64{2, 2, nan}},
			{Number: 3, Note: "3", Class: "s2", Values: []float64{3, nan, 3}},
		},
	}
	scatter, parallel := s.Scatter(), s.Parallel()
	for _, svg := range []string{scatter, parallel} {
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "<script") || strings.Contains(svg, `?""`) {
			t.Errorf("%s", svg)
		}
	}
	if n := strings.Count(scatter, "<circle"); n != 2 {
		t.Errorf("%d points of two jobs", n)
	}
	if n := strings.Count(parallel, "<path"); n != 4 { // the third job's line is broken
		t.Errorf("%d pieces", n)
	}
	if !strings.Contains(scatter, `<a data-tip="2 &lt;script&gt;" aria-label="2 &lt;script&gt;" href="/y">`) {
		t.Error("a job is no link with a name")
	}
}
