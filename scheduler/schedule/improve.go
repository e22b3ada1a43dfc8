package schedule

import "math"

// Improve is a network that has learned from a job that really ran, one step of REINFORCE as in training: its epochs'
// choices become the more likely, the faster it was than the network's own jobs in the world are, and the less likely,
// the slower it was. The network itself stays as it is. A job of no epochs teaches nothing.
//
// Of a real job the actions are what it had, after rounding: a choice of the planner, or one that a guard changed, is a
// lesson as well.
func (n *Net) Improve(w *World, job Course, budget float64) *Net {
	out := n.copied()
	_, base, ok := w.Best(budget)
	if len(job.Epochs) == 0 || !ok {
		return out
	}
	reward := Reward{Unit: base.Seconds}
	own := reward.Of(w, w.Run(n.Greedy(), budget, nil))
	gradient := make([]float64, weights)
	for t, g := range reward.Of(w, job) {
		expected := own[min(t, len(own)-1)]
		e := job.Epochs[t]
		a := [2]float64{math.Log2(float64(max(1, e.Workers))), math.Log2(max(1, e.Choice.Memory))}
		advantage := min(max(-1, g-expected), 1)
		n.gradient(gradient, e.State, within(n, e.State, a), advantage/float64(len(job.Epochs)))
	}
	newAdam().climb(out.Weights, gradient)
	return out
}

// within is an action that is no farther from what the network thinks than it would itself draw now and then: one that
// somebody else chose, far off, would pull all weights there.
func within(n *Net, s State, a [2]float64) [2]float64 {
	const far = 3
	o := n.think(s)
	for k := range a {
		sd := math.Exp(o.logSD[k])
		a[k] = min(max(o.mean[k]-far*sd, a[k]), o.mean[k]+far*sd)
	}
	return a
}
