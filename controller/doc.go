// Package controller turns a job into a record: it checks the request, runs its plan in the order of
// DiSDeL's Algorithm 1 and keeps what came of it.
//
// Manager is pure: it takes values and gives values, without clock, I/O or goroutine, so that every decision
// can be replayed in a test. The loop in run.go is the only place that waits, calls the platform and reads the clock.
// Who carries out its orders is declared here as Invoker, Recorder and Board; service joins them.
//
// It refuses a job with every fault at once (disdel.Faults). Invariant: a started job ends in exactly one terminal
// status, and its record is saved.
//
// Terms: a slot is the place of an action in the plan of all rounds, such as worker 0, or cluster 0 of level 1. An
// attempt is one try of a slot in a round, and a leg is one activation of an attempt. The manager answers an event with
// orders. Its barrier decides when the workers of a round have the next reference.
package controller
