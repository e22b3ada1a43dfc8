package main

import "fmt"

// pools make an output pixel of input pixels at a list of offsets, value by value.
func (a *neon) pools() {
	a.pool("maxPool", "is y = the largest of x at the offsets.", false, a.larger)
	a.pool("sumPool", "is y = scale times the sum of x at the offsets.", true, a.sum)
	a.maxPoolBack()
	a.sumPoolBack()
}

// strips walks the bytes of a pixel, vectors at a time, and what is left in steps of 16 values.
func (a *neon) strips(args register, vectors int, body func(position register, vectors int)) {
	position, end, left := a.register(), a.field(args, tapBytes), a.register()
	big, small, out := a.label("big"), a.label("small"), a.label("out")
	a.put("MOVD $0, %s", position)
	a.mark(big)
	a.put("SUB %s, %s, %s", position, end, left)
	a.put("CMP $%d, %s", vectors*size, left)
	a.put("BLO %s", small)
	a.scope(func() { body(position, vectors) })
	a.advance(vectors*size, position)
	a.put("B %s", big)
	a.mark(small)
	a.put("CMP %s, %s", end, position)
	a.put("BHS %s", out)
	a.scope(func() { body(position, 2) })
	a.advance(2*size, position)
	a.put("B %s", small)
	a.mark(out)
}

// taps repeats body for every offset of a list with the addresses there: of each base, so many bytes on.
func (a *neon) taps(args, position register, bases []register, body func(at []register)) {
	list, count, offset := a.field(args, tapOffs), a.field(args, tapCount), a.register()
	from, at := make([]register, len(bases)), make([]register, len(bases))
	for i, base := range bases {
		from[i], at[i] = a.register(), a.register()
		a.plus(base, position, from[i])
	}
	a.loop(count, 1, func() {
		a.put("MOVD.P 8(%s), %s", list, offset)
		for i := range from {
			a.plus(from[i], offset, at[i])
		}
		body(at)
	})
}

// at is an address so many bytes behind another, in a register of its own.
func (a *neon) at(base, by register) register {
	r := a.register()
	a.plus(base, by, r)
	return r
}

// eachPixel repeats body for the output pixels that have the same offsets, and moves x and y along.
func (a *neon) eachPixel(args, x, y register, body func()) {
	pixels, step := a.field(args, tapN), a.register()
	a.loop(pixels, 1, func() {
		a.scope(body)
		a.get(args, tapXStep, step)
		a.add(step, x)
		a.get(args, tapYStep, step)
		a.add(step, y)
	})
}

// pool combines x at the offsets from the scale on, or, scaled, from zero on and times the scale.
func (a *neon) pool(name, doc string, scaled bool, combine func(to, x, y vec)) {
	const scale = 31
	a.function(name, "*tapArgs", doc, func(args register) {
		x, y := a.field(args, tapX), a.field(args, tapY)
		a.constants(args, tapScale, scale)
		strip := func(position register, vectors int) {
			for i := range vectors {
				if scaled {
					a.zero(wide(i))
				} else {
					a.copy(wide(i), same(scale))
				}
			}
			a.taps(args, position, []register{x}, func(at []register) {
				for i := range vectors {
					a.load(at[0], i*size, wide(4+i))
					combine(wide(i), wide(i), wide(4+i))
				}
			})
			to := a.at(y, position)
			for i := range vectors {
				if scaled {
					a.times(wide(i), wide(i), same(scale))
				}
				a.store(wide(i), to, i*size)
			}
		}
		a.eachPixel(args, x, y, func() { a.strips(args, 4, strip) })
	})
}

// maxPoolBack gives each output's gradient to the first input that equals the output.
func (a *neon) maxPoolBack() {
	doc := "adds the gradient dy to dx at the first offset where x equals y."
	a.function("maxPoolBack", "*tapArgs", doc, func(args register) {
		f := a.fields(args, tapX, tapY, tapDX, tapDY)
		x, y, dx, dy := f[0], f[1], f[2], f[3]
		a.strips(args, 2, func(position register, vectors int) {
			a.scope(func() {
				py, pd := a.at(y, position), a.at(dy, position)
				for i := range vectors {
					a.load(py, i*size, wide(i))
					a.load(pd, i*size, wide(2+i))
				}
			})
			a.taps(args, position, []register{x, dx}, func(at []register) {
				for i := range vectors {
					v, left, share, old := wide(4+i), wide(2+i), wide(6+i), wide(8+i)
					a.load(at[0], i*size, v)
					a.load(at[1], i*size, old)
					a.keep(fcmeq, v, v, wide(i), left, share)
					a.difference(left, left, share)
					a.sum(old, old, share)
					a.store(old, at[1], i*size)
				}
			})
		})
	})
}

func (a *neon) sumPoolBack() {
	const scale = 31
	a.function("sumPoolBack", "*tapArgs", "adds scale times y to dx at the offsets.", func(args register) {
		y, dx := a.field(args, tapY), a.field(args, tapDX)
		a.constants(args, tapScale, scale)
		a.strips(args, 4, func(position register, vectors int) {
			a.scope(func() {
				py := a.at(y, position)
				for i := range vectors {
					a.load(py, i*size, wide(i))
					a.times(wide(i), wide(i), same(scale))
				}
			})
			a.taps(args, position, []register{dx}, func(at []register) {
				for i := range vectors {
					a.load(at[0], i*size, wide(4+i))
					a.sum(wide(4+i), wide(4+i), wide(i))
					a.store(wide(4+i), at[0], i*size)
				}
			})
		})
	})
}

// weights is taps with the address in w as well.
func (a *neon) weights(args, position, w, x register, body func(w, x register)) {
	list, at := a.field(args, tapWOffs), a.register()
	a.taps(args, position, []register{x}, func(x []register) {
		a.put("MOVD.P 8(%s), %s", list, at)
		a.add(w, at)
		body(at, x[0])
	})
}

// weighted is y = the sum over taps of w x, value by value: a depthwise convolution where channels are the vector.
func (a *neon) weighted() {
	doc := "is y = the sum of w at its offsets times x at its own, value by value."
	a.function("weighted", "*tapArgs", doc, func(args register) {
		f := a.fields(args, tapX, tapY, tapW)
		x, y, w := f[0], f[1], f[2]
		strip := func(position register, vectors int) {
			for i := range vectors {
				a.zero(wide(i))
			}
			a.scope(func() {
				here := a.at(w, position)
				a.weights(args, position, here, x, func(w, x register) {
					for i := range vectors {
						a.load(w, i*size, wide(4+i))
						a.load(x, i*size, wide(8+i))
						a.fma(wide(i), wide(4+i), wide(8+i))
					}
				})
			})
			to := a.at(y, position)
			for i := range vectors {
				a.store(wide(i), to, i*size)
			}
		}
		a.eachPixel(args, x, y, func() { a.strips(args, 4, strip) })
	})
}

// depthwise is y = the sum over taps of w x, channel by channel; it also makes the gradient of its input, with other
// lists. The weights of a block of four channels lie side by side and are elements of one register.
func (a *neon) depthwise(block int) {
	const weight, free = 16, 20
	doc := "is y = the sum over taps of w x, a block of channels at a time."
	a.function(fmt.Sprintf("depthwise%d", block), "*tapArgs", doc, func(args register) {
		f := a.fields(args, tapX, tapY, tapW, tapRow, tapC)
		x, y, w, row, channels := f[0], f[1], f[2], f[3], f[4]
		lanes, lane := a.field(args, tapLanes), a.register()
		a.loop(channels, block, func() {
			next := a.label("lane")
			a.put("MOVD $0, %s", lane)
			a.mark(next)
			a.scope(func() { a.startChannels(args, a.at(y, lane), row, block) })
			a.scope(func() {
				a.weights(args, lane, w, x, func(w, x register) {
					if block == 1 {
						a.put("FMOVS (%s), F%d", w, weight)
					} else {
						a.loadFour(w, 0, weight)
					}
					for c := range block {
						from := free + c%2*columns
						a.load(x, 0, wide(from/2))
						a.load(x, size, wide(from/2+1))
						for v := range columns {
							a.word(fmlaElement(c*columns+v, from+v, weight, c))
						}
						if c+1 < block {
							a.add(row, x)
						}
					}
				})
			})
			a.scope(func() {
				a.eachChannel(a.at(y, lane), row, block, func(to register, c int) {
					a.store(wide(2*c), to, 0)
					a.store(wide(2*c+1), to, size)
				})
			})
			a.advance(2*size, lane)
			a.put("CMP %s, %s", lanes, lane)
			a.put("BLO %s", next)
			for range block {
				a.add(row, x, y)
			}
			a.advance(4*block, w)
		})
	})
}

// eachChannel calls f with the address of every channel of a block.
func (a *neon) eachChannel(p, row register, block int, f func(p register, c int)) {
	for c := range block {
		f(p, c)
		if c+1 < block {
			a.add(row, p)
		}
	}
}

// startChannels sets the sums to zero, or to y where dx is set.
func (a *neon) startChannels(args, y, row register, block int) {
	out, dx := a.label("sum"), a.field(args, tapDX)
	for q := range block * columns {
		a.zeroFour(q)
	}
	a.put("CBZ %s, %s", dx, out)
	a.eachChannel(y, row, block, func(from register, c int) {
		a.load(from, 0, wide(2*c))
		a.load(from, size, wide(2*c+1))
	})
	a.mark(out)
}
