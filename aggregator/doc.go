// Package aggregator is the way workers' updates become one model: the envelope of a value on the wire, the weighted
// mean, the claims that have each update made once, and the store in Redis that the actions of a job share.
//
// Actions claim, push and reduce updates and keep their states; the controller reads progress, cancels, checks for room
// and sweeps. What is damaged, of another job or round, wrongly shaped or not finite is refused with its reason and
// counted before it reaches a mean. Invariants: the mean is taken in member order, so that its bits do not depend on
// who came first; a reduction holds one result and a few columns, whatever the fan-in; what is committed under one
// fence is never changed under another; every key expires, and a sweep finds all of them.
//
// # A round
//
// Who makes an update takes these steps in this order; the example of the package is a whole round.
//
//  1. Store.Claim: Claimed goes on; ClaimBusy waits for another owner; ClaimCommitted means that there is nothing to
//     do.
//  2. Store.Hold renews the claim, and ends the context that it returns when another attempt takes over.
//  3. Store.Reference reads what the work starts from; Store.State, what an earlier leg or round of this worker left.
//  4. Store.PutState, where the worker has a state to go on from.
//  5. Store.PushUpdate, or Feedback.Encode and Store.PushEncoded for a format that sends differences: with the claim's
//     attempt and fence, under which the update is committed once.
//
// An aggregation claims and holds its own piece of work, of a higher level, calls Store.Reduce on its members, and
// pushes the mean as an update or, at the top, publishes it with Store.CommitReference and then drops the round with
// Store.DropRound. A round is the version of the reference that its updates start from; Store.WithSlack takes updates
// that start further back.
//
// # Formats
//
// A codec (codec.go and codec_*.go) writes a column of values in one format and reads it back: float32, bfloat16, int8,
// and significant, which sends only what has changed enough. Feedback keeps what any of them does not send. A new
// format is a file, a row in codecs, and a row of disdel's table of wires.
//
// # Values
//
// An update, a reference (the weights that a round starts from) or a state is a head (envelope.go) and columns of
// 256,000 values. A value of one column is one key on the first server; more columns lie beside it under keys that
// carry fence and token, spread over all servers. A value is written where nobody looks for it and becomes visible by a
// RENAME of its head inside the script that checks the claim (lua/commit.lua).
//
// # Servers
//
// Redis 7 or the embedded miniredis. rediss:// speaks TLS; disdel.Store's CA names the authority where the system's do
// not do. A tenant has a prefix of its own and a user with the rule that ACL returns:
//
//	ACL SETUSER tenant on >PASSWORD resetkeys resetchannels ~PREFIX:* -@all +hello +auth +ping ...
//
// Without INFO among its commands the check for room before a job says nothing. Redis should not evict
// (maxmemory-policy noeviction): a column that was evicted is refused as damage.
package aggregator
