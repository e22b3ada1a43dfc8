//go:build !linux

package program

import "syscall"

// childAttributes has a child in its own process group. Only Linux ends it with its parent.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
