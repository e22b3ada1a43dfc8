// Package native computes with a network: steps of training, evaluation and prediction on batches of samples.
//
// An Engine executes a model graph by a static plan (package plan): every tensor has its place in one slab of memory
// mapped outside the Go heap, taken and touched when the engine is made; a step allocates nothing. The arithmetic is
// package kernel's. A step runs every layer forward, the loss, and every layer backward. It updates a layer's weights
// as soon as their gradient is ready, so that the gradient of only one layer is in memory. Clipping by the norm needs
// the gradients of all layers, and keeps them.
//
// [Backend] registers this engine. State returns the weights without copying them. One goroutine at a time calls an
// engine. The engine refuses networks that a program defines itself. Invariant: the same graph, weights, batches and
// kernels give the same bits, on any number of threads.
package native
