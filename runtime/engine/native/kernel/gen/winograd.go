package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
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
	winoScalars  = 88
)

// winograd are the transforms of F(m x m, 3 x 3); see winogradArgs in package kernel and Lavin and Gray 2015, whose
// matrices these are.
func (s isa) winograd(m int) {
	s.winogradInput(m)
	s.winogradOutput(m)
	s.winogradWeights(m)
	s.winogradSpread(m)
	s.winogradGather(m)
}

// copy is to = from.
func (s isa) copy(from, to int) { VMOVAPS(s.v(from), s.v(to)) }

// constants loads scalars of the arguments into registers.
func (s isa) constants(args reg.Register, registers ...int) {
	for i, r := range registers {
		s.broadcast(at(args, winoScalars+4*i), r)
	}
}

// inputLine is one side of the input's transform: registers 0 and up to registers 6 and up. Scalars 4, -4, -5 and 2
// are in registers 12 to 15.
func (s isa) inputLine(m int) {
	if m == 2 {
		s.sub(2, 0, 6)
		s.add(1, 2, 7)
		s.sub(1, 2, 8)
		s.sub(3, 1, 9)
		return
	}
	s.copy(4, 6)
	s.fma(12, 0, 6)
	s.fma(14, 2, 6) // 4 d0 - 5 d2 + d4
	s.copy(5, 11)
	s.fma(12, 1, 11)
	s.fma(14, 3, 11) // 4 d1 - 5 d3 + d5
	s.copy(4, 0)
	s.fma(13, 2, 0) // d4 - 4 d2
	s.copy(3, 5)
	s.fma(13, 1, 5) // d3 - 4 d1
	s.add(0, 5, 7)
	s.sub(5, 0, 8)
	s.sub(2, 4, 4)  // d4 - d2
	s.sub(1, 3, 3)  // d3 - d1
	s.mul(15, 3, 3) // twice that
	s.add(4, 3, 9)
	s.sub(3, 4, 10)
}

// outputLine is one side of the output's transform: registers 0 and up to registers 0 and up. Scalars 4, 8 and 2 are in
// registers 12, 13 and 15.
func (s isa) outputLine(m int) {
	if m == 2 {
		s.add(0, 1, 0)
		s.add(0, 2, 0)
		s.sub(2, 1, 1)
		s.sub(3, 1, 1)
		return
	}
	s.add(1, 2, 6)
	s.sub(2, 1, 7)
	s.add(3, 4, 8)
	s.sub(4, 3, 9)
	s.add(0, 6, 0)
	s.add(0, 8, 0) // m0 + (m1 + m2) + (m3 + m4)
	s.copy(7, 1)
	s.fma(15, 9, 1) // (m1 - m2) + 2 (m3 - m4)
	s.copy(6, 2)
	s.fma(12, 8, 2) // (m1 + m2) + 4 (m3 + m4)
	s.add(5, 7, 3)
	s.fma(13, 9, 3) // (m1 - m2) + m5 + 8 (m3 - m4)
}

// strip walks a channel's bytes.
func (s isa) strip(args reg.Register, body func(lane reg.Register)) {
	lane := GP64()
	XORQ(lane, lane)
	l := label("lane")
	Label(l)
	body(lane)
	ADDQ(operand.U32(s.size), lane)
	CMPQ(lane, at(args, winoWidth))
	JB(operand.LabelRef(l))
}

// moved is a copy of a pointer, so many bytes on.
func moved(p, by reg.Register) reg.GPVirtual {
	r := GP64()
	MOVQ(p, r)
	ADDQ(by, r)
	return r
}

func (s isa) winogradInput(m int) {
	a := m + 2
	args := s.function(fmt.Sprintf("winogradInput%d_", m), "transforms a tile of an image; see winogradArgs.")
	x, dst, offs, tmp := field(args, winoSrc), field(args, winoDst), field(args, winoOffs), field(args, winoTmp)
	if m == 4 {
		s.constants(args, 12, 13, 14, 15)
	}
	channels := field(args, winoChannels)
	loop(channels, 1, func() {
		s.strip(args, func(lane reg.Register) {
			px := moved(x, lane)
			for j := range a {
				for i := range a {
					r := GP64()
					MOVQ(at(offs, 8*(i*a+j)), r)
					s.load(indexed(px, r, 1, 0), i)
				}
				s.inputLine(m)
				for i := range a {
					s.store(6+i, at(tmp, (i*a+j)*s.size))
				}
			}
			d, point := moved(dst, lane), field(args, winoPoint)
			for i := range a {
				for j := range a {
					s.load(at(tmp, (i*a+j)*s.size), j)
				}
				s.inputLine(m)
				for j := range a {
					s.store(6+j, at(d, 0))
					ADDQ(point, d)
				}
			}
		})
		ADDQ(at(args, winoRow), x)
		ADDQ(at(args, winoWidth), dst)
	})
	done()
}

func (s isa) winogradOutput(m int) {
	a := m + 2
	const bias, zeros = 14, 11
	args := s.function(fmt.Sprintf("winogradOutput%d_", m), "transforms a tile back; see winogradArgs.")
	src, y, offs, tmp := field(args, winoSrc), field(args, winoDst), field(args, winoOffs), field(args, winoTmp)
	if m == 4 {
		s.constants(args, 12, 13, 15)
	}
	channels, b := field(args, winoChannels), field(args, winoBias)
	loop(channels, 1, func() {
		plain := label("plain")
		s.zero(bias)
		TESTQ(b, b)
		JZ(operand.LabelRef(plain))
		s.broadcast(at(b, 0), bias)
		advance(4, b)
		Label(plain)
		s.strip(args, func(lane reg.Register) {
			p, point := moved(src, lane), field(args, winoPoint)
			for i := range a { // the rows of the tile, their columns transformed first
				for j := range a {
					s.load(at(p, 0), j)
					ADDQ(point, p)
				}
				s.outputLine(m)
				for j := range m {
					s.store(j, at(tmp, (i*m+j)*s.size))
				}
			}
			py := moved(y, lane)
			for j := range m {
				for i := range a {
					s.load(at(tmp, (i*m+j)*s.size), i)
				}
				s.outputLine(m)
				s.deliver(args, m, j, bias, zeros, py, offs)
			}
		})
		ADDQ(at(args, winoWidth), src)
		ADDQ(at(args, winoRow), y)
	})
	done()
}

// deliver stores column j of a tile, with bias, what is there and max(0, x) where they are asked for.
func (s isa) deliver(args reg.Register, m, j, bias, zeros int, py, offs reg.Register) {
	for i := range m {
		s.add(bias, i, i)
	}
	fresh, linear := label("fresh"), label("linear")
	CMPQ(at(args, winoAdd), operand.U8(0))
	JE(operand.LabelRef(fresh))
	for i := range m {
		r := GP64()
		MOVQ(at(offs, 8*(i*m+j)), r)
		s.add(indexed(py, r, 1, 0), i, i)
	}
	Label(fresh)
	CMPQ(at(args, winoReLU), operand.U8(0))
	JE(operand.LabelRef(linear))
	s.zero(zeros)
	for i := range m {
		s.max(i, zeros, i) // in this order NaN stays NaN
	}
	Label(linear)
	for i := range m {
		r := GP64()
		MOVQ(at(offs, 8*(i*m+j)), r)
		s.store(i, indexed(py, r, 1, 0))
	}
}
