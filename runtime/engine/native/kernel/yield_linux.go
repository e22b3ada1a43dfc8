package kernel

import "golang.org/x/sys/unix"

// yield lets another thread have the processor: where a worker waits for one that the system has put aside, as it does
// in a container with a share of a processor, spinning would keep it aside.
func yield() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
