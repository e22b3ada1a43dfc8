// Package serve is the action runtime of a container: a host behind OpenWhisk's /init and /run, with the backends that
// the main program gives it.
//
// The program disdel serves it as `disdel runtime`; a program with a network of its own (actions/custom) serves the
// same with that network. It refuses nothing that the host does not. Invariant: memory is collected at actions' pace,
// since memory is what they are billed and killed for.
package serve
