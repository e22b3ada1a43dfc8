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

// weightLine is one side of the weights' transform: registers 0 to 2 to registers 6 and up. Scalars 1/2, or 1/4, -1/6,
// 1/24, 1/6 and 1/12, are in register 12 and up, the last in register 3.
func (s isa) weightLine(m int) {
	s.add(0, 2, 4)
	if m == 2 {
		s.mul(12, 4, 4)
		s.mul(12, 1, 5)
		s.copy(0, 6)
		s.add(4, 5, 7)
		s.sub(5, 4, 8)
		s.copy(2, 9)
		return
	}
	s.mul(12, 0, 6)
	s.mul(13, 4, 4) // -(g0 + g2) / 6
	s.mul(13, 1, 5) // -g1 / 6
	s.add(4, 5, 7)
	s.sub(5, 4, 8)
	s.mul(14, 0, 4)
	s.fma(15, 2, 4) // g0 / 24 + g2 / 6
	s.mul(3, 1, 5)  // g1 / 12
	s.add(4, 5, 9)
	s.sub(5, 4, 10)
	s.copy(2, 11)
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

func (s isa) winogradWeights(m int) {
	a := m + 2
	args := s.function(fmt.Sprintf("winogradWeights%d_", m), "transforms a 3 x 3 kernel; see winogradArgs.")
	src, dst, offs, tmp := field(args, winoSrc), field(args, winoDst), field(args, winoOffs), field(args, winoTmp)
	if m == 2 {
		s.constants(args, 12)
	} else {
		s.constants(args, 12, 13, 14, 15, 3)
	}
	s.strip(args, func(lane reg.Register) {
		p := moved(src, lane)
		for j := range 3 {
			for i := range 3 {
				r := GP64()
				MOVQ(at(offs, 8*(i*3+j)), r)
				s.load(indexed(p, r, 1, 0), i)
			}
			s.weightLine(m)
			for i := range a {
				s.store(6+i, at(tmp, (i*3+j)*s.size))
			}
		}
		d, point := moved(dst, lane), field(args, winoPoint)
		for i := range a {
			for j := range 3 {
				s.load(at(tmp, (i*3+j)*s.size), j)
			}
			s.weightLine(m)
			for j := range a {
				s.store(6+j, at(d, 0))
				ADDQ(point, d)
			}
		}
	})
	done()
}

// spreadLine is one side of the output's transform, transposed: registers 0 and up to registers 6 and up. Scalars 2, 4
// and 8 are in registers 12 to 14.
func (s isa) spreadLine(m int) {
	s.copy(0, 6)
	if m == 2 {
		s.add(0, 1, 7)
		s.sub(1, 0, 8)
		s.zero(9)
		s.sub(1, 9, 9)
		return
	}
	s.add(0, 2, 4)
	s.add(1, 3, 5)
	s.add(4, 5, 7)
	s.sub(5, 4, 8)
	s.copy(0, 4)
	s.fma(13, 2, 4) // y0 + 4 y2
	s.mul(12, 1, 5)
	s.fma(14, 3, 5) // 2 y1 + 8 y3
	s.add(4, 5, 9)
	s.sub(5, 4, 10)
	s.copy(3, 11)
}

// gatherLine is one side of the weights' transform, transposed: registers 0 and up to registers 6 to 8. Scalars are
// weightLine's, the last in register 11.
func (s isa) gatherLine(m int) {
	s.add(1, 2, 9)
	if m == 2 {
		s.mul(12, 9, 9)
		s.add(0, 9, 6)
		s.sub(2, 1, 7)
		s.mul(12, 7, 7)
		s.add(3, 9, 8)
		return
	}
	s.add(3, 4, 10)
	s.mul(13, 9, 9) // -(t1 + t2) / 6
	s.mul(12, 0, 6)
	s.add(9, 6, 6)
	s.fma(14, 10, 6) // t0 / 4 - (t1 + t2) / 6 + (t3 + t4) / 24
	s.sub(1, 2, 7)
	s.mul(15, 7, 7)
	s.sub(4, 3, 3)
	s.fma(11, 3, 7) // (t2 - t1) / 6 + (t3 - t4) / 12
	s.add(9, 5, 8)
	s.fma(15, 10, 8) // t5 - (t1 + t2) / 6 + (t3 + t4) / 6
}

func (s isa) winogradSpread(m int) {
	a := m + 2
	args := s.function(fmt.Sprintf("winogradSpread%d_", m),
		"transforms the gradient of a tile of an output; see winogradArgs.")
	src, dst, offs, tmp := field(args, winoSrc), field(args, winoDst), field(args, winoOffs), field(args, winoTmp)
	if m == 4 {
		s.constants(args, 12, 13, 14)
	}
	s.strip(args, func(lane reg.Register) {
		p := moved(src, lane)
		for j := range m {
			for i := range m {
				r := GP64()
				MOVQ(at(offs, 8*(i*m+j)), r)
				s.load(indexed(p, r, 1, 0), i)
			}
			s.spreadLine(m)
			for i := range a {
				s.store(6+i, at(tmp, (i*m+j)*s.size))
			}
		}
		d, point := moved(dst, lane), field(args, winoPoint)
		for i := range a {
			for j := range m {
				s.load(at(tmp, (i*m+j)*s.size), j)
			}
			s.spreadLine(m)
			for j := range a {
				s.store(6+j, at(d, 0))
				ADDQ(point, d)
			}
		}
	})
	done()
}

func (s isa) winogradGather(m int) {
	a := m + 2
	args := s.function(fmt.Sprintf("winogradGather%d_", m),
		"makes the gradient of a 3 x 3 kernel of its matrices'; see winogradArgs.")
	src, dst, offs, tmp := field(args, winoSrc), field(args, winoDst), field(args, winoOffs), field(args, winoTmp)
	if m == 2 {
		s.constants(args, 12)
	} else {
		s.constants(args, 12, 13, 14, 15, 11)
	}
	s.strip(args, func(lane reg.Register) {
		p, point := moved(src, lane), field(args, winoPoint)
		for i := range a {
			for j := range a {
				s.load(at(p, 0), j)
				ADDQ(point, p)
			}
			s.gatherLine(m)
			for j := range 3 {
				s.store(6+j, at(tmp, (i*3+j)*s.size))
			}
		}
		d := moved(dst, lane)
		for j := range 3 {
			for i := range a {
				s.load(at(tmp, (i*3+j)*s.size), i)
			}
			s.gatherLine(m)
			for i := range 3 {
				r := GP64()
				MOVQ(at(offs, 8*(i*3+j)), r)
				s.store(6+i, indexed(d, r, 1, 0))
			}
		}
	})
	done()
}
