// Package sparse computes with models of sparse rows: logistic and linear regressions over up to millions of columns,
// and factorisations of a matrix of ratings. A step reads and changes only the rows of weights that its batch has
// entries for. So its time depends on the size of the batch, not of the model.
//
// The table of backends has it, for every graph with a node of sparse rows; it refuses all others, losses that are not
// the model's, and batches that do not fit. Invariants: a step allocates nothing, and the same weights and batches give
// the same bits. Weights that no row of a batch has an entry for keep their bits, and so do their moments. These lazy
// rows have no gradient, so that neither velocities nor weights decay.
package sparse
