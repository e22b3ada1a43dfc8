package scheduler_test

import (
	"slices"
	"testing"

	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

const (
	lawEpochs = 40
	lawMost   = 64
	lawSeeds  = 5
)

// KubeML's published rule, replayed over 40 epochs from two workers: on a law whose best is ten workers it walks on to
// 41, since each step is at most 5 % worse than the one before, and takes half as long again as the best.
func TestKubeMLsRuleWalksOn(t *testing.T) {
	for _, c := range []struct {
		law       string
		low, high float64
	}{{"merge", 1185, 1195}, {"cores", 2425, 2435}} {
		r := law(t, c.law).Play(scheduler.KubeML{}, 2, 1000, lawEpochs, 1)
		if last := r.Workers[lawEpochs-1]; last != 41 || r.Seconds < c.low || r.Seconds > c.high {
			t.Errorf("%s: %d workers at the end, %.0f s in all", c.law, last, r.Seconds)
		}
	}
}

func law(t *testing.T, name string) sim.Law {
	t.Helper()
	all := sim.Laws()
	i := slices.IndexFunc(all, func(l sim.Law) bool { return l.Name == name })
	if i < 0 {
		t.Fatalf("there is no law %q", name)
	}
	return all[i]
}

// Ours stay near the best fixed number on every law, in time and in what they cost: the median of some seeds.
func TestPoliciesStayNearTheBest(t *testing.T) {
	for _, p := range []scheduler.Policy{scheduler.Elastic{}, scheduler.Coach{}, scheduler.Auto{}} {
		for _, l := range sim.Laws() {
			if p.Name() == "elastic" && l.Name != "cores" && l.Name != "drift" && l.Name != "straggler" {
				continue
			}
			var times, costs []float64
			for seed := range uint64(lawSeeds) {
				r, best := l.Play(p, 2, lawMost, lawEpochs, seed), l.BestFixed(lawMost, lawEpochs, seed)
				times, costs = append(times, r.Seconds/best.Seconds), append(costs, r.Cost/best.Cost)
			}
			slices.Sort(times)
			slices.Sort(costs)
			if time, cost := times[lawSeeds/2], costs[lawSeeds/2]; time > 1.10 || cost > 1.15 {
				t.Errorf("%s on %s: %.3f of the best time, %.3f of its cost", p.Name(), l.Name, time, cost)
			}
		}
	}
}
