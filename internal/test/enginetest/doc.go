// Package enginetest holds every backend to what runtime/engine says of it: the same first weights, gradients, the same
// bits from the same seed, state that comes back as it went, evaluations that change nothing, refusals that were
// foretold, and a footprint that is what is measured.
//
// A backend's own tests call Exercise. It refuses nothing: what a backend does otherwise fails the test. Invariant: it
// knows a backend by its interface alone.
package enginetest
