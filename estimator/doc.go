// Package estimator says what a job will need: memory, time, timeouts and cost. Memory comes from the engine's
// footprint, which it asks backends for and knows none by name, from the optimiser and the shard. It is pure
// arithmetic: DiSDeL's Eq. 1 to 5 and Table I, once as the paper has it (Paper) and once with footprints and what was
// measured of this runtime in the place of the paper's constants (the default).
//
// The planner asks for one estimate a task and grows the number of workers by ContainerRule until each fits. Invariant:
// an estimate's total is the sum of its terms, and it never falls when batch, rows or layers grow.
package estimator
