package main

import "fmt"

// Offsets of winogradArgs.
const (
	winoSrc      = 0
	winoDst      = 8
	winoOffs     = 16
	winoTmp      = 24
	winoChannels = 32
	winoWidth    = 40 // bytes of a channel that are computed, and from channel to channel of a panel
	winoRow      = 48 // bytes from channel to channel of an image
	winoPoint    = 56 // bytes from point to point
	winoBias     = 64
	winoAdd      = 72
	winoReLU     = 80
	winoScalars  = 88
)

// winograd are the transforms of F(m x m, 3 x 3); see winogradArgs in package kernel and Lavin and Gray 2015, whose
// matrices these are. Each is one side, a line, applied to columns and then to rows; see lines.go.
func (a *assembly) winograd(m int) {
	a.image(m)
	a.output(m)
	for _, t := range []turn{
		{"winogradWeights", "transforms a 3 x 3 kernel; see winogradArgs.", 3, m + 2, []int{1, 5}, a.weightLine},
		{
			"winogradSpread", "transforms the gradient of a tile of an output; see winogradArgs.", m, m + 2,
			[]int{0, 3},
			a.spreadLine,
		},
	} {
		a.up(t, m)
	}
	a.gather(m)
}

// scalar is a register that holds one of a transform's numbers, behind those that lines work with.
const scalar = 24

// number is scalar i.
func number(i int) vec { return same(scalar + i) }

// numbers loads n of the arguments' scalars.
func (a *assembly) numbers(args register, n int) {
	registers := make([]int, n)
	for i := range registers {
		registers[i] = scalar + i
	}
	if n > 0 {
		a.constants(args, winoScalars, registers...)
	}
}

// count is that of two, for tiles of 2 and of 4.
func count(m int, two []int) int { return two[m/4] }

// strip walks a channel's bytes.
func (a *assembly) strip(args register, body func(lane register)) {
	lane, width, next := a.register(), a.field(args, winoWidth), a.label("lane")
	a.put("MOVD $0, %s", lane)
	a.mark(next)
	a.scope(func() { body(lane) })
	a.advance(size, lane)
	a.put("CMP %s, %s", width, lane)
	a.put("BLO %s", next)
}

// scattered calls f with the addresses of column j of a square with so many a side, whose pixels are at offsets.
func (a *assembly) scattered(base, offs register, side, j int, f func(p register, i int)) {
	a.scope(func() {
		p := a.register()
		for i := range side {
			a.get(offs, 8*(i*side+j), p)
			a.add(base, p)
			f(p, i)
		}
	})
}

// image transforms a tile of an image.
func (a *assembly) image(m int) {
	side := m + 2
	doc := "transforms a tile of an image; see winogradArgs."
	a.function(fmt.Sprintf("winogradInput%d", m), "*winogradArgs", doc, func(args register) {
		f := a.fields(args, winoSrc, winoDst, winoOffs, winoTmp, winoChannels)
		x, dst, offs, tmp, channels := f[0], f[1], f[2], f[3], f[4]
		a.numbers(args, count(m, []int{0, 4}))
		a.loop(channels, 1, func() {
			a.scope(func() {
				a.strip(args, func(lane register) {
					from := a.at(x, lane)
					for j := range side {
						a.scattered(from, offs, side, j, func(p register, i int) { a.load(p, 0, wide(i)) })
						a.inputLine(m)
						for i := range side {
							a.store(wide(6+i), tmp, (i*side+j)*size)
						}
					}
					a.rowsUp(args, a.at(dst, lane), tmp, side, func() { a.inputLine(m) }, side)
				})
			})
			a.scope(func() {
				a.add(a.field(args, winoRow), x)
				a.add(a.field(args, winoWidth), dst)
			})
		})
	})
}

// rowsUp applies a line to the rows that lie at tmp and stores them point by point.
func (a *assembly) rowsUp(args, to, tmp register, side int, line func(), inner int) {
	point := a.field(args, winoPoint)
	for i := range side {
		for j := range inner {
			a.load(tmp, (i*inner+j)*size, wide(j))
		}
		line()
		for j := range side {
			a.store(wide(6+j), to, 0)
			a.add(point, to)
		}
	}
}

// turn is a transform of a square of inner pixels a side to one of points.
type turn struct {
	name, doc    string
	inner, outer int
	scalars      []int // how many, for tiles of 2 and of 4
	line         func(m int)
}

// up makes points of pixels.
func (a *assembly) up(t turn, m int) {
	a.function(fmt.Sprintf("%s%d", t.name, m), "*winogradArgs", t.doc, func(args register) {
		f := a.fields(args, winoSrc, winoDst, winoOffs, winoTmp)
		src, dst, offs, tmp := f[0], f[1], f[2], f[3]
		a.numbers(args, count(m, t.scalars))
		a.strip(args, func(lane register) {
			from := a.at(src, lane)
			for j := range t.inner {
				a.scattered(from, offs, t.inner, j, func(p register, i int) { a.load(p, 0, wide(i)) })
				t.line(m)
				for i := range t.outer {
					a.store(wide(6+i), tmp, (i*t.inner+j)*size)
				}
			}
			a.rowsUp(args, a.at(dst, lane), tmp, t.outer, func() { t.line(m) }, t.inner)
		})
	})
}

// rowsDown applies a line, which says where its outcome begins, to the rows of points, and stores inner of each at tmp.
func (a *assembly) rowsDown(args, from, tmp register, side, inner int, line func() int) {
	point := a.field(args, winoPoint)
	for i := range side {
		for j := range side {
			a.load(from, 0, wide(j))
			a.add(point, from)
		}
		first := line()
		for j := range inner {
			a.store(wide(first+j), tmp, (i*inner+j)*size)
		}
	}
}

// gather makes pixels of points.
func (a *assembly) gather(m int) {
	side := m + 2
	doc := "makes the gradient of a 3 x 3 kernel of its matrices'; see winogradArgs."
	a.function(fmt.Sprintf("winogradGather%d", m), "*winogradArgs", doc, func(args register) {
		f := a.fields(args, winoSrc, winoDst, winoOffs, winoTmp)
		src, dst, offs, tmp := f[0], f[1], f[2], f[3]
		a.numbers(args, count(m, []int{1, 5}))
		a.strip(args, func(lane register) {
			a.rowsDown(args, a.at(src, lane), tmp, side, 3, func() int {
				a.gatherLine(m)
				return 6
			})
			to := a.at(dst, lane)
			for j := range 3 {
				for i := range side {
					a.load(tmp, (i*3+j)*size, wide(i))
				}
				a.gatherLine(m)
				a.scattered(to, offs, 3, j, func(p register, i int) { a.store(wide(6+i), p, 0) })
			}
		})
	})
}

// Registers of an output's transform, behind its numbers.
const (
	outputBias = 30
	outputZero = 31
)

// output transforms a tile back.
func (a *assembly) output(m int) {
	side := m + 2
	doc := "transforms a tile back; see winogradArgs."
	a.function(fmt.Sprintf("winogradOutput%d", m), "*winogradArgs", doc, func(args register) {
		f := a.fields(args, winoSrc, winoDst, winoOffs, winoTmp, winoChannels, winoBias)
		src, y, offs, tmp, channels, bias := f[0], f[1], f[2], f[3], f[4], f[5]
		a.numbers(args, count(m, []int{0, 3}))
		a.zeroFour(outputZero)
		a.loop(channels, 1, func() {
			plain := a.label("plain")
			a.zeroFour(outputBias)
			a.put("CBZ %s, %s", bias, plain)
			a.broadcast(bias, outputBias)
			a.mark(plain)
			a.scope(func() {
				a.strip(args, func(lane register) {
					a.rowsDown(args, a.at(src, lane), tmp, side, m, func() int {
						a.outputLine(m)
						return 0
					})
					to := a.at(y, lane)
					for j := range m {
						for i := range side {
							a.load(tmp, (i*m+j)*size, wide(i))
						}
						a.outputLine(m)
						a.deliver(args, m, j, to, offs)
					}
				})
			})
			a.scope(func() {
				a.add(a.field(args, winoWidth), src)
				a.add(a.field(args, winoRow), y)
			})
		})
	})
}

// deliver stores column j of a tile, with bias, what is there and max(0, x) where they are asked for.
func (a *assembly) deliver(args register, m, j int, y, offs register) {
	for i := range m {
		a.sum(wide(i), wide(i), same(outputBias))
	}
	fresh, linear := a.label("fresh"), a.label("linear")
	a.scope(func() {
		add := a.field(args, winoAdd)
		a.put("CBZ %s, %s", add, fresh)
		a.scattered(y, offs, m, j, func(p register, i int) {
			a.load(p, 0, wide(6+i))
			a.sum(wide(i), wide(i), wide(6+i))
		})
		a.mark(fresh)
		relu := a.field(args, winoReLU)
		a.put("CBZ %s, %s", relu, linear)
		for i := range m {
			a.larger(wide(i), wide(i), same(outputZero))
		}
		a.mark(linear)
	})
	a.scattered(y, offs, m, j, func(p register, i int) { a.store(wide(i), p, 0) })
}
