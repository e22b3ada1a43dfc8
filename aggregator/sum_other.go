//go:build !amd64

package aggregator

// addVector and the other vector functions leave everything to the scalar code.
func addVector(sums, []byte, float64) int { return 0 }

func meanVector([]float32, sums, float64) int { return 0 }

func setVector(sums, []byte, float64) int { return 0 }

func lastVector([]float32, sums, []byte, float64, float64) (n int, values, means bool) {
	return 0, true, true
}

func addTwoVector(sums, column, column) int { return 0 }

func setTwoVector(sums, column, column) int { return 0 }

func lastTwoVector([]float32, sums, column, column, float64) (n int, values, means bool) {
	return 0, true, true
}
