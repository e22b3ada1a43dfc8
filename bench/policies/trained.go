package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native"
)

// What is trained for the record of losses: this many jobs of so many epochs, on so many rows of the built-in digits.
const (
	trainedJobs   = 66
	trainedEpochs = 36
	trainedRows   = 700
)

// trained measures the error of the estimated remaining epochs, half way to a target, on losses of networks that were
// really trained: networks, optimisers, rates and batches drawn from a seed. The target is the loss of a later epoch of
// the same job. Jobs come one after another. Each estimate uses earlier jobs of the same network, if at least three are
// similar. Beside it are the estimate of the fit only, and that of Coach's fit on the same losses.
func trained() error {
	digits, err := dataset.Digits()
	if err != nil {
		return err
	}
	lot := rand.New(rand.NewPCG(16, 3))
	var ours, fit, coach score
	past := map[string][][]estimator.LossPoint{} // of the same network
	for range trainedJobs {
		name := []string{"mlp", "digits-cnn"}[lot.IntN(2)]
		losses, err := losses(digits, name, lot)
		if err != nil {
			return err
		}
		truth, target := reached(losses, 14+lot.IntN(trainedEpochs-14))
		half := truth / 2
		all := points(losses)
		c, ok := estimator.Converge(all[:half], target)
		fit.add(c, ok, half, truth)
		if like, found := estimator.ConvergeBySimilar(all[:half], past[name], target); found {
			c, ok = like, true
		}
		ours.add(c, ok, half, truth)
		coach.off = append(coach.off, math.Abs(coachEpochs(losses[:half], target)-float64(truth))/float64(truth-half))
		past[name] = append(past[name], all)
	}
	rig.MedianFigure("convergence_error_half", ours.off, "of the epochs left")
	rig.MedianFigure("convergence_error_half_fit", fit.off, "of the epochs left")
	rig.MedianFigure("convergence_error_half_coach", coach.off, "of the epochs left")
	rig.Figure("convergence_trained_within", ours.held/trainedJobs, "of 1")
	rig.Figure("convergence_trained_silent", ours.silent/trainedJobs, "of 1")
	return nil
}

// score is how estimates have come out.
type score struct {
	off          []float64 // share of the epochs left
	held, silent float64
}

// add takes an estimate made after so many epochs.
func (s *score) add(c estimator.Convergence, ok bool, now, truth int) {
	if ok && c.Epochs.Low <= float64(truth) && float64(truth) <= c.Epochs.High {
		s.held++
	}
	if !ok || math.IsInf(c.Epochs.Likely, 1) {
		s.silent++
		return
	}
	s.off = append(s.off, math.Abs(c.Epochs.Likely-float64(truth))/float64(truth-now))
}

func points(losses []float64) (out []estimator.LossPoint) {
	for e, l := range losses {
		out = append(out, estimator.LossPoint{Epoch: float64(e + 1), Loss: l})
	}
	return out
}

// reached is the first epoch, from 1, whose loss is that of an epoch or below, and that loss.
func reached(losses []float64, epoch int) (first int, target float64) {
	target = losses[epoch]
	for e, l := range losses {
		if l <= target {
			return e + 1, target
		}
	}
	return epoch + 1, target
}

// losses trains a network as it is drawn, and returns the mean training loss of each epoch.
func losses(in dataset.Input, name string, lot *rand.Rand) ([]float64, error) {
	batch := []int{16, 32, 64}[lot.IntN(3)]
	rate := math.Exp(-6 + 3*lot.Float64())
	opt := disdel.Optimizer{SGD: &disdel.SGD{LearningRate: rate, Momentum: 0.9 * float64(lot.IntN(2))}}
	if lot.IntN(3) == 0 {
		opt = disdel.Optimizer{Adam: &disdel.Adam{LearningRate: rate / 10}}
	}
	g, err := model.Build(disdel.Network{Name: name, Input: []int{1, 8, 8}, Classes: 10})
	if err != nil {
		return nil, err
	}
	e, err := native.New(engine.Spec{
		Graph: g, BatchSize: batch, Threads: 1, Training: true, Optimizer: opt, Loss: "crossEntropy",
		Seed: int64(lot.IntN(1000)),
	})
	if err != nil {
		return nil, err
	}
	defer e.Close() //nolint:errcheck // it is only memory
	if err := e.Init(disdel.Init{Scheme: "he", Seed: int64(lot.IntN(1000))}); err != nil {
		return nil, err
	}
	e.SetRate(opt.Rate())
	columns := g.Input().Len()
	x, y := make([]float32, batch*columns), make([]int32, batch)
	out := make([]float64, 0, trainedEpochs)
	for range trainedEpochs {
		sum, rows := 0.0, 0
		order := lot.Perm(trainedRows)
		for from := 0; from+batch <= trainedRows; from += batch {
			for i, row := range order[from : from+batch] {
				for k := range columns {
					x[i*columns+k] = value(&in, row*columns+k)
				}
				y[i] = in.Train.Labels[row]
			}
			m, err := e.Step(dataset.Dense(batch, x, y))
			if err != nil {
				return nil, fmt.Errorf("%s, batch %d, rate %g: %w", name, batch, rate, err)
			}
			sum, rows = sum+m.Loss*float64(m.Rows), rows+m.Rows
		}
		out = append(out, sum/float64(rows))
	}
	return out, nil
}

// value is one of the rows' numbers as networks see it.
func value(in *dataset.Input, i int) float32 {
	if len(in.Train.U8) > 0 {
		return float32(in.Train.U8[i]) * in.Scale
	}
	return in.Train.F32[i] * in.Scale
}

// coachEpochs returns the epochs to a target loss by Coach's fit, L(x) = 1/(b0 x + b1) + b2, with no parameter below 0.
// The fit is by least squares from ones. As in Coach, it adds one epoch if the target is at or below b2.
func coachEpochs(losses []float64, target float64) float64 {
	b := [3]float64{1, 1, 1}
	off := func(b [3]float64) (sum float64) {
		for i, l := range losses {
			d := 1/max(1e-9, b[0]*float64(i+1)+b[1]) + b[2] - l
			sum += d * d
		}
		return sum
	}
	damping := 1e-3
	for range 400 {
		next := coachStep(losses, b, damping)
		if off(next) < off(b) {
			b, damping = next, damping/3
		} else if damping *= 3; damping > 1e12 {
			break
		}
	}
	now := float64(len(losses))
	if b[2] >= target || b[0] <= 0 {
		return now + 1
	}
	return max(now+1, math.Ceil((1/(target-b[2])-b[1])/b[0]))
}

// coachStep is a step of Levenberg and Marquardt, cut off at 0.
func coachStep(losses []float64, b [3]float64, damping float64) [3]float64 {
	var a [3][4]float64
	for i, l := range losses {
		x := float64(i + 1)
		under := max(1e-9, b[0]*x+b[1])
		slope := [3]float64{-x / under / under, -1 / under / under, 1}
		r := 1/under + b[2] - l
		for j := range slope {
			for k := range slope {
				a[j][k] += slope[j] * slope[k]
			}
			a[j][3] -= slope[j] * r
		}
	}
	for j := range a {
		a[j][j] *= 1 + damping
		a[j][j] += 1e-12
	}
	for c := range 3 {
		for r := range 3 {
			if r == c {
				continue
			}
			by := a[r][c] / a[c][c]
			for k := c; k < 4; k++ {
				a[r][k] -= by * a[c][k]
			}
		}
	}
	for j := range b {
		b[j] = max(0, b[j]+a[j][3]/a[j][j])
	}
	return b
}
