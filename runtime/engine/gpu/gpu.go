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
