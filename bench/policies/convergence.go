package main

import (
	"math"
	"math/rand/v2"

	"github.com/disdel/disdel/estimator"
)

// convergence is how far the estimate of the epochs that remain is off, half way to the target, for drawn losses: of
// the law that the fit has, and of one that it has not (exponential). Noise is one per cent of a loss.
func convergence(seeds uint64) {
	for _, kind := range []struct {
		name string
		draw func(*rand.Rand) func(float64) float64
	}{{"law", ownLaw}, {"exponential", exponential}} {
		var off several
		held, silent := 0.0, 0.0
		n := 10 * seeds
		for seed := range n {
			lot := rand.New(rand.NewPCG(seed, 7))
			at := kind.draw(lot)
			truth := 16 + lot.IntN(20)
			var points []estimator.LossPoint
			for e := 1; e <= truth/2; e++ {
				loss := at(float64(e)) * math.Exp(0.01*lot.NormFloat64())
				points = append(points, estimator.LossPoint{Epoch: float64(e), Loss: loss})
			}
			c, ok := estimator.Converge(points, at(float64(truth)))
			if ok && c.Epochs.Low <= float64(truth) && float64(truth) <= c.Epochs.High {
				held++
			}
			if !ok || math.IsInf(c.Epochs.Likely, 1) {
				silent++
				continue
			}
			left := float64(truth - truth/2)
			off = append(off, math.Abs(c.Epochs.Likely-float64(truth))/left)
		}
		off.figure("convergence_"+kind.name+"_half", "of the epochs left")
		figure("convergence_"+kind.name+"_within", held/float64(n), "of 1")
		figure("convergence_"+kind.name+"_silent", silent/float64(n), "of 1")
	}
}

func ownLaw(lot *rand.Rand) func(float64) float64 {
	c := estimator.LossCurve{
		Floor: 0.1 + lot.Float64(), Rate: math.Exp(lot.NormFloat64() - 1.5), Start: 0.3 + lot.Float64(),
	}
	return c.At
}

func exponential(lot *rand.Rand) func(float64) float64 {
	floor, rate := 0.1+lot.Float64(), 0.05+0.1*lot.Float64()
	return func(x float64) float64 { return floor + 2*math.Exp(-rate*x) }
}
