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

// Paper is Eq. 1 to 5 as printed, kept for comparison, with Table I's activations read as the output's height, width
// and channels. What Table I does not have, or has otherwise, is counted as it is held: a batch norm's parameters, no
// bias before one, and both outputs of a depthwise-separable pair, which makes MobileNetV1's activations 1.62 times
// those of the table. pkg is what our runtime takes, since the paper's image is TensorFlow's; saf is the paper's 256
// MB.
//
// The paper knows no interval and no risk: the likely peak is what its terms add up to, and the margin is where the
// peak may still be.
func Paper(in Input) disdel.Estimate {
	c := in.Graph.Count()
	return paperSum(disdel.Estimate{
		Package: calibrated.Package, Shard: disdel.Bytes(in.Rows) * in.SampleBytes, Model: float * disdel.Bytes(c.Trainable),
		Parameters:  float * paperParams * disdel.Bytes(c.Trainable),
		Activations: float * passes * disdel.Bytes(in.BatchSize) * disdel.Bytes(c.ActivationsA),
		Misc:        float * disdel.Bytes(in.Graph.Input().Len()) * disdel.Bytes(in.Epochs), Notes: []string{paperPassNotes},
	})
}

// paperEvaluate is Eq. 1 of an action that keeps weights alone and computes one pass.
func paperEvaluate(in Input) disdel.Estimate {
	c := in.Graph.Count()
	return paperSum(disdel.Estimate{
		Package: calibrated.Package, Shard: disdel.Bytes(in.Rows) * in.SampleBytes, Model: float * disdel.Bytes(c.Trainable),
		Parameters:  float * disdel.Bytes(c.Trainable),
		Activations: float * disdel.Bytes(in.BatchSize) * disdel.Bytes(c.ActivationsA),
		Notes:       []string{paperTaskNotes},
	})
}

// paperAggregate is Eq. 1 of an action that holds one update beside the sum.
func paperAggregate(in Input) disdel.Estimate {
	c := in.Graph.Count()
	update := float * disdel.Bytes(c.Trainable)
	return paperSum(disdel.Estimate{
		Package: calibrated.Package, Model: update, Parameters: update,
		Notes: []string{paperTaskNotes},
	})
}

func paperSum(e disdel.Estimate) disdel.Estimate {
	e.Method, e.Margin = MethodPaper, paperMargin
	e = sum(e)
	e.Total = e.Likely + e.Margin
	e.Low, e.High = e.Likely, e.Total
	return e
}
