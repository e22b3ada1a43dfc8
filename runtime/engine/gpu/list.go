//go:build nvidia || emulated

package gpu

import (
	"fmt"

	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// listed are a driver's devices.
func listed(d driver.Driver) ([]Device, error) {
	found, err := d.Devices()
	if err != nil {
		return nil, err
	}
	out := make([]Device, len(found))
	for i, f := range found {
		out[i] = Device{f.Index, f.ID, f.Name, f.Memory, fmt.Sprintf("%d.%d", f.Capability[0], f.Capability[1])}
	}
	return out, nil
}
