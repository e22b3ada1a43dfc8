// Package gpu is the engine for GPUs as a program has it, by the tag that it is built with: nvidia, by make cuda, for
// NVIDIA's GPUs; emulated, for tests, with devices that are the processor's; else none, and nothing of either.
//
// The tables of backends take it from here (package backends, and the action runtime of an image), and so does whoever
// asks which devices there are. It refuses nothing. Invariant: a program without a tag is pure Go.
package gpu
