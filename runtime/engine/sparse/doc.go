// Package sparse computes with models of sparse rows: logistic and linear regressions over up to millions of columns,
// and factorisations of a matrix of ratings. A step reads and changes the rows of weights that its batch has entries
// for, and nothing else, so that it takes as long as the batch is large, whatever the model's size.
//
// The table of backends has it, for every graph with a node of sparse rows; it refuses all others, losses that are not
// the model's, and batches that do not fit. Invariants: a step allocates nothing; the same weights and batches give the
// same bits; weights that no row of a batch has an entry for keep their bits, and so do their moments (lazy rows: no
// decay of a velocity, no pull of weight decay, where there is no gradient).
package sparse
