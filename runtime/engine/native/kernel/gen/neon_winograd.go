package main

import (
	"slices"

	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

// Registers of an output's transform.
const (
	outputBias = 30
	outputZero = 31
)

// winograd are the transforms of a tile, which has one side's algorithm along both of its sides or along one; see
// winogradArgs in package kernel and package winograd, which has the matrices.
func (a *neon) winograd(side winograd.Side, one bool) {
	m, name := side.Matrices(), side.Name()
	a.image("winogradInput"+name, m.Input.Program(), one)
	a.output("winogradOutput"+name, m.Output.Program(), one)
	a.upward("winogradWeights"+name, "transforms a kernel; see winogradArgs.", m.Kernel.Program(), one)
	a.upward("winogradSpread"+name, "transforms the gradient of a tile of an output; see winogradArgs.",
		m.Output.Transposed().Program(), one)
	a.gather("winogradGather"+name, m.Kernel.Transposed().Program(), one)
}

// transform is a program at work: its vectors are pairs of registers, and behind them are those that hold its numbers,
// as many as there are, and one for the others.
type neonTransform struct {
	*neon
	winograd.Program
	numbers register // in memory
	first   int      // register of those that are held
	held    int
	loaded  int // register of one of the others
}

// starting loads numbers where registers are left beside the program's and so many others.
func (a *neon) starting(args register, p winograd.Program, others int) neonTransform {
	t := neonTransform{neon: a, Program: p, first: 2 * p.Registers, held: len(p.Numbers)}
	t.numbers = a.field(args, winoNumbers)
	if left := 32 - t.first - others; t.held > left {
		t.held, t.loaded = left-1, t.first+left-1
	}
	if t.held < 0 {
		panic("no register is left for a transform's numbers")
	}
	registers := make([]int, t.held)
	for i := range registers {
		registers[i] = t.first + i
	}
	if t.held > 0 {
		a.constants(t.numbers, 0, registers...)
	}
	return t
}

// number is the register of one.
func (t neonTransform) number(i int) vec {
	if i < t.held {
		return same(t.first + i)
	}
	t.constants(t.numbers, 4*i, t.loaded)
	return same(t.loaded)
}

// line goes from vectors 0 and up to the program's Out.
func (t neonTransform) line() {
	for _, s := range t.Steps {
		switch s.Op {
		case winograd.Copy:
			t.copy(wide(s.To), wide(s.A))
		case winograd.Add:
			t.sum(wide(s.To), wide(s.A), wide(s.B))
		case winograd.Sub:
			t.difference(wide(s.To), wide(s.A), wide(s.B))
		case winograd.Mul:
			t.times(wide(s.To), wide(s.A), t.number(s.Number))
		case winograd.AddMul:
			t.fma(wide(s.To), wide(s.A), t.number(s.Number))
		case winograd.SubMul:
			t.fms(wide(s.To), wide(s.A), t.number(s.Number))
		}
	}
}

// strip walks a channel's bytes.
func (a *neon) strip(args register, body func(lane register)) {
	lane, width, next := a.register(), a.field(args, winoWidth), a.label("lane")
	a.put("MOVD $0, %s", lane)
	a.mark(next)
	a.scope(func() { body(lane) })
	a.advance(size, lane)
	a.put("CMP %s, %s", width, lane)
	a.put("BLO %s", next)
}

// scattered calls f with the addresses of n pixels, the first of which is at an offset of the list and the others so
// many further each.
func (a *neon) scattered(base, offs register, n, first, step int, f func(p register, i int)) {
	a.scope(func() {
		p := a.register()
		for i := range n {
			a.get(offs, 8*(first+i*step), p)
			a.add(base, p)
			f(p, i)
		}
	})
}

// up transforms a tile of pixels, which are at offsets, to points, one after the other: columns first.
func (t neonTransform) up(args, from, to, offs, tmp register, one bool) {
	point := t.field(args, winoPoint)
	load := func(first, step int) {
		t.scattered(from, offs, t.In, first, step, func(p register, i int) { t.load(p, 0, wide(i)) })
	}
	toPoints := func() {
		t.line()
		for _, r := range t.Out {
			t.store(wide(r), to, 0)
			t.add(point, to)
		}
	}
	if one {
		load(0, 1)
		toPoints()
		return
	}
	for j := range t.In {
		load(j, t.In)
		t.line()
		for i, r := range t.Out {
			t.store(wide(r), tmp, (i*t.In+j)*size)
		}
	}
	for i := range t.Out {
		for j := range t.In {
			t.load(tmp, (i*t.In+j)*size, wide(j))
		}
		toPoints()
	}
}

// down transforms points to a tile of pixels, a column of which deliver takes from the program's Out: rows first.
func (t neonTransform) down(args, from, tmp register, one bool, deliver func(column, columns int)) {
	point := t.field(args, winoPoint)
	ofPoints := func() {
		for i := range t.In {
			t.load(from, 0, wide(i))
			t.add(point, from)
		}
		t.line()
	}
	if one {
		ofPoints()
		deliver(0, 1)
		return
	}
	columns := len(t.Out)
	for i := range t.In {
		ofPoints()
		for j, r := range t.Out {
			t.store(wide(r), tmp, (i*columns+j)*size)
		}
	}
	for j := range columns {
		for i := range t.In {
			t.load(tmp, (i*columns+j)*size, wide(i))
		}
		t.line()
		deliver(j, columns)
	}
}

// image transforms a tile of an image.
func (a *neon) image(name string, p winograd.Program, one bool) {
	a.function(name, "*winogradArgs", "transforms a tile of an image; see winogradArgs.", func(args register) {
		f := a.fields(args, winoSrc, winoDst, winoOffs, winoTmp, winoChannels)
		x, dst, offs, tmp, channels := f[0], f[1], f[2], f[3], f[4]
		t := a.starting(args, p, 0)
		a.loop(channels, 1, func() {
			a.scope(func() {
				a.strip(args, func(lane register) { t.up(args, a.at(x, lane), a.at(dst, lane), offs, tmp, one) })
			})
			a.scope(func() {
				a.add(a.field(args, winoRow), x)
				a.add(a.field(args, winoWidth), dst)
			})
		})
	})
}

// upward makes points of pixels that are no image's.
func (a *neon) upward(name, doc string, p winograd.Program, one bool) {
	a.function(name, "*winogradArgs", doc, func(args register) {
		f := a.fields(args, winoSrc, winoDst, winoOffs, winoTmp)
		src, dst, offs, tmp := f[0], f[1], f[2], f[3]
		t := a.starting(args, p, 0)
		a.strip(args, func(lane register) { t.up(args, a.at(src, lane), a.at(dst, lane), offs, tmp, one) })
	})
}

// gather makes the gradient of a kernel of its matrices'.
func (a *neon) gather(name string, p winograd.Program, one bool) {
	doc := "makes the gradient of a kernel of its matrices'; see winogradArgs."
	a.function(name, "*winogradArgs", doc, func(args register) {
		f := a.fields(args, winoSrc, winoDst, winoOffs, winoTmp)
		src, dst, offs, tmp := f[0], f[1], f[2], f[3]
		t := a.starting(args, p, 0)
		a.strip(args, func(lane register) {
			to := a.at(dst, lane)
			t.down(args, a.at(src, lane), tmp, one, func(j, columns int) {
				a.scattered(to, offs, len(t.Out), j, columns, func(p register, i int) { a.store(wide(t.Out[i]), p, 0) })
			})
		})
	})
}

// output transforms a tile back.
func (a *neon) output(name string, p winograd.Program, one bool) {
	a.function(name, "*winogradArgs", "transforms a tile back; see winogradArgs.", func(args register) {
		f := a.fields(args, winoSrc, winoDst, winoOffs, winoTmp, winoChannels, winoBias)
		src, y, offs, tmp, channels, bias := f[0], f[1], f[2], f[3], f[4], f[5]
		t := a.starting(args, p, 2)
		a.zeroFour(outputZero)
		a.loop(channels, 1, func() {
			plain := a.label("plain")
			a.zeroFour(outputBias)
			a.put("CBZ %s, %s", bias, plain)
			a.broadcast(bias, outputBias)
			a.mark(plain)
			a.scope(func() {
				a.strip(args, func(lane register) {
					to := a.at(y, lane)
					t.down(args, a.at(src, lane), tmp, one, func(j, columns int) { t.deliver(args, j, columns, to, offs) })
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
func (t neonTransform) deliver(args register, j, columns int, y, offs register) {
	for _, r := range t.Out {
		t.sum(wide(r), wide(r), same(outputBias))
	}
	fresh, linear := t.label("fresh"), t.label("linear")
	t.scope(func() {
		add := t.field(args, winoAdd)
		t.put("CBZ %s, %s", add, fresh)
		there := wide(t.spare())
		t.scattered(y, offs, len(t.Out), j, columns, func(p register, i int) {
			t.load(p, 0, there)
			t.sum(wide(t.Out[i]), wide(t.Out[i]), there)
		})
		t.mark(fresh)
		relu := t.field(args, winoReLU)
		t.put("CBZ %s, %s", relu, linear)
		for _, r := range t.Out {
			t.larger(wide(r), wide(r), same(outputZero))
		}
		t.mark(linear)
	})
	t.scattered(y, offs, len(t.Out), j, columns, func(p register, i int) { t.store(wide(t.Out[i]), p, 0) })
}

// spare is a vector that holds nothing once the line is done.
func (t neonTransform) spare() int {
	for i := range t.Registers {
		if !slices.Contains(t.Out, i) {
			return i
		}
	}
	panic("a program without a vector to spare")
}
