// Package emulated is a driver without a GPU: a process of the kernels, compiled for the processor by any C compiler,
// that does what a driver.Device is told. It is for tests: the same sources, launches and arguments as on a device,
// slow and exact.
//
// Blocks run one after another and so do the threads of each phase between two barriers, forwards or, where Backwards
// is set, the last first. Kernels whose bits are the same both ways depend on no order that a device does not keep. It
// executes calls when something is read, which is as late as a device may. Writes ahead then arrive as late as a device
// may let them, or, with Eager, before everything that waits. Steps whose bits are the same both ways have nobody write
// what somebody else still reads.
//
// Every allocation has an inaccessible page behind it. So a kernel that writes outside its arrays ends the process,
// which is a lost device.
//
// It refuses arguments whose size is not that of the kernel's. Invariant: what it computes is what the sources say; it
// has no code of its own for any kernel.
package emulated
