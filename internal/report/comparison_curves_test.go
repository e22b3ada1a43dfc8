package report

import (
	"math"
	"testing"

	"github.com/disdel/disdel"
)

// A line with few points looks as the one with all: it begins and ends where that does, goes on to the right, and has
// the peaks that stand out.
func TestALineKeepsItsShape(t *testing.T) {
	line := make([]point, 10_000)
	for i := range line {
		line[i] = point{i, float64(i), math.Sin(float64(i) / 500)}
	}
	line[4321].y = 9
	line[8000].y = -7
	got := thinned(line, 100)
	if len(got) != 100 || got[0] != line[0] || got[99] != line[9999] {
		t.Fatalf("%d points from %v to %v", len(got), got[0], got[len(got)-1])
	}
	peaks := 0
	for i, p := range got {
		if i > 0 && p.at <= got[i-1].at {
			t.Errorf("%v comes behind %v", p, got[i-1])
		}
		if p.at == 4321 || p.at == 8000 {
			peaks++
		}
	}
	if peaks != 2 {
		t.Error("the peaks are gone")
	}
	for _, n := range []int{0, 1, 2, 3, 99, 100, 101, 102, 150} {
		if got := thinned(line[:n], 100); len(got) != min(n, 100) {
			t.Errorf("%d of %d points", len(got), n)
		}
	}
}

// A thin part draws what the whole one draws: also figures that only a few rounds have.
func TestAThinPart(t *testing.T) {
	r := disdel.Record{ID: "job-a"}
	for i := range 5000 {
		round := disdel.Round{Round: i, TrainLoss: 1 / float64(i+1)}
		if i%7 == 5 {
			round.Loss = new(2 / float64(i+1))
		}
		r.Rounds = append(r.Rounds, round)
	}
	whole, thin := ComparedJobOf(&r), ComparedJobOf(&r).Thin()
	if n := len(thin.Curve.Round); n > 3*mostCurvePoints || n < mostCurvePoints {
		t.Errorf("%d rounds", n)
	}
	lines := func(p ComparedJob) int {
		c := CompareJobs([]ComparedJob{p, p})
		n := 0
		for _, f := range c.Figures(CurveOptions{}) {
			n += len(f.Legend)
		}
		return n
	}
	if a, b := lines(whole), lines(thin); a != 4 || b != 4 {
		t.Errorf("%d lines of the whole and %d of the thin one", a, b)
	}
	if evaluated := len(thin.Curve.points(thin.Curve.Loss)); evaluated < mostCurvePoints {
		t.Errorf("%d rounds with a held-out loss", evaluated)
	}
	if *thin.JobResult.Loss != *whole.JobResult.Loss {
		t.Error("what came of it is another figure")
	}
}
