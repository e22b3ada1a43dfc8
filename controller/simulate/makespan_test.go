package simulate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// TestGangsTakeNoLongerThanGreedy draws three sets of traces on two processors. In the median, gangs take no longer
// than greedy admission, and no job waits for ever.
func TestGangsTakeNoLongerThanGreedy(t *testing.T) {
	const traces, rounding = 13, 1e-3
	for _, first := range []uint64{0, 1_000, 77_000} {
		var ratios []float64
		for seed := range uint64(traces) {
			jobs := sim.Generate(sim.Draw{
				Jobs: 60, Seed: first + seed, Every: disdel.Millis(5 * time.Second), Tenants: 3,
			})
			took := map[string]disdel.Millis{}
			for _, by := range []string{scheduler.AdmissionGang, scheduler.AdmissionGreedy} {
				cfg := config(by)
				cfg.Cloud = sim.Config{
					Memory: 8 * disdel.GB, Processors: 2, Cold: disdel.Millis(500 * time.Millisecond),
					Warm: disdel.Millis(5 * time.Millisecond),
				}
				r := simulated(t, cfg, jobs...)
				if took[by] = r.Makespan; len(r.Stuck)+r.Failed > 0 {
					t.Errorf("%s, seed %d: %d failed, stuck: %v", by, first+seed, r.Failed, r.Stuck)
				}
			}
			ratios = append(ratios, float64(took[scheduler.AdmissionGang])/float64(took[scheduler.AdmissionGreedy]))
		}
		slices.Sort(ratios)
		t.Logf("seeds from %d: median %.5f, from %.3f to %.3f", first, ratios[traces/2], ratios[0], ratios[traces-1])
		if ratios[traces/2] > 1+rounding {
			t.Errorf("seeds from %d: gangs take %.4f times as long as greedy", first, ratios[traces/2])
		}
	}
}
