// Package gpu is the engine for GPUs as a program has it, by the tag that it is built with: nvidia, by make cuda, for
// NVIDIA's GPUs; emulated, for tests, with devices that are the processor's; else none, and nothing of either.
//
// The tables of backends take it from here (package backends, and the action runtime of an image), and so does whoever
// asks which devices there are. It refuses nothing. Invariant: a program without a tag is pure Go.
package gpu

import "github.com/disdel/disdel"

// Device is a GPU that the program's engine sees.
type Device struct {
	Index      int          `json:"index"`
	ID         string       `json:"id,omitempty"` // as CUDA_VISIBLE_DEVICES may name it
	Name       string       `json:"name"`
	Memory     disdel.Bytes `json:"memory"`
	Capability string       `json:"capability"` // NVIDIA's compute capability: "8.0"
}
