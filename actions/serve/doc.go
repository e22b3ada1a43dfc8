// Package serve is the action runtime of a container: a host with the standard backends behind OpenWhisk's /init and /run.
//
// The program disdel serves it as `disdel runtime`; a program with a network of its own (actions/custom) serves the same with one
// backend more. It refuses nothing that the host does not. Invariant: memory is collected at actions' pace, since memory is what
// they are billed and killed for.
package serve
