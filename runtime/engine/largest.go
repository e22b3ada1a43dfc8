package engine

// Largest is the place of the largest of each row's outputs, which lie one row after another, so many a row; of several
// alike the first.
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
