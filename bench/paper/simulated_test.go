package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The simulator is calibrated on Fig. 8 alone: it has to come to Fig. 8's own numbers.
func TestTheCalibrationGivesFigure8(t *testing.T) {
	c := calibrated()
	if c.serial <= 0 || c.serial >= 1 || c.work <= 0 || c.bare <= 0 || c.bare >= 1 {
		t.Fatalf("%+v is no calibration", c)
	}
	ours := prepareOurs + c.work/2/c.speedup(serverCores/2)
	one := prepareOne + c.work/c.speedup(serverCores)
	bare := prepareBare + c.bare*c.work/c.speedup(serverCores)
	for name, d := range map[string]float64{
		"an action's seconds": ours - actionTook, "over default": ours/one - overDefault,
		"over bare metal": ours/bare - overBare,
	} {
		if math.Abs(d) > 1e-6 {
			t.Errorf("%s is off by %g", name, d)
		}
	}
}

// The other reading gives them on servers of their own.
func TestTheOtherReadingGivesFigure8(t *testing.T) {
	c := spreadOut()
	one := prepareOne + c.work/serverCores
	ours, bare := prepareOurs+c.ours*c.work/2/serverCores, prepareBare+c.bare*c.work/serverCores
	for name, d := range map[string]float64{
		"an action's seconds": ours - actionTook, "over default": ours/one - overDefault,
		"over bare metal": ours/bare - overBare,
	} {
		if math.Abs(d) > 1e-6 {
			t.Errorf("%s is off by %g", name, d)
		}
	}
}

// A pool of twice the memory takes two waves into one, and a half of the servers is no better than all.
func TestTheSimulatedCrewsRunInWaves(t *testing.T) {
	c := calibrated()
	ours := crews(c)[2]
	ours.actions = 4
	lot := func() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }
	two := ours.makespan(c, 1, 1, actionOne, lot())
	four := ours.makespan(c, 1, 1, 2*actionOne, lot())
	if four >= two || four < two/2.2 {
		t.Errorf("%.0f s with room for two, %.0f s with room for four", two, four)
	}
	pair := crews(c)[2]
	if eight, half := pair.makespan(c, 8, 8, serverPool, lot()), pair.makespan(c, 8, 4, serverPool, lot()); eight >= half {
		t.Errorf("8 servers take %.0f s, 4 take %.0f s", eight, half)
	}
}
