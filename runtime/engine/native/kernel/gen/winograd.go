package main

import (
	"slices"

	"github.com/disdel/disdel/runtime/engine/native/winograd"
)

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
	winoNumbers  = 88
)

// transforms writes the transforms of a tile. The algorithm of side runs along both dimensions of the tile or along
// one. See winogradArgs in package kernel; package winograd has the matrices.
func transforms(m machine, side winograd.Side, one bool) {
	matrices, name := side.Matrices(), side.Name()
	image(m, "winogradInput"+name, matrices.Input.Program(), one)
	output(m, "winogradOutput"+name, matrices.Output.Program(), one)
	upward(m, "winogradWeights"+name, matrices.Kernel.Program(), one)             // of a kernel
	upward(m, "winogradSpread"+name, matrices.Output.Transposed().Program(), one) // of the gradient of an output's tile
	gather(m, "winogradGather"+name, matrices.Kernel.Transposed().Program(), one)
}

// transform is a program, its arguments and the vectors of its numbers.
type transform struct {
	machine
	winograd.Program
	args                register
	src, dst, offs, tmp register
	numbers             register // in memory
	kept                []vector // the first numbers
	loaded              vector   // any of the others
}

// starting loads the arguments that all transforms have. It keeps the numbers of the program in repeated vectors, as
// many as fit beside the vectors of the program and so many others.
func starting(m machine, args register, p winograd.Program, others int) transform {
	t := transform{machine: m, Program: p, args: args}
	t.src, t.dst = m.field(args, winoSrc), m.field(args, winoDst)
	t.offs, t.tmp = m.field(args, winoOffs), m.field(args, winoTmp)
	t.numbers = m.field(args, winoNumbers)
	left := m.repeatedVectors(p.Registers)
	left = left[:len(left)-others]
	t.kept = left[:min(len(p.Numbers), len(left))]
	if last := len(left) - 1; len(p.Numbers) > len(left) {
		t.kept, t.loaded = left[:last], left[last]
	}
	if len(t.kept) > 0 {
		m.broadcastEach(t.numbers, 0, t.kept...)
	}
	return t
}

// factor returns the vector of a number.
func (t transform) factor(i int) vector {
	if i < len(t.kept) {
		return t.kept[i]
	}
	t.broadcastEach(t.numbers, 4*i, t.loaded)
	return t.loaded
}

// line runs the program on vectors 0 and up.
func (t transform) line() {
	for _, s := range t.Steps {
		to, x := t.v(s.To), t.v(s.A)
		switch s.Op {
		case winograd.Copy:
			t.copy(to, x)
		case winograd.Add:
			t.add(to, x, t.v(s.B))
		case winograd.Sub:
			t.sub(to, x, t.v(s.B))
		case winograd.Mul:
			t.mul(to, x, t.factor(s.Number))
		case winograd.AddMul:
			t.fma(to, x, t.factor(s.Number))
		case winograd.SubMul:
			t.fms(to, x, t.factor(s.Number))
		}
	}
}

// strip calls body for each vector of a channel.
func (t transform) strip(body func(lane register)) {
	lane, width, next := t.register(), t.fieldOperand(t.args, winoWidth), t.label("lane")
	t.clear(lane)
	t.mark(next)
	t.scope(func() { body(lane) })
	t.plus(t.size(), lane)
	t.compare(lane, width)
	t.branch(below, next)
}

// scattered calls f with the places of n pixels. Their offsets are in the list, from first on, with a distance of step.
func (t transform) scattered(base register, n, first, step int, f func(p place, i int)) {
	for i := range n {
		t.scope(func() { f(t.atListedOffset(base, t.offs, first+i*step), i) })
	}
}

// up transforms a tile of pixels to consecutive points: first its columns.
func (t transform) up(lane register, one bool) {
	from, to := t.sumOf(t.src, lane), t.sumOf(t.dst, lane)
	point := t.field(t.args, winoPoint)
	load := func(first, step int) {
		t.scattered(from, t.In, first, step, func(p place, i int) { t.load(p, t.v(i)) })
		t.line()
	}
	toPoints := func() {
		for _, r := range t.Out {
			t.store(t.v(r), t.at(to, 0))
			t.plus(point, to)
		}
	}
	if one {
		load(0, 1)
		toPoints()
		return
	}
	for j := range t.In {
		load(j, t.In)
		for i, r := range t.Out {
			t.store(t.v(r), t.at(t.tmp, (i*t.In+j)*t.size()))
		}
	}
	for i := range t.Out {
		for j := range t.In {
			t.load(t.at(t.tmp, (i*t.In+j)*t.size()), t.v(j))
		}
		t.line()
		toPoints()
	}
}

// down transforms points to a tile of pixels: first the rows. deliver takes each column from the Out of the program.
func (t transform) down(lane register, one bool, deliver func(to register, column, columns int)) {
	to, from := t.sumOf(t.dst, lane), t.sumOf(t.src, lane)
	point := t.field(t.args, winoPoint)
	ofPoints := func() {
		for i := range t.In {
			t.load(t.at(from, 0), t.v(i))
			t.plus(point, from)
		}
		t.line()
	}
	if one {
		ofPoints()
		deliver(to, 0, 1)
		return
	}
	columns := len(t.Out)
	for i := range t.In {
		ofPoints()
		for j, r := range t.Out {
			t.store(t.v(r), t.at(t.tmp, (i*columns+j)*t.size()))
		}
	}
	for j := range columns {
		for i := range t.In {
			t.load(t.at(t.tmp, (i*columns+j)*t.size()), t.v(i))
		}
		t.line()
		deliver(to, j, columns)
	}
}

// step advances a pointer by a field.
func (t transform) step(field int, pointer register) {
	t.scope(func() { t.plus(t.fieldOperand(t.args, field), pointer) })
}

// image writes the transform of a tile of an image.
func image(m machine, name string, p winograd.Program, one bool) {
	m.function(name, "*winogradArgs", func(args register) {
		t := starting(m, args, p, 0)
		m.loop(m.field(args, winoChannels), 1, func() {
			t.strip(func(lane register) { t.up(lane, one) })
			t.step(winoRow, t.src)
			t.step(winoWidth, t.dst)
		})
	})
}

// upward writes a transform to points of pixels without an image.
func upward(m machine, name string, p winograd.Program, one bool) {
	m.function(name, "*winogradArgs", func(args register) {
		t := starting(m, args, p, 0)
		t.strip(func(lane register) { t.up(lane, one) })
	})
}

// gather writes the transform of the gradients of the points of a kernel to its gradient.
func gather(m machine, name string, p winograd.Program, one bool) {
	m.function(name, "*winogradArgs", func(args register) {
		t := starting(m, args, p, 0)
		t.strip(func(lane register) { t.down(lane, one, t.storeColumn) })
	})
}

func (t transform) storeColumn(to register, column, columns int) {
	t.scattered(to, len(t.Out), column, columns, func(p place, i int) { t.store(t.v(t.Out[i]), p) })
}

// output writes the transform of points to a tile of the output.
func output(m machine, name string, p winograd.Program, one bool) {
	m.function(name, "*winogradArgs", func(args register) {
		t := starting(m, args, p, 2)
		last := m.repeatedVectors(p.Registers)
		last = last[len(last)-2:]
		zeros, bias := last[0], last[1]
		m.zero(zeros)
		channels, values := m.field(args, winoChannels), m.field(args, winoBias)
		m.loop(channels, 1, func() {
			plain := m.label("plain")
			m.zero(bias)
			m.branchIfZero(values, plain)
			m.broadcastNext(values, bias)
			m.mark(plain)
			t.strip(func(lane register) {
				t.down(lane, one, func(to register, column, columns int) {
					t.deliver(to, column, columns, bias, zeros)
				})
			})
			t.step(winoWidth, t.src)
			t.step(winoRow, t.dst)
		})
	})
}

// deliver stores a column of a tile, and adds the bias, the values there and ReLU if the arguments ask for it.
func (t transform) deliver(to register, column, columns int, bias, zeros vector) {
	for _, r := range t.Out {
		t.add(t.v(r), t.v(r), bias)
	}
	fresh, linear := t.label("fresh"), t.label("linear")
	t.scope(func() { t.branchIfZero(t.fieldOperand(t.args, winoAdd), fresh) })
	there := t.v(t.spare())
	t.scattered(to, len(t.Out), column, columns, func(p place, i int) {
		t.add(t.v(t.Out[i]), t.v(t.Out[i]), t.memoryOperand(p, there))
	})
	t.mark(fresh)
	t.scope(func() { t.branchIfZero(t.fieldOperand(t.args, winoReLU), linear) })
	for _, r := range t.Out {
		t.max(t.v(r), t.v(r), zeros)
	}
	t.mark(linear)
	t.storeColumn(to, column, columns)
}

// spare returns a vector that is free after the program.
func (t transform) spare() int {
	for i := range t.Registers {
		if !slices.Contains(t.Out, i) {
			return i
		}
	}
	panic("a program without a vector to spare")
}
