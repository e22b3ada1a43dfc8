// Package controller turns a job into a record: it checks the request, runs its plan in the order of
// DiSDeL's Algorithm 1 and keeps what came of it.
//
// Manager is pure: it takes values and gives values, without clock, I/O or goroutine, so that every decision
// can be replayed in a test. The loop in run.go is the only place that waits, calls the platform and reads the clock.
// Who carries out its orders is declared here as Invoker, Recorder and Board; service joins them.
//
// It refuses a job with every fault at once (disdel.Faults). Invariant: a started job ends in exactly one terminal
// status, and its record is saved.
package controller
