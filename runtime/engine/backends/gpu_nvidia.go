//go:build nvidia

package backends

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/cuda"
	"github.com/disdel/disdel/runtime/engine/cuda/device"
)

// WithGPUs tells that the program was built with an engine for GPUs.
const WithGPUs = true

// What CUDA takes for a context, of a process's memory and of the device's. They are guesses: nobody has measured them
// here, and the second differs from device to device.
const (
	contextMemory = 384 * disdel.MB
	contextDevice = 512 * disdel.MB
)

// onGPUs are the backends of GPUs. A process that sees several devices keeps to the one that it takes first.
func onGPUs() []engine.Backend {
	return []engine.Backend{cuda.Backend{
		Driver: device.Driver{}, Host: contextMemory, Context: contextDevice, Choice: &cuda.Choice{},
		Library: true,
	}}
}

// GPUs lists those that the program's engine sees. It returns Unavailable where there is none.
func GPUs() ([]GPU, error) {
	found, err := device.Driver{}.Devices()
	if err != nil {
		return nil, err
	}
	out := make([]GPU, len(found))
	for i, d := range found {
		out[i] = GPU{d.Index, d.ID, d.Name, d.Memory, fmt.Sprintf("%d.%d", d.Capability[0], d.Capability[1])}
	}
	return out, nil
}
