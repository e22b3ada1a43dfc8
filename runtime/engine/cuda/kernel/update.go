package kernel

import (
	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

// Segment is an array of weights with what belongs to it, in device memory: struct segment. Moments that the optimiser
// has not are 0.
type Segment struct {
	Value, Gradient, First, Second driver.Pointer
	N                              int64
}

// SegmentLen is the bytes of a Segment in device memory.
const SegmentLen disdel.Bytes = 40

// Segments is a list in device memory, with the length of its longest array.
type Segments struct {
	At             driver.Pointer
	Count, Longest int
}

// Update is an optimiser. The rate is Control's.
type Update struct {
	Kernel                string // of update.cu: the optimiser's name
	Decay                 float64
	Momentum              float64 // of SGD
	Nesterov              bool
	Beta1, Beta2, Epsilon float64
	Control, Result       driver.Pointer
}

// Do moves the weights of s by their gradients, unless Result says that the step went wrong.
func (u Update) Do(s Segments) driver.Launch {
	return launchOf(u.Kernel, [3]int{over(s.Longest, Threads*perThread), s.Count, 1}, struct {
		Segments, Control, Result           driver.Pointer
		Decay, Momentum, Nesterov           float32
		Beta1, Rest1, Beta2, Rest2, Epsilon float32
	}{
		s.At, u.Control, u.Result, float32(u.Decay), float32(u.Momentum), float32(flag(u.Nesterov)),
		float32(u.Beta1), float32(1 - u.Beta1), float32(u.Beta2), float32(1 - u.Beta2), float32(u.Epsilon),
	})
}

// clipParts is in how many blocks an array's sum of squares is divided.
const clipParts = 32

// ClipWork is the memory that Clip needs for so many segments.
func ClipWork(segments int) disdel.Bytes { return disdel.Bytes(8 * clipParts * segments) }

// Clip has all gradients together scaled to a norm of limit at most.
func Clip(s Segments, limit float64, result, work driver.Pointer) []driver.Launch {
	args := struct {
		Out, Segments, Result driver.Pointer
		Limit                 float64
		Count, Parts          int32
	}{work, s.At, result, limit, int32(s.Count), clipParts}
	return []driver.Launch{
		launchOf("clip_squares", [3]int{clipParts, s.Count, 1}, args), launchOf("clip_scale", [3]int{1, 1, 1}, args),
	}
}
