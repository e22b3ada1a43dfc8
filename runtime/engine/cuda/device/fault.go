//go:build nvidia

package device

import (
	"fmt"

	"gorgonia.org/cu"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// causes are what is wrong after some of CUDA's results. All others mean that the context is of no more use.
func cause(err error) driver.Cause {
	switch err {
	case cu.OutOfMemory:
		return driver.NoMemory
	case cu.NoDevice, cu.InvalidDevice, cu.NotInitialized:
		return driver.NoDevice
	case cu.InvalidImage, cu.InvalidPtx, cu.NoBinaryForGpu, cu.JitCompilerNotFound, cu.InvalidSource, cu.NotFound,
		cu.InvalidValue, cu.LaunchOutOfResources, cu.LaunchTimeout, cu.IllegalAddress, cu.Assert, cu.LaunchFailed:
		return driver.BadLaunch
	default:
		return driver.DeviceLost
	}
}

// unopened is a Fault of a device of which there is no context: one that has no room for it is there all the same.
func unopened(index int, err error) error {
	of := driver.NoDevice
	if cause(err) == driver.NoMemory {
		of = driver.NoMemory
	}
	return &driver.Fault{Cause: of, Device: index, Call: "make context", Said: err.Error()}
}

// unpinned is a Fault of memory that the host could not pin: of the device's it takes none.
func (d *device) unpinned(err error) error {
	of := cause(err)
	if of == driver.NoMemory {
		of = driver.NoHostMemory
	}
	said := fmt.Sprintf("%v of the host's memory: %v", disdel.Bytes(pinnedLen), err)
	return &driver.Fault{Cause: of, Device: d.index, Call: "pin memory", Said: said}
}

// fault is what a call of a device came to.
func (d *device) fault(call string, err error) error {
	if err == nil {
		return nil
	}
	return &driver.Fault{Cause: cause(err), Device: d.index, Call: call, Taken: d.taken, Said: err.Error()}
}

// noRoom is a Fault of an allocation, with what is free.
func (d *device) noRoom(n disdel.Bytes, err error) error {
	free, _, _ := cu.MemInfo() // 0 where even that is not told
	return &driver.Fault{
		Cause: cause(err), Device: d.index, Call: "allocation", Number: d.calls, Wanted: n, Taken: d.taken,
		Free: disdel.Bytes(free), Said: err.Error(),
	}
}
