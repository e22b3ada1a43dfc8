// Package sparse reads data sets of sparse rows from other programs' files (libsvm, CSV by a schema, ratings), and
// makes such data from a seed and published statistics: ratings with factors to find, clicks whose best possible loss
// is known.
//
// Each reader and generator returns a dataset.SparseInput for dataset.Store.AddSparse. Files are read as streams,
// twice: once for properties of all rows (columns, users, means), once for the rows. A line that cannot be read is
// refused with its number; values are never guessed. Invariant: the same files, options and seed give the same rows,
// bit by bit.
package sparse
