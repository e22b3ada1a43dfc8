//go:build !nvidia

package backends

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine"
)

// WithGPUs tells that the program was built with an engine for GPUs.
const WithGPUs = false

// onGPUs are the backends of GPUs.
func onGPUs() []engine.Backend { return nil }

// GPUs lists those that the program's engine sees. It returns Unavailable: this program has none.
func GPUs() ([]GPU, error) {
	return nil, &disdel.Error{
		Kind: disdel.Unavailable, Op: "list GPUs", Msg: "this program was built without an engine for GPUs",
		Hint: "make cuda",
	}
}
