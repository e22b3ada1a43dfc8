// Package controller runs a job: it checks the request, executes its plan in the order of DiSDeL's Algorithm 1 and
// records the result.
//
// Manager has no clock, I/O or goroutine, so that every decision can be replayed in a test. Only the loop in run.go
// waits, calls the platform and reads the clock. The interfaces Invoker, Recorder and JobStore carry out its orders;
// service implements them.
//
// A job file is refused with every fault at once (disdel.Faults). Invariant: a started job ends in exactly one
// terminal status, and its record is saved.
//
// Terms: a slot is the place of an action in the plan of all rounds, such as worker 0, or cluster 0 of level 1. An
// attempt is one try of a slot in a round, and a leg is one activation of an attempt. The manager answers an event with
// orders. Its barrier decides when the workers of a round have the next reference.
package controller
