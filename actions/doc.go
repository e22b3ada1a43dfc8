// Package actions is what runs inside a container: train, aggregate, evaluate and infer. Each is a function from the
// task's request to its result; the action runtime calls them, one at a time, and keeps the process between calls.
//
// A Host keeps what a warm process can use again: the shard it has read and the engine it has built. Everything else
// comes with the request, so that a second delivery of the same request, in whatever process, gives the same bits.
//
// It refuses what it cannot do with a disdel.Error, which crosses the action's border as JSON. Invariant: a request
// that was answered with a result has its update or its reference in the store.
package actions
