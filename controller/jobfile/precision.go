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

// precision leaves the default unsaid, and refuses bf16 where another engine trains than the one that has it. It comes
// when the job's engine is known.
func (r *reader) precision(job *disdel.Job) {
	const path = "training.precision"
	t := &job.Training
	if !t.Precision.Short() {
		t.Precision = ""
		return
	}
	engine := t.Backend
	if job.Model.Custom != "" {
		engine = disdel.BackendGorgonia
	}
	if cmp.Or(engine, disdel.BackendNative) != disdel.BackendNative && r.sound(path, backendPath, "resources.device") {
		r.fault(r.places[path], path, "leave it out", "%s computes with float32 alone", engine)
	}
}
