// Package engine is the interface between actions and the backends that compute with a network: native, gorgonia, GPUs,
// sparse rows, or a user's own graph. It has the two interfaces of a backend, the arrays of an engine's state, the
// weights that training starts from, and the table of backends of a program.
//
// Actions use nothing else of an engine: no backend has methods of its own, and nothing asserts an engine's type.
// enginetest.Exercise checks every backend against these promises. The package computes nothing. It refuses arrays that
// an engine does not have, and values that are not finite. Invariant: WriteAt restores the bits that State reads, so
// that a worker continues where another stopped.
package engine
