//go:build nvidia

package device

// #include <cuda.h>
// // Of the library that scripts/cuda-deps.sh makes: loads the driver's library and initialises it.
// int disdel_cuda_init(void);
import "C"

import (
	"fmt"

	"gorgonia.org/cu"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// Driver lists the devices that CUDA_VISIBLE_DEVICES leaves, in CUDA's order.
type Driver struct{}

// initialized is nil once CUDA's driver is ready.
func initialized() error {
	switch status := C.disdel_cuda_init(); status {
	case C.CUDA_SUCCESS:
		return nil
	case -1:
		return &driver.Fault{Cause: driver.NoDevice, Said: "libcuda.so.1 is not on this machine: NVIDIA's driver brings it"}
	default:
		return &driver.Fault{Cause: driver.NoDevice, Said: fmt.Sprintf("cuInit returned %d", int(status))}
	}
}

// Devices implements driver.Driver. What is free of a device is not known before it is opened.
func (Driver) Devices() ([]driver.Info, error) {
	if err := initialized(); err != nil {
		return nil, err
	}
	n, err := cu.NumDevices()
	if err == nil && n == 0 {
		return nil, &driver.Fault{Cause: driver.NoDevice, Said: "CUDA sees no device (CUDA_VISIBLE_DEVICES?)"}
	}
	if err != nil {
		return nil, &driver.Fault{Cause: driver.NoDevice, Said: err.Error()}
	}
	out := make([]driver.Info, n)
	for i := range out {
		if out[i], err = about(i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func about(index int) (driver.Info, error) {
	info := driver.Info{Index: index}
	d, err := cu.GetDevice(index)
	if err == nil {
		info.Name, err = d.Name()
	}
	if id, failed := d.UUID(); err == nil && failed == nil {
		info.ID = "GPU-" + id.String()
	}
	var memory int64
	if err == nil {
		memory, err = d.TotalMem()
	}
	for i, attribute := range [...]cu.DeviceAttribute{cu.ComputeCapabilityMajor, cu.ComputeCapabilityMinor} {
		if err == nil {
			info.Capability[i], err = d.Attribute(attribute)
		}
	}
	if err != nil {
		return info, &driver.Fault{Cause: driver.NoDevice, Device: index, Said: err.Error()}
	}
	info.Memory, info.Library = disdel.Bytes(memory), hasLibrary()
	return info, nil
}

// Open implements driver.Driver.
func (Driver) Open(index int) (driver.Device, error) {
	if err := initialized(); err != nil {
		return nil, err
	}
	d, err := open(index)
	if err != nil {
		return nil, err
	}
	return d, nil
}
