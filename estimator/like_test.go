package estimator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// falls is a training whose loss falls as few laws have it: fast, then by a factor an epoch, faster or more slowly by
// its rate.
func falls(rate float64) func(float64) float64 {
	return func(x float64) float64 { return 1.6*math.Exp(-1.5*rate*x) + 0.7*math.Exp(-0.12*rate*x) }
}

// Earlier jobs of other rates tell when a loss comes to a target, in nine of ten cases within the interval, and nearer
// than a law does.
func TestEarlierJobsTellWhenALossComesToATarget(t *testing.T) {
	var past [][]LossPoint
	lot := rand.New(rand.NewPCG(3, 1))
	for range 12 {
		past = append(past, curve(falls(math.Exp(0.5*lot.NormFloat64())), 40, 0.01, lot))
	}
	const runs = 60
	held, nearer := 0, 0
	for range runs {
		law := falls(math.Exp(0.5 * lot.NormFloat64()))
		truth := 12 + lot.IntN(20)
		points, target := curve(law, truth/2, 0.01, lot), law(float64(truth))
		c, ok := ConvergeBySimilar(points, past, target)
		if !ok {
			t.Fatal("no job is like it")
		}
		if c.Epochs.Low <= float64(truth) && float64(truth) <= c.Epochs.High {
			held++
		}
		fit, _ := Converge(points, target)
		if math.Abs(c.Epochs.Likely-float64(truth)) <= math.Abs(fit.Epochs.Likely-float64(truth)) {
			nearer++
		}
	}
	if held < runs*85/100 || nearer < runs*70/100 {
		t.Errorf("%d of %d within, %d nearer than by a law", held, runs, nearer)
	}
}

// Too few points, too few earlier jobs and jobs of another kind say nothing, and what they say goes on from now.
func TestJobsThatAreNotAlikeSayNothing(t *testing.T) {
	lot := rand.New(rand.NewPCG(4, 1))
	points := curve(falls(1), 10, 0, lot)
	alike := [][]LossPoint{curve(falls(1), 30, 0, lot), curve(falls(0.5), 30, 0, lot), curve(falls(2), 30, 0, lot)}
	if c, ok := ConvergeBySimilar(points, alike, falls(1)(20)); !ok || math.Abs(c.Epochs.Likely-20) > 2 {
		t.Errorf("%+v, %v", c, ok)
	}
	if c, ok := ConvergeBySimilar(points, alike, points[9].Loss*1.5); !ok || c.Epochs.Low < 10 {
		t.Errorf("a target that was reached: %+v, %v", c, ok)
	}
	if _, ok := ConvergeBySimilar(points[:3], alike, 0.1); ok {
		t.Error("three losses are like others")
	}
	if _, ok := ConvergeBySimilar(points, alike[:2], 0.1); ok {
		t.Error("two jobs are enough")
	}
	rising := func(x float64) float64 { return 100 + x }
	other := [][]LossPoint{curve(rising, 30, 0, lot), curve(rising, 30, 0, lot), curve(rising, 30, 0, lot)}
	if _, ok := ConvergeBySimilar(points, other, 0.1); ok {
		t.Error("jobs whose losses rise are like one whose loss falls")
	}
	if _, ok := ConvergeBySimilar(points, [][]LossPoint{nil, {{1, 1}}, {{1, math.NaN()}}}, 0.1); ok {
		t.Error("jobs without losses say something")
	}
}

// Three jobs with other rates have seen how such a training ends.
func ExampleConvergeBySimilar() {
	training := func(rate float64, epochs int) (points []LossPoint) {
		for e := 1; e <= epochs; e++ {
			points = append(points, LossPoint{float64(e), 2 * math.Exp(-rate*float64(e))})
		}
		return points
	}
	past := [][]LossPoint{training(0.1, 40), training(0.2, 40), training(0.3, 40)}
	c, ok := ConvergeBySimilar(training(0.15, 8), past, 2*math.Exp(-0.15*20))
	fmt.Printf("%v: about %.0f epochs\n", ok, c.Epochs.Likely)
	// Output: true: about 20 epochs
}

// Of two jobs that are as far away, the one is nearer whose newer losses are.
func TestNewerLossesTellMoreOfLikeness(t *testing.T) {
	past, ok := newPastCurve([]LossPoint{{1, 1}, {2, 0.8}, {3, 0.6}, {4, 0.5}, {5, 0.45}, {6, 0.4}})
	if !ok {
		t.Fatal("no curve")
	}
	early := past.off([]LossPoint{{1, 1.1}, {2, 0.8}, {3, 0.6}, {4, 0.5}}, 1)
	late := past.off([]LossPoint{{1, 1}, {2, 0.8}, {3, 0.6}, {4, 0.55}}, 1)
	if early <= 0 || late < 1.4*early {
		t.Errorf("%v away where the first loss differs by a tenth, %v where the last does", early, late)
	}
}
