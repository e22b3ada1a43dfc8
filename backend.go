package disdel

// The backends that a job may ask for: what computes its networks. Each is a package of runtime/engine, which says what
// it supports and takes; here are only the names, which job files, requests and records carry.
const (
	BackendNative   = "native"   // the engine with its static plan; also what "" means
	BackendGorgonia = "gorgonia" // gorgonia's expression graphs; also of an action's own networks
	BackendSparse   = "sparse"   // of models of sparse rows, which no other computes; also what "" means for them
)

// BackendCUDA is the backend of NVIDIA's GPUs, which programs have that are built for them. A job gets it by
// resources.device.
const BackendCUDA = "cuda"

// Backends are the names that a job file may have.
func Backends() []string { return []string{BackendNative, BackendGorgonia, BackendSparse} }
