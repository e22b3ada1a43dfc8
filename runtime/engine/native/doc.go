// Package native computes with a network: steps of training, evaluation and prediction on batches of samples.
//
// An Engine executes a model graph by a static plan (package plan): every tensor has its place in one slab of memory
// mapped outside the Go heap, taken and touched when the engine is made; a step allocates nothing. The arithmetic is
// package kernel's. A step runs every layer forward, the loss, and every layer backward, updating a layer's weights as
// soon as their gradient is there, so that no two layers' gradients are in memory at once (unless the gradient is
// clipped by its norm, which needs all of them).
//
// Backend is its place in the table of backends, and its engines are views of their slab: State copies nothing. Actions
// call an engine, one goroutine at a time; it refuses networks of a program's own. Invariant: the same graph, weights,
// batches and kernels give the same bits, on any number of threads.
package native
