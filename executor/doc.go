// Package executor is the OpenWhisk side of a job: it creates the job's package and actions, invokes them without
// blocking, waits for their records, and tells from a record and the action's own heartbeats how an activation ended
// and why (the first half of DiSDeL's Failure Manager, III-B.2c).
//
// It alone uses openwhisk-client-go and shields the rest from its habits: no context, a client that changes its
// namespace as it is used, errors without status. It refuses nothing that the platform allows. Invariant: an invocation
// that was accepted is waited for until its record exists or its deadline has passed.
//
// Terms: an activation without a sign is queued if a probe of its action was not served either, because both wait
// behind others. It is lost if OpenWhisk accepted it, has no record of it, and has since served a later request to the
// same action. OpenWhisk is unreachable if an outage lasts longer than the job waits.
package executor
