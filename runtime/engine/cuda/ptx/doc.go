// Package ptx has package kernel's sources as nvrtc compiled them, for the oldest GPUs that are supported: a driver
// translates the text for its own device when it loads it. The text is made by go generate, where scripts/cuda-deps.sh
// has brought nvrtc, and is committed, so that whoever builds for GPUs needs no compiler of kernels.
//
// It refuses nothing. Invariant: Of is the hash of the sources; a test fails where they have changed since.
package ptx

//go:generate ../../../../scripts/cuda-ptx.sh
