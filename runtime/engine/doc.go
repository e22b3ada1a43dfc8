// Package engine is what computes with a network: the seam between actions and the backends behind them (native,
// gorgonia, a user's own graph). It has the two interfaces that a backend implements, the arrays that an engine's state
// is read and set by, the weights that a training starts from, and the table that a program looks its backends up in.
//
// Actions know nothing else of an engine: there is no capability that only one backend has, and no assertion on an
// engine's type. enginetest.Exercise holds every backend to what is written here. The package computes nothing and
// refuses what no backend could take: other arrays than an engine has, values that are not finite. Invariant: what
// State reads, WriteAt sets to the same bits, so that a worker goes on wherever another stopped.
package engine
