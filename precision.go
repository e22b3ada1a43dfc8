package disdel

// Precision is what numbers a step of training computes with.
type Precision string

// The precisions. "" is float32.
const (
	PrecisionFloat32 Precision = "float32"
	// PrecisionBF16 rounds what products multiply to bfloat16 and keeps activations for the way back as that, in half the
	// memory. Sums, weights, gradients, moments, statistics and the loss are float32, and so is evaluation.
	PrecisionBF16 Precision = "bf16"
)

// Precisions lists them, the default first.
func Precisions() []Precision { return []Precision{PrecisionFloat32, PrecisionBF16} }

// Short tells that activations are kept as bfloat16.
func (p Precision) Short() bool { return p == PrecisionBF16 }

// Meaning is what a precision does to a train action's memory and time, "" of float32.
func (p Precision) Meaning() string {
	if !p.Short() {
		return ""
	}
	return "activations are kept as bfloat16, in half the memory; products are rounded to it and computed in float32, so that " +
		"a step takes no less time"
}
