// Package slab is memory for the arrays of an engine: float32 and int32 values outside the Go heap, which the collector
// neither scans nor counts, so that an engine takes what its footprint says and no more.
//
// Engines make one when they are made and free it when they are closed. It refuses what the system has not. Invariant:
// all of it is there from the start, and zero.
package slab
