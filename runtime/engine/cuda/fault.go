package cuda

import (
	"errors"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// hints are what to do about a fault.
var hints = map[driver.Cause]string{
	driver.NoDevice:     "disdel doctor gpu says what is missing",
	driver.NoMemory:     "lower training.batchSize, or let fewer actions share the GPU",
	driver.NoHostMemory: "raise the memory limit of the action, or what its machine lets a process lock (ulimit -l)",
	driver.DeviceLost:   "the next attempt gets a fresh container; dmesg of the machine may say why (Xid)",
}

// faulty says what could not be done on a device. The kind is the fault's.
func faulty(op string, err error) error {
	var f *driver.Fault
	if !errors.As(err, &f) {
		return &disdel.Error{Kind: disdel.Internal, Op: op, Err: err}
	}
	out := &disdel.Error{Kind: f.Cause.Kind(), Op: op, Err: err, Hint: hints[f.Cause]}
	switch f.Cause {
	case driver.NoMemory:
		out.Code = disdel.CodeDeviceMemory
	case driver.NoDevice:
		out.Code = disdel.CodeNoDevice
	}
	return out
}
