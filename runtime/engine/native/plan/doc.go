// Package plan fixes where every value of a training step lies before the step runs: it lays the tensors of a model
// graph into one slab, each at an offset, with a lifetime, so that two share memory when they are never alive together.
// It is arithmetic only. The engine in runtime/engine allocates the slab and computes in it; the estimator reads how
// many bytes it has; so both say the same, exactly, without running anything.
//
// Time is counted in layers: forward of node i is time i, the loss is time n, backward of node i is time 2n - i.
// Operations in place share a buffer: an activation on the output of a convolution, a sum onto a batch norm's output, a
// gradient through both. Gradients of weights live only until the update that follows them. Clipping needs all of them
// at once.
//
// Activations are laid out [H][W][C][lanes], lanes being the batch padded to 16; see package kernel. Invariants:
// buffers that overlap in time never overlap in the slab, and the slab never shrinks when the batch grows.
package plan
