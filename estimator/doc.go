// Package estimator estimates what a job needs: memory, time, timeouts and cost.
//
// The memory of an action follows from the engine's footprint, the optimiser and the shard. Paper computes DiSDeL's
// Eq. 1 to 5 and Table I as printed. The default replaces the paper's constants by footprints and by measurements of
// this runtime. Backends are behind the interface Engines; the package knows none by name.
//
// The planner estimates each task and grows the number of workers by ContainerRule until each action fits. TimingOf
// computes timeouts and the forecast of a job from the records of earlier jobs.
//
// The package is pure arithmetic. Invariant: an estimate's total is the sum of its terms, and it never falls when
// batch, rows or layers grow.
package estimator
