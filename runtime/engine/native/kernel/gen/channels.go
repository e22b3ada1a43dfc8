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
	for _, block := range []int{m.block(), 1} {
		moments(m, block)
		normSums(m, "normSums", block, false)
		normSums(m, "normSumsRelu", block, true)
		rowSums(m, block)
		dots(m, block)
	}
}

// eachLane walks pixels, channels and the vectors of a row. x and y move over all of it. Each channel has a value of the
// arrays at offsets in the constants from 1 on.
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
					m.next(p, m.constant(1+i))
				}
				pointers := []register{x, y}
				if masked {
					pointers = append(pointers, m.field(args, argMask))
				}
				at, settle := m.moving(pointers...)
				m.loop(m.copyOf(row), 64, func() {
					for i := range 64 / m.size() {
						p := []place{nil, nil, nil}
						for array := range at {
							p[array] = m.behind(at[array], i*m.size())
						}
						body(p[0], p[1], p[2], i)
					}
					m.move(64, at...)
				})
				settle()
			})
		})
	})
}

// affine is y = p x + q a channel, or max(0, p x + q).
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

// normBack is y = (p y + q x + r) mask: batch norm's gradient in place of its output's.
func normBack(m machine) {
	p, q, r := m.constant(1), m.constant(2), m.constant(3)
	eachLane(m, "normBack", []int{argP, argQ, argR}, true, func(x, y, mask place, i int) {
		m.load(y, m.v(i))
		out := m.affine(m.v(i), p, r, m.v(2+i))
		m.fma(out, q, m.source(x, m.v(4+i)))
		m.mul(out, out, m.source(mask, m.v(6+i)))
		m.store(out, y)
	})
}

// reducer is a sum over pixels and lanes for every channel.
type reducer struct {
	name             string
	block            int   // channels at a time
	sums             int   // a channel
	arrays           []int // argX, argY and argZ, as far as it reads them
	centered, masked bool  // it takes p from x, and has a mask
}

// spot is what a reducer works on: a vector of a channel.
type spot struct {
	x, y, z, mask place
	sum, dot      vector // of the channel
	p             vector // its value
	zero          vector
	a, b, c       vector // to work with
}

// reduce sums for a block of channels, [channel][sums][16] at out, adding to what is there. Where a vector has eight
// values the second half of a sum stays as it is.
func reduce(m machine, r reducer, body func(at spot)) {
	const partial = 64
	n := r.block * r.sums
	singles, free := m.singles(n), m.after(n, r.block+1)
	m.function(fmt.Sprintf("%s%d", r.name, r.block), "*channelArgs", func(args register) {
		bases := make([]register, len(r.arrays))
		for i, array := range r.arrays {
			bases[i] = m.field(args, array)
		}
		out, pixels := m.field(args, argOut), m.field(args, argPixels)
		lanes, row := m.held(args, argLanes), m.held(args, argRow)
		for i := range n {
			m.load(m.at(out, i*partial), m.v(i))
		}
		if r.centered {
			p := m.field(args, argP)
			for c := range r.block {
				m.next(p, singles[c])
			}
		}
		at := spot{zero: singles[r.block], a: m.v(free), b: m.v(free + 1), c: m.v(free + 2)}
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
				m.scope(func() { reduceRow(m, r, args, m.walk(offset, bases...), lanes, at, body) })
			}
			for i, array := range r.arrays {
				step := argYPixel
				if array == argX {
					step = argXPixel
				}
				m.scope(func() { m.plus(m.held(args, step), bases[i]) })
			}
		})
		for i := range n {
			m.store(m.v(i), m.at(out, i*partial))
		}
	})
}

// reduceRow sums over the lanes of a channel's row.
func reduceRow(m machine, r reducer, args register, rows []place, lanes register, at spot, body func(at spot)) {
	for i, p := range []*place{&at.x, &at.y, &at.z}[:len(rows)] {
		*p = rows[i]
	}
	if r.masked {
		mask, _ := m.moving(m.field(args, argMask))
		at.mask = mask[0]
		rows = append(rows, at.mask)
	}
	m.loop(m.copyOf(lanes), m.size(), func() {
		body(at)
		m.move(m.size(), rows...)
	})
}

// centeredX is x - p of the channel.
func centeredX(m machine, at spot, to vector) {
	m.load(at.x, to)
	m.sub(to, to, at.p)
}

// moments sums (x - p) and its square, where mask, a channel.
func moments(m machine, block int) {
	reduce(m, reducer{"moments", block, 2, []int{argX}, true, true}, func(at spot) {
		centeredX(m, at, at.a)
		m.mul(at.a, at.a, m.source(at.mask, at.b))
		m.add(at.sum, at.sum, at.a)
		m.fma(at.dot, at.a, at.a)
	})
}

// normSums sums y and y (x - p) a channel, with relu after y = 0 where z <= 0.
func normSums(m machine, name string, block int, relu bool) {
	arrays := []int{argX, argY}
	if relu {
		arrays = append(arrays, argZ)
	}
	reduce(m, reducer{name, block, 2, arrays, true, false}, func(at spot) {
		dy := at.b
		m.load(at.y, dy)
		if relu {
			m.load(at.z, at.c)
			m.keep(greater, dy, dy, at.c, at.zero, at.c)
			m.store(dy, at.y)
		}
		centeredX(m, at, at.a)
		m.add(at.sum, at.sum, dy)
		m.fma(at.dot, at.a, dy)
	})
}

// rowSums sums x a channel.
func rowSums(m machine, block int) {
	reduce(m, reducer{"rowSums", block, 1, []int{argX}, false, false}, func(at spot) {
		m.add(at.sum, at.sum, m.source(at.x, at.a))
	})
}

// dots sums x y a channel.
func dots(m machine, block int) {
	reduce(m, reducer{"dots", block, 1, []int{argX, argY}, false, false}, func(at spot) {
		m.load(at.x, at.a)
		m.fma(at.sum, at.a, m.source(at.y, at.b))
	})
}
