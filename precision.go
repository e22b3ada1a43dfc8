package disdel

import "cmp"

// Precision is what numbers a step of training computes with.
type Precision string

// The precisions. "" is float32.
const (
	PrecisionFloat32 Precision = "float32"
	// PrecisionBF16 rounds what products multiply to bfloat16 and, on the processor, keeps activations for the way back as
	// that, in half the memory. Sums, weights, gradients, moments, statistics and the loss are float32, and so is
	// evaluation.
	PrecisionBF16 Precision = "bf16"
	// PrecisionTF32 rounds what products multiply to ten bits of the fraction, as the matrix units of GPUs do. Other
	// engines have none.
	PrecisionTF32 Precision = "tf32"
)

// Precisions lists them, the default first.
func Precisions() []Precision { return []Precision{PrecisionFloat32, PrecisionBF16, PrecisionTF32} }

// Short tells that what is kept may be bfloat16.
func (p Precision) Short() bool { return p == PrecisionBF16 }

// Plain tells that nothing is rounded: it is float32.
func (p Precision) Plain() bool { return p == "" || p == PrecisionFloat32 }

// Same tells that two are one: no word stands for float32.
func (p Precision) Same(as Precision) bool {
	return cmp.Or(p, PrecisionFloat32) == cmp.Or(as, PrecisionFloat32)
}

// Meaning is what a precision does to a train action's memory and time on the processor, "" of those that it has not.
func (p Precision) Meaning() string {
	if !p.Short() {
		return ""
	}
	return "activations are kept as bfloat16, in half the memory; what products multiply is rounded to it, and sums are " +
		"float32: a step takes less time only where the processor has AVX512-BF16"
}
