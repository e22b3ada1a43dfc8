// Package enginetest holds every backend to what runtime/engine says of it: the same first weights, correct gradients,
// and the same bits from the same seed. State is read back as it was set, evaluations change nothing, networks are
// refused as announced, and the footprint equals the measured memory.
//
// A backend's own tests call Exercise. It refuses nothing: what a backend does otherwise fails the test. Invariant: it
// knows a backend by its interface alone.
package enginetest
