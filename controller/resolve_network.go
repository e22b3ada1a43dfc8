package controller

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

const pythonPath = "model.python"

// python takes the network of a Python program from its description, and with it what the program decides itself: its
// optimiser, and whether the optimiser's state can be averaged.
func (r *resolver) python(m *disdel.Python) bool {
	d, data := m.Network, r.Resolved.Data
	switch {
	case m.Translation != nil:
		return true // its layers are the network's
	case d == nil || d.Python == nil:
		if r.found && len(r.faults) == 0 { // nobody describes programs of jobs with faults
			r.fault(pythonPath, "submit it with the command disdel, which looks at the program and sends it along",
				"nobody has described the program %s", m.Name())
		}
		return false
	case !r.found:
		r.Network.Input, r.Network.Classes = d.Input, d.Classes
	case !slices.Equal(d.Input, data.Sample) || d.Classes != data.Classes:
		r.fault(pythonPath, "submit the job anew",
			"the program was described for inputs of %v and %d classes, and %s has inputs of %v and %d classes",
			d.Input, d.Classes, data.Name, data.Sample, data.Classes)
		return false
	}
	if why := wrongMemory(d.Python); why != "" {
		r.fault(pythonPath, "submit the job anew", "the description of %s %s", m.Name(), why)
		return false
	}
	if r.translates(m, d.Python.Translation) {
		return r.Job.Model.Translated()
	}
	m, d = ownDescription(*m, *d, *d.Python)
	r.Job.Model.Python, r.Network.Custom = m, d
	for _, w := range d.Python.Warnings {
		r.Notes = append(r.Notes, m.Name()+": "+w)
	}
	if own := d.Python.Optimizer; own != nil {
		r.ownOptimizer(m, *own)
	}
	return true
}

// ownDescription copies a description, whose memory the service may learn: clients keep theirs for other jobs.
func ownDescription(m disdel.Python, d disdel.CustomNetwork, p disdel.PythonNetwork) (*disdel.Python,
	*disdel.CustomNetwork,
) {
	d.Python, m.Network = &p, &d
	return &m, &d
}

// mostMemory bounds the sizes of a description: sums of them stay exact.
const mostMemory = disdel.Bytes(1) << 50

// wrongMemory says what is wrong with the memory of a description, which a client of a server may have made up.
func wrongMemory(p *disdel.PythonNetwork) string {
	sizes := []disdel.Bytes{p.Floor}
	for i, m := range p.Memory {
		if m.Batch < 1 || i > 0 && m.Batch <= p.Memory[i-1].Batch {
			return "does not list the memory by rising batch sizes"
		}
		sizes = append(sizes, m.Train, m.Infer)
	}
	if slices.Min(sizes) < 0 || slices.Max(sizes) > mostMemory || len(p.Memory) > 0 && (p.Factor < 1 || p.Factor > 10) {
		return "has memory that no process takes"
	}
	return ""
}

// ownOptimizer replaces the job's optimiser by the program's. One that a record has already stays: policies change its
// rate. A state that only the optimiser can read starts anew in every round.
func (r *resolver) ownOptimizer(m *disdel.Python, own disdel.OwnOptimizer) {
	o := &r.Job.Training.Optimizer
	if o.Own == nil {
		r.Notes = append(r.Notes, m.Name()+" makes its own optimiser: training.optimizer does not count")
		*o = disdel.Optimizer{Own: &own}
	}
	if own.Opaque {
		r.Job.Distribution.Aggregation.OptimizerState = disdel.StateReset
	}
}

const backendPath = "training.backend"

// translates lets disdel's own engine train a program's network where the job asks for it: by backend native always, by
// auto where the engines agree and it is the faster one. It tells whether it did, or reported why it cannot.
func (r *resolver) translates(m *disdel.Python, t *disdel.PythonTranslation) bool {
	training, doubt := &r.Job.Training, t.Doubt()
	switch {
	case training.Backend == disdel.BackendNative && (t == nil || len(t.Layers) == 0):
		r.fault(backendPath, "leave training.backend out, and Python trains it",
			"disdel's engine cannot train the network of %s: %s", m.Name(), doubt)
		return true
	case training.Backend == disdel.BackendNative:
		if doubt != "" {
			r.Notes = append(r.Notes, fmt.Sprintf("disdel's engine trains %s, as asked: %s", m.Name(), doubt))
		}
	case training.Backend == disdel.BackendAuto && doubt == "":
		r.Notes = append(r.Notes, fmt.Sprintf("disdel's engine trains %s: losses of %s differ by at most %.1g from "+
			"PyTorch's, and a step is %.1f times as fast", m.Name(), t.Compared(), t.Difference, t.Speedup))
	case training.Backend == disdel.BackendAuto:
		r.Notes = append(r.Notes, fmt.Sprintf("Python trains %s: %s", m.Name(), doubt))
		fallthrough
	default:
		if doubt == "" {
			r.Notes = append(r.Notes, fmt.Sprintf("disdel's engine can train %s, %.1f times as fast by a step of %d rows in "+
				"one thread: add training.backend: native, or auto", m.Name(), t.Speedup, t.Rows))
		}
		training.Backend = disdel.BackendPython
		return false
	}
	r.takeLayers(*m, *t)
	return true
}

// takeLayers makes the layers of a program's network those of the job. Training starts with the program's weights.
func (r *resolver) takeLayers(m disdel.Python, t disdel.PythonTranslation) {
	job := &r.Job
	job.Training.Backend, job.Model.Layers = disdel.BackendNative, t.Layers
	job.Training.Loss = cmp.Or(t.Loss, job.Training.Loss)
	job.Training.Optimizer = *cmp.Or(t.Optimizer, &job.Training.Optimizer)
	if !job.Model.Init.Given() {
		job.Model.Init.Weights = t.Weights
	}
	t.Layers = nil
	m.Network, m.Translation = nil, &t
	job.Model.Python = &m
	r.Network.Layers, r.Network.Init = job.Model.Layers, job.Model.Init
}

// twoClasses replaces a single sigmoid output, for data of two classes, by two outputs of a softmax: the same
// classifier, by the difference of the two, in a form that every loss accepts.
func (r *resolver) twoClasses() {
	if !r.found || r.Resolved.Data.Classes != 2 || r.Resolved.Data.Numbers() {
		return
	}
	if layers, ok := model.TwoOutputs(r.Network.Layers); ok {
		r.Network.Layers = layers
		r.Notes = append(r.Notes,
			"the network's single sigmoid output stands for two classes: it is trained as two outputs with softmax, which is "+
				"the same classifier")
	}
}

// endInSoftmax gives a classifier the softmax that crossEntropy computes in any case, so that its answers are
// probabilities. Layers from PyTorch usually leave it out.
func (r *resolver) endInSoftmax() {
	layers := r.Network.Layers
	if !r.found || len(layers) == 0 || r.Job.Training.Loss != disdel.LossCrossEntropy {
		return
	}
	d, last := r.Resolved.Data, layers[len(layers)-1]
	if d.Numbers() || d.MultiLabel() || d.NextToken || d.Sparse != nil ||
		last.Kind == "softmax" || last.Activation == "softmax" {
		return
	}
	r.Network.Layers = append(slices.Clone(layers), disdel.Layer{Kind: "softmax", Name: "output.softmax"})
	r.Notes = append(r.Notes,
		"the network does not end in softmax, so disdel appends one: its answers are probabilities, and crossEntropy is "+
			"the same")
}

// custom compares the network that a job names with the binary's description.
func (r *resolver) custom(m disdel.Model) bool {
	switch d := m.Description; {
	case d == nil:
		r.fault("model.custom", "name the binary that has it: --action FILE", "network %q is known to its own binary only",
			m.Custom)
	case d.Name != m.Custom:
		r.fault("model.custom", fmt.Sprintf("write custom: %s", d.Name), "the binary has a network %q, not %q", d.Name,
			m.Custom)
	case !r.found:
		r.Network.Input, r.Network.Classes = d.Input, d.Classes
		return true
	default:
		return true
	}
	return false
}
