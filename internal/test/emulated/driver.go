package emulated

import (
	"fmt"
	"sync"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// Driver has devices, of a process for each time that one is opened.
type Driver struct {
	Program   string       // that Compile made
	Memory    disdel.Bytes // of each device; 0 is 1 GB
	Held      disdel.Bytes // of each device's memory, by others that nobody here knows of
	Backwards bool         // blocks and threads run the last first
	Eager     bool         // what is written ahead is there before all that waits to be run, and not as late as may be
	Count     int          // of devices; 0 is one
	Visible   *string      // CUDA_VISIBLE_DEVICES of the process that it stands for; nil: it is not set

	// Shared counts what all that are opened hold of each device together. nil: each has the device to itself.
	Shared *Shared
	// Capability is the devices', by which kernels are chosen; zero: 8.0.
	Capability [2]int
	Library    bool // it has a library of products
}

// Shared is what is taken of devices by several engines. The zero value is nothing. It is safe for concurrent use.
type Shared struct {
	mu    sync.Mutex
	taken map[int]disdel.Bytes
}

// take counts n of a device's memory, unless there is not as much; free is what there was.
func (s *Shared) take(index int, n, all disdel.Bytes) (free disdel.Bytes, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if free = all - s.taken[index]; n > free {
		return free, false
	}
	if s.taken == nil {
		s.taken = map[int]disdel.Bytes{}
	}
	s.taken[index] += n
	return free, true
}

// Taken is what is held of a device.
func (s *Shared) Taken(index int) disdel.Bytes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken[index]
}

// numbers are the devices that the process may use, as the machine numbers them.
func (d Driver) numbers() []int {
	ids := make([]string, max(1, d.Count))
	all := make([]int, len(ids))
	for i := range ids {
		ids[i], all[i] = id(i), i
	}
	if d.Visible == nil {
		return all
	}
	return driver.Visible(*d.Visible, ids)
}

func id(number int) string { return fmt.Sprintf("GPU-emulated-%d", number) }

// Devices implements driver.Driver.
func (d Driver) Devices() ([]driver.Info, error) {
	numbers := d.numbers()
	if len(numbers) == 0 {
		return nil, &driver.Fault{Cause: driver.NoDevice, Said: "CUDA_VISIBLE_DEVICES leaves none"}
	}
	out := make([]driver.Info, len(numbers))
	for i, n := range numbers {
		out[i] = d.info(i, n)
	}
	return out, nil
}

func (d Driver) info(index, number int) driver.Info {
	info := driver.Info{
		Index: index, ID: id(number), Name: "emulated", Memory: d.memory(), Capability: d.Capability, Library: d.Library,
	}
	if info.Capability == [2]int{} {
		info.Capability = [2]int{8, 0}
	}
	if info.Free = info.Memory - d.Held; d.Shared != nil {
		info.Free -= d.Shared.Taken(number)
	}
	return info
}

func (d Driver) memory() disdel.Bytes {
	if d.Memory == 0 {
		return disdel.GB
	}
	return d.Memory
}

// Open implements driver.Driver.
func (d Driver) Open(index int) (driver.Device, error) {
	numbers := d.numbers()
	if index < 0 || index >= len(numbers) {
		return nil, &driver.Fault{
			Cause: driver.NoDevice, Device: index, Said: fmt.Sprintf("there are %d devices, from 0 on", len(numbers)),
		}
	}
	dev, err := start(d, numbers[index])
	if err != nil {
		return nil, &driver.Fault{Cause: driver.NoDevice, Device: index, Said: fmt.Sprint(err)}
	}
	return dev, nil
}
