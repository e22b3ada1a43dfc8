package main

import "fmt"

func (a *neon) channels() {
	a.affine("affine", "is y = p x + q, p and q a channel.", false)
	a.affine("affineRelu", "is y = max(0, p x + q), p and q a channel.", true)
	a.normBack()
	for _, block := range []int{4, 1} {
		for _, r := range []neonReducer{
			{"moments", "sums (x - p) and its square, where mask, a channel.", 2, []int{argX}, true, true, a.moments},
			{"normSums", "sums y and y (x - p) a channel.", 2, []int{argX, argY}, true, false, a.normSums},
			{
				"normSumsRelu", "sets y = 0 where z <= 0, then sums y and y (x - p) a channel.", 2,
				[]int{argX, argY, argZ},
				true, false, a.normSumsRelu,
			},
			{"rowSums", "sums x a channel.", 1, []int{argX}, false, false, a.rowSums},
			{"dots", "sums x y a channel.", 1, []int{argX, argY}, false, false, a.dots},
		} {
			a.reduce(r, block)
		}
	}
}

// rows walks pixels, channels and two vectors of a row at a time. x and y move over all of it; each channel has a value
// of the arrays at offsets in registers, and body gets the pointer to where the row begins in mask.
func (a *neon) rows(name, doc string, offsets, values []int, masked bool, body func(x, y, mask register)) {
	a.function(name, "*channelArgs", doc, func(args register) {
		x, y := a.field(args, argX), a.field(args, argY)
		pixels, row := a.field(args, argPixels), a.field(args, argRow)
		arrays := make([]register, len(offsets))
		for i := range arrays {
			arrays[i] = a.register()
		}
		channels, left, mask := a.register(), a.register(), a.register()
		a.zeroFour(31)
		a.loop(pixels, 1, func() {
			a.get(args, argC, channels)
			for i, offset := range offsets {
				a.get(args, offset, arrays[i])
			}
			a.loop(channels, 1, func() {
				for i, p := range arrays {
					a.broadcast(p, values[i])
				}
				a.move(row, left)
				if masked {
					a.get(args, argMask, mask)
				}
				a.loop(left, 2*size, func() {
					body(x, y, mask)
					a.advance(2*size, x, y)
					if masked {
						a.advance(2*size, mask)
					}
				})
			})
		})
	})
}

// affine is y = p x + q a channel.
func (a *neon) affine(name, doc string, relu bool) {
	const p, q, zero = 28, 29, 31
	a.rows(name, doc, []int{argP, argQ}, []int{p, q}, false, func(x, y, _ register) {
		for i := range 2 {
			v, out := wide(i), wide(4+i)
			a.load(x, i*size, v)
			a.copy(out, same(q))
			a.fma(out, v, same(p))
			if relu {
				a.larger(out, out, same(zero))
			}
			a.store(out, y, i*size)
		}
	})
}

// normBack is y = (p y + q x + r) mask: batch norm's gradient in neonPlace of its output's.
func (a *neon) normBack() {
	const p, q, r = 28, 29, 30
	doc := "is y = (p y + q x + r) mask, p, q and r a channel."
	a.rows("normBack", doc, []int{argP, argQ, argR}, []int{p, q, r}, true, func(x, y, mask register) {
		for i := range 2 {
			out, dy, v, m := wide(i), wide(2+i), wide(4+i), wide(6+i)
			a.load(y, i*size, dy)
			a.load(x, i*size, v)
			a.load(mask, i*size, m)
			a.copy(out, same(r))
			a.fma(out, dy, same(p))
			a.fma(out, v, same(q))
			a.times(out, out, m)
			a.store(out, y, i*size)
		}
	})
}

// reducer is a sum over pixels and lanes for every channel.
type neonReducer struct {
	name, doc        string
	sums             int   // a channel
	arrays           []int // argX, argY and argZ, as far as it reads them
	centered, masked bool  // it takes p from x, and has a mask
	body             func(at neonPlace)
}

// neonPlace is what a reducer works on: a vector of a channel, whose sums are in registers of its own.
type neonPlace struct {
	arrays   []register
	mask     register
	p        vec // the channel's
	sum, dot vec
}

// reduce sums for a block of channels, [channel][sums][16] at out, adding to what is there. A partial sum is a vector
// of eight: the second half stays as it is. Sums take registers up to 15, the channels' p 16 to 19, and 20 is zero.
func (a *neon) reduce(r neonReducer, block int) {
	const partial, firstP, zero = 64, 16, 20
	each := func(f func(v vec, offset int)) {
		for i := range block * r.sums {
			f(wide(i), i*partial)
		}
	}
	a.function(fmt.Sprintf("%s%d", r.name, block), "*channelArgs", r.doc, func(args register) {
		base := a.fields(args, r.arrays...)
		out, pixels, lanes, row := a.field(args, argOut), a.field(args, argPixels), a.field(args, argLanes),
			a.field(args, argRow)
		each(func(v vec, offset int) { a.load(out, offset, v) })
		if r.centered {
			p := a.field(args, argP)
			for c := range block {
				a.broadcast(p, firstP+c)
			}
		}
		a.zeroFour(zero)
		at := neonPlace{arrays: make([]register, len(base)), mask: a.register()}
		for i := range base {
			at.arrays[i] = a.register()
		}
		offset, left := a.register(), a.register()
		a.loop(pixels, 1, func() {
			for c := range block {
				if c == 0 {
					a.put("MOVD $0, %s", offset)
				} else {
					a.add(row, offset)
				}
				for i, b := range base {
					a.plus(b, offset, at.arrays[i])
				}
				if r.masked {
					a.get(args, argMask, at.mask)
				}
				at.p, at.sum, at.dot = same(firstP+c), wide(c*r.sums), wide(c*r.sums+r.sums-1)
				a.move(lanes, left)
				a.loop(left, size, func() {
					r.body(at)
					a.advance(size, at.arrays...)
					if r.masked {
						a.advance(size, at.mask)
					}
				})
			}
			a.scope(func() {
				steps := a.fields(args, argXPixel, argYPixel)
				for i, array := range r.arrays {
					a.add(steps[min(array/8, 1)], base[i])
				}
			})
		})
		each(func(v vec, offset int) { a.store(v, out, offset) })
	})
}

// centeredX is x - p of the channel.
func (a *neon) centeredX(at neonPlace) vec {
	v := wide(11)
	a.load(at.arrays[0], 0, v)
	a.difference(v, v, at.p)
	return v
}

func (a *neon) moments(at neonPlace) {
	v, mask := a.centeredX(at), wide(12)
	a.load(at.mask, 0, mask)
	a.times(v, v, mask)
	a.sum(at.sum, at.sum, v)
	a.fma(at.dot, v, v)
}

func (a *neon) normSums(at neonPlace) {
	dy := wide(13)
	a.load(at.arrays[1], 0, dy)
	a.addNorm(at, dy)
}

func (a *neon) addNorm(at neonPlace, dy vec) {
	v := a.centeredX(at)
	a.sum(at.sum, at.sum, dy)
	a.fma(at.dot, dy, v)
}

func (a *neon) normSumsRelu(at neonPlace) {
	const zero = 20
	dy, z := wide(13), wide(14)
	a.load(at.arrays[1], 0, dy)
	a.load(at.arrays[2], 0, z)
	a.keep(fcmgt, z, z, same(zero), dy, dy)
	a.store(dy, at.arrays[1], 0)
	a.addNorm(at, dy)
}

func (a *neon) rowSums(at neonPlace) {
	v := wide(11)
	a.load(at.arrays[0], 0, v)
	a.sum(at.sum, at.sum, v)
}

func (a *neon) dots(at neonPlace) {
	v, w := wide(11), wide(12)
	a.load(at.arrays[0], 0, v)
	a.load(at.arrays[1], 0, w)
	a.fma(at.sum, v, w)
}
