package plan

import "github.com/disdel/disdel/model"

// backward finds the buffers of the gradients that a node hands to its inputs, and says which values it still needs.
func (p *planner) backward(i int) {
	n, v := &p.g.Nodes[i], &p.Nodes[i]
	v.GradIn = make([]Flow, len(v.Inputs))
	last := len(p.g.Nodes) - 1
	if i == last && p.needs[i] && n.Op != model.OpSoftmax {
		p.allocGrad(i, last+1)
	}
	if n.Op == model.OpSoftmax { // the loss takes its input
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
	case model.OpFlatten:
		return p.Nodes[i].InPlace
	default:
		return kinds[op].single || kinds[op].passes
	}
}

// reads keeps alive what a node's backward pass at time t reads.
func (p *planner) reads(i, t int) {
	v, k := &p.Nodes[i], &kinds[p.g.Nodes[i].Op]
	if k.readsInput {
		p.outs[v.Inputs[0]].live(t)
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
