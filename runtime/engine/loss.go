package engine

import (
	"math"

	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/kernel"
)

// Losses. Each is the mean over the rows; targets are one-hot.
const (
	CrossEntropy       = "crossEntropy"       // of the softmax of the outputs
	BinaryCrossEntropy = "binaryCrossEntropy" // of the outputs as probabilities, mean over classes
	MSE                = "mse"                // mean over classes
)

func knownLoss(name string) bool {
	return name == CrossEntropy || name == BinaryCrossEntropy || name == MSE
}

// lossOf reads the outputs of the rows, applies a last softmax, and computes the loss where there are labels; with gradient
// set it writes the gradient of the loss where backward starts.
func (e *Engine) lossOf(w *kernel.Worker, gradient bool) {
	head := &e.layers[e.head]
	classes := head.v.Image.Len() / e.plan.Lanes
	if w.ID == 0 {
		w.Export(e.out, head.out, head.v.Image, e.rows)
	}
	w.Sync()
	softmax := e.g.Nodes[len(e.g.Nodes)-1].Op == model.OpSoftmax
	from, to := e.rows*w.ID/w.N, e.rows*(w.ID+1)/w.N
	for r := from; r < to; r++ {
		row := e.out[r*classes : (r+1)*classes]
		label := -1
		if e.labels != nil {
			label = int(e.labels[r])
		}
		e.losses[r] = rowLoss(e.cfg.Loss, row, label, softmax, gradient, 1/float64(e.rows))
	}
	w.Sync()
	if w.ID == 0 {
		e.loss = 0
		for _, v := range e.losses[:e.rows] {
			e.loss += v
		}
		e.loss /= float64(e.rows)
	}
	if gradient {
		w.Import(head.grad, head.v.Image, head.v.Border, e.out, e.rows)
	}
	w.Sync()
}

// tiny is the least probability whose logarithm is taken: the smallest normal float32, so that a probability of 0 costs
// much, not infinitely much.
const tiny = 1.1754944e-38

// rowLoss turns a row of outputs into probabilities if a softmax ends the network, returns the row's loss for a label (0
// without one), and with gradient set replaces the row by scale times the loss's gradient.
func rowLoss(loss string, row []float32, label int, softmax, gradient bool, scale float64) float64 {
	if loss == CrossEntropy {
		return crossEntropy(row, label, softmax, gradient, scale)
	}
	if softmax {
		applySoftmax(row)
	}
	if label < 0 {
		return 0
	}
	var sum float64
	n := float64(len(row))
	for k, v := range row {
		y, t := float64(v), 0.0
		if k == label {
			t = 1
		}
		var slope float64
		if loss == MSE {
			sum += (y - t) * (y - t)
			slope = 2 * (y - t)
		} else {
			y = min(max(y, 1e-7), 1-1e-7)
			sum -= t*math.Log(y) + (1-t)*math.Log(1-y)
			slope = (y - t) / (y * (1 - y))
		}
		if gradient && !softmax {
			row[k] = float32(scale * slope / n)
		}
	}
	if gradient && softmax {
		throughSoftmax(loss, row, label, scale/n)
	}
	return nanIf(sum/n, row)
}

// nanIf keeps a NaN among outputs visible: comparisons hide it.
func nanIf(loss float64, row []float32) float64 {
	for _, v := range row {
		if v != v {
			return math.NaN()
		}
	}
	return loss
}

// throughSoftmax is the gradient before the softmax: p (s - sum of s p), s being the slope by p.
func throughSoftmax(loss string, row []float32, label int, scale float64) {
	slope := func(k int) float64 {
		p, t := float64(row[k]), 0.0
		if k == label {
			t = 1
		}
		if loss == MSE {
			return 2 * (p - t)
		}
		p = min(max(p, 1e-7), 1-1e-7)
		return (p - t) / (p * (1 - p))
	}
	var dot float64
	for k := range row {
		dot += slope(k) * float64(row[k])
	}
	for k := range row {
		row[k] = float32(scale * float64(row[k]) * (slope(k) - dot))
	}
}

func applySoftmax(row []float32) {
	top, sum := float64(math.Inf(-1)), 0.0
	for _, v := range row {
		top = math.Max(top, float64(v))
	}
	for _, v := range row {
		sum += math.Exp(float64(v) - top)
	}
	for k, v := range row {
		row[k] = float32(math.Exp(float64(v)-top) / sum)
	}
}

// crossEntropy is the negative logarithm of the label's softmax, of the outputs themselves.
func crossEntropy(row []float32, label int, softmax, gradient bool, scale float64) float64 {
	top, sum := math.Inf(-1), 0.0
	for _, v := range row {
		top = math.Max(top, float64(v))
	}
	for _, v := range row {
		sum += math.Exp(float64(v) - top)
	}
	var loss float64
	if label >= 0 {
		loss = math.Min(math.Log(sum)-(float64(row[label])-top), -math.Log(tiny))
		if sum != sum {
			loss = math.NaN()
		}
	}
	for k, v := range row {
		p := math.Exp(float64(v)-top) / sum
		switch {
		case gradient && k == label:
			row[k] = float32(scale * (p - 1))
		case gradient:
			row[k] = float32(scale * p)
		case softmax:
			row[k] = float32(p)
		}
	}
	return loss
}
