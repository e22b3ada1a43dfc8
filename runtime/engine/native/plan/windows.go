package plan

import "github.com/disdel/disdel/model"

// Windows is how the pixels of a map are in windows.
type Windows = model.Windows

// LargestScale is what a scale of cosines counts as at most.
const LargestScale = model.LargestScale

// ApartScore is by how much scores of places of different parts are less.
const ApartScore = model.ApartScore

// WindowShape is what a worker computes at a time of an attention in windows.
func WindowShape(s *Windows, width int) AttentionShape {
	return AttentionShape{Width: width, Positions: s.Len(), Rows: vector, Distances: s.Distances()}
}

// Across is the number of queries in whole blocks.
func (s AttentionShape) Across() int {
	return (s.Positions + s.Queries() - 1) / s.Queries() * s.Queries()
}

// Biases is the number of values of the biases of all scores of a window, [keys][queries].
func (s AttentionShape) Biases() int {
	if s.Distances == 0 {
		return 0
	}
	return s.Positions * s.Across()
}

// Sums is the number of values of the sums of a task: the gradients of the biases, and of a scale.
func (s AttentionShape) Sums() int {
	if s.Distances == 0 {
		return 0
	}
	return Padded(s.Distances + 1)
}

// workWindowAttention is workAttention of windows.
func (p *planner) workWindowAttention(i int) memory {
	n, in := &p.g.Nodes[i], p.Nodes[p.g.Nodes[i].Inputs[0]].Image
	windows, tasks := model.WindowsOf(n, in.H, in.W), n.Heads*p.Lanes/vector
	shape := WindowShape(&windows, n.Out[0]/n.Heads)
	return memory{
		forward: tasks * shape.Scratch(false), backward: tasks * shape.Scratch(true), kept: n.Heads * in.H * in.W * p.Lanes,
	}
}
