//go:build !linux

package kernel

import "runtime"

func yield() { runtime.Gosched() }
