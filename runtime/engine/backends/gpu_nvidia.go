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

// contextMemory is what CUDA takes of a process's memory for a context. It is a guess: nobody has measured it here.
const contextMemory = 384 * disdel.MB

// onGPUs are the backends of GPUs. A worker takes the first device that it sees.
func onGPUs() []engine.Backend {
	return []engine.Backend{cuda.Backend{Driver: device.Driver{}, Host: contextMemory}}
}

// GPUs lists those that the program's engine sees. It returns Unavailable where there is none.
func GPUs() ([]GPU, error) {
	found, err := device.Driver{}.Devices()
	if err != nil {
		return nil, err
	}
	out := make([]GPU, len(found))
	for i, d := range found {
		out[i] = GPU{d.Index, d.Name, d.Memory, fmt.Sprintf("%d.%d", d.Capability[0], d.Capability[1])}
	}
	return out, nil
}
