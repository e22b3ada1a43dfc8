//go:build emulated && !nvidia

package gpu

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/emulated"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/cuda"
)

// Built tells that the program has an engine for GPUs.
const Built = true

// The files beside the program that emulated devices are made of: what emulated.Compile has made, and the bytes of each
// that others hold, as a number; none where there is no such file.
const (
	programFile = "emulated-device"
	heldFile    = "emulated-held"
)

// What a context of such a device is taken to hold, and what an emulation holds of the process's memory: its own.
const (
	contextMemory = 64 * disdel.MB
	contextDevice = 16 * disdel.MB
)

// emulation has two devices, as far as CUDA_VISIBLE_DEVICES leaves them.
func emulation() emulated.Driver {
	d := emulated.Driver{Memory: 256 * disdel.MB, Count: 2}
	if list, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
		d.Visible = &list
	}
	self, err := os.Executable()
	if err != nil {
		return d // opening a device says that there is no program of it
	}
	d.Program = filepath.Join(filepath.Dir(self), programFile)
	if text, err := os.ReadFile(filepath.Join(filepath.Dir(self), heldFile)); err == nil {
		held, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		d.Held = disdel.Bytes(held)
	}
	return d
}

// Backends are those of GPUs.
func Backends() []engine.Backend {
	return []engine.Backend{cuda.Backend{
		Driver: emulation(), Host: contextMemory, Context: contextDevice, Choice: &cuda.Choice{},
	}}
}

// Devices lists those that the program's engine sees. It returns Unavailable where there is none.
func Devices() ([]Device, error) { return listed(emulation()) }
