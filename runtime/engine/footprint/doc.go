// Package footprint is what an engine takes of memory, known before there is one: by kind of memory (on the Go heap,
// beside it, on a device) and by category (weights, activations and so on).
//
// A backend makes a Footprint of a Spec, an engine tells its own, and the estimator, which knows no backend, adds them
// up. The package is apart from runtime/engine so that the estimator need not import what engines compute on. It
// refuses nothing: backends do. Invariant: Total is the sum over all kinds of memory, and over all categories.
package footprint
