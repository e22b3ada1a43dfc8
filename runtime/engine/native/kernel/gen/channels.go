package main

import "fmt"

// Offsets of channelArgs.
const (
	argX      = 0
	argY      = 8
	argZ      = 16
	argP      = 24
	argQ      = 32
	argR      = 40
	argMask   = 48
	argOut    = 56
	argC      = 64 // channels
	argLanes  = 72 // bytes of a row that count
	argRow    = 80 // bytes of a row
	argPixels = 88
	argXPixel = 96  // bytes of a pixel of x
	argYPixel = 104 // of y
)

func channels(m machine) {
	affine(m, "affine", false)
	affine(m, "affineRelu", true)
	normBack(m)
	layerNorms(m)
	layerGradients(m)
	for _, block := range []int{m.block(), 1} {
		moments(m, block)
		normSums(m, "normSums", block, false)
		normSums(m, "normSumsRelu", block, true)
		rowSums(m, block)
		dots(m, block)
	}
}

// eachLane calls body for each vector of all pixels and channels, and i counts vectors in a turn. The constants from 1
// on have the values of the channel, which are in the arrays at offsets.
func eachLane(m machine, name string, offsets []int, masked bool, body func(x, y, mask place, i int)) {
	m.function(name, "*channelArgs", func(args register) {
		x, y := m.field(args, argX), m.field(args, argY)
		pixels, row := m.field(args, argPixels), m.field(args, argRow)
		m.zero(m.constant(0))
		m.loop(pixels, 1, func() {
			channels, arrays := m.field(args, argC), make([]register, len(offsets))
			for i, offset := range offsets {
				arrays[i] = m.field(args, offset)
			}
			m.loop(channels, 1, func() {
				for i, p := range arrays {
					m.broadcastNext(p, m.constant(1+i))
				}
				pointers := []register{x, y}
				if masked {
					pointers = append(pointers, m.field(args, argMask))
				}
				at, settle := m.placesOf(pointers...)
				m.loop(m.copyRegister(row), 64, func() {
					for i := range 64 / m.size() {
						p := []place{nil, nil, nil}
						for array := range at {
							p[array] = m.offset(at[array], i*m.size())
						}
						body(p[0], p[1], p[2], i)
					}
					m.advance(64, at...)
				})
				settle()
			})
		})
	})
}

// affine computes y = p x + q for each channel, or max(0, p x + q).
func affine(m machine, name string, relu bool) {
	zero, p, q := m.constant(0), m.constant(1), m.constant(2)
	eachLane(m, name, []int{argP, argQ}, false, func(x, y, _ place, i int) {
		m.load(x, m.v(i))
		out := m.affine(m.v(i), p, q, m.v(4+i))
		if relu {
			m.max(out, out, zero)
		}
		m.store(out, y)
	})
}

// normBack computes y = (p y + q x + r) mask: the gradient of batch norm from the gradient of its output.
func normBack(m machine) {
	p, q, r := m.constant(1), m.constant(2), m.constant(3)
	eachLane(m, "normBack", []int{argP, argQ, argR}, true, func(x, y, mask place, i int) {
		m.load(y, m.v(i))
		out := m.affine(m.v(i), p, r, m.v(2+i))
		m.fma(out, q, m.memoryOperand(x, m.v(4+i)))
		m.mul(out, out, m.memoryOperand(mask, m.v(6+i)))
		m.store(out, y)
	})
}

// layerNorms are the kernels of 16 lanes of a pixel's channels: p has gamma, q beta, z a mean and an inverse deviation
// of each lane, and out two sums of each lane.
func layerNorms(m machine) {
	x, y, t, mean, inverse, sum, dot := m.v(0), m.v(1), m.v(2), m.v(3), m.v(4), m.v(5), m.v(6)
	each := func(name string, offsets []int, stored bool, body func(factors []vector, to place)) {
		m.function(name, "*channelArgs", func(args register) {
			for at := 0; at < 64; at += m.size() {
				m.scope(func() {
					from, to, row := m.field(args, argX), m.field(args, argY), m.field(args, argRow)
					kept, out := m.field(args, argZ), m.field(args, argOut)
					for i, v := range []vector{mean, inverse} {
						m.load(m.at(kept, 64*i+at), v)
					}
					for i, v := range []vector{sum, dot} {
						m.load(m.at(out, 64*i+at), v)
					}
					arrays, factors := make([]register, len(offsets)), make([]vector, len(offsets))
					for i, offset := range offsets {
						arrays[i], factors[i] = m.field(args, offset), m.constant(i)
					}
					m.loop(m.field(args, argC), 1, func() {
						for i, p := range arrays {
							m.broadcastNext(p, factors[i])
						}
						m.load(m.at(from, at), x)
						m.sub(x, x, mean)
						body(factors, m.at(to, at))
						m.plus(row, from, to)
					})
					if stored {
						m.store(sum, m.at(out, at))
						m.store(dot, m.at(out, 64+at))
					}
				})
			}
		})
	}
	// the sum of squares of x - mean
	each("layerSquares", nil, true, func([]vector, place) { m.fma(sum, x, x) })
	// y = (x - mean) inverse gamma + beta
	each("layerNorm", []int{argP, argQ}, false, func(f []vector, to place) {
		m.mul(x, x, inverse)
		m.store(m.affine(x, f[0], f[1], t), to)
	})
	// y = (x - mean) inverse gamma
	each("layerScale", []int{argP}, false, func(f []vector, to place) {
		m.mul(x, x, inverse)
		m.mul(x, x, f[0])
		m.store(x, to)
	})
	// the sums of gamma y, and of gamma y (x - mean) inverse
	each("layerSums", []int{argP}, true, func(f []vector, to place) {
		m.load(to, y)
		m.mul(y, y, f[0])
		m.add(sum, sum, y)
		m.mul(x, x, inverse)
		m.fma(dot, x, y)
	})
	// y = inverse (gamma y - sum - (x - mean) inverse dot)
	each("layerBack", []int{argP}, false, func(f []vector, to place) {
		m.load(to, y)
		m.mul(y, y, f[0])
		m.sub(y, y, sum)
		m.mul(x, x, inverse)
		m.fms(y, x, dot)
		m.mul(y, y, inverse)
		m.store(y, to)
	})
}

// layerGradients adds what 16 lanes of a pixel give to the gradients of each channel's q and p: y and
// y (x - mean) inverse, into the sums at out, [channel][2][16].
func layerGradients(m machine) {
	x, y, mean, inverse, sum, dot := m.v(0), m.v(1), m.v(2), m.v(3), m.v(4), m.v(5)
	m.function("layerGradients", "*channelArgs", func(args register) {
		for at := 0; at < 64; at += m.size() {
			m.scope(func() {
				from, to, row := m.field(args, argX), m.field(args, argY), m.field(args, argRow)
				kept, out := m.field(args, argZ), m.field(args, argOut)
				m.load(m.at(kept, at), mean)
				m.load(m.at(kept, 64+at), inverse)
				m.loop(m.field(args, argC), 1, func() {
					m.load(m.at(from, at), x)
					m.load(m.at(to, at), y)
					m.load(m.at(out, at), sum)
					m.load(m.at(out, 64+at), dot)
					m.sub(x, x, mean)
					m.mul(x, x, inverse)
					m.add(sum, sum, y)
					m.fma(dot, x, y)
					m.store(sum, m.at(out, at))
					m.store(dot, m.at(out, 64+at))
					m.plus(row, from, to)
					m.plus(2*64, out)
				})
			})
		}
	})
}

// reducer describes a sum over pixels and lanes for each channel.
type reducer struct {
	name             string
	block            int   // channels at a time
	sums             int   // of each channel
	arrays           []int // that it reads: argX, argY, argZ
	centered, masked bool  // it subtracts p from x; it has a mask
	body             func(at channelVector)
}

// channelVector is a vector of a channel that a reducer adds to the sums of the channel.
type channelVector struct {
	x, y, z, mask place
	sum, dot      vector // the sums of the channel
	p             vector // the value of the channel
	zero          vector
	a, b, c       vector // temporary
}

// reduce adds to the sums at out, [channel][sums][16], for a block of channels. Vectors of eight values leave the
// second half of a sum as it is.
func (r reducer) reduce(m machine) {
	const partial = 64
	n := r.block * r.sums
	singles, free := m.repeatedVectors(n), m.vectorAfter(n, r.block+1)
	m.function(fmt.Sprintf("%s%d", r.name, r.block), "*channelArgs", func(args register) {
		bases := make([]register, len(r.arrays))
		for i, array := range r.arrays {
			bases[i] = m.field(args, array)
		}
		out, pixels := m.field(args, argOut), m.field(args, argPixels)
		lanes, row := m.fieldOperand(args, argLanes), m.fieldOperand(args, argRow)
		for i := range n {
			m.load(m.at(out, i*partial), m.v(i))
		}
		if r.centered {
			p := m.field(args, argP)
			for c := range r.block {
				m.broadcastNext(p, singles[c])
			}
		}
		at := channelVector{zero: singles[r.block], a: m.v(free), b: m.v(free + 1), c: m.v(free + 2)}
		m.zero(at.zero)
		offset := m.register()
		m.loop(pixels, 1, func() {
			for c := range r.block {
				if c == 0 {
					m.clear(offset)
				} else {
					m.plus(row, offset)
				}
				at.sum, at.dot, at.p = m.v(c*r.sums), m.v(c*r.sums+r.sums-1), singles[c]
				m.scope(func() { r.row(m, args, lanes, m.placesAt(offset, bases...), at) })
			}
			for i, array := range r.arrays {
				step := argYPixel
				if array == argX {
					step = argXPixel
				}
				m.scope(func() { m.plus(m.fieldOperand(args, step), bases[i]) })
			}
		})
		for i := range n {
			m.store(m.v(i), m.at(out, i*partial))
		}
	})
}

// row sums over the lanes of a channel.
func (r reducer) row(m machine, args, lanes register, rows []place, at channelVector) {
	for i, p := range []*place{&at.x, &at.y, &at.z}[:len(rows)] {
		*p = rows[i]
	}
	if r.masked {
		mask, _ := m.placesOf(m.field(args, argMask))
		at.mask = mask[0]
		rows = append(rows, at.mask)
	}
	m.loop(m.copyRegister(lanes), m.size(), func() {
		r.body(at)
		m.advance(m.size(), rows...)
	})
}

// centeredX computes x - p.
func centeredX(m machine, at channelVector, to vector) {
	m.load(at.x, to)
	m.sub(to, to, at.p)
}

// moments sums (x - p) mask and its square for each channel.
func moments(m machine, block int) {
	reducer{"moments", block, 2, []int{argX}, true, true, func(at channelVector) {
		centeredX(m, at, at.a)
		m.mul(at.a, at.a, m.memoryOperand(at.mask, at.b))
		m.add(at.sum, at.sum, at.a)
		m.fma(at.dot, at.a, at.a)
	}}.reduce(m)
}

// normSums sums y and y (x - p) for each channel. With relu it first sets y = 0 where z <= 0.
func normSums(m machine, name string, block int, relu bool) {
	arrays := []int{argX, argY}
	if relu {
		arrays = append(arrays, argZ)
	}
	reducer{name, block, 2, arrays, true, false, func(at channelVector) {
		dy := at.b
		m.load(at.y, dy)
		if relu {
			m.load(at.z, at.c)
			m.selectWhere(greater, dy, dy, at.c, at.zero, at.c)
			m.store(dy, at.y)
		}
		centeredX(m, at, at.a)
		m.add(at.sum, at.sum, dy)
		m.fma(at.dot, at.a, dy)
	}}.reduce(m)
}

// rowSums sums x for each channel.
func rowSums(m machine, block int) {
	reducer{"rowSums", block, 1, []int{argX}, false, false, func(at channelVector) {
		m.add(at.sum, at.sum, m.memoryOperand(at.x, at.a))
	}}.reduce(m)
}

// dots sums x y for each channel.
func dots(m machine, block int) {
	reducer{"dots", block, 1, []int{argX, argY}, false, false, func(at channelVector) {
		m.load(at.x, at.a)
		m.fma(at.sum, at.a, m.memoryOperand(at.y, at.b))
	}}.reduce(m)
}
