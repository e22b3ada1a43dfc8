// Package aggregator combines the updates of workers into one model: the wire format of a value, the weighted mean, the
// claims under which each update is made once, and the Redis store that the actions of a job share.
//
// Actions claim, push and reduce updates and keep their states. The controller reads progress, cancels jobs, checks for
// room and deletes what is left. A value that is damaged, of another job or round, of the wrong shape or not finite is
// refused with its reason and counted.
//
// Invariants: The mean is computed in member order, so its bits do not depend on arrival order. A reduction holds a few
// columns, for any number of members and for weights of any size. A value that is committed under one fence never
// changes under another. Every key expires, and Store.Sweep finds all of them.
//
// # A round
//
// The worker that makes an update takes these steps in this order; the package example is a whole round.
//
//  1. Store.Claim: on Claimed continue, on ClaimBusy wait for the other owner, on ClaimCommitted stop.
//  2. Store.Hold renews the claim. The context that it returns ends if another attempt takes over.
//  3. Store.Reference reads the weights to start from; Store.State reads what an earlier segment or round left.
//  4. Store.PutState stores a state, if the worker has one.
//  5. Store.PushUpdate commits the update once, under the claim's attempt and fence. For a format that sends
//     differences: Feedback.Encode and Store.PushEncoded.
//
// An aggregate action claims its own update, one level up the tree, and renews the claim. It calls Store.Reduce on its
// members, which stages the mean, and Store.CommitMean, which makes it an update. At the top the mean becomes the next
// reference, and Store.DropRound follows. Several aggregations can each average a Shard of the columns. Then
// Store.JoinShards makes the reference of their means. A round is the version of the reference that its updates start from.
// Store.WithSlack accepts updates that start from an older version.
//
// # Formats
//
// A codec (codec.go and codec_*.go) encodes a column of values in one format: float32, bfloat16, int8, or significant,
// which sends only large changes. Feedback keeps what a format does not send. A new format needs a file, a row in
// codecs, and a row in disdel's table of wires.
//
// # Values
//
// An update, a reference (the weights at the start of a round) or a state is a head (envelope.go) and columns of
// 256,000 values. A value with one column is one key on the first server. More columns have their own keys, which
// contain fence and token, on all servers. A value is written to a staging key and becomes visible by a RENAME of its
// head, in the script that checks the claim (lua/commit.lua).
//
// # Servers
//
// Redis 7 or the embedded miniredis. rediss:// uses TLS; disdel.Store's CA replaces the system's certificate
// authorities. A server (servers.go) is one Redis, the master that Sentinels name, or a Redis Cluster. The job's id is
// the hash tag of its keys, so that they share a slot. Commands are retried while a failover is under way; claims decide
// what counts, whatever the old master had acknowledged. A tenant has its own prefix and a user with the rule that
// ACL returns:
//
//	ACL SETUSER tenant on >PASSWORD resetkeys resetchannels ~PREFIX:* -@all +hello +auth +ping ...
//
// Without INFO among its commands, the check for room before a job is skipped. Redis should not evict (maxmemory-policy
// noeviction), because an evicted column counts as damage.
package aggregator
