package local

import "golang.org/x/sys/unix"

// openHandle names a process, also after its number means another one.
func openHandle(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }

func signalHandle(handle int, s unix.Signal) error { return unix.PidfdSendSignal(handle, s, nil, 0) }
