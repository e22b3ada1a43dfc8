// Package scheduler decides how a job runs: how many workers, with which shards, tree of aggregations, limits and
// timeouts, and what is done about an activation that failed. It is pure: no clock, no I/O, no randomness of its own.
//
// NewPlan makes a plan from a checked job, what the platform allows and what earlier jobs took; WhatIf, FitMemory and
// ToFitLess make it again and again for other shapes; Decide is the second half of DiSDeL's Failure Manager (III-B.2c),
// and Memory and Timeout have the arithmetic of the limits that pass where others failed, so that retries, reports and
// hints say the same figures.
//
// Among jobs it divides a platform: an Allocator decides once (Gangs, FIFO; Greedy and GangLike to be compared with),
// DemandOf says what a planned job asks for, and Admission keeps the books of who waits and who holds what. Who drives
// it says what time it is.
//
// It refuses a job that cannot fit with the arithmetic that shows it (disdel.OverLimit). The controller, the service
// and reports call it. Invariant: whatever outcomes come, a sequence of remedies ends, and a limit that failed is never
// given again.
//
// Terms: a setting is what a policy may change while a job runs, a stage is the part of a job under one setting, and a
// decision is a policy's answer. The capacity is all that activations use: memory, processors, accelerators, throttles.
// A demand is what a job asks of the admission. A grant is the gang that it gets, and a reservation is a grant at a
// later time.
package scheduler
