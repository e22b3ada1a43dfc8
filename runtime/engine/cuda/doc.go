// Package cuda computes with a network on an NVIDIA GPU: steps of training, evaluation and prediction.
//
// It goes by the native engine's static plan (native/plan): every tensor has its place in one slab, here of device
// memory, taken when the engine is made; what its kernels need beside that lies behind it. The launches of a step are
// listed once and are always the same, whatever the batch, the rate or the seed: those lie in device memory, where the
// host writes them before it has the list run. So a driver can make one graph of a step, and the host has little to do.
// The arithmetic is package kernel's, and what a device is, package driver's: the package itself is plain Go and is
// built and tested without a GPU, against kernels that are compiled for the processor (package emulated).
//
// Backend is what a program with the build tag nvidia puts in its table; it refuses what the native backend refuses,
// and returns a *driver.Fault as the cause of whatever a device did not do. Invariants: the same graph, weights, seed
// and batches give the same bits on the same device; a step that went wrong has changed no weight; once a device is
// lost, every call says so.
package cuda
