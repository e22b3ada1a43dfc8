// Package cuda computes with a network on an NVIDIA GPU: steps of training, evaluation and prediction.
//
// It goes by the native engine's static plan (native/plan): every tensor has its place in one slab, here of device
// memory, taken when the engine is made; what its kernels need beside that lies behind it. The launches of a step are
// listed once and are always the same, whatever the batch, the rate or the seed: those lie in device memory, where the
// host writes them before it has the list run. So a driver can make one graph of a step, and the host has little to do.
// The arithmetic is package kernel's, and what a device is, package driver's: the package itself is plain Go and is
// built and tested without a GPU, against kernels that are compiled for the processor (package emulated).
//
// Backend is for the table of a program with the build tag nvidia. It refuses what the native backend refuses. When a
// device fails, it returns a *driver.Fault as the cause. Invariants: the same graph, weights, seed and batches give the
// same bits on the same device. A step that failed has changed no weight. Once a device is lost, every call returns
// that error.
package cuda
