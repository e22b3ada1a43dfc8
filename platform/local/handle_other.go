//go:build !linux

package local

import "golang.org/x/sys/unix"

// openHandle fails as before Linux 5.3: Signal uses the number.
func openHandle(int) (int, error) { return -1, unix.ENOSYS }

func signalHandle(int, unix.Signal) error { return unix.ENOSYS }
