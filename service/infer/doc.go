// Package infer asks trained models: for rows of a file ([Predictor.Infer], [Predictor.InferSparse]), for the rows of a
// data set ([Predictor.InferData]), and for a data set with labels, against which it evaluates the model
// ([Predictor.Evaluate]).
//
// Infer actions on the platform compute the answers, several in parallel. Rows that are too many for a request are put
// beside the models, in files that are removed afterwards, also those of processes that were killed.
package infer
