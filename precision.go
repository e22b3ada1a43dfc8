package disdel

// Precision is what numbers a step of training computes with.
type Precision string

// The precisions. "" is float32.
const (
	PrecisionFloat32 Precision = "float32"
	// PrecisionBF16 rounds what products multiply to bfloat16 and keeps activations for the way back as that, in half the
	// memory. Sums, weights, gradients, moments, statistics and the loss are float32, and so is evaluation.
	PrecisionBF16 Precision = "bf16"
	// PrecisionTF32 rounds what products multiply to ten bits of the fraction, as the matrix units of GPUs do. Other
	// engines have none.
	PrecisionTF32 Precision = "tf32"
)
