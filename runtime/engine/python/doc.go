// Package python computes with users' Python programs. Each engine has a Python process of its own: the worker of the
// Python package disdel. Engine and worker share one file in memory, which has the weights, the optimiser's moments and
// the batches, so that no weight is copied on its way. They exchange a line of JSON for each step over a socket.
//
// The process gets no address and no password: its environment is made anew, and it cannot read this process's memory.
// What it prints goes to the action's log, up to a bound. It ends with the engine, with this process, and at the
// deadline of the activation that called the engine. Invariants: the same weights, moments, count of steps and seed
// give the same bits in a new process, and nothing that the user's program started is left after Close.
package python
