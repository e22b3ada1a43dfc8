// Package sim is a cloud in virtual time: a clock with ordered events, invokers with cold and warm containers, memory
// and processors that activations share, and throttles. Decisions are not simulated: planner, manager, remedies and
// admission are the product's own, and the caller of a cloud drives them (controller/simulate).
//
// Generate draws jobs from a seed, and Read and Write use JSON lines.
//
// The package is deterministic: it has no clock of the machine, no I/O of its own, and randomness only from seeds. It
// refuses an invalid trace line (disdel.Invalid, with its number).
package sim
