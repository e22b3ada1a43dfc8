package main

import "fmt"

// Offsets of tapArgs.
const (
	tapX     = 0
	tapY     = 8
	tapDX    = 16
	tapOffs  = 24 // byte offsets into x
	tapCount = 32
	tapBytes = 40  // of an output pixel
	tapScale = 48  // float32
	tapW     = 56  // depthwise: weights, [taps][channels]
	tapWOffs = 64  // byte offsets into w
	tapRow   = 72  // bytes of a channel's row
	tapLanes = 80  // bytes of it that are computed
	tapC     = 88  // channels
	tapDY    = 96  // maxPoolBack's gradient of y
	tapN     = 104 // output pixels with the same offsets
	tapXStep = 112 // bytes from one to the next of them in x
	tapYStep = 120 // and in y
)

// pools compute an output pixel from the input pixels at a list of offsets.
func pools(m machine) {
	pool(m, "maxPool", false, m.max)
	pool(m, "sumPool", true, m.add)
	maxPoolBack(m)
	sumPoolBack(m)
}

// strips calls body for the bytes of a pixel, so many vectors at a time. The rest takes 16 values at a time.
func strips(m machine, args register, vectors int, body func(position register, vectors int)) {
	position, end, left := m.register(), m.field(args, tapBytes), m.register()
	big, small, out := m.label("big"), m.label("small"), m.label("out")
	turn := func(vectors int) {
		m.scope(func() { body(position, vectors) })
		m.plus(vectors*m.size(), position)
	}
	m.clear(position)
	m.mark(big)
	m.difference(end, position, left)
	m.compare(left, vectors*m.size())
	m.branch(below, small)
	turn(vectors)
	m.jump(big)
	m.mark(small)
	m.compare(position, end)
	m.branch(notBelow, out)
	turn(64 / m.size())
	m.jump(small)
	m.mark(out)
}

// taps calls body for each offset of the list: at has the addresses base + position + offset. If w is not nil, body
// also gets the address of its weight, w + the offset of the other list.
func taps(m machine, args, position register, bases []register, w register, body func(at []register, w register)) {
	list, count, weight := m.field(args, tapOffs), m.field(args, tapCount), register(nil)
	if w != nil {
		weight = m.field(args, tapWOffs)
	}
	from := make([]register, len(bases))
	for i, base := range bases {
		from[i] = m.sumOf(base, position)
	}
	m.loop(count, 1, func() {
		at, last := make([]register, len(from)), len(from)-1
		at[last] = m.nextOffset(list)
		for i := range last {
			at[i] = m.sumOf(from[i], at[last])
		}
		m.plus(from[last], at[last])
		if w == nil {
			body(at, nil)
			return
		}
		there := m.nextOffset(weight)
		m.plus(w, there)
		body(at, there)
	})
}

// eachPixel repeats body for the output pixels that have the same offsets, and advances x and y.
func eachPixel(m machine, args, x, y register, body func()) {
	m.loop(m.field(args, tapN), 1, func() {
		m.scope(body)
		m.scope(func() { m.plus(m.fieldOperand(args, tapXStep), x) })
		m.scope(func() { m.plus(m.fieldOperand(args, tapYStep), y) })
	})
}

// pool combines x at the offsets, starting with the scale. If scaled, it starts with zero and multiplies by the scale.
func pool(m machine, name string, scaled bool, combine func(to, x, y vector)) {
	scale := m.constant(0)
	m.function(name, "*tapArgs", func(args register) {
		x, y := m.field(args, tapX), m.field(args, tapY)
		m.broadcastEach(args, tapScale, scale)
		strip := func(position register, vectors int) {
			for i := range vectors {
				if scaled {
					m.zero(m.v(i))
				} else {
					m.copy(m.v(i), scale)
				}
			}
			taps(m, args, position, []register{x}, nil, func(at []register, _ register) {
				for i := range vectors {
					combine(m.v(i), m.v(i), m.memoryOperand(m.at(at[0], i*m.size()), m.v(4+i)))
				}
			})
			to := m.indexed(y, position)
			for i := range vectors {
				if scaled {
					m.mul(m.v(i), m.v(i), scale)
				}
				m.store(m.v(i), m.offset(to, i*m.size()))
			}
		}
		eachPixel(m, args, x, y, func() { strips(m, args, 4, strip) })
	})
}

// maxPoolBack adds dy to dx at the first offset where x equals y.
func maxPoolBack(m machine) {
	m.function("maxPoolBack", "*tapArgs", func(args register) {
		x, y := m.field(args, tapX), m.field(args, tapY)
		dx, dy := m.field(args, tapDX), m.field(args, tapDY)
		strips(m, args, 2, func(position register, vectors int) {
			m.scope(func() {
				fromY, fromDY := m.indexed(y, position), m.indexed(dy, position)
				for i := range vectors {
					m.load(m.offset(fromY, i*m.size()), m.v(i))
					m.load(m.offset(fromDY, i*m.size()), m.v(2+i))
				}
			})
			taps(m, args, position, []register{x, dx}, nil, func(at []register, _ register) {
				for i := range vectors {
					v, left, share, to := m.v(4+i), m.v(2+i), m.v(6+i), m.at(at[1], i*m.size())
					m.load(m.at(at[0], i*m.size()), v)
					m.selectWhere(equal, share, left, v, m.v(i), v)
					m.sub(left, left, share)
					m.add(share, share, m.memoryOperand(to, v))
					m.store(share, to)
				}
			})
		})
	})
}

// sumPoolBack adds scale times y to dx at the offsets.
func sumPoolBack(m machine) {
	scale := m.constant(0)
	m.function("sumPoolBack", "*tapArgs", func(args register) {
		y, dx := m.field(args, tapY), m.field(args, tapDX)
		m.broadcastEach(args, tapScale, scale)
		strips(m, args, 4, func(position register, vectors int) {
			m.scope(func() {
				from := m.indexed(y, position)
				for i := range vectors {
					m.mul(m.v(i), m.memoryOperand(m.offset(from, i*m.size()), m.v(i)), scale)
				}
			})
			taps(m, args, position, []register{dx}, nil, func(at []register, _ register) {
				for i := range vectors {
					to := m.at(at[0], i*m.size())
					m.add(m.v(4+i), m.v(i), m.memoryOperand(to, m.v(4+i)))
					m.store(m.v(4+i), to)
				}
			})
		})
	})
}

// weighted computes y = the sum of w x over the offsets of each: a depthwise convolution with vectors of channels.
func weighted(m machine) {
	m.function("weighted", "*tapArgs", func(args register) {
		x, y, w := m.field(args, tapX), m.field(args, tapY), m.field(args, tapW)
		strip := func(position register, vectors int) {
			for i := range vectors {
				m.zero(m.v(i))
			}
			m.scope(func() {
				here := m.sumOf(w, position)
				taps(m, args, position, []register{x}, here, func(at []register, w register) {
					for i := range vectors {
						m.load(m.at(w, i*m.size()), m.v(4+i))
						m.fma(m.v(i), m.v(4+i), m.memoryOperand(m.at(at[0], i*m.size()), m.v(8+i)))
					}
				})
			})
			to := m.indexed(y, position)
			for i := range vectors {
				m.store(m.v(i), m.offset(to, i*m.size()))
			}
		}
		eachPixel(m, args, x, y, func() { strips(m, args, 4, strip) })
	})
}

// depthwise computes y = the sum of w x over the taps, for a block of channels at a time. With other lists it computes
// the gradient of the input. The weights of a block are consecutive.
func depthwise(m machine, block int) {
	vectors := 64 / m.size() // of 16 lanes
	m.function(fmt.Sprintf("depthwise%d", block), "*tapArgs", func(args register) {
		x, y, w := m.field(args, tapX), m.field(args, tapY), m.field(args, tapW)
		row, channels := m.field(args, tapRow), m.field(args, tapC)
		rows := m.rows(row, block)
		lanes, lane := m.fieldOperand(args, tapLanes), m.register()
		each := func(base register, f func(v vector, p place)) {
			rows(base, func(p place, c int) {
				for i := range vectors {
					f(m.v(c*vectors+i), m.offset(p, i*m.size()))
				}
			})
		}
		m.loop(channels, block, func() {
			next, out := m.label("lane"), m.label("sum")
			m.clear(lane)
			m.mark(next)
			for i := range block * vectors {
				m.zero(m.v(i))
			}
			m.scope(func() {
				m.branchIfZero(m.fieldOperand(args, tapDX), out)
				each(m.sumOf(y, lane), func(v vector, p place) { m.load(p, v) })
				m.mark(out)
			})
			m.scope(func() {
				taps(m, args, lane, []register{x}, w, func(at []register, w register) {
					weights := m.factors(w, block, m.v(8))
					rows(at[0], func(p place, c int) {
						weight, values := weights(c), make([]vector, vectors)
						for i := range values {
							values[i] = m.memoryOperand(m.offset(p, i*m.size()), m.v(10+c%2*vectors+i))
						}
						for i, x := range values {
							m.fma(m.v(c*vectors+i), x, weight)
						}
					})
				})
			})
			m.scope(func() {
				each(m.sumOf(y, lane), func(v vector, p place) { m.store(v, p) })
			})
			m.plus(64, lane)
			m.compare(lane, lanes)
			m.branch(below, next)
			for range block {
				m.plus(row, x, y)
			}
			m.plus(4*block, w)
		})
	})
}
