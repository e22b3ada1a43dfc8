package jobfile

import (
	"cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

const backendPath = "training.backend"

// device has a job that asks for a GPU trained by the engine of GPUs, and refuses what does not go with one.
func (r *reader) device(job *disdel.Job) {
	const device = "resources.device"
	_, sparse := model.FindSparse(job.Model.Name)
	switch {
	case job.Resources.Device != disdel.DeviceGPU || !r.sound(device, backendPath):
	case sparse || job.Model.Custom != "":
		r.fault(r.places[device], device, "leave it out", "%s is trained by the processor alone",
			cmp.Or(job.Model.Custom, job.Model.Name))
	case r.given(backendPath):
		r.fault(r.places[backendPath], backendPath, "leave it out", "GPUs have an engine of their own")
	default:
		job.Training.Backend = disdel.BackendCUDA
	}
}
