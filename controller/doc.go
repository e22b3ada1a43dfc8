// Package controller turns a job into a record: it checks the request, plans the actions, runs them in the order of
// DiSDeL's Algorithm 1 and keeps what came of it.
//
// Planner and Manager are pure: they take values and give values, without clock, I/O or goroutine, so that every decision
// can be replayed in a test. The loop in run.go is the only place that waits, calls the platform and reads the clock.
// Who carries out its orders is declared here as Invoker, Recorder and Board; cmd/disdel joins them.
//
// It refuses a job with every fault at once (disdel.Faults) and a job that cannot fit with the arithmetic that shows it
// (disdel.OverLimit). Invariant: a started job ends in exactly one terminal status, and its record is saved.
package controller
