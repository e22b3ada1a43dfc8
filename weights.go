package disdel

// Tensor is a named dense float32 array in row-major order.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32 // len is the product of Shape
}

// Weights are a network's parameters and statistics, in the order of its graph, with PyTorch's names and layouts:
// convolution "NAME.weight" [out in/groups kh kw], dense "NAME.weight" [out in], "NAME.bias" [out].
type Weights []Tensor

// Len is the number of values.
func (w Weights) Len() int {
	n := 0
	for _, t := range w {
		n += len(t.Data)
	}
	return n
}

// Update is what a worker pushes after a round, and what an aggregation action makes of several: weights and the number
// of samples they stand for.
type Update struct {
	ID      UpdateID
	Attempt int
	Fence   uint64  // of the claim that it was made under; a later claim's update replaces it, an earlier one's is refused
	Samples float64 // weight in the average, above 0
	Weights Weights
	Meta    map[string]string // what its producer says of it; the same work gives the same
}
