// Package emulated is a driver without a GPU: a process of the kernels, compiled for the processor by any C compiler,
// that does what a driver.Device is told. It is for tests: the same sources, launches and arguments as on a device,
// slow and exact.
//
// Blocks run one after another and so do the threads of each phase between two barriers, forwards or, where Backwards
// is set, the last first. Kernels whose bits are the same both ways depend on no order that a device does not keep.
// What it is told is done when something is read, as late as a device may do it; what is written ahead then comes as
// late as a device may let it come, or, where Eager is set, before all that waits. Steps whose bits are the same both
// ways have nobody write what somebody else still reads.
//
// Every allocation has a page behind it that cannot be touched, so that a kernel that leaves its arrays ends the
// process, which is a device that is lost.
//
// It refuses arguments whose size is not that of the kernel's. Invariant: what it computes is what the sources say; it
// has no code of its own for any kernel.
package emulated
