package kernel

// The transforms' matrices by the side of an output's tile (Lavin and Gray 2015, "Fast Algorithms for Convolutional
// Neural Networks", 4.1 and 4.3): of an image with points 0, 1, -1 and infinity, or 0, 1, -1, 2, -2 and infinity.
var (
	winogradInputs = [5][][]float32{
		2: {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
		4: {
			{4, 0, -5, 0, 1, 0},
			{0, -4, -4, 1, 1, 0},
			{0, 4, -4, -1, 1, 0},
			{0, -2, -1, 2, 1, 0},
			{0, 2, -1, -2, 1, 0},
			{0, 4, 0, -5, 0, 1},
		},
	}
	winogradOutputs = [5][][]float32{
		2: {{1, 1, 1, 0}, {0, 1, -1, -1}},
		4: {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}},
	}
	winogradKernels = [5][][]float32{
		2: {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}},
		4: {
			{1. / 4, 0, 0},
			{-1. / 6, -1. / 6, -1. / 6},
			{-1. / 6, 1. / 6, -1. / 6},
			{1. / 24, 1. / 12, 1. / 6},
			{1. / 24, -1. / 12, 1. / 6},
			{0, 0, 1},
		},
	}
)

// winogradScalars are the numbers that the assembly has those matrices from.
var winogradScalars = struct{ input, output, weights, spread, gather [5][8]float32 }{
	input:   [5][8]float32{4: {4, -4, -5, 2}},
	output:  [5][8]float32{4: {4, 8, 2}},
	weights: [5][8]float32{2: {.5}, 4: {1. / 4, -1. / 6, 1. / 24, 1. / 6, 1. / 12}},
	spread:  [5][8]float32{4: {2, 4, 8}},
	gather:  [5][8]float32{2: {.5}, 4: {1. / 4, -1. / 6, 1. / 24, 1. / 6, 1. / 12}},
}

// transposed is a matrix' columns as rows.
func transposed(m [][]float32) [][]float32 {
	out := make([][]float32, len(m[0]))
	for j := range out {
		for i := range m {
			out[j] = append(out[j], m[i][j])
		}
	}
	return out
}

// both is m x m^T of a small matrix x with as many rows and columns as m has columns.
func both(m [][]float32, x func(i, j int) float32, to func(i, j int, v float32)) {
	n := len(m[0])
	var tile, half [6][6]float32
	for i := range n {
		for j := range n {
			tile[i][j] = x(i, j)
		}
	}
	for i := range m {
		for j := range n {
			for k, v := range m[i] {
				half[i][j] += v * tile[k][j]
			}
		}
	}
	for i := range m {
		for j := range m {
			var sum float32
			for k, v := range m[j] {
				sum += v * half[i][k]
			}
			to(i, j, sum)
		}
	}
}

// portableWinograd are the transforms in plain Go, by the matrices.
func portableWinograd() (out [5]transforms) {
	for _, m := range []int{2, 4} {
		a := int64(m + 2)
		spread, gather := transposed(winogradOutputs[m]), transposed(winogradKernels[m])
		out[m] = transforms{
			input: func(w *winogradArgs) {
				for c := range w.channels {
					for l := int64(0); l < w.width; l += 4 {
						both(winogradInputs[m], func(i, j int) float32 { return get(w.src, w.tap(i, j, int(a))+c*w.row+l) },
							func(i, j int, v float32) {
								*(*float32)(ptr(w.dst, (int64(i)*a+int64(j))*w.point+c*w.width+l)) = v
							})
					}
				}
			},
			output: func(w *winogradArgs) {
				for c := range w.channels {
					for l := int64(0); l < w.width; l += 4 {
						both(winogradOutputs[m], func(i, j int) float32 {
							return get(w.src, (int64(i)*a+int64(j))*w.point+c*w.width+l)
						}, func(i, j int, v float32) { w.deliver(w.tap(i, j, m)+c*w.row+l, c, v) })
					}
				}
			},
			spread: func(w *winogradArgs) {
				for l := int64(0); l < w.width; l += 4 {
					both(spread, func(i, j int) float32 { return get(w.src, w.tap(i, j, m)+l) },
						func(i, j int, v float32) { *(*float32)(ptr(w.dst, (int64(i)*a+int64(j))*w.point+l)) = v })
				}
			},
			gather: func(w *winogradArgs) {
				for l := int64(0); l < w.width; l += 4 {
					both(gather, func(i, j int) float32 { return get(w.src, (int64(i)*a+int64(j))*w.point+l) },
						func(i, j int, v float32) { *(*float32)(ptr(w.dst, w.tap(i, j, 3)+l)) = v })
				}
			},
			weights: func(w *winogradArgs) {
				for l := int64(0); l < w.width; l += 4 {
					both(winogradKernels[m], func(i, j int) float32 { return get(w.src, w.tap(i, j, 3)+l) },
						func(i, j int, v float32) { *(*float32)(ptr(w.dst, (int64(i)*a+int64(j))*w.point+l)) = v })
				}
			},
		}
	}
	return out
}

// tap is the offset of a pixel of a tile with so many a side.
func (w *winogradArgs) tap(i, j, side int) int64 { return *(*int64)(ptr(w.offs, 8*int64(i*side+j))) }

// deliver stores a value of an output.
func (w *winogradArgs) deliver(at, channel int64, v float32) {
	y := (*float32)(ptr(w.dst, at))
	if w.bias != nil {
		v += get(w.bias, 4*channel)
	}
	if w.add != 0 {
		v += *y
	}
	if w.relu != 0 && v < 0 {
		v = 0
	}
	*y = v
}
