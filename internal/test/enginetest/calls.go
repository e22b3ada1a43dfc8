package enginetest

import (
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// On is a Spec for a graph.
func On(g *model.Graph, s engine.Spec) engine.Spec {
	s.Graph = g
	return s
}

// Train runs a step on rows of x, each with its label in y, and returns its loss.
func Train(e engine.Engine, x []float32, y []int32) (float64, error) {
	m, err := e.Step(dataset.Dense(len(y), x, y))
	return m.Loss, err
}

// Evaluate returns the sum of the rows' losses and how many are right.
func Evaluate(e engine.Engine, x []float32, y []int32) (lossSum float64, correct int, err error) {
	m, err := e.Evaluate(dataset.Dense(len(y), x, y))
	return m.Loss * float64(m.Rows), m.Correct, err
}

// Predict returns the outputs for rows of x, [rows outputs].
func Predict(e engine.Engine, x []float32, rows int) ([]float32, error) {
	m, err := e.Predict(dataset.Dense(rows, x, nil))
	return m.Values, err
}
