package kernel

import (
	"math"
	"testing"
)

// The functions of single precision are within 1e-6 of their definitions, and finite wherever these are.
func TestFunctionsOfSinglePrecision(t *testing.T) {
	for name, f := range map[string][2]func(float64) float64{
		"sigmoid": {
			func(x float64) float64 { return float64(sigmoid32(float32(x))) },
			func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
		},
		"tanh": {func(x float64) float64 { return float64(tanh32(float32(x))) }, math.Tanh},
		"normal": {
			func(x float64) float64 { v, _ := normal32(float32(x)); return float64(v) },
			func(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) },
		},
		"density": {
			func(x float64) float64 { _, v := normal32(float32(x)); return float64(v) },
			func(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) },
		},
		"exp": { // relative to its size
			func(x float64) float64 { return float64(exp32(float32(x))) / math.Exp(float64(float32(x))) },
			func(float64) float64 { return 1 },
		},
	} {
		for x := -80.0; x < 80; x += 0.0371 {
			if got, want := f[0](x), f[1](x); !(math.Abs(got-want) < 1e-6) {
				t.Fatalf("%s of %v is %v, want %v", name, x, got, want)
			}
		}
	}
	for x, want := range map[float32]float32{-1e30: 0, 1e30: exp32(88), 0: 1} {
		if got := exp32(x); got != want {
			t.Errorf("exp32(%v) is %v", x, got)
		}
	}
	if v := exp32(float32(math.NaN())); v == v {
		t.Errorf("exp32 of NaN is %v", v)
	}
}
