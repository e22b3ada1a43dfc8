// Package executor is the OpenWhisk side of a job: it creates the job's package and actions, invokes them without
// blocking, waits for their records, and tells from a record and the action's own heartbeats how an activation ended, why, and
// which limits would have done (the Failure Manager), and from earlier jobs how long the next one may and will take (the
// Timeout Manager, both of DiSDeL III-B.2).
//
// It alone uses openwhisk-client-go and shields the rest from its habits: no context, a client that changes its namespace
// as it is used, errors without status. It refuses nothing that the platform allows. Invariant: an invocation that was
// accepted is waited for until its record exists or its deadline has passed.
package executor
