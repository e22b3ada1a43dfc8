package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/disdel/disdel/model"
)

// With Recompute, a step keeps outputs only at some nodes, the cuts. Before the backward passes of the nodes between
// two cuts, it computes their outputs again. What is behind the last cut is kept, since it is needed at once. One output
// alone is read across a cut, so that a residual block is never cut.

// schedule gives every pass its time. Forward passes are first, then the loss, then the backward passes. Outputs that are
// computed again come just before the backward passes that read them.
func (p *planner) schedule(cuts []int) {
	n := len(p.g.Nodes)
	t := int32(n + 1)
	for k := len(cuts); k >= 0; k-- {
		first, last := 1, n-1
		if k > 0 {
			first = cuts[k-1] + 1
		}
		if k < len(cuts) {
			last = cuts[k]
			for i := first; i < last; i++ {
				p.agains[i], t = t, t+1
			}
		}
		for i := last; i >= first; i-- {
			p.backs[i], t = t, t+1
		}
	}
	p.backs[0], p.last = t, int(t)
}

// mayCut tells whether node i is the only one before its place whose output later nodes read, and none overwrites it.
// The input and the tokens of masks do not count, since they are kept.
func (p *planner) mayCut(i int) bool {
	for k := i + 1; k < len(p.g.Nodes); k++ {
		if p.outs[k] == p.outs[i] {
			return false
		}
		for _, in := range p.g.Nodes[k].Inputs {
			if !p.kept[in] && in <= i && p.outs[in] != p.outs[i] {
				return false
			}
		}
	}
	return p.grads[i] != nil && p.g.Nodes[i].Op != model.OpInput
}

// cutsAt are the cuts that keep the outputs of nodes. Where an activation overwrites an output, the activation's own
// output is kept. Nodes without a gradient, and the last ones, are left out: they save nothing.
func (p *planner) cutsAt(nodes []int) (out []int) {
	for _, i := range nodes {
		for i+1 < len(p.g.Nodes) && p.outs[i+1] == p.outs[i] && len(p.g.Nodes[i+1].Inputs) == 1 {
			i++
		}
		if i > 0 && i < len(p.g.Nodes)-1 && p.mayCut(i) && !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// stash is the number of values that the nodes from first to last keep for the way back, without those of buffer but.
func (p *planner) stash(first, last int, but *buffer) (values int) {
	seen := map[*buffer]bool{but: true}
	for i := first; i <= last; i++ {
		if b := p.outs[i]; !seen[b] && !p.kept[i] && int(b.to) > len(p.g.Nodes) {
			seen[b] = true
			values += b.size
		}
	}
	return values
}

// mostBounds and mostChoices limit the search: the bounds that are tried, and the cuts that are planned to the byte.
const mostBounds, mostChoices = 64, 4

// choices are lists of cuts, those first that should take least memory. For each bound on the values between two cuts,
// dynamic programming finds the cuts that keep the fewest values (after Chen 2016, arXiv 1604.06174).
func (p *planner) choices() (out [][]int) {
	at := []int{0}
	for i := 1; i < len(p.g.Nodes)-1; i++ {
		if p.mayCut(i) {
			at = append(at, i)
		}
	}
	inner, tails := make([][]int, len(at)), make([]int, len(at)) // values between two cuts, and behind one
	var bounds []int
	for j := range at {
		inner[j] = make([]int, j)
		tails[j] = p.stash(at[j]+1, len(p.g.Nodes)-1, p.outs[at[j]])
		for i := range j {
			inner[j][i] = p.stash(at[i]+1, at[j], p.outs[at[j]])
			bounds = append(bounds, inner[j][i])
		}
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	var found []choice
	for k := range min(mostBounds, len(bounds)) {
		bound := bounds[k*len(bounds)/min(mostBounds, len(bounds))]
		if c := p.fewest(at, inner, tails, bound); c.cuts != nil {
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b choice) int { return cmp.Compare(a.values, b.values) })
	for _, c := range found {
		if len(out) < mostChoices && !slices.ContainsFunc(out, func(o []int) bool { return slices.Equal(o, c.cuts) }) {
			out = append(out, c.cuts)
		}
	}
	return out
}

// choice is a list of cuts, and about how many values of activations they take.
type choice struct {
	cuts   []int
	values int
}

// fewest returns the cuts that take the fewest values with at most bound between two of them.
func (p *planner) fewest(at []int, inner [][]int, tails []int, bound int) (best choice) {
	kept, before := make([]int, len(at)), make([]int, len(at))
	end := 0
	for j := 1; j < len(at); j++ {
		kept[j] = math.MaxInt
		for i := range j {
			if inner[j][i] <= bound && kept[i] < kept[j] {
				kept[j], before[j] = kept[i], i
			}
		}
		if kept[j] == math.MaxInt {
			break
		}
		kept[j] += p.outs[at[j]].size
		if values := kept[j] + max(bound, tails[j]); end == 0 || values < best.values {
			end, best.values = j, values
		}
	}
	for k := end; k > 0; k = before[k] {
		best.cuts = append(best.cuts, at[k])
	}
	slices.Reverse(best.cuts)
	return best
}

// recompute has the outputs between cut k and the one before it computed again, as far as they are needed.
func (p *planner) recompute(cuts []int, k int) {
	first, last := 1, cuts[k]
	if k > 0 {
		first = cuts[k-1] + 1
	}
	inside := func(i int) bool { return i >= first && i < last && !p.kept[i] && p.outs[i] != p.outs[last] }
	again := map[*buffer]*buffer{} // what the way back needs, and where it is computed again
	for i := first; i < last; i++ {
		if b := p.outs[i]; inside(i) && int(b.to) > len(p.g.Nodes) && again[b] == nil {
			again[b] = p.add(Activations, i, b.size, int(b.to), int(b.to))
			b.to = b.from
		}
	}
	for i := first; i <= last; i++ { // what was cut off lives while forward passes read it
		p.outs[i].live(i)
		for _, in := range p.Nodes[i].Inputs {
			p.outs[in].live(i)
		}
	}
	var nodes []int
	for i := last - 1; i >= first; i-- {
		b := again[p.outs[i]]
		if b == nil {
			continue
		}
		t := int(p.agains[i])
		for _, in := range p.Nodes[i].Inputs {
			switch of := p.outs[in]; {
			case !inside(in):
				of.live(t)
			case again[of] == nil:
				again[of] = p.add(Activations, in, of.size, t, t)
			default:
				again[of].live(t)
			}
		}
		b.live(t)
		p.Nodes[i].Second = &Second{}
		b.tell(&p.Nodes[i].Second.Out)
		if p.works[i] > 0 && p.g.Nodes[i].Op != model.OpBatchNorm {
			p.later(&p.Nodes[i].Second.Work, Workspace, i, p.works[i], t, t)
		}
		nodes = append(nodes, i)
	}
	slices.Reverse(nodes)
	if p.Again == nil {
		p.Again = map[int][]int{}
	}
	p.Again[last] = nodes
}

// addsPerWeight is the work of adding a gradient to the sum of a step's passes, in multiply-accumulates: memory is read
// twice and written once.
const addsPerWeight = 4

// roundsPerMoment is the work of rounding a moment to 8 bits, and of reading it, in multiply-accumulates.
const roundsPerMoment = 300

// pagesPerMoment is the time of reading a moment from a file and of writing it, in multiply-accumulates. The file's
// pages are in memory that nothing else needs. Where they are not, the disk decides.
const pagesPerMoment = 100

// Extra is what a step of so many rows computes more because of Recompute, SumGrads, ShortMoments and PagedMoments, as
// a share of a step without.
// A step is three times its forward pass.
func (p *Plan) Extra(rows int) float64 {
	if p.Again == nil && !p.Spec.SumGrads && !p.Spec.MomentsApart() {
		return 0
	}
	count := p.Graph.Count()
	var extra float64
	for i := range p.Nodes {
		for _, k := range p.Again[i] {
			extra += float64(count.Layers[k-1].MACs)
		}
	}
	if p.Spec.SumGrads {
		extra += addsPerWeight * float64(count.Trainable) / float64(min(rows, p.Spec.BatchSize))
	}
	if p.Spec.ShortMoments {
		extra += roundsPerMoment * float64(p.Spec.Moments) * float64(count.Trainable) / float64(rows)
	}
	if p.Spec.PagedMoments {
		extra += pagesPerMoment * float64(p.Spec.Moments) * float64(count.Trainable) / float64(rows)
	}
	return extra / max(1, 3*float64(count.MACs))
}
