package jobfile

import (
	"cmp"

	"github.com/disdel/disdel"
)

// precisions are the words of training.precision.
var precisions = func() (words []string) {
	for _, p := range disdel.Precisions() {
		words = append(words, string(p))
	}
	return words
}()

// precision leaves the default unsaid, and refuses what the engine that trains has not: the processor's has bf16, that
// of GPUs all, the others none. It comes when the job's engine is known.
func (r *reader) precision(job *disdel.Job) {
	const path = "training.precision"
	t := &job.Training
	if t.Precision.Plain() {
		t.Precision = ""
		return
	}
	engine := cmp.Or(t.Backend, disdel.BackendNative)
	if job.Model.Custom != "" {
		engine = disdel.BackendGorgonia
	}
	has := engine == disdel.BackendCUDA || engine == disdel.BackendNative && t.Precision.Short()
	switch {
	case has || !r.sound(path, backendPath, "resources.device"):
	case t.Precision == disdel.PrecisionTF32 && engine == disdel.BackendNative:
		r.fault(r.places[path], path, "write resources.device: gpu", "GPUs alone have %s", t.Precision)
	default:
		r.fault(r.places[path], path, "leave it out", "%s computes with float32 alone", engine)
	}
}
