// Package batch runs many jobs as one experiment. [Read] reads files, documents and matrices of job files. [Check]
// returns all their faults before the first job runs. [Start] runs the jobs through the queue of their home. [Summary]
// has the results, the best first.
//
// A job that fails or is refused does not stop the others. [Halving] stops jobs that fall behind. The end of the
// context of Start cancels all jobs; Start then returns their results so far once all have ended.
//
// A batch keeps no state of its own: each job is an ordinary one, with its own record, and can be resumed like any
// other.
package batch
