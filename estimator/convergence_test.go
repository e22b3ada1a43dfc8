package estimator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// curve is the losses of so many epochs by a law, with noise.
func curve(law func(epoch float64) float64, epochs int, noise float64, lot *rand.Rand) []LossPoint {
	var out []LossPoint
	for e := 1; e <= epochs; e++ {
		x := float64(e)
		out = append(out, LossPoint{x, law(x) * math.Exp(noise*lot.NormFloat64())})
	}
	return out
}

// Coach's own law, without noise, is found again, and so is where it crosses a target.
func TestACurveIsFoundAgain(t *testing.T) {
	for _, want := range []LossCurve{{0.3, 0.2, 0.5}, {0, 0.05, 0.4}, {0.8, 1, 1}, {-2, 0.2, 0.5}} { // a loss of one's own
		points := curve(want.At, 12, 0, rand.New(rand.NewPCG(1, 1)))
		target := want.At(20)
		c, ok := Converge(points, target)
		again, _ := FitLosses(points)
		if !ok || math.Abs(c.Curve.Floor-want.Floor) > 0.01 || math.Abs(c.Epochs.Likely-20) > 0.2 || c.Curve != again {
			t.Errorf("%+v: %+v, %v", want, c, ok)
		}
	}
}

// Losses that are all the same, also all 0, give no curve: nothing says when they would fall.
func TestEqualLossesGiveNoCurve(t *testing.T) {
	for _, loss := range []float64{0, 0.5} {
		points := curve(func(float64) float64 { return loss }, 8, 0, rand.New(rand.NewPCG(1, 1)))
		if c, ok := FitLosses(points); ok {
			t.Errorf("losses of %v: %+v", loss, c)
		}
		if c, ok := Converge(points, loss-1); ok {
			t.Errorf("losses of %v reach %v after %+v", loss, loss-1, c)
		}
	}
}

// Nine times in ten what comes true is within the interval, half way to the target: with the law's own curves and noise
// of a few per cent.
func TestConvergenceHoldsNineOfTen(t *testing.T) {
	const runs = 300
	held, finite := 0, 0
	for seed := range uint64(runs) {
		lot := rand.New(rand.NewPCG(seed, 7))
		law := LossCurve{Floor: 0.1 + lot.Float64(), Rate: math.Exp(lot.NormFloat64() - 1.5), Start: 0.3 + lot.Float64()}
		truth := 16 + lot.IntN(20)
		c, ok := Converge(curve(law.At, truth/2, 0.01, lot), law.At(float64(truth)))
		if !ok {
			t.Fatalf("seed %d: no curve of %+v", seed, law)
		}
		if c.Epochs.Low <= float64(truth) && float64(truth) <= c.Epochs.High {
			held++
		}
		if !c.MayNever() {
			finite++
		}
	}
	t.Logf("%d of %d within, %d with an end", held, runs, finite)
	if held < runs*88/100 {
		t.Errorf("%d of %d were within their interval", held, runs)
	}
}

// A target below what the loss falls to is not told as one epoch more, as Coach's fit tells it, but as one that may
// never be reached; far below, as one that is not.
func TestATargetBelowTheFloorMayNeverBeReached(t *testing.T) {
	law := LossCurve{Floor: 0.8, Rate: 2, Start: 0.5}
	points := curve(law.At, 30, 0.002, rand.New(rand.NewPCG(5, 5)))
	if c, ok := Converge(points, 0.795); !ok || !c.MayNever() {
		t.Errorf("just below the floor: %+v, %v", c, ok)
	}
	if c, ok := Converge(points, 0.3); !ok || !c.Never() {
		t.Errorf("far below it: %+v, %v", c, ok)
	}
	if c, ok := Converge(points, law.At(40)); !ok || c.Never() || c.Epochs.Likely < 30 {
		t.Errorf("above it: %+v, %v", c, ok)
	}
}

// An outlier does little, and losses that do not fall, or are too few, say nothing.
func TestOddLosses(t *testing.T) {
	law := LossCurve{Floor: 0.3, Rate: 0.2, Start: 0.5}
	points := curve(law.At, 14, 0, rand.New(rand.NewPCG(1, 1)))
	points[6].Loss *= 1.5
	if c, ok := Converge(points, law.At(25)); !ok || math.Abs(c.Epochs.Likely-25) > 5 {
		t.Errorf("with an outlier: %+v, %v", c, ok)
	}
	flat := []LossPoint{{1, 1}, {2, 1.1}, {3, 1.2}, {4, 1.3}, {5, 1.4}}
	if c, ok := Converge(flat, 0.5); ok && !c.MayNever() {
		t.Errorf("rising losses: %+v", c)
	}
	if _, ok := Converge(points[:3], 0.5); ok {
		t.Error("three points made a curve")
	}
	if c, ok := Converge(points, 10); !ok || c.Epochs.Low != 0 {
		t.Errorf("a target that was reached before the start: %+v, %v", c, ok)
	}
}

// Whatever the losses are: the interval is in order, not before what was trained where the target is not reached, and
// equal points come to equal answers.
func TestConvergenceIsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var points []LossPoint
		for i, l := range rapid.SliceOfN(rapid.Float64Range(0, 10), 0, 20).Draw(t, "losses") {
			points = append(points, LossPoint{float64(i + 1), l})
		}
		target := rapid.Float64Range(-1, 10).Draw(t, "target")
		c, ok := Converge(points, target)
		again, _ := Converge(points, target)
		if fmt.Sprint(c) != fmt.Sprint(again) {
			t.Fatalf("%+v, and then %+v", c, again)
		}
		if !ok {
			return
		}
		e := c.Epochs
		if !(e.Low <= e.Likely && e.Likely <= e.High) || !(c.Floor.Low <= c.Floor.Likely && c.Floor.Likely <= c.Floor.High) {
			t.Fatalf("%+v", c)
		}
		if points[len(points)-1].Loss > target && e.Low < float64(len(points)) {
			t.Fatalf("before the end of what was trained: %+v", c)
		}
	})
}

func ExampleConverge() {
	var points []LossPoint
	law := LossCurve{Floor: 0.2, Rate: 0.25, Start: 0.5}
	for epoch := 1.0; epoch <= 10; epoch++ {
		points = append(points, LossPoint{epoch, law.At(epoch)})
	}
	var c Convergence
	c, _ = Converge(points, 0.35)
	fmt.Printf("%.0f epochs in all\n", c.Epochs.Likely)
	f, _ := FitLosses(points)
	fmt.Printf("%.2f after a hundred\n", f.At(100))
	c, _ = Converge(points, 0.1)
	fmt.Println("may never come to 0.1:", c.MayNever())
	// Output:
	// 25 epochs in all
	// 0.24 after a hundred
	// may never come to 0.1: true
}
