// Package aggregator is the way workers' updates become one model: the envelope of a value on the wire, the weighted mean, the
// claims that have each update made once, and the store in Redis that the actions of a job share.
//
// Actions claim, push and reduce updates and keep their states; the controller reads progress, cancels, checks for room and
// sweeps. What is damaged, of another job or round, wrongly shaped or not finite is refused with its reason and counted before
// it reaches a mean. Invariants: the mean is taken in member order, so that its bits do not depend on who came first; a
// reduction holds one result and a few columns, whatever the fan-in; what is committed under one fence is never changed under
// another; every key expires, and a sweep finds all of them.
//
// # Values
//
// An update, a reference (the weights that a round starts from) or a state is a head (envelope.go) and columns of 256,000
// values. A value of one column is one key on the first server; more columns lie beside it under keys that carry fence and
// token, spread over all servers. A value is written where nobody looks for it and becomes visible by a RENAME of its head
// inside the script that checks the claim (lua/commit.lua).
//
// # Servers
//
// Redis 7 or the embedded miniredis. rediss:// speaks TLS; disdel.Store's CA names the authority where the system's do not do.
// A tenant has a prefix of its own and a user with the rule that ACL returns:
//
//	ACL SETUSER tenant on >PASSWORD resetkeys resetchannels ~PREFIX:* -@all +hello +auth +ping ...
//
// Without INFO among its commands the check for room before a job says nothing. Redis should not evict (maxmemory-policy
// noeviction): a column that was evicted is refused as damage.
package aggregator
