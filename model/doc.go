// Package model says what a network is: a graph of layers with the shape of every output, and from it the parameters,
// activations and multiply-accumulates of each layer. It is pure: nothing here computes with data.
//
// Graphs come from Build, by the name of a network of the zoo or from a job file's list of layers, or from a Builder.
// Every graph a Builder returns has consistent shapes; what does not fit is refused with the layer's name and the
// numbers. The controller, the estimator, the engine and the actions read graphs; nobody changes one.
package model
