// Package driver is what the cuda engine sees of a GPU: memory that is taken, written and read, and lists of kernel
// launches that are run. Two drivers implement it: device, by NVIDIA's driver through gorgonia.org/cu, in programs that
// are built with the tag nvidia; and emulated, a process of kernels that were compiled for the processor, for tests.
//
// The package has the interface and its errors alone: a Fault says which call of how many failed, on which device, and
// what the driver said. It refuses nothing. Invariant: a device does what it is told in the order that it is told.
package driver
