// Package sim is a cloud in virtual time: a clock whose events come in order, invokers with containers that are cold or
// warm, memory and processors that activations share, and throttles. What decides is not simulated: planner, manager,
// remedies and admission are the product's own, and are driven by whoever drives a cloud (controller/simulate).
//
// Rehearse drives admission alone: jobs that come, hold their gangs for a while, and go. Generate draws jobs from a
// seed, and Read and Write keep them as JSON lines.
//
// It is pure: no clock of the machine, no I/O but what it is handed, no randomness but from seeds. Equal input comes to
// equal output. It refuses a trace line that says what cannot be (disdel.Invalid, with its number).
package sim
