package jobfile

import (
	"cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

const backendPath = "training.backend"

// device has a job that asks for a GPU trained by the engine of GPUs, and refuses what does not go with one.
func (r *reader) device(job *disdel.Job) {
	const device, share = "resources.device", "resources.gpu"
	_, sparse := model.FindSparse(job.Model.Name)
	switch onGPU := job.Resources.Device == disdel.DeviceGPU; {
	case !r.sound(device, share, backendPath):
	case !onGPU && r.given(share):
		r.fault(r.places[share], share, "write device: gpu beside it",
			"it says what a job takes of GPUs, and this one is not trained by one")
	case !onGPU:
	case sparse || job.Model.Custom != "":
		r.fault(r.places[device], device, "leave it out", "%s is trained by the processor alone",
			cmp.Or(job.Model.Custom, job.Model.Name))
	case r.given(backendPath):
		r.fault(r.places[backendPath], backendPath, "leave it out", "GPUs have an engine of their own")
	default:
		job.Training.Backend = disdel.BackendCUDA
	}
}
