package python

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// alignment is the multiple of bytes at which every array of the shared file starts.
const alignment = 64

const (
	floatSize   = 4
	labelSize   = 4
	integerSize = 8
	slots       = 2 // of batches: one computes while the next one is written
)

// layout says where the arrays of the shared file start, in bytes.
type layout struct {
	Weights  []int      `json:"weights"`  // by parameter
	Moments  [][]int    `json:"moments"`  // by name, then by trained parameter
	Integers []int      `json:"integers"` // by buffer of whole numbers
	X        [slots]int `json:"x"`
	Y        [slots]int `json:"y"`
	Outputs  int        `json:"outputs"`
	Labels   int        `json:"labels"`
	Size     int        `json:"size"`
}

func newLayout(s *engine.Spec, c *disdel.CustomNetwork) layout {
	l := layout{Weights: []int{}, Moments: [][]int{}, Integers: []int{}}
	take := func(values, size int) (at int) {
		at = l.Size
		l.Size += (values*size + alignment - 1) / alignment * alignment
		return at
	}
	for _, p := range c.Params {
		l.Weights = append(l.Weights, take(model.Shape(p.Shape).Len(), floatSize))
	}
	for range momentNames(s) {
		sizes := []int{}
		for _, p := range c.Params {
			if p.Trainable {
				sizes = append(sizes, take(model.Shape(p.Shape).Len(), floatSize))
			}
		}
		l.Moments = append(l.Moments, sizes)
	}
	for _, p := range c.Python.Integers {
		l.Integers = append(l.Integers, take(model.Shape(p.Shape).Len(), integerSize))
	}
	for i := range slots {
		l.X[i], l.Y[i] = take(s.BatchSize*model.Shape(c.Input).Len(), floatSize), take(s.BatchSize, labelSize)
	}
	l.Outputs, l.Labels = take(s.BatchSize*c.Classes, floatSize), take(s.BatchSize, labelSize)
	return l
}

// momentNames are the arrays that an optimiser keeps for every weight; none where nothing is trained.
func momentNames(s *engine.Spec) []string {
	if !s.Training {
		return nil
	}
	return s.Optimizer.MomentNames()
}
