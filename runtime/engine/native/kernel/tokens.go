package kernel

import "math"

// NextToken is the cross-entropy of the outputs of a language model: at each position the target is the token behind.
type NextToken struct {
	Sequence           // of the outputs, with a channel for each token
	Tokens   []float32 // [rows][positions]
	Padded   bool      // token 0 is padding, and no target
	Losses   []float64 // [pixels][Lanes], 0 where there is no target
	Right    []bool    // the largest output is the target's
}

// Target is the token behind a position of a row, -1 behind the last position and where padding is next.
func (n *NextToken) Target(position, row int) int {
	length := n.Image.Positions()
	if position+1 >= length {
		return -1
	}
	token := int(n.Tokens[row*length+position+1])
	if n.Padded && token == 0 {
		return -1
	}
	return token
}

// NextToken writes losses, and if grad is not nil the gradient of scale times their sum. x and grad are
// [pixels][tokens][Lanes]. Each worker computes some pixels.
func (w *Worker) NextToken(n *NextToken, x, grad []float32, scale float32) {
	from, to := n.positions(w)
	for t := from; t < to; t++ {
		for l := 0; l < n.Lanes; l += lanes {
			n.vector(w, x, grad, t, l, scale)
		}
	}
}

// vector computes 16 lanes of a pixel.
func (n *NextToken) vector(w *Worker, x, grad []float32, t, l int, scale float32) {
	var factor [lanes]float32
	targets, any := [lanes]int{}, false
	for i := range targets {
		targets[i] = -1
		if n.holds(l + i) {
			targets[i] = n.Target(t*max(1, n.Fold)+(l+i)/n.Span(), (l+i)%n.Span())
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
	best := n.largest(w, x, t, l)
	top, sum := &w.soft[0], n.exponentials(w, x, grad, t, l)
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

// largest finds the largest outputs of a position, which become w.soft[0], and their tokens. Where an output is not
// finite, the largest is NaN.
func (n *NextToken) largest(w *Worker, x []float32, t, l int) (best [lanes]int) {
	top := &w.soft[0]
	var odd [lanes]float32
	*top = *n.at(x, t, 0, l)
	for c := range n.C {
		for i, v := range n.at(x, t, c, l) {
			if odd[i] += v - v; v > top[i] {
				top[i], best[i] = v, c
			}
		}
	}
	for i, v := range odd {
		top[i] += v
	}
	return best
}

// tokensAtOnce are the outputs whose exponentials are summed in float32; float64 sums these sums.
const tokensAtOnce = 256

// exponentials returns the sums of the exponentials of outputs less the largest. It writes the exponentials to grad, if
// that is not nil.
func (n *NextToken) exponentials(w *Worker, x, grad []float32, t, l int) (sum [lanes]float64) {
	for c := 0; c < n.C; c += tokensAtOnce {
		rows, from := min(tokensAtOnce, n.C-c), x[(t*n.C+c)*n.Lanes+l:]
		w.soft[1] = [lanes]float32{}
		if grad != nil {
			w.softmaxRows(grad[(t*n.C+c)*n.Lanes+l:], from, &w.soft[0], &w.soft[1], rows, n.Lanes)
		} else {
			for r := range rows { // each overwrites the one before
				w.softmaxRows(w.part[:], from[r*n.Lanes:], &w.soft[0], &w.soft[1], 1, lanes)
			}
		}
		for i, v := range w.soft[1] {
			sum[i] += float64(v)
		}
	}
	return sum
}
