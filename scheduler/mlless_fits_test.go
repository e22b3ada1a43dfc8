package scheduler

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Fits find MLLess' curves from losses that follow them, few or many, with and without noise. Their losses are almost
// right for the steps that were seen and for a fifth more.
func TestMLLessCurvesAreFoundForAnyLength(t *testing.T) {
	lot := rand.New(rand.NewPCG(31, 9))
	for _, n := range []int{20, 60, 160, 400, 1000, 2000} {
		for range 4 {
			a, b := math.Exp(-4+3*lot.Float64()), 0.4+1.4*lot.Float64()
			c, d := 0.3+lot.Float64(), 0.1+0.8*lot.Float64()
			noise := []float64{0, 0.01}[lot.IntN(2)]
			true1 := func(t float64) float64 { return 1/(a*math.Pow(t, b)+c) + d }
			true2 := func(t float64) float64 { return 1/(a*a/100*t*t+a*t+c) + d }
			var one, two []float64
			for i := range n {
				x := float64(i + 1)
				one = append(one, true1(x)*(1+noise*lot.NormFloat64()))
				two = append(two, true2(x)*(1+noise*lot.NormFloat64()))
			}
			for name, f := range map[string][2]func(float64) float64{
				"L_P": {reference(one), true1}, "l_p": {recent(two), true2},
			} {
				for _, at := range []float64{1, 0.1, 0.5, 1.2} {
					x := max(1, at*float64(n))
					if at == 1 {
						x = float64(n)
					}
					if off := math.Abs(f[0](x)/f[1](x) - 1); off > 0.02+2*noise {
						t.Errorf("%s of %d losses (a %.3g b %.3g c %.3g d %.3g, noise %g): off by %.1f %% at step %.0f", name, n,
							a, b, c, d, noise, 100*off, x)
					}
				}
			}
		}
	}
}

// A rise of the mean loss within three standard deviations of its noise is none. The deviation of noise is drawn here.
func TestNoiseOfTheMeanLossIsNoRise(t *testing.T) {
	draw, mean, sum := rand.New(rand.NewPCG(5, 20261130)), 0.0, 0.0
	const steps = 400_000
	for range steps {
		mean = scaleInAlpha*draw.NormFloat64() + (1-scaleInAlpha)*mean
		sum += mean * mean
	}
	deviation := math.Sqrt(2 * sum / steps) // of the difference of two means
	for by, want := range map[float64]bool{0.98: false, 1.02: true} {
		s := ScaleIn{losses: []float64{scaleInRises * deviation * by}, spread: 1}
		if s.worsens() != want {
			t.Errorf("a rise by %.2f deviations: %t", scaleInRises*by, !want)
		}
	}
}
