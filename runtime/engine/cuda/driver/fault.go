package driver

import (
	"fmt"
	"strings"

	"github.com/disdel/disdel"
)

// Cause is what is wrong with a device.
type Cause uint8

// The causes.
const (
	NoDevice     Cause = 1 + iota // there is no driver, no such device, or none that this process may use
	NoMemory                      // an allocation did not fit
	BadLaunch                     // a kernel could not be started, or went wrong
	DeviceLost                    // the device is gone: reset, fallen off its bus, or its process has died
	NoHostMemory                  // the host had no memory for copies to go through
)

// String names the cause in messages.
func (c Cause) String() string {
	names := [...]string{
		NoDevice: "no device", NoMemory: "out of device memory", BadLaunch: "launch failed", DeviceLost: "device lost",
		NoHostMemory: "out of host memory",
	}
	if int(c) >= len(names) || names[c] == "" {
		return "unknown fault"
	}
	return names[c]
}

// Kind is the kind of error that a cause is. A device that is lost or missing may be there in another container.
func (c Cause) Kind() disdel.Kind {
	kinds := [...]disdel.Kind{
		NoDevice: disdel.Unavailable, NoMemory: disdel.OOM, BadLaunch: disdel.Internal, DeviceLost: disdel.Unavailable,
		NoHostMemory: disdel.OOM,
	}
	if int(c) >= len(kinds) || kinds[c] == 0 {
		return disdel.Internal
	}
	return kinds[c]
}

// Fault is what went wrong with a device, with what is known of it.
type Fault struct {
	Cause  Cause
	Device int          // its index
	Call   string       // "allocation", or a kernel's name; "" where none can be named
	Number int          // which of the device's calls of that kind it was, from 1; 0 where they are not counted
	Wanted disdel.Bytes // of memory
	Taken  disdel.Bytes // of memory, by the same engine before
	Free   disdel.Bytes // of memory, when it was asked for
	Said   string       // the driver's own words, which nothing is decided by
}

// Error says what is known, the driver's own words last.
func (f *Fault) Error() string {
	parts := []string{fmt.Sprintf("device %d: %v", f.Device, f.Cause)}
	if f.Call != "" {
		call := f.Call
		if f.Number > 0 {
			call = fmt.Sprintf("%s %d", call, f.Number)
		}
		parts = append(parts, call)
	}
	if f.Wanted > 0 {
		parts = append(parts, fmt.Sprintf("%v wanted, %v free, %v taken before", f.Wanted, f.Free, f.Taken))
	}
	if f.Said != "" {
		parts = append(parts, f.Said)
	}
	return strings.Join(parts, ": ")
}

// Unwrap gives the kind to errors.Is.
func (f *Fault) Unwrap() error { return f.Cause.Kind() }
