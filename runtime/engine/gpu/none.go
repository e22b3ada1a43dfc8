//go:build !nvidia && !emulated

package gpu

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
)

// Built tells that the program has an engine for GPUs.
const Built = false

// Backends are those of GPUs.
func Backends() []engine.Backend { return nil }

// Devices lists those that the program's engine sees. It returns Unavailable: this program has none.
func Devices() ([]Device, error) {
	return nil, &disdel.Error{
		Kind: disdel.Unavailable, Op: "list GPUs", Msg: "this program was built without an engine for GPUs",
		Hint: "make cuda",
	}
}
