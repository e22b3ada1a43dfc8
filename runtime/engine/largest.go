package engine

// Largest returns the index of the largest output of each row, the first of equal ones. Rows lie one behind another.
func Largest(outputs []float32, row int) []int32 {
	out := make([]int32, len(outputs)/row)
	for i := range out {
		values, best := outputs[i*row:(i+1)*row], 0
		for k, v := range values {
			if v > values[best] {
				best = k
			}
		}
		out[i] = int32(best)
	}
	return out
}
