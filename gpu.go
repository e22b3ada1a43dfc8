package disdel

// Annotations of actions that compute on GPUs. OpenWhisk knows no GPUs, and passes over what it does not know: a
// platform of disdel's hands a device to the container by the first two, and an OpenWhisk with the new scheduler sends
// the action to invokers that have the tag of the third.
const (
	AnnotationGPUMemory = "gpu-memory"        // MB of one GPU that the action takes
	AnnotationGPUCount  = "gpu-count"         // the most GPUs that the actions of its package lie on
	AnnotationInvoker   = "invoker-resources" // tags of invokers, a list
	InvokerGPU          = "gpu"               // the tag of invokers whose machines have GPUs
)

// GPUAnnotations are those of an action that takes part of a GPU, by its limits; none of an action that takes none.
func GPUAnnotations(l Limits) map[string]any {
	if l.Device <= 0 {
		return nil
	}
	out := map[string]any{AnnotationGPUMemory: l.Device.MB(), AnnotationInvoker: []string{InvokerGPU}}
	if l.Devices > 0 {
		out[AnnotationGPUCount] = l.Devices
	}
	return out
}
