// Package batch runs many jobs as one experiment: files, documents and matrices of job files (Read), everything that
// is wrong with any of them before the first one runs (Check), all of them through the one queue of their home (Start),
// and what they came to, the best first (Summary).
//
// A job that fails or is refused stops no other one. With Halving those that fall behind are stopped early. What ends
// the context of Start cancels all jobs, and Start returns once all have ended, with what they came to until then.
//
// It owns no state beside the run of a batch: each job is an ordinary one, with a record of its own, and what was not
// stopped continues with `resume` like any other.
package batch
