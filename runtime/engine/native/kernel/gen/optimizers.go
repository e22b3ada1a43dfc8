package main

// optimizers update weights (dst) by gradients (a) and moments (b, c). The Go versions explain the scalars.
func optimizers(m machine) {
	w, g, first, second, s := m.v(0), m.v(1), m.v(2), m.v(3), m.constant
	update := func(name string, arrays, scalars int, body func(p places)) {
		m.eachElement(elementKernel{name: name, arrays: arrays, scalars: scalars, vectors: 1}, func(p places, _ int) {
			m.load(p(dst), w)
			m.mul(g, m.memoryOperand(p(srcA), g), s(2))
			m.fma(g, w, s(1))
			body(p)
			m.store(w, p(dst))
		})
	}
	// s0 -lr, s1 decay, s2 scale of the gradient: w -= lr (scale g + decay w)
	update("sgd", 1, 3, func(places) { m.fma(w, g, s(0)) })
	// s3 momentum, s4 share of the velocity and s5 of the gradient in the step (plain: 1, 0; Nesterov: momentum, 1):
	// v = s3 v + g; w -= lr (s4 v + s5 g)
	update("momentum", 2, 6, func(p places) {
		m.mul(first, m.memoryOperand(p(srcB), first), s(3))
		m.add(first, first, g)
		m.store(first, p(srcB))
		m.mul(first, first, s(4))
		m.fma(first, g, s(5))
		m.fma(w, first, s(0))
	})
	// s0 -lr/(1-b1^t), s1 L2 decay, s2 scale, s3 b1, s4 1-b1, s5 b2, s6 1-b2, s7 1/sqrt(1-b2^t), s8 eps, s9 1 - lr x
	// AdamW's decay
	update("adam", 3, 10, func(p places) {
		m.mul(w, w, s(9))
		m.mul(first, m.memoryOperand(p(srcB), first), s(3))
		m.fma(first, g, s(4))
		m.store(first, p(srcB))
		m.mul(g, g, g)
		m.mul(second, m.memoryOperand(p(srcC), second), s(5))
		m.fma(second, g, s(6))
		m.store(second, p(srcC))
		m.sqrt(second, second)
		m.mul(second, second, s(7))
		m.add(second, second, s(8))
		m.div(first, first, second)
		m.fma(w, first, s(0))
	})
}
