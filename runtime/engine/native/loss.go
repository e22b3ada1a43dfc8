package native

import (
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// Losses. Each is the mean over the rows. Targets are numbers, or one-hot where rows have classes.
const (
	CrossEntropy       = disdel.LossCrossEntropy       // of the softmax of the outputs
	BinaryCrossEntropy = disdel.LossBinaryCrossEntropy // of the outputs as probabilities, mean over classes
	MSE                = disdel.LossMSE                // mean over outputs
)

// lossNames are all losses; the last four take numbers, of which binary cross-entropy takes those from 0 to 1.
var lossNames = []string{CrossEntropy, BinaryCrossEntropy, MSE, disdel.LossMAE, disdel.LossHuber}

func knownLoss(name string) bool { return slices.Contains(lossNames, name) }

// ofNumbers tells whether a loss takes numbers.
func ofNumbers(name string) bool { return slices.Contains(lossNames[1:], name) }

// ofClasses tells whether a loss takes classes.
func ofClasses(name string) bool { return slices.Contains(lossNames[:3], name) }

// lossOf reads the outputs of the rows, applies a last softmax, and adds the loss where there are labels. With gradient
// set, it writes the gradient of the loss where backward starts.
func (e *Engine) lossOf(w *kernel.Worker, gradient bool) {
	if e.g.PredictsTokens() {
		e.lossOfTokens(w, gradient)
		return
	}
	head := &e.layers[e.head]
	classes := head.v.Image.C * head.v.Image.H * head.v.Image.W
	out, losses := e.out[e.first*classes:], e.losses[e.first:]
	if w.ID == 0 {
		if e.plan.ByRows {
			w.RowsExport(out, head.out, head.v.Image, e.rows)
		} else {
			w.Export(out, head.out, head.v.Image, e.rows)
		}
	}
	w.Sync()
	if e.g.Slice.Leaves() { // the outputs of a slice have no loss
		return
	}
	last := e.g.Nodes[len(e.g.Nodes)-1].Op
	softmax, sigmoid := last == model.OpSoftmax, last == model.OpSigmoid && e.head < len(e.g.Nodes)-1
	from, to := e.rows*w.ID/w.N, e.rows*(w.ID+1)/w.N
	for r := from; r < to; r++ {
		row := out[r*classes : (r+1)*classes]
		label := -1
		if e.target.Values != nil {
			losses[r] = numberLoss(e.spec.Loss, row, e.target.Values[r*classes:][:classes], gradient, 1/float64(e.batch))
			continue
		}
		if e.target.Classes != nil {
			label = int(e.target.Classes[r])
		}
		e.right[r] = label >= 0 && largest(row) == label
		if s := &e.spec; (s.LabelSmoothing > 0 || s.ClassWeights != nil) && label >= 0 && e.training {
			loss := smoothed(row, label, s.LabelSmoothing, s.ClassWeights, softmax, gradient, 1/e.weighed)
			losses[r] = float64(e.batch) / e.weighed * loss
			continue
		}
		if sigmoid {
			losses[r] = binaryOfSigmoid(row, label, nil, gradient, 1/float64(e.batch))
			continue
		}
		losses[r] = rowLoss(e.spec.Loss, row, label, softmax, gradient, 1/float64(e.batch))
	}
	w.Sync()
	if w.ID == 0 {
		if e.first == 0 {
			e.loss, e.correct = 0, 0
		}
		for i, v := range losses[:e.rows] {
			e.loss += v
			if e.right[i] {
				e.correct++
			}
		}
	}
	if gradient && len(head.grad) > 0 { // there is none where the network has nothing to learn
		w.Import(head.grad, head.v.Image, head.v.Border, out, e.rows)
	}
	w.Sync()
}

// rowLoss returns the loss of a row of outputs for a label, 0 without one. If a softmax ends the network, it turns the
// row into probabilities. With gradient set, it replaces the row by scale times the loss's gradient.
func rowLoss(loss string, row []float32, label int, softmax, gradient bool, scale float64) float64 {
	if loss == CrossEntropy {
		return crossEntropy(row, label, softmax, gradient, scale)
	}
	if softmax && label >= 0 && loss == BinaryCrossEntropy {
		return binaryOfSoftmax(row, label, gradient, scale)
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
		throughSoftmax(row, label, scale/n)
	}
	return nanIf(sum/n, row)
}

// numberLoss returns the mean loss of a row's outputs for as many targets. With gradient set it replaces the row by
// scale times the loss's gradient.
func numberLoss(loss string, row, targets []float32, gradient bool, scale float64) float64 {
	if loss == BinaryCrossEntropy {
		return binaryOfSigmoid(row, -1, targets, gradient, scale)
	}
	var sum float64
	n := float64(len(row))
	for k, v := range row {
		off := float64(v) - float64(targets[k])
		far := math.Abs(off)
		cost, slope := off*off, 2*off
		switch {
		case loss == disdel.LossHuber && far <= 1:
			cost, slope = cost/2, off
		case loss == disdel.LossHuber:
			cost, slope = far-0.5, math.Copysign(1, off)
		case loss == disdel.LossMAE && off == 0:
			cost, slope = 0, 0
		case loss == disdel.LossMAE:
			cost, slope = far, math.Copysign(1, off)
		}
		sum += cost
		if gradient {
			row[k] = float32(scale * slope / n)
		}
	}
	return sum / n
}

// binaryOfSigmoid is the mean binary cross-entropy of the sigmoids of a row's outputs for as many targets from 0 to 1,
// or for a label, which is 1 where all others are 0. It goes by the outputs before the sigmoid and clips nothing. With
// gradient set the row becomes scale times the gradient, else the sigmoids. Without targets and label the loss is 0.
func binaryOfSigmoid(row []float32, label int, targets []float32, gradient bool, scale float64) float64 {
	var sum float64
	n := float64(len(row))
	for k, v := range row {
		z, t := float64(v), 0.0
		switch {
		case targets != nil:
			t = float64(targets[k])
		case k == label:
			t = 1
		}
		sum += math.Max(z, 0) - z*t + math.Log1p(math.Exp(-math.Abs(z)))
		p := 1 / (1 + math.Exp(-z))
		if row[k] = float32(p); gradient {
			row[k] = float32(scale * (p - t) / n)
		}
	}
	if targets == nil && label < 0 {
		return 0
	}
	return sum / n
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

// throughSoftmax is the gradient of the squares before the softmax: p (s - sum of s p), s being the slope by p.
func throughSoftmax(row []float32, label int, scale float64) {
	slope := func(k int) float64 {
		if k == label {
			return 2 * (float64(row[k]) - 1)
		}
		return 2 * float64(row[k])
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

// crossEntropy is the negative logarithm of the label's softmax, of the outputs themselves: however small the
// probability, its logarithm is a difference of outputs.
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
		loss = math.Log(sum) - (float64(row[label]) - top)
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

// checkClassWeights returns Invalid for weights that the loss or the network does not have.
func checkClassWeights(s *engine.Spec) error {
	if s.ClassWeights == nil {
		return nil
	}
	bad := func(msg, hint string) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "make engine", Msg: msg, Hint: hint}
	}
	switch n := s.Graph.Output().Len(); {
	case s.Loss != CrossEntropy || s.Graph.PredictsTokens():
		return bad(fmt.Sprintf("class weights with the loss %s", s.Loss), "use crossEntropy, and no language model")
	case len(s.ClassWeights) != n:
		return bad(fmt.Sprintf("%d class weights for %d outputs", len(s.ClassWeights), n), "give each class one weight")
	case slices.ContainsFunc(s.ClassWeights, func(w float32) bool { return !(w > 0) || math.IsInf(float64(w), 0) }):
		return bad(fmt.Sprintf("the class weights %v", s.ClassWeights), "give weights above 0")
	default:
		return nil
	}
}

// weigh adds up the class weights of a batch, by which its loss is divided. Without weights each row counts as 1.
func (e *Engine) weigh(classes []int32) {
	e.weighed = float64(len(classes))
	if e.spec.ClassWeights == nil {
		return
	}
	e.weighed = 0
	for _, k := range classes {
		e.weighed += float64(e.spec.ClassWeights[k])
	}
}

// smoothed is crossEntropy of a label of which a share is spread evenly over all classes (Szegedy 2016). The loss of
// each class counts as much as its weight; without weights all count as 1.
func smoothed(
	row []float32, label int, share float64, weights []float32, softmax, gradient bool, scale float64,
) float64 {
	weight := func(k int) float64 {
		if weights == nil {
			return 1
		}
		return float64(weights[k])
	}
	top, n, spread, off := float64(row[label]), float64(len(row)), 0.0, 0.0
	for k, v := range row {
		spread += share / n * weight(k)
		off += share / n * weight(k) * (top - float64(v))
	}
	whole := (1-share)*weight(label) + spread
	// The loss of a class k is log(sum of exp) less output k: the others differ from the label's by the outputs alone.
	loss := whole*crossEntropy(row, label, softmax, gradient, scale*whole) + off
	for k := range row {
		if !gradient {
			break
		}
		row[k] -= float32(scale * share / n * weight(k))
		if k == label {
			row[k] += float32(scale * spread)
		}
	}
	return loss
}

// binaryOfSoftmax is binary cross-entropy of the softmax p of a row: -log p of the label and -log(1-p) of every other
// class, over the number of classes. It goes by the outputs before the softmax and clips nothing, so that the gradient
// is the loss's wherever the row is. With gradient set the row becomes scale times the gradient, else p.
func binaryOfSoftmax(row []float32, label int, gradient bool, scale float64) float64 {
	best := largest(row)
	first := float64(row[best])
	sum, rest := 0.0, logSumBut(row, best)
	for _, v := range row {
		sum += math.Exp(float64(v) - first)
	}
	loss, odds := 0.0, 0.0 // odds: p over 1-p, of all classes but the label and the largest
	for k, v := range row {
		e := math.Exp(float64(v) - first)
		switch {
		case k == label:
			loss += math.Log(sum) - (float64(v) - first)
		case k == best: // the difference of sum and e would have lost its digits
			loss += math.Log(sum) - rest
		default:
			loss += math.Log(sum) - math.Log(sum-e)
			odds += e / (sum - e)
		}
	}
	n := float64(len(row))
	for j, v := range row {
		e := math.Exp(float64(v) - first)
		p := e / sum
		if !gradient {
			row[j] = float32(p)
			continue
		}
		// By its output: p less p times the odds of all others, where the label's are -1; of the label itself p-1 stands for
		// p.
		own, others := p, odds
		switch {
		case j == label && j == best:
			own = -math.Exp(rest) / sum
		case j == label:
			own = p - 1
		case j == best:
			others--
		default:
			others -= e/(sum-e) + 1
		}
		slope := own - p*others
		if best != label && j != best { // p times the odds of the largest, which may be beyond any number, is not
			slope -= math.Exp(float64(v)-first-rest) / sum
		}
		row[j] = float32(scale / n * slope)
	}
	return loss / n
}

// logSumBut is the logarithm of the sum of exp(v - row[but]) over all other values.
func logSumBut(row []float32, but int) float64 {
	top, sum := math.Inf(-1), 0.0
	for k, v := range row {
		if k != but {
			top = math.Max(top, float64(v))
		}
	}
	for k, v := range row {
		if k != but {
			sum += math.Exp(float64(v) - top)
		}
	}
	return top - float64(row[but]) + math.Log(sum)
}
