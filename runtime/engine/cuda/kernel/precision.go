package kernel

// Precision is what products multiply. Sums are float32 whatever it is.
type Precision uint8

// The precisions. TF32 and BF16 take a device's matrix units, which compute capability 8.0 brought.
const (
	Float32 Precision = iota
	TF32              // float32 with ten bits of the fraction
	BF16              // bfloat16: float32 with seven
)

// MatrixCapability is the least compute capability of devices that have TF32 and BF16.
const MatrixCapability = 8

// String is the word that a job file has for it.
func (p Precision) String() string {
	switch p {
	case TF32:
		return "tf32"
	case BF16:
		return "bf16"
	default:
		return "float32"
	}
}

// suffix ends the names of the kernels that multiply so.
func (p Precision) suffix() string {
	if p == Float32 {
		return ""
	}
	return "_" + p.String()
}
