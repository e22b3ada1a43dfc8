package native

import (
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// on is a Spec for a graph.
func on(g *model.Graph, s engine.Spec) engine.Spec {
	s.Graph = g
	return s
}

// train runs a step on rows of x and returns its loss.
func train(e engine.Engine, x []float32, y []int32) (float64, error) {
	m, err := e.Step(dataset.Dense(len(y), x, y))
	return m.Loss, err
}

// evaluate returns the sum of the rows' losses and how many are right.
func evaluate(e engine.Engine, x []float32, y []int32) (lossSum float64, correct int, err error) {
	m, err := e.Evaluate(dataset.Dense(len(y), x, y))
	return m.Loss * float64(m.Rows), m.Correct, err
}

func predict(e engine.Engine, x []float32, rows int) ([]float32, error) {
	m, err := e.Predict(dataset.Dense(rows, x, nil))
	return m.Values, err
}
