// Package aggregator is the way workers' updates become one model: the envelope of an update on the wire, the weighted
// mean, and the store in Redis that the actions of a job share.
//
// Actions push and reduce updates; the controller reads progress, cancels and sweeps. What is damaged, of another job or
// round, wrongly shaped or not finite is refused with its reason before it reaches a mean. Invariant: the mean is taken in
// member order, so that its bits do not depend on who came first; a second delivery of an update changes nothing; every key
// expires.
package aggregator
