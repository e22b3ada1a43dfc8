// Package executor is the OpenWhisk client of a job. It creates the job's package and actions, invokes them without
// blocking and waits for their records. From a record and the action's heartbeats it tells how an activation ended and
// why (the first half of DiSDeL's Failure Manager, III-B.2c).
//
// Only this package uses openwhisk-client-go, and it hides that client's faults: no context, a namespace that changes
// with use, errors without status. It refuses nothing that the platform allows.
//
// Terms: an activation without a heartbeat is queued if a probe of the same action also has no record, because both
// wait behind others. It is lost if OpenWhisk accepted it, has no record of it, and has since served a later request to
// the same action. OpenWhisk is unreachable if an outage lasts longer than the job waits.
//
// Invariant: an accepted invocation is awaited until it has a record or its deadline has passed.
package executor
