// Package simulate runs whole jobs in one process and in virtual time: the real controller, executor, aggregator and
// actions, on a simulated OpenWhisk and on Redis behind simulated connections. Messages come late, get lost or come
// twice; containers and controllers die. One seed is one run: go test ./test/simulate -seeds 7 -trace repeats run 7.
//
// A run must end as the same job without faults ends: the same rounds, the same losses, the same bits of weights.
// The package itself is empty.
package simulate
