// Package controller runs a job: it checks the request, executes its plan in the order of DiSDeL's Algorithm 1 and
// records the result.
//
// Manager has no clock, I/O or goroutine, so that every decision can be replayed in a test. Only the loop in run.go
// waits, calls the platform and reads the clock. The interfaces Invoker, Recorder and JobStore carry out its orders;
// service implements them.
//
// A job file is refused with every fault at once (disdel.Faults). Invariant: a started job ends in exactly one
// terminal status, and its record is saved.
package controller
