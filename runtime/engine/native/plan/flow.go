package plan

import "github.com/disdel/disdel/model"

// forward finds a node's output buffer: its input's where it can work in place, else one of its own.
func (p *planner) forward(i int) {
	n, v := &p.g.Nodes[i], &p.Nodes[i]
	if n.Op == model.OpInput {
		size := v.Border.Around(v.Image).Len()
		b := p.add(Activations, i, size, 0, 0)
		if v.Border != (Border{}) {
			b.to = int32(p.end()) // nothing else may write into the zeros
		}
		p.outs[i] = b
		return
	}
	if n.Op == model.OpFlatten {
		v.Permuted = p.permutes(i)
	}
	if n.Op == model.OpDense {
		v.Permuted = p.permuted(n.Inputs[0])
	}
	if k := p.inPlaceInput(i); k >= 0 {
		v.InPlace = true
		v.Inputs[0], v.Inputs[k] = v.Inputs[k], v.Inputs[0] // a sum's operands commute: the one it works on comes first
		p.outs[i] = p.outs[v.Inputs[0]]
		p.fuse(i)
	} else {
		p.outs[i] = p.add(Activations, i, v.Image.Len(), i, i)
	}
	p.outs[i].live(i)
	for _, in := range v.Inputs {
		p.outs[in].live(i)
	}
	last := i == len(p.g.Nodes)-1 || p.byLoss(len(p.g.Nodes)-1) && i == len(p.g.Nodes)-2
	if last && !(p.Spec.Training && p.g.Slice.Leaves()) { // a stage has sent its outputs when their gradient comes
		p.outs[i].live(len(p.g.Nodes))
	}
	p.work(i)
}

// permutes tells that a flatten need not reorder its input: all that read it, through layers that work on single
// values, are dense layers, whose weights are reordered instead.
func (p *planner) permutes(i int) bool {
	if len(p.consumers[i]) == 0 {
		return p.Nodes[i].Image.C == 1
	}
	for _, c := range p.consumers[i] {
		if op := p.g.Nodes[c].Op; op != model.OpDense && !(kinds[op].single && p.permutes(c)) {
			return false
		}
	}
	return true
}

// permuted tells that a vector has pixels before channels.
func (p *planner) permuted(i int) bool {
	n := &p.g.Nodes[i]
	if n.Op == model.OpFlatten {
		return p.Nodes[i].Permuted
	}
	return kinds[n.Op].single && p.permuted(n.Inputs[0])
}

// renames tells that a node is its input's buffer under another shape.
func (p *planner) renames(i int) bool {
	op := p.g.Nodes[i].Op
	return (op == model.OpFlatten || op == model.OpSequence) && p.Nodes[i].InPlace
}

// writer is the last op that left its mark on a buffer: what backward expects to find there.
func (p *planner) writer(i int) model.Op {
	n := &p.g.Nodes[i]
	if p.renames(i) {
		return p.writer(n.Inputs[0])
	}
	return n.Op
}

// inPlaceInput returns the input whose buffer a node works in, -1 for none. A node may overwrite an input that no other
// node reads, and whose old value is not needed by its own backward pass nor by that of the op that wrote it.
func (p *planner) inPlaceInput(i int) int {
	n := &p.g.Nodes[i]
	first := n.Inputs[0]
	switch {
	case n.Op == model.OpFlatten && p.view(i, first), n.Op == model.OpSequence: // readers do not mind each other
		return 0
	case p.byLoss(i):
		return 0
	case n.Op == model.OpBatchNorm && !p.Spec.Training && p.single(first):
		return 0
	case n.Op == model.OpAdd:
		// A sum begins with its first two inputs, whichever of them it overwrites: the order of terms is fixed.
		for k, in := range n.Inputs[:min(2, len(n.Inputs))] {
			if p.mayOverwrite(in, n.Op) && p.distinct(n.Inputs, k) {
				return k
			}
		}
	case kinds[n.Op].inPlace && !(p.Spec.Training && kinds[n.Op].readsInputs) && p.mayOverwrite(first, n.Op):
		return 0
	case kinds[n.Op].single && !(p.Spec.Training && kinds[n.Op].readsInput) && p.mayOverwrite(first, n.Op):
		return 0
	}
	return -1
}

// mayOverwrite tells whether an op may overwrite the output of a node that it reads.
func (p *planner) mayOverwrite(in int, over model.Op) bool {
	return p.single(in) && (!p.Spec.Training || survives(p.writer(in), over))
}

// single tells that a node's output has one reader, and nobody sees the same memory under another name.
func (p *planner) single(i int) bool {
	n := &p.g.Nodes[i]
	if p.renames(i) {
		return len(p.consumers[i]) == 1 && p.single(n.Inputs[0])
	}
	return len(p.consumers[i]) == 1 && n.Op != model.OpInput
}

// distinct tells that input k has a buffer of its own among the inputs.
func (p *planner) distinct(inputs []int, k int) bool {
	for j, in := range inputs {
		if j != k && p.outs[in] == p.outs[inputs[k]] {
			return false
		}
	}
	return true
}

// fuse has the op that a ReLU follows compute it.
func (p *planner) fuse(i int) {
	n := &p.g.Nodes[i]
	in := p.Nodes[i].Inputs[0]
	if n.Op != model.OpReLU {
		p.fuseInference(i, in)
		return
	}
	switch before := &p.Nodes[in]; p.g.Nodes[in].Op {
	case model.OpConv:
		if before.Depthwise {
			return
		}
		before.Conv.ReLU = true
	case model.OpDense:
		before.Conv.ReLU = true
	case model.OpBatchNorm, model.OpAdd:
	default:
		return
	}
	p.Nodes[in].ReLU, p.Nodes[i].Fused = true, true
}

// fuseInference has a convolution or a dense layer compute the batch norm and the ReLU6 behind it, of a pixel at a
// time.
func (p *planner) fuseInference(i, in int) {
	before := &p.Nodes[in]
	product := func(k int) bool {
		n, v := &p.g.Nodes[k], &p.Nodes[k]
		return n.Op == model.OpDense || n.Op == model.OpConv && !(v.Depthwise && n.Bias)
	}
	switch op := p.g.Nodes[i].Op; {
	case p.Spec.Training || p.Spec.Plain:
	case op == model.OpBatchNorm && product(in):
		before.Norm, p.Nodes[i].Fused = i, true
	case op != model.OpReLU6:
	case product(in):
		before.Clamp, p.Nodes[i].Fused = true, true
	case p.g.Nodes[in].Op == model.OpBatchNorm && before.Fused:
		p.Nodes[before.Inputs[0]].Clamp, p.Nodes[i].Fused = true, true
	}
}

// work plans what a node needs while it is computed, forward and backward, and what it keeps between.
func (p *planner) work(i int) {
	v, k := &p.Nodes[i], &kinds[p.g.Nodes[i].Op]
	if v.Fused && p.g.Nodes[i].Op == model.OpBatchNorm { // scale and offset, from call to call
		p.later(&v.Aux, Workspace, i, 2*Padded(p.g.Nodes[i].Out[0]), 0, p.end()+1)
	}
	var m memory
	if k.work != nil {
		m = k.work(p, i)
	}
	if p.Spec.Halves && k.halves != nil {
		m = k.halves(p, i, m)
	}
	if !p.Spec.Training {
		m.backward, m.kept = 0, 0
	} else if !p.needs[i] {
		m.backward = 0
	}
	p.works[i] = m.forward
	if m.forward > 0 {
		p.later(&v.Work, Workspace, i, m.forward, i, i)
	}
	if m.backward > 0 {
		p.later(&v.BackWork, Workspace, i, m.backward, p.back(i), p.back(i))
	}
	if m.always > 0 {
		p.later(&v.Aux, Workspace, i, m.always, 0, p.end()+1)
	}
	if m.kept > 0 {
		until := p.back(i)
		if !p.needs[i] {
			until = max(i, int(p.agains[i])) // being computed again it writes what it keeps, though nobody reads it
		}
		p.later(&v.Aux, Activations, i, m.kept, i, until)
	}
}

// backward finds the buffers of the gradients that a node hands to its inputs, and says which values it still needs.
func (p *planner) backward(i int) {
	v := &p.Nodes[i]
	v.GradIn = make([]Flow, len(v.Inputs))
	last := len(p.g.Nodes) - 1
	if i == last && p.needs[i] && !p.byLoss(i) {
		p.allocGrad(i, last+1)
	}
	if p.byLoss(i) { // the loss takes its input
		if p.needs[v.Inputs[0]] {
			p.allocGrad(v.Inputs[0], last+1)
		}
		return
	}
	if !p.needs[i] || p.grads[i] == nil { // nil: nothing that it computes gets to the loss
		return
	}
	t := p.back(i)
	p.grads[i].live(t)
	p.reads(i, t)
	for k, in := range v.Inputs {
		if !p.needs[in] {
			continue
		}
		switch {
		case p.grads[in] == nil && len(p.consumers[in]) == 1 && p.passes(i, k):
			v.GradIn[k] = FlowAlias
			p.grads[in] = p.grads[i]
		case p.grads[in] == nil:
			v.GradIn[k] = FlowFirst
			p.allocGrad(in, t)
		default:
			v.GradIn[k] = FlowAdd
		}
		p.grads[in].live(t)
	}
}

// allocGrad gives the gradient of node i a buffer of its own, from time t on.
func (p *planner) allocGrad(i, t int) {
	p.grads[i] = p.add(Backward, i, p.Nodes[i].Image.Len(), t, t)
}

// passes tells that a node turns its output's gradient into that of input k in place.
func (p *planner) passes(i, k int) bool {
	switch op := p.g.Nodes[i].Op; op {
	case model.OpAdd:
		// Only one input may take the buffer: what is before it will write there.
		return k == 0
	case model.OpFlatten, model.OpSequence:
		return p.Nodes[i].InPlace
	default:
		return kinds[op].single || kinds[op].passes
	}
}

// reads keeps alive what a node's backward pass at time t reads.
func (p *planner) reads(i, t int) {
	v, k := &p.Nodes[i], &kinds[p.g.Nodes[i].Op]
	if k.readsInput && !(k.inputForWeights && p.g.Nodes[i].Frozen) {
		p.outs[v.Inputs[0]].live(t)
	}
	if k.readsInputs {
		for _, in := range v.Inputs {
			p.outs[in].live(t)
		}
	}
	if n := &p.g.Nodes[i]; n.Masked {
		p.outs[n.Inputs[len(n.Inputs)-1]].live(t)
	}
	if k.readsOutput || v.ReLU && p.g.Nodes[i].Op == model.OpBatchNorm {
		p.outs[i].live(t)
	}
}

// resolveBuffers writes the final places of the buffers into the nodes.
func (p *planner) resolveBuffers() {
	for i := range p.Nodes {
		if b := p.outs[i]; b != nil {
			b.tell(&p.Nodes[i].Out)
		}
		if b := p.grads[i]; b != nil {
			b.tell(&p.Nodes[i].Grad)
		}
	}
}
