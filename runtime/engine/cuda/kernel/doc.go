// Package kernel has what a GPU computes with: kernels in CUDA C, their sources embedded, and for each a function that
// says how it is launched: on how many blocks, with which arguments. Nothing here needs a device, a driver or C: the
// package says what is to be done, and a driver.Device does it.
//
// # Layout
//
// Activations are laid out as package native/kernel has them, [height][width][channel][lane], the batch innermost and
// padded to 16: threads that are neighbours have neighbouring lanes, so that whatever a kernel looks up, it reads in
// runs. Weights are as PyTorch has them.
//
// # Sources
//
// The sources are C with a few words of common.cuh, so that the same text is compiled by nvrtc for a device and by any
// C compiler for the processor (package emulated). Source puts them together, and Hash tells whether compiled code is
// of these sources.
//
// Invariant: no sum is an atomic one, and how a sum is divided depends on sizes alone. The same launches on the same
// values give the same bits, on every device of a kind.
package kernel
