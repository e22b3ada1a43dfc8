package kernel

import "math"

// NextToken is the cross-entropy of the outputs of a language model: at each position the target is the token behind.
type NextToken struct {
	Sequence           // of the outputs, with a channel for each token
	Tokens   []float32 // [rows][positions]
	Padded   bool      // token 0 is padding, and no target
	Losses   []float64 // [positions][Lanes], 0 where there is no target
	Right    []bool    // the largest output is the target's
}

// Target is the token behind a position of a row, -1 behind the last position and where padding is next.
func (n *NextToken) Target(position, row int) int {
	if position+1 >= n.H {
		return -1
	}
	token := int(n.Tokens[row*n.H+position+1])
	if n.Padded && token == 0 {
		return -1
	}
	return token
}

// NextToken writes losses, and if grad is not nil the gradient of scale times their sum. x and grad are
// [positions][tokens][Lanes]. Each worker computes some positions.
func (w *Worker) NextToken(n *NextToken, x, grad []float32, scale float32) {
	from, to := n.positions(w)
	for t := from; t < to; t++ {
		for l := 0; l < n.Lanes; l += lanes {
			n.vector(x, grad, t, l, scale)
		}
	}
}

// vector computes 16 lanes of a position.
func (n *NextToken) vector(x, grad []float32, t, l int, scale float32) {
	var factor [lanes]float32
	targets, any := [lanes]int{}, false
	for i := range targets {
		targets[i] = -1
		if l+i < n.Rows {
			targets[i] = n.Target(t, l+i)
		}
		if targets[i] >= 0 {
			factor[i], any = scale, true
		}
		n.Losses[t*n.Lanes+l+i], n.Right[t*n.Lanes+l+i] = 0, false
	}
	if !any {
		for c := 0; c < n.C && grad != nil; c++ {
			*n.at(grad, t, c, l) = [lanes]float32{}
		}
		return
	}
	top, best := n.largest(x, t, l)
	sum := n.exponentials(x, grad, t, l, &top)
	for i, token := range targets {
		if token >= 0 {
			n.Losses[t*n.Lanes+l+i] = math.Log(sum[i]) - float64(n.at(x, t, token, l)[i]-top[i])
			n.Right[t*n.Lanes+l+i] = best[i] == token
		}
		factor[i] = float32(float64(factor[i]) / sum[i])
	}
	if grad == nil {
		return
	}
	for c := range n.C {
		g := n.at(grad, t, c, l)
		for i := range g {
			g[i] *= factor[i]
		}
	}
	for i, token := range targets {
		if token >= 0 {
			n.at(grad, t, token, l)[i] -= scale
		}
	}
}

// largest are the largest outputs of a position, and their tokens.
func (n *NextToken) largest(x []float32, t, l int) (top [lanes]float32, best [lanes]int) {
	top = *n.at(x, t, 0, l)
	for c := 1; c < n.C; c++ {
		for i, v := range n.at(x, t, c, l) {
			if v > top[i] {
				top[i], best[i] = v, c
			}
		}
	}
	return top, best
}

// exponentials writes the exponentials of outputs less the largest to grad, and returns their sums. Outputs that are
// not finite make the sum NaN.
func (n *NextToken) exponentials(x, grad []float32, t, l int, top *[lanes]float32) (sum [lanes]float64) {
	var odd [lanes]float32
	for c := range n.C {
		var e [lanes]float32
		for i, v := range n.at(x, t, c, l) {
			e[i] = exp32(v - top[i])
			sum[i] += float64(e[i])
			odd[i] += v - v
		}
		if grad != nil {
			*n.at(grad, t, c, l) = e
		}
	}
	for i, v := range odd {
		sum[i] += float64(v)
	}
	return sum
}
