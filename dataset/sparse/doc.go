// Package sparse reads data sets of sparse rows from files of others (libsvm, CSV by a schema, ratings) and makes such
// data by a seed and published statistics: ratings that have factors to find, clicks whose best possible loss is known.
//
// Each reader and generator gives a dataset.SparseInput, which dataset.Store.AddSparse stores. Files are read as
// streams, twice: once for what has to be known of all rows (columns, users, means), once for the rows. It refuses,
// with the number of the line, what cannot be read; it never guesses what a value was meant to be. Invariant: the same
// files, options and seed give the same rows, to the bit.
package sparse
