package main

// optimizers update weights (dst) by gradients (a) and moments (b, c). Scalars: see the Go versions.
func (a *neon) optimizers() {
	type memory = func(array int) register
	// registers counts down from 31, one a scalar.
	registers := func(n int) (out []int) {
		for i := range n {
			out = append(out, 31-i)
		}
		return out
	}
	scalar := func(i int) vec { return same(31 - i) }
	const weight, gradient, moment, second, divisor = 0, 1, 2, 3, 4
	// load puts the weights and the gradient, scaled and with decay, into their registers.
	load := func(m memory) (w, g vec) {
		w, g = wide(weight), wide(gradient)
		a.load(m(dst), 0, w)
		a.load(m(srcA), 0, g)
		a.times(g, g, scalar(2))
		a.fma(g, w, scalar(1))
		return w, g
	}
	// s0 -lr, s1 decay, s2 scale of the gradient
	a.each(element{"sgd", "is SGD without momentum: w -= lr (scale g + decay w).", []int{srcA}, registers(3), 0, 1},
		func(m memory, _ int) {
			w, g := load(m)
			a.fma(w, g, scalar(0))
			a.store(w, m(dst), 0)
		})
	// s3 momentum, s4 share of the velocity and s5 of the gradient in the step (plain: 1, 0; Nesterov: momentum, 1)
	a.each(element{
		"momentum", "is SGD with momentum: v = mu v + g; w -= lr (s4 v + s5 g).", []int{srcA, srcB}, registers(6), 0, 1,
	}, func(m memory, _ int) {
		w, g := load(m)
		v := wide(moment)
		a.load(m(srcB), 0, v)
		a.times(v, v, scalar(3))
		a.sum(v, v, g)
		a.store(v, m(srcB), 0)
		a.times(v, v, scalar(4))
		a.fma(v, g, scalar(5))
		a.fma(w, v, scalar(0))
		a.store(w, m(dst), 0)
	})
	// s0 -lr/(1-b1^t), s1 L2 decay, s2 scale, s3 b1, s4 1-b1, s5 b2, s6 1-b2, s7 1/sqrt(1-b2^t), s8 eps, s9 1 - lr x
	// AdamW's decay
	a.each(element{"adam", "is Adam and AdamW.", []int{srcA, srcB, srcC}, registers(10), 0, 1}, func(m memory, _ int) {
		w, g := load(m)
		first, square, root := wide(moment), wide(second), wide(divisor)
		a.times(w, w, scalar(9))
		a.load(m(srcB), 0, first)
		a.times(first, first, scalar(3))
		a.fma(first, g, scalar(4))
		a.store(first, m(srcB), 0)
		a.times(g, g, g)
		a.load(m(srcC), 0, square)
		a.times(square, square, scalar(5))
		a.fma(square, g, scalar(6))
		a.store(square, m(srcC), 0)
		a.root(root, square)
		a.times(root, root, scalar(7))
		a.sum(root, root, scalar(8))
		a.quotient(first, first, root)
		a.fma(w, first, scalar(0))
		a.store(w, m(dst), 0)
	})
}
