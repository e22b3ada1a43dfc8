// Package gorgonia is the gorgonia backend: it executes a network as a gorgonia expression graph. It is slower and
// takes more memory than the engine with its static plan. It has three uses. It is the oracle of differential tests:
// where gorgonia's operations are right, it shares no code with the engine. Users may choose it. Users' own gorgonia
// graphs run on it.
//
// Ops has what gorgonia lacks or has wrong as gorgonia operations: the engine's kernels with their differentiation,
// symbolic (for the TapeMachine) and automatic (for the LispMachine). New makes an Engine of a model graph, FromGraph
// of a user's own, and Backend either. It refuses what is not float32.
//
// Actions call it, one goroutine at a time. Invariant: the same graph, weights and batches give the same bits.
package gorgonia
