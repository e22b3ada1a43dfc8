package backends

import "github.com/disdel/disdel"

// GPU is one that the program's engine for GPUs sees.
type GPU struct {
	Index      int          `json:"index"`
	ID         string       `json:"id,omitempty"` // as CUDA_VISIBLE_DEVICES may name it
	Name       string       `json:"name"`
	Memory     disdel.Bytes `json:"memory"`
	Capability string       `json:"capability"` // NVIDIA's compute capability: "8.0"
}
