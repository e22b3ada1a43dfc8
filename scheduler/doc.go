// Package scheduler decides how a job runs: how many workers, with which shards, aggregation tree, limits and
// timeouts, and what follows a failed activation. It has no clock, no I/O and no randomness of its own.
//
// NewPlan makes a plan from a checked job, the platform's limits and earlier jobs. WhatIf, FitMemory and
// SmallerLimits make plans for other shapes. FindRemedy is the second half of DiSDeL's Failure Manager (III-B.2c).
// Memory and Timeout compute the limits that pass where others failed, so that retries, reports and hints show the
// same figures.
//
// An Allocator divides a platform among jobs (Gangs, FIFO; Greedy and GangLike for comparison). DemandOf says what a
// planned job needs, and Admission records which jobs wait and what the others hold. The caller supplies the time.
//
// A job that cannot fit is refused with the figures (disdel.OverLimit). The controller, the service and reports call
// the package. Invariant: any sequence of remedies ends, and a limit that failed is never given again.
//
// Terms: a setting is what a policy may change while a job runs, a stage is the part of a job under one setting, and a
// decision is a policy's answer. The capacity is all that activations use: memory, processors, accelerators, throttles.
// A demand is what a job asks of the admission. A grant is the gang that it gets, and a reservation is a grant at a
// later time.
package scheduler
