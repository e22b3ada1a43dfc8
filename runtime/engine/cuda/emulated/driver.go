package emulated

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// Driver has one device, of a process for each time that it is opened.
type Driver struct {
	Program   string       // that Compile made
	Memory    disdel.Bytes // of each device; 0 is 1 GB
	Backwards bool         // blocks and threads run the last first
}

// Devices implements driver.Driver.
func (d Driver) Devices() ([]driver.Info, error) { return []driver.Info{d.info()}, nil }

func (d Driver) info() driver.Info {
	memory := d.Memory
	if memory == 0 {
		memory = disdel.GB
	}
	return driver.Info{Name: "emulated", Memory: memory, Free: memory}
}

// Open implements driver.Driver.
func (d Driver) Open(index int) (driver.Device, error) {
	if index != 0 {
		return nil, &driver.Fault{Cause: driver.NoDevice, Device: index, Said: "there is one device, 0"}
	}
	dev, err := start(d)
	if err != nil {
		return nil, &driver.Fault{Cause: driver.NoDevice, Device: index, Said: fmt.Sprint(err)}
	}
	return dev, nil
}
