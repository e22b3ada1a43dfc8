package estimator

import "github.com/disdel/disdel"

const (
	float          = 4 // bytes of a value
	passes         = 2 // x of Eq. 4: forward and backward
	paperParams    = 4 // z of Eq. 3: weights, gradients and Adam's two moments
	paperMargin    = 256 * disdel.MB
	paperPassNotes = "Eq. 5 is computed as printed: it multiplies by the epochs, though memory does not grow with them"
	paperTaskNotes = "the paper has equations of training actions only: these are Eq. 1 with what this task holds, and " +
		"the paper's margin"
)

// Paper is Eq. 1 to 5 as printed, for comparison. Parameters and outputs are those of Table I, read as the output's
// height, width and channels: a depthwise-separable pair is one layer, every layer has a bias, and batch norms do not
// count. The package is that of our runtime, since the paper's image is TensorFlow's. The margin (saf) is the paper's
// 256 MB.
//
// The paper has no interval and no risk: the likely peak is the sum of the terms, and the margin is the range of the
// peak.
func Paper(in Input) disdel.Estimate {
	parameters, outputs := tableI(in)
	return paperSum(disdel.Estimate{
		Package: calibrated.Package, Shard: disdel.Bytes(in.Rows) * in.SampleBytes, Model: float * parameters,
		Parameters:  float * paperParams * parameters,
		Activations: float * passes * disdel.Bytes(in.BatchSize) * outputs,
		Misc:        float * disdel.Bytes(in.Graph.Input().Len()) * disdel.Bytes(in.Epochs), Notes: []string{paperPassNotes},
	})
}

// tableI is t_par and t_act of Eq. 3 and 4.
func tableI(in Input) (parameters, outputs disdel.Bytes) {
	p, o := in.Graph.TableI()
	return disdel.Bytes(p), disdel.Bytes(o)
}

// paperEvaluate is Eq. 1 of an action that keeps only weights and computes one pass.
func paperEvaluate(in Input) disdel.Estimate {
	parameters, outputs := tableI(in)
	return paperSum(disdel.Estimate{
		Package: calibrated.Package, Shard: disdel.Bytes(in.Rows) * in.SampleBytes, Model: float * parameters,
		Parameters:  float * parameters,
		Activations: float * disdel.Bytes(in.BatchSize) * outputs,
		Notes:       []string{paperTaskNotes},
	})
}

// paperAggregate is Eq. 1 of an action that holds one update and the sum.
func paperAggregate(in Input) disdel.Estimate {
	parameters, _ := tableI(in)
	return paperSum(disdel.Estimate{
		Package: calibrated.Package, Model: float * parameters, Parameters: float * parameters,
		Update: float * parameters, Notes: []string{paperTaskNotes},
	})
}

func paperSum(e disdel.Estimate) disdel.Estimate {
	e.Method, e.Margin = MethodPaper, paperMargin
	e = sum(e)
	e.Total = e.Likely + e.Margin
	e.Low, e.High = e.Likely, e.Total
	return e
}
