package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

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

// winograd are the transforms of a tile, which has one side's algorithm along both of its sides or along one; see
// winogradArgs in package kernel and package winograd, which has the matrices.
func (s *avx) winograd(side winograd.Side, one bool) {
	name := side.Name() + "_"
	m := side.Matrices()
	s.winogradInput("winogradInput"+name, m.Input.Program(), one)
	s.winogradOutput("winogradOutput"+name, m.Output.Program(), one)
	s.winogradUp("winogradWeights"+name, "transforms a kernel; see winogradArgs.", m.Kernel.Program(), one)
	s.winogradUp("winogradSpread"+name, "transforms the gradient of a tile of an output; see winogradArgs.",
		m.Output.Transposed().Program(), one)
	s.winogradGather("winogradGather"+name, m.Kernel.Transposed().Program(), one)
}

// transform is a program at work: the registers that hold its numbers, as many as there are, and one for the others.
type transform struct {
	*avx
	winograd.Program
	numbers reg.GPVirtual // in memory
	first   int           // register of those that are held
	held    int
	loaded  int // register of one of the others
}

// starting loads numbers where registers are left beside the program's and so many others.
func (s *avx) starting(args reg.Register, p winograd.Program, others int) transform {
	t := transform{avx: s, Program: p, first: p.Registers, held: len(p.Numbers)}
	t.numbers = s.field(args, winoNumbers)
	if left := s.regs - p.Registers - others; t.held > left {
		t.held, t.loaded = left-1, p.Registers+left-1
	}
	if t.held < 0 {
		panic("no register is left for a transform's numbers")
	}
	for i := range t.held {
		s.broadcast(at(t.numbers, 4*i), t.first+i)
	}
	return t
}

// number is the register of one.
func (t transform) number(i int) int {
	if i < t.held {
		return t.first + i
	}
	t.broadcast(at(t.numbers, 4*i), t.loaded)
	return t.loaded
}

// line goes from registers 0 and up to the program's Out.
func (t transform) line() {
	for _, step := range t.Steps {
		switch step.Op {
		case winograd.Copy:
			t.VMOVAPS(t.v(step.A), t.v(step.To))
		case winograd.Add:
			t.add(step.B, step.A, step.To)
		case winograd.Sub:
			t.sub(step.B, step.A, step.To)
		case winograd.Mul:
			t.mul(t.number(step.Number), step.A, step.To)
		case winograd.AddMul:
			t.fma(t.number(step.Number), step.A, step.To)
		case winograd.SubMul:
			t.VFNMADD231PS(t.v(t.number(step.Number)), t.v(step.A), t.v(step.To))
		}
	}
}

// strip walks a channel's bytes.
func (s *avx) strip(args reg.Register, body func(lane reg.Register)) {
	lane := s.GP64()
	s.XORQ(lane, lane)
	l := s.label("lane")
	s.Label(l)
	body(lane)
	s.ADDQ(operand.U32(s.size), lane)
	s.CMPQ(lane, at(args, winoWidth))
	s.JB(operand.LabelRef(l))
}

// moved is a copy of a pointer, so many bytes on.
func (s *avx) moved(p, by reg.Register) reg.GPVirtual {
	r := s.GP64()
	s.MOVQ(p, r)
	s.ADDQ(by, r)
	return r
}

// scattered is the memory at an offset of a list.
func (s *avx) scattered(base, offs reg.Register, i int) operand.Mem {
	r := s.GP64()
	s.MOVQ(at(offs, 8*i), r)
	return indexed(base, r, 1, 0)
}

// up transforms a tile of pixels, which are at offsets, to points, one after the other: columns first.
func (t transform) up(args, from, to, offs, tmp reg.Register, one bool) {
	point := t.field(args, winoPoint)
	toPoints := func() {
		t.line()
		for _, r := range t.Out {
			t.store(r, at(to, 0))
			t.ADDQ(point, to)
		}
	}
	if one {
		for i := range t.In {
			t.load(t.scattered(from, offs, i), i)
		}
		toPoints()
		return
	}
	for j := range t.In {
		for i := range t.In {
			t.load(t.scattered(from, offs, i*t.In+j), i)
		}
		t.line()
		for i, r := range t.Out {
			t.store(r, at(tmp, (i*t.In+j)*t.size))
		}
	}
	for i := range t.Out {
		for j := range t.In {
			t.load(at(tmp, (i*t.In+j)*t.size), j)
		}
		toPoints()
	}
}

// down transforms points to a tile of pixels, a column of which deliver takes from the program's Out: rows first.
func (t transform) down(args, from, tmp reg.Register, one bool, deliver func(column, columns int)) {
	point := t.field(args, winoPoint)
	ofPoints := func() {
		for i := range t.In {
			t.load(at(from, 0), i)
			t.ADDQ(point, from)
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
			t.store(r, at(tmp, (i*columns+j)*t.size))
		}
	}
	for j := range columns {
		for i := range t.In {
			t.load(at(tmp, (i*columns+j)*t.size), i)
		}
		t.line()
		deliver(j, columns)
	}
}

func (s *avx) winogradInput(name string, p winograd.Program, one bool) {
	args := s.function(name, "*winogradArgs", "transforms a tile of an image; see winogradArgs.")
	x, dst, offs, tmp := s.field(args, winoSrc), s.field(args, winoDst), s.field(args, winoOffs), s.field(args, winoTmp)
	t := s.starting(args, p, 0)
	channels := s.field(args, winoChannels)
	s.loop(channels, 1, func() {
		s.strip(args, func(lane reg.Register) { t.up(args, s.moved(x, lane), s.moved(dst, lane), offs, tmp, one) })
		s.ADDQ(at(args, winoRow), x)
		s.ADDQ(at(args, winoWidth), dst)
	})
	s.done()
}

func (s *avx) winogradUp(name, doc string, p winograd.Program, one bool) {
	args := s.function(name, "*winogradArgs", doc)
	src, dst, offs, tmp := s.field(args, winoSrc), s.field(args, winoDst), s.field(args, winoOffs), s.field(args, winoTmp)
	t := s.starting(args, p, 0)
	s.strip(args, func(lane reg.Register) { t.up(args, s.moved(src, lane), s.moved(dst, lane), offs, tmp, one) })
	s.done()
}

func (s *avx) winogradGather(name string, p winograd.Program, one bool) {
	args := s.function(name, "*winogradArgs", "makes the gradient of a kernel of its matrices'; see winogradArgs.")
	src, dst, offs, tmp := s.field(args, winoSrc), s.field(args, winoDst), s.field(args, winoOffs), s.field(args, winoTmp)
	t := s.starting(args, p, 0)
	s.strip(args, func(lane reg.Register) {
		d := s.moved(dst, lane)
		t.down(args, s.moved(src, lane), tmp, one, func(j, columns int) {
			for i, r := range t.Out {
				s.store(r, s.scattered(d, offs, i*columns+j))
			}
		})
	})
	s.done()
}

func (s *avx) winogradOutput(name string, p winograd.Program, one bool) {
	args := s.function(name, "*winogradArgs", "transforms a tile back; see winogradArgs.")
	src, y, offs, tmp := s.field(args, winoSrc), s.field(args, winoDst), s.field(args, winoOffs), s.field(args, winoTmp)
	t := s.starting(args, p, 2)
	bias, zeros := s.regs-1, s.regs-2
	s.zero(zeros)
	channels, b := s.field(args, winoChannels), s.field(args, winoBias)
	s.loop(channels, 1, func() {
		plain := s.label("plain")
		s.zero(bias)
		s.TESTQ(b, b)
		s.JZ(operand.LabelRef(plain))
		s.broadcast(at(b, 0), bias)
		s.advance(4, b)
		s.Label(plain)
		s.strip(args, func(lane reg.Register) {
			py := s.moved(y, lane)
			t.down(args, s.moved(src, lane), tmp, one, func(j, columns int) {
				s.deliver(args, t.Out, j, columns, bias, zeros, py, offs)
			})
		})
		s.ADDQ(at(args, winoWidth), src)
		s.ADDQ(at(args, winoRow), y)
	})
	s.done()
}

// deliver stores column j of a tile, with bias, what is there and max(0, x) where they are asked for.
func (s *avx) deliver(args reg.Register, column []int, j, columns, bias, zeros int, py, offs reg.Register) {
	for _, r := range column {
		s.add(bias, r, r)
	}
	fresh, linear := s.label("fresh"), s.label("linear")
	s.CMPQ(at(args, winoAdd), operand.U8(0))
	s.JE(operand.LabelRef(fresh))
	for i, r := range column {
		s.add(s.scattered(py, offs, i*columns+j), r, r)
	}
	s.Label(fresh)
	s.CMPQ(at(args, winoReLU), operand.U8(0))
	s.JE(operand.LabelRef(linear))
	for _, r := range column {
		s.max(r, zeros, r) // in this order NaN stays NaN
	}
	s.Label(linear)
	for i, r := range column {
		s.store(r, s.scattered(py, offs, i*columns+j))
	}
}
