//go:build nvidia

package gpu

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/cuda"
	"github.com/disdel/disdel/runtime/engine/cuda/device"
)

// Built tells that the program has an engine for GPUs.
const Built = true

// What CUDA takes for a context, of a process's memory and of the device's. They are guesses: nobody has measured them
// here, and the second differs from device to device.
const (
	contextMemory = 384 * disdel.MB
	contextDevice = 512 * disdel.MB
)

// Backends are those of GPUs. A process that sees several devices keeps to the one that it takes first.
func Backends() []engine.Backend {
	return []engine.Backend{cuda.Backend{
		Driver: device.Driver{}, Host: contextMemory, Pinned: device.Pinned, Context: contextDevice,
		Choice: &cuda.Choice{}, Library: true, Workspace: device.Workspace,
	}}
}

// Devices lists those that the program's engine sees. It returns Unavailable where there is none.
func Devices() ([]Device, error) { return listed(device.Driver{}) }
