// Package expr is the gorgonia backend: it executes a model graph as a gorgonia expression graph. It is slower and takes
// more memory than the engine with its static plan, and it is here for three uses: as the oracle of differential tests,
// because it shares no code with the engine where gorgonia's operations are right; for those who choose it; and as the way in
// for a user's own gorgonia graph. Operations that gorgonia has not, or has wrong, are the engine's kernels as gorgonia
// operations with their differentiation.
//
// An Engine has the methods of engine.Engine. Invariant: the same graph, weights and batches give the same bits.
package expr
