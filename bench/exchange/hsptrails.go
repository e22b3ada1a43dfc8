package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/disdel/disdel/scheduler/schedule"
)

// trail is a path that goes by how far the loss is on its way, or, where it has a span, by epochs.
type trail struct {
	schedule.Path
	span float64 // epochs after which it is at its end
}

func (t trail) String() string {
	if t.span == 0 {
		return t.Path.String() + ", by loss"
	}
	return fmt.Sprintf("%v, by %.0f epochs", t.Path, t.span)
}

// along chooses as a trail has it. By loss it goes on a scale of logarithms of what is left to what two functions come
// to.
func (h *hybrid) along(t trail, target float64) schedule.Chooser {
	floor := target - hybridNear
	first := h.loss(planeWeights{}) - floor
	return func(s schedule.State) schedule.Choice {
		if t.span > 0 {
			return t.At(float64(s.Epoch) / t.span)
		}
		left := max(s.Loss-floor, hybridNear)
		return t.At(math.Log(first/left) / math.Log(first/hybridNear))
	}
}

// hybridNear is how far above the loss that training tends to a target is thought to be, nats.
const hybridNear = 2e-4

// The search: so many trails are drawn, the best of them by one seed are tried with all, and trails near the best of
// those, too.
const (
	trailsDrawn = 240
	trailsTried = 24
	trailsKept  = 6
	trailsNear  = 4 // each of those kept
	trailsSpare = 0.97
)

// search is trails with which training comes to a loss soonest, the best first: each by the upper quartile of its times
// with all the seeds. Something of the budget is kept back for the luck of other seeds.
func (h *hybrid) search(target float64, seeds []uint64) (best []trail, ok bool) {
	_, budget := h.grid(target, seeds, []int{1, 2, few})
	figure("hsp_search_budget", budget, "GB-s")
	to := goal{loss: target, cost: trailsSpare * budget}
	lot := rand.New(rand.NewPCG(17, 2))
	drawn := make([]trail, trailsDrawn)
	for i := range drawn {
		drawn[i] = h.draw(lot)
	}
	first := h.rank(drawn, target, to, seeds[:1])
	h.log.tell("%d paths drawn and run once, the best is %v", trailsDrawn, first[0])
	second := h.rank(first[:trailsTried], target, to, seeds)[:trailsKept]
	h.log.tell("%d of them run with %d seeds, the best is %v", trailsTried, len(seeds), second[0])
	all := slices.Clone(second)
	for _, t := range second {
		for range trailsNear {
			all = append(all, t.near(lot))
		}
	}
	all = h.rank(all, target, to, seeds)
	h.log.tell("%d near them, the best is %v", len(second)*trailsNear, all[0])
	c := h.all(h.along(all[0], target), to, seeds)
	return all[:trailsKept], !math.IsInf(upper(tried{runs: c}, to.cost), 1)
}

// rank sorts trails by how well they do.
func (h *hybrid) rank(all []trail, target float64, to goal, seeds []uint64) []trail {
	values := make([]float64, len(all))
	inParallel(len(all), func(i int) {
		t := tried{runs: make([]schedule.Course, len(seeds))}
		for k, seed := range seeds {
			t.runs[k] = h.run(h.along(all[i], target), to, seed)
		}
		values[i] = upper(t, to.cost)
	})
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	out := make([]trail, len(all))
	for i, from := range order {
		out[i] = all[from]
	}
	return out
}

// upper is the upper quartile of the times.
func upper(t tried, budget float64) float64 {
	var all []float64
	for i := range t.runs {
		all = append(all, t.of(i, budget))
	}
	slices.Sort(all)
	return all[(3*len(all)-1)/4]
}

// draw is any trail.
func (h *hybrid) draw(lot *rand.Rand) trail {
	between := func(a, b float64) float64 { return a * math.Pow(b/a, lot.Float64()) }
	most := float64(h.world.MostWorkers)
	t := trail{Path: schedule.Path{
		FirstWorkers: between(3, most), LastWorkers: between(1, most/2),
		FirstMemory: between(384, h.world.MostMemory), LastMemory: between(384, h.world.MostMemory),
		Exponent: between(0.5, 8),
	}}
	if lot.IntN(4) > 0 {
		t.span = float64(5 + lot.IntN(20))
	}
	return t
}

// near is a trail near another one.
func (t trail) near(lot *rand.Rand) trail {
	about := func(v float64) float64 { return v * math.Exp(0.15*lot.NormFloat64()) }
	t.FirstWorkers, t.LastWorkers = max(1, about(t.FirstWorkers)), max(1, about(t.LastWorkers))
	t.FirstMemory, t.LastMemory, t.Exponent = about(t.FirstMemory), about(t.LastMemory), about(t.Exponent)
	if t.span > 0 {
		t.span = max(1, math.Round(about(t.span)))
	}
	return t
}
